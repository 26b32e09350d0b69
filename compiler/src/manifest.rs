//! The launch manifest: everything a host needs to launch a compiled module, as data. A leaf room: it imports
//! only `data`. Serialised as JSON by `krn build --emit manifest`.

mod words;

pub use crate::data::Layout;
use crate::data::{ElementType, LinearExtent, Scalar};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The manifest of one compiled module.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The source file's name as given.
    pub source: String,
    /// `sm_90`
    pub target: String,
    pub statics: Vec<StaticManifest>,
    pub kernels: Vec<KernelManifest>,
}

/// A module-lifetime device variable: the PTX global of this name, which no entry names. Entries that use it are given its
/// address, so that code that is loaded apart shares it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StaticManifest {
    /// As the user wrote it.
    pub name: String,
    /// Its symbol in the PTX.
    pub symbol: String,
    pub element: ElementType,
    pub extents: Vec<u64>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct KernelManifest {
    pub name: String,
    /// Integers that expressions below name by position: dimensions, scalar parameters' leaves, repeat counters.
    pub symbols: Vec<SymbolManifest>,
    /// Scalar parameters, arrays and results in the order of the signature.
    pub arguments: Vec<ArgumentManifest>,
    /// Conditions checked at each launch, by name.
    pub facts: Vec<FactManifest>,
    /// Facts about the values of arrays, which launches of the plan check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injections: Vec<InjectionManifest>,
    /// What a check that fails on the device reports, by site number.
    pub sites: Vec<SiteManifest>,
    /// What is launched, for different sizes: the first one whose guard holds. The last one is the general plan: its code
    /// is right for all sizes, and it runs where no guard holds and nobody can compile another variant.
    pub variants: Vec<Variant>,
}

impl KernelManifest {
    /// The names of the symbols, by number.
    pub fn symbol_names(&self) -> Vec<&str> {
        self.symbols.iter().map(|symbol| symbol.name.as_str()).collect()
    }

    /// Bytes of one record of a print: all have room for the longest one. 0 where the kernel has no prints.
    pub fn print_bytes(&self) -> u64 {
        let prints = self.sites.iter().filter_map(|site| site.print.as_ref());
        prints.map(PrintManifest::bytes).max().unwrap_or(0)
    }

    /// Bytes of the error record and the memory for prints behind it.
    pub fn record_bytes(&self) -> u64 {
        match self.print_bytes() {
            0 => FAILURE_BYTES,
            bytes => FAILURE_BYTES + PRINT_COUNTER + PRINT_RECORDS * bytes,
        }
    }

    /// The plan that is right for all sizes.
    pub fn general(&self) -> Option<&Variant> {
        self.variants.last()
    }

    /// The first variant whose guard holds for values of the symbols, by its place.
    pub fn variant_for(&self, symbols: &[Value]) -> Option<usize> {
        self.variants.iter().position(|variant| variant.guard.holds(symbols))
    }
}

/// A kernel compiled for sizes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Variant {
    pub guard: Guard,
    /// Device memory that the runtime provides for the time of the launch.
    pub scratch: Vec<BufferManifest>,
    pub plan: Vec<Step>,
}

/// For which sizes a variant was made: the answers that the passes got. Two guards of a kernel are equal or exclude each
/// other.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Guard {
    /// What the code relies on: it is wrong where one of these does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relies_on: Vec<Expr>,
    /// What it was chosen by, as conditions that hold for the sizes that it was made for. Where one of these does not
    /// hold, another variant is faster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chosen_by: Vec<Expr>,
}

impl Guard {
    /// Whether a variant with this guard runs for these values of the symbols.
    pub fn holds(&self, symbols: &[Value]) -> bool {
        self.conditions().all(|condition| condition.holds(symbols))
    }

    /// Whether its code is right for these values of the symbols.
    pub fn is_safe(&self, symbols: &[Value]) -> bool {
        self.relies_on.iter().all(|condition| condition.holds(symbols))
    }

    /// All of its conditions.
    pub fn conditions(&self) -> impl Iterator<Item = &Expr> {
        self.relies_on.iter().chain(&self.chosen_by)
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SymbolManifest {
    pub name: String,
    pub kind: SymbolKind,
    /// The type in which it is passed to entries (storage type for parameters; i64 for the others).
    pub scalar: Scalar,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SymbolKind {
    /// Bound by the extent of this argument's axis, which is a multiple of it and a constant.
    Dim {
        argument: usize,
        axis: usize,
        #[serde(default, skip_serializing_if = "LinearExtent::is_plain")]
        extent: LinearExtent,
    },
    /// A scalar argument, or one leaf (by number; arrays in structs count each element) of a struct argument.
    Parameter { argument: usize, leaf: usize, element: u64 },
    /// The counter of an enclosing [`Step::Repeat`].
    Counter,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ArgumentManifest {
    pub name: String,
    pub kind: ArgumentKind,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentKind {
    /// A scalar or struct passed by value.
    Value {
        element: ElementType,
    },
    Array {
        direction: Direction,
        buffer: BufferManifest,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    In,
    InOut,
    Out,
}

/// An array in device memory: one allocation a leaf for [`Layout::Soa`], else one. Each allocation has whole 32-bit
/// words: its bytes are rounded up to a multiple of 4.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BufferManifest {
    pub name: String,
    pub element: ElementType,
    pub extents: Vec<Expr>,
    pub layout: Layout,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FactManifest {
    pub condition: Expr,
    /// As the user wrote it.
    pub text: String,
    pub line: u32,
}

/// Of the array's values that lie in a range, no two are equal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InjectionManifest {
    /// The array, by its position in the signature. A `u64` counts as the i64 of its bits.
    pub argument: usize,
    pub low: Expr,
    /// Exclusive.
    pub high: Expr,
    /// As the user wrote it.
    pub text: String,
    pub line: u32,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SiteManifest {
    pub array: String,
    pub axis: usize,
    /// Whether the bits of the subscript, or of the array's value, are an unsigned number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsigned: bool,
    /// The fact about the array's values that is checked, by its number; absent where it is a subscript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injection: Option<usize>,
    /// What is asserted, where it is neither: then there is no array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assertion: Option<AssertionManifest>,
    /// What is told, where it is a `print`: then nothing is checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub print: Option<PrintManifest>,
    pub line: u32,
    pub column: u32,
}

/// A condition that must hold for each iteration that comes to it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AssertionManifest {
    /// As the user wrote it.
    pub text: String,
    /// The index names whose values the record has, at most [`RECORD_NUMBERS`].
    pub indices: Vec<String>,
}

/// What a `print` tells of each iteration that comes to it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PrintManifest {
    /// The index names around it, outermost first.
    pub indices: Vec<PrintedIndex>,
    pub operands: Vec<PrintedOperand>,
}

impl PrintManifest {
    /// Bytes of a record of it.
    pub fn bytes(&self) -> u64 {
        PRINT_HEADER + 8 * self.numbers() as u64
    }

    /// Numbers of 64 bits that a record of it has: the values of its index names, then those of its operands, leaf by leaf,
    /// fixed arrays element by element. Each number begins with the bytes of the value, which is wide; a bool is a u32.
    pub fn numbers(&self) -> usize {
        self.scalars().len()
    }

    /// The types of these numbers: values are wide.
    pub fn scalars(&self) -> Vec<Scalar> {
        let mut scalars = vec![Scalar::I64; self.indices.len()];
        for leaf in self.operands.iter().flat_map(|operand| &operand.element.leaves) {
            scalars.extend(std::iter::repeat_n(leaf.scalar.widened(), leaf.count() as usize));
        }
        scalars
    }
}

/// An index name whose value a `print` tells.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PrintedIndex {
    pub name: String,
    /// Which loop of the kernel it counts: names may be alike.
    pub number: u32,
}

/// A value that a `print` tells.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PrintedOperand {
    /// As the user wrote it.
    pub text: String,
    pub element: ElementType,
}

/// Records that the memory for prints has room for.
pub const PRINT_RECORDS: u64 = 4096;

/// Bytes of a print's record before its numbers.
pub const PRINT_HEADER: u64 = 32;

/// Numbers of 64 bits that the error record has room for, behind its first word.
pub const RECORD_NUMBERS: usize = 8;

/// Bytes of the error record, behind which the memory for prints begins.
pub const FAILURE_BYTES: u64 = 8 + 8 * RECORD_NUMBERS as u64;

/// Bytes of the counter of prints and of the round, behind which their records begin.
pub const PRINT_COUNTER: u64 = 16;

/// Where in the error record's memory the round is.
pub const PRINT_ROUND: u64 = FAILURE_BYTES + 8;

/// One step of a launch plan.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Launch(Launch),
    /// For `symbol` from `low` while below `high`, by `step` (at least 1).
    Repeat {
        symbol: usize,
        low: Expr,
        high: Expr,
        step: Expr,
        body: Vec<Step>,
    },
    Branch {
        condition: Expr,
        then: Vec<Step>,
        otherwise: Vec<Step>,
    },
    /// Runs `test`; while the byte in the scratch buffer is not 0 then, and no check has failed, `body` and `test` again.
    While {
        scratch: usize,
        test: Vec<Step>,
        body: Vec<Step>,
    },
}

impl Step {
    /// Calls back for every launch of a plan, once, in the order in which they stand there.
    pub fn each_launch<'p>(plan: &'p [Step], see: &mut dyn FnMut(&'p Launch)) {
        for step in plan {
            match step {
                Step::Launch(launch) => see(launch),
                Step::Repeat { body, .. } => Step::each_launch(body, see),
                Step::Branch { then: first, otherwise: second, .. }
                | Step::While { test: first, body: second, .. } => {
                    Step::each_launch(first, see);
                    Step::each_launch(second, see);
                }
            }
        }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Launch {
    /// The PTX entry.
    pub entry: String,
    /// Blocks in x, y and z. Where any is 0 the launch is left out. Never beyond the hardware's limits, whatever the dimensions.
    pub grid: [Expr; 3],
    /// Threads a block.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub shared_bytes: Expr,
    /// One an entry parameter, in order.
    pub arguments: Vec<LaunchArgument>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchArgument {
    /// Device address of an array argument's allocation (`leaf` is 0 unless the layout is SoA).
    Argument { argument: usize, leaf: usize },
    /// Device address of a scratch buffer's allocation.
    Scratch { scratch: usize, leaf: usize },
    /// Device address of a static of the module, by its number.
    Static(usize),
    /// The value of a symbol, in the symbol's scalar type.
    Symbol(usize),
    /// Device address of the error record: 72 bytes, zeroed before the first launch of a kernel:
    /// u32 claimed (0 or 1, taken by atomic exchange), u32 site, i64 index, i64 extent, i64 value. Where the site is a
    /// fact about values, index is the position of the value, and extent - 1 that of an equal one before it. Where it is an
    /// assertion, what stands behind the site are the values of its index names, as i64.
    ///
    /// Where the kernel has prints, their memory stands behind it ([`KernelManifest::record_bytes`] in all), zeroed likewise:
    /// u64 how many there were, counted by atomic addition, u64 the round (whose low u32 a graph counts up before each of its
    /// turns), then [`PRINT_RECORDS`] records of
    /// [`KernelManifest::print_bytes`], of which those that were counted hold something. A record: u32 site, u32 thread of the
    /// block, u64 number of the launch (`%gridid`), u32 block in x, y and z, u32 the round, and the numbers of which
    /// its [`PrintManifest`] tells.
    ErrorRecord,
}

/// A host-side expression over the symbols. Integers are mathematical (an overflow of i128 is an error), floats f64.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expr {
    Int(i64),
    Float(f64),
    Bool(bool),
    Symbol(usize),
    // Those of a plan have much in common, and copies share it.
    Unary(UnaryOp, Arc<Expr>),
    Binary(BinaryOp, Arc<Expr>, Arc<Expr>),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnaryOp {
    Negate,
    Not,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    /// Integers: toward zero; by zero gives 0.
    Div,
    /// Sign of the dividend; by zero gives 0.
    Rem,
    /// Toward positive infinity; for a non-negative dividend and a positive divisor.
    CeilDiv,
    Min,
    Max,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
}

/// What an [`Expr`] evaluates to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    Int(i128),
    Float(f64),
    Bool(bool),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Int(value) => value.fmt(f),
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Bool(value) => value.fmt(f),
        }
    }
}

macro_rules! values_from {
    ($($scalar:ty => $value:ident($wide:ty),)*) => {
        $(impl From<$scalar> for Value {
            fn from(value: $scalar) -> Self {
                Value::$value(value as $wide)
            }
        })*
    };
}

values_from! {
    i32 => Int(i128),
    i64 => Int(i128),
    u32 => Int(i128),
    u64 => Int(i128),
    usize => Int(i128),
    f32 => Float(f64),
    f64 => Float(f64),
    bool => Bool(bool),
}

impl Expr {
    pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
        Expr::Binary(op, left.into(), right.into())
    }

    /// `None` on overflow or where operand types do not fit the operator (a well-formed manifest has no such).
    pub fn evaluate(&self, symbols: &[Value]) -> Option<Value> {
        Some(match self {
            Expr::Int(value) => Value::Int(i128::from(*value)),
            Expr::Float(value) => Value::Float(*value),
            Expr::Bool(value) => Value::Bool(*value),
            Expr::Symbol(index) => *symbols.get(*index)?,
            Expr::Unary(op, operand) => match (op, operand.evaluate(symbols)?) {
                (UnaryOp::Negate, Value::Int(value)) => Value::Int(value.checked_neg()?),
                (UnaryOp::Negate, Value::Float(value)) => Value::Float(-value),
                (UnaryOp::Not, Value::Bool(value)) => Value::Bool(!value),
                _ => return None,
            },
            Expr::Binary(op, left, right) => binary(*op, left.evaluate(symbols)?, right.evaluate(symbols)?)?,
        })
    }

    /// The condition that holds where this one does not. `integers`: what it compares are integers.
    pub fn negated(&self, integers: bool) -> Expr {
        let opposite = |op| match op {
            BinaryOp::Equal => Some(BinaryOp::NotEqual),
            BinaryOp::NotEqual => Some(BinaryOp::Equal),
            BinaryOp::Less if integers => Some(BinaryOp::GreaterEqual),
            BinaryOp::GreaterEqual if integers => Some(BinaryOp::Less),
            BinaryOp::Greater if integers => Some(BinaryOp::LessEqual),
            BinaryOp::LessEqual if integers => Some(BinaryOp::Greater),
            _ => None,
        };
        match self {
            Expr::Bool(value) => Expr::Bool(!value),
            Expr::Unary(UnaryOp::Not, operand) => (**operand).clone(),
            condition => match condition {
                Expr::Binary(op, left, right) if opposite(*op).is_some() => {
                    Expr::Binary(opposite(*op).unwrap_or(*op), left.clone(), right.clone())
                }
                _ => Expr::Unary(UnaryOp::Not, condition.clone().into()),
            },
        }
    }

    /// The parts of which all hold where it holds.
    pub fn parts(&self) -> Vec<&Expr> {
        match self {
            Expr::Binary(BinaryOp::And, left, right) => {
                let mut parts = left.parts();
                parts.extend(right.parts());
                parts
            }
            condition => vec![condition],
        }
    }

    /// Whether it is a condition that holds.
    pub fn holds(&self, symbols: &[Value]) -> bool {
        self.evaluate(symbols) == Some(Value::Bool(true))
    }

    /// Calls back for each symbol that it names, as often as it does.
    pub fn each_symbol(&self, see: &mut dyn FnMut(usize)) {
        match self {
            Expr::Int(_) | Expr::Float(_) | Expr::Bool(_) => {}
            Expr::Symbol(symbol) => see(*symbol),
            Expr::Unary(_, operand) => operand.each_symbol(see),
            Expr::Binary(_, left, right) => {
                left.each_symbol(see);
                right.each_symbol(see);
            }
        }
    }

    /// Evaluates to an integer.
    pub fn evaluate_int(&self, symbols: &[Value]) -> Option<i128> {
        match self.evaluate(symbols)? {
            Value::Int(value) => Some(value),
            _ => None,
        }
    }
}

fn binary(op: BinaryOp, left: Value, right: Value) -> Option<Value> {
    use BinaryOp::*;
    Some(match (left, right) {
        (Value::Int(a), Value::Int(b)) => match op {
            Add => Value::Int(a.checked_add(b)?),
            Sub => Value::Int(a.checked_sub(b)?),
            Mul => Value::Int(a.checked_mul(b)?),
            Div => Value::Int(if b == 0 { 0 } else { a.checked_div(b)? }),
            Rem => Value::Int(if b == 0 { 0 } else { a.checked_rem(b)? }),
            CeilDiv => Value::Int(if b == 0 { 0 } else { -((-a).checked_div_euclid(b)?) }),
            Min => Value::Int(a.min(b)),
            Max => Value::Int(a.max(b)),
            Equal => Value::Bool(a == b),
            NotEqual => Value::Bool(a != b),
            Less => Value::Bool(a < b),
            LessEqual => Value::Bool(a <= b),
            Greater => Value::Bool(a > b),
            GreaterEqual => Value::Bool(a >= b),
            And | Or => return None,
        },
        (Value::Float(a), Value::Float(b)) => match op {
            Add => Value::Float(a + b),
            Sub => Value::Float(a - b),
            Mul => Value::Float(a * b),
            Div => Value::Float(a / b),
            Min => Value::Float(a.min(b)),
            Max => Value::Float(a.max(b)),
            Equal => Value::Bool(a == b),
            NotEqual => Value::Bool(a != b),
            Less => Value::Bool(a < b),
            LessEqual => Value::Bool(a <= b),
            Greater => Value::Bool(a > b),
            GreaterEqual => Value::Bool(a >= b),
            Rem | CeilDiv | And | Or => return None,
        },
        (Value::Bool(a), Value::Bool(b)) => match op {
            And => Value::Bool(a && b),
            Or => Value::Bool(a || b),
            Equal => Value::Bool(a == b),
            NotEqual => Value::Bool(a != b),
            _ => return None,
        },
        _ => return None,
    })
}

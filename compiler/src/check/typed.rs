//! The typed program: what the checker worked out, and the one input of the reference evaluator and of
//! lowering. Names are resolved to ids, functions are inlined, every range is explicit, every access carries
//! what was proved about it, and every implicit conversion is determined by the types.
//!
//! # Values and storage
//!
//! Expressions compute in *wide* types: `bool i32 i64 u32 u64 f32 f64` and structs. Narrow scalars exist in
//! memory only: an [`ExprKind::Load`] of an `f16` array has type `f32`; a store rounds (to nearest even;
//! integers wrap). A struct value holds its narrow fields already rounded: [`ExprKind::StructLiteral`] rounds
//! each narrow field (and so does assigning to one), so that a struct in a register and one in memory agree;
//! projecting a narrow field gives its widened type. [`ExprKind::Cast`] to a narrow type rounds (or wraps) and
//! widens again.
//!
//! # Arithmetic
//!
//! Integers wrap. Division rounds toward zero; division and remainder by zero give 0; the most negative
//! integer divided by -1 wraps to itself (remainder 0). A shift count is taken modulo the width. Float to
//! integer casts truncate toward zero and saturate, NaN gives 0 (as Rust's `as`). `bool as int` is 0 or 1;
//! anything to `bool` is refused. `min`/`max` (built-in and reduction) on floats give NaN if any operand is
//! NaN; -0 < +0. Comparisons with NaN are false except `!=`.
//!
//! # Reductions
//!
//! Over an empty range: sum 0, prod 1, any false, all true, count 0, min/max the largest/smallest value of the
//! type (±infinity for floats), argmin/argmax -1. argmin/argmax: the lowest index among equals; a NaN counts as
//! the extreme and the first NaN wins. With one name the result is that name's value; with several (ranges must
//! start at 0 and be independent of each other) it is the row-major position. `any`/`all` take and give bool;
//! `count` takes bool and gives i64; argmin/argmax give i64; sums and products of structs are field by field.
//!
//! A [`Reduction`] of the file's own combines its terms by its body, two at a time, in any order and any grouping; over
//! nothing it gives its identity, and the identity may be combined in any number of times. The user promises that
//! neither order nor grouping nor identities change the result by more than rounding.
//!
//! # Order
//!
//! Statements at kernel level run one after the other over the whole grid. Iterations of a [`StmtKind::Forall`]
//! or of a store's own axes are unordered. `if` and the logical operators evaluate lazily; an access inside an
//! untaken branch does not happen. An axis whose `high <= low` is empty.
//!
//! A [`BoundsCheck::Runtime`] that fails reports its site, index and extent and ends that iteration's thread;
//! the run is then an error. An assertion that fails reports its site and the values of its index names; so is the run.

mod code;
mod definitions;
mod ids;
mod schedule;
mod value_type;

pub use crate::builtins::{Builtin, MathFunction};
pub use code::*;
pub use definitions::{Definition, Moment, Numbers, TAG};
pub use ids::*;
pub use schedule::*;
pub use value_type::Type;

use crate::data::{ElementType, LinearExtent};
use crate::source::Span;
use cranelift_entity::PrimaryMap;

/// A checked schedule block. Names and sizes are sound; whether the kernel has a
/// place for a directive, the passes that carry it out say.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// `for sm_90`; `None` for every target.
    pub target: Option<String>,
    /// `where m >= 4096`: the schedule counts for these sizes alone.
    pub condition: Option<Condition>,
    pub directives: Vec<Directive>,
    /// `allow` and `deny`.
    pub levels: Vec<LevelDirective>,
    pub span: Span,
}

/// What the host knows before it launches.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Of type `bool`.
    pub value: Expr,
    /// As the source says it.
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub struct Program {
    pub structs: PrimaryMap<StructId, StructDef>,
    /// Array constants only: scalar constants are folded where they are used.
    pub constants: PrimaryMap<ConstId, Constant>,
    pub statics: PrimaryMap<StaticId, Static>,
    /// In source order.
    pub kernels: Vec<Kernel>,
    /// What the file says of warnings, for all of it.
    pub levels: Vec<LevelDirective>,
}

impl Program {
    /// How many scalars a value of the type has: each field, and each element of a fixed array.
    pub fn scalar_count(&self, ty: &Type) -> u64 {
        match ty {
            Type::Scalar(_) => 1,
            Type::Struct(id) => {
                let fields = self.structs[*id].fields.iter();
                fields.map(|field| self.scalar_count(&field.ty)).fold(0, u64::saturating_add)
            }
            Type::Array(element, extent) => self.scalar_count(element).saturating_mul(*extent),
        }
    }
}

#[derive(Clone, Debug)]
pub struct StructDef {
    pub name: String,
    pub fields: Vec<StructField>,
    pub span: Span,
    /// Its leaves and C layout.
    pub element: ElementType,
}

#[derive(Clone, Debug)]
pub struct StructField {
    pub name: String,
    /// May be narrow: the storage type.
    pub ty: Type,
    pub span: Span,
}

/// A `const` array.
#[derive(Clone, Debug)]
pub struct Constant {
    pub name: String,
    pub element: ElementType,
    pub ty: Type,
    pub extents: Vec<u64>,
    /// C layout, row-major, little-endian.
    pub bytes: Vec<u8>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Static {
    pub name: String,
    pub element: ElementType,
    pub ty: Type,
    /// Fixed; empty for a scalar static.
    pub extents: Vec<u64>,
    /// Initial bytes, C layout, row-major, little-endian.
    pub bytes: Vec<u8>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Kernel {
    pub name: String,
    pub span: Span,
    /// In order of first bare occurrence in the parameters.
    pub dims: PrimaryMap<DimId, Dim>,
    /// Scalar and struct parameters.
    pub params: PrimaryMap<ParamId, Param>,
    pub arrays: PrimaryMap<ArrayId, Array>,
    /// Parameters and results in the order in which the user wrote them (results last): the call signature.
    pub signature: Vec<SignatureItem>,
    pub facts: Vec<Fact>,
    /// Facts about the values of arrays, which the device checks before the body.
    pub injections: Vec<Injection>,
    pub locals: PrimaryMap<LocalId, Local>,
    pub indices: PrimaryMap<IndexId, Index>,
    pub sites: PrimaryMap<SiteId, Site>,
    /// The file's own reductions that it uses.
    pub reductions: PrimaryMap<ReductionId, Reduction>,
    pub body: Vec<Stmt>,
    /// Every schedule written for this kernel.
    pub schedules: Vec<Schedule>,
}

impl Kernel {
    /// The schedule that counts for the target where no other one's condition holds: the one for the target, else the
    /// one for every target.
    pub fn schedule_for(&self, target: &str) -> Option<&Schedule> {
        let last = self.schedules_by_rank(target).last();
        last.filter(|schedule| schedule.condition.is_none())
    }

    /// The schedules for some sizes that count for the target, in the order in which their conditions are asked.
    pub fn conditional_schedules(&self, target: &str) -> impl Iterator<Item = (&Schedule, &Condition)> {
        self.schedules_by_rank(target).filter_map(|schedule| Some((schedule, schedule.condition.as_ref()?)))
    }

    /// Those for the target before those for every target, those with a condition before the one without, which is the
    /// last one that is of any use.
    fn schedules_by_rank<'k>(&'k self, target: &str) -> impl Iterator<Item = &'k Schedule> {
        let mut all: Vec<&Schedule> = self.schedules.iter().collect();
        all.retain(|schedule| schedule.target.as_deref().is_none_or(|known| known == target));
        all.sort_by_key(|schedule| (schedule.target.is_none(), schedule.condition.is_none()));
        let last = all.iter().position(|schedule| schedule.condition.is_none());
        all.truncate(last.map_or(all.len(), |last| last + 1));
        all.into_iter()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignatureItem {
    Param(ParamId),
    Array(ArrayId),
}

#[derive(Clone, Debug)]
pub struct Dim {
    pub name: String,
    /// The occurrence that binds it.
    pub span: Span,
    /// Which array parameter's which axis binds it.
    pub array: ArrayId,
    pub axis: usize,
    /// What that axis' extent is of it.
    pub extent: LinearExtent,
}

#[derive(Clone, Debug)]
pub struct Param {
    pub name: String,
    /// May be narrow (the host passes that type); reading it gives the widened type.
    pub ty: Type,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Array {
    pub name: String,
    pub span: Span,
    pub role: ArrayRole,
    /// May be narrow: the storage type.
    pub ty: Type,
    pub element: ElementType,
    /// i64 expressions over dimensions, integer scalar parameters and literals. Each must be at least 0 at run
    /// time: the launch check refuses a negative one by name.
    pub extents: Vec<Expr>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArrayRole {
    Input,
    InOut,
    Result(ResultStart),
    /// Kernel-level `let t[i, j] = …`.
    Temporary,
    /// A local array of one `forall` iteration; its extents do not depend on index names or locals.
    Private,
    Constant(ConstId),
    Static(StaticId),
}

/// What a result holds before the kernel's first statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultStart {
    /// Proved to be written everywhere (before it is read): nothing need be done.
    Written,
    /// Not proved: starts from zero, and a warning was given.
    Zero,
    /// Only combined into: starts from the operator's identity.
    Identity(CombineOp),
}

#[derive(Clone, Debug)]
pub struct Fact {
    /// bool, over dimensions, scalar parameters and literals.
    pub condition: Expr,
    /// As the user wrote it.
    pub text: String,
    pub span: Span,
}

/// `injective(idx in low..high)`: of the values of `idx` that lie in the range, no two are equal. Nothing is said of
/// values outside.
#[derive(Clone, Debug)]
pub struct Injection {
    /// An [`ArrayRole::Input`] of an integer type. A `u64` counts as the i64 of its bits, as in a subscript.
    pub array: ArrayId,
    /// i64, over dimensions, integer parameters and literals.
    pub low: Expr,
    /// Exclusive.
    pub high: Expr,
    /// As the user wrote it.
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Local {
    pub name: String,
    /// Wide scalar or struct.
    pub ty: Type,
    pub mutable: bool,
    pub span: Span,
}

/// A reduction of the file's own, as a kernel has it: its body speaks of the kernel's locals and index names.
#[derive(Clone, Debug)]
pub struct Reduction {
    pub name: String,
    /// Its number among the file's functions.
    pub item: usize,
    /// The storage type of what it takes and gives.
    pub ty: Type,
    /// The names of the two values that are combined, of the widened type.
    pub params: [LocalId; 2],
    /// Code without arrays, checks and reductions; its value is of the widened type, narrow scalars rounded.
    pub body: Block,
    /// A constant.
    pub identity: Expr,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Index {
    pub name: String,
    pub span: Span,
}

/// What is checked on the device, an access, a fact about an array's values, or an assertion: what a failure report says.
#[derive(Clone, Debug)]
pub struct Site {
    /// The subscript, the fact, or the condition.
    pub span: Span,
    /// The array's name; of a fixed array in a struct, with the way there (`body.v`). Empty for an assertion.
    pub array: String,
    /// Which axis, counted from 0.
    pub axis: usize,
    /// Whether the subscript is a `u64` in the source: then its bits are such a number also where they are a negative i64.
    pub unsigned: bool,
    /// The fact about an array's values that is checked, by its number in [`Kernel::injections`]; `None` where it is a
    /// subscript.
    pub injection: Option<usize>,
    /// What is asserted; `None` where it is a subscript or a fact.
    pub assertion: Option<Assertion>,
    /// What is printed, where it is a `print`: then nothing is checked.
    pub print: Option<Print>,
    /// It is a `print`, or within one: it counts where prints are asked for.
    pub printed: bool,
}

/// A condition that the user asserts.
#[derive(Clone, Debug)]
pub struct Assertion {
    /// As the user wrote it.
    pub text: String,
    /// The index names around it, outermost first: their values are reported. At most [`Assertion::MOST_INDICES`].
    pub indices: Vec<IndexId>,
}

impl Assertion {
    /// Index names whose values a report has room for.
    pub const MOST_INDICES: usize = 8;
}

/// What a `print` tells.
#[derive(Clone, Debug)]
pub struct Print {
    /// The operands, as the user wrote them, with their types.
    pub operands: Vec<(String, Type)>,
    /// The index names around it, outermost first. At most [`Assertion::MOST_INDICES`].
    pub indices: Vec<IndexId>,
}

impl Print {
    /// Scalars that one `print` has room for.
    pub const MOST_VALUES: usize = 32;
}

impl Site {
    pub fn new(subscript: &Expr, array: String, axis: usize) -> Self {
        let unsigned = is_unsigned(subscript);
        Site { unsigned, ..Site::at(subscript.span, array, axis) }
    }

    pub fn of_assertion(span: Span, assertion: Assertion) -> Self {
        Site { assertion: Some(assertion), ..Site::at(span, String::new(), 0) }
    }

    pub fn of_print(span: Span, print: Print) -> Self {
        Site { print: Some(print), ..Site::at(span, String::new(), 0) }
    }

    fn at(span: Span, array: String, axis: usize) -> Self {
        Site {
            span,
            array,
            axis,
            unsigned: false,
            injection: None,
            assertion: None,
            print: None,
            printed: false,
        }
    }
}

/// Whether an i64 expression is a `u64` of the source.
pub fn is_unsigned(subscript: &Expr) -> bool {
    matches!(&subscript.kind, ExprKind::Cast { operand, .. } if operand.ty == Type::U64)
}

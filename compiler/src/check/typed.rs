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
//! # Order
//!
//! Statements at kernel level run one after the other over the whole grid. Iterations of a [`StmtKind::Forall`]
//! or of a store's own axes are unordered. `if` and the logical operators evaluate lazily; an access inside an
//! untaken branch does not happen. An axis whose `high <= low` is empty.
//!
//! A [`BoundsCheck::Runtime`] that fails reports its site, index and extent and ends that iteration's thread;
//! the run is then an error.

use crate::data::{ElementType, Scalar};
use crate::diagnostic::Code;
use crate::diagnostic::levels::Level;
use crate::source::Span;
use crate::syntax::ast::ReduceOp;
use cranelift_entity::{PrimaryMap, entity_impl};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {
        $($(#[$doc])* #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);)*
    };
}

ids! {
    /// A struct definition of the program.
    StructId "struct";
    /// An array of a kernel: parameter, result, temporary, local array, constant or static.
    ArrayId "array";
    /// A dimension name of a kernel.
    DimId "dim";
    /// A scalar (or struct) parameter of a kernel.
    ParamId "param";
    /// A `let` or `var` name (or an inlined function's parameter) of a kernel.
    LocalId "local";
    /// An index name: of `forall`, an implicit left-side name, a reduction name, or a sequential `for`.
    IndexId "index";
    /// An access whose bounds are checked on the device.
    SiteId "site";
    /// A `const` array of the program.
    ConstId "const";
    /// A `static` of the program.
    StaticId "static";
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

/// The type of a value or of an element. Values have no narrow scalars outside structs.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    Scalar(Scalar),
    Struct(StructId),
    /// A fixed array, in a struct only.
    Array(Box<Type>, u64),
}

impl Type {
    pub const BOOL: Type = Type::Scalar(Scalar::Bool);
    pub const I32: Type = Type::Scalar(Scalar::I32);
    pub const I64: Type = Type::Scalar(Scalar::I64);
    pub const U32: Type = Type::Scalar(Scalar::U32);
    pub const U64: Type = Type::Scalar(Scalar::U64);
    pub const F32: Type = Type::Scalar(Scalar::F32);
    pub const F64: Type = Type::Scalar(Scalar::F64);

    pub fn as_scalar(&self) -> Option<Scalar> {
        match self {
            Type::Scalar(scalar) => Some(*scalar),
            _ => None,
        }
    }
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
    pub locals: PrimaryMap<LocalId, Local>,
    pub indices: PrimaryMap<IndexId, Index>,
    pub sites: PrimaryMap<SiteId, Site>,
    pub body: Vec<Stmt>,
    /// Every schedule written for this kernel.
    pub schedules: Vec<Schedule>,
}

impl Kernel {
    /// The schedule for the target counts, else the one for every target.
    pub fn schedule_for(&self, target: &str) -> Option<&Schedule> {
        let exact = self.schedules.iter().find(|schedule| schedule.target.as_deref() == Some(target));
        exact.or_else(|| self.schedules.iter().find(|schedule| schedule.target.is_none()))
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
    /// The bare occurrence that binds it.
    pub span: Span,
    /// Which array parameter's which axis binds it.
    pub array: ArrayId,
    pub axis: usize,
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

#[derive(Clone, Debug)]
pub struct Local {
    pub name: String,
    /// Wide scalar or struct.
    pub ty: Type,
    pub mutable: bool,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Index {
    pub name: String,
    pub span: Span,
}

/// An access that is checked on the device: what a failure report says.
#[derive(Clone, Debug)]
pub struct Site {
    /// The subscript.
    pub span: Span,
    /// The array's name.
    pub array: String,
    /// Which axis, counted from 0.
    pub axis: usize,
}

/// Statements, and in value position a value.
#[derive(Clone, Debug, Default)]
pub struct Block {
    pub statements: Vec<Stmt>,
    pub value: Option<Box<Expr>>,
}

#[derive(Clone, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum StmtKind {
    /// Declares a `let` or `var`. Also at kernel level (lowering recomputes it in each launch or keeps it in
    /// scratch memory).
    Let {
        local: LocalId,
        value: Expr,
    },
    /// Assigns to a `var` or to part of it; compound assignments are written out (`x += e` is `x = x + e`).
    Assign {
        local: LocalId,
        path: Vec<Projection>,
        value: Expr,
    },
    /// `let e[c] = value`: for all axes, the array's element at the axes' names is `value`. The array's role
    /// is [`ArrayRole::Private`] or, at kernel level, [`ArrayRole::Temporary`]. Axes start at 0 and cover it.
    DefineArray {
        array: ArrayId,
        axes: Vec<Axis>,
        value: Expr,
    },
    /// For all `axes` (empty where every name of the subscripts is bound outside): write or combine.
    Store {
        axes: Vec<Axis>,
        access: Access,
        path: Vec<Projection>,
        combine: Option<Combine>,
        value: Expr,
    },
    /// A later axis' range may use an earlier axis' name.
    Forall {
        axes: Vec<Axis>,
        body: Block,
    },
    /// Sequential. At kernel level its bounds are over dimensions, integer parameters, literals and outer
    /// kernel-level `for` names only, so that the host can evaluate them. `step` is at least 1 (proved).
    For {
        index: IndexId,
        low: Expr,
        high: Expr,
        step: Expr,
        body: Block,
    },
    /// Not at kernel level.
    While {
        condition: Expr,
        body: Block,
    },
    If {
        condition: Expr,
        then: Block,
        otherwise: Block,
    },
}

/// `low <= index < high`, all i64.
#[derive(Clone, Debug)]
pub struct Axis {
    pub index: IndexId,
    pub low: Expr,
    /// Exclusive.
    pub high: Expr,
}

/// One step from a struct value into it.
#[derive(Clone, Debug)]
pub enum Projection {
    /// By position in [`StructDef::fields`].
    Field(usize),
    /// Into a fixed array; `index` is i64. Constant indices are checked by the compiler; others as `check` says.
    Element { index: Expr, check: BoundsCheck },
}

#[derive(Clone, Debug)]
pub struct Access {
    pub array: ArrayId,
    /// i64, one an axis of the array (none for rank 0).
    pub subscripts: Vec<Expr>,
    /// One a subscript.
    pub checks: Vec<BoundsCheck>,
    pub span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BoundsCheck {
    /// Proved inside.
    Proved,
    /// Tested on the device.
    Runtime(SiteId),
    /// The access is guarded: outside, the `else` value stands.
    Guarded,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Combine {
    pub op: CombineOp,
    /// Whether two iterations that may run at once may meet on one element (then it is an atomic).
    pub may_meet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CombineOp {
    /// Also `-=`, with the value negated by the checker. Structs combine field by field.
    Add,
    Mul,
    /// The value is wrapped to a narrow integer element's type by the checker.
    Min,
    Max,
    And,
    Or,
    Xor,
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    /// Wide scalar, struct, or (where it is stored, and as a struct literal's field) fixed array.
    pub ty: Type,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    Bool(bool),
    /// Fits the expression's integer type.
    Int(i128),
    /// Already rounded to the expression's float type (so it is exact in f64).
    Float(f64),
    Local(LocalId),
    /// i64.
    Index(IndexId),
    /// i64.
    Dim(DimId),
    /// Of the parameter's widened type.
    Param(ParamId),
    Negate(Box<Expr>),
    /// Logical on bool, bitwise on integers.
    Not(Box<Expr>),
    /// Operands and result have one numeric type (bool for And/Or/Xor; a shift's right operand may be any wide integer type).
    Binary {
        op: BinaryOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// Operands of one scalar type; bool result. Bools compare by `==` and `!=` only.
    Compare {
        op: CompareOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// Lazy `&&` and `||`.
    Logical {
        and: bool,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// To any scalar type; to a narrow one rounds or wraps, and the expression's type is its widened type.
    Cast {
        operand: Box<Expr>,
        to: Scalar,
    },
    /// A built-in function; argument types are given by [`Builtin`].
    Call {
        builtin: Builtin,
        arguments: Vec<Expr>,
    },
    /// Lazy; both blocks have values of this type.
    If {
        condition: Box<Expr>,
        then: Block,
        otherwise: Block,
    },
    Block(Block),
    /// Reads an array element (or the part of it that `path` names). With `otherwise` the access is guarded:
    /// its checks are [`BoundsCheck::Guarded`] or `Proved`, and `otherwise` (same type, evaluated only then)
    /// stands for an element outside.
    Load {
        access: Access,
        path: Vec<Projection>,
        otherwise: Option<Box<Expr>>,
    },
    /// Part of a struct value that is not an array element.
    Project {
        base: Box<Expr>,
        path: Vec<Projection>,
    },
    /// One value a field, in field order.
    StructLiteral {
        fields: Vec<Expr>,
    },
    /// A fixed array's value (a struct's field).
    ArrayLiteral(Vec<Expr>),
    /// A later axis' range may use an earlier axis' name.
    Reduce {
        op: ReduceOp,
        axes: Vec<Axis>,
        body: Box<Expr>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    /// Arithmetic on signed types, logical on unsigned ones.
    Shr,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CompareOp {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// Built-in functions: name in the language is the snake-case variant name unless said. Arguments and result
/// have one type unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Builtin {
    // One float argument.
    Exp,
    Exp2,
    Expm1,
    Log,
    Log2,
    Log10,
    Log1p,
    Sin,
    Cos,
    Tan,
    Tanh,
    Erf,
    Sqrt,
    /// 1/sqrt(x).
    Rsqrt,
    Floor,
    Ceil,
    /// Half away from zero, as in C and Rust.
    Round,
    Trunc,
    /// `isnan`: one float argument, bool result; so are the next two.
    IsNan,
    /// `isinf`
    IsInf,
    /// `isfinite`
    IsFinite,
    /// One signed or float argument (the most negative integer wraps).
    Abs,
    /// -1, 0 or 1 (of floats: ±0 and NaN give themselves).
    Sign,
    // Two float arguments.
    Pow,
    /// The magnitude of the first with the sign of the second.
    Copysign,
    /// Two numeric arguments; NaN if any is NaN.
    Min,
    Max,
    /// `clamp(x, low, high)` = `min(max(x, low), high)`.
    Clamp,
    /// Three floats, rounded once.
    Fma,
    /// `select(condition, a, b)`: both are evaluated; any one scalar or struct type.
    Select,
    /// One integer argument; the result has its type: number of one bits.
    Popcount,
    LeadingZeros,
    TrailingZeros,
    /// `rand_u32(seed: u64, counter: u64) -> u32` (any integer arguments are taken; the checker casts): Philox4x32-10 with
    /// key (seed low, seed high) and counter (counter low, counter high, 0, 0); output word 0.
    RandU32,
    /// `rand(seed, counter) -> f32` in [0, 1): `(word 0 >> 8) * 2^-24` of the same generator.
    Rand,
    /// `rand_normal(seed, counter) -> f32`: Box–Muller of words 0 and 1:
    /// `sqrt(-2 log(u0)) * cos(2 pi u1)`, `u0 = ((w0 >> 8) + 1) * 2^-24`, `u1 = (w1 >> 8) * 2^-24`.
    RandNormal,
    /// `to_bits(x)`: f32 to u32, f64 to u64.
    ToBits,
    /// `from_bits(x)`: u32 to f32, u64 to f64.
    FromBits,
}

/// A checked schedule block. Names and sizes are sound; whether the kernel has a
/// place for a directive, the passes that carry it out say.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// `for sm_90`; `None` for every target. The one for the target counts, else the one for every target.
    pub target: Option<String>,
    pub directives: Vec<Directive>,
    /// `allow` and `deny`.
    pub levels: Vec<LevelDirective>,
    pub span: Span,
}

/// `allow W0601`: one code of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LevelDirective {
    pub level: Level,
    pub code: Code,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Directive {
    pub kind: DirectiveKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum DirectiveKind {
    /// `block 256`: threads a block, 1 to 1024.
    Block(u32),
    /// `order j, i`: nesting of the parallel names of the loops that have them all, outermost first (the last
    /// one gets the lanes).
    Order(Vec<IndexId>),
    /// `layout body: soa`: how the array's structs lie in device memory.
    Layout { array: ArrayId, layout: Layout },
    /// `cache x: cs`: the cache operator of the array's loads (and, where it has one, stores).
    Cache { array: ArrayId, mode: CacheMode },
    /// `tile i: 32`: iterations of every loop over that name that one block computes; of a reduced name, one step.
    Tile { axis: String, size: u32 },
    /// `per_thread i: 4`: iterations that one thread computes side by side.
    PerThread { axis: String, count: u32 },
    /// `stage a pad 1 depth 2`: through shared memory.
    Stage { array: ArrayId, place: Option<Placement>, depth: Option<u32> },
    /// `unroll p: 4`; without a number the whole loop.
    Unroll { axis: String, factor: Option<u32> },
    /// `vectorize i: 4`: neighbours that one access brings.
    Vectorize { axis: String, width: u32 },
    /// `warps i: 4`: warps of a block along a name.
    Warps { axis: String, count: u32 },
    /// `split p: 64`: pieces of a reduction over the grid.
    Split { axis: String, pieces: u32 },
    /// `atomic c`: pieces of a reduction meet in the array, in any order.
    Atomic { array: ArrayId },
    /// `fast_math`: approximate forms of f32 functions.
    FastMath,
}

/// How a staged tile lies in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Scalars between two rows.
    Pad(u32),
    /// Places exchanged by exclusive or with the row's number.
    Swizzle,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Layout {
    /// Array of structs, C layout.
    Aos,
    /// One array a leaf.
    Soa,
    /// Groups of this many structs, each group structure-of-arrays inside.
    Aosoa(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CacheMode {
    /// Cached at all levels.
    Ca,
    /// Cached in L2 only.
    Cg,
    /// Streaming: evict first.
    Cs,
    /// Read-only path; refused for arrays that the kernel writes.
    Nc,
}

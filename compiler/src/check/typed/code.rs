//! Statements and expressions of a typed kernel.

use super::ids::{ArrayId, DimId, IndexId, LocalId, ParamId, ReductionId, SiteId};
use super::value_type::Type;
use crate::builtins::Builtin;
use crate::data::Scalar;
use crate::source::Span;
use crate::syntax::ast::ReduceOp;

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
        ends: Ends,
        step: Expr,
        /// A bool `var` of the checker's own, true before the loop: no iteration follows one that leaves it false. Not at
        /// kernel level.
        goes_on: Option<LocalId>,
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
    /// Fails the run where the condition does not hold. Nothing behind it may rely on the condition: the iteration goes on.
    Assert {
        condition: Expr,
        /// The condition as the user wrote it.
        text: String,
        /// Given by the proofs.
        site: Option<SiteId>,
    },
    /// Tells the host values, where the user asks for that. Changes nothing: operands assign nothing from outside of them.
    Print {
        operands: Vec<Printed>,
        /// Given by the proofs.
        site: Option<SiteId>,
    },
}

/// A value that is printed.
#[derive(Clone, Debug)]
pub struct Printed {
    /// As the user wrote it.
    pub text: String,
    pub value: Expr,
}

/// `low <= index < high`, all i64.
#[derive(Clone, Debug)]
pub struct Axis {
    pub index: IndexId,
    pub low: Expr,
    /// Exclusive.
    pub high: Expr,
    pub ends: Ends,
}

/// How a range stands to the ends of i64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// Written `low..=last`: `high` is `last + 1`, wrapped around. The range holds `last` also where that is the
    /// largest i64.
    pub closed: bool,
    /// Decided by the proofs.
    pub reach: Reach,
}

/// How far from 0 a range may lie, as far as the proofs know. Only what is [`Reach::Near`] can be counted by adding
/// steps without a thought for wrapping around.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// From -2^61 to 2^62, and the step is at most 2^62.
    Near,
    /// It starts within 2^61 of 0 and may end anywhere.
    OpenAbove,
    /// It ends where near ones do, and starts behind -2^61: what starts further out is empty.
    LateStart,
    /// It may lie anywhere.
    Anywhere,
}

impl Ends {
    /// Of a range as the source has it, before anything is proved.
    pub fn written(closed: bool) -> Self {
        Self { closed, reach: Reach::Anywhere }
    }

    /// The last index, from an exclusive end that may have wrapped around; none where the range is empty.
    pub fn last(self, low: i64, high: i64) -> Option<i64> {
        let last = if self.closed { high.wrapping_sub(1) } else { high.checked_sub(1)? };
        (low <= last).then_some(last)
    }
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
        op: Reducer,
        axes: Vec<Axis>,
        body: Box<Expr>,
    },
}

/// What a reduction combines with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reducer {
    BuiltIn(ReduceOp),
    /// One of the kernel's table of the file's own ones.
    Own(ReductionId),
}

impl From<ReduceOp> for Reducer {
    fn from(op: ReduceOp) -> Self {
        Self::BuiltIn(op)
    }
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

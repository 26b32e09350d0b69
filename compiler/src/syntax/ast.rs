//! The syntax tree: what the user wrote, with spans, and nothing that was worked out about it.

use crate::source::Span;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ident {
    pub name: String,
    pub span: Span,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct File {
    /// The items that could be read whole.
    pub items: Vec<Item>,
    pub broken: Broken,
}

/// What a file has that could not be read, and has been reported.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Broken {
    /// What could be read of items with mistakes in them.
    pub items: Vec<Item>,
    /// The names of constants and statics among them.
    pub values: Vec<Ident>,
    /// Other names that may have been given.
    pub names: Vec<Ident>,
    /// Any name at all may have been given.
    pub anything: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    Struct(StructItem),
    Function(FunctionItem),
    Const(ConstItem),
    Static(StaticItem),
    Kernel(KernelItem),
    Schedule(ScheduleItem),
}

/// `struct Body { x: f32, y: f32 }`
#[derive(Clone, PartialEq, Debug)]
pub struct StructItem {
    pub name: Ident,
    pub fields: Vec<TypedName>,
    pub span: Span,
}

/// `name: type`
#[derive(Clone, PartialEq, Debug)]
pub struct TypedName {
    pub name: Ident,
    pub ty: TypeExpr,
}

/// `f32`, `Body`, `f32[m, k]`, `f32[n - offset]`, `f32[3]`
#[derive(Clone, PartialEq, Debug)]
pub struct TypeExpr {
    pub name: Ident,
    /// `None` without brackets; `Some` (perhaps empty: a rank-0 array is written without brackets, so the
    /// parser refuses `f32[]`) with them.
    pub extents: Option<Vec<Expr>>,
    pub span: Span,
}

/// `fn pull(at: Body, from: Body) -> Vec3 { … }`, and `reduction far(a: f32, b: f32) -> f32 from 0.0 { … }`
#[derive(Clone, PartialEq, Debug)]
pub struct FunctionItem {
    pub name: Ident,
    pub params: Vec<TypedName>,
    pub result: TypeExpr,
    /// What a reduction starts from; `None` of a `fn`.
    pub identity: Option<Expr>,
    pub body: Block,
    pub span: Span,
}

impl FunctionItem {
    /// The word that the item starts with.
    pub fn word(&self) -> &'static str {
        if self.identity.is_some() { "reduction" } else { "fn" }
    }
}

/// `const TAPS: f32[3] = [0.25, 0.5, 0.25]`
#[derive(Clone, PartialEq, Debug)]
pub struct ConstItem {
    pub name: Ident,
    pub ty: TypeExpr,
    pub value: Expr,
    pub span: Span,
}

/// `static hits: u32 = 0`; without a value every byte starts at zero.
#[derive(Clone, PartialEq, Debug)]
pub struct StaticItem {
    pub name: Ident,
    pub ty: TypeExpr,
    pub value: Option<Expr>,
    pub span: Span,
}

/// `kernel saxpy(alpha: f32, x: f32[n], y: inout f32[n]) -> … where … { … }`
#[derive(Clone, PartialEq, Debug)]
pub struct KernelItem {
    pub name: Ident,
    pub params: Vec<Param>,
    /// `-> a: f32[n], total: f32`
    pub results: Vec<TypedName>,
    /// `where k % 32 == 0, cols <= 8192`; `injective(idx in 0..m)` is a call with an [`ExprKind::Ranged`].
    pub facts: Vec<Expr>,
    pub body: Block,
    pub span: Span,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Param {
    pub name: Ident,
    /// The span of the word `inout`, where it stands.
    pub inout: Option<Span>,
    pub ty: TypeExpr,
}

/// Statements separated by line ends or `;`, and in value position a last expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    pub statements: Vec<Stmt>,
    pub value: Option<Box<Expr>>,
    pub span: Span,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Clone, PartialEq, Debug)]
pub enum StmtKind {
    /// `let x = e`, `let x: f32 = e`, `var x = e`, `let e[c] = …`, `let e[c in 0..n] = …`, `var e[c] = …`
    Let {
        mutable: bool,
        name: Ident,
        /// The axes of a local array.
        axes: Option<Vec<AxisDecl>>,
        ty: Option<TypeExpr>,
        value: Expr,
    },
    /// `target op value`; the target is a name, an index expression or fields of those.
    Assign {
        target: Expr,
        op: AssignOp,
        op_span: Span,
        value: Expr,
    },
    /// `forall i in lo..hi, j in n { … }`
    Forall {
        axes: Vec<AxisDecl>,
        body: Block,
    },
    /// `for j in lo..hi step s { … }`
    For {
        name: Ident,
        range: Range,
        step: Option<Expr>,
        body: Block,
    },
    While {
        condition: Expr,
        body: Block,
    },
    /// Ends the innermost `for` or `while`.
    Break,
    /// `assert condition`
    Assert {
        condition: Expr,
    },
    /// `print(x, y + 1)`
    Print {
        operands: Vec<Expr>,
    },
    /// `else if` is a block of one `if` statement.
    If {
        condition: Expr,
        then: Block,
        otherwise: Option<Block>,
    },
    /// What the parser skipped while recovering; an error has been reported.
    Error,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AssignOp {
    /// `=`
    Set,
    /// `+=`
    Add,
    /// `-=` (on a mutable name, or combining: adds the negative)
    Sub,
    /// `*=`
    Mul,
    /// `/=` (mutable names only)
    Div,
    /// `%=` (mutable names only)
    Rem,
    /// `<<=` (mutable names only)
    Shl,
    /// `>>=` (mutable names only)
    Shr,
    /// `min=`
    Min,
    /// `max=`
    Max,
    /// `&=`
    And,
    /// `|=`
    Or,
    /// `^=`
    Xor,
}

/// `i`, `i in n`, `i in lo..hi`, `i in lo..=hi`
#[derive(Clone, PartialEq, Debug)]
pub struct AxisDecl {
    pub name: Ident,
    pub range: Option<Range>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Range {
    /// `None` for the short form `n`, which means `0..n`.
    pub low: Option<Expr>,
    pub high: Expr,
    /// `lo..=hi`
    pub inclusive: bool,
    pub span: Span,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, PartialEq, Debug)]
pub enum ExprKind {
    /// `12`, `0xff`, `1_000`, `0u32`; the suffix as written, if any.
    Int {
        value: u128,
        suffix: Option<Suffix>,
    },
    /// `1.5`, `1e-3`, `2.0f64`; the value correctly rounded to f64, and the text without suffix and `_`
    /// (so that it can be rounded once to the type in which it ends up).
    Float {
        value: f64,
        text: String,
        suffix: Option<Suffix>,
    },
    Bool(bool),
    Name(Ident),
    Unary {
        op: UnaryOp,
        operand: Box<Expr>,
    },
    Binary {
        op: BinaryOp,
        op_span: Span,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// `e as f32`
    Cast {
        operand: Box<Expr>,
        ty: TypeExpr,
    },
    /// `exp(x)`, `max(a, b)`, `pull(a, b, eps2)`
    Call {
        callee: Ident,
        arguments: Vec<Expr>,
    },
    /// `sum(p in lo..hi, q: e)`. The parser tells it from a call by the `:` after the axes.
    Reduce {
        /// `None` of the file's own.
        op: Option<ReduceOp>,
        /// What stands in front of the parentheses.
        word: Ident,
        axes: Vec<AxisDecl>,
        body: Box<Expr>,
    },
    /// `a[i, j]`
    Index {
        base: Box<Expr>,
        subscripts: Vec<Expr>,
    },
    /// `c in lo..hi` as a subscript of a left side, which binds the name; `idx in lo..hi` in a fact about the values
    /// of an array.
    Ranged {
        name: Ident,
        range: Box<Range>,
    },
    /// `u[z-1, y, x] else 0.0` (also `u[i].field else 0.0`): binds tighter than any binary operator.
    Guarded {
        access: Box<Expr>,
        otherwise: Box<Expr>,
    },
    /// `body.mass`
    Field {
        base: Box<Expr>,
        field: Ident,
    },
    /// `Vec3 { x: 1.0, y: 2.0, z: 3.0 }`
    StructLiteral {
        name: Ident,
        fields: Vec<(Ident, Expr)>,
    },
    /// `[1.0, 2.0]`
    ArrayLiteral(Vec<Expr>),
    /// `if c { a } else { b }` in value position.
    If {
        condition: Box<Expr>,
        then: Block,
        otherwise: Block,
    },
    /// `{ let t = x; t * t }` in value position.
    Block(Block),
    /// What the parser skipped while recovering; an error has been reported.
    Error,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suffix {
    pub name: String,
    pub span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnaryOp {
    /// `-x`
    Negate,
    /// `!x`: logical on `bool`, bitwise on integers
    Not,
}

/// Precedence, from loose to tight: `||`, `&&`, comparisons (do not chain), `|`, `^`, `&`, shifts,
/// additive, multiplicative, `as`, unary, postfix: Rust's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    /// On integers rounds toward zero, as in Rust and C; division by zero gives 0 (documented).
    Div,
    /// Sign of the dividend; by zero gives 0.
    Rem,
    Shl,
    Shr,
    BitAnd,
    BitOr,
    BitXor,
    And,
    Or,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReduceOp {
    Sum,
    Prod,
    Min,
    Max,
    Any,
    All,
    ArgMin,
    ArgMax,
    Count,
    /// Of the bits of integers.
    And,
    Or,
    Xor,
}

/// `schedule transpose for sm_90 where m >= 4096 { tile i: 32, j: 32 }`, or `schedule { allow W0601 }` for the whole
/// file.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduleItem {
    pub kernel: Option<Ident>,
    pub target: Option<Ident>,
    /// What stands behind `where`.
    pub conditions: Vec<Expr>,
    pub directives: Vec<Directive>,
    pub span: Span,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Directive {
    /// The directive's word, as written: `tile`, `stage`, …; the checker knows which exist.
    pub name: Ident,
    /// Its arguments, comma-separated, in one common form for all directives.
    pub arguments: Vec<DirectiveArgument>,
    pub span: Span,
}

/// `i: 32` · `a pad 1 depth 2` · `256` · `x: aosoa(32)` · `for` words after the subject are modifiers.
#[derive(Clone, PartialEq, Debug)]
pub struct DirectiveArgument {
    /// What stands first: a name or a number.
    pub subject: DirectiveValue,
    /// What stands after `:`, if anything.
    pub value: Option<DirectiveValue>,
    /// Modifier words after that, each with its number if it has one: `pad 1`, `swizzle`, `depth 3`.
    pub modifiers: Vec<(Ident, Option<DirectiveValue>)>,
    pub span: Span,
}

#[derive(Clone, PartialEq, Debug)]
pub enum DirectiveValue {
    Name(Ident),
    Number(u64, Span),
    /// `aosoa(32)`
    Call(Ident, u64, Span),
}

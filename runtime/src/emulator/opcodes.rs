//! What decoded instructions do: one kind of operation a family of PTX instructions. What `d a b c imm` of an instruction
//! mean is said at each; `NOWHERE` stands for a result that is not wanted.

use krn_compiler::atoms::FactorType;
use krn_compiler::ptx::Type;
use krn_compiler::ptx::instruction::{
    AtomOp, BarrierRedOp, FloatBinaryOp, FloatTest, FloatUnaryOp, MatchMode, PrmtMode, ReduxOp, Rounding,
    ShflMode, VoteMode,
};

use super::fault::MemoryKind;

/// Operations on one width: `d = op(a, b, c)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntOp {
    Add,
    Sub,
    MulLo,
    MulHiU,
    MulHiS,
    DivU,
    DivS,
    RemU,
    RemS,
    MinU,
    MinS,
    MaxU,
    MaxS,
    AddSat,
    SubSat,
    Neg,
    Abs,
    MadLo,
    MadHiU,
    MadHiS,
    MadHiSat,
}

/// Operations whose result is wider than their factors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WideOp {
    MulU16,
    MulS16,
    MulU32,
    MulS32,
    MadU16,
    MadS16,
    MadU32,
    MadS32,
    /// `dp4a`: bit 0 of `imm` says that the bytes of `a` are signed, bit 1 the same of `b`.
    Dp4a,
}

/// `d = op(a, b, c)`. Operations without a width in their name work on 32-bit columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BitOp {
    And,
    Or,
    Xor,
    Not16,
    Not,
    Cnot,
    And64,
    Or64,
    Xor64,
    Not64,
    Cnot64,
    PredAnd,
    PredOr,
    PredXor,
    PredNot,
    Shl16,
    Shl,
    Shl64,
    ShrU,
    ShrS16,
    ShrS,
    ShrU64,
    ShrS64,
    /// `a` is the low half, `b` the high half, `c` the amount.
    FunnelLeftWrap,
    FunnelLeftClamp,
    FunnelRightWrap,
    FunnelRightClamp,
    Popc,
    Popc64,
    Clz,
    Clz64,
    Brev,
    Brev64,
    /// `imm` is 1 for `.shiftamt`.
    BfindU,
    BfindS,
    BfindU64,
    BfindS64,
    BfeU,
    BfeS,
    BfeU64,
    BfeS64,
    /// The length is in column `imm`.
    Bfi,
    Bfi64,
    Prmt(Option<PrmtMode>),
    /// The table is `imm`.
    Lop3,
}

/// Operations on `f32`. Bit 0 of `imm` is `.ftz`: subnormal operands and results become zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum F32Op {
    Add,
    Sub,
    Mul,
    Div,
    Fma,
    /// `fma.sat`: kept within 0 and 1, NaN becomes 0. Without `.ftz`.
    FmaSat,
    Min,
    Max,
    MinNan,
    MaxNan,
    Neg,
    Abs,
    Sqrt,
    Rcp,
    Rsqrt,
    Ex2,
    Lg2,
    Sin,
    Cos,
    Tanh,
    /// `div.approx`: as `Div`, but zero where the divisor is above 2^126.
    DivApprox,
}

/// Operations on `f64`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum F64Op {
    Add,
    Sub,
    Mul,
    Div,
    Fma,
    Min,
    Max,
    Neg,
    Abs,
    Sqrt,
    Rcp,
    Rsqrt,
}

/// What is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FormulaOp {
    Binary(FloatBinaryOp),
    Unary(FloatUnaryOp),
    Fma,
    /// The magnitude of `b` with the sign of `a`.
    Copysign,
}

/// One row of the table of formulas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FloatFormula {
    pub op: FormulaOp,
    pub ty: Type,
    pub rounding: Rounding,
    pub ftz: bool,
    pub sat: bool,
    pub nan: bool,
    pub relu: bool,
}

/// The conversions that programs are full of, as lane loops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conversion {
    /// 32-bit to 64-bit columns.
    Extend64U,
    Extend64S,
    Truncate64,
    /// Of the low 8 or 16 bits, within 32-bit columns.
    Low8,
    Low8S,
    Low16,
    Low16S,
    F32FromS32,
    F32FromU32,
    F64FromS32,
    F64FromU32,
    F64FromS64,
    F64FromU64,
    F32FromS64,
    F32FromU64,
    /// Towards zero.
    S32FromF32,
    S32FromFloorOfF32,
    U32FromF32,
    F64FromF32,
    F32FromF64,
    F32FromF16,
    F16FromF32,
    F32FromBf16,
    Bf16FromF32,
    /// Two of them as a word, the first one above the second.
    F16PairFromF32,
    Bf16PairFromF32,
    /// Two integers as bytes, above them the low half of a third; the nearest ones of the range.
    S8PairFromS32,
    U8PairFromS32,
}

/// One row of the table of other conversions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnyConversion {
    pub dst_ty: Type,
    pub src_ty: Type,
    pub rounding: Option<Rounding>,
    pub ftz: bool,
    pub sat: bool,
    pub relu: bool,
    /// Two `f32`, `a` above `b`, into one packed register of the 16-bit format `dst_ty`.
    pub pack: bool,
    /// Whether the registers are 64 bits wide.
    pub dst_wide: bool,
    pub src_wide: bool,
    /// The destination is a 16-bit register, whose upper half in the column stays zero.
    pub dst_half: bool,
}

/// `d = a` in its varieties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoveOp {
    Move32,
    Move64,
    MovePredicate,
    ClearPredicate,
    /// Pairs in the operand list from `a`, `b` of them: destination, source; 32-bit columns.
    Many32,
    /// The same for 64-bit columns.
    Many64,
    /// `d64 = {a32, b32}`, low half first.
    Pack64,
    /// `{d32, b32} = a64`; either may be `NOWHERE`.
    Unpack64,
    /// `d32 = {a16, b16}`.
    Pack32,
    /// `{d16, b16} = a32`.
    Unpack32,
    /// `d64 = {a16, b16, c16, imm16}`.
    Pack64x4,
    /// Into the four columns listed from `b`: `a64` in 16-bit parts.
    Unpack64x4,
    /// The warp's own count of instructions, as a clock: 32 bits.
    Clock32,
    Clock64,
}

/// The type that is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compared {
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
    F16,
    Bf16,
    F32,
    F32Ftz,
    F64,
}

/// Operations that choose between values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selection {
    /// `d = c ? a : b`, where `c` is a predicate.
    Selp32,
    Selp64,
    /// `d = c >= 0 ? a : b`, where `c` is an `s32` or an `f32`. A NaN chooses `b`.
    Slct32S,
    Slct64S,
    Slct32F,
    Slct64F,
    /// The predicate `d` says what kind of float `a` is.
    Testp32(FloatTest),
    Testp64(FloatTest),
}

/// `imm` of a comparison: the predicate that its result is combined with, and how.
pub mod combine {
    /// No further predicate.
    pub const NONE: i64 = 0;
    pub const AND: i64 = 1;
    pub const OR: i64 = 2;
    pub const XOR: i64 = 3;

    /// Packs operation, predicate column and complement.
    pub fn pack(operation: i64, column: u32, negated: bool) -> i64 {
        operation << 40 | i64::from(column) << 1 | i64::from(negated)
    }

    /// Bit that makes the result of `set` 1.0 instead of all ones.
    pub const FLOAT: i64 = 1 << 48;
}

/// The state space that an instruction names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemorySpace {
    Global,
    Const,
    Shared,
    Local,
    Param,
    Generic,
}

impl MemorySpace {
    /// As faults call it.
    pub fn kind(self) -> MemoryKind {
        match self {
            MemorySpace::Global => MemoryKind::Global,
            MemorySpace::Const => MemoryKind::Const,
            MemorySpace::Shared => MemoryKind::Shared,
            MemorySpace::Local => MemoryKind::Local,
            MemorySpace::Param => MemoryKind::Param,
            MemorySpace::Generic => MemoryKind::Generic,
        }
    }
}

/// A load. `d` is the destination column, or for several elements the start of their operand list; the address is
/// column `a` plus `imm`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadForm {
    pub space: MemorySpace,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub width: u8,
    pub count: u8,
    /// Sign-extend to the register.
    pub signed: bool,
    /// Destinations are 64-bit columns.
    pub wide: bool,
    /// Destinations are 16-bit registers, whose upper half in the column stays zero.
    pub half: bool,
    /// Ordered with the accesses of other blocks (`.relaxed`, `.acquire`).
    pub ordered: bool,
    /// The address is a 64-bit column.
    pub wide_base: bool,
}

/// A store. `b` is the source column, or the start of the list; the rest is as for loads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreForm {
    pub space: MemorySpace,
    pub width: u8,
    pub count: u8,
    pub wide: bool,
    pub wide_base: bool,
}

/// `ldmatrix`. `d` is the start of the list of destinations; the address is column `a` plus `imm`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MatrixForm {
    pub space: MemorySpace,
    /// Registers: 1, 2 or 4.
    pub count: u8,
    pub transposed: bool,
    pub wide_base: bool,
}

impl MatrixForm {
    /// Bytes of the row that a lane names.
    pub const ROW: u32 = 16;

    /// The lanes that name rows.
    pub fn rows(self) -> u32 {
        u32::MAX >> (32 - 8 * u32::from(self.count))
    }
}

/// `mma.sync`. `d` is the start of a list: destinations, left factor, right factor, sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MmaForm {
    pub left: FactorType,
    pub right: FactorType,
}

/// An atomic. `d` is the destination or `NOWHERE`, `b` the operand, `c` the new value of `cas`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicForm {
    pub space: MemorySpace,
    pub op: AtomicOp,
    pub wide_base: bool,
}

/// What an atomic does, and to what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtomicOp {
    pub op: AtomOp,
    pub ty: Type,
}

impl AtomicOp {
    /// Whether any order of several such operations on one place leaves the same value.
    pub fn commutes(self) -> bool {
        match self.op {
            AtomOp::Add => !self.ty.is_float(),
            AtomOp::Min | AtomOp::Max | AtomOp::And | AtomOp::Or | AtomOp::Xor => true,
            AtomOp::Exch | AtomOp::Cas | AtomOp::Inc | AtomOp::Dec => false,
        }
    }
}

/// Asynchronous copies from global to shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyOp {
    /// Row `imm` of the table of copies.
    Begin,
    Commit,
    /// Until at most `imm` groups are pending; all copies for a negative `imm`.
    Wait,
}

/// `cp.async`, spelled out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CopyForm {
    pub to: MemorySpace,
    pub to_base: u32,
    pub to_base_is_wide: bool,
    pub to_offset: i64,
    pub from: MemorySpace,
    pub from_base: u32,
    pub from_base_is_wide: bool,
    pub from_offset: i64,
    pub bytes: u32,
    /// A 32-bit column with the number of bytes to read, or `NOWHERE`.
    pub from_bytes: u32,
}

/// A collective. The member mask is a 32-bit column; which field holds it is said at each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Collective {
    /// `d = a` of the lane that `b` and `c` tell; the mask is column `imm & u32::MAX`; the predicate of a source in range
    /// is column `imm >> 32`, or `NOWHERE`.
    Shfl(ShflMode),
    /// `a` is a predicate (complemented if `imm` is 1), `b` the mask.
    Vote(VoteMode),
    /// `a` is the value, `b` the mask, `c` the predicate of `all`.
    Match32(MatchMode),
    Match64(MatchMode),
    /// `a` is the value, `b` the mask.
    ReduxU(ReduxOp),
    ReduxS(ReduxOp),
    Activemask,
}

/// Control operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Control {
    /// To instruction `d`; `a` is where the lanes join again if they disagree.
    Branch,
    /// `imm` is 1 for `ret`, as against `exit`.
    Exit,
    Trap,
    Breakpoint,
    /// `a` is the barrier's number, `b` the number of threads or `NOWHERE`; both 32-bit columns.
    BarrierSync,
    BarrierArrive,
    /// `c` is the predicate, `imm` 1 where it is complemented; `d` the result.
    BarrierReduce(BarrierRedOp),
    /// `a` is the member mask.
    WarpSync,
    /// Row `imm` of the table of reasons.
    Unsupported,
}

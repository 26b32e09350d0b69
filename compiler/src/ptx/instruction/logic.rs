//! Moving, bit operations, comparison and selection.

use super::modifier::*;
use crate::ptx::operand::{Operand, PredOperand, Reg};
use crate::ptx::types::Type;

/// `mov`: a register, a constant, a special register or the address of a variable.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Mov {
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
}

/// `mov.b64 d, {a, b}`: two or four equal parts into one register, the first in the lowest bits.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pack {
    /// The type of the whole: `B32`, `B64` or `B128`.
    pub ty: Type,
    pub dst: Reg,
    pub parts: Vec<Operand>,
}

/// `mov.b64 {d, e}, a`: one register into two or four equal parts, the lowest bits into the first.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Unpack {
    /// The type of the whole: `B32`, `B64` or `B128`.
    pub ty: Type,
    /// `None` is the sink `_`: that part is dropped.
    pub parts: Vec<Option<Reg>>,
    pub a: Operand,
}

/// `and or xor` on bits and predicates.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LogicBinary {
    pub op: LogicBinaryOp,
    /// `Pred`, `B16`, `B32` or `B64`.
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
    pub b: Operand,
}

/// `not` on bits and predicates; `cnot` (is it zero?) on bits.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LogicUnary {
    pub op: LogicUnaryOp,
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
}

/// `shl` (bit types) and `shr` (signed types keep the sign). Amounts past the width act as the width.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Shift {
    pub op: ShiftOp,
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
    /// The amount: 32 bits, unsigned.
    pub b: Operand,
}

/// `shf`: 32 bits out of the 64 bits `hi:lo`, shifted.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FunnelShift {
    pub direction: FunnelDirection,
    pub mode: FunnelMode,
    pub dst: Reg,
    /// The lower half.
    pub lo: Operand,
    /// The upper half.
    pub hi: Operand,
    pub amount: Operand,
}

/// `popc clz brev bfind`. The result of all but `brev` is 32 bits wide.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BitCount {
    pub op: BitCountOp,
    /// `bfind` only: yield the left shift that brings the bit to the top, instead of its position.
    pub shift_amount: bool,
    /// `B32` or `B64`; for `bfind` an integer type of 32 or 64 bits.
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
}

/// `bfe`: the bit field of `a` at `position`, `length` bits long, zero- or sign-extended.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BitExtract {
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
    pub position: Operand,
    pub length: Operand,
}

/// `bfi`: `b` with the low bits of `a` put in at `position`, `length` bits long.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BitInsert {
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
    pub b: Operand,
    pub position: Operand,
    pub length: Operand,
}

/// `prmt`: four bytes chosen out of the eight of `b:a`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Prmt {
    /// Absent: `selector` holds one nibble for each byte of the result.
    pub mode: Option<PrmtMode>,
    pub dst: Reg,
    pub a: Operand,
    pub b: Operand,
    pub selector: Operand,
}

/// `lop3`: any bitwise function of three inputs; bit `4a + 2b + c` of `table` is the result.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lop3 {
    pub table: u8,
    pub dst: Reg,
    pub a: Operand,
    pub b: Operand,
    pub c: Operand,
}

/// A comparison's result combined with a further predicate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Combine {
    pub op: BoolOp,
    pub with: PredOperand,
}

/// `setp`: predicates from a comparison.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Setp {
    pub compare: Compare,
    pub combine: Option<Combine>,
    pub ftz: bool,
    pub ty: Type,
    /// The result.
    pub p: Reg,
    /// The result of the complemented comparison (combined likewise).
    pub q: Option<Reg>,
    pub a: Operand,
    pub b: Operand,
}

/// `set`: all ones (`U32 S32`) or 1.0 (`F32`) where the comparison holds, zero elsewhere.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Set {
    pub compare: Compare,
    pub combine: Option<Combine>,
    pub ftz: bool,
    pub dst_ty: Type,
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
    pub b: Operand,
}

/// `selp`: `a` where the predicate holds, else `b`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Selp {
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
    pub b: Operand,
    pub p: Reg,
}

/// `slct`: `a` where `c >= 0`, else `b`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Slct {
    pub ftz: bool,
    pub ty: Type,
    /// `S32` or `F32`: the type of `c`.
    pub c_ty: Type,
    pub dst: Reg,
    pub a: Operand,
    pub b: Operand,
    pub c: Operand,
}

//! Integer and floating-point arithmetic, and conversion.

use super::modifier::*;
use crate::ptx::operand::{Operand, Reg};
use crate::ptx::types::Type;

/// `add sub mul div rem min max` on integers. The result of `mul.wide` is twice as wide as `ty`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct IntBinary {
    pub op: IntBinaryOp,
    /// Which part of the product; only looked at for `Mul`.
    pub part: MulPart,
    /// Clamp to the range of the type; only `add.s32` and `sub.s32`.
    pub sat: bool,
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
    pub b: Operand,
}

/// `mad`: `a * b + c` on integers. For `Wide`, `c` and the result are twice as wide as `ty`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct IntMad {
    pub part: MulPart,
    /// Clamp to the range of the type; only `mad.hi.s32`.
    pub sat: bool,
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
    pub b: Operand,
    pub c: Operand,
}

/// `neg abs` on signed integers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct IntUnary {
    pub op: IntUnaryOp,
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
}

/// `dp4a`: the sum of four products of bytes, added to `c`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Dp4a {
    /// `U32` or `S32`: how the bytes of `a` are read.
    pub a_ty: Type,
    /// `U32` or `S32`: how the bytes of `b` are read.
    pub b_ty: Type,
    pub dst: Reg,
    pub a: Operand,
    pub b: Operand,
    pub c: Operand,
}

/// `add sub mul div min max` on floats.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FloatBinary {
    pub op: FloatBinaryOp,
    /// Required for `div`; absent means to nearest even for `add sub mul`; never for `min max`.
    pub rounding: Option<Rounding>,
    /// Flush subnormal inputs and results to zero (`f32`, and `f16` where the manual says so).
    pub ftz: bool,
    /// Clamp the result to 0..1.
    pub sat: bool,
    /// `min max`: a NaN operand makes the result NaN, instead of being ignored.
    pub nan: bool,
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
    pub b: Operand,
}

/// `fma`: `a * b + c`, rounded once.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Fma {
    pub rounding: Rounding,
    pub ftz: bool,
    pub sat: bool,
    /// Negative results become zero (16-bit types only).
    pub relu: bool,
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
    pub b: Operand,
    pub c: Operand,
}

/// `neg abs sqrt rsqrt rcp sin cos lg2 ex2 tanh` on floats.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FloatUnary {
    pub op: FloatUnaryOp,
    /// Absent for `neg abs`; `Approx` or an IEEE rounding for `sqrt rcp`; `Approx` for the others.
    pub rounding: Option<Rounding>,
    pub ftz: bool,
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
}

/// `copysign`: the magnitude of `b` with the sign of `a`, in that order as PTX has it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Copysign {
    pub ty: Type,
    pub dst: Reg,
    /// Gives the sign.
    pub a: Operand,
    /// Gives the magnitude.
    pub b: Operand,
}

/// `testp`: what kind of float `a` is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Testp {
    pub test: FloatTest,
    pub ty: Type,
    /// A predicate.
    pub dst: Reg,
    pub a: Operand,
}

/// `cvt`: one value from `src_ty` to `dst_ty`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Cvt {
    pub rounding: Option<Rounding>,
    pub ftz: bool,
    pub sat: bool,
    pub dst_ty: Type,
    pub src_ty: Type,
    pub dst: Reg,
    pub a: Operand,
}

/// `cvt.rn.f16x2.f32 d, a, b`: two `f32` into one register, `a` in the upper half and `b` in the lower.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CvtPack {
    pub rounding: Rounding,
    /// Negative results become zero.
    pub relu: bool,
    /// `F16x2` or `Bf16x2`.
    pub dst_ty: Type,
    pub dst: Reg,
    /// The upper half.
    pub a: Operand,
    /// The lower half.
    pub b: Operand,
}

/// `cvt.pack.sat.u8.s32.b32 d, a, b, c`: two integers, each as the nearest one of a byte, in the two lower bytes of a word, `a`
/// in the higher one; above them the two lower bytes of `c`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CvtPackBytes {
    /// `S8` or `U8`.
    pub dst_ty: Type,
    pub dst: Reg,
    pub a: Operand,
    pub b: Operand,
    pub c: Operand,
}

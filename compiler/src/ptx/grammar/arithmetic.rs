//! The grammar of arithmetic and conversion.

use super::{Family, INTEGERS, Slot, Step, Walk, is_bf16, is_narrow, needs};
use crate::ptx::instruction::*;
use crate::ptx::types::{Modifier, Type};

const IEEE: &[Rounding] = &[Rounding::Rn, Rounding::Rz, Rounding::Rm, Rounding::Rp];
const FLOATS: &[Type] = &[Type::F16, Type::F16x2, Type::Bf16, Type::Bf16x2, Type::F32, Type::F64];

/// The type of the result of a product of which `part` is kept.
fn product_type(part: MulPart, ty: Type) -> Type {
    match part {
        MulPart::Wide => ty.widened().unwrap_or(ty),
        MulPart::Lo | MulPart::Hi => ty,
    }
}

impl Family for IntBinary {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.choice(&mut self.op, IntBinaryOp::ALL)?;
        let mut part = MulPart::Lo;
        if self.op == IntBinaryOp::Mul {
            walk.choice(&mut self.part, MulPart::ALL)?;
            part = self.part;
        }
        if matches!(self.op, IntBinaryOp::Add | IntBinaryOp::Sub) {
            walk.flag("sat", &mut self.sat)?;
        } else {
            walk.rule(!self.sat, "only add and sub saturate")?;
        }
        walk.choice(&mut self.ty, INTEGERS)?;
        walk.rule(!self.sat || self.ty == Type::S32, ".sat needs .s32")?;
        walk.rule(
            part != MulPart::Wide || self.ty.widened().is_some(),
            ".wide needs a type of 16 or 32 bits",
        )?;
        walk.operand(Slot::Write(&mut self.dst, product_type(part, self.ty)))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))?;
        walk.operand(Slot::Source(&mut self.b, self.ty))
    }
}

impl Family for IntMad {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("mad")?;
        walk.choice(&mut self.part, MulPart::ALL)?;
        walk.flag("sat", &mut self.sat)?;
        walk.choice(&mut self.ty, INTEGERS)?;
        walk.rule(
            !self.sat || (self.ty == Type::S32 && self.part == MulPart::Hi),
            ".sat needs .hi and .s32",
        )?;
        walk.rule(
            self.part != MulPart::Wide || self.ty.widened().is_some(),
            ".wide needs a type of 16 or 32 bits",
        )?;
        let result = product_type(self.part, self.ty);
        walk.operand(Slot::Write(&mut self.dst, result))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))?;
        walk.operand(Slot::Source(&mut self.b, self.ty))?;
        walk.operand(Slot::Source(&mut self.c, result))
    }
}

impl Family for IntUnary {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.choice(&mut self.op, IntUnaryOp::ALL)?;
        walk.choice(&mut self.ty, &[Type::S16, Type::S32, Type::S64])?;
        walk.operand(Slot::Write(&mut self.dst, self.ty))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))
    }
}

impl Family for Dp4a {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        const BYTES: &[Type] = &[Type::U32, Type::S32];
        walk.word("dp4a")?;
        walk.choice(&mut self.a_ty, BYTES)?;
        walk.choice(&mut self.b_ty, BYTES)?;
        let sum = if self.a_ty.is_signed() { self.a_ty } else { self.b_ty };
        walk.operand(Slot::Write(&mut self.dst, sum))?;
        walk.operand(Slot::Source(&mut self.a, self.a_ty))?;
        walk.operand(Slot::Source(&mut self.b, self.b_ty))?;
        walk.operand(Slot::Source(&mut self.c, sum))
    }
}

impl Family for FloatBinary {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        use FloatBinaryOp::*;
        walk.choice(&mut self.op, FloatBinaryOp::ALL)?;
        match self.op {
            Div => walk.suffix(
                &mut self.rounding,
                true,
                &[Rounding::Rn, Rounding::Rz, Rounding::Rm, Rounding::Rp, Rounding::Approx, Rounding::Full],
            )?,
            Min | Max => walk.rule(self.rounding.is_none(), "min and max do not round")?,
            Add | Sub | Mul => walk.option(&mut self.rounding, IEEE)?,
        }
        walk.flag("ftz", &mut self.ftz)?;
        if matches!(self.op, Add | Sub | Mul) {
            walk.flag("sat", &mut self.sat)?;
        } else {
            walk.rule(!self.sat, "only add, sub and mul saturate")?;
        }
        if matches!(self.op, Min | Max) {
            walk.flag("NaN", &mut self.nan)?;
        } else {
            walk.rule(!self.nan, "only min and max have .NaN")?;
        }
        let legal = if self.op == Div { &[Type::F32, Type::F64][..] } else { FLOATS };
        walk.choice(&mut self.ty, legal)?;

        let (ty, rounding) = (self.ty, self.rounding);
        walk.rule(!self.ftz || (ty != Type::F64 && !is_bf16(ty)), ".ftz is not for .f64 and .bf16")?;
        walk.rule(!self.sat || (ty != Type::F64 && !is_bf16(ty)), ".sat is not for .f64 and .bf16")?;
        walk.rule(!self.nan || ty != Type::F64, ".NaN is not for .f64")?;
        walk.rule(
            !is_narrow(ty) || matches!(rounding, None | Some(Rounding::Rn)),
            "narrow floats round by .rn",
        )?;
        walk.rule(
            ty != Type::F64 || !matches!(rounding, Some(Rounding::Approx | Rounding::Full)),
            ".approx and .full are for .f32",
        )?;
        if matches!(self.op, Min | Max) {
            if is_narrow(ty) || self.nan {
                walk.needs("min and max of narrow floats or with .NaN", needs(80, 7, 0))?;
            }
        } else if is_bf16(ty) {
            walk.needs("bf16 arithmetic", needs(90, 7, 8))?;
        }
        walk.operand(Slot::Write(&mut self.dst, ty))?;
        walk.operand(Slot::Source(&mut self.a, ty))?;
        walk.operand(Slot::Source(&mut self.b, ty))
    }
}

impl Family for Fma {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("fma")?;
        walk.choice(&mut self.rounding, IEEE)?;
        walk.flag("ftz", &mut self.ftz)?;
        walk.flag("sat", &mut self.sat)?;
        walk.flag("relu", &mut self.relu)?;
        walk.choice(&mut self.ty, FLOATS)?;
        let ty = self.ty;
        walk.rule(!self.ftz || (ty != Type::F64 && !is_bf16(ty)), ".ftz is not for .f64 and .bf16")?;
        walk.rule(!self.sat || (ty != Type::F64 && !is_bf16(ty)), ".sat is not for .f64 and .bf16")?;
        walk.rule(!self.relu || is_narrow(ty), ".relu is for narrow floats")?;
        walk.rule(!(self.relu && self.sat), ".relu and .sat exclude each other")?;
        walk.rule(!is_narrow(ty) || self.rounding == Rounding::Rn, "narrow floats round by .rn")?;
        if is_bf16(ty) || self.relu {
            walk.needs("fma on bf16 or with .relu", needs(80, 7, 0))?;
        }
        walk.operand(Slot::Write(&mut self.dst, ty))?;
        walk.operand(Slot::Source(&mut self.a, ty))?;
        walk.operand(Slot::Source(&mut self.b, ty))?;
        walk.operand(Slot::Source(&mut self.c, ty))
    }
}

impl Family for FloatUnary {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        use FloatUnaryOp::*;
        walk.choice(&mut self.op, FloatUnaryOp::ALL)?;
        match self.op {
            Neg | Abs => walk.rule(self.rounding.is_none(), "neg and abs do not round")?,
            Sqrt | Rcp => walk.suffix(
                &mut self.rounding,
                true,
                &[Rounding::Rn, Rounding::Rz, Rounding::Rm, Rounding::Rp, Rounding::Approx],
            )?,
            Rsqrt | Sin | Cos | Lg2 | Ex2 | Tanh => {
                walk.suffix(&mut self.rounding, true, &[Rounding::Approx])?;
            }
        }
        walk.flag("ftz", &mut self.ftz)?;
        let legal: &[Type] = match self.op {
            Neg | Abs => FLOATS,
            Sqrt | Rcp | Rsqrt => &[Type::F32, Type::F64],
            Sin | Cos | Lg2 => &[Type::F32],
            Ex2 | Tanh => &[Type::F32, Type::F16, Type::F16x2, Type::Bf16, Type::Bf16x2],
        };
        walk.choice(&mut self.ty, legal)?;

        let (op, ty, ftz) = (self.op, self.ty, self.ftz);
        let approx = self.rounding == Some(Rounding::Approx);
        walk.rule(op != Tanh || !ftz, "tanh has no .ftz")?;
        if ty == Type::F64 {
            walk.rule(op != Sqrt || !approx, "sqrt.approx is for .f32")?;
            let flushes = matches!(op, Rcp | Rsqrt) && approx;
            walk.rule(!ftz || flushes, ".ftz on .f64 is for rcp.approx and rsqrt.approx")?;
            walk.rule(op != Rcp || approx == ftz, "rcp.approx.f64 needs .ftz")?;
        }
        if op == Ex2 && is_narrow(ty) {
            walk.rule(ftz == is_bf16(ty), "ex2 on narrow floats: .ftz with .bf16, and only there")?;
        } else {
            walk.rule(!ftz || !is_bf16(ty), ".ftz is not for .bf16")?;
        }
        match op {
            Neg | Abs if is_bf16(ty) => walk.needs("neg and abs of bf16", needs(80, 7, 0))?,
            Ex2 | Tanh if is_bf16(ty) => walk.needs("ex2 and tanh of bf16", needs(90, 7, 8))?,
            Ex2 if is_narrow(ty) => walk.needs("ex2 of f16", needs(75, 7, 0))?,
            Tanh => walk.needs("tanh", needs(75, 7, 0))?,
            _ => {}
        }
        walk.operand(Slot::Write(&mut self.dst, ty))?;
        walk.operand(Slot::Source(&mut self.a, ty))
    }
}

impl Family for Copysign {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("copysign")?;
        walk.choice(&mut self.ty, &[Type::F32, Type::F64])?;
        walk.operand(Slot::Write(&mut self.dst, self.ty))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))?;
        walk.operand(Slot::Source(&mut self.b, self.ty))
    }
}

impl Family for Testp {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("testp")?;
        walk.choice(&mut self.test, FloatTest::ALL)?;
        walk.choice(&mut self.ty, &[Type::F32, Type::F64])?;
        walk.operand(Slot::Write(&mut self.dst, Type::Pred))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))
    }
}

impl Family for Cvt {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        const TYPES: &[Type] = &[
            Type::U8,
            Type::U16,
            Type::U32,
            Type::U64,
            Type::S8,
            Type::S16,
            Type::S32,
            Type::S64,
            Type::F16,
            Type::Bf16,
            Type::F32,
            Type::F64,
            Type::Tf32,
        ];
        walk.word("cvt")?;
        let roundings = &Rounding::ALL[..9];
        walk.option(&mut self.rounding, roundings)?;
        walk.flag("ftz", &mut self.ftz)?;
        walk.flag("sat", &mut self.sat)?;
        walk.choice(&mut self.dst_ty, TYPES)?;
        walk.choice(&mut self.src_ty, &TYPES[..12])?;
        self.rules(walk)?;
        if is_bf16(self.src_ty) || is_bf16(self.dst_ty) {
            walk.operand(Slot::Write(&mut self.dst, self.dst_ty))?;
            return walk.operand(Slot::Source(&mut self.a, self.src_ty));
        }
        walk.operand(Slot::WriteWide(&mut self.dst, self.dst_ty))?;
        walk.operand(Slot::SourceWide(&mut self.a, self.src_ty))
    }
}

/// Whether every value of the integer type `inner` is one of `outer`.
fn contains(outer: Type, inner: Type) -> bool {
    match (outer.is_signed(), inner.is_signed()) {
        (true, false) => outer.bits() > inner.bits(),
        (false, true) => false,
        _ => outer.bits() >= inner.bits(),
    }
}

impl Cvt {
    /// Which rounding, saturation and flushing a pair of types takes, and what it needs of the target.
    fn rules<W: Walk>(&self, walk: &mut W) -> Step {
        use Rounding::*;
        let (dst, src) = (self.dst_ty, self.src_ty);
        let to_integral = matches!(self.rounding, Some(Rni | Rzi | Rmi | Rpi));
        let ieee = matches!(self.rounding, Some(Rn | Rz | Rm | Rp));
        match (dst.is_float(), src.is_float()) {
            (false, false) => {
                walk.rule(self.rounding.is_none(), "a conversion between integers does not round")?;
            }
            (false, true) => walk.rule(to_integral, "float to integer needs .rni, .rzi, .rmi or .rpi")?,
            (true, false) if dst == Type::Tf32 => walk.rule(false, "tf32 comes from .f32 only")?,
            (true, false) => walk.rule(ieee, "integer to float needs .rn, .rz, .rm or .rp")?,
            (true, true) if dst == Type::Tf32 => {
                walk.rule(self.rounding == Some(Rna) && src == Type::F32, "tf32 comes from .f32 by .rna")?;
                walk.rule(!self.ftz && !self.sat, "tf32 takes neither .ftz nor .sat")?;
                walk.needs("tf32", needs(80, 7, 0))?;
            }
            (true, true) if dst == src => {
                walk.rule(
                    self.rounding.is_none() || to_integral,
                    "a float to its own type rounds to an integral value only",
                )?;
            }
            (true, true) if dst.bits() > src.bits() => {
                walk.rule(self.rounding.is_none(), "widening a float does not round")?;
            }
            (true, true) => walk.rule(ieee, "narrowing a float needs .rn, .rz, .rm or .rp")?,
        }
        let single = dst == Type::F32 || src == Type::F32;
        walk.rule(!self.ftz || (single && !is_bf16(dst) && !is_bf16(src)), ".ftz needs .f32")?;
        walk.rule(!self.sat || !(is_bf16(dst) || is_bf16(src)), ".sat is not for .bf16")?;
        walk.rule(
            !self.sat || dst.is_float() || src.is_float() || !contains(dst, src),
            "nothing to saturate",
        )?;
        walk.rule(
            !(is_bf16(dst) || is_bf16(src)) || (dst.bits() > 8 && src.bits() > 8),
            "bf16 and 8 bits do not convert",
        )?;
        if dst == Type::Bf16 && src == Type::F32 {
            walk.rule(matches!(self.rounding, Some(Rn | Rz)), "f32 to bf16 rounds by .rn or .rz")?;
            walk.needs("f32 to bf16", needs(80, 7, 0))?;
        } else if src == Type::Bf16 && dst == Type::F32 {
            walk.needs("bf16 to f32", needs(80, 7, 1))?;
        } else if dst == Type::Bf16 || src == Type::Bf16 {
            walk.needs("conversion from and to bf16", needs(90, 7, 8))?;
        }
        Ok(())
    }
}

impl Family for CvtPackBytes {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("cvt")?;
        walk.word("pack")?;
        walk.word("sat")?;
        walk.choice(&mut self.dst_ty, &[Type::S8, Type::U8])?;
        walk.word("s32")?;
        walk.word("b32")?;
        walk.needs("conversion of integers to bytes of a word", needs(72, 6, 5))?;
        walk.operand(Slot::Write(&mut self.dst, Type::U32))?;
        walk.operand(Slot::Source(&mut self.a, Type::S32))?;
        walk.operand(Slot::Source(&mut self.b, Type::S32))?;
        walk.operand(Slot::Source(&mut self.c, Type::U32))
    }
}

impl Family for CvtPack {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("cvt")?;
        walk.choice(&mut self.rounding, &[Rounding::Rn, Rounding::Rz])?;
        walk.flag("relu", &mut self.relu)?;
        walk.choice(&mut self.dst_ty, &[Type::F16x2, Type::Bf16x2])?;
        walk.word("f32")?;
        walk.needs("conversion of two floats", needs(80, 7, 0))?;
        walk.operand(Slot::Write(&mut self.dst, self.dst_ty))?;
        walk.operand(Slot::Source(&mut self.a, Type::F32))?;
        walk.operand(Slot::Source(&mut self.b, Type::F32))
    }
}

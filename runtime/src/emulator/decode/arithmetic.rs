//! Decoding of arithmetic and conversion.

use krn_compiler::ptx::instruction::*;
use krn_compiler::ptx::{Operand, RegClass, Type};

use super::decoder::{Decoded, Decoder, width};
use crate::emulator::opcodes::{
    AnyConversion, Conversion, F32Op, F64Op, FloatFormula, FormulaOp, IntOp, MoveOp, Selection, WideOp,
};
use crate::emulator::program::{Code, Inst};

fn int_code(bits: u32, op: IntOp) -> Code {
    match bits {
        16 => Code::Int16(op),
        32 => Code::Int32(op),
        _ => Code::Int64(op),
    }
}

/// One of a signed and an unsigned operation.
fn by_sign<T>(ty: Type, signed: T, unsigned: T) -> T {
    if ty.is_signed() { signed } else { unsigned }
}

impl Decoder<'_> {
    pub(super) fn int_binary(&mut self, op: &IntBinary) -> Decoded {
        let bits = width(op.ty)?;
        if op.op == IntBinaryOp::Mul && op.part == MulPart::Wide {
            let code = wide_mul(op.ty, false)?;
            let sources = self.sources([op.a, op.b], bits)?;
            return Ok(Inst::with(Code::Wide(code), self.dst(op.dst, 2 * bits)?, sources));
        }
        let code = match op.op {
            IntBinaryOp::Add if op.sat => IntOp::AddSat,
            IntBinaryOp::Add => IntOp::Add,
            IntBinaryOp::Sub if op.sat => IntOp::SubSat,
            IntBinaryOp::Sub => IntOp::Sub,
            IntBinaryOp::Mul if op.part == MulPart::Hi => by_sign(op.ty, IntOp::MulHiS, IntOp::MulHiU),
            IntBinaryOp::Mul => IntOp::MulLo,
            IntBinaryOp::Div => by_sign(op.ty, IntOp::DivS, IntOp::DivU),
            IntBinaryOp::Rem => by_sign(op.ty, IntOp::RemS, IntOp::RemU),
            IntBinaryOp::Min => by_sign(op.ty, IntOp::MinS, IntOp::MinU),
            IntBinaryOp::Max => by_sign(op.ty, IntOp::MaxS, IntOp::MaxU),
        };
        let sources = self.sources([op.a, op.b], bits)?;
        Ok(Inst::with(int_code(bits, code), self.dst(op.dst, bits)?, sources))
    }

    pub(super) fn int_mad(&mut self, op: &IntMad) -> Decoded {
        let bits = width(op.ty)?;
        if op.part == MulPart::Wide {
            let code = wide_mul(op.ty, true)?;
            let [a, b, _] = self.sources([op.a, op.b], bits)?;
            let c = self.src(op.c, 2 * bits)?;
            return Ok(Inst::with(Code::Wide(code), self.dst(op.dst, 2 * bits)?, [a, b, c]));
        }
        let code = match op.part {
            MulPart::Hi if op.sat => IntOp::MadHiSat,
            MulPart::Hi => by_sign(op.ty, IntOp::MadHiS, IntOp::MadHiU),
            _ => IntOp::MadLo,
        };
        let sources = self.sources([op.a, op.b, op.c], bits)?;
        Ok(Inst::with(int_code(bits, code), self.dst(op.dst, bits)?, sources))
    }

    pub(super) fn int_unary(&mut self, op: &IntUnary) -> Decoded {
        let bits = width(op.ty)?;
        let code = match op.op {
            IntUnaryOp::Neg => IntOp::Neg,
            IntUnaryOp::Abs => IntOp::Abs,
        };
        let sources = self.sources([op.a], bits)?;
        Ok(Inst::with(int_code(bits, code), self.dst(op.dst, bits)?, sources))
    }

    pub(super) fn dp4a(&mut self, op: &Dp4a) -> Decoded {
        let sources = self.sources([op.a, op.b, op.c], 32)?;
        let imm = i64::from(op.a_ty.is_signed()) | i64::from(op.b_ty.is_signed()) << 1;
        let inst = Inst::with(Code::Wide(WideOp::Dp4a), self.dst(op.dst, 32)?, sources);
        Ok(Inst { imm, ..inst })
    }

    /// An entry in the table of formulas.
    fn formula(&mut self, formula: FloatFormula, d: u32, sources: [u32; 3]) -> Inst {
        let imm = self.program.formulas.len() as i64;
        self.program.formulas.push(formula);
        Inst { imm, ..Inst::with(Code::Float, d, sources) }
    }

    pub(super) fn float_binary(&mut self, op: &FloatBinary) -> Decoded {
        let bits = width(op.ty)?;
        let sources = self.sources([op.a, op.b], bits)?;
        let d = self.dst(op.dst, bits)?;
        let nearest = matches!(op.rounding, None | Some(Rounding::Rn | Rounding::Approx | Rounding::Full));
        if op.ty == Type::F32 && nearest && !op.sat {
            let code = match op.op {
                FloatBinaryOp::Add => F32Op::Add,
                FloatBinaryOp::Sub => F32Op::Sub,
                FloatBinaryOp::Mul => F32Op::Mul,
                FloatBinaryOp::Div if op.rounding == Some(Rounding::Approx) => F32Op::DivApprox,
                FloatBinaryOp::Div => F32Op::Div,
                FloatBinaryOp::Min if op.nan => F32Op::MinNan,
                FloatBinaryOp::Min => F32Op::Min,
                FloatBinaryOp::Max if op.nan => F32Op::MaxNan,
                FloatBinaryOp::Max => F32Op::Max,
            };
            return Ok(Inst { imm: op.ftz.into(), ..Inst::with(Code::F32(code), d, sources) });
        }
        if op.ty == Type::F64 && nearest && !op.nan {
            let code = match op.op {
                FloatBinaryOp::Add => F64Op::Add,
                FloatBinaryOp::Sub => F64Op::Sub,
                FloatBinaryOp::Mul => F64Op::Mul,
                FloatBinaryOp::Div => F64Op::Div,
                FloatBinaryOp::Min => F64Op::Min,
                FloatBinaryOp::Max => F64Op::Max,
            };
            return Ok(Inst::with(Code::F64(code), d, sources));
        }
        let formula = FloatFormula {
            op: FormulaOp::Binary(op.op),
            ty: float_type(op.ty)?,
            rounding: op.rounding.unwrap_or_default(),
            ftz: op.ftz,
            sat: op.sat,
            nan: op.nan,
            relu: false,
        };
        Ok(self.formula(formula, d, sources))
    }

    pub(super) fn fma(&mut self, op: &Fma) -> Decoded {
        let bits = width(op.ty)?;
        let sources = self.sources([op.a, op.b, op.c], bits)?;
        let d = self.dst(op.dst, bits)?;
        let plain = op.rounding == Rounding::Rn && !op.sat && !op.relu;
        match op.ty {
            Type::F32 if plain => {
                return Ok(Inst { imm: op.ftz.into(), ..Inst::with(Code::F32(F32Op::Fma), d, sources) });
            }
            Type::F32 if op.rounding == Rounding::Rn && op.sat && !op.ftz && !op.relu => {
                return Ok(Inst::with(Code::F32(F32Op::FmaSat), d, sources));
            }
            Type::F64 if plain => return Ok(Inst::with(Code::F64(F64Op::Fma), d, sources)),
            _ => {}
        }
        let formula = FloatFormula {
            op: FormulaOp::Fma,
            ty: float_type(op.ty)?,
            rounding: op.rounding,
            ftz: op.ftz,
            sat: op.sat,
            nan: false,
            relu: op.relu,
        };
        Ok(self.formula(formula, d, sources))
    }

    pub(super) fn float_unary(&mut self, op: &FloatUnary) -> Decoded {
        let bits = width(op.ty)?;
        let sources = self.sources([op.a], bits)?;
        let d = self.dst(op.dst, bits)?;
        let nearest = matches!(op.rounding, None | Some(Rounding::Rn | Rounding::Approx));
        if op.ty == Type::F32 && nearest {
            let code = match op.op {
                FloatUnaryOp::Neg => F32Op::Neg,
                FloatUnaryOp::Abs => F32Op::Abs,
                FloatUnaryOp::Sqrt => F32Op::Sqrt,
                FloatUnaryOp::Rsqrt => F32Op::Rsqrt,
                FloatUnaryOp::Rcp => F32Op::Rcp,
                FloatUnaryOp::Sin => F32Op::Sin,
                FloatUnaryOp::Cos => F32Op::Cos,
                FloatUnaryOp::Lg2 => F32Op::Lg2,
                FloatUnaryOp::Ex2 => F32Op::Ex2,
                FloatUnaryOp::Tanh => F32Op::Tanh,
            };
            return Ok(Inst { imm: op.ftz.into(), ..Inst::with(Code::F32(code), d, sources) });
        }
        let code = match op.op {
            FloatUnaryOp::Neg => Some(F64Op::Neg),
            FloatUnaryOp::Abs => Some(F64Op::Abs),
            FloatUnaryOp::Sqrt => Some(F64Op::Sqrt),
            FloatUnaryOp::Rsqrt => Some(F64Op::Rsqrt),
            FloatUnaryOp::Rcp => Some(F64Op::Rcp),
            _ => None,
        };
        if let (Type::F64, true, Some(code)) = (op.ty, nearest, code) {
            return Ok(Inst::with(Code::F64(code), d, sources));
        }
        let formula = FloatFormula {
            op: FormulaOp::Unary(op.op),
            ty: float_type(op.ty)?,
            rounding: op.rounding.unwrap_or_default(),
            ftz: op.ftz,
            sat: false,
            nan: false,
            relu: false,
        };
        Ok(self.formula(formula, d, sources))
    }

    pub(super) fn copysign(&mut self, op: &Copysign) -> Decoded {
        let bits = width(op.ty)?;
        let sources = self.sources([op.a, op.b], bits)?;
        let d = self.dst(op.dst, bits)?;
        let formula = FloatFormula {
            op: FormulaOp::Copysign,
            ty: float_type(op.ty)?,
            rounding: Rounding::Rn,
            ftz: false,
            sat: false,
            nan: false,
            relu: false,
        };
        Ok(self.formula(formula, d, sources))
    }

    pub(super) fn testp(&mut self, op: &Testp) -> Decoded {
        let (bits, code) = match op.ty {
            Type::F32 => (32, Selection::Testp32(op.test)),
            Type::F64 => (64, Selection::Testp64(op.test)),
            other => return Err(format!("there is no testp on .{other}")),
        };
        let sources = self.sources([op.a], bits)?;
        Ok(Inst::with(Code::Select(code), self.dst_predicate(op.dst)?, sources))
    }

    pub(super) fn cvt(&mut self, op: &Cvt) -> Decoded {
        let dst_class = self.class(op.dst)?;
        let src_class = match op.a {
            Operand::Reg(reg) => self.class(reg)?,
            _ => op.src_ty.class(),
        };
        let supported = |ty: Type| {
            ty.is_integer() || matches!(ty, Type::F16 | Type::Bf16 | Type::Tf32 | Type::F32 | Type::F64)
        };
        for (ty, class) in [(op.dst_ty, dst_class), (op.src_ty, src_class)] {
            if !supported(ty) || class.bits() < ty.bits() || class.bits() > 64 {
                return Err(format!("cvt between a .{ty} and a .{class} register is not modelled"));
            }
        }
        let a = self.src(op.a, src_class.bits())?;
        let d = self.dst(op.dst, dst_class.bits())?;
        if let Some(code) = quick_conversion(op, dst_class, src_class) {
            return Ok(Inst::with(code, d, [a, 0, 0]));
        }
        let conversion = AnyConversion {
            dst_ty: op.dst_ty,
            src_ty: op.src_ty,
            rounding: op.rounding,
            ftz: op.ftz,
            sat: op.sat,
            relu: false,
            pack: false,
            dst_wide: dst_class.bits() == 64,
            dst_half: dst_class.bits() == 16,
            src_wide: src_class.bits() == 64,
        };
        Ok(self.conversion(conversion, d, [a, 0, 0]))
    }

    pub(super) fn cvt_pack(&mut self, op: &CvtPack) -> Decoded {
        if !matches!(op.dst_ty, Type::F16x2 | Type::Bf16x2) {
            return Err(format!("cvt of two values to .{} is not modelled", op.dst_ty));
        }
        let sources = self.sources([op.a, op.b], 32)?;
        let d = self.dst(op.dst, 32)?;
        if op.rounding == Rounding::Rn && !op.relu {
            let is_f16 = op.dst_ty == Type::F16x2;
            let code = if is_f16 { Conversion::F16PairFromF32 } else { Conversion::Bf16PairFromF32 };
            return Ok(Inst::with(Code::Convert(code), d, sources));
        }
        let conversion = AnyConversion {
            dst_ty: op.dst_ty,
            src_ty: Type::F32,
            rounding: Some(op.rounding),
            ftz: false,
            sat: false,
            relu: op.relu,
            pack: true,
            dst_wide: false,
            dst_half: false,
            src_wide: false,
        };
        Ok(self.conversion(conversion, d, sources))
    }

    pub(super) fn cvt_pack_bytes(&mut self, op: &CvtPackBytes) -> Decoded {
        let code = match op.dst_ty {
            Type::S8 => Conversion::S8PairFromS32,
            Type::U8 => Conversion::U8PairFromS32,
            other => return Err(format!("there is no cvt.pack to .{other}")),
        };
        let sources = self.sources([op.a, op.b, op.c], 32)?;
        Ok(Inst::with(Code::Convert(code), self.dst(op.dst, 32)?, sources))
    }

    fn conversion(&mut self, conversion: AnyConversion, d: u32, sources: [u32; 3]) -> Inst {
        let imm = self.program.conversions.len() as i64;
        self.program.conversions.push(conversion);
        Inst { imm, ..Inst::with(Code::ConvertAny, d, sources) }
    }
}

fn wide_mul(ty: Type, add: bool) -> Decoded<WideOp> {
    match (ty, add) {
        (Type::U16, false) => Ok(WideOp::MulU16),
        (Type::S16, false) => Ok(WideOp::MulS16),
        (Type::U32, false) => Ok(WideOp::MulU32),
        (Type::S32, false) => Ok(WideOp::MulS32),
        (Type::U16, true) => Ok(WideOp::MadU16),
        (Type::S16, true) => Ok(WideOp::MadS16),
        (Type::U32, true) => Ok(WideOp::MadU32),
        (Type::S32, true) => Ok(WideOp::MadS32),
        _ => Err(format!("there is no wide product of .{ty}")),
    }
}

fn float_type(ty: Type) -> Decoded<Type> {
    match ty {
        Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 | Type::F32 | Type::F64 => Ok(ty),
        other => Err(format!("there is no float arithmetic on .{other}")),
    }
}

/// The lane loop for a conversion, where there is one.
fn quick_conversion(op: &Cvt, dst: RegClass, src: RegClass) -> Option<Code> {
    if op.sat {
        return None;
    }
    if op.dst_ty.is_integer() && op.src_ty.is_integer() {
        let signed = op.src_ty.is_signed();
        let move_or = |code| Some(Code::Convert(code));
        return match (op.dst_ty.bits(), op.src_ty.bits(), dst.bits(), src.bits()) {
            (64, 32, 64, 32) if signed => move_or(Conversion::Extend64S),
            (64, 32, 64, 32) => move_or(Conversion::Extend64U),
            (64, 64, 64, 64) => Some(Code::Move(MoveOp::Move64)),
            (32, 64, 32, 64) => move_or(Conversion::Truncate64),
            (32, 32, 32, 32) => Some(Code::Move(MoveOp::Move32)),
            (32, 16, 32, 16 | 32) if signed => move_or(Conversion::Low16S),
            (32, 16, 32, 16 | 32) => move_or(Conversion::Low16),
            (32, 8, 32, 16 | 32) if signed => move_or(Conversion::Low8S),
            (32, 8, 32, 16 | 32) => move_or(Conversion::Low8),
            (16, 16 | 32, 16, 16 | 32) => move_or(Conversion::Low16),
            (8, _, 16 | 32, 16 | 32) if !op.dst_ty.is_signed() => move_or(Conversion::Low8),
            _ => None,
        };
    }
    if op.dst_ty.bits() != dst.bits() || op.src_ty.bits() != src.bits() {
        return None;
    }
    let code = match (op.dst_ty, op.src_ty, op.rounding) {
        (Type::F32, Type::S32, Some(Rounding::Rn)) => Conversion::F32FromS32,
        (Type::F32, Type::U32, Some(Rounding::Rn)) => Conversion::F32FromU32,
        (Type::F32, Type::S64, Some(Rounding::Rn)) => Conversion::F32FromS64,
        (Type::F32, Type::U64, Some(Rounding::Rn)) => Conversion::F32FromU64,
        (Type::F64, Type::S32, _) => Conversion::F64FromS32,
        (Type::F64, Type::U32, _) => Conversion::F64FromU32,
        (Type::F64, Type::S64, Some(Rounding::Rn)) => Conversion::F64FromS64,
        (Type::F64, Type::U64, Some(Rounding::Rn)) => Conversion::F64FromU64,
        (Type::S32, Type::F32, Some(Rounding::Rzi)) => Conversion::S32FromF32,
        (Type::S32, Type::F32, Some(Rounding::Rmi)) => Conversion::S32FromFloorOfF32,
        (Type::U32, Type::F32, Some(Rounding::Rzi)) => Conversion::U32FromF32,
        (Type::F64, Type::F32, None) if !op.ftz => Conversion::F64FromF32,
        (Type::F32, Type::F64, Some(Rounding::Rn)) if !op.ftz => Conversion::F32FromF64,
        (Type::F32, Type::F16, None) => Conversion::F32FromF16,
        (Type::F16, Type::F32, Some(Rounding::Rn)) if !op.ftz => Conversion::F16FromF32,
        (Type::F32, Type::Bf16, None) if !op.ftz => Conversion::F32FromBf16,
        (Type::Bf16, Type::F32, Some(Rounding::Rn)) => Conversion::Bf16FromF32,
        _ => return None,
    };
    Some(Code::Convert(code))
}

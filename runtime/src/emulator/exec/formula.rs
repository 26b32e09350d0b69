//! Float instructions in every type and mode, one lane at a time: slow, and complete.

use krn_compiler::ptx::Type;
use krn_compiler::ptx::instruction::{FloatBinaryOp, FloatUnaryOp, Rounding};

use super::lanes::{Registers, lanes_of};
use super::round::{self, BF16, F16, F32, Format, NAN64};
use crate::emulator::opcodes::{FloatFormula, FormulaOp};
use crate::emulator::program::Inst;

impl FloatFormula {
    /// Evaluates all lanes in `mask`.
    pub fn run(&self, r: &mut Registers, i: &Inst, mask: u32) {
        let count = match self.op {
            FormulaOp::Fma => 3,
            FormulaOp::Unary(_) => 1,
            _ => 2,
        };
        let sources = [i.a, i.b, i.c];
        for lane in lanes_of(mask) {
            if self.ty == Type::F64 {
                let mut operands = [0.0; 3];
                for (operand, column) in operands.iter_mut().zip(sources).take(count) {
                    *operand = f64::from_bits(r.c64(column)[lane]);
                }
                r.w64[i.d as usize].0[lane] = self.wide(operands);
            } else {
                let mut operands = [0; 3];
                for (operand, column) in operands.iter_mut().zip(sources).take(count) {
                    *operand = r.c32(column)[lane];
                }
                r.w32[i.d as usize].0[lane] = self.narrow(operands);
            }
        }
    }

    /// One `f32`, one 16-bit value, or two of them.
    fn narrow(&self, operands: [u32; 3]) -> u32 {
        let format = match self.ty {
            Type::F32 => return self.one(F32, operands),
            Type::F16 | Type::F16x2 => F16,
            _ => BF16,
        };
        let low = self.one(format, operands.map(|operand| operand & 0xffff));
        if matches!(self.ty, Type::F16x2 | Type::Bf16x2) {
            self.one(format, operands.map(|operand| operand >> 16)) << 16 | low
        } else {
            low
        }
    }

    fn one(&self, format: Format, operands: [u32; 3]) -> u32 {
        let sign = 1 << format.sign;
        // Operations on the sign alone look at bits, NaN or not.
        match self.op {
            FormulaOp::Copysign => return (operands[0] & sign) | (operands[1] & !sign),
            FormulaOp::Unary(FloatUnaryOp::Neg) if format != F32 && !self.ftz => return operands[0] ^ sign,
            FormulaOp::Unary(FloatUnaryOp::Abs) if format != F32 && !self.ftz => return operands[0] & !sign,
            _ => {}
        }
        let flush = |bits: u32| {
            let subnormal = bits & (sign - 1) < 1 << format.mantissa;
            if self.ftz && subnormal { bits & sign } else { bits }
        };
        let [a, b, c] = operands.map(|bits| round::widen(flush(bits), format));
        let exact = self.exact(a, b, c);
        let exact = if self.relu && exact <= 0.0 { 0.0 } else { exact };
        let exact = if self.sat { saturate(exact) } else { exact };
        flush(round::round(exact, format, self.rounding))
    }

    /// A value that rounds to any narrow format as the exact result does.
    fn exact(&self, a: f64, b: f64, c: f64) -> f64 {
        match self.op {
            FormulaOp::Binary(FloatBinaryOp::Add) => self.zero_sign(a, b, round::add_odd(a, b)),
            FormulaOp::Binary(FloatBinaryOp::Sub) => self.zero_sign(a, -b, round::add_odd(a, -b)),
            FormulaOp::Binary(FloatBinaryOp::Mul) => a * b,
            FormulaOp::Binary(FloatBinaryOp::Div) => round::div_odd(a, b),
            FormulaOp::Binary(op) => least_or_most(op, self.nan, a, b),
            FormulaOp::Fma => self.zero_sign(a * b, c, round::add_odd(a * b, c)),
            FormulaOp::Unary(op) => unary(op, a, round::sqrt_odd, |a| round::div_odd(1.0, a)),
            FormulaOp::Copysign => b.abs().copysign(a),
        }
    }

    /// A sum that cancels is minus zero when rounding down.
    fn zero_sign(&self, a: f64, b: f64, sum: f64) -> f64 {
        let cancelled = sum == 0.0 && (a.is_sign_negative() != b.is_sign_negative());
        if cancelled && self.rounding == Rounding::Rm { -0.0 } else { sum }
    }

    /// `f64` operations.
    fn wide(&self, [a, b, c]: [f64; 3]) -> u64 {
        let mode = self.rounding;
        let value = match self.op {
            FormulaOp::Binary(FloatBinaryOp::Add) => {
                self.zero_sign(a, b, round::directed(a + b, round::add_error(a, b, a + b), mode))
            }
            FormulaOp::Binary(FloatBinaryOp::Sub) => {
                self.zero_sign(a, -b, round::directed(a - b, round::add_error(a, -b, a - b), mode))
            }
            FormulaOp::Binary(FloatBinaryOp::Mul) => {
                round::directed(a * b, round::mul_error(a, b, a * b), mode)
            }
            FormulaOp::Binary(FloatBinaryOp::Div) => {
                round::directed(a / b, round::div_error(a, b, a / b), mode)
            }
            FormulaOp::Binary(op) => least_or_most(op, self.nan, a, b),
            FormulaOp::Fma => {
                let result = a.mul_add(b, c);
                self.zero_sign(a * b, c, round::directed(result, round::fma_error(a, b, c, result), mode))
            }
            FormulaOp::Unary(FloatUnaryOp::Neg) => return (-a).to_bits(),
            FormulaOp::Unary(FloatUnaryOp::Abs) => return a.abs().to_bits(),
            FormulaOp::Copysign => return b.abs().copysign(a).to_bits(),
            FormulaOp::Unary(op) => unary(
                op,
                a,
                |a| round::directed(a.sqrt(), round::sqrt_error(a, a.sqrt()), mode),
                |a| round::directed(1.0 / a, round::div_error(1.0, a, 1.0 / a), mode),
            ),
        };
        if value.is_nan() { NAN64 } else { value.to_bits() }
    }
}

/// To the range from 0 to 1; NaN becomes 0.
pub fn saturate(value: f64) -> f64 {
    if value > 0.0 { value.min(1.0) } else { 0.0 }
}

fn least_or_most(op: FloatBinaryOp, keep_nan: bool, a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => return f64::NAN,
        (true, false) => return if keep_nan { f64::NAN } else { b },
        (false, true) => return if keep_nan { f64::NAN } else { a },
        _ => {}
    }
    let a_first = a < b || (a == b && a.is_sign_negative());
    if a_first == (op == FloatBinaryOp::Min) { a } else { b }
}

fn unary(op: FloatUnaryOp, a: f64, sqrt: impl Fn(f64) -> f64, reciprocal: impl Fn(f64) -> f64) -> f64 {
    match op {
        FloatUnaryOp::Neg => -a,
        FloatUnaryOp::Abs => a.abs(),
        FloatUnaryOp::Sqrt => sqrt(a),
        FloatUnaryOp::Rcp => reciprocal(a),
        FloatUnaryOp::Rsqrt => 1.0 / a.sqrt(),
        FloatUnaryOp::Sin => a.sin(),
        FloatUnaryOp::Cos => a.cos(),
        FloatUnaryOp::Lg2 => a.log2(),
        FloatUnaryOp::Ex2 => a.exp2(),
        FloatUnaryOp::Tanh => a.tanh(),
    }
}

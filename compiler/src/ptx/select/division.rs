//! f32 quotients by one divisor, rounded correctly, at three or four instructions each.
//!
//! A single `div.rn` is about ten instructions and a branch. Where a thread divides many numbers by the same one (a
//! row by its sum), the reciprocal r of the divisor y is computed once, rounded correctly, and
//!
//! ```text
//! q = x·r      rest = x - q·y      quotient = q + rest·r        (the last two fused)
//! ```
//!
//! is x/y rounded to nearest (Markstein's theorem), as long as nothing on the way leaves the range of normal numbers.
//! That is looked at once for all: y is within 2^-20 and 2^100, and no quotient is below 2^-80 or NaN (then `rest` is a
//! multiple of 2^-149, so it is exact; a quotient that overflows on the way becomes NaN). Else the dividends that are 0, which are
//! frequent, are left out: what lies behind the end of a row, what an activation or a mask has set to 0. Their quotient is x·r.
//! Where that does not help, all quotients are computed anew by `div.rn`. Both stand behind branches.
//!
//! A dividend that comes of integers (`v as f32 + 0.5`), by a constant, needs no look: its quotients are 0 or large enough.
//! So there is no branch, behind which loads would have to wait.

use super::super::instruction::*;
use super::super::operand::{Label, Operand, Reg};
use super::super::types::Type;
use super::selector::Selector;
use crate::analysis::Spacing;
use crate::data::Scalar;
use crate::ir::entities::Inst;
use crate::ir::op::Opcode;
use crate::mutants::mutant;

/// Fewer quotients than this are not worth a reciprocal.
const FEWEST: usize = 4;
/// Dividends stay in registers until their group has been looked at: 32 at once cost an H200 two blocks of eight.
const MOST: usize = 8;
/// Divisors between these have reciprocals that are normal numbers, and rests that are exact.
const DIVISORS: (f32, f32) = (9.536_743e-7, 1.267_650_6e30);
/// Quotients from here on have exact rests.
const LEAST_QUOTIENT: f32 = 8.271_806e-25;

impl Selector<'_> {
    /// Selects the division `insts[0]` together with those after it in the same block that have the same divisor and a
    /// dividend that is known by now; whether there were enough of them.
    pub fn quotients(&mut self, insts: &[Inst]) -> bool {
        let kernel = self.kernel;
        let divisor = kernel.insts[insts[0]].arguments[1];
        // `min.NaN`, which watches over the quotients, is of sm_80; under `fast_math` each division is short by itself.
        let kept = self.options.capability >= 80 && !self.kernel.schedule.fast_math();
        if self.scalar(divisor) != Scalar::F32 || !kept {
            return false;
        }
        let group: Vec<Inst> = insts
            .iter()
            .copied()
            .filter(|inst| {
                let data = &kernel.insts[*inst];
                data.opcode == Opcode::Div
                    && data.arguments[1] == divisor
                    && self.maps.values[data.arguments[0]].is_some_and(|dividend| dividend.reg().is_some())
            })
            .collect();
        if group.len() < FEWEST {
            return false;
        }
        let y = self.operand(divisor);
        if let Operand::F32(bits) = y
            && !(DIVISORS.0..=DIVISORS.1).contains(&f32::from_bits(bits).abs())
        {
            return false;
        }
        self.divide_all(&group, y);
        for inst in group {
            self.maps.fused[inst] = true;
        }
        true
    }

    /// Selects a division by a constant whose quotients are known to be regular; whether it is one.
    pub fn regular_quotient(&mut self, inst: Inst) -> bool {
        let data = &self.kernel.insts[inst];
        let [dividend, divisor] = data.arguments[..] else { return false };
        let is_kept = self.scalar(divisor) == Scalar::F32 && !self.kernel.schedule.fast_math();
        let Operand::F32(bits) = self.operand(divisor) else { return false };
        let y = f32::from_bits(bits);
        if !is_kept || !(DIVISORS.0..=DIVISORS.1).contains(&y.abs()) {
            return false;
        }
        let Some(spacing) = Spacing::of(self.kernel, dividend) else { return false };
        // 2^-80 is the least quotient.
        if f64::from(spacing.unit) - f64::from(y.abs()).log2() < -79.0 {
            return false;
        }
        let (x, inverse) = (self.operand(dividend), Operand::f32(1.0 / y));
        self.quotient(inst, x, Operand::f32(-y), inverse);
        true
    }

    /// Selects `x / y` by the reciprocal of `y`; gives the result's register.
    fn quotient(&mut self, inst: Inst, x: Operand, minus_y: Operand, inverse: Operand) -> Reg {
        let ty = Type::F32;
        let near = self.float(FloatBinaryOp::Mul, ty, x, inverse);
        let rest = self.temp(ty);
        self.builder.emit(Fma { ty, dst: rest, a: near.into(), b: minus_y, c: x, ..Default::default() });
        let dst = self.define(self.kernel.insts[inst].results[0]);
        let (a, c) = (rest.into(), near.into());
        let a = mutant!("select: quotients are not corrected", a, Operand::f32(0.0));
        self.builder.emit(Fma { ty, dst, a, b: inverse, c, ..Default::default() });
        dst
    }

    fn divide_all(&mut self, group: &[Inst], y: Operand) {
        let ty = Type::F32;
        let (inverse, minus_y) = match y {
            Operand::F32(bits) => {
                let y = f32::from_bits(bits);
                (Operand::f32(1.0 / y), Operand::f32(-y))
            }
            y => {
                let inverse = self.builder.reg_for(ty, "inverse");
                let rounding = Some(Rounding::Rn);
                let op = FloatUnaryOp::Rcp;
                self.builder.emit(FloatUnary { op, rounding, ty, dst: inverse, a: y, ..Default::default() });
                (inverse.into(), self.float_unary(FloatUnaryOp::Neg, y).into())
            }
        };
        let usual = y.reg().map(|_| {
            let size = self.float_unary(FloatUnaryOp::Abs, y);
            let above = self.setp(Compare::Ge, ty, size.into(), Operand::f32(DIVISORS.0));
            let below = self.setp(Compare::Le, ty, size.into(), Operand::f32(DIVISORS.1));
            self.logic(LogicBinaryOp::And, Type::Pred, above.into(), below.into())
        });
        for part in group.chunks(MOST) {
            self.divide_some(part, y, minus_y, inverse, usual);
        }
    }

    fn divide_some(
        &mut self,
        group: &[Inst],
        y: Operand,
        minus_y: Operand,
        inverse: Operand,
        usual: Option<Reg>,
    ) {
        let kernel = self.kernel;
        let ty = Type::F32;
        let mut least: Option<Reg> = None;
        let mut quotients = Vec::with_capacity(group.len());
        for inst in group {
            let data = &kernel.insts[*inst];
            let x = self.operand(data.arguments[0]);
            let dst = self.quotient(*inst, x, minus_y, inverse);
            let size = self.float_unary(FloatUnaryOp::Abs, dst.into());
            least = Some(match least {
                None => size,
                Some(before) => self.float_least(before.into(), size.into()),
            });
            quotients.push((x, dst));
        }
        let Some(least) = least else { return };
        let done = self.builder.label("divided");
        self.divided_if_regular(least, usual, done);
        let mut least: Option<Reg> = None;
        for (x, dst) in &quotients {
            let is_zero = self.setp(Compare::Eq, ty, *x, Operand::f32(0.0));
            let (op, rounding) = (FloatBinaryOp::Mul, Some(Rounding::Rn));
            let times = FloatBinary { op, rounding, ty, dst: *dst, a: *x, b: inverse, ..Default::default() };
            self.builder.emit_if(is_zero, times);
            let size = self.float_unary(FloatUnaryOp::Abs, (*dst).into());
            let size = self.selp(ty, is_zero, Operand::f32(1.0), size.into());
            least = Some(match least {
                None => size,
                Some(before) => self.float_least(before.into(), size.into()),
            });
        }
        if let Some(least) = least {
            self.divided_if_regular(least, usual, done);
        }
        for (x, dst) in quotients {
            self.float_into(FloatBinaryOp::Div, ty, dst, x, y);
        }
        self.builder.place(done);
    }

    /// Goes on at a label where the quotients, of which this is the least in size, are what division gives.
    fn divided_if_regular(&mut self, least: Reg, usual: Option<Reg>, done: Label) {
        let mut regular = self.setp(Compare::Ge, Type::F32, least.into(), Operand::f32(LEAST_QUOTIENT));
        if let Some(usual) = usual {
            regular = self.logic(LogicBinaryOp::And, Type::Pred, regular.into(), usual.into());
        }
        self.builder.emit_if(regular, Bra { uni: false, target: done });
    }

    fn float_unary(&mut self, op: FloatUnaryOp, a: Operand) -> Reg {
        let ty = Type::F32;
        let dst = self.temp(ty);
        self.builder.emit(FloatUnary { op, ty, dst, a, ..Default::default() });
        dst
    }

    /// The lesser of two; NaN if either is.
    fn float_least(&mut self, a: Operand, b: Operand) -> Reg {
        let (op, ty) = (FloatBinaryOp::Min, Type::F32);
        let dst = self.temp(ty);
        self.builder.emit(FloatBinary { op, nan: true, ty, dst, a, b, ..Default::default() });
        dst
    }
}

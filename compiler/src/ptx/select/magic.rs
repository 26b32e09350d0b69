//! Division of 64-bit integers by a constant, without a division: ptxas makes some 80 instructions of one, powers of two
//! included; of the 32-bit one it makes what stands here by itself.
//!
//! The high half of a product by a multiplier near 2^(64 + shift) / divisor, shifted, is the quotient. Multipliers
//! are those of Henry S. Warren, *Hacker's Delight*, second edition, chapter 10.

use super::super::instruction::*;
use super::super::operand::{Operand, Reg};
use super::super::types::Type;
use super::selector::Selector;

/// Multiplier and shift for signed dividends; the divisor is at least 3 and no power of two. As the multiplier is a signed
/// number, a negative one stands for 2^64 more: then the dividend is added.
fn signed(divisor: u64) -> (i64, u32) {
    // The least shift for which 2^(64 + shift) / divisor, rounded up, is exact enough: its excess times the largest
    // dividend stays below one part of the divisor.
    let divisor = u128::from(divisor);
    let largest = (1 << 63) - (1 << 63) % divisor - 1;
    for shift in 0..63 {
        let power = 1u128 << (64 + shift);
        let excess = divisor - power % divisor;
        if power > largest * excess {
            return (((power + excess) / divisor) as u64 as i64, shift);
        }
    }
    unreachable!("2^126 is more than 2^63 times any divisor")
}

/// Multiplier, shift, and whether the multiplier lacks 2^64, for unsigned dividends; the divisor is at least 3 and no
/// power of two.
fn unsigned(divisor: u64) -> (u64, u32, bool) {
    let wide = u128::from(divisor);
    let bits = 64 - (divisor - 1).leading_zeros();
    for shift in 0..=bits {
        // 2^(64 + shift) / divisor rounded up; of 2^128 what is less by one.
        let power = if shift == 64 { u128::MAX } else { (1u128 << (64 + shift)) - 1 };
        let multiplier = power / wide + 1;
        let excess = multiplier.wrapping_mul(wide).wrapping_sub(power.wrapping_add(1));
        if excess <= 1 << shift {
            return (multiplier as u64, shift, multiplier > u128::from(u64::MAX));
        }
    }
    unreachable!("a shift by all bits of the divisor is enough")
}

impl Selector<'_> {
    /// `a / divisor`, or its remainder, toward zero, of 64 bits. `None` for the divisors 0, 1 and -1.
    pub fn divide_by_constant(
        &mut self,
        ty: Type,
        a: Operand,
        divisor: i128,
        remainder: bool,
    ) -> Option<Operand> {
        // The literal of a large unsigned number is a negative one.
        let divisor = if ty.is_signed() { divisor } else { divisor.rem_euclid(1 << 64) };
        let size = u64::try_from(divisor.unsigned_abs()).ok().filter(|size| *size > 1)?;
        let quotient: Operand = match (size.is_power_of_two(), ty.is_signed()) {
            (true, true) => self.shifted_down(a, size.ilog2()).into(),
            (true, false) if remainder => {
                let mask = Operand::Int((size - 1) as i64);
                return Some(self.logic(LogicBinaryOp::And, Type::B64, a, mask).into());
            }
            (true, false) => self.right(ty, a, size.ilog2()),
            (false, true) => self.signed_quotient(a, size),
            (false, false) => self.unsigned_quotient(a, size),
        };
        if remainder {
            // The sign of the divisor does not count.
            let whole = self.int(IntBinaryOp::Mul, ty, quotient, Operand::Int(size as i64));
            return Some(self.int(IntBinaryOp::Sub, ty, a, whole.into()).into());
        }
        if divisor < 0 {
            return Some(self.int(IntBinaryOp::Sub, ty, Operand::Int(0), quotient).into());
        }
        Some(quotient)
    }

    fn right(&mut self, ty: Type, a: Operand, count: u32) -> Operand {
        match count {
            0 => a,
            _ => self.shift(ShiftOp::Right, ty, a, Operand::Int(i64::from(count))).into(),
        }
    }

    /// A signed quotient by 2^`count`: negative dividends get what rounds them up.
    fn shifted_down(&mut self, a: Operand, count: u32) -> Reg {
        let sign = self.right(Type::S64, a, 63);
        let round = self.right(Type::U64, sign, 64 - count);
        let sum = self.int(IntBinaryOp::Add, Type::S64, a, round);
        self.shift(ShiftOp::Right, Type::S64, sum.into(), Operand::Int(i64::from(count)))
    }

    fn high(&mut self, ty: Type, a: Operand, multiplier: i64) -> Operand {
        let dst = self.temp(ty);
        let (op, part, b) = (IntBinaryOp::Mul, MulPart::Hi, Operand::Int(multiplier));
        self.builder.emit(IntBinary { op, part, ty, dst, a, b, ..Default::default() });
        dst.into()
    }

    fn signed_quotient(&mut self, a: Operand, divisor: u64) -> Operand {
        let (multiplier, shift) = signed(divisor);
        let mut high = self.high(Type::S64, a, multiplier);
        if multiplier < 0 {
            high = self.int(IntBinaryOp::Add, Type::S64, high, a).into();
        }
        let down = self.right(Type::S64, high, shift);
        // Toward zero: one more where the dividend is negative.
        let sign = self.right(Type::U64, down, 63);
        self.int(IntBinaryOp::Add, Type::S64, down, sign).into()
    }

    fn unsigned_quotient(&mut self, a: Operand, divisor: u64) -> Operand {
        let (multiplier, shift, lacks) = unsigned(divisor);
        let high = self.high(Type::U64, a, multiplier as i64);
        if !lacks {
            return self.right(Type::U64, high, shift);
        }
        // (high + a) / 2, which does not overflow this way.
        let rest = self.int(IntBinaryOp::Sub, Type::U64, a, high);
        let half = self.right(Type::U64, rest.into(), 1);
        let mean = self.int(IntBinaryOp::Add, Type::U64, half, high);
        self.right(Type::U64, mean.into(), shift - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divisors() -> Vec<u64> {
        let mut all: Vec<u64> = (3..2000).collect();
        for bits in 11..64 {
            let power = 1u64 << bits;
            all.extend([power - 3, power - 1, power + 1, power + 3, power / 3, power / 5 * 3 + 1, power / 7]);
        }
        all.extend([u64::MAX, u64::MAX - 1, u64::MAX / 3, u64::MAX / 5 * 2]);
        all.retain(|divisor| *divisor > 2 && !divisor.is_power_of_two());
        all
    }

    /// Dividends around multiples of the divisor and around what the type can hold.
    fn dividends(divisor: u64) -> Vec<u64> {
        let mut all = vec![0, 1, u64::MAX, 1 << 63, (1 << 63) - 1, 1 << 32, 0x0123_4567_89ab_cdef];
        for times in [1, 2, 3, 1000, u64::MAX / divisor, (u64::MAX / divisor) / 2, (1 << 63) / divisor] {
            let multiple = divisor.wrapping_mul(times);
            all.extend([multiple.wrapping_sub(1), multiple, multiple.wrapping_add(1)]);
        }
        let negated: Vec<u64> = all.iter().map(|value| value.wrapping_neg()).collect();
        [all, negated].concat()
    }

    #[test]
    fn no_division_is_left() {
        let text = "kernel k(x: i64[n], u: u64[n]) -> y: i64[n], v: u64[n] { forall i in n {\n\
                    y[i] = x[i] / -10 + x[i] % 8\n v[i] = u[i] / (7 as u64) + u[i] % (16 as u64)\n} }";
        let source = crate::source::SourceFile::new("k.krn", text);
        let ptx =
            crate::compile(&source, &crate::CompileOptions::default()).expect("it compiles").compiled.ptx;
        assert!(!ptx.contains("div.") && !ptx.contains("rem."), "{ptx}");
        assert!(ptx.contains("mul.hi.s64") && ptx.contains("mul.hi.u64"), "{ptx}");
    }

    #[test]
    fn signed_multipliers_divide() {
        for divisor in divisors().into_iter().filter(|divisor| *divisor < 1 << 63) {
            let (multiplier, shift) = signed(divisor);
            for dividend in dividends(divisor) {
                let n = dividend as i64;
                let mut high = ((i128::from(n) * i128::from(multiplier)) >> 64) as i64;
                if multiplier < 0 {
                    high = high.wrapping_add(n);
                }
                let down = high >> shift;
                let quotient = down + (down as u64 >> 63) as i64;
                assert_eq!(quotient, n / divisor as i64, "{n} / {divisor}");
            }
        }
    }

    #[test]
    fn unsigned_multipliers_divide() {
        for divisor in divisors() {
            let (multiplier, shift, lacks) = unsigned(divisor);
            for n in dividends(divisor) {
                let high = ((u128::from(n) * u128::from(multiplier)) >> 64) as u64;
                let quotient = if lacks { (((n - high) >> 1) + high) >> (shift - 1) } else { high >> shift };
                assert_eq!(quotient, n / divisor, "{n} / {divisor}");
            }
        }
    }
}

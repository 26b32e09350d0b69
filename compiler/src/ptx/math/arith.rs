//! The few operations out of which every accurate function is written, and helpers made of them.
//!
//! A function written against [`Arith`] is straight-line code: IEEE additions, multiplications, fused
//! multiply-adds, divisions and square roots, integer operations on the bits, comparisons and selections.
//! All of these give the same bits on a CPU and on a GPU. The trait has two kinds of implementation: numbers
//! (`host`), for measuring and for constant folding, and PTX instructions (`emit`). What is measured
//! with the first is therefore what the second computes.
//!
//! The exceptions are the three `unit_` functions of f32: the GPU's special function unit computes them from
//! tables, with an error of its own ([`UNIT_ULP`]). The host rounds them correctly; what is built on them has bounds
//! with room for the unit, and is measured on a GPU.
//!
//! Methods take `&self` so that calls nest; an implementation that appends instructions keeps its builder in
//! a cell.

/// The layout of one IEEE binary format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Bits of the whole number: 32 or 64.
    pub bits: u32,
    /// Stored significand bits: 23 or 52.
    pub mantissa: u32,
    /// The exponent bias: 127 or 1023.
    pub bias: i64,
}

impl Format {
    pub const F32: Format = Format { bits: 32, mantissa: 23, bias: 127 };
    pub const F64: Format = Format { bits: 64, mantissa: 52, bias: 1023 };

    /// 1.5 · 2^mantissa: added to a smaller number it leaves the nearest integer in the low bits.
    pub const fn rounder(self) -> f64 {
        (3u64 << (self.mantissa - 1)) as f64
    }

    /// The bit pattern of 1.0.
    pub const fn one_bits(self) -> i64 {
        self.bias << self.mantissa
    }

    /// The sign bit alone, as a signed integer of the format's width.
    pub const fn sign_bit(self) -> i64 {
        i64::MIN >> (64 - self.bits)
    }
}

/// The error of the `unit_` functions in ulp of f32 with which tests hold everything to its bound; powers of two are
/// exact. An H200 was measured: 2^x for x from 0 to 1 is within 1.40 (2.06 below 0), 1/x within 0.98, 1/√x within 1.52.
/// The few arguments where that is more are no worst ones of what is built on them: `docs/math.md`.
pub const UNIT_ULP: f64 = 1.3;

/// Arithmetic in one binary format, with integers of the same width.
///
/// Rounding is to nearest even everywhere; subnormals are kept; comparisons with NaN are false.
pub trait Arith {
    /// A floating-point value.
    type F: Copy;
    /// An integer of the same width, two's complement.
    type I: Copy;
    /// A truth value.
    type P: Copy;

    const FORMAT: Format;

    /// A constant, rounded to the format.
    fn float(value: f64) -> Self::F;
    /// An integer constant, cut to the width.
    fn int(value: i64) -> Self::I;

    fn add(&self, x: Self::F, y: Self::F) -> Self::F;
    fn sub(&self, x: Self::F, y: Self::F) -> Self::F;
    fn mul(&self, x: Self::F, y: Self::F) -> Self::F;
    fn div(&self, x: Self::F, y: Self::F) -> Self::F;
    /// `x * y + z`, rounded once.
    fn fma(&self, x: Self::F, y: Self::F, z: Self::F) -> Self::F;
    /// `x * y + z`, rounded once, kept within 0 and 1; NaN becomes 0.
    fn fma_clamped(&self, x: Self::F, y: Self::F, z: Self::F) -> Self::F;
    fn sqrt(&self, x: Self::F) -> Self::F;
    /// 2^x by the special function unit, exact for integers: f32 alone. Subnormal arguments and results count as zero.
    fn unit_exp2(&self, x: Self::F) -> Self::F;
    /// 1/x by the special function unit: f32 alone. Subnormal arguments and results count as zero.
    fn unit_rcp(&self, x: Self::F) -> Self::F;
    /// 1/√x by the special function unit, subnormal arguments included: f32 alone.
    fn unit_rsqrt(&self, x: Self::F) -> Self::F;
    fn neg(&self, x: Self::F) -> Self::F;
    fn abs(&self, x: Self::F) -> Self::F;
    /// The nearest integer, ties to even, as a float.
    fn round(&self, x: Self::F) -> Self::F;

    /// The integer that `x` is; `x` must be integral and small enough.
    fn to_int(&self, x: Self::F) -> Self::I;
    /// The float nearest to a signed integer.
    fn to_float(&self, x: Self::I) -> Self::F;
    fn bits(&self, x: Self::F) -> Self::I;
    fn with_bits(&self, x: Self::I) -> Self::F;

    fn int_add(&self, x: Self::I, y: Self::I) -> Self::I;
    fn int_sub(&self, x: Self::I, y: Self::I) -> Self::I;
    /// The low half of the product.
    fn int_mul(&self, x: Self::I, y: Self::I) -> Self::I;
    /// The high half of the unsigned product.
    fn int_mul_high(&self, x: Self::I, y: Self::I) -> Self::I;
    fn int_and(&self, x: Self::I, y: Self::I) -> Self::I;
    fn int_or(&self, x: Self::I, y: Self::I) -> Self::I;
    fn int_xor(&self, x: Self::I, y: Self::I) -> Self::I;
    /// Shifts left; the count is below the width.
    fn shl(&self, x: Self::I, count: Self::I) -> Self::I;
    /// Shifts right and fills with zeros; the count is below the width.
    fn shr(&self, x: Self::I, count: Self::I) -> Self::I;
    /// Shifts right and fills with the sign; the count is below the width.
    fn sar(&self, x: Self::I, count: Self::I) -> Self::I;

    fn lt(&self, x: Self::F, y: Self::F) -> Self::P;
    fn le(&self, x: Self::F, y: Self::F) -> Self::P;
    fn eq(&self, x: Self::F, y: Self::F) -> Self::P;
    fn int_eq(&self, x: Self::I, y: Self::I) -> Self::P;
    /// Unsigned comparison.
    fn int_below(&self, x: Self::I, y: Self::I) -> Self::P;
    fn and(&self, x: Self::P, y: Self::P) -> Self::P;
    fn or(&self, x: Self::P, y: Self::P) -> Self::P;
    fn not(&self, x: Self::P) -> Self::P;

    /// `yes` where `p` holds, else `no`.
    fn select(&self, p: Self::P, yes: Self::F, no: Self::F) -> Self::F;
    fn select_int(&self, p: Self::P, yes: Self::I, no: Self::I) -> Self::I;

    /// `usual` where `p` holds; elsewhere what `rare` computes, behind a branch.
    fn usually(
        &self,
        p: Self::P,
        usual: Reduced<Self>,
        rare: impl FnOnce() -> Reduced<Self>,
    ) -> Reduced<Self>;

    /// The argument that belongs to this format.
    fn pick<T>(narrow: T, wide: T) -> T {
        if Self::FORMAT.bits == 32 { narrow } else { wide }
    }

    /// `c0 + c1 x + c2 x² + …` by Horner's rule.
    fn polynomial(&self, x: Self::F, coefficients: &[f64]) -> Self::F {
        let (last, rest) = coefficients.split_last().expect("a polynomial has a coefficient");
        rest.iter().rev().fold(Self::float(*last), |sum, c| self.fma(sum, x, Self::float(*c)))
    }

    /// 2^i for an exponent of a normal number.
    fn power_of_two(&self, i: Self::I) -> Self::F {
        let biased = self.int_add(i, Self::int(Self::FORMAT.bias));
        self.with_bits(self.shl(biased, Self::int(Self::FORMAT.mantissa.into())))
    }

    /// `x · 2^i`, rounded once, for `i` up to twice the exponent range and `x` near one.
    fn scale(&self, x: Self::F, i: Self::I) -> Self::F {
        let half = self.sar(i, Self::int(1));
        let other = self.int_sub(i, half);
        self.mul(self.mul(x, self.power_of_two(half)), self.power_of_two(other))
    }

    /// `x`, negative if `sign` is; `x` itself may be negative only then.
    fn with_sign(&self, x: Self::F, sign: Self::F) -> Self::F {
        let sign = self.int_and(self.bits(sign), Self::int(Self::FORMAT.sign_bit()));
        self.with_bits(self.int_or(self.bits(x), sign))
    }

    fn is_nan(&self, x: Self::F) -> Self::P {
        self.not(self.eq(x, x))
    }

    /// The integer nearest to `x · factor`, as a float and as an integer; it must stay below 2^(mantissa - 2).
    fn nearest_multiple(&self, x: Self::F, factor: f64) -> (Self::F, Self::I) {
        let rounder = Self::float(Self::FORMAT.rounder());
        let shifted = self.fma(x, Self::float(factor), rounder);
        (self.sub(shifted, rounder), self.int_sub(self.bits(shifted), self.bits(rounder)))
    }
}

/// A reduced argument: a number in two words, and the integer that was taken off.
pub type Reduced<A> = (Double<A>, <A as Arith>::I);

/// An unevaluated sum of two words; the second is below half a unit in the last place of the first.
pub struct Double<A: Arith + ?Sized> {
    pub hi: A::F,
    pub lo: A::F,
}

impl<A: Arith + ?Sized> Clone for Double<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Arith + ?Sized> Copy for Double<A> {}

impl<A: Arith> Double<A> {
    pub fn new(hi: A::F, lo: A::F) -> Self {
        Double { hi, lo }
    }

    /// A constant in two words.
    pub fn constant((hi, lo): (f64, f64)) -> Self {
        Double { hi: A::float(hi), lo: A::float(lo) }
    }

    /// `x + y` exactly, if `x` is the larger or zero.
    pub fn fast_sum(a: &A, x: A::F, y: A::F) -> Self {
        let hi = a.add(x, y);
        Double { hi, lo: a.add(a.sub(x, hi), y) }
    }

    /// `x · y` exactly.
    pub fn product(a: &A, x: A::F, y: A::F) -> Self {
        let hi = a.mul(x, y);
        Double { hi, lo: a.fma(x, y, a.neg(hi)) }
    }

    /// The product of two doubles, to about twice the precision of the format.
    pub fn mul(self, a: &A, other: Self) -> Self {
        let exact = Self::product(a, self.hi, other.hi);
        let cross = a.fma(self.hi, other.lo, a.fma(self.lo, other.hi, exact.lo));
        Double { hi: exact.hi, lo: cross }
    }

    /// The sum of two doubles, of which `self` is the larger.
    pub fn add_smaller(self, a: &A, other: Self) -> Self {
        let sum = Self::fast_sum(a, self.hi, other.hi);
        let low = a.add(sum.lo, a.add(self.lo, other.lo));
        Self::fast_sum(a, sum.hi, low)
    }
}

//! `sin`, `cos`, `tan`, `sinpi`, `cospi`: reduction to a quadrant, two polynomials, and the quadrant's choice between them.

use super::arith::{Arith, Double, Reduced};
use super::reduction::{HALF_PI_PAIR_32, HALF_PI_PAIR_64, reduce};
use crate::builtins::MathFunction;

// Fitted by xtask/math/fit.py: (sin r / r - 1) / r², in r², over |r| <= π/4.
const SIN32: [f64; 4] =
    [-0.1666666716337204, 0.008333372883498669, -0.00019850277749355882, 2.8040099095960613e-06];
const SIN64: [f64; 7] = [
    -0.16666666666666666,
    0.008333333333333099,
    -0.00019841269841054695,
    2.755731912805367e-06,
    -2.505208568481578e-08,
    1.6056217597630634e-10,
    -7.483593981292062e-13,
];
// (cos r - 1 + r²/2) / r⁴, in r².
const COS32: [f64; 4] =
    [0.0416666679084301, -0.0013888974208384752, 2.481971023371443e-05, -2.865659780582064e-07];
const COS64: [f64; 7] = [
    0.041666666666666664,
    -0.0013888888888888436,
    2.4801587301245344e-05,
    -2.75573190937777e-07,
    2.0876730138844766e-09,
    -1.1467825606560421e-11,
    4.637049747158632e-14,
];

/// Sine and cosine of a reduced argument, each as a leading word and a correction that is not yet added.
fn kernels<A: Arith>(a: &A, r: Double<A>) -> (Double<A>, Double<A>) {
    let z = a.mul(r.hi, r.hi);
    // 1 - z/2, and what its rounding lost.
    let half = a.mul(z, A::float(0.5));
    let w = a.sub(A::float(1.0), half);
    let lost = a.sub(a.sub(A::float(1.0), w), half);
    // sin(hi + lo) = sin(hi) + lo·cos(hi), cos(hi + lo) = cos(hi) - lo·sin(hi), to second order in lo.
    let series = a.mul(a.mul(r.hi, z), a.polynomial(z, A::pick(&SIN32, &SIN64)));
    let sin = Double::new(r.hi, a.fma(r.lo, w, series));
    let series = a.mul(a.mul(z, z), a.polynomial(z, A::pick(&COS32, &COS64)));
    let correction = a.sub(lost, a.mul(r.hi, r.lo));
    let cos = Double::new(w, a.add(series, correction));
    (sin, cos)
}

/// What sine and cosine of one argument have in common.
pub struct Angle<A: Arith> {
    /// Of the argument less quarter turns.
    pub sin: A::F,
    pub cos: A::F,
    /// How many quarter turns.
    pub quarters: A::I,
}

impl<A: Arith> Clone for Angle<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Arith> Copy for Angle<A> {}

impl<A: Arith> Angle<A> {
    fn new(a: &A, (r, quarters): Reduced<A>) -> Self {
        let (sin, cos) = kernels(a, r);
        Self { sin: a.add(sin.hi, sin.lo), cos: a.add(cos.hi, cos.lo), quarters }
    }

    /// Whether a function is computed from an angle.
    pub fn is_of(function: MathFunction) -> bool {
        use MathFunction::{Cos, Cospi, Sin, Sinpi};
        matches!(function, Sin | Cos | Sinpi | Cospi)
    }

    /// The angle of a function's argument; `None` of a function that is no sine or cosine.
    pub fn of(a: &A, function: MathFunction, x: A::F) -> Option<Self> {
        match function {
            MathFunction::Sin | MathFunction::Cos => Some(Self::new(a, reduce(a, x))),
            MathFunction::Sinpi | MathFunction::Cospi => Some(Self::new(a, reduce_half_turns(a, x))),
            _ => None,
        }
    }

    /// The function of its argument, where it is one of those with an angle.
    pub fn apply(self, a: &A, function: MathFunction, x: A::F) -> A::F {
        let zero = A::float(0.0);
        match function {
            MathFunction::Sin => tiny(a, x, by_quadrant(a, self, self.quarters)),
            MathFunction::Sinpi => {
                // Of an integer ±0 with its sign.
                let result = by_quadrant(a, self, self.quarters);
                a.select(a.eq(result, zero), a.with_sign(zero, x), result)
            }
            // Of half of an odd integer +0: of -0 the sum makes that.
            MathFunction::Cospi => a.add(by_quadrant(a, self, a.int_add(self.quarters, A::int(1))), zero),
            _ => by_quadrant(a, self, a.int_add(self.quarters, A::int(1))),
        }
    }
}

/// The sine where bit 0 of `q` is clear, the cosine where it is set, negated where bit 1 is set.
fn by_quadrant<A: Arith>(a: &A, angle: Angle<A>, q: A::I) -> A::F {
    let even = a.int_eq(a.int_and(q, A::int(1)), A::int(0));
    let value = a.select(even, angle.sin, angle.cos);
    let sign = a.shl(a.int_and(q, A::int(2)), A::int(i64::from(A::FORMAT.bits) - 2));
    a.with_bits(a.int_xor(a.bits(value), sign))
}

/// Arguments so small that sine and tangent are the argument: keeps subnormals and the sign of zero.
fn tiny<A: Arith>(a: &A, x: A::F, result: A::F) -> A::F {
    let limit = A::float(A::pick(2f64.powi(-13), 2f64.powi(-28)));
    a.select(a.lt(a.abs(x), limit), x, result)
}

/// The quotient of the two, its rounding errors and theirs put right by one correction.
pub fn tan<A: Arith>(a: &A, x: A::F) -> A::F {
    let (r, q) = reduce(a, x);
    let (sin, cos) = kernels(a, r);
    let sin = Double::fast_sum(a, sin.hi, sin.lo);
    let cos = Double::fast_sum(a, cos.hi, cos.lo);
    let even = a.int_eq(a.int_and(q, A::int(1)), A::int(0));
    // tan(r + π/2) = -cos r / sin r.
    let choose = |yes, no| a.select(even, yes, no);
    let (top, top_lo) = (choose(sin.hi, a.neg(cos.hi)), choose(sin.lo, a.neg(cos.lo)));
    let (bottom, bottom_lo) = (choose(cos.hi, sin.hi), choose(cos.lo, sin.lo));
    let inverse = a.div(A::float(1.0), bottom);
    let quotient = a.mul(top, inverse);
    let left = a.fma(a.neg(quotient), bottom, top);
    let left = a.add(a.fma(a.neg(quotient), bottom_lo, top_lo), left);
    tiny(a, x, a.fma(left, inverse, quotient))
}

/// π·x as an angle of at most π/4 and a number of quarter turns. Whole turns and quarters are taken off exactly, whatever
/// the size of x; NaN for infinities and NaN.
fn reduce_half_turns<A: Arith>(a: &A, x: A::F) -> Reduced<A> {
    let turns = a.round(a.mul(x, A::float(0.5)));
    let within_a_turn = a.fma(turns, A::float(-2.0), x);
    let (n, q) = a.nearest_multiple(within_a_turn, 2.0);
    let r = a.fma(n, A::float(-0.5), within_a_turn);
    let (half_hi, half_lo) = A::pick(HALF_PI_PAIR_32, HALF_PI_PAIR_64);
    let angle: Double<A> = Double::product(a, r, A::float(2.0 * half_hi));
    (Double::new(angle.hi, a.fma(r, A::float(2.0 * half_lo), angle.lo)), q)
}

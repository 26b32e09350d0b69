//! Arithmetic, comparison and bit operations on wide scalars, as `typed.rs` fixes them, with their bounds.
//! Every function gives `None` where the operands' types are none that the checker lets through.

use super::bound::{ErrorModel, Format, power_of_two};
use super::value::{Number, Plain, Products};
use crate::check::typed::{BinaryOp, CompareOp};
use crate::data::tf32_from_f32;

/// One integer operation; the right operand of a shift may be of another integer type.
macro_rules! integer {
    ($ty:ty, $op:expr, $a:expr, $right:expr, $variant:ident) => {{
        let a: $ty = $a;
        match $op {
            BinaryOp::Shl => a.wrapping_shl($right.as_integer()? as u32),
            BinaryOp::Shr => a.wrapping_shr($right.as_integer()? as u32),
            op => {
                let Plain::$variant(b) = $right else { return None };
                match op {
                    BinaryOp::Add => a.wrapping_add(b),
                    BinaryOp::Sub => a.wrapping_sub(b),
                    BinaryOp::Mul => a.wrapping_mul(b),
                    BinaryOp::Div if b == 0 => 0,
                    BinaryOp::Div => a.wrapping_div(b),
                    BinaryOp::Rem if b == 0 => 0,
                    BinaryOp::Rem => a.wrapping_rem(b),
                    BinaryOp::And => a & b,
                    BinaryOp::Or => a | b,
                    BinaryOp::Xor => a ^ b,
                    BinaryOp::Shl | BinaryOp::Shr => return None,
                }
            }
        }
    }};
}

/// The bound of an infinity that is the overflow of a finite product. Fused with a sum the product would not
/// have overflowed: harmless beside finite numbers, but it meets another infinity as a finite number would.
const OVERFLOWED: f64 = f64::MIN_POSITIVE;

/// Operands of one type; a shift's right operand may be any wide integer.
pub fn binary(op: BinaryOp, left: Number, right: Number, model: &ErrorModel) -> Option<Number> {
    let value = match (left.value, right.value) {
        (Plain::F32(_), Plain::F32(_)) | (Plain::F64(_), Plain::F64(_)) => {
            return float_binary(op, left, right, model);
        }
        (Plain::Bool(a), Plain::Bool(b)) => Plain::Bool(match op {
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor => a ^ b,
            _ => return None,
        }),
        (Plain::I32(a), _) => Plain::I32(integer!(i32, op, a, right.value, I32)),
        (Plain::I64(a), _) => Plain::I64(integer!(i64, op, a, right.value, I64)),
        (Plain::U32(a), _) => Plain::U32(integer!(u32, op, a, right.value, U32)),
        (Plain::U64(a), _) => Plain::U64(integer!(u64, op, a, right.value, U64)),
        _ => return None,
    };
    Some(Number::exact(value).uncertain_if(left.error != 0.0 || right.error != 0.0))
}

fn float_binary(op: BinaryOp, left: Number, right: Number, model: &ErrorModel) -> Option<Number> {
    let format = Format::of(left.value.scalar())?;
    let (a, b) = (left.value.as_float()?, right.value.as_float()?);
    let (ea, eb) = (left.error, right.error);
    // In f64 these are exact enough that rounding them to f32 is the correctly rounded f32 operation.
    let exact = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        BinaryOp::Rem => a % b,
        _ => return None,
    };
    let value = format.round(exact);
    if let Some(rounding) = model.rounding
        && !left.is_uncertain()
        && !right.is_uncertain()
    {
        let ulp = model.division_ulp[usize::from(format == Format::F64)];
        let promise = match op {
            BinaryOp::Div => ulp * format.spacing(exact),
            BinaryOp::Mul if format == Format::F32 => lost(left, right, model).min(f64::from(f32::MAX)),
            _ => 0.0,
        };
        let value = if promise > 0.0 { rounding.function(format, exact, promise) } else { value };
        return Plain::float(value, left.value.scalar()).map(Number::exact);
    }
    let error = if left.is_uncertain() || right.is_uncertain() {
        f64::INFINITY
    } else {
        // What the operands' errors can do to the exact result; then the two roundings.
        let moved = match op {
            // Only which infinities meet matters.
            BinaryOp::Add | BinaryOp::Sub if a.is_infinite() || b.is_infinite() => {
                let overflowed = a.is_infinite() && ea > 0.0 || b.is_infinite() && eb > 0.0;
                if exact.is_nan() && !a.is_nan() && !b.is_nan() && overflowed { f64::INFINITY } else { 0.0 }
            }
            BinaryOp::Add | BinaryOp::Sub => ea + eb,
            BinaryOp::Mul if a.is_infinite() || b.is_infinite() => straddles(a, ea) + straddles(b, eb),
            BinaryOp::Mul => a.abs() * eb + b.abs() * ea + ea * eb,
            BinaryOp::Div => straddles(b, eb) + quotient_error(a, b, exact, ea, eb),
            _ => remainder_error(a, b, ea, eb),
        };
        let mut rounding = if moved > 0.0 { format.spacing(exact.abs() + moved) } else { 0.0 };
        if op == BinaryOp::Mul && model.contraction && !product_is_exact(a, b, value, format) {
            // Not half of the smallest number, which is none.
            rounding += (0.5 * format.spacing(exact)).max(format.spacing(0.0));
        }
        if op == BinaryOp::Div {
            let ulp = model.division_ulp[usize::from(format == Format::F64)];
            if ulp > 0.0 {
                rounding += (ulp + 0.5) * format.spacing(exact.abs() + moved);
            }
        }
        let error = format.settle(
            value,
            exact,
            if value.is_nan() && moved.is_nan() { 0.0 } else { moved + rounding },
        );
        let overflow = op == BinaryOp::Mul && value.is_infinite() && a.is_finite() && b.is_finite();
        if overflow && model.contraction { error.max(OVERFLOWED) } else { error }
    };
    let products = match op {
        BinaryOp::Mul | BinaryOp::Div => {
            let magnitude = if value.is_finite() { value.abs() } else { 0.0 };
            let in_parts = op == BinaryOp::Mul && format == Format::F32;
            Products { count: 1, magnitude, lost: if in_parts { lost(left, right, model) } else { 0.0 } }
        }
        BinaryOp::Add | BinaryOp::Sub => left.products.joined(right.products),
        _ => Products::default(),
    };
    Some(Number { value: Plain::float(value, left.value.scalar())?, error, products })
}

/// What the product of two numbers of `f32` may lack where matrix instructions compute a sum of such.
fn lost(left: Number, right: Number, model: &ErrorModel) -> f64 {
    let values = left.value.as_float().zip(right.value.as_float());
    values.map_or(0.0, |(a, b)| {
        lost_in_parts(a, b) + if model.tf32 { lost_in_tf32((a, left), (b, right)) } else { 0.0 }
    })
}

/// What the product of two numbers of `f32` lacks where each was rounded to 10 bits behind the point.
fn lost_in_tf32((a, left): (f64, Number), (b, right): (f64, Number)) -> f64 {
    // By how much a factor is rounded. One that is a product may be rounded elsewhere: before it was multiplied.
    let rounding = |value: f64, number: Number| {
        let is_known = number.error == 0.0 && number.products.count == 0;
        let rounded = f64::from(tf32_from_f32(value as f32));
        let most = value.abs() + number.error;
        match () {
            () if !value.is_finite() || is_known && rounded == value => 0.0,
            // It becomes infinite, perhaps.
            () if tf32_from_f32(most as f32).is_infinite() => f64::INFINITY,
            () => (most * power_of_two(-11)).max(power_of_two(-137)),
        }
    };
    let (of_left, of_right) = (rounding(a, left), rounding(b, right));
    if of_left == 0.0 && of_right == 0.0 {
        return 0.0;
    }
    if a.is_infinite() || b.is_infinite() {
        // The other one may become zero.
        let of_both = [(a, of_left), (b, of_right)];
        let vanishes = of_both
            .iter()
            .any(|(value, rounding)| value.is_finite() && value.abs() <= *rounding && *rounding > 0.0);
        return if vanishes { f64::INFINITY } else { 0.0 };
    }
    let (a, b) = (a.abs() + left.error, b.abs() + right.error);
    let lost = a * of_right + b * of_left + of_left * of_right;
    if lost.is_nan() { 0.0 } else { lost }
}

/// What the product of two numbers of `f32` lacks where one of them is the sum of three of `bf16`, none of which has bits below
/// 2^-133 (`tile/contraction/parts.rs`).
fn lost_in_parts(a: f64, b: f64) -> f64 {
    let of = |part: f64, other: f64| {
        let is_small = part != 0.0 && part.abs() < (-110f64).exp2() && other.is_finite();
        if is_small { (-133f64).exp2() * other.abs() } else { 0.0 }
    };
    of(a, b) + of(b, a)
}

/// Infinite where the sign (or being zero) of an operand hangs on its error and matters.
fn straddles(value: f64, error: f64) -> f64 {
    if error > 0.0 && value.abs() <= error { f64::INFINITY } else { 0.0 }
}

fn quotient_error(a: f64, b: f64, quotient: f64, ea: f64, eb: f64) -> f64 {
    if ea == 0.0 && eb == 0.0 || !quotient.is_finite() {
        // Division by zero or of infinities: the class is certain unless the dividend's sign is not.
        return if b == 0.0 { straddles(a, ea) } else { 0.0 };
    }
    if b.is_infinite() { 0.0 } else { (ea + quotient.abs() * eb) / (b.abs() - eb) }
}

/// The remainder is exact (as C's `fmod`), but jumps wherever the truncated quotient does.
fn remainder_error(a: f64, b: f64, ea: f64, eb: f64) -> f64 {
    if ea == 0.0 && eb == 0.0 || a.is_nan() || b.is_nan() || a.is_infinite() {
        return 0.0;
    }
    let quotient = (a / b).trunc();
    let inside = |x: f64, y: f64| (x / y).trunc() == quotient;
    let stable =
        inside(a - ea, b - eb) && inside(a + ea, b - eb) && inside(a - ea, b + eb) && inside(a + ea, b + eb);
    if stable && b.abs() > eb { ea + quotient.abs() * eb } else { f64::INFINITY }
}

/// Whether contracting this product with a sum would change nothing.
fn product_is_exact(a: f64, b: f64, product: f64, format: Format) -> bool {
    if !product.is_finite() {
        // Infinite operands give what they give; an overflowed product may be saved by contraction.
        return a.is_infinite() || b.is_infinite() || product.is_nan();
    }
    if format == Format::F32 {
        return a * b == product;
    }
    // What the product lacks must not underflow itself.
    a == 0.0
        || b == 0.0
        || product.abs() > f64::MIN_POSITIVE / f64::EPSILON && libm::fma(a, b, -product) == 0.0
}

/// Arithmetic negation (integers wrap).
pub fn negate(operand: Number) -> Option<Number> {
    let value = match operand.value {
        Plain::I32(a) => Plain::I32(a.wrapping_neg()),
        Plain::I64(a) => Plain::I64(a.wrapping_neg()),
        Plain::U32(a) => Plain::U32(a.wrapping_neg()),
        Plain::U64(a) => Plain::U64(a.wrapping_neg()),
        Plain::F32(a) => Plain::F32(-a),
        Plain::F64(a) => Plain::F64(-a),
        Plain::Bool(_) => return None,
    };
    Some(Number { value, ..operand })
}

/// Logical on `bool`, bitwise on integers.
pub fn not(operand: Number) -> Option<Number> {
    let value = match operand.value {
        Plain::Bool(a) => Plain::Bool(!a),
        Plain::I32(a) => Plain::I32(!a),
        Plain::I64(a) => Plain::I64(!a),
        Plain::U32(a) => Plain::U32(!a),
        Plain::U64(a) => Plain::U64(!a),
        Plain::F32(_) | Plain::F64(_) => return None,
    };
    Some(Number::within(value, operand.error))
}

/// False with NaN, except `!=`. Uncertain where the bounds overlap.
pub fn compare(op: CompareOp, left: Number, right: Number) -> Option<Number> {
    use std::cmp::Ordering;
    let (ordering, uncertain) = match (left.value, right.value) {
        (Plain::F32(_), Plain::F32(_)) | (Plain::F64(_), Plain::F64(_)) => {
            let (a, b) = (left.value.as_float()?, right.value.as_float()?);
            let slack = left.error + right.error;
            (a.partial_cmp(&b), slack > 0.0 && !((a - b).abs() > slack || a.is_nan() || b.is_nan()))
        }
        (a, b) if a.scalar() == b.scalar() => {
            (Some(a.as_integer()?.cmp(&b.as_integer()?)), left.error != 0.0 || right.error != 0.0)
        }
        _ => return None,
    };
    let uncertain = uncertain || left.is_uncertain() || right.is_uncertain();
    let holds = match op {
        CompareOp::Equal => ordering == Some(Ordering::Equal),
        CompareOp::NotEqual => ordering != Some(Ordering::Equal),
        CompareOp::Less => ordering == Some(Ordering::Less),
        CompareOp::LessEqual => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        CompareOp::Greater => ordering == Some(Ordering::Greater),
        CompareOp::GreaterEqual => matches!(ordering, Some(Ordering::Greater | Ordering::Equal)),
    };
    Some(Number::exact(Plain::Bool(holds)).uncertain_if(uncertain))
}

/// The larger (or smaller) of two numbers; NaN if any is NaN; -0 < +0.
pub fn extreme(largest: bool, left: Number, right: Number) -> Option<Number> {
    let value = match (left.value, right.value) {
        (Plain::F32(_), Plain::F32(_)) | (Plain::F64(_), Plain::F64(_)) => {
            let (a, b) = (left.value.as_float()?, right.value.as_float()?);
            if a.is_nan() {
                left.value
            } else if b.is_nan() {
                right.value
            } else if (a.total_cmp(&b) == std::cmp::Ordering::Greater) == largest {
                left.value
            } else {
                right.value
            }
        }
        (a, b) if a.scalar() == b.scalar() => {
            if (a.as_integer()? > b.as_integer()?) == largest {
                a
            } else {
                b
            }
        }
        _ => return None,
    };
    let error = if value.as_float().is_some_and(f64::is_nan) && !left.is_uncertain() && !right.is_uncertain()
    {
        0.0
    } else {
        left.error.max(right.error)
    };
    Some(Number::within(value, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(op: BinaryOp, a: Plain, b: Plain) -> Plain {
        binary(op, Number::exact(a), Number::exact(b), &ErrorModel::default()).unwrap().value
    }

    #[test]
    fn integer_corners() {
        use BinaryOp::*;
        use Plain::*;
        let table = [
            (Add, I32(i32::MAX), I32(1), I32(i32::MIN)),
            (Sub, U32(0), U32(1), U32(u32::MAX)),
            (Mul, I64(i64::MAX), I64(2), I64(-2)),
            (Div, I32(7), I32(0), I32(0)),
            (Div, I32(-7), I32(2), I32(-3)),
            (Div, I32(i32::MIN), I32(-1), I32(i32::MIN)),
            (Rem, I32(i32::MIN), I32(-1), I32(0)),
            (Rem, I32(-7), I32(2), I32(-1)),
            (Rem, U64(7), U64(0), U64(0)),
            (Div, I64(i64::MIN), I64(-1), I64(i64::MIN)),
            (Shl, I32(1), I32(33), I32(2)),
            (Shl, I32(1), I64(-1), I32(i32::MIN)),
            (Shr, I32(-8), U32(1), I32(-4)),
            (Shr, U32(0x8000_0000), U64(31), U32(1)),
            (Shl, U64(1), I32(65), U64(2)),
            (Xor, U32(5), U32(1), U32(4)),
            (And, Bool(true), Bool(false), Bool(false)),
        ];
        for (op, a, b, expected) in table {
            assert_eq!(run(op, a, b), expected, "{op:?} {a:?} {b:?}");
        }
        assert_eq!(negate(Number::exact(I32(i32::MIN))).unwrap().value, I32(i32::MIN));
        assert_eq!(not(Number::exact(U32(0))).unwrap().value, U32(u32::MAX));
        assert!(binary(Add, Number::exact(I32(1)), Number::exact(I64(1)), &ErrorModel::default()).is_none());
    }

    #[test]
    fn float_operations_round_as_the_type_does() {
        assert_eq!(run(BinaryOp::Add, Plain::F32(16_777_216.0), Plain::F32(1.0)), Plain::F32(16_777_216.0));
        assert_eq!(run(BinaryOp::Div, Plain::F32(1.0), Plain::F32(3.0)), Plain::F32(1.0 / 3.0));
        assert_eq!(run(BinaryOp::Rem, Plain::F32(-7.5), Plain::F32(2.0)), Plain::F32(-1.5));
        assert_eq!(run(BinaryOp::Div, Plain::F64(1.0), Plain::F64(0.0)), Plain::F64(f64::INFINITY));
    }

    #[test]
    fn bounds_are_zero_while_the_machine_is_exact_and_grow_after() {
        let model = ErrorModel::default();
        let number = |value: f32| Number::exact(Plain::F32(value));
        let bound = |op, a, b| binary(op, a, b, &model).unwrap().error;
        assert_eq!(bound(BinaryOp::Add, number(0.1), number(0.2)), 0.0);
        assert_eq!(bound(BinaryOp::Mul, number(0.5), number(3.0)), 0.0);
        let product = binary(BinaryOp::Mul, number(0.1), number(0.3), &model).unwrap();
        assert!(product.error > 0.0 && product.error < 4e-9);
        let strict = ErrorModel { contraction: false, ..ErrorModel::default() };
        assert_eq!(binary(BinaryOp::Mul, number(0.1), number(0.3), &strict).unwrap().error, 0.0);
        // The contracted result is inside the bound, the plain one trivially so.
        let sum = binary(BinaryOp::Sub, product, number(0.03), &model).unwrap();
        let contracted = 0.1f32.mul_add(0.3, -0.03);
        assert!((sum.value.as_float().unwrap() - f64::from(contracted)).abs() <= sum.error);
        // Non-finite results of certain operands are certain.
        assert_eq!(bound(BinaryOp::Sub, number(f32::INFINITY), number(f32::INFINITY)), 0.0);
        assert_eq!(bound(BinaryOp::Div, number(-1.0), number(0.0)), 0.0);
        let wobbly = Number::within(Plain::F32(1e-8), 1e-7);
        assert_eq!(bound(BinaryOp::Div, number(1.0), wobbly), f64::INFINITY);
        assert_eq!(bound(BinaryOp::Mul, number(f32::INFINITY), wobbly), f64::INFINITY);
        assert_eq!(
            bound(BinaryOp::Rem, Number::within(Plain::F32(1.999_999_9), 1e-5), number(1.0)),
            f64::INFINITY
        );
    }

    #[test]
    fn a_product_that_underflows_is_inexact() {
        let number = |value: f64| Number::exact(Plain::F64(value));
        let product = |a, b| binary(BinaryOp::Mul, number(a), number(b), &ErrorModel::default()).unwrap();
        let tiny = 5e-324;
        // 0.9 of the smallest number rounds to it; fused with what takes it away a tenth is left, of some sign.
        assert_eq!(product(tiny, 0.9).value, Plain::F64(tiny));
        assert!(product(tiny, 0.9).error >= tiny && product(tiny, 0.25).error >= tiny);
        assert_eq!(
            (product(0.0, 0.9).error, product(1e-280, 4.0).error, product(0.5, 3.0).error),
            (0.0, 0.0, 0.0)
        );
    }

    #[test]
    fn an_overflowed_product_may_be_saved_by_contraction() {
        let model = ErrorModel::default();
        let number = |value: f32| Number::exact(Plain::F32(value));
        let product = binary(BinaryOp::Mul, number(-f32::MAX), number(3.0), &model).unwrap();
        assert_eq!(product.value, Plain::F32(f32::NEG_INFINITY));
        let add = |other: f32| binary(BinaryOp::Add, product, number(other), &model).unwrap();
        assert_eq!((add(1e38).value, add(1e38).error), (Plain::F32(f32::NEG_INFINITY), 0.0));
        // Plainly NaN, fused +infinity.
        assert!(add(f32::INFINITY).is_uncertain());
        assert!(!add(f32::NAN).is_uncertain());
        let true_infinity = binary(BinaryOp::Mul, number(f32::INFINITY), number(-3.0), &model).unwrap();
        let sum = binary(BinaryOp::Add, true_infinity, number(f32::INFINITY), &model).unwrap();
        assert!(sum.value.as_float().unwrap().is_nan() && sum.error == 0.0);
        // An inexact number beside an infinity changes nothing.
        let wobbly = Number::within(Plain::F32(1.0), 0.5);
        assert_eq!(binary(BinaryOp::Add, number(f32::INFINITY), wobbly, &model).unwrap().error, 0.0);
    }

    #[test]
    fn comparisons_are_uncertain_where_bounds_overlap() {
        let number = |value: f32, error| Number::within(Plain::F32(value), error);
        let less = |a, b| compare(CompareOp::Less, a, b).unwrap();
        assert!(!less(number(1.0, 0.0), number(1.0, 0.0)).is_uncertain());
        assert!(less(number(1.0, 0.1), number(1.05, 0.0)).is_uncertain());
        assert!(!less(number(1.0, 0.1), number(1.2, 0.0)).is_uncertain());
        let nan = number(f32::NAN, 0.0);
        assert_eq!(less(nan, nan).value, Plain::Bool(false));
        assert_eq!(compare(CompareOp::NotEqual, nan, nan).unwrap().value, Plain::Bool(true));
        assert!(!less(nan, number(1.0, 0.1)).is_uncertain());
    }

    #[test]
    fn extremes_order_zeros_and_keep_nan() {
        let number = |value: f32| Number::exact(Plain::F32(value));
        let pick = |largest, a, b| extreme(largest, number(a), number(b)).unwrap().value.as_float().unwrap();
        assert!(pick(true, -0.0, 0.0).is_sign_positive());
        assert!(pick(true, 0.0, -0.0).is_sign_positive());
        assert!(pick(false, 0.0, -0.0).is_sign_negative());
        assert!(pick(true, f32::NAN, 1.0).is_nan());
        assert!(pick(false, 1.0, f32::NAN).is_nan());
        assert_eq!(pick(false, 1.0, 2.0), 1.0);
    }
}

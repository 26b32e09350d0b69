//! Casts, and rounding to the narrow types of memory.

use super::bound::{Format, monotone_error};
use super::value::{Number, Plain};
use crate::data::Scalar;

/// `number as to`, widened again where `to` is narrow. Also what a store to memory of type `to` keeps.
/// `None` for a cast that the checker refuses (to `bool` from anything else).
pub fn convert(number: Number, to: Scalar) -> Option<Number> {
    if number.value.scalar() == to {
        return Some(number);
    }
    if let Some(value) = number.value.as_float() {
        return match Format::of(to) {
            Some(format) => float_to_float(value, number, format, to),
            None => float_to_integer(value, number, to),
        };
    }
    let value = number.value.as_integer()?;
    let uncertain = number.error != 0.0;
    if let Some(format) = Format::of(to) {
        return integer_to_float(value, format, to).map(|number| number.uncertain_if(uncertain));
    }
    let wrapped = match to {
        Scalar::Bool => return None,
        Scalar::I8 => i128::from(value as i8),
        Scalar::I16 => i128::from(value as i16),
        Scalar::U8 => i128::from(value as u8),
        Scalar::U16 => i128::from(value as u16),
        _ => value,
    };
    Some(Number::exact(Plain::wrapped(wrapped, to.widened())?).uncertain_if(uncertain))
}

/// Rounds once. The device may go to a narrow format by way of `f32`: where that differs, the bound says so.
fn float_to_float(value: f64, number: Number, format: Format, to: Scalar) -> Option<Number> {
    let rounded = format.round(value);
    let direct = monotone_error(value, number.error, |x| format.round(x));
    let error = if to.is_narrow() && number.value.scalar() == Scalar::F64 {
        let detour = format.round(f64::from(value as f32));
        direct.max(monotone_error(value, number.error, |x| format.round(f64::from(x as f32))))
            + if detour == rounded || value.is_nan() { 0.0 } else { (detour - rounded).abs() }
    } else {
        direct
    };
    Some(Number::within(Plain::float(rounded, to.widened())?, error))
}

fn integer_to_float(value: i128, format: Format, to: Scalar) -> Option<Number> {
    if to == Scalar::F64 {
        return Some(Number::exact(Plain::F64(value as f64)));
    }
    if to == Scalar::F32 {
        return Some(Number::exact(Plain::F32(value as f32)));
    }
    // An f64 holds every integer that is not far past the narrow format's resolution; f32 is the detour.
    let rounded = format.round(value as f64);
    let detour = format.round(f64::from(value as f32));
    let error = if rounded == detour { 0.0 } else { (rounded - detour).abs() };
    Some(Number::within(Plain::float(rounded, to.widened())?, error))
}

/// Truncates toward zero and saturates; NaN gives 0.
fn float_to_integer(value: f64, number: Number, to: Scalar) -> Option<Number> {
    let cast = |value: f64| -> Option<i128> {
        Some(match to {
            Scalar::I8 => i128::from(value as i8),
            Scalar::I16 => i128::from(value as i16),
            Scalar::I32 => i128::from(value as i32),
            Scalar::I64 => i128::from(value as i64),
            Scalar::U8 => i128::from(value as u8),
            Scalar::U16 => i128::from(value as u16),
            Scalar::U32 => i128::from(value as u32),
            Scalar::U64 => i128::from(value as u64),
            _ => return None,
        })
    };
    let result = cast(value)?;
    let uncertain = number.is_uncertain()
        || number.error > 0.0
            && (cast(value - number.error) != Some(result) || cast(value + number.error) != Some(result));
    Some(Number::exact(Plain::wrapped(result, to.widened())?).uncertain_if(uncertain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(value: Plain, to: Scalar) -> Plain {
        convert(Number::exact(value), to).unwrap().value
    }

    #[test]
    fn casts_saturate_wrap_and_round() {
        use Plain::*;
        let table = [
            (F32(3.9), Scalar::I32, I32(3)),
            (F32(-3.9), Scalar::I32, I32(-3)),
            (F32(1e20), Scalar::I32, I32(i32::MAX)),
            (F32(-1.0), Scalar::U32, U32(0)),
            (F32(f32::NAN), Scalar::I64, I64(0)),
            (F32(300.0), Scalar::U8, U32(255)),
            (F32(-300.0), Scalar::I8, I32(-128)),
            (F64(1e300), Scalar::U64, U64(u64::MAX)),
            (I32(300), Scalar::U8, U32(44)),
            (I32(200), Scalar::I8, I32(-56)),
            (I64(-1), Scalar::U32, U32(u32::MAX)),
            (U64(1 << 40), Scalar::I32, I32(0)),
            (I32(-1), Scalar::U64, U64(u64::MAX)),
            (Bool(true), Scalar::I32, I32(1)),
            (I32(16_777_217), Scalar::F32, F32(16_777_216.0)),
            (F32(2049.0), Scalar::F16, F32(2048.0)),
            (F32(65520.0), Scalar::F16, F32(f32::INFINITY)),
            (F32(1.0 + 1.0 / 256.0), Scalar::BF16, F32(1.0)),
            (F64(1e60), Scalar::F32, F32(f32::INFINITY)),
        ];
        for (value, to, expected) in table {
            assert_eq!(cast(value, to), expected, "{value:?} as {to}");
        }
        assert!(convert(Number::exact(I32(1)), Scalar::Bool).is_none());
    }

    #[test]
    fn a_bound_that_spans_a_rounding_boundary_costs_one_step_and_otherwise_nothing() {
        let near =
            |value: f32, error| convert(Number::within(Plain::F32(value), error), Scalar::F16).unwrap();
        assert_eq!(near(1.0, 1e-6).error, 0.0);
        assert_eq!(near(1.0 + 1.0 / 2048.0, 1e-6).error, 1.0 / 1024.0);
        assert!(near(65519.9, 1.0).is_uncertain());
    }

    #[test]
    fn truncating_across_an_integer_is_uncertain() {
        let cast =
            |value: f32, error| convert(Number::within(Plain::F32(value), error), Scalar::I32).unwrap();
        assert!(cast(2.999_999, 1e-5).is_uncertain());
        assert!(!cast(2.5, 1e-5).is_uncertain());
    }
}

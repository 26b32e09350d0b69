//! Combining stores (`+=` and its kin), whose iterations the device may take in any order.
//!
//! Sums keep the part that rounding lost beside the stored value, so the reference is as good as a sum in
//! higher precision; the bound is that of the worst order: `terms * rounding * sum of magnitudes`.

use super::arithmetic::{binary, extreme};
use super::bound::{ErrorModel, Format};
use super::memory::{History, Place, Storage};
use super::rounding::Rounding;
use super::value::{Number, Plain};
use crate::check::typed::{BinaryOp, CombineOp};
use crate::data::Scalar;

impl CombineOp {
    /// The value that combining with changes nothing, widened.
    pub(super) fn identity(self, scalar: Scalar) -> Option<Plain> {
        let wide = scalar.widened();
        Some(match self {
            CombineOp::Add | CombineOp::Or | CombineOp::Xor => Plain::zero(wide),
            CombineOp::Mul if wide.is_float() => Plain::float(1.0, wide)?,
            CombineOp::Mul => Plain::wrapped(1, wide)?,
            CombineOp::Min => extreme_identity(false, scalar)?,
            CombineOp::Max => extreme_identity(true, scalar)?,
            CombineOp::And if scalar == Scalar::Bool => Plain::Bool(true),
            CombineOp::And => Plain::wrapped(-1, wide)?,
        })
    }
}

/// Where `min` (or `max`, for `largest`) starts: the largest (smallest) value of the type, narrow types' own;
/// infinite for floats.
pub fn extreme_identity(largest: bool, scalar: Scalar) -> Option<Plain> {
    if scalar.is_float() {
        return Plain::float(if largest { f64::NEG_INFINITY } else { f64::INFINITY }, scalar.widened());
    }
    let (low, high) = match scalar {
        Scalar::I8 => (i128::from(i8::MIN), i128::from(i8::MAX)),
        Scalar::I16 => (i128::from(i16::MIN), i128::from(i16::MAX)),
        Scalar::I32 => (i128::from(i32::MIN), i128::from(i32::MAX)),
        Scalar::I64 => (i128::from(i64::MIN), i128::from(i64::MAX)),
        Scalar::U8 => (0, i128::from(u8::MAX)),
        Scalar::U16 => (0, i128::from(u16::MAX)),
        Scalar::U32 => (0, i128::from(u32::MAX)),
        Scalar::U64 => (0, i128::from(u64::MAX)),
        _ => return None,
    };
    Plain::wrapped(if largest { low } else { high }, scalar.widened())
}

/// Combines `term` into the scalar of type `scalar` at `place`. `None` where the types do not fit.
pub fn combine_scalar(
    storage: &mut Storage<'_>,
    place: Place,
    scalar: Scalar,
    op: CombineOp,
    term: Number,
    model: &ErrorModel,
) -> Option<()> {
    let current = storage.read_scalar(place, scalar);
    let float = Format::of(scalar);
    let combined = match (op, float) {
        (CombineOp::Add | CombineOp::Mul, Some(format)) if model.rounding.is_some() => {
            combine_rounded(model.rounding?, op, format, current, term)?
        }
        (CombineOp::Add, Some(format)) => return add_float(storage, place, format, current, term),
        (CombineOp::Mul, Some(format)) => multiply_float(format, current, term)?,
        (CombineOp::Add, None) => binary(BinaryOp::Add, current, term, model)?,
        (CombineOp::Mul, None) => binary(BinaryOp::Mul, current, term, model)?,
        (CombineOp::Min, _) => extreme(false, current, term)?,
        (CombineOp::Max, _) => extreme(true, current, term)?,
        (CombineOp::And, _) => binary(BinaryOp::And, current, term, model)?,
        (CombineOp::Or, _) => binary(BinaryOp::Or, current, term, model)?,
        (CombineOp::Xor, _) => binary(BinaryOp::Xor, current, term, model)?,
    };
    storage.write_scalar(place, scalar, combined).then_some(())
}

/// In the order of the source, rounded each time.
fn combine_rounded(
    rounding: Rounding,
    op: CombineOp,
    format: Format,
    current: Number,
    term: Number,
) -> Option<Number> {
    let (a, b) = (current.value.as_float()?, term.value.as_float()?);
    let exact = if op == CombineOp::Add { a + b } else { a * b };
    let value = Plain::float(rounding.partial(format, exact, 0.0), format.scalar.widened())?;
    Some(Number::exact(value).uncertain_if(current.is_uncertain() || term.is_uncertain()))
}

fn add_float(
    storage: &mut Storage<'_>,
    place: Place,
    format: Format,
    current: Number,
    term: Number,
) -> Option<()> {
    let (stored, added) = (current.value.as_float()?, term.value.as_float()?);
    let before = storage.history(place, current);
    let sum = stored + added;
    // What the f64 addition lost (Knuth's two-sum), and then what rounding to the stored type loses.
    let part = sum - stored;
    let lost = (stored - (sum - part)) + (added - part);
    let precise = sum + (lost + before.residual);
    let precise = if precise.is_nan() { sum } else { precise };
    let rounded = format.round(precise);
    let residual = (sum - rounded) + (lost + before.residual);
    let history = History {
        terms: before.terms + 1,
        whole: before.whole && added.fract() == 0.0,
        residual: if residual.is_finite() { residual } else { 0.0 },
        ..before.with(added, term.error + term.products.lost)
    };
    let value = Plain::float(rounded, format.scalar.widened())?;
    let error = if history.propagated == f64::INFINITY {
        f64::INFINITY
    } else if history.nan {
        0.0
    } else if history.infinite && history.magnitude < format.max {
        // The sum's class does not hang on the order of the terms; on contraction it may.
        if history.overflowed && rounded.is_nan() { f64::INFINITY } else { 0.0 }
    } else if history.magnitude + history.propagated >= format.max {
        f64::INFINITY
    } else if history.propagated == 0.0
        && (history.terms == 1 || history.whole && history.magnitude <= format.exact_integers())
    {
        // The device rounds the same sum (a narrow one by way of `f32`), or nobody rounds.
        if format.scalar.is_narrow() { (format.round(f64::from(sum as f32)) - rounded).abs() } else { 0.0 }
    } else {
        let roundings = history.terms as f64 * 0.5 * format.spacing(history.magnitude + history.propagated);
        history.propagated + roundings * 1.01 + 0.5 * format.spacing(rounded)
    };
    // A stored value whose bound is final: the write must not round (or widen the bound) again.
    let written = storage.write_scalar(place, format.scalar, Number::within(value, 0.0));
    if !written {
        return None;
    }
    storage.set_error(place, error);
    storage.set_history(place, history);
    Some(())
}

/// In any order, each of the two sides rounds once a factor; an order that passes through the ends of the
/// format is no order to promise anything about.
fn multiply_float(format: Format, current: Number, term: Number) -> Option<Number> {
    let (a, b) = (current.value.as_float()?, term.value.as_float()?);
    let rounded = format.round(a * b);
    let error = if current.is_uncertain() || term.is_uncertain() {
        f64::INFINITY
    } else if !a.is_finite() || !b.is_finite() {
        0.0
    } else {
        let moved = a.abs() * term.error + b.abs() * current.error + current.error * term.error;
        let exact = current.error == 0.0 && term.error == 0.0 && a * b == rounded;
        let near_ends = rounded != 0.0 && rounded.abs() < 1e-30;
        let rounding = if exact { 0.0 } else { 2.0 * format.spacing(a * b) };
        if near_ends && !exact { f64::INFINITY } else { format.settle(rounded, a * b, moved + rounding) }
    };
    Some(Number::within(Plain::float(rounded, format.scalar.widened())?, error))
}

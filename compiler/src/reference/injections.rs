//! Facts about the values of arrays: checked before the body, on all elements.

use super::error::EvalError;
use super::evaluator::{Evaluator, Run};
use super::launch::Launch;
use super::{Inputs, Options};
use crate::data::Scalar;
use rustc_hash::FxHashMap;

/// Refuses a launch in which two elements hold one value of a range that is said to be without equals.
pub fn check(inputs: &Inputs<'_>, launch: &Launch, options: &Options) -> Run<()> {
    let kernel = inputs.kernel;
    for injection in &kernel.injections {
        let array = &kernel.arrays[injection.array];
        let (Some(scalar), Some(given)) = (array.ty.as_scalar(), inputs.arrays.get(&array.name)) else {
            return Err(Box::new(EvalError::MissingArray { name: array.name.clone() }));
        };
        let mut evaluator = Evaluator::new(inputs, launch, options);
        let (low, _) = evaluator.integer(&injection.low)?;
        let (high, _) = evaluator.integer(&injection.high)?;
        let mut owners: FxHashMap<i64, u64> = FxHashMap::default();
        for (position, bytes) in (0..).zip(given.bytes.chunks_exact(scalar.size() as usize)) {
            let value = value(scalar, bytes);
            if !(low..high).contains(&value) {
                continue;
            }
            if let Some(first) = owners.insert(value, position) {
                return Err(Box::new(EvalError::NotInjective {
                    array: array.name.clone(),
                    value: if scalar == Scalar::U64 { i128::from(value as u64) } else { value.into() },
                    first,
                    second: position,
                    text: injection.text.clone(),
                    span: injection.span,
                }));
            }
        }
    }
    Ok(())
}

/// An integer of up to 8 bytes as an i64; a `u64` keeps its bits.
fn value(scalar: Scalar, bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unused = 64 - 8 * bytes.len() as u32;
    let bits = i64::from_le_bytes(wide) << unused;
    if scalar.is_signed_integer() { bits >> unused } else { (bits as u64 >> unused) as i64 }
}

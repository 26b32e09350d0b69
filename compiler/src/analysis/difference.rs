//! Differences of index values that are those of integers, not only of wrapping i64s.

use super::affine::Affine;
use super::polynomial::Polynomial;
use super::ranges::Ranges;
use crate::data::Scalar;
use crate::ir::entities::Value;
use crate::ir::kernel::Kernel;

/// Values within these bounds differ by less than 2^63, so that the identities of i64 arithmetic are those of integers.
const SMALL: i128 = 1 << 60;

/// `large` less `small`, where both are i64 values known to be small.
pub fn difference(
    kernel: &Kernel,
    affine: &mut Affine<'_>,
    ranges: &mut Ranges,
    small: Value,
    large: Value,
) -> Option<Polynomial> {
    for value in [small, large] {
        if kernel.value_type(value) != Scalar::I64 {
            return None;
        }
        let interval = ranges.of(kernel, value);
        if interval.low < -SMALL || interval.high > SMALL {
            return None;
        }
    }
    affine.form(large).subtract(&affine.form(small))
}

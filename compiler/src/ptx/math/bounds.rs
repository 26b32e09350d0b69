//! The documented error of each function, in units in the last place of the exact result.

use super::{MathFunction, Width};

/// The largest error of `function`, in ulp: half a unit would be correct rounding. Below the smallest normal
/// number a unit is the smallest subnormal.
pub fn ulp_bound(function: MathFunction, width: Width) -> f64 {
    use MathFunction::*;
    let (narrow, wide) = match function {
        Exp => (2.0, 2.0),
        _ => (2.0, 2.0),
    };
    match width {
        Width::F32 => narrow,
        Width::F64 => wide,
    }
}

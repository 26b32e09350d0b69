//! The documented error of each function, in units in the last place of the exact result.

use super::{MathFunction, Width};

/// The largest error of `function`, in ulp: half a unit would be correct rounding. Below the smallest normal
/// number a unit is the smallest subnormal.
pub fn ulp_bound(function: MathFunction, width: Width) -> f64 {
    use MathFunction::*;
    let (narrow, wide) = match function {
        Exp => (2.0, 1.1),
        Exp2 => (1.8, 0.95),
        Expm1 => (1.5, 1.9),
        Log => (0.8, 0.85),
        Log2 => (0.75, 0.75),
        Log10 => (0.75, 0.75),
        Log1p => (1.55, 1.5),
        Sin => (0.85, 0.85),
        Cos => (0.85, 0.85),
        Tan => (1.1, 1.1),
        Asin => (0.7, 0.75),
        Acos => (0.7, 0.7),
        Atan => (1.1, 1.15),
        Atan2 => (1.5, 1.5),
        Sinh => (1.7, 1.8),
        Cosh => (1.5, 1.6),
        Tanh => (2.0, 1.6),
        Pow => (1.0, 1.0),
        Erf => (1.3, 1.3),
        // In f32 the hardware's: 2^-22.9 relative.
        Rsqrt => (2.2, 1.5),
        Cbrt => (0.55, 0.6),
    };
    match width {
        Width::F32 => narrow,
        Width::F64 => wide,
    }
}

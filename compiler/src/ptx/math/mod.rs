//! Accurate elementary functions without a device library.
//!
//! Each function is written once, generically over [`Arith`], and instantiated twice: on the host, where its
//! error is measured and constants are folded, and as PTX instructions. Only operations that IEEE 754 rounds
//! (and integer ones) occur, so both give the same bits, and so does the emulator. The table of
//! built-in functions has the bounds of their errors, which tests enforce; `docs/math.md` lists what was measured, and how.

pub mod arith;
mod emit;
pub mod error_function;
pub mod exponential;
mod fast;
pub mod host;
pub mod hyperbolic;
pub mod inverse;
pub mod logarithm;
pub mod power;
pub mod reduction;
pub mod root;
#[cfg(test)]
mod tests;
pub mod trigonometric;

pub use crate::builtins::MathFunction;
pub use emit::{KnownAngle, emit, emit_of_angle};
pub use fast::emit_fast;

use arith::Arith;
use host::{HostF64, OffF32};
use trigonometric::Angle;

impl MathFunction {
    /// The function on any arithmetic.
    ///
    /// # Panics
    /// If the number of arguments is not [`arity`](Self::arity).
    pub fn apply<A: Arith>(self, a: &A, args: &[A::F]) -> A::F {
        use MathFunction::*;
        let one = |function: fn(&A, A::F) -> A::F| match args {
            [x] => function(a, *x),
            _ => panic!("{} takes one argument", self.name()),
        };
        let two = |function: fn(&A, A::F, A::F) -> A::F| match args {
            [x, y] => function(a, *x, *y),
            _ => panic!("{} takes two arguments", self.name()),
        };
        if let [x] = args
            && let Some(angle) = Angle::of(a, self, *x)
        {
            return angle.apply(a, self, *x);
        }
        match self {
            Exp => one(exponential::exp),
            Exp2 => one(exponential::exp2),
            Exp10 => one(exponential::exp10),
            Expm1 => one(exponential::expm1),
            Log => one(logarithm::log),
            Log2 => one(logarithm::log2),
            Log10 => one(logarithm::log10),
            Log1p => one(logarithm::log1p),
            Sin | Cos | Sinpi | Cospi => panic!("{} takes one argument", self.name()),
            Tan => one(trigonometric::tan),
            Asin => one(inverse::asin),
            Acos => one(inverse::acos),
            Atan => one(inverse::atan),
            Atan2 => two(inverse::atan2),
            Sinh => one(hyperbolic::sinh),
            Cosh => one(hyperbolic::cosh),
            Tanh => one(hyperbolic::tanh),
            Pow => two(power::pow),
            Erf => one(error_function::erf),
            Rsqrt => one(root::rsqrt),
            Cbrt => one(root::cbrt),
            Hypot => two(root::hypot),
        }
    }
}

/// The function in f32, bit for bit as the device computes it (NaN payloads aside).
///
/// # Panics
/// If the number of arguments is not the function's arity.
pub fn eval_f32(function: MathFunction, args: &[f32]) -> f32 {
    function.apply(&OffF32::<0>, args)
}

/// The function in f64, bit for bit as the device computes it (NaN payloads aside).
///
/// # Panics
/// If the number of arguments is not the function's arity.
pub fn eval_f64(function: MathFunction, args: &[f64]) -> f64 {
    function.apply(&HostF64, args)
}

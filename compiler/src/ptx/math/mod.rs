//! Accurate elementary functions without a device library.
//!
//! Each function is written once, generically over [`Arith`], and instantiated twice: on the host, where its
//! error is measured and constants are folded, and as PTX instructions. Only operations that IEEE 754 rounds
//! (and integer ones) occur, so both give the same bits, and so does the emulator. The errors are in [`bounds`],
//! which tests enforce; `docs/math.md` lists what was measured, and how.

pub mod arith;
pub mod bounds;
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

pub use bounds::ulp_bound;
pub use emit::emit;
pub use fast::emit_fast;

use arith::Arith;
use host::{HostF64, OffF32};

/// The width of a floating-point operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Width {
    F32,
    F64,
}

/// Declares the functions: variant, name in the language, number of arguments, implementation.
macro_rules! functions {
    ($($variant:ident $name:literal ($($arg:ident),+) = $path:path;)*) => {
        /// An elementary function.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum MathFunction { $($variant),* }

        impl MathFunction {
            /// Every function, in a fixed order.
            pub const ALL: &'static [MathFunction] = &[$(MathFunction::$variant),*];

            /// The name in the language, in lower case.
            pub const fn name(self) -> &'static str {
                match self { $(MathFunction::$variant => $name),* }
            }

            /// The number of arguments: one or two.
            pub const fn arity(self) -> usize {
                match self { $(MathFunction::$variant => [$(stringify!($arg)),+].len()),* }
            }

            /// The function on any arithmetic.
            ///
            /// # Panics
            /// If the number of arguments is not [`arity`](Self::arity).
            pub fn apply<A: Arith>(self, a: &A, args: &[A::F]) -> A::F {
                match self {
                    $(MathFunction::$variant => {
                        let &[$($arg),+] = args else { panic!("{} takes {} arguments", $name, self.arity()) };
                        $path(a, $($arg),+)
                    })*
                }
            }
        }
    };
}

functions! {
    Exp "exp" (x) = exponential::exp;
    Exp2 "exp2" (x) = exponential::exp2;
    Expm1 "expm1" (x) = exponential::expm1;
    Log "log" (x) = logarithm::log;
    Log2 "log2" (x) = logarithm::log2;
    Log10 "log10" (x) = logarithm::log10;
    Log1p "log1p" (x) = logarithm::log1p;
    Sin "sin" (x) = trigonometric::sin;
    Cos "cos" (x) = trigonometric::cos;
    Tan "tan" (x) = trigonometric::tan;
    Asin "asin" (x) = inverse::asin;
    Acos "acos" (x) = inverse::acos;
    Atan "atan" (x) = inverse::atan;
    Atan2 "atan2" (y, x) = inverse::atan2;
    Sinh "sinh" (x) = hyperbolic::sinh;
    Cosh "cosh" (x) = hyperbolic::cosh;
    Tanh "tanh" (x) = hyperbolic::tanh;
    Pow "pow" (x, y) = power::pow;
    Erf "erf" (x) = error_function::erf;
    Rsqrt "rsqrt" (x) = root::rsqrt;
    Cbrt "cbrt" (x) = root::cbrt;
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

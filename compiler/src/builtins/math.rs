//! The elementary functions: one row each. `docs/add-a-function.md` says how to add one.

use crate::data::Scalar;

/// Calls the macro `$then` with the table of elementary functions, after what else is given. Whatever needs a name for
/// each function (an opcode, a case of a `match`) is made from the rows:
///
/// ```text
/// Variant "name" (arguments) host function, error in f32 and in f64, "meaning";
/// ```
///
/// - The *host function* computes in f64: for the reference evaluator and for constants. Its error must
///   be below two units in the last place of f64, as the vectors of `ptx::math` test.
/// - The *error* is what Krn promises of the code that it emits, in units in the last place (ulp) of the exact result; half
///   a unit would be correct rounding. Below the smallest normal number a unit is the smallest subnormal. `docs/math.md`
///   has the measured errors, and tests hold the functions to their bounds.
macro_rules! math_functions {
    ($then:ident $($more:tt)*) => {
        $then! { $($more)*
            Exp "exp" (x) libm::exp, 2.0, 1.1, "eˣ";
            Exp2 "exp2" (x) libm::exp2, 1.8, 0.95, "2ˣ; exact where x is an integer";
            Exp10 "exp10" (x) host::exp10, 1.35, 1.35, "10ˣ; exact where x and the result are integers that the type holds exactly";
            Expm1 "expm1" (x) libm::expm1, 1.5, 1.9, "eˣ - 1, accurate near 0";
            Log "log" (x) libm::log, 0.8, 0.85, "natural logarithm";
            Log2 "log2" (x) libm::log2, 0.75, 0.75, "logarithm to base 2; exact for powers of two";
            Log10 "log10" (x) libm::log10, 0.75, 0.75, "logarithm to base 10";
            Log1p "log1p" (x) libm::log1p, 1.55, 1.5, "log(1 + x), accurate near 0";
            Sin "sin" (x) libm::sin, 0.85, 0.85, "sine of x radians";
            Cos "cos" (x) libm::cos, 0.85, 0.85, "cosine of x radians";
            Tan "tan" (x) libm::tan, 1.1, 1.1, "tangent of x radians";
            Sinpi "sinpi" (x) host::sinpi, 1.05, 1.05, "sin(πx); x may be large, and of an integer it is 0";
            Cospi "cospi" (x) host::cospi, 0.85, 0.85, "cos(πx); x may be large, and of a half of an odd integer it is 0";
            Asin "asin" (x) libm::asin, 0.7, 0.75, "arc sine, from -π/2 to π/2";
            Acos "acos" (x) libm::acos, 0.7, 0.7, "arc cosine, from 0 to π";
            Atan "atan" (x) libm::atan, 1.1, 1.15, "arc tangent, from -π/2 to π/2";
            Atan2 "atan2" (y, x) libm::atan2, 1.5, 1.5, "angle of the point (x, y), from -π to π";
            Sinh "sinh" (x) libm::sinh, 1.7, 1.8, "hyperbolic sine";
            Cosh "cosh" (x) libm::cosh, 1.5, 1.6, "hyperbolic cosine";
            Tanh "tanh" (x) libm::tanh, 2.0, 1.6, "hyperbolic tangent";
            Pow "pow" (x, y) libm::pow, 1.0, 1.0, "x to the power of y";
            Erf "erf" (x) libm::erf, 1.3, 1.3, "error function";
            Rsqrt "rsqrt" (x) host::rsqrt, 2.2, 1.5, "1/√x";
            Cbrt "cbrt" (x) libm::cbrt, 0.55, 0.6, "cube root";
            Hypot "hypot" (x, y) libm::hypot, 0.8, 0.8, "√(x² + y²), without overflow on the way";
        }
    };
}
pub(crate) use math_functions;

macro_rules! declare {
    ($($variant:ident $name:literal ($($arg:ident),+) $host:path, $narrow:literal, $wide:literal, $meaning:literal;)*) => {
        /// An elementary function of one float type, `f32` or `f64`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum MathFunction { $(#[doc = $meaning] $variant),* }

        impl MathFunction {
            /// Every function, in a fixed order.
            pub const ALL: &'static [MathFunction] = &[$(MathFunction::$variant),*];

            /// The name in the language, in lower case.
            pub const fn name(self) -> &'static str {
                match self { $(MathFunction::$variant => $name),* }
            }

            /// The names of the arguments: one or two.
            pub const fn parameters(self) -> &'static [&'static str] {
                match self { $(MathFunction::$variant => &[$(stringify!($arg)),+]),* }
            }

            /// What it computes, in a few words.
            pub const fn meaning(self) -> &'static str {
                match self { $(MathFunction::$variant => $meaning),* }
            }

            /// The function on the host, in f64.
            ///
            /// # Panics
            /// If the number of arguments is not [`arity`](Self::arity).
            pub fn host(self, args: &[f64]) -> f64 {
                match self {
                    $(MathFunction::$variant => {
                        let &[$($arg),+] = args else { panic!("{} takes {} arguments", $name, self.arity()) };
                        $host($($arg),+)
                    })*
                }
            }

            /// The largest error of the emitted code in `f32` (or any type but `f64`) and in `f64`, in ulp of the exact result.
            pub const fn ulp_bound(self, scalar: Scalar) -> f64 {
                let (narrow, wide) = match self { $(MathFunction::$variant => ($narrow, $wide)),* };
                if matches!(scalar, Scalar::F64) { wide } else { narrow }
            }
        }
    };
}

math_functions!(declare);

impl MathFunction {
    /// The number of arguments: one or two.
    pub const fn arity(self) -> usize {
        self.parameters().len()
    }

    /// The function of this name in the language.
    pub fn from_name(name: &str) -> Option<MathFunction> {
        MathFunction::ALL.iter().copied().find(|function| function.name() == name)
    }
}

/// Functions on the host that `libm` does not have, or has with a larger error.
mod host {
    use std::f64::consts::PI;

    /// What π has beyond its f64.
    const PI_REST: f64 = 1.2246467991473532e-16;

    pub fn exp10(x: f64) -> f64 {
        libm::pow(10.0, x)
    }

    /// Sine and cosine of πx, after whole turns and quarters are taken off exactly.
    fn sin_cos_pi(x: f64) -> (f64, f64) {
        let within_a_turn = x - 2.0 * libm::rint(0.5 * x);
        let quarters = libm::rint(2.0 * within_a_turn);
        let r = within_a_turn - 0.5 * quarters;
        let angle = PI * r;
        let rest = libm::fma(r, PI, -angle) + r * PI_REST;
        let (sin, cos) = (libm::sin(angle), libm::cos(angle));
        let (sin, cos) = (sin + rest * cos, cos - rest * sin);
        match quarters as i64 & 3 {
            0 => (sin, cos),
            1 => (cos, -sin),
            2 => (-sin, -cos),
            _ => (-cos, sin),
        }
    }

    pub fn sinpi(x: f64) -> f64 {
        let sin = sin_cos_pi(x).0;
        // Of an integer, a zero of its sign.
        if sin == 0.0 { libm::copysign(0.0, x) } else { sin }
    }

    pub fn cospi(x: f64) -> f64 {
        // Never -0.
        sin_cos_pi(x).1 + 0.0
    }

    pub fn rsqrt(x: f64) -> f64 {
        1.0 / libm::sqrt(x)
    }
}

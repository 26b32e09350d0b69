//! The built-in functions of the language: a table, of which all that knows functions by name is made.
//!
//! The elementary functions, which are computed alike everywhere, have a table of their own ([`MathFunction`]). What is
//! derived: names and signatures for the checker, opcodes and their text, lowering, constant evaluation, the reference,
//! the error model, the random kernels of the tests, and the tables of `docs/language.md`. What a table cannot hold is a
//! `match` without a catch-all, so that the compiler names each place that a new function needs.

mod math;
pub mod random;

pub use math::MathFunction;
pub(crate) use math::math_functions;

use crate::data::Scalar;

/// What types a function takes and gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signature {
    /// Floats of one type; gives that type.
    Floats,
    /// A float; gives `bool`.
    FloatTest,
    /// Signed integers or floats of one type; gives that type.
    Signed,
    /// Numbers of one type; gives that type.
    Numbers,
    /// A condition and two values of one type, also of a struct; gives that type.
    Select,
    /// An integer; gives its type.
    Integer,
    /// A seed and a counter, any integers (converted to `u64`); gives `u32`.
    RandomBits,
    /// As above; gives `f32`.
    RandomFloat,
    /// `f32` to `u32`, `f64` to `u64`.
    ToBits,
    /// `u32` to `f32`, `u64` to `f64`.
    FromBits,
}

impl Signature {
    /// The scalar types of which a function with this signature takes arguments; of `select`, its values.
    pub const fn types(self) -> &'static [Scalar] {
        use Scalar::{Bool, F32, F64, I32, I64, U32, U64};
        match self {
            Signature::Floats | Signature::FloatTest | Signature::ToBits => &[F32, F64],
            Signature::Signed => &[I32, I64, F32, F64],
            Signature::Numbers => &[I32, U32, I64, U64, F32, F64],
            Signature::Select => &[Bool, I32, U32, I64, U64, F32, F64],
            Signature::Integer | Signature::RandomBits | Signature::RandomFloat => &[I32, U32, I64, U64],
            Signature::FromBits => &[U32, U64],
        }
    }

    /// The result's type, where arguments have type `argument`.
    pub const fn result(self, argument: Scalar) -> Scalar {
        let wide = matches!(argument, Scalar::F64 | Scalar::U64);
        match self {
            Signature::Floats
            | Signature::Signed
            | Signature::Numbers
            | Signature::Select
            | Signature::Integer => argument,
            Signature::FloatTest => Scalar::Bool,
            Signature::RandomBits => Scalar::U32,
            Signature::RandomFloat => Scalar::F32,
            Signature::ToBits => {
                if wide {
                    Scalar::U64
                } else {
                    Scalar::U32
                }
            }
            Signature::FromBits => {
                if wide {
                    Scalar::F64
                } else {
                    Scalar::F32
                }
            }
        }
    }

    /// The arguments in words, for the language's table.
    pub const fn arguments(self) -> &'static str {
        match self {
            Signature::Floats | Signature::FloatTest | Signature::ToBits => "`f32`, `f64`",
            Signature::Signed => "signed integers, floats",
            Signature::Numbers => "numbers",
            Signature::Select => "`bool`, then any",
            Signature::Integer | Signature::RandomBits | Signature::RandomFloat => "integers",
            Signature::FromBits => "`u32`, `u64`",
        }
    }

    /// The result in words, for the language's table.
    pub const fn gives(self) -> &'static str {
        match self {
            Signature::Floats
            | Signature::Signed
            | Signature::Numbers
            | Signature::Select
            | Signature::Integer => "the same",
            Signature::FloatTest => "`bool`",
            Signature::RandomBits => "`u32`",
            Signature::RandomFloat => "`f32`",
            Signature::ToBits => "`u32`, `u64`",
            Signature::FromBits => "`f32`, `f64`",
        }
    }
}

/// Declares the functions that are not elementary: variant, name, arguments, signature, meaning.
macro_rules! declare {
    ($($(#[$doc:meta])* $variant:ident $name:literal ($($arg:ident),+) $signature:ident, $meaning:literal;)*) => {
        /// A built-in function.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Builtin {
            /// An elementary function: floats of one type, and that type as the result.
            Math(MathFunction),
            $(#[doc = $meaning] $(#[$doc])* $variant,)*
        }

        /// Those that are not elementary.
        const OTHERS: &[Builtin] = &[$(Builtin::$variant),*];

        impl Builtin {
            /// Its name in the language.
            pub const fn name(self) -> &'static str {
                match self { Builtin::Math(function) => function.name(), $(Builtin::$variant => $name),* }
            }

            /// The names of the arguments: one to three.
            pub const fn parameters(self) -> &'static [&'static str] {
                match self {
                    Builtin::Math(function) => function.parameters(),
                    $(Builtin::$variant => &[$(stringify!($arg)),+]),*
                }
            }

            /// What it computes, in a few words.
            pub const fn meaning(self) -> &'static str {
                match self { Builtin::Math(function) => function.meaning(), $(Builtin::$variant => $meaning),* }
            }

            pub const fn signature(self) -> Signature {
                match self { Builtin::Math(_) => Signature::Floats, $(Builtin::$variant => Signature::$signature),* }
            }
        }
    };
}

declare! {
    Sqrt "sqrt" (x) Floats, "√x, rounded correctly";
    Fma "fma" (a, b, c) Floats, "a·b + c, rounded once";
    Floor "floor" (x) Floats, "the next integer below";
    Ceil "ceil" (x) Floats, "the next integer above";
    Round "round" (x) Floats, "the nearest integer, halves away from zero";
    Trunc "trunc" (x) Floats, "the next integer towards zero";
    Copysign "copysign" (magnitude, sign) Floats, "the first with the sign of the second";
    IsNan "isnan" (x) FloatTest, "whether x is NaN";
    IsInf "isinf" (x) FloatTest, "whether x is infinite";
    IsFinite "isfinite" (x) FloatTest, "whether x is neither infinite nor NaN";
    Abs "abs" (x) Signed, "the magnitude; of the lowest integer, itself";
    Sign "sign" (x) Signed, "-1, 0 or 1; of ±0 and NaN, themselves";
    Min "min" (a, b) Numbers, "the smaller; NaN if any is NaN";
    Max "max" (a, b) Numbers, "the larger; NaN if any is NaN";
    /// `min(max(x, low), high)`.
    Clamp "clamp" (x, low, high) Numbers, "`min(max(x, low), high)`";
    Select "select" (condition, a, b) Select, "a if the condition holds, else b; both are evaluated";
    Popcount "popcount" (x) Integer, "the number of one bits; narrow integers have 32 bits here";
    LeadingZeros "leading_zeros" (x) Integer, "the number of zero bits above the highest one";
    TrailingZeros "trailing_zeros" (x) Integer, "the number of zero bits below the lowest one";
    ToBits "to_bits" (x) ToBits, "the float's bits";
    FromBits "from_bits" (x) FromBits, "the float with these bits";
    /// `(word >> 8) · 2^-24` of the word that is `rand_u32`.
    Rand "rand" (seed, counter) RandomFloat, "random, uniform in [0, 1)";
    /// Box–Muller of two words of the counter's block, 0 and 1, or 2 and 3 where counter % 4 is 2 or 3:
    /// `sqrt(-2 log(u0)) * cos(2 pi u1)`, `u0 = ((w0 >> 8) + 1) * 2^-24`, `u1 = (w1 >> 8) * 2^-24`, of odd counters a
    /// quarter less, modulo 1.
    RandNormal "rand_normal" (seed, counter) RandomFloat, "random, normally distributed";
    /// Philox4x32-10 with key (seed low, seed high) and counter (block low, block high, 0, 0), where the block is the counter
    /// (as 64 bits without sign) / 4: output word counter % 4.
    RandU32 "rand_u32" (seed, counter) RandomBits, "32 random bits";
}

impl Builtin {
    /// Every function: the elementary ones, then the others as they stand in the table.
    pub fn all() -> impl Iterator<Item = Builtin> {
        MathFunction::ALL.iter().map(|function| Builtin::Math(*function)).chain(OTHERS.iter().copied())
    }

    /// The function of this name in the language.
    pub fn from_name(name: &str) -> Option<Builtin> {
        Builtin::all().find(|builtin| builtin.name() == name)
    }

    /// The number of arguments: one to three.
    pub const fn arity(self) -> usize {
        self.parameters().len()
    }

    /// The names of all built-in functions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Builtin::all().map(Builtin::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_say_which_function_it_is() {
        for builtin in Builtin::all() {
            assert_eq!(Builtin::from_name(builtin.name()), Some(builtin));
            assert!(!builtin.meaning().is_empty() && builtin.arity() > 0);
        }
        assert_eq!(Builtin::from_name("sum"), None);
    }

    #[test]
    fn the_promised_errors_are_those_of_a_careful_function() {
        for function in MathFunction::ALL {
            for scalar in [Scalar::F32, Scalar::F64] {
                let bound = function.ulp_bound(scalar);
                assert!((0.5..=2.2).contains(&bound), "{}: {bound} ulp", function.name());
            }
        }
    }
}

//! The built-in functions by name, and the shape of their signatures.

use super::typed::Builtin;

/// What a built-in takes and gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Signature {
    /// This many floats of one type; gives that type.
    Floats(usize),
    /// One float; gives bool.
    FloatTest,
    /// One signed integer or float.
    Signed,
    /// This many numbers of one type.
    Numbers(usize),
    /// A condition and two values of one type.
    Select,
    /// One integer; gives its type.
    Integer,
    /// A seed and a counter, any integers (converted to u64); gives `u32`.
    RandomBits,
    /// As above; gives `f32`.
    RandomFloat,
    ToBits,
    FromBits,
}

impl Signature {
    pub fn arity(self) -> usize {
        match self {
            Signature::Floats(count) | Signature::Numbers(count) => count,
            Signature::Select => 3,
            Signature::RandomBits | Signature::RandomFloat => 2,
            Signature::FloatTest
            | Signature::Signed
            | Signature::Integer
            | Signature::ToBits
            | Signature::FromBits => 1,
        }
    }
}

/// Name, function, signature; the one table.
const TABLE: &[(&str, Builtin, Signature)] = &[
    ("exp", Builtin::Exp, Signature::Floats(1)),
    ("exp2", Builtin::Exp2, Signature::Floats(1)),
    ("expm1", Builtin::Expm1, Signature::Floats(1)),
    ("log", Builtin::Log, Signature::Floats(1)),
    ("log2", Builtin::Log2, Signature::Floats(1)),
    ("log10", Builtin::Log10, Signature::Floats(1)),
    ("log1p", Builtin::Log1p, Signature::Floats(1)),
    ("sin", Builtin::Sin, Signature::Floats(1)),
    ("cos", Builtin::Cos, Signature::Floats(1)),
    ("tan", Builtin::Tan, Signature::Floats(1)),
    ("tanh", Builtin::Tanh, Signature::Floats(1)),
    ("erf", Builtin::Erf, Signature::Floats(1)),
    ("sqrt", Builtin::Sqrt, Signature::Floats(1)),
    ("rsqrt", Builtin::Rsqrt, Signature::Floats(1)),
    ("floor", Builtin::Floor, Signature::Floats(1)),
    ("ceil", Builtin::Ceil, Signature::Floats(1)),
    ("round", Builtin::Round, Signature::Floats(1)),
    ("trunc", Builtin::Trunc, Signature::Floats(1)),
    ("isnan", Builtin::IsNan, Signature::FloatTest),
    ("isinf", Builtin::IsInf, Signature::FloatTest),
    ("isfinite", Builtin::IsFinite, Signature::FloatTest),
    ("abs", Builtin::Abs, Signature::Signed),
    ("sign", Builtin::Sign, Signature::Signed),
    ("pow", Builtin::Pow, Signature::Floats(2)),
    ("copysign", Builtin::Copysign, Signature::Floats(2)),
    ("min", Builtin::Min, Signature::Numbers(2)),
    ("max", Builtin::Max, Signature::Numbers(2)),
    ("clamp", Builtin::Clamp, Signature::Numbers(3)),
    ("fma", Builtin::Fma, Signature::Floats(3)),
    ("select", Builtin::Select, Signature::Select),
    ("popcount", Builtin::Popcount, Signature::Integer),
    ("leading_zeros", Builtin::LeadingZeros, Signature::Integer),
    ("trailing_zeros", Builtin::TrailingZeros, Signature::Integer),
    ("rand_u32", Builtin::RandU32, Signature::RandomBits),
    ("rand", Builtin::Rand, Signature::RandomFloat),
    ("rand_normal", Builtin::RandNormal, Signature::RandomFloat),
    ("to_bits", Builtin::ToBits, Signature::ToBits),
    ("from_bits", Builtin::FromBits, Signature::FromBits),
];

impl Builtin {
    /// The function of this name in the language.
    pub fn from_name(name: &str) -> Option<Builtin> {
        TABLE.iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// Its name in the language.
    pub fn name(self) -> &'static str {
        TABLE.iter().find(|row| row.1 == self).map_or("?", |row| row.0)
    }

    pub(super) fn signature(self) -> Signature {
        TABLE.iter().find(|row| row.1 == self).map_or(Signature::Floats(1), |row| row.2)
    }

    /// The names of all built-in functions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|row| row.0)
    }
}

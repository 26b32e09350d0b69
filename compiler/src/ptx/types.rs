//! The scalar types, register classes and state spaces of PTX.

use std::fmt;

/// Declares an enum of instruction modifiers, each with its PTX spelling (without the leading dot).
///
/// The spelling stands here and nowhere else, so that the printer and the parser cannot disagree.
macro_rules! modifiers {
    ($($(#[$meta:meta])* $name:ident { $first:ident = $first_text:literal $(, $variant:ident = $text:literal)* $(,)? })*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub enum $name { #[default] $first $(, $variant)* }

        impl $crate::ptx::types::Modifier for $name {
            const ALL: &'static [Self] = &[Self::$first $(, Self::$variant)*];

            fn text(self) -> &'static str {
                match self { Self::$first => $first_text $(, Self::$variant => $text)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::ptx::types::Modifier::text(*self))
            }
        }
    )*};
}
pub(crate) use modifiers;

/// Something that stands after a dot in a mnemonic or a directive: one of a closed set of words.
pub trait Modifier: Copy + PartialEq + fmt::Debug + 'static {
    /// Every value, in declaration order.
    const ALL: &'static [Self];

    /// The PTX spelling, without the leading dot.
    fn text(self) -> &'static str;

    /// The value with that spelling.
    fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.text() == text)
    }
}

modifiers! {
    /// The type of an instruction, a variable or a parameter.
    Type {
        B32 = "b32", B8 = "b8", B16 = "b16", B64 = "b64", B128 = "b128",
        U8 = "u8", U16 = "u16", U32 = "u32", U64 = "u64",
        S8 = "s8", S16 = "s16", S32 = "s32", S64 = "s64",
        F16 = "f16", F16x2 = "f16x2", Bf16 = "bf16", Bf16x2 = "bf16x2", Tf32 = "tf32",
        F32 = "f32", F64 = "f64", Pred = "pred",
    }

    /// What a register is declared as. Signedness belongs to instructions, so integers have one class a width.
    RegClass { B32 = "b32", Pred = "pred", B16 = "b16", B64 = "b64", B128 = "b128", F32 = "f32", F64 = "f64" }

    /// A state space. `Generic` has no spelling: it is the absence of one.
    Space {
        Generic = "", Global = "global", Shared = "shared", Const = "const", Local = "local", Param = "param",
        SharedCluster = "shared::cluster",
    }
}

impl Type {
    /// The size in bits of one value; 1 for a predicate.
    pub const fn bits(self) -> u32 {
        match self {
            Type::Pred => 1,
            Type::B8 | Type::U8 | Type::S8 => 8,
            Type::B16 | Type::U16 | Type::S16 | Type::F16 | Type::Bf16 => 16,
            Type::B32 | Type::U32 | Type::S32 | Type::F16x2 | Type::Bf16x2 | Type::Tf32 | Type::F32 => 32,
            Type::B64 | Type::U64 | Type::S64 | Type::F64 => 64,
            Type::B128 => 128,
        }
    }

    /// The size in bytes of one value in memory; predicates do not live in memory and count as one byte.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether arithmetic on this type is floating-point arithmetic.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 | Type::Tf32 | Type::F32 | Type::F64
        )
    }

    /// Whether this is a signed integer type.
    pub const fn is_signed(self) -> bool {
        matches!(self, Type::S8 | Type::S16 | Type::S32 | Type::S64)
    }

    /// Whether this is an unsigned integer type.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, Type::U8 | Type::U16 | Type::U32 | Type::U64)
    }

    /// Whether this is a signed or unsigned integer type.
    pub const fn is_integer(self) -> bool {
        self.is_signed() || self.is_unsigned()
    }

    /// Whether this is a pure bit type, which agrees with every register of its size.
    pub const fn is_bits(self) -> bool {
        matches!(self, Type::B8 | Type::B16 | Type::B32 | Type::B64 | Type::B128)
    }

    /// The integer type of the same signedness and twice the width, as `mul.wide` yields it.
    pub const fn widened(self) -> Option<Type> {
        match self {
            Type::U16 => Some(Type::U32),
            Type::U32 => Some(Type::U64),
            Type::S16 => Some(Type::S32),
            Type::S32 => Some(Type::S64),
            _ => None,
        }
    }

    /// The class of a register that best holds a value of this type: 8-bit values travel in 16-bit registers.
    pub const fn class(self) -> RegClass {
        match self {
            Type::Pred => RegClass::Pred,
            Type::F32 => RegClass::F32,
            Type::F64 => RegClass::F64,
            Type::B128 => RegClass::B128,
            _ => match self.bits() {
                8 | 16 => RegClass::B16,
                32 => RegClass::B32,
                _ => RegClass::B64,
            },
        }
    }
}

impl RegClass {
    /// All of them, in the order in which an entry declares its registers.
    pub const DECLARED: [RegClass; 7] = [
        RegClass::Pred,
        RegClass::B16,
        RegClass::B32,
        RegClass::B64,
        RegClass::B128,
        RegClass::F32,
        RegClass::F64,
    ];

    /// The place in that order.
    pub fn rank(self) -> usize {
        Self::DECLARED.iter().position(|known| *known == self).unwrap_or_default()
    }

    /// The width in bits; 1 for a predicate.
    pub const fn bits(self) -> u32 {
        self.ty().bits()
    }

    /// The type that the class is declared with.
    pub const fn ty(self) -> Type {
        match self {
            RegClass::Pred => Type::Pred,
            RegClass::B16 => Type::B16,
            RegClass::B32 => Type::B32,
            RegClass::B64 => Type::B64,
            RegClass::B128 => Type::B128,
            RegClass::F32 => Type::F32,
            RegClass::F64 => Type::F64,
        }
    }
}

//! Atoms of contractions, as data: what one instruction multiplies, and where its operands lie.
//!
//! `contract` says which kind of atom it is made of ([`Atom`]). The atom `fma` is one multiplication and addition of a thread.
//! A matrix atom ([`MatrixAtom`]) is an instruction of a warp, `mma.sync`: 16 rows times 8 columns over so many steps. Which
//! one it is follows from the types of the factors. Its operands are fragments: layouts over the axes `m`, `n` and `k`, whose
//! digits are the lowest of the layouts of a contraction's tiles ([`Fit`]).
//!
//! A fragment's registers are elements. Elements of fewer than 32 bits share words: neighbours in the order of registers, the
//! first one lowest.
//!
//! ```text
//! A (g = lane / 4, t = lane % 4)      16 bits: word 0 = (g; 2t, 2t+1), word 1 = (g+8; …), word 2 = (g; 2t+8, …), word 3
//! B                                   16 bits: word 0 = (2t, 2t+1; g), word 1 = (2t+8, 2t+9; g)
//! C and D                             (g; 2t), (g; 2t+1), (g+8; 2t), (g+8; 2t+1)
//! ```
//!
//! What an instruction computes, to the bit, is in [`numerics`].

mod fit;
mod matrix;
pub mod numerics;
#[cfg(test)]
mod tests;

pub use fit::Fit;
pub use matrix::{COLUMNS, MATRIX_ATOMS, MatrixAtom, ROWS, WARP};

use crate::data::Scalar;

/// What a contraction is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Atom {
    /// A product and a sum of one thread, in the type of the operands.
    #[default]
    Fma,
    /// The matrix instruction for the types of the factors, which are exact in it.
    Mma,
    /// The matrix instruction that takes factors of type `f32` for `tf32`: of their 23 bits behind the point, 10 count.
    Tf32,
}

impl Atom {
    pub const ALL: [Atom; 3] = [Atom::Fma, Atom::Mma, Atom::Tf32];

    /// As text names it; the atom `fma` goes without saying.
    pub fn name(self) -> &'static str {
        match self {
            Atom::Fma => "fma",
            Atom::Mma => "mma",
            Atom::Tf32 => "tf32",
        }
    }
}

/// The type of a factor, as a matrix instruction takes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FactorType {
    F16,
    Bf16,
    Tf32,
    I8,
    U8,
}

impl FactorType {
    pub const ALL: [FactorType; 5] =
        [FactorType::F16, FactorType::Bf16, FactorType::Tf32, FactorType::I8, FactorType::U8];

    pub fn name(self) -> &'static str {
        match self {
            FactorType::F16 => "f16",
            FactorType::Bf16 => "bf16",
            FactorType::Tf32 => "tf32",
            FactorType::I8 => "i8",
            FactorType::U8 => "u8",
        }
    }

    pub fn from_name(name: &str) -> Option<FactorType> {
        FactorType::ALL.into_iter().find(|factor| factor.name() == name)
    }

    /// What values of a type are to the matrix instruction of an atom.
    pub fn of(atom: Atom, scalar: Scalar) -> Option<FactorType> {
        match (atom, scalar) {
            (Atom::Mma, Scalar::F16) => Some(FactorType::F16),
            (Atom::Mma, Scalar::BF16) => Some(FactorType::Bf16),
            (Atom::Mma, Scalar::I8) => Some(FactorType::I8),
            (Atom::Mma, Scalar::U8) => Some(FactorType::U8),
            (Atom::Tf32, Scalar::F32) => Some(FactorType::Tf32),
            _ => None,
        }
    }

    /// The type of values that are such factors.
    pub fn scalar(self) -> Scalar {
        match self {
            FactorType::F16 => Scalar::F16,
            FactorType::Bf16 => Scalar::BF16,
            FactorType::Tf32 => Scalar::F32,
            FactorType::I8 => Scalar::I8,
            FactorType::U8 => Scalar::U8,
        }
    }

    /// How many of them are in a word of 32 bits.
    pub fn per_word(self) -> usize {
        (4 / self.scalar().size()) as usize
    }

    pub fn is_float(self) -> bool {
        !matches!(self, FactorType::I8 | FactorType::U8)
    }
}

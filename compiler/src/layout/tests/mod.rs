//! Layouts against their enumeration, and the layouts that the compiler needs by name.

mod accesses;
mod algebra;
mod conversions;
mod memories;
mod named;
mod texts;

use super::*;
use proptest::prelude::*;

/// A layout from text that is right.
pub fn value(text: &str) -> ValueLayout {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn memory(text: &str) -> MemoryLayout {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// 32 banks of 4 bytes; halves of a warp at 8 bytes, quarters at 16.
pub fn banks() -> Banks {
    Banks { count: 32, bank_bytes: 4, phases: vec![(4, 32), (8, 16), (16, 8)] }
}

pub fn costs() -> Costs {
    Costs { shuffle: 2, select: 1, wavefront: 1, barrier: 20, vector_bits: 128, banks: banks() }
}

/// One digit of a random layout: which dimension it comes from, its size, which axis it goes to (past the
/// last one it is a replica), and which earlier bit it is xored with, if it is a bit.
type Piece = (usize, u64, usize, Option<usize>);

pub fn pieces(most: usize) -> impl Strategy<Value = Vec<Piece>> {
    let size = prop_oneof![4 => Just(2u64), 2 => Just(4), 1 => Just(3), 1 => Just(5)];
    prop::collection::vec((0usize..4, size, 0usize..4, prop::option::of(0usize..8)), 0..most)
}

/// The layout that pieces make, its digits cut from dimensions in the order in which they stand.
pub fn of_pieces(pieces: &[Piece]) -> ValueLayout {
    let mut next = [1u64; 4];
    let mut bits: Vec<String> = Vec::new();
    let mut axes = [const { Vec::new() }; 4];
    for (dimension, size, axis, with) in pieces {
        let name = Dimension::ALL[*dimension].name();
        let mut factor = format!("{name}:{size}@{}", next[*dimension]);
        next[*dimension] *= size;
        if *size == 2 && *axis < 3 {
            // Xored with bits that stand alone earlier, rows stay independent: the matrix is triangular.
            let other = with.and_then(|at| bits.get(at).cloned());
            bits.push(factor.clone());
            if let Some(other) = other {
                factor = format!("{factor}^{other}");
            }
        }
        axes[*axis].push(factor);
    }
    let mut text = String::new();
    for (name, factors) in ["_", "i", "j", "k"].iter().zip([&axes[3], &axes[0], &axes[1], &axes[2]]) {
        if !factors.is_empty() || *name == "i" {
            let factors = if factors.is_empty() { "1".to_string() } else { factors.join(" · ") };
            text += &format!("{name} = {factors}\n");
        }
    }
    value(&text)
}

pub fn layouts(most: usize) -> impl Strategy<Value = ValueLayout> {
    pieces(most).prop_map(|pieces| of_pieces(&pieces))
}

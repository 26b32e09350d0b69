//! Names that are taken: of the thousands of registers of a product each is asked about once.

use crate::ptx::name::{Name, Short};
use rustc_hash::FxHashSet;

/// A set of names. Short ones are looked up by three words each.
pub(super) struct Taken {
    /// Open addressing, a power of two: the place in `short`, plus one; 0 where there is none.
    slots: Vec<u32>,
    short: Vec<Words>,
    long: FxHashSet<String>,
}

/// A short name and its length.
type Words = [u64; 3];

impl Taken {
    /// An empty set with room for so many names.
    pub fn with_capacity(names: usize) -> Self {
        let slots = vec![0; (2 * names).next_power_of_two().max(2)];
        Self { slots, short: Vec::with_capacity(names), long: FxHashSet::default() }
    }

    /// Adds a name; whether it is new.
    pub fn insert(&mut self, name: &Name) -> bool {
        match name.short() {
            Some(short) => self.insert_short(words(short)),
            None => self.long.insert(name.to_string()),
        }
    }

    fn insert_short(&mut self, words: Words) -> bool {
        if 2 * self.short.len() >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot(words);
        if self.slots[slot] != 0 {
            return false;
        }
        self.short.push(words);
        self.slots[slot] = self.short.len() as u32;
        true
    }

    /// Where a name is, or may be put.
    fn slot(&self, words: Words) -> usize {
        let mask = self.slots.len() - 1;
        let mixed = words.iter().fold(0u64, |hash, word| (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR));
        let mut slot = (mixed >> 32) as usize & mask;
        while self.slots[slot] != 0 && self.short[self.slots[slot] as usize - 1] != words {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn grow(&mut self) {
        self.slots = vec![0; 2 * self.slots.len()];
        for at in 0..self.short.len() {
            let slot = self.slot(self.short[at]);
            self.slots[slot] = at as u32 + 1;
        }
    }
}

/// An odd number whose bits have no pattern: 2^64 by the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The letters of a name, with zeros behind them, and its length: where a name has zeros at its end, it is longer.
fn words(name: &Short) -> Words {
    let (letters, length) = name.padded();
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&letters[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    // The last two words have two letters in common.
    [word(0), word(8), word(14) ^ (u64::from(length) << 8)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_new_once() {
        let mut taken = Taken::with_capacity(3);
        let name = |number: u32| match number % 3 {
            0 => format!("%f{number}"),
            1 => format!("{number}_of_22_letters______________")[..22].to_owned(),
            _ => format!("%longer_than_what_lies_in_place_{number}"),
        };
        for number in 0..3000 {
            assert!(taken.insert(&name(number).into()), "{}", name(number));
        }
        for number in 0..3000 {
            assert!(!taken.insert(&name(number).into()), "{}", name(number));
        }
    }

    #[test]
    fn names_that_end_in_zeros_are_told_apart() {
        let mut taken = Taken::with_capacity(1);
        for name in ["", "\0", "\0\0", "a", "a\0", "a_letter_more_or_less", "a_letter_more_or_less\0"] {
            assert!(taken.insert(&name.into()), "{name:?}");
            assert!(!taken.insert(&name.into()), "{name:?}");
        }
    }
}

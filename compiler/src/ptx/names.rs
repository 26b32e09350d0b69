//! Unique names within an entry: a stem near to the hint, and a number where the stem has been given out before.

use super::operand::SpecialReg;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// The names that an entry has given out. Registers and everything else are kept apart by the percent sign.
#[derive(Debug)]
pub(super) struct Names {
    /// Names that are in use; each with the last number that was tried for it as a stem.
    used: FxHashMap<String, u32>,
    /// Names outside of the entry, which hide nothing and are hidden by nothing in it.
    outside: Arc<FxHashSet<String>>,
}

impl Names {
    pub fn new(entry: &str) -> Self {
        let special = SpecialReg::all().map(|special| special.name());
        let used = special.map(|name| name.split('.').next().unwrap_or_default()).chain([entry]);
        Self { used: used.map(|name| (name.to_owned(), 1)).collect(), outside: Arc::default() }
    }

    /// Keeps a name from being given out.
    pub fn reserve(&mut self, name: &str) {
        self.used.entry(name.to_owned()).or_insert(1);
    }

    /// Keeps the names outside of the entry from being given to anything in it.
    pub fn keep_off(&mut self, outside: Arc<FxHashSet<String>>) {
        self.outside = outside;
    }

    /// Whether a name is one outside of the entry.
    pub fn is_outside(&self, name: &str) -> bool {
        self.outside.contains(name)
    }

    /// A new name: the prefix, and a PTX identifier near to the hint.
    pub fn give(&mut self, prefix: &str, hint: &str) -> String {
        let stem = identifier(prefix, hint);
        // Registers have a percent sign, which nothing outside has.
        let is_taken = |names: &Self, name: &str| {
            names.used.contains_key(name) || (prefix.is_empty() && names.outside.contains(name))
        };
        let mut name = stem.clone();
        if is_taken(self, &name) {
            let separator = if stem.ends_with(|last: char| last.is_ascii_digit()) { "_" } else { "" };
            let mut number = self.used.get(&stem).copied().unwrap_or(1);
            while is_taken(self, &name) {
                number += 1;
                name = format!("{stem}{separator}{number}");
            }
            self.used.insert(stem, number);
        }
        self.used.insert(name.clone(), 1);
        name
    }
}

/// The prefix, and a PTX identifier near to `hint`.
fn identifier(prefix: &str, hint: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$');
    let letters = hint.trim_start_matches('%').chars();
    let name: String = letters.map(|letter| if fits(letter) { letter } else { '_' }).collect();
    // No leading digit, and neither `_` nor `WARP_SZ`, which have a meaning.
    let leading = if !super::verify::is_identifier(&name) || name.starts_with('_') { "v" } else { "" };
    format!("{prefix}{leading}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_numbers_are_told_from_stems_that_end_in_digits() {
        let mut names = Names::new("k");
        let hints = ["a", "a", "a3", "a", "a1", "a1", "a1_", "a1_", "a1_2", "a2", "clock", "a1_02"];
        let given: Vec<String> = hints.iter().map(|hint| names.give("%", hint)).collect();
        let expected = [
            "%a", "%a2", "%a3", "%a4", "%a1", "%a1_2", "%a1_", "%a1_3", "%a1_2_2", "%a2_2", "%clock2",
            "%a1_02",
        ];
        assert_eq!(given, expected);
        assert_eq!(names.give("", "k"), "k2");
    }

    #[test]
    fn names_outside_are_kept_off() {
        let mut names = Names::new("k");
        names.keep_off(Arc::new(["end_if", "end_if3", "i"].map(String::from).into_iter().collect()));
        let given: Vec<String> = (0..3).map(|_| names.give("", "end_if")).collect();
        assert_eq!(given, ["end_if2", "end_if4", "end_if5"]);
        assert_eq!(names.give("%", "i"), "%i");
    }

    #[test]
    fn no_name_is_given_twice() {
        let mut names = Names::new("k");
        let mut seen = std::collections::BTreeSet::new();
        let hints = ["x", "x1", "x1_", "x1_1", "x_", "x2", "x12", "clock", "tid"];
        for round in 0..700 {
            let name = names.give("%", hints[(round * 7 + round / 5) % hints.len()]);
            assert!(seen.insert(name.clone()), "{name}");
            assert!(SpecialReg::all().all(|special| special.name() != name), "{name}");
        }
    }
}

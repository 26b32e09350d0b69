//! Unique names within an entry: a stem near to the hint, and a number where the stem has been given out before.

use super::digits::push_int;
use super::name::Name;
use super::operand::SpecialReg;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::sync::Arc;

/// The names that an entry has given out. Registers and everything else are kept apart by the percent sign.
#[derive(Debug)]
pub(super) struct Names {
    /// How many names each stem has given out: itself, and those with the numbers from 2 to that. A number is left out
    /// only where that name was taken already, so the numbered ones need no rows of their own. By their places in `counts`.
    stems: FxHashMap<Cow<'static, str>, usize>,
    counts: Vec<u32>,
    /// Of the registers named last, by a few bits of their hints: most are called like one nearby.
    last: [Last; SLOTS],
    /// Whether some stem ends in a digit: only then can a numbered name be anything else too. For registers, and for
    /// everything else.
    digits: [bool; 2],
    /// The name in the making.
    buffer: String,
    /// Names outside of the entry, which hide nothing and are hidden by nothing in it.
    outside: Arc<FxHashSet<String>>,
}

/// As many as the hints of a kernel's registers rarely are.
const SLOTS: usize = 64;

/// What a register was named by.
#[derive(Clone, Debug, Default)]
struct Last {
    /// Empty where none was named.
    hint: String,
    stem: Name,
    /// The stem's.
    place: usize,
}

impl Names {
    pub fn new(entry: &str) -> Self {
        let mut stems = FxHashMap::with_capacity_and_hasher(64, Default::default());
        let mut counts = Vec::with_capacity(64);
        for special in SpecialReg::all() {
            stems.entry(Cow::Borrowed(special.name().split('.').next().unwrap_or_default())).or_insert_with(
                || {
                    counts.push(1);
                    counts.len() - 1
                },
            );
        }
        let (buffer, outside) = (String::new(), Arc::default());
        let last = std::array::from_fn(|_| Last::default());
        let mut names = Self { stems, counts, last, digits: [false; 2], buffer, outside };
        names.reserve(entry);
        names
    }

    /// Keeps a name from being given out.
    pub fn reserve(&mut self, name: &str) {
        if !self.stems.contains_key(name) {
            self.insert(name.to_owned(), 1);
        }
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
        loop {
            self.buffer.clear();
            self.buffer.push_str(prefix);
            push_identifier(&mut self.buffer, hint);
            self.number();
            // Registers have a percent sign, which nothing outside has.
            if !prefix.is_empty() || !self.outside.contains(self.buffer.as_str()) {
                return self.buffer.clone();
            }
        }
    }

    /// A new name for a register, as [`give`](Self::give) gives it.
    pub fn give_register(&mut self, hint: &str) -> Name {
        let of = |letter: Option<&u8>| letter.copied().map_or(0, usize::from);
        let bits = hint.len() + of(hint.as_bytes().last()) + 3 * of(hint.as_bytes().first());
        let slot = bits % SLOTS;
        let last = &self.last[slot];
        if !hint.is_empty() && last.hint == hint && self.is_plain(last.stem.as_bytes()) {
            let count = &mut self.counts[last.place];
            *count += 1;
            return Name::numbered(&last.stem, *count);
        }
        self.buffer.clear();
        self.buffer.push('%');
        push_identifier(&mut self.buffer, hint);
        let last = &mut self.last[slot];
        last.hint.clear();
        last.hint.push_str(hint);
        last.stem = self.buffer.as_str().into();
        self.last[slot].place = self.number();
        self.buffer.as_str().into()
    }

    /// Whether all that is given for a stem that is taken is the stem and the next number.
    fn is_plain(&self, stem: &[u8]) -> bool {
        // `%clock64` is a special register.
        !self.digits[usize::from(stem.starts_with(b"%"))] && stem != b"%clock"
    }

    /// The stem's place.
    fn insert(&mut self, stem: String, count: u32) -> usize {
        self.digits[usize::from(stem.starts_with('%'))] |= ends_in_digit(&stem);
        self.stems.insert(Cow::Owned(stem), self.counts.len());
        self.counts.push(count);
        self.counts.len() - 1
    }

    /// Makes the stem in the buffer a name that is not taken; the stem's place.
    fn number(&mut self) -> usize {
        let length = self.buffer.len();
        let mut next = 1;
        if let Some(place) = self.stems.get(self.buffer.as_str()).copied() {
            if self.is_plain(self.buffer.as_bytes()) {
                self.counts[place] += 1;
                push_int(&mut self.buffer, i64::from(self.counts[place]));
                return place;
            }
            next = self.counts[place];
        } else if !self.is_numbered(&self.buffer) {
            return self.insert(self.buffer.clone(), 1);
        }
        let separator = if ends_in_digit(&self.buffer) { "_" } else { "" };
        loop {
            next += 1;
            self.buffer.truncate(length);
            self.buffer.push_str(separator);
            push_int(&mut self.buffer, i64::from(next));
            if !self.stems.contains_key(self.buffer.as_str()) && !self.is_numbered(&self.buffer) {
                break;
            }
        }
        match self.stems.get(&self.buffer[..length]) {
            Some(place) => {
                self.counts[*place] = next;
                *place
            }
            None => self.insert(self.buffer[..length].to_owned(), next),
        }
    }

    /// Whether a name is a stem with a number that the stem has given out.
    fn is_numbered(&self, name: &str) -> bool {
        let stem = name.trim_end_matches(|last: char| last.is_ascii_digit());
        let number = &name[stem.len()..];
        let given =
            |stem: &str, number: u32| self.stems.get(stem).is_some_and(|place| number <= self.counts[*place]);
        match number.parse::<u32>() {
            Ok(parsed) if parsed >= 2 && !number.starts_with('0') => {
                let inner = stem.strip_suffix('_').filter(|inner| ends_in_digit(inner));
                given(stem, parsed) || inner.is_some_and(|inner| given(inner, parsed))
            }
            _ => false,
        }
    }
}

fn ends_in_digit(name: &str) -> bool {
    name.ends_with(|last: char| last.is_ascii_digit())
}

/// Appends a PTX identifier near to `hint`.
fn push_identifier(name: &mut String, hint: &str) {
    let start = name.len();
    let hint = hint.trim_start_matches('%');
    if hint.starts_with(|first: char| first.is_ascii_alphabetic()) && super::verify::is_identifier(hint) {
        name.push_str(hint);
        return;
    }
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$');
    name.extend(hint.chars().map(|letter| if fits(letter) { letter } else { '_' }));
    if !super::verify::is_identifier(&name[start..]) || name[start..].starts_with('_') {
        // No leading digit, and neither `_` nor `WARP_SZ`, which have a meaning.
        name.insert(start, 'v');
    }
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
    fn registers_that_are_called_alike_are_named_as_all_others() {
        let hints = [
            "a", "a", "a", "%a", "a b", "a b", "clock", "clock", "clock", "a", "a2", "a", "a", "", "", "tid",
        ];
        let (mut plain, mut fast) = (Names::new("k"), Names::new("k"));
        for round in 0..3 {
            for hint in hints {
                assert_eq!(*fast.give_register(hint), *plain.give("%", hint), "{hint} in round {round}");
            }
        }
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

//! Some of what a kernel's own reductions combined, on which the user's promises are tried.

use super::value::Value;
use crate::builtins::random::bits;

/// Terms that are kept.
const KEPT: usize = 48;

/// Some of the terms of a reduction.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    seen: u32,
    kept: Vec<Value>,
}

impl Samples {
    /// The first terms, and of later ones each as likely as any other.
    pub fn add(&mut self, term: &Value) {
        self.seen = self.seen.saturating_add(1);
        if self.kept.len() < KEPT {
            self.kept.push(term.clone());
        } else {
            let at = bits(7, u64::from(self.seen)) % self.seen;
            if let Some(place) = self.kept.get_mut(at as usize) {
                *place = term.clone();
            }
        }
    }

    /// What was kept, which is forgotten.
    pub fn take(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.kept)
    }
}

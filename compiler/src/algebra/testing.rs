//! A vocabulary for the tests: numbered sources, and no operations.

use super::atoms::Vocabulary;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Plain;

impl Vocabulary for Plain {
    type Source = u32;
    type Operation = ();
}

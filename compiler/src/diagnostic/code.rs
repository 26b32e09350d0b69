//! What a diagnostic is called.

/// A stable code such as `E0123` or `W0007`. Constants live in [`codes`](super::codes), one a diagnostic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Code(pub &'static str);

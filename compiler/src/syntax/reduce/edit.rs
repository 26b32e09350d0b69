//! Changes of a text that make it smaller.

use crate::source::Span;

/// A change of the text: what stands in the place of a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    pub span: Span,
    pub text: String,
}

impl Edit {
    /// By how much the text becomes shorter.
    pub fn gain(&self) -> i64 {
        i64::from(self.span.end - self.span.start) - self.text.len() as i64
    }
}

/// Powers of two from half a list down to 1.
pub fn lengths(count: usize) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut length = count.div_ceil(2).next_power_of_two();
    while length > 0 && count > 0 {
        lengths.push(length);
        length /= 2;
    }
    lengths
}

/// Takes away each run of so many, one after the other.
pub fn runs(spans: &[Span], length: usize) -> Vec<Edit> {
    spans.chunks(length).filter_map(without).collect()
}

/// The same at every place.
pub fn windows(spans: &[Span], length: usize) -> Vec<Edit> {
    spans.windows(length).filter_map(without).collect()
}

/// Takes away what lies from the first to the last of some places.
fn without(spans: &[Span]) -> Option<Edit> {
    let (first, last) = (spans.first()?, spans.last()?);
    Some(Edit { span: first.to(*last), text: String::new() })
}

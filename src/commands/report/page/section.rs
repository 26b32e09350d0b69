//! Parts of the page.

use maud::Markup;

/// A part of the page, with its place in the table of contents.
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// A sentence or two on how to read it.
    pub(super) lead: Markup,
    pub(super) body: Markup,
}

pub(super) fn section(id: &'static str, title: &'static str, lead: Markup, body: Markup) -> Section {
    Section { id, title, lead, body }
}

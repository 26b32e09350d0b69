//! Every diagnostic code, its one-line title, and its page. Grouped by the room that reports it; a helper
//! that adds a code adds its page `docs/errors/CODE.md` and a snapshot test beside it.
//!
//! Ranges: E00xx text and syntax · E01xx names · E02xx types · E03xx shapes, ranges and indices ·
//! E04xx bounds, races and coverage · E05xx schedules · E06xx limits of the target · W0xxx warnings.

use super::Code;

macro_rules! codes {
    ($($code:ident $title:literal;)*) => {
        $(#[doc = $title] pub const $code: Code = Code(stringify!($code));)*

        /// Every code with its title and its page, in the order of the table.
        pub const ALL: &[(Code, &str, &str)] = &[
            $(($code, $title, include_str!(concat!("../../../docs/errors/", stringify!($code), ".md"))),)*
        ];
    };
}

codes! {
    // E00xx text and syntax

    // E01xx names

    // E02xx types

    // E03xx shapes, ranges and indices

    // E04xx bounds, races and coverage

    // E05xx schedules

    // E06xx limits

    // W0xxx warnings
}

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
    E0001 "a character that the language does not use";
    E0002 "a name with letters outside ASCII";
    E0003 "a file that is not UTF-8";
    E0004 "a comment that is never closed";
    E0005 "a malformed number";
    E0006 "an integer too large for any type";
    E0007 "a number too large for any type";
    E0008 "an unknown suffix on a number";
    E0009 "a closing bracket that closes nothing";
    E0010 "a bracket that is never closed";
    E0011 "unexpected text";
    E0012 "text outside of any item";
    E0013 "an expression or nesting that is too deep";
    E0014 "an assignment to something that cannot be assigned to";
    E0015 "a value that nothing takes";
    E0016 "chained comparisons";
    E0017 "a reserved word as a name";
    E0018 "an `else` value on something other than an element";
    E0019 "an array type without extents";
    E0020 "a name without a type";
    E0021 "a result without a name";
    E0022 "a function without a result type";
    E0023 "an item inside of an item";
    E0024 "a `let` without a value";

    // E01xx names

    // E02xx types

    // E03xx shapes, ranges and indices

    // E04xx bounds, races and coverage

    // E05xx schedules

    // E06xx limits
    E0601 "a value that the host must know before the launch cannot be evaluated there";
    E0602 "a local array needs memory that cannot be sized before the launch";

    // W0xxx warnings
}

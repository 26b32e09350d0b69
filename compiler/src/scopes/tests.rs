//! What counts at places in a kernel, in words.

use super::{Known, visible};
use crate::check::typed::Numbers;
use crate::source::SourceFile;

const TEXT: &str = "\
fn half(v: f32) -> f32 {
    let h = 0.5 * v
    h + 0.0
}

kernel k(x: f32[n], lots: i64) -> y: f32[n] {
    forall i in n {
        let at = i
        var s = 0.0
        for j in 0..3 {
            let term = half(x[i]) + j as f32
            s += term
            s = s * 2.0
        }
        if s > 1.0 { s = 1.0 }
        let two = half(s)
        y[at] = s + two
    }
}
";

/// The names at the first place of a text.
fn at(text: &str) -> String {
    let source = SourceFile::new("t.krn", TEXT);
    let (program, diagnostics) = crate::check_source(&source);
    assert!(!diagnostics.has_errors());
    let kernel = &program.kernels[0];
    let offset = TEXT.find(text).unwrap_or_else(|| panic!("no `{text}`")) as u32;
    let names = visible(kernel, &Numbers::of(kernel), offset);
    let words: Vec<String> = names
        .iter()
        .map(|name| match &name.is {
            Known::Defined { definition, once } if once.is_empty() => format!("{}: {definition}", name.name),
            Known::Defined { definition, once } => format!("{}: {definition} of {}", name.name, once.len()),
            Known::Unknown(_) => format!("{}: unknown", name.name),
            other => format!("{}: {other:?}", name.name),
        })
        .collect();
    words.join(", ")
}

#[test]
fn the_definition_that_counts_at_a_place() {
    let places = [
        "forall i",
        "let at",
        "var s",
        "for j",
        "let term",
        "s += term",
        "s = s * 2",
        "if s >",
        "s = 1.0",
        "let two",
        "y[at] =",
    ];
    let table: Vec<String> = places.iter().map(|place| format!("{place:<10} {}\n", at(place))).collect();
    insta::assert_snapshot!(table.concat());
}

#[test]
fn in_a_function_that_is_called_twice_nobody_knows_from_where() {
    assert_eq!(at("h + 0.0"), "");
    assert_eq!(at("let h"), "v: unknown");
}

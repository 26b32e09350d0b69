//! What the checker makes of the corpus: ranges written out, conversions explicit, functions inlined. A change
//! of meaning shows up here as a diff. What is proved is left out: it has tests of its own.

use krn_compiler::check::dump::{Options, dump};
use krn_compiler::{check_source, source::SourceFile};

fn typed(path: &std::path::Path) -> String {
    let text = std::fs::read_to_string(path).expect("a readable test file");
    let (program, diagnostics) = check_source(&SourceFile::new("test.krn", text));
    let messages: Vec<&str> = diagnostics.iter().map(|report| report.message.as_str()).collect();
    format!("{}{}", dump(&program, Options::default()), messages.join("\n"))
}

#[test]
fn the_corpus_is_typed_as_recorded() {
    insta::glob!("corpus/*.krn", |path| {
        let text = typed(path);
        insta::assert_snapshot!(text);
    });
}

#[test]
fn the_examples_are_typed_as_recorded() {
    insta::glob!("../../examples", "*.krn", |path| {
        let text = typed(path);
        insta::assert_snapshot!(text);
    });
}

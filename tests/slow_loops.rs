//! The net under teams and tiles: which kernels `krn explain` tells that their threads walk a long loop by themselves, far
//! longer than what they move takes. The kernels are those of `tests/slow_loops/`, of the recognition table and of the
//! examples; `tests/slow_loops.table` has a line for each that is told, and is reviewed.
//!
//! The kernels of `tests/slow_loops/` are called `alone_…` where they have to be told, and `shared_…` where they must not.
//! After a change that is meant `KRN_ACCEPT_SLOW_LOOPS=1 cargo test --test all slow_loops` writes the table anew.

use crate::tool_support::kernel_files;
use krn_compiler::analysis::model::sizes_made_for;
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, SymbolValues, Variants, compile, explain_schedules};
use krn_runtime::profile::{gpu_for, slow_loops};
use std::path::Path;

const TABLE: &str = "tests/slow_loops.table";
const OWN: &str = "tests/slow_loops";
const HEAD: &str = "\
# Loops that each thread walks by itself, far longer than what it moves takes: `tests/slow_loops.rs` says how to write this anew.
# kernel | loop | why\n\n";
const TARGET: &str = "sm_90";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file's kernels.
struct OfFile {
    file: String,
    /// The lines of those that are told.
    lines: Vec<String>,
    /// Of all of them.
    names: Vec<String>,
}

fn of_file(file: String) -> OfFile {
    let text = std::fs::read_to_string(root().join(&file)).expect("a file of kernels");
    let source = SourceFile::new(file.as_str(), text);
    let usual = Variants::For(SymbolValues::new());
    let options = CompileOptions { ir: true, variants: usual, ..CompileOptions::for_target(TARGET) };
    let compilation = compile(&source, &options).unwrap_or_else(|error| panic!("{file}: {error}"));
    let (mut lines, mut names) = (Vec::new(), Vec::new());
    for kernel in &compilation.ir().expect("it was asked for").kernels {
        let Some(sizes) = sizes_made_for(kernel) else { continue };
        if names.contains(&kernel.name) {
            continue;
        }
        names.push(kernel.name.clone());
        for slow in slow_loops(&source, kernel, &sizes, gpu_for(TARGET)) {
            lines.push(format!("{file}:{} | {} | {}", kernel.name, slow.text(&source), slow.reason));
        }
    }
    OfFile { file, lines, names }
}

#[test]
fn what_falls_through_is_told_and_nothing_else() {
    let found: Vec<OfFile> =
        kernel_files(&[OWN, "tests/recognition", "examples"]).into_iter().map(of_file).collect();
    for OfFile { file, lines, names } in found.iter().filter(|known| known.file.starts_with(OWN)) {
        for name in names {
            let is_told = lines.iter().any(|line| line.starts_with(&format!("{file}:{name} | ")));
            assert!(
                name.starts_with("alone_") || name.starts_with("shared_"),
                "{file}: `{name}` does not say whether it is told"
            );
            assert_eq!(is_told, name.starts_with("alone_"), "{file}:{name}: {lines:?}");
        }
    }
    let lines: Vec<String> = found.into_iter().flat_map(|known| known.lines).collect();
    let text = format!("{HEAD}{}\n", lines.join("\n"));
    if std::env::var_os("KRN_ACCEPT_SLOW_LOOPS").is_some() {
        std::fs::write(root().join(TABLE), text).expect("the table can be written");
        return;
    }
    let table = std::fs::read_to_string(root().join(TABLE)).expect("the table");
    is_as_in_the_table(&table, &text);
}

#[test]
fn narrow_factors_that_are_computed_in_a_wide_type_say_where_to_round() {
    let told = |term: &str| {
        let text = format!(
            "kernel scaled(a: bf16[m, k], b: bf16[k, n], s: f32[k]) -> y: f32[m, n] {{ y[i, j] = sum(p: {term}) }}\n"
        );
        let options = CompileOptions::for_target("sm_90");
        let compilation =
            compile(&SourceFile::new("k.krn", text), &options).unwrap_or_else(|error| panic!("{error}"));
        explain_schedules(&compilation).remove(0).text
    };
    let wide = told("(a[i, p] * s[p]) * tanh(b[p, j])");
    let said = "the factor made of `a` and `s` is computed in f32; write `(…) as bf16` around it";
    assert!(wide.contains(said), "{wide}");
    let in_parts = told("(a[i, p] * s[p]) * b[p, j]");
    let said = "the factor made of `a` and `s` is the sum of 3 numbers of bf16, computed before; `(…) as bf16` around it";
    assert!(in_parts.contains(said), "{in_parts}");
    for narrow in ["((a[i, p] * s[p]) as bf16) * b[p, j]", "a[i, p] * b[p, j]"] {
        let text = told(narrow);
        assert!(!text.contains("without matrix instructions"), "{text}");
    }
}

/// Tells the lines that are other than the table's.
fn is_as_in_the_table(table: &str, text: &str) {
    let gone: Vec<&str> = table.lines().filter(|line| !text.lines().any(|other| other == *line)).collect();
    let new: Vec<&str> = text.lines().filter(|line| !table.lines().any(|other| other == *line)).collect();
    assert!(gone.is_empty() && new.is_empty(), "no longer told: {gone:#?}\nnew: {new:#?}");
}

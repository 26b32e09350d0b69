//! The tables of built-in functions in the documents are those of the compiler.

use krn_compiler::builtins::{Builtin, MathFunction};
use krn_compiler::data::Scalar;
use std::path::Path;

fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name))
        .expect("the page can be read")
}

/// One row of `docs/language.md`.
fn row(builtin: Builtin) -> String {
    let (name, parameters, signature) =
        (builtin.name(), builtin.parameters().join(", "), builtin.signature());
    format!(
        "| `{name}({parameters})` | {} | {} | {} |",
        signature.arguments(),
        signature.gives(),
        builtin.meaning()
    )
}

#[test]
fn the_language_lists_every_function() {
    let page = page("language.md");
    let section = page.split("## Built-in functions\n").nth(1).and_then(|rest| rest.split("\n## ").next());
    let listed: Vec<&str> = section
        .expect("a section about built-in functions")
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let expected: Vec<String> = Builtin::all().map(row).collect();
    assert!(
        listed == expected,
        "the table in docs/language.md is not that of the compiler, which is\n{}",
        expected.join("\n")
    );
}

#[test]
fn the_page_on_errors_has_the_bounds_that_are_promised() {
    let page = page("math.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    for function in MathFunction::ALL {
        let name = format!("`{}`", function.name());
        for scalar in [Scalar::F32, Scalar::F64] {
            let row = rows.iter().find(|row| row.len() == 8 && row[1] == name && row[2] == scalar.name());
            let row =
                row.unwrap_or_else(|| panic!("docs/math.md has no measured error of {name} in {scalar}"));
            let number = |at: usize| row[at].parse::<f64>().expect("a number of ulp");
            let (error, bound) = (number(3), number(4));
            assert_eq!(
                bound,
                function.ulp_bound(scalar),
                "docs/math.md says otherwise of {name} in {scalar}"
            );
            assert!(error <= bound, "{name} in {scalar} was measured with {error} ulp: more than {bound}");
        }
        let sizes = rows.iter().filter(|row| row.len() == 6 && row[1] == name).count();
        assert_eq!(sizes, 1, "docs/math.md says not once how many instructions {name} has");
    }
}

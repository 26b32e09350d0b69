//! Pass tests: each file under `tests/passes/NAME/` is a kernel before the pass NAME (or the passes of a first
//! line `// passes: a, b`); the snapshot beside it is the kernel after. Review a change with `git diff`.

use krn_compiler::passes::{Pipeline, TargetFacts, run_text};
use std::path::Path;

#[test]
fn passes_change_kernels_as_recorded() {
    insta::glob!("passes/*/*.kir", |path| {
        let text = std::fs::read_to_string(path).expect("a readable file");
        let folder = path.parent().and_then(|folder| folder.file_name()).and_then(|name| name.to_str());
        let line = text.lines().next().and_then(|line| line.strip_prefix("// passes:"));
        let passes: Vec<&str> = line.or(folder).unwrap_or("").split(',').map(str::trim).collect();
        let after = run_text(&text, &passes, &TargetFacts::new(90));
        let after = after.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if let Err(error) = run_text(&after, &[], &TargetFacts::new(90)) {
            panic!("{}: what the pass leaves is not read back: {error}", path.display());
        }
        let comments: Vec<&str> = text.lines().take_while(|line| line.starts_with("//")).collect();
        insta::with_settings!({ description => comments.join("\n"), omit_expression => true }, {
            insta::assert_snapshot!(after);
        });
    });
}

/// A file of the documents.
fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_documents_have_every_pass_in_its_place() {
    let pipeline = Pipeline::for_target(&TargetFacts::new(90));
    let names: Vec<&str> = pipeline.names().collect();
    let passes = document("passes.md");
    let sections: Vec<&str> = passes.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(sections, names, "the sections of docs/passes.md");

    let ir = document("ir.md");
    let list = ir.split("## The pipeline").nth(1).and_then(|rest| rest.split("```").nth(1));
    let list = list.and_then(|list| list.strip_prefix("text\n")).expect("docs/ir.md has the list");
    assert_eq!(list, pipeline.to_string(), "the list in docs/ir.md");
}

//! Pass tests: each file under `tests/passes/NAME/` is a kernel before the pass NAME (or the passes of a first
//! line `// passes: a, b`); the snapshot beside it is the kernel after. Review a change with `git diff`.

use krn_compiler::passes::{TargetFacts, run_text};

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

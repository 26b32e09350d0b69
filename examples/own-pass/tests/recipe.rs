//! `docs/add-a-pass.md` shows the files of this crate as they are.

use std::path::Path;

#[test]
fn the_recipe_shows_the_files_as_they_are() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let recipe = std::fs::read_to_string(here.join("../../docs/add-a-pass.md")).expect("the recipe is there");
    let blocks = named_blocks(&recipe);
    let names: Vec<&str> = blocks.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        ["src/doubling.rs", "src/bits_once.rs", "src/lib.rs", "tests/text.rs", "tests/tiles.rs"]
    );
    for (name, block) in blocks {
        let file = std::fs::read_to_string(here.join(name)).expect("the recipe names a file of this crate");
        assert!(file == block, "docs/add-a-pass.md differs from {name}: copy the file into its block");
    }
}

/// The blocks of Rust behind a line of nothing but a file's name.
fn named_blocks(markdown: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix('`').and_then(|rest| rest.strip_suffix("`:")) else { continue };
        assert_eq!((lines.next(), lines.next()), (Some(""), Some("```rust")), "after {name}");
        let block = lines.by_ref().take_while(|line| *line != "```");
        blocks.push((name, block.map(|line| format!("{line}\n")).collect()));
    }
    blocks
}

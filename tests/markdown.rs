//! Every Markdown page of the repository: its lines end at 120 characters, and its links lead to files.

use std::fs;
use std::path::{Path, PathBuf};

/// The longest line, in characters.
const WIDTH: usize = 120;

/// Pages whose code blocks may have longer lines, and why.
const WIDE_BLOCKS: &[(&str, &str)] = &[
    ("docs/errors/E0013.md", "what is wrong is how deep it is nested"),
    ("docs/errors/E0025.md", "what is wrong is how long a name is"),
    ("docs/ir.md", "the pipeline as the compiler prints it: a test compares them"),
    ("docs/memory.md", "what `krn profile` prints: a test compares them"),
    ("docs/profile.md", "what `krn profile` prints: a test compares them"),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All pages, by their paths from the root; not what was built or fetched.
fn pages() -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![root()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be read") {
            let path = entry.expect("a folder entry can be read").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && !name.starts_with('.') && name != "node_modules" {
                folders.push(path);
            } else if name.ends_with(".md") {
                found.push(path.strip_prefix(root()).expect("under the root").display().to_string());
            }
        }
    }
    found.sort();
    assert!(found.len() > 100, "the pages were not found: {found:?}");
    found
}

/// The lines of a page with their numbers, and whether each stands in a block of code.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str, bool)> {
    let mut in_code = false;
    text.lines().enumerate().map(move |(at, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        (at + 1, line, in_code || is_fence)
    })
}

#[test]
fn lines_end_at_120_characters() {
    let (mut long, mut needed) = (Vec::new(), Vec::new());
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).expect("a page can be read");
        for (number, line, in_code) in lines(&text) {
            let width = line.chars().count();
            if width <= WIDTH {
                continue;
            }
            match WIDE_BLOCKS.iter().find(|(name, _)| in_code && *name == page) {
                Some((name, _)) => needed.push(*name),
                None => long.push(format!("{page}:{number}: {width} characters")),
            }
        }
    }
    assert!(long.is_empty(), "lines of more than {WIDTH} characters:\n{}", long.join("\n"));
    let idle: Vec<_> = WIDE_BLOCKS.iter().filter(|(name, _)| !needed.contains(name)).collect();
    assert!(idle.is_empty(), "these have no wide blocks, and need no exemption: {idle:?}");
}

/// Where the links of a line lead that name a file of the repository: `[text](file.md#section)`, `[name]: file.md`.
fn targets(line: &str) -> Vec<&str> {
    let mut found: Vec<&str> =
        line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target).collect();
    if let Some((name, target)) = line.split_once("]: ")
        && name.starts_with('[')
    {
        found.push(target.trim());
    }
    let file = |target: &&str| !target.contains("://") && !target.starts_with('#') && !target.contains(' ');
    found.into_iter().filter(file).map(|target| target.split('#').next().unwrap_or(target)).collect()
}

#[test]
fn links_lead_to_files() {
    let mut broken = Vec::new();
    let mut seen = 0;
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).expect("a page can be read");
        let folder = root().join(&page).parent().map(Path::to_path_buf).expect("a page has a folder");
        for (number, line, _) in lines(&text).filter(|(_, _, in_code)| !in_code) {
            for target in targets(line) {
                seen += 1;
                if !folder.join(target).exists() {
                    broken.push(format!("{page}:{number}: {target}"));
                }
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
    assert!(seen > 50, "{seen} links were read");
}

#[test]
fn links_are_found_in_text_and_definitions() {
    assert_eq!(targets("[a](b.md) and [c](../d.rs#e), not [f](#g) or [h](https://i.j)"), ["b.md", "../d.rs"]);
    assert_eq!(targets("[device]: ../examples/memory_device.rs"), ["../examples/memory_device.rs"]);
}

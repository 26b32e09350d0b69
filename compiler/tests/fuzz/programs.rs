//! Programs to start from: real ones, cut to one kernel and what stands beside the kernels, and random ones.

use krn_compiler::source::SourceFile;
use krn_compiler::syntax::{ast::Item, parse};
use rand::{Rng, RngExt};
use std::fs;
use std::path::{Path, PathBuf};

/// One program a kernel of `examples/`, `tests/kernels/` and the corpus, in a fixed order.
pub fn real() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let mut paths = Vec::new();
    for folder in ["examples", "tests/kernels", "compiler/tests/corpus"] {
        collect(&root.join(folder), &mut paths);
    }
    paths.sort();
    paths.iter().flat_map(|path| cut(&fs::read_to_string(path).expect("a program can be read"))).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of programs") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "krn") {
            paths.push(path);
        }
    }
}

/// The file's kernels, each with its schedules and with all items that are no kernels.
fn cut(text: &str) -> Vec<String> {
    let (file, _) = parse(&SourceFile::new("whole.krn", text));
    let slice = |item: &Item| {
        let span = match item {
            Item::Struct(item) => item.span,
            Item::Function(item) => item.span,
            Item::Const(item) => item.span,
            Item::Static(item) => item.span,
            Item::Kernel(item) => item.span,
            Item::Schedule(item) => item.span,
        };
        text[span.start as usize..span.end as usize].to_string()
    };
    let others: Vec<String> = file
        .items
        .iter()
        .filter(|item| !matches!(item, Item::Kernel(_) | Item::Schedule(_)))
        .map(slice)
        .collect();
    let kernels = file.items.iter().filter_map(|item| match item {
        Item::Kernel(kernel) => Some((kernel.name.name.as_str(), slice(item))),
        _ => None,
    });
    kernels
        .map(|(name, kernel)| {
            let schedules = file.items.iter().filter_map(|item| match item {
                // One for the whole file goes with each kernel.
                Item::Schedule(schedule)
                    if schedule.kernel.as_ref().is_none_or(|kernel| kernel.name == name) =>
                {
                    Some(slice(item))
                }
                _ => None,
            });
            let parts: Vec<String> = others.iter().cloned().chain([kernel]).chain(schedules).collect();
            parts.join("\n\n")
        })
        .collect()
}

/// A random well-typed program.
pub fn random(rng: &mut impl Rng) -> String {
    let lists: Vec<Vec<u32>> = (0..rng.random_range(1..4))
        .map(|_| (0..rng.random_range(0..200)).map(|_| rng.random()).collect())
        .collect();
    krn_generator::program(&lists).source
}

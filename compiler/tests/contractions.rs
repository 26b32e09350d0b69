//! What the analysis says of contractions: each kernel under `tests/contractions/` has its reductions in the lines in front of
//! it, in their order. `INSTA_UPDATE=always` writes them; review with `git diff`.

use krn_compiler::analysis::contraction::{contractions, shared};
use krn_compiler::check_source;
use krn_compiler::ir::kernel::Kernel;
use krn_compiler::lower::{LowerOptions, lower};
use krn_compiler::passes::{Pipeline, PipelineOptions, TargetFacts};
use krn_compiler::source::SourceFile;
use std::path::Path;

/// What stands in front of a line that the test writes.
const MARK: &str = "//= ";

/// Passes before the analysis: all axes of a loop in one place, loads in reductions.
const BEFORE: [&str; 3] = ["fold", "collapse", "sink_loads"];

/// The lines of a kernel.
fn lines(kernel: &mut Kernel) -> Vec<String> {
    let pipeline = Pipeline::of_names(&BEFORE, &TargetFacts::new(90)).expect("passes");
    pipeline.run(kernel, &PipelineOptions::default(), &mut |_| {}).expect("passes run");
    let mut lines = Vec::new();
    for launch in kernel.launches.keys() {
        let all = contractions(kernel, launch);
        lines.extend(all.iter().map(|one| one.text(kernel)));
        for group in shared(kernel, &all) {
            let numbers: Vec<String> = group.iter().map(|at| (at + 1).to_string()).collect();
            lines.push(format!("{} share operands", numbers.join(" and ")));
        }
    }
    if lines.is_empty() {
        lines.push("no contraction".into());
    }
    lines
}

/// A file with the lines that belong there.
fn marked(path: &Path) -> (String, String, usize) {
    let text = std::fs::read_to_string(path).expect("a file of the table");
    let plain: String = text.split_inclusive('\n').filter(|line| !line.starts_with(MARK)).collect();
    let source = SourceFile::new("table.krn", plain.as_str());
    let (program, found) = check_source(&source);
    assert!(!found.has_errors(), "{}: {found:?}", path.display());
    let mut module = lower(&program, &source, LowerOptions::for_target("sm_90")).expect("it is lowered");
    let mut kernels = module.kernels.iter_mut();
    let mut marked = String::new();
    let mut count = 0;
    for line in plain.split_inclusive('\n') {
        if line.starts_with("kernel ") {
            let kernel = kernels.next().expect("a kernel for each line that begins with `kernel`");
            lines(kernel).iter().for_each(|line| marked += &format!("{MARK}{line}\n"));
            count += 1;
        }
        marked += line;
    }
    (text, marked, count)
}

#[test]
fn contractions_have_the_classes_that_the_table_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contractions");
    let files = std::fs::read_dir(folder).expect("the table").filter_map(Result::ok);
    let mut paths: Vec<_> = files.map(|file| file.path()).collect();
    paths.sort();
    let mut all = 0;
    let mut wrong = Vec::new();
    for path in paths {
        let (text, marked, count) = marked(&path);
        all += count;
        if text != marked && std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            std::fs::write(&path, marked).expect("the table is written");
        } else if text != marked {
            let pairs = text.lines().zip(marked.lines()).find(|(one, other)| one != other);
            wrong.push(format!("{}: {pairs:?}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(all >= 80, "{all} contractions");
}

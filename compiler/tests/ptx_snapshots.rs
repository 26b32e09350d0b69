//! The PTX of a few small examples, as it was reviewed: what the text looks like. What kernels cost is told by
//! `tests/recognition.costs`. A change shows here kernel by kernel: run with `INSTA_UPDATE=new`, and read the difference.

use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, TARGETS, VERSIONS, compile};
use std::path::{Path, PathBuf};

/// Arithmetic on vectors; checked subscripts; loops whose lanes part; a loop over a row of data-dependent length; atomics
/// in shared memory.
const SHOWN: &[&str] = &["saxpy", "gather_scatter", "mandelbrot", "spmv_csr", "histogram"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

fn ptx(example: &str, target: &str) -> String {
    // Without this machine's folders.
    let name = format!("examples/{example}.krn");
    let text = std::fs::read_to_string(folder().join(format!("{example}.krn"))).expect("an example");
    let done = compile(&SourceFile::new(name.as_str(), text), &CompileOptions::for_target(target));
    let text = done.unwrap_or_else(|error| panic!("{name}: {error}")).compiled.ptx;
    assert!(text.starts_with(&format!("// krn {VERSIONS}\n")), "{text}");
    // Every change of the compiler changes its version.
    text.replacen(VERSIONS, "(version)", 1)
}

#[test]
fn examples_compile_to_the_ptx_that_was_reviewed() {
    for example in SHOWN {
        let suffix = format!("{example}.krn");
        insta::with_settings!(
            { omit_expression => true, prepend_module_to_snapshot => false, snapshot_suffix => suffix },
            { insta::assert_snapshot!("ptx", ptx(example, "sm_90")); }
        );
    }
}

/// Nothing depends on what else the process does, on who was first, or on addresses in memory.
#[test]
fn the_same_file_gives_the_same_bytes() {
    let files = std::fs::read_dir(folder()).expect("the examples are there").filter_map(Result::ok);
    let paths = files.map(|file| file.path()).filter(|path| path.extension().is_some_and(|e| e == "krn"));
    let examples: Vec<String> = paths
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .filter(|example| xtask::is_in_share(example, 4))
        .collect();
    assert!(examples.len() >= 4, "only {examples:?}");
    let targets = [TARGETS[0], "sm_90"];
    let all = || -> Vec<String> {
        examples.iter().flat_map(|example| targets.map(|target| ptx(example, target))).collect()
    };
    let alone = all();
    let together: Vec<Vec<String>> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..2).map(|_| scope.spawn(all)).collect();
        running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for texts in together {
        for (at, (one, other)) in alone.iter().zip(&texts).enumerate() {
            assert!(one == other, "{} for {}", examples[at / 2], targets[at % 2]);
        }
    }
}

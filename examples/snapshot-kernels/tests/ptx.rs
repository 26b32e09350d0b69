//! Snapshots of the PTX of every kernel in `kernels/`, for the targets that this project ships to.

use krn_compiler::diagnostic::render::{RenderOptions, render};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileError, CompileOptions, VERSIONS, compile};
use std::path::Path;

const TARGETS: &[&str] = &["sm_80", "sm_90"];

/// The PTX of one file. Its name in the PTX's comments is the file's own, without the folders of this machine.
fn ptx(path: &Path, target: &str) -> String {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let source = SourceFile::new(name, std::fs::read_to_string(path).unwrap());
    match compile(&source, &CompileOptions::for_target(target)) {
        Ok(done) => {
            // A warning should be seen as well as a change.
            assert!(
                done.warnings.is_empty(),
                "{}",
                render(&source, &done.warnings, RenderOptions::default())
            );
            // Another version of the compiler is no other code.
            done.compiled.ptx.replacen(VERSIONS, "(version)", 1)
        }
        Err(CompileError::Diagnostics(found)) => {
            panic!("{}", render(&source, &found, RenderOptions::default()))
        }
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

#[test]
fn kernels_compile_to_the_ptx_that_was_reviewed() {
    insta::glob!("../kernels", "*.krn", |path| {
        for target in TARGETS {
            insta::with_settings!({ snapshot_suffix => kernel_and_target(path, target), omit_expression => true }, {
                insta::assert_snapshot!(ptx(path, target));
            });
        }
    });
}

fn kernel_and_target(path: &Path, target: &str) -> String {
    format!("{}-{target}", path.file_stem().unwrap().to_string_lossy())
}

/// Snapshots would be worthless if the same kernel compiled differently tomorrow.
#[test]
fn the_same_kernel_gives_the_same_bytes() {
    insta::glob!("../kernels", "*.krn", |path| {
        assert_eq!(ptx(path, "sm_90"), ptx(path, "sm_90"));
    });
}

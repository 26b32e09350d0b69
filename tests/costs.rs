//! `krn test --costs` as a user runs it.

use crate::tool_support::{command, ended};
use std::path::Path;

/// Standard output and error of a run that ends with this exit code.
fn run(folder: &Path, arguments: &[&str], code: i32) -> (String, String) {
    ended(command(&["test"]).args(arguments).current_dir(folder), code)
}

const KERNELS: &str = "kernel scale(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }\n\
                       kernel total(x: i32[n]) -> s: i32 { s = sum(i: x[i]) }\n";

#[test]
fn a_regression_fails_and_names_what_became_worse() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let write = |text: &str| std::fs::write(folder.join("k.krn"), text).expect("a temporary file");
    write(KERNELS);
    let (out, _) = run(folder, &["k.krn", "--costs"], 3);
    assert!(
        out.contains("WORSE   k.krn: scale\n  `k.costs` says nothing of it; --accept writes it"),
        "{out}"
    );
    run(folder, &["k.krn", "--costs", "--accept"], 0);
    let kept = std::fs::read_to_string(folder.join("k.costs")).expect("it was written");
    assert!(kept.contains("scale: n = 1000 for ") && kept.contains("  load sectors  "), "{kept}");
    let (out, _) = run(folder, &["k.krn", "--costs"], 0);
    assert_eq!(out, "2 kernels cost no more than they did, 0 do\n");
    // One element a lane, where there were four.
    write(&format!("{KERNELS}schedule scale {{ vectorize i: 1 }}\n"));
    let (out, _) = run(folder, &["k.krn", "--costs"], 3);
    assert!(out.contains("  worse: scale: load bytes a lane 16 -> 4 (-75.0%)\n"), "{out}");
    assert!(out.contains("  worse: scale: load requests ") && !out.contains("total"), "{out}");
    run(folder, &["k.krn", "--costs", "--kernel", "total"], 0);
    // What is not asked for stays as it was kept.
    run(folder, &["k.krn", "--costs", "--accept", "--kernel", "total"], 0);
    assert_eq!(std::fs::read_to_string(folder.join("k.costs")).expect("still there"), kept);
    run(folder, &["k.krn", "--costs", "--accept"], 0);
    run(folder, &["k.krn", "--costs"], 0);
    write(KERNELS);
    let (out, _) = run(folder, &["k.krn", "--costs"], 0);
    assert!(out.contains("  better: scale: load bytes a lane 4 -> 16"), "{out}");
    // Another target is another cost.
    let (out, _) = run(folder, &["k.krn", "--costs", "--target", "sm_80"], 3);
    assert!(out.contains("but kept for"), "{out}");
}

#[test]
fn what_cannot_be_compared_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    std::fs::write(folder.join("k.krn"), KERNELS).expect("a temporary file");
    std::fs::write(folder.join("k.costs"), "scale: n = 1\n  loads many\n").expect("a temporary file");
    let (_, err) = run(folder, &["k.krn", "--costs"], 5);
    assert!(err.contains("k.costs: line 2: `  loads many` is no cost"), "{err}");
    run(folder, &["k.krn", "--accept"], 2);
    run(folder, &["k.krn", "--costs", "--sanitize"], 2);
    run(folder, &["gone.krn", "--costs"], 5);
    std::fs::write(folder.join("bad.krn"), "kernel k() {\n").expect("a temporary file");
    run(folder, &["bad.krn", "--costs"], 1);
}

//! `krn test --costs` as a user runs it.

use crate::tool_support::{command, ended};
use std::path::Path;

/// Standard output and error of a run that ends with this exit code.
fn run(folder: &Path, arguments: &[&str], code: i32) -> (String, String) {
    ended(command(&["test"]).args(arguments).current_dir(folder), code)
}

const KERNELS: &str = "kernel scale(x: f32[m, n]) -> y: f32[m, n] { y[i, j] = 2.0 * x[i, j] }\n\
                       kernel total(x: i32[n]) -> s: i32 { s = sum(i: x[i]) }\n";

#[test]
fn a_regression_fails_and_is_accepted_with_a_reason() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let write = |text: &str| std::fs::write(folder.join("k.krn"), text).expect("a temporary file");
    let read = || std::fs::read_to_string(folder.join("k.costs")).expect("it was written");
    write(KERNELS);
    let (out, _) = run(folder, &["k.krn", "--costs"], 3);
    assert!(out.contains("NEW     scale\n  no line for m = 2048, n = 2048 for sm_90; it takes "), "{out}");
    run(folder, &["k.krn", "--costs", "--accept"], 0);
    let kept = read();
    assert!(kept.contains("\nscale | m = 2048, n = 2048 for sm_90 | "), "{kept}");
    let (out, _) = run(folder, &["k.krn", "--costs"], 0);
    assert_eq!(out, "2 lines, 0 differ from the table\n");
    // Lanes along columns, where they were along rows.
    write(&format!("{KERNELS}schedule scale {{ order j, i }}\n"));
    let (out, _) = run(folder, &["k.krn", "--costs"], 3);
    assert!(out.contains("WORSE   scale\n  for m = 2048, n = 2048 for sm_90\n  predicted time "), "{out}");
    assert!(out.contains("  4 elements a thread, ") && !out.contains("total"), "{out}");
    let (out, _) = run(folder, &["k.krn", "--costs", "--kernel", "total"], 0);
    assert_eq!(out, "1 line, 0 differ from the table\n");
    // What is not asked for stays as it was kept.
    run(folder, &["k.krn", "--costs", "--accept", "--kernel", "total"], 0);
    assert_eq!(read(), kept);
    let (_, err) = run(folder, &["k.krn", "--costs", "--accept"], 3);
    assert!(err.contains("WORSE   scale\n") && err.contains("--because"), "{err}");
    assert_eq!(read(), kept);
    run(folder, &["k.krn", "--costs", "--accept", "--because", "for a test"], 0);
    assert!(read().contains(" us before: for a test\n"), "{}", read());
    run(folder, &["k.krn", "--costs"], 0);
    write(KERNELS);
    let (out, _) = run(folder, &["k.krn", "--costs", "-v"], 0);
    assert!(out.contains("changed scale\n"), "{out}");
    // Another target is another line.
    let (out, _) = run(folder, &["k.krn", "--costs", "--target", "sm_80"], 3);
    assert!(out.contains("NEW     scale\n") && out.contains("GONE    scale\n"), "{out}");
}

#[test]
fn the_command_line_says_at_which_sizes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    std::fs::write(folder.join("k.krn"), KERNELS).expect("a temporary file");
    let read = || std::fs::read_to_string(folder.join("k.costs")).expect("it was written");
    run(folder, &["k.krn", "--costs", "--accept"], 0);
    run(folder, &["k.krn", "--costs", "--accept", "-D", "m=64,n=512"], 0);
    let kept = read();
    for line in ["scale | m = 64, n = 512 for", "scale | m = 2048, n = 2048 for", "total | n = 512 for"] {
        assert!(kept.contains(line), "{line}: {kept}");
    }
    // What was counted at other sizes is not missed.
    let (out, _) = run(folder, &["k.krn", "--costs", "-D", "m=64", "n=512"], 0);
    assert_eq!(out, "2 lines, 0 differ from the table\n");
    let (_, err) = run(folder, &["k.krn", "--costs", "-D", "q=3"], 2);
    assert!(err.contains("-D q: no kernel that is counted has this dimension"), "{err}");
    run(folder, &["k.krn", "-D", "n=3"], 2);
}

#[test]
fn one_table_holds_several_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    for file in ["a.krn", "b.krn"] {
        std::fs::write(folder.join(file), KERNELS).expect("a temporary file");
    }
    run(folder, &["a.krn", "b.krn", "--costs", "--table", "all.costs", "--accept"], 0);
    let kept = std::fs::read_to_string(folder.join("all.costs")).expect("it was written");
    assert!(kept.contains("\na.krn:scale | ") && kept.contains("\nb.krn:total | "), "{kept}");
    let (out, _) = run(folder, &["a.krn", "b.krn", "--costs", "--table", "all.costs"], 0);
    assert_eq!(out, "4 lines, 0 differ from the table\n");
    // The other file's lines stay, and are not missed.
    std::fs::write(folder.join("a.krn"), KERNELS.lines().next().expect("a line")).expect("a temporary file");
    let (out, _) = run(folder, &["a.krn", "--costs", "--table", "all.costs"], 3);
    assert!(out.contains("GONE    a.krn:total\n") && !out.contains("b.krn"), "{out}");
    run(folder, &["a.krn", "--costs", "--table", "all.costs", "--accept"], 0);
    let (out, _) = run(folder, &["a.krn", "b.krn", "--costs", "--table", "all.costs"], 0);
    assert_eq!(out, "3 lines, 0 differ from the table\n");
    // Kernels have names, files do not count, and what is not asked for is not counted: its directive is wrong.
    let (_, err) = run(folder, &["a.krn", "--costs", "--table", "all.costs", "--kernel", "krn"], 2);
    assert!(err.contains("there is no kernel `krn`; the file has `scale`"), "{err}");
    let text =
        format!("{KERNELS}// krn-test: cost k=4\nkernel other(x: f32[n]) -> y: f32[n] {{ y[i] = x[i] }}\n");
    std::fs::write(folder.join("b.krn"), text).expect("a temporary file");
    run(folder, &["b.krn", "--costs", "--table", "all.costs"], 1);
    run(folder, &["b.krn", "--costs", "--table", "all.costs", "--kernel", "total"], 0);
}

#[test]
fn what_cannot_be_compared_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    std::fs::write(folder.join("k.krn"), KERNELS).expect("a temporary file");
    std::fs::write(folder.join("k.costs"), "scale | n = 1 | many\n").expect("a temporary file");
    let (_, err) = run(folder, &["k.krn", "--costs"], 5);
    assert!(err.contains("k.costs: line 1: `scale | n = 1 | many` is no cost"), "{err}");
    run(folder, &["k.krn", "--accept"], 2);
    run(folder, &["k.krn", "--costs", "--because", "no"], 2);
    run(folder, &["k.krn", "--costs", "--sanitize"], 2);
    run(folder, &["gone.krn", "--costs"], 5);
    std::fs::write(folder.join("bad.krn"), "kernel k() {\n").expect("a temporary file");
    run(folder, &["bad.krn", "--costs"], 1);
}

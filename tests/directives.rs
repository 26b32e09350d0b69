//! Test directives that are wrong, and kernels that are asked for by name, as a user meets them.

use crate::tool_support::run;
use std::fs;
use std::path::Path;

const KERNELS: &str = "// krn-test: dims n=5\n// krn-test: in x=iota; set s=2\n\
    kernel wrong(x: f32[n], s: f32) -> y: f32[n] { y[i] = s * x[i] }\n\n\
    // krn-test: in x=iota\nkernel right(x: f32[n]) -> y: f32[n] { y[i] = x[i] + 1.0 }\n";
const OTHER: &str = "kernel other(x: f32[n], _unused: f32) -> y: f32[n] { y[i] = 2.0 * x[i] }\n";

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).expect("a temporary file can be written");
    path.display().to_string()
}

#[test]
fn a_wrong_directive_is_told_at_its_place() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = write(folder.path(), "k.krn", KERNELS);
    let (_, err) = run(&["check", &file], 1);
    assert!(err.contains("E0701") && err.contains("k.krn:2:14"), "{err}");
    assert!(err.contains("`set …` is a directive of its own, and needs a line of its own"), "{err}");
    run(&["check", &file, "--kernel", "right"], 0);
}

#[test]
fn a_kernel_with_a_wrong_directive_has_failed_and_the_others_are_tested() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [file, other] =
        [("k.krn", KERNELS), ("other.krn", OTHER)].map(|(name, text)| write(folder.path(), name, text));
    let (out, _) = run(&["test", &file, &other, "--device", "emulator"], 1);
    assert!(out.contains("FAILED  ") && out.contains("line 2: `in x=iota; set s=2`: "), "{out}");
    assert!(out.contains("2 kernels passed, 1 failed on "), "{out}");
    let broken = write(folder.path(), "broken.krn", "kernel k(");
    let (out, _) = run(&["test", &broken, &other, "--device", "emulator"], 1);
    assert!(out.contains("1 kernel passed, 0 failed, 1 file refused on "), "{out}");
}

#[test]
fn kernels_are_asked_for_by_their_whole_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [file, other] =
        [("k.krn", KERNELS), ("other.krn", OTHER)].map(|(name, text)| write(folder.path(), name, text));
    let (out, _) = run(&["test", &file, &other, "--device", "emulator", "--kernel", "right"], 0);
    assert!(out.contains("1 kernel passed, 0 failed on ") && !out.contains("other.krn"), "{out}");
    for command in ["test", "check"] {
        let (_, err) = run(&[command, &file, &other, "--kernel", "righ"], 2);
        assert!(err.contains("there is no kernel `righ`; the file has `wrong`, `right`, `other`"), "{err}");
    }
    let (_, err) = run(&["test", &file, "--costs", "--kernel", "righ"], 2);
    assert!(err.contains("there is no kernel `righ`; the file has `wrong`, `right`"), "{err}");
}

#[test]
fn several_sizes_are_written_with_commas_or_without() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file =
        write(folder.path(), "k.krn", "kernel k(x: f32[m, n]) -> y: f32[n, m] { y[j, i] = x[i, j] }\n");
    for sizes in [&["m=3,n=5"][..], &["m=3", "n=5"], &["m=3", "-D", "n=5"]] {
        let (out, _) = run(&[&["run", &file, "--device", "emulator", "-D"], sizes].concat(), 0);
        assert!(out.contains("k with m = 3, n = 5 on emulator"), "{out}");
    }
    let (_, err) = run(&["run", &file, "--device", "emulator", "-D", "m=3,5"], 2);
    assert!(err.contains("`5` is not of the form name=value"), "{err}");
}

#[test]
fn the_times_of_several_launches_are_added_up() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = "kernel k(x: f32[m, n]) -> y: f32[m], z: f32 {\n    y[i] = sum(j: x[i, j])\n    z = max(i: y[i])\n}\n";
    let file = write(folder.path(), "k.krn", &format!("{text}{OTHER}"));
    let (out, _) = run(&["explain", &file, "--for", "m=4096,n=4096"], 0);
    let last: Vec<&str> = out.lines().filter(|line| line.starts_with("// predicted: ")).collect();
    assert!(last.len() == 1 && last[0].contains(" us for all launches (k_1"), "{out}");
    let (out, _) = run(&["explain", &file], 0);
    assert!(!out.contains("// predicted: "), "{out}");
}

//! `krn reduce`, with commands that a shell runs.
#![cfg(unix)]

use crate::tool_support::{command, ended, run};
use std::fs;
use std::path::{Path, PathBuf};

const PROGRAM: &str = "// Two kernels, of which one has a mistake.\n\
    const SCALE: f32 = 2.0\n\n\
    kernel fine(x: f32[n]) -> y: f32[n] {\n    y[i] = x[i] * SCALE\n}\n\n\
    kernel wrong(x: f32[n], at: i32[n], s: f32) -> y: f32[n] where n >= 1 {\n    \
        forall i in n {\n        let value = exp(x[i]) + s\n        if value > 0.0 {\n            y[at[i]] = value\n        }\n    }\n}\n";

fn file(folder: &Path) -> PathBuf {
    let path = folder.join("bad.krn");
    fs::write(&path, PROGRAM).expect("a temporary file can be written");
    path
}

/// `krn reduce` of the program, for a line of shell in which `$1` is the file.
fn reduce(path: &Path, line: &str, code: i32) -> (String, String) {
    let path = path.display().to_string();
    run(&["reduce", &path, "--", "sh", "-c", line, "sh"], code)
}

#[test]
fn what_the_checker_refuses_becomes_the_smallest_kernel_that_it_refuses() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = file(folder.path());
    let krn = env!("CARGO_BIN_EXE_krn");
    let (out, _) = reduce(&path, &format!("{krn} check --message-format json \"$1\" | grep -q E0404"), 0);
    let reduced = fs::read_to_string(folder.path().join("bad.reduced.krn")).expect("the result");
    assert!(out.contains("bytes became"), "{out}");
    assert!(reduced.len() * 3 < PROGRAM.len(), "{reduced}");
    assert!(reduced.contains("y[") && !reduced.contains("fine") && !reduced.contains("exp"), "{reduced}");
    // The file itself stays, and nothing else is left.
    assert_eq!(fs::read_to_string(&path).expect("the file"), PROGRAM);
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 2);
    let (_, err) =
        ended(&mut command(&["check", &folder.path().join("bad.reduced.krn").display().to_string()]), 1);
    assert!(err.contains("E0404"), "{err}");
}

#[test]
fn the_file_stands_where_braces_are_and_the_result_where_it_is_wanted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (path, result) = (file(folder.path()), folder.path().join("out.krn"));
    let [from, to] = [&path, &result].map(|path| path.display().to_string());
    run(&["reduce", &from, "--output", &to, "--", "grep", "-q", "exp", "{}"], 0);
    assert_eq!(fs::read_to_string(&result).expect("the result").trim(), "exp");
}

#[test]
fn what_cannot_be_reduced_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = file(folder.path());
    let (_, err) = reduce(&path, "grep -q nowhere \"$1\"", 2);
    assert!(err.contains("does not succeed for") && err.contains("exit status: 1"), "{err}");
    let text = path.display().to_string();
    let (_, err) = run(&["reduce", &text, "--", "no-such-command"], 2);
    assert!(err.contains("cannot run `no-such-command`"), "{err}");
    let (_, err) = run(&["reduce", &text, "--output", &text, "--", "true"], 2);
    assert!(err.contains("would be overwritten"), "{err}");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1);
}

#[test]
fn a_command_that_takes_too_long_did_not_succeed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = file(folder.path()).display().to_string();
    let arguments = ["reduce", &text, "--timeout", "1", "--", "sh", "-c", "sleep 30", "sh"];
    let (_, err) = run(&arguments, 2);
    assert!(err.contains("it took longer than 1 s"), "{err}");
}

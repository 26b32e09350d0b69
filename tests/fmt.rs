//! `krn fmt` as a user runs it.

use crate::tool_support::{command, ended, run};
use std::fs;
use std::io::Write;
use std::process::Stdio;

const UGLY: &str = "kernel k(x:f32[n])->y:f32[n]{y[i]=2.0*x[i]}// twice\n";
const FINE: &str = "kernel k(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }  // twice\n";

#[test]
fn files_are_changed_in_place_and_others_are_left_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [ugly, fine, bad] = ["ugly.krn", "fine.krn", "bad.krn"].map(|name| folder.path().join(name));
    for (path, text) in [(&ugly, UGLY), (&fine, FINE), (&bad, "kernel k( {\n")] {
        fs::write(path, text).expect("a temporary file can be written");
    }
    let [ugly, fine, bad] = [&ugly, &fine, &bad].map(|path| path.to_str().expect("UTF-8"));
    let before = fs::metadata(fine).and_then(|data| data.modified()).expect("a time");

    let (out, err) = run(&["fmt", "--check", bad, ugly, fine], 1);
    assert!(out.contains("- kernel k(x:f32[n])->y") && out.contains("+ kernel k(x: f32[n]) -> y"), "{out}");
    assert!(
        err.contains("ugly.krn: not formatted") && err.contains("bad.krn") && !err.contains("fine.krn"),
        "{err}"
    );
    assert_eq!(fs::read_to_string(ugly).expect("it is there"), UGLY);

    let (out, err) = run(&["fmt", bad, ugly, fine], 1);
    assert_eq!(out, "");
    assert!(
        err.contains("E00") && err.contains("formatted ") && err.matches("formatted").count() == 1,
        "{err}"
    );
    assert_eq!(fs::read_to_string(ugly).expect("it is there"), FINE);
    assert_eq!(fs::read_to_string(bad).expect("it is there"), "kernel k( {\n");
    assert_eq!(fs::metadata(fine).and_then(|data| data.modified()).expect("a time"), before);
    assert_eq!(run(&["fmt", "--check", ugly, fine], 0), (String::new(), String::new()));
    // Nothing is left beside them.
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 3);
    let (_, err) = run(&["fmt", &format!("{ugly}.none")], 5);
    assert!(err.contains("cannot read"), "{err}");
    let (_, err) = run(&["fmt"], 2);
    assert!(err.contains("FILE"), "{err}");
}

#[cfg(unix)]
#[test]
fn what_a_link_leads_to_is_changed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [file, link] = ["file.krn", "link.krn"].map(|name| folder.path().join(name));
    fs::write(&file, UGLY).expect("a temporary file can be written");
    std::os::unix::fs::symlink(&file, &link).expect("a link can be made");
    run(&["fmt", link.to_str().expect("UTF-8")], 0);
    assert_eq!(fs::read_to_string(&file).expect("it is there"), FINE);
    assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
}

#[test]
fn standard_input_goes_to_standard_output() {
    let through = |arguments: &[&str], text: &str, code: i32| {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("it can be written");
        std::io::Seek::rewind(&mut file).expect("it can be read");
        ended(command(arguments).stdin(Stdio::from(file)), code)
    };
    assert_eq!(through(&["fmt", "--stdin"], UGLY, 0).0, FINE);
    assert_eq!(through(&["fmt", "-"], UGLY, 0).0, FINE);
    assert_eq!(through(&["fmt", "--stdin", "--check"], FINE, 0).0, "");
    assert!(through(&["fmt", "--stdin", "--check"], UGLY, 1).1.contains("<stdin>: not formatted"));
    let (out, err) = through(&["fmt", "--stdin"], "kernel", 1);
    assert!(out.is_empty() && err.contains("E0011"), "{out}{err}");
}

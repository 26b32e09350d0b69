//! Tests over the driver of `tests/driver`: each runs once more as a process of its own, which finds that one first.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the child finds the folder of its driver; set for the child alone.
const CHILD: &str = "KRN_FAULTS_CHILD";

/// Runs `body` in a process whose driver is the fake one, with these settings: the same test, by its name from the binary's
/// root on.
pub fn with_driver(test: &str, settings: &str, body: fn(&Path)) {
    with_library(test, settings, |bytes| bytes, body);
}

/// With a driver that is made of the fake one.
pub fn with_library(test: &str, settings: &str, change: fn(Vec<u8>) -> Vec<u8>, body: fn(&Path)) {
    if let Some(folder) = std::env::var_os(CHILD) {
        return body(Path::new(&folder));
    }
    let program = std::env::current_exe().expect("this program");
    let library = program.with_file_name("libkrn_fake_driver.so");
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("faults-{}", test.replace("::", "-")));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder of its own");
    let bytes = std::fs::read(&library).expect("built with the tests");
    std::fs::write(folder.join("libcuda.so.1"), change(bytes)).expect("written");
    let output = Command::new(program)
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, &folder)
        .env("LD_LIBRARY_PATH", &folder)
        .env("KRN_FAKE_DRIVER", settings)
        .env("KRN_FAKE_DRIVER_LOG", folder.join("calls"))
        .output()
        .expect("it starts");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    std::fs::remove_dir_all(&folder).expect("nobody uses it any more");
}

//! The host programs of `examples/`, as the first line of each says how to run it.

use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_runtime::npy;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder of the built examples. They are built as the tests of the workspace are, so that nothing is built twice.
fn built() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--workspace", "--examples"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(status.expect("cargo can be started").success());
        Path::new(env!("CARGO_BIN_EXE_krn")).with_file_name("examples")
    };
    BUILT.get_or_init(build).clone()
}

/// What the program prints, and whether it ends well.
fn example(name: &str, arguments: &[&str]) -> (bool, String) {
    let program = built().join(name).with_extension(std::env::consts::EXE_EXTENSION);
    let output = Command::new(&program)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!text.contains("panicked"), "{text}");
    (output.status.success(), text)
}

fn good(name: &str, arguments: &[&str], needle: &str) {
    let (ends_well, text) = example(name, arguments);
    assert!(ends_well && text.contains(needle), "{name} {arguments:?}: {text}");
}

fn refused(name: &str, arguments: &[&str], needle: &str) {
    let (ends_well, text) = example(name, arguments);
    assert!(!ends_well && text.contains(needle), "{name} {arguments:?}: {text}");
}

#[test]
fn every_host_program_is_listed_and_tested() {
    let here = fs::read_to_string(file!()).expect("this file");
    let page = fs::read_to_string("examples/README.md").expect("the page");
    for entry in fs::read_dir("examples").expect("the examples") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".rs") {
            assert!(here.contains(&format!("good(\"{stem}\"")), "{name} is not tested");
            assert!(page.contains(&name), "{name} is not on the page");
        }
    }
}

#[test]
fn add() {
    good("add", &[], "c[1000] = 1500");
}

#[test]
fn ahead_of_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("saxpy.json").display().to_string();
    let build = |emit: &str| {
        let arguments = ["build", "examples/saxpy.krn", "--emit", emit, "-o", &path];
        let status = Command::new(env!("CARGO_BIN_EXE_krn")).args(arguments).status();
        assert!(status.expect("the tool starts").success());
    };
    build("fat");
    good("ahead_of_time", &[&path], "PTX for sm_120\ny[10000] = 10001");
    build("manifest");
    refused("ahead_of_time", &[&path], "no module of Krn");
    refused("ahead_of_time", &["nowhere.json"], "cannot read `nowhere.json`");
}

#[test]
fn softmax() {
    good("softmax", &[], "64 rows of 1000");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (scores, flat, out) = (path("scores.npy"), path("flat.npy"), path("probabilities.npy"));
    let array = |shape: &[u64], values: &[f32]| HostArray::from_values(shape, values).expect("it fits");
    fs::write(&scores, npy::write(&array(&[2, 2], &[0.0, 0.0, 1.0, 1.0]))).expect("a temporary file");
    fs::write(&flat, npy::write(&array(&[2], &[0.0, 0.0]))).expect("a temporary file");
    good("softmax", &[&scores, &out], "2 rows of 2");
    let bytes = fs::read(&out).expect("the result");
    let result = npy::read(&bytes, &ElementType::scalar(Scalar::F32)).expect("a .npy file");
    assert_eq!(result, array(&[2, 2], &[0.5; 4]));
    refused("softmax", &[&flat], "holds 1 axes, but scores have two");
    refused("softmax", &["no/such/file.npy"], "cannot read `no/such/file.npy`");
}

/// Without a GPU, which is where tests run, it says so.
#[test]
fn beside_cublas() {
    good("beside_cublas", &["no/such/libcublas.so"], "nothing to run");
}

#[test]
fn beside_nccl() {
    good("beside_nccl", &["no/such/libnccl.so"], "nothing to run");
}

#[test]
fn n_body() {
    good("n_body", &["64", "5"], "step   5: kinetic energy");
    good("n_body", &["1", "1"], "step   1");
    good("n_body", &["0", "1"], "step   1");
    refused("n_body", &["many"], "`many` is no number");
}

#[test]
fn each_kind_of_memory() {
    good("memory_device", &[], "[100.0, 102.0, 104.0, 106.0, 8.0, 10.0, 12.0, 14.0]");
    good("memory_device", &[], "refused: kernel `saxpy`: axis 0 of `y` must have extent 65536");
    good("memory_pinned", &[], "300 squared is 90000");
    good("memory_mapped", &[], "refused: histogram: an array cannot be written while the host has a slice");
    good("memory_managed", &[], "[3.0, 1.0, 1.0, 1.0, 1.0, 1.0]");
    good("memory_constant", &[], "gain [10.0, 0.5] makes [20.5, 20.5, 20.5, 20.5]; [2000] samples so far");
}

#[test]
fn overlap() {
    good("overlap", &[], "gain:");
    good("overlap", &["2", "100"], "three streams:");
    refused("overlap", &["many"], "`many` is no number");
}

#[test]
fn memory_table() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("table.json").display().to_string();
    good("memory_table", &["0.0625", &path], "mapped, read over the bus");
    let table: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).expect("written")).expect("it is JSON");
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(13), "{table}");
}

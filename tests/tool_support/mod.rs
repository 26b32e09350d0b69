//! Runs the tool as a user does, in the repository.

use std::path::Path;
use std::process::Command;

/// A command that finds no ptxas: what it prints does not depend on the toolkit of the machine.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_krn"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.env("KRN_PTXAS", "").env("KRN_NVDISASM", "");
    command
}

/// The files of kernels in folders of the repository, by their paths in it.
pub fn kernel_files(folders: &[&str]) -> Vec<String> {
    let mut files = Vec::new();
    for folder in folders {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in std::fs::read_dir(path).expect("a folder of kernels") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "krn") {
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                files.push(format!("{folder}/{name}"));
            }
        }
    }
    files.sort();
    files
}

/// Standard output and error of a command that ends with this exit code, and without a panic.
pub fn ended(command: &mut Command, code: i32) -> (String, String) {
    let output = command.output().expect("the tool can be started");
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert_eq!(output.status.code(), Some(code), "{command:?}\n{out}\n{err}");
    assert!(!err.contains("panicked"), "{err}");
    (out, err)
}

/// [`ended`] of the tool with these arguments.
pub fn run(arguments: &[&str], code: i32) -> (String, String) {
    ended(&mut command(arguments), code)
}

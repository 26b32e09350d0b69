//! The Python package: its wheel made of what cargo has built, installed in an environment of its own, and tested there.

use crate::workspace::workspace_root;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the tests need.
pub const REQUIREMENTS: &[&str] = &["jax>=0.5,<1", "numpy>=2,<3", "pytest>=8,<10", "ruff>=0.12,<1"];

/// The file that says which requirements a finished environment meets.
const STAMP: &str = "krn-requirements.txt";

/// Where the environment is.
pub fn folder() -> PathBuf {
    workspace_root().join("target").join("python-tests")
}

/// A program of the environment.
fn program(name: &str) -> PathBuf {
    let bin = if cfg!(windows) { "Scripts" } else { "bin" };
    folder().join(bin).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// Makes the environment unless it is there. Returns its folder and whether anything was done.
pub fn install() -> Result<(PathBuf, bool)> {
    let folder = folder();
    let target = workspace_root().join("target");
    fs::create_dir_all(&target).with_context(|| format!("cannot create `{}`", target.display()))?;
    // Others may run the same setup: one installs, the others wait and find it done.
    let lock = File::create(target.join("python-tests.lock")).context("cannot create the lock file")?;
    lock.lock().context("cannot lock the installation")?;
    let stamp = REQUIREMENTS.join("\n") + "\n";
    if fs::read_to_string(folder.join(STAMP)).is_ok_and(|known| known == stamp) {
        return Ok((folder, false));
    }
    let interpreter = interpreter()?;
    run(Command::new(interpreter).args(["-m", "venv", "--clear"]).arg(&folder))?;
    run(Command::new(program("python"))
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(REQUIREMENTS))?;
    fs::write(folder.join(STAMP), stamp).context("cannot write the stamp")?;
    Ok((folder, true))
}

/// Python 3, by either of its names.
fn interpreter() -> Result<&'static str> {
    let starts =
        |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|said| said.status.success());
    ["python3", "python"]
        .into_iter()
        .find(starts)
        .context("there is no python3, which the Python package needs")
}

/// Makes the wheel of a library that is built, and installs it in the environment in the place of an older one.
pub fn install_wheel(library: &Path) -> Result<PathBuf> {
    let python = workspace_root().join("python");
    let wheels = workspace_root().join("target").join("wheels");
    let packed = Command::new(program("python"))
        .arg(python.join("pack.py"))
        .args([library, &wheels])
        .output()
        .context("cannot run pack.py")?;
    if !packed.status.success() {
        bail!("pack.py failed: {}", String::from_utf8_lossy(&packed.stderr).trim());
    }
    let wheel = PathBuf::from(String::from_utf8_lossy(&packed.stdout).trim());
    run(Command::new(program("python"))
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--no-index", "--no-deps", "--force-reinstall"])
        .arg(&wheel))?;
    Ok(wheel)
}

/// The tests of the package that is installed, from a folder where its source is not in the way; and its style.
pub fn test() -> Result<()> {
    let python = workspace_root().join("python");
    let bench =
        ["python_overhead.py", "python_scaling.py"].map(|name| workspace_root().join("bench").join(name));
    run(Command::new(program("ruff"))
        .args(["check", "--quiet", "--no-cache", "--config"])
        .arg(python.join("pyproject.toml"))
        .arg(&python)
        .args(bench))?;
    run(Command::new(program("python"))
        .args(["-m", "pytest", "-rs", "-p", "no:cacheprovider"])
        .arg(python.join("tests"))
        .env("KRN_ROOT", workspace_root())
        .current_dir(folder()))
}

fn run(command: &mut Command) -> Result<()> {
    println!("{command:?}");
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}

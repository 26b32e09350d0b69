//! The Python package: its wheel made of what cargo has built, installed in an environment of its own, and tested there.

use crate::torch;
use crate::workspace::workspace_root;
use anyhow::{Context, Result, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Instant;

/// What the tests need. Those of torch need [`torch::REQUIREMENT`] as well.
pub const REQUIREMENTS: &[&str] = &["jax>=0.5,<1", "numpy>=2,<3", "pytest>=8,<10", "ruff>=0.12,<1"];

/// The file that says which requirements a finished environment meets.
const STAMP: &str = "krn-requirements.txt";

/// What lets the environment import from where the interpreter's torch is, after its own packages.
const NEIGHBOUR: &str = "torch-of-the-interpreter.pth";

/// Where the environment is.
pub fn folder() -> PathBuf {
    workspace_root().join("target").join("python-tests")
}

/// A program of the environment.
fn program(name: &str) -> PathBuf {
    let bin = if cfg!(windows) { "Scripts" } else { "bin" };
    folder().join(bin).join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// Makes the environment unless it is there. Returns its folder and whether anything was done. It can import the torch of
/// the interpreter that it is made from, where that has one.
pub fn install() -> Result<(PathBuf, bool)> {
    let folder = folder();
    let _lock = lock()?;
    let interpreter = interpreter()?;
    let found = torch::of_interpreter(interpreter);
    let mut stamp = REQUIREMENTS.join("\n") + "\n";
    if let Some(torch) = &found {
        stamp += &format!("torch {} in {}\n", torch.version, torch.folder.display());
    }
    let with_torch = format!("{stamp}{}\n", torch::REQUIREMENT);
    if fs::read_to_string(folder.join(STAMP)).is_ok_and(|known| known == stamp || known == with_torch) {
        return Ok((folder, false));
    }
    run(Command::new(interpreter).args(["-m", "venv", "--clear"]).arg(&folder))?;
    run(pip().args(REQUIREMENTS))?;
    if let Some(torch) = &found {
        let line = format!("{}\n", torch.folder.display());
        fs::write(packages()?.join(NEIGHBOUR), line).context("cannot write into the environment")?;
    }
    fs::write(folder.join(STAMP), stamp).context("cannot write the stamp")?;
    Ok((folder, true))
}

/// Where the packages of the environment are.
fn packages() -> Result<PathBuf> {
    let said = Command::new(program("python"))
        .args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
        .output()
        .context("cannot run the environment's Python")?;
    Ok(PathBuf::from(String::from_utf8_lossy(&said.stdout).trim()))
}

/// Whether the environment can import torch.
fn imports_torch() -> bool {
    Command::new(program("python"))
        .args(["-c", "import torch"])
        .output()
        .is_ok_and(|said| said.status.success())
}

/// An installation of torch that runs beside other work. It is stopped where nobody waits for it.
pub struct Installation {
    /// None where torch is there already.
    pip: Option<Child>,
    _lock: File,
}

/// Begins to install torch in the environment, which is there, unless it has it.
pub fn begin_torch() -> Result<Installation> {
    let lock = lock()?;
    let neighbour = packages()?.join(NEIGHBOUR);
    let known = fs::read_to_string(folder().join(STAMP)).context("cannot read the stamp")?;
    if known.lines().any(|line| line == torch::REQUIREMENT) || neighbour.is_file() && imports_torch() {
        return Ok(Installation { pip: None, _lock: lock });
    }
    // One that cannot be imported would do for pip.
    let _ = fs::remove_file(neighbour);
    println!("installing {} into {}, meanwhile ({})", torch::REQUIREMENT, folder().display(), torch::SIZE);
    let mut command = pip_for_torch();
    let child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
    Ok(Installation { pip: Some(child), _lock: lock })
}

fn pip_for_torch() -> Command {
    let mut command = pip();
    command.arg(torch::REQUIREMENT);
    command
}

impl Installation {
    /// Waits until torch is there.
    pub fn finish(mut self) -> Result<()> {
        let Some(child) = &mut self.pip else { return Ok(()) };
        let waiting = Instant::now();
        if !child.wait().context("cannot wait for pip")?.success() {
            println!("pip could not install {}: once more", torch::REQUIREMENT);
            run(&mut pip_for_torch())?;
        }
        println!("torch is installed; {} s were waited for it", waiting.elapsed().as_secs());
        let stamp = folder().join(STAMP);
        let known = fs::read_to_string(&stamp).context("cannot read the stamp")?;
        fs::write(stamp, format!("{known}{}\n", torch::REQUIREMENT)).context("cannot write the stamp")
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        if let Some(child) = &mut self.pip {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Others may run the same setup: one installs, the others wait and find it done.
fn lock() -> Result<File> {
    let target = workspace_root().join("target");
    fs::create_dir_all(&target).with_context(|| format!("cannot create `{}`", target.display()))?;
    let lock = File::create(target.join("python-tests.lock")).context("cannot create the lock file")?;
    lock.lock().context("cannot lock the installation")?;
    Ok(lock)
}

/// `pip install` in the environment.
fn pip() -> Command {
    let mut command = Command::new(program("python"));
    // What is imported is compiled then: most of it never is.
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]);
    command
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
    run(pip().args(["--no-index", "--no-deps", "--force-reinstall"]).arg(&wheel))?;
    Ok(wheel)
}

/// The tests of the package that is installed, from a folder where its source is not in the way; and its style.
/// With `needs_torch` nothing is skipped for want of it.
pub fn test(needs_torch: bool) -> Result<()> {
    let python = workspace_root().join("python");
    let bench =
        ["python_overhead.py", "python_scaling.py"].map(|name| workspace_root().join("bench").join(name));
    run(Command::new(program("ruff"))
        .args(["check", "--quiet", "--no-cache", "--config"])
        .arg(python.join("pyproject.toml"))
        .arg(&python)
        .args(bench))?;
    let mut tests = Command::new(program("python"));
    tests
        .args(["-m", "pytest", "-rs", "-p", "no:cacheprovider"])
        .arg(python.join("tests"))
        .env("KRN_ROOT", workspace_root())
        // What several processes import is compiled once.
        .env_remove("PYTHONDONTWRITEBYTECODE")
        .current_dir(folder());
    if needs_torch {
        return run(tests.env(torch::IS_THERE, "1"));
    }
    run(&mut tests)?;
    if imports_torch() {
        return Ok(());
    }
    println!(
        "SKIPPED: the tests of the Python package with torch, gloo and DTensor, and the examples of docs/ that need torch. \
         `cargo xtask test --torch` installs it into {} and runs them ({}); or let `python3` be one that has torch.",
        folder().display(),
        torch::SIZE
    );
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    println!("{command:?}");
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}

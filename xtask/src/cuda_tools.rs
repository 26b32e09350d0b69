//! NVIDIA's command-line tools (`ptxas`, `cuobjdump`, `nvdisasm`), installed from PyPI into the target folder.
//!
//! No CUDA toolkit is needed: the Python packages carry the plain executables. `cargo xtask setup` installs
//! them; doing so again, or several times at once, is harmless.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::workspace_root;

/// What is installed. The disassemblers are on PyPI from 13.2 on only; `ptxas` is pinned, because snapshots
/// of what it accepts must not change by themselves.
pub const REQUIREMENTS: &[&str] = &[
    "nvidia-cuda-nvcc==13.0.88",
    "nvidia-nvvm==13.0.88",
    "nvidia-cuda-cuobjdump==13.2.*",
    "nvidia-cuda-nvdisasm==13.2.*",
];

/// The file that says which requirements a finished installation meets.
const STAMP: &str = "krn-tools.txt";

/// Where the tools are installed.
pub fn folder() -> PathBuf {
    workspace_root().join("target").join("cuda-tools")
}

/// The path of a tool such as `ptxas`: from the environment (`KRN_PTXAS` and so on), or as installed.
pub fn find(tool: &str) -> Result<PathBuf> {
    let variable = format!("KRN_{}", tool.to_uppercase());
    if let Some(path) = std::env::var_os(&variable).map(PathBuf::from) {
        if path.is_file() {
            return Ok(path);
        }
        bail!("{variable} names `{}`, which is not a file", path.display());
    }
    match find_below(&folder(), tool) {
        Some(path) => Ok(path),
        None => bail!(
            "`{tool}` is not installed: run `cargo xtask setup` once (it needs python3 with pip and a network), \
             or set {variable} to the path of an installed one"
        ),
    }
}

/// Looks for an executable in a folder named `bin`, at a fixed depth: `nvidia/<release>/bin/<tool>`.
fn find_below(folder: &Path, tool: &str) -> Option<PathBuf> {
    let mut releases: Vec<PathBuf> =
        fs::read_dir(folder.join("nvidia")).ok()?.flatten().map(|entry| entry.path()).collect();
    releases.sort();
    let name = format!("{tool}{}", std::env::consts::EXE_SUFFIX);
    releases.into_iter().map(|release| release.join("bin").join(&name)).find(|path| path.is_file())
}

/// Installs the tools unless they are there. Returns the folder and whether anything was done.
pub fn install() -> Result<(PathBuf, bool)> {
    let folder = folder();
    let target = workspace_root().join("target");
    fs::create_dir_all(&target).with_context(|| format!("cannot create `{}`", target.display()))?;
    // Others may run the same setup: one installs, the others wait and find it done.
    let lock = File::create(target.join("cuda-tools.lock")).context("cannot create the lock file")?;
    lock.lock().context("cannot lock the installation")?;
    if fs::read_to_string(folder.join(STAMP)).is_ok_and(|stamp| stamp == stamp_text()) {
        return Ok((folder, false));
    }
    let partial = target.join("cuda-tools.partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| format!("cannot remove `{}`", partial.display()))?;
    }
    run_installer(&partial)?;
    if find_below(&partial, "ptxas").is_none() {
        bail!("the packages were installed, but hold no ptxas for this system");
    }
    fs::write(partial.join(STAMP), stamp_text()).context("cannot write the stamp")?;
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove `{}`", folder.display()))?;
    }
    fs::rename(&partial, &folder).context("cannot move the installation into place")?;
    Ok((folder, true))
}

fn stamp_text() -> String {
    REQUIREMENTS.join("\n") + "\n"
}

/// Runs the first installer that is there: pip as a module of Python, then uv.
fn run_installer(into: &Path) -> Result<()> {
    let pip: &[&str] = &["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
    let installers: [(&str, &[&str]); 3] =
        [("python3", pip), ("python", pip), ("uv", &["pip", "install", "--quiet", "--no-deps"])];
    let mut missing = Vec::new();
    for (program, arguments) in installers {
        let probe =
            Command::new(program).args(&arguments[..arguments.len().min(2)]).arg("--version").output();
        if !probe.is_ok_and(|output| output.status.success()) {
            missing.push(program);
            continue;
        }
        let output = Command::new(program)
            .args(arguments)
            .arg("--target")
            .arg(into)
            .args(REQUIREMENTS)
            .output()
            .with_context(|| format!("cannot run `{program}`"))?;
        if output.status.success() {
            return Ok(());
        }
        bail!(
            "`{program} {}` could not install {}:\n{}",
            arguments.join(" "),
            REQUIREMENTS.join(", "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    bail!(
        "no installer for Python packages was found (tried {}): install python3 with pip \
         (`apt install python3-pip`, or `python3 -m ensurepip`), or uv, and run `cargo xtask setup` again",
        missing.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_found_at_their_depth() {
        let folder = std::env::temp_dir().join(format!("krn-find-{}", std::process::id()));
        let bin = folder.join("nvidia/cu13/bin");
        fs::create_dir_all(&bin).unwrap();
        let name = format!("ptxas{}", std::env::consts::EXE_SUFFIX);
        fs::write(bin.join(&name), "").unwrap();
        assert_eq!(find_below(&folder, "ptxas"), Some(bin.join(name)));
        assert_eq!(find_below(&folder, "nvcc"), None);
        fs::remove_dir_all(folder).unwrap();
    }
}

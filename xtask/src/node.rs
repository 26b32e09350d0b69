//! Node.js for the extensions of `editors/`: the packages that the extension for VS Code is built and tested with.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::workspace_root;

/// The oldest release that runs the tests.
const OLDEST: u32 = 20;

const ADVICE: &str = "install Node.js 20 or newer with npm (Debian: `apt-get install nodejs npm` from release 13 on; Fedora: \
                      `dnf install nodejs-npm`; others: a package manager or a version manager of Node.js)";

/// Where the extension for VS Code lies.
pub fn extension() -> PathBuf {
    workspace_root().join("editors").join("vscode")
}

/// `npm`, as this system calls it.
pub fn npm() -> Command {
    let mut command = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    command.current_dir(extension()).stdin(Stdio::null());
    command
}

/// That Node.js is there, and new enough; the error says what to do.
pub fn check() -> Result<String> {
    let said = Command::new("node").arg("--version").stdin(Stdio::null()).output();
    let version = match said {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_string(),
        _ => bail!("there is no Node.js, which the tests of editors/ need: {ADVICE}"),
    };
    match major(&version) {
        Some(major) if major >= OLDEST => {}
        _ => bail!("Node.js is {version}, and the tests of editors/ need {OLDEST} or newer: {ADVICE}"),
    }
    if !npm().arg("--version").output().is_ok_and(|output| output.status.success()) {
        bail!(
            "there is Node.js {version}, but no npm, which installs what the tests of editors/ need: {ADVICE}"
        );
    }
    Ok(version)
}

fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Installs the packages unless they are those of the lock file. Returns the folder, and whether anything was done.
pub fn install() -> Result<(PathBuf, bool)> {
    check()?;
    let folder = extension().join("node_modules");
    let lock = extension().join("package-lock.json");
    let wanted = fs::read(&lock).with_context(|| format!("cannot read `{}`", lock.display()))?;
    let stamp = folder.join("krn-lock.json");
    let target = workspace_root().join("target");
    fs::create_dir_all(&target).with_context(|| format!("cannot create `{}`", target.display()))?;
    // Others may run the same setup: one installs, the others wait and find it done.
    let own = File::create(target.join("npm.lock")).context("cannot create the lock file")?;
    own.lock().context("cannot lock the installation")?;
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok((folder, false));
    }
    // What packages would run when they are installed is not needed: none is compiled.
    let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    let output = npm().args(arguments).output().context("cannot run npm")?;
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr).trim().to_string();
        bail!("`npm {}` failed in {}:\n{log}", arguments.join(" "), extension().display());
    }
    fs::write(&stamp, wanted).context("cannot write the stamp")?;
    Ok((folder, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(major("v20.11.1"), Some(20));
        assert_eq!(major("20.11.1"), None);
        assert_eq!(major("v"), None);
    }
}

//! A Chromium for the tests that open pages: one that is there, or one from the system's package manager.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::workspace_root;

/// What a Chromium, or what is made of it, is called.
const NAMES: &[&str] = &[
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "chromium-headless-shell",
    "headless_shell",
];

/// Package managers, with the commands that install a Chromium. Debian's comes without fonts.
const MANAGERS: &[(&str, &[&[&str]])] = &[
    (
        "apt-get",
        &[&["update"], &["install", "-y", "--no-install-recommends", "chromium", "fonts-liberation"]],
    ),
    ("dnf", &[&["install", "-y", "chromium"]]),
    ("zypper", &[&["--non-interactive", "install", "chromium"]]),
    ("pacman", &[&["-Sy", "--noconfirm", "chromium"]]),
    ("apk", &[&["add", "chromium"]]),
];

const ADVICE: &str = "install Chromium (Debian and Ubuntu: `apt-get install chromium`; Fedora: `dnf install chromium`; Arch: \
                      `pacman -S chromium`), or set KRN_CHROMIUM to the path of a Chromium or Chrome";

/// The one that `KRN_CHROMIUM` names, else the first in `PATH` by its usual names.
pub fn find() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("KRN_CHROMIUM").map(PathBuf::from) {
        if path.is_file() {
            return Ok(path);
        }
        bail!("KRN_CHROMIUM names `{}`, which is not a file", path.display());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    match find_in(&folders, NAMES) {
        Some(path) => Ok(path),
        None => bail!(
            "there is no Chromium, which the tests of `krn report` need: run `cargo xtask setup`, or {ADVICE}"
        ),
    }
}

/// The first of the programs, in the order of their names, then of the folders.
fn find_in(folders: &[PathBuf], names: &[&str]) -> Option<PathBuf> {
    let file = |name: &str| format!("{name}{}", std::env::consts::EXE_SUFFIX);
    names
        .iter()
        .find_map(|name| folders.iter().map(|folder| folder.join(file(name))).find(|path| path.is_file()))
}

/// Installs a Chromium unless there is one. Returns its path, and whether anything was done.
pub fn install() -> Result<(PathBuf, bool)> {
    if let Ok(path) = find() {
        return Ok((path, false));
    }
    if std::env::var_os("KRN_CHROMIUM").is_some() {
        // What it names is not there: nothing that is installed would be taken.
        return find().map(|path| (path, false));
    }
    let target = workspace_root().join("target");
    std::fs::create_dir_all(&target).with_context(|| format!("cannot create `{}`", target.display()))?;
    // Others may run the same setup: one installs, the others wait and find it done.
    let lock = File::create(target.join("chromium.lock")).context("cannot create the lock file")?;
    lock.lock().context("cannot lock the installation")?;
    if let Ok(path) = find() {
        return Ok((path, false));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).collect();
    let known = MANAGERS.iter().find_map(|(name, commands)| Some((find_in(&folders, &[name])?, *commands)));
    let Some((manager, commands)) = known else {
        bail!("there is no Chromium, and no package manager that is known here: {ADVICE}");
    };
    let Some(prefix) = privilege() else {
        bail!("there is no Chromium, and only root, or sudo without a password, can install one: {ADVICE}");
    };
    for arguments in commands {
        run(&prefix, &manager, arguments)?;
    }
    find().map(|path| (path, true))
}

/// What stands in front of a command so that it runs as root: nothing, or `sudo -n`; `None` where neither helps.
fn privilege() -> Option<Vec<&'static str>> {
    let says = |program: &str, arguments: &[&str]| {
        let run = Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
        run.ok().filter(|output| output.status.success()).map(|output| output.stdout)
    };
    if says("id", &["-u"]).is_some_and(|own| own.trim_ascii() == b"0") {
        return Some(Vec::new());
    }
    says("sudo", &["-n", "true"]).map(|_| vec!["sudo", "-n"])
}

fn run(prefix: &[&str], manager: &Path, arguments: &[&str]) -> Result<()> {
    let manager = manager.display().to_string();
    let all: Vec<&str> =
        prefix.iter().copied().chain([manager.as_str()]).chain(arguments.iter().copied()).collect();
    println!("{}", all.join(" "));
    let mut command = Command::new(all[0]);
    command.args(&all[1..]).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    let output = command.output().with_context(|| format!("cannot run `{}`", all[0]))?;
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr).trim().to_string();
        bail!("`{}` failed: {ADVICE}\n{log}", all.join(" "));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_before_folders() {
        let folder = std::env::temp_dir().join(format!("krn-chromium-{}", std::process::id()));
        let (one, two) = (folder.join("one"), folder.join("two"));
        let file = |name: &str| format!("{name}{}", std::env::consts::EXE_SUFFIX);
        for (path, name) in [(&one, "chrome"), (&two, "chromium")] {
            std::fs::create_dir_all(path).unwrap();
            std::fs::write(path.join(file(name)), "").unwrap();
        }
        let folders = [one.clone(), two.clone()];
        assert_eq!(find_in(&folders, NAMES), Some(two.join(file("chromium"))));
        assert_eq!(find_in(&folders[..1], NAMES), Some(one.join(file("chrome"))));
        assert_eq!(find_in(&folders, &["firefox"]), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

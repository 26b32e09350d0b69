//! `cargo xtask <chore>`.

use anyhow::{Result, bail};
use xtask::{chromium, cuda_tools};

const USAGE: &str = "usage: cargo xtask <chore>

chores:
  setup    install what the tests need: NVIDIA's ptxas, cuobjdump and nvdisasm into target/cuda-tools, and a Chromium by
           the system's package manager, unless there is one
  test     setup, then formatting, lints (warnings denied), every test of the workspace and of the benchmark scripts";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["setup"] => {
            let (folder, installed) = cuda_tools::install()?;
            let said = |installed| if installed { "installed" } else { "already installed" };
            println!("{} in {}", said(installed), folder.display());
            let (browser, installed) = chromium::install()?;
            println!("{}: {}", said(installed), browser.display());
            Ok(())
        }
        ["test"] => test(),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        [] => bail!("which chore?\n\n{USAGE}"),
        [chore, ..] => bail!("there is no chore `{chore}`\n\n{USAGE}"),
    }
}

/// Everything that must hold before a change lands.
fn test() -> Result<()> {
    cuda_tools::install()?;
    chromium::install()?;
    cargo(&["fmt", "--all", "--check"], &[])?;
    // `kernels!` has the compiler in it, which clippy builds for itself: quickly, for a few kernels.
    let quick = ("CARGO_PROFILE_DEV_BUILD_OVERRIDE_OPT_LEVEL", "0");
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[quick])?;
    cargo(&["test", "--workspace"], &[])?;
    python(&["-m", "unittest", "discover", "bench"])
}

/// Runs Python 3, by either of its names.
fn python(arguments: &[&str]) -> Result<()> {
    println!("python3 {}", arguments.join(" "));
    let run = |program| std::process::Command::new(program).args(arguments).status();
    let status = run("python3").or_else(|_| run("python"));
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => bail!("`python3 {}` failed", arguments.join(" ")),
        Err(error) => bail!("cannot run python3, which the tests of the benchmark scripts need: {error}"),
    }
}

fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    println!("cargo {}", arguments.join(" "));
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string());
    let status =
        std::process::Command::new(program).args(arguments).envs(environment.iter().copied()).status()?;
    if !status.success() {
        bail!("`cargo {}` failed", arguments.join(" "));
    }
    Ok(())
}

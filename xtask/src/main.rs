//! `cargo xtask <chore>`.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use xtask::{chromium, cuda_tools, node, python as package, torch};

const USAGE: &str = "usage: cargo xtask <chore>

chores:
  setup    install what the tests need: NVIDIA's ptxas, cuobjdump and nvdisasm into target/cuda-tools, a Chromium by the
           system's package manager, unless there is one, the packages of editors/vscode by npm, and what the tests of
           the Python package need into target/python-tests
           --torch: torch as well, as for `test`
  test     setup, then formatting, lints (warnings denied), every test of the workspace, of the benchmark scripts, of
           the extension for VS Code and of the Python package
           --torch: with torch from PyPI in target/python-tests, which tests of the Python package need (for Linux 3 GB to
           download); so it is where the environment says CI. Elsewhere these are skipped, unless python3 has a torch
           Of what repeats, a share runs that is the same every time, chosen by names: an eighth of the benchmarks is compiled,
           a twelfth of them assembled and held against the reference; of each program the smallest entry is assembled, and
           those that have a statement of a form which no smaller one has; a quarter of the test kernels and a twelfth of the
           benchmarks serve for what is asked of them beside that (spills, advice, pasted schedules, the reference alone, sm_75
           beside sm_90a), and a quarter of all kernels for most sizes of guards; a tenth of
           the recognition table on the emulator; a quarter of the passes off in each example, and a quarter of the examples
           at the sizes of a bare run; a quarter of the kernels in place that nearly race; a quarter of the random programs
           --all: in full, which takes an hour or more: with torch, every share whole, all targets, more selections of passes
           that are off, thirty times as many random programs from a seed that the clock picks and that is printed, and the
           compiler checked for wasm32 (`rustup target add wasm32-unknown-unknown`)";

/// Random programs of each test of them, and seconds of broken inputs, where tests run in full.
const CASES: &str = "15000";
const FUZZED: &str = "600";

/// Where the compiler does without threads and without a clock.
const WASM: &str = "wasm32-unknown-unknown";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["setup"] => setup(torch::is_ci()),
        ["setup", "--torch"] => setup(true),
        ["test"] => test(&[], torch::is_ci()),
        ["test", "--torch"] => test(&[], true),
        ["test", "--all"] | ["test", "--all", "--torch"] | ["test", "--torch", "--all"] => test_all(),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        [] => bail!("which chore?\n\n{USAGE}"),
        [chore, ..] => bail!("there is no chore `{chore}`\n\n{USAGE}"),
    }
}

/// Installs what the tests need.
fn setup(with_torch: bool) -> Result<()> {
    let (folder, installed) = cuda_tools::install()?;
    let said = |installed| if installed { "installed" } else { "already installed" };
    println!("{} in {}", said(installed), folder.display());
    let (browser, installed) = chromium::install()?;
    println!("{}: {}", said(installed), browser.display());
    let (packages, installed) = node::install()?;
    println!("{} in {}", said(installed), packages.display());
    let (environment, installed) = package::install()?;
    println!("{} in {}", said(installed), environment.display());
    if with_torch { package::begin_torch()?.finish() } else { Ok(()) }
}

/// Everything that must hold before a release: [`test`], with more of all that is left out there.
fn test_all() -> Result<()> {
    let seed = match std::env::var("PROPTEST_RNG_SEED") {
        Ok(given) if given != "1" => given,
        // `.cargo/config.toml` says 1.
        _ => std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs().to_string(),
    };
    let environment =
        [(xtask::ALL, "1"), ("KRN_CASES", CASES), ("PROPTEST_RNG_SEED", &seed), ("KRN_FUZZ_SECONDS", FUZZED)];
    let said = environment.map(|(name, value)| format!("{name}={value}")).join(" ");
    println!("in full: {said}");
    cargo(&["check", "--package", "krn-compiler", "--lib", "--target", WASM], &[])?;
    test(&environment, true)?;
    println!(
        "ran in full ({said}): all targets, every share of programs, every row of the recognition table on the emulator, \
         passes off one by one and in 64 random selections, {CASES} random programs a test, {FUZZED} s of broken inputs; the compiler for {WASM}"
    );
    Ok(())
}

/// Everything that must hold before a change lands; `environment` is the tests'.
fn test(environment: &[(&str, &str)], with_torch: bool) -> Result<()> {
    cuda_tools::install()?;
    cargo(&["fmt", "--all", "--check"], &[])?;
    let environment: Vec<(&str, &str)> = environment.iter().copied().chain(linted()?).collect();
    // Built as a dependency: a program of its tests could not be linked.
    let workspace = ["test", "--workspace", "--exclude", "krn-python"];
    // Mostly downloads: beside what cargo builds they take little time of their own.
    let (built, installed) = std::thread::scope(|scope| {
        let installed = scope.spawn(|| install_the_others(with_torch));
        let build = || {
            cargo(&[&workspace[..], &["--no-run"]].concat(), &environment)?;
            // No tests, but looked at. Examples are built by `cargo test` as they are, which `--all-targets` does not.
            cargo(&["build", "--workspace", "--exclude", "krn-python", "--benches"], &environment)
        };
        (build(), installed.join())
    });
    let torch = installed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    built?;
    if let Some(torch) = torch {
        torch.finish()?;
    }
    cargo(&workspace, &environment)?;
    python(&["-m", "unittest", "discover", "bench"])?;
    extension()?;
    python_package(with_torch)
}

/// Installs what tests need beside NVIDIA's tools, and begins with torch.
fn install_the_others(with_torch: bool) -> Result<Option<package::Installation>> {
    chromium::install()?;
    node::install()?;
    package::install()?;
    with_torch.then(package::begin_torch).transpose()
}

/// The tests of the Python package, of the library that has been built.
fn python_package(with_torch: bool) -> Result<()> {
    let (before, after) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    // Where cargo leaves what is built as a dependency.
    let library = xtask::workspace_root().join(format!("target/debug/deps/{before}krn_python{after}"));
    let wheel = package::install_wheel(&library)?;
    println!("installed {}", wheel.display());
    package::test(with_torch)
}

/// The tests of the extension for VS Code, with the tool that has been built.
fn extension() -> Result<()> {
    println!("npm test, in {}", node::extension().display());
    let tool = format!("target/debug/krn{}", std::env::consts::EXE_SUFFIX);
    let tool = xtask::workspace_root().join(tool);
    let status =
        node::npm().args(["test", "--silent"]).env("KRN_TOOL", tool).status().context("cannot run npm")?;
    if !status.success() {
        bail!("the tests of editors/vscode failed");
    }
    Ok(())
}

/// What makes cargo build the workspace by Clippy, which is the compiler with more lints, and refuse what they find: what
/// is looked at is what is tested, and everything is built once.
fn linted() -> Result<[(&'static str, &'static str); 2]> {
    let cargo = std::env::var_os("CARGO").map(PathBuf::from).unwrap_or_default();
    let beside = cargo.with_file_name(format!("clippy-driver{}", std::env::consts::EXE_SUFFIX));
    if !beside.is_file() {
        bail!("there is no `{}`: install it by `rustup component add clippy`", beside.display());
    }
    let path = beside.to_str().context("the path of Clippy is no text")?.to_string();
    // As `cargo clippy -- -D warnings` says it to the driver.
    let denied = ["-D", "warnings"].map(|word| format!("{word}__CLIPPY_HACKERY__")).concat();
    Ok([("RUSTC_WORKSPACE_WRAPPER", path.leak()), ("CLIPPY_ARGS", denied.leak())])
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

//! `cargo xtask <chore>`.

use anyhow::{Result, bail};
use xtask::cuda_tools;

const USAGE: &str = "usage: cargo xtask <chore>

chores:
  setup    install NVIDIA's ptxas, cuobjdump and nvdisasm into target/cuda-tools, for the tests";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["setup"] => {
            let (folder, installed) = cuda_tools::install()?;
            println!("{} in {}", if installed { "installed" } else { "already installed" }, folder.display());
            Ok(())
        }
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        [] => bail!("which chore?\n\n{USAGE}"),
        [chore, ..] => bail!("there is no chore `{chore}`\n\n{USAGE}"),
    }
}

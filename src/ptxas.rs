//! NVIDIA's assembler `ptxas`, where there is one: what a kernel takes of a multiprocessor.

use crate::cuda_tools;
use crate::exit::{FILE, Failure, Result};
pub use krn_compiler::advise::Usage;
use krn_compiler::advise::{Usages, read_log};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// How to get one, for a line on the terminal.
pub const ADVICE: &str = "no ptxas found: registers, shared memory and spills are not known. `cargo xtask setup`, \
                          `pip install nvidia-cuda-nvcc` and the CUDA toolkit install one; KRN_PTXAS names one elsewhere";

pub struct Ptxas {
    program: PathBuf,
}

impl Ptxas {
    /// The one that there is, if any ([`cuda_tools::find`]).
    ///
    /// # Errors
    /// `KRN_PTXAS` names what is no file.
    pub fn find() -> Result<Option<Self>> {
        Ok(cuda_tools::find("ptxas")?.map(|found| Self { program: found.program }))
    }

    pub fn path(&self) -> String {
        self.program.display().to_string()
    }

    /// Assembles a module for `sm_90` and the like; what each entry takes, by name.
    ///
    /// # Errors
    /// ptxas cannot be run, or refuses the module.
    pub fn assemble(&self, ptx: &str, target: &str) -> Result<Usages> {
        self.run(ptx, target, &[]).map(|(log, _)| read_log(&log))
    }

    /// Assembles a module; its machine code.
    ///
    /// # Errors
    /// As [`assemble`](Self::assemble).
    pub fn code(&self, ptx: &str, target: &str) -> Result<Vec<u8>> {
        self.run(ptx, target, &[]).map(|(_, code)| code)
    }

    /// As [`code`](Self::code), and the code says which source line each instruction comes from.
    ///
    /// # Errors
    /// As [`assemble`](Self::assemble).
    pub fn code_with_lines(&self, ptx: &str, target: &str) -> Result<Vec<u8>> {
        self.run(ptx, target, &["--generate-line-info"]).map(|(_, code)| code)
    }

    /// What ptxas says, and the machine code.
    fn run(&self, ptx: &str, target: &str, more: &[&str]) -> Result<(String, Vec<u8>)> {
        let failed = |what: String| Failure::new(FILE, format!("`{}`: {what}", self.program.display()));
        let folder = tempfile::tempdir().map_err(|error| failed(format!("no temporary folder: {error}")))?;
        let (input, output) = (folder.path().join("kernel.ptx"), folder.path().join("kernel.cubin"));
        std::fs::File::create(&input)
            .and_then(|mut file| file.write_all(ptx.as_bytes()))
            .map_err(|error| failed(format!("its input cannot be written: {error}")))?;
        let run = Command::new(&self.program)
            .args(more)
            .args(["-v", "--gpu-name", target, "--output-file"])
            .arg(&output)
            .arg(&input)
            .output()
            .map_err(|error| failed(error.to_string()))?;
        let log = [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        if !run.status.success() {
            return Err(failed(format!("it refuses the module for {target}:\n{}", log.trim_end())));
        }
        let code =
            std::fs::read(&output).map_err(|error| failed(format!("its output cannot be read: {error}")))?;
        Ok((log, code))
    }
}

//! NVIDIA's assembler `ptxas`, where there is one: what a kernel takes of a multiprocessor.

use crate::exit::{FILE, Failure, Result};
pub use krn_compiler::advise::Usage;
use krn_compiler::advise::{Usages, read_log};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// How to get one, for a line on the terminal.
pub const ADVICE: &str = "no ptxas in PATH: registers, shared memory and spills are not known. It comes with the CUDA \
                          toolkit and with `pip install nvidia-cuda-nvcc`; KRN_PTXAS names one elsewhere";

pub struct Ptxas {
    program: PathBuf,
}

impl Ptxas {
    /// The one that `KRN_PTXAS` names, else the first in `PATH`, if any.
    ///
    /// # Errors
    /// `KRN_PTXAS` names what is no file.
    pub fn find() -> Result<Option<Self>> {
        Self::find_in(std::env::var_os("KRN_PTXAS"), std::env::var_os("PATH"))
    }

    fn find_in(named: Option<OsString>, path: Option<OsString>) -> Result<Option<Self>> {
        if let Some(program) = named.map(PathBuf::from) {
            if program.is_file() {
                return Ok(Some(Self { program }));
            }
            let message = format!("KRN_PTXAS names `{}`, which is not a file", program.display());
            return Err(Failure::new(FILE, message));
        }
        let name = format!("ptxas{}", std::env::consts::EXE_SUFFIX);
        let folders: Vec<PathBuf> =
            path.map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
        let found = folders.into_iter().map(|folder| folder.join(&name)).find(|program| program.is_file());
        Ok(found.map(|program| Self { program }))
    }

    pub fn path(&self) -> String {
        self.program.display().to_string()
    }

    /// Assembles a module for `sm_90` and the like; what each entry takes, by name.
    ///
    /// # Errors
    /// ptxas cannot be run, or refuses the module.
    pub fn assemble(&self, ptx: &str, target: &str) -> Result<Usages> {
        self.run(ptx, target).map(|(log, _)| read_log(&log))
    }

    /// Assembles a module; its machine code.
    ///
    /// # Errors
    /// As [`assemble`](Self::assemble).
    pub fn code(&self, ptx: &str, target: &str) -> Result<Vec<u8>> {
        self.run(ptx, target).map(|(_, code)| code)
    }

    /// What ptxas says, and the machine code.
    fn run(&self, ptx: &str, target: &str) -> Result<(String, Vec<u8>)> {
        let failed = |what: String| Failure::new(FILE, format!("`{}`: {what}", self.program.display()));
        let folder = tempfile::tempdir().map_err(|error| failed(format!("no temporary folder: {error}")))?;
        let (input, output) = (folder.path().join("kernel.ptx"), folder.path().join("kernel.cubin"));
        std::fs::File::create(&input)
            .and_then(|mut file| file.write_all(ptx.as_bytes()))
            .map_err(|error| failed(format!("its input cannot be written: {error}")))?;
        let run = Command::new(&self.program)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_goes_before_the_path() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = folder.path().join(format!("ptxas{}", std::env::consts::EXE_SUFFIX));
        std::fs::write(&program, "").expect("a temporary file");
        let path = Some(folder.path().as_os_str().to_owned());
        let found = Ptxas::find_in(None, path.clone()).expect("nothing is named").expect("in the path");
        assert_eq!(found.program, program);
        assert!(Ptxas::find_in(None, None).expect("nothing is named").is_none());
        let Err(error) = Ptxas::find_in(Some("/no/such/ptxas".into()), path) else { panic!("no such file") };
        assert!(error.message().contains("KRN_PTXAS names `/no/such/ptxas`"));
        let named = Ptxas::find_in(Some(program.clone().into_os_string()), None).expect("a file");
        assert_eq!(named.map(|found| found.program), Some(program));
    }
}

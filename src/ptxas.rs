//! NVIDIA's assembler `ptxas`, where there is one: what a kernel takes of a multiprocessor.

use crate::exit::{FILE, Failure, Result};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// How to get one, for a line on the terminal.
pub const ADVICE: &str = "no ptxas in PATH: registers, shared memory and spills are not known. It comes with the CUDA \
                          toolkit and with `pip install nvidia-cuda-nvcc`; KRN_PTXAS names one elsewhere";

/// What one entry takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Of one thread.
    pub registers: u32,
    /// Static shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// Bytes of a thread's registers that are stored to memory and loaded again, stores and loads together.
    pub spill_bytes: u32,
}

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
    pub fn assemble(&self, ptx: &str, target: &str) -> Result<BTreeMap<String, Usage>> {
        self.run(ptx, target).map(|(log, _)| read(&log))
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

/// Reads what `ptxas -v` prints.
fn read(log: &str) -> BTreeMap<String, Usage> {
    let mut entries: BTreeMap<String, Usage> = BTreeMap::new();
    let mut current: Option<&mut Usage> = None;
    for line in log.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or(rest);
            current = Some(entries.entry(name.to_string()).or_default());
        }
        let Some(usage) = &mut current else { continue };
        let line = line.split_once("info    :").map_or(line, |(_, rest)| rest);
        for part in line.split(',') {
            let words: Vec<&str> = part.split_whitespace().collect();
            let (count, field) = match words.as_slice() {
                ["Used", count, "registers"] => (count, &mut usage.registers),
                [count, "bytes", "smem"] => (count, &mut usage.shared_bytes),
                [count, "bytes", "spill", "stores" | "loads"] => (count, &mut usage.spill_bytes),
                _ => continue,
            };
            // Spills come in two parts; of the others there is one.
            if let Ok(count) = count.parse::<u32>() {
                *field = field.saturating_add(count);
            }
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read_by_entry() {
        let log = "ptxas info    : 0 bytes gmem\n\
                   ptxas info    : Compiling entry function 'sum_pieces' for 'sm_90'\n\
                   ptxas info    : Function properties for sum_pieces\n    \
                   8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n\
                   ptxas info    : Used 36 registers, used 1 barriers, 32 bytes smem, 360 bytes cmem[0]\n\
                   ptxas info    : Compile time = 74.902 ms\n\
                   ptxas info    : Compiling entry function 'sum' for 'sm_90'\n    \
                   0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
                   ptxas info    : Used 24 registers, used 0 barriers\n";
        let expected = [
            ("sum".to_string(), Usage { registers: 24, shared_bytes: 0, spill_bytes: 0 }),
            ("sum_pieces".to_string(), Usage { registers: 36, shared_bytes: 32, spill_bytes: 28 }),
        ];
        assert_eq!(read(log), BTreeMap::from(expected));
    }

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

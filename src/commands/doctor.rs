//! `krn doctor`: what there is on this machine to run and to assemble kernels with, each tried with a small kernel.

use super::run::open;
use crate::exit::{DEVICE, Failure, Result};
use crate::ptxas::Ptxas;
use crate::{cuda_tools, files};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, newest_target};
use krn_runtime::verify::{self, Case, CheckOptions, Fill};
use krn_runtime::{Device, Selection, cuda};
use std::collections::BTreeMap;

/// What is tried everywhere.
const KERNEL: &str = "kernel double(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }\n";
/// More than a block, and no multiple of one.
const SIZE: u64 = 1000;

/// What was found out so far.
#[derive(Default)]
struct Findings {
    text: String,
    /// Something is there and does not work.
    broken: bool,
}

impl Findings {
    fn line(&mut self, what: &str, found: &str) {
        self.text.push_str(&format!("{what:<10} {found}\n"));
    }

    /// What to do about it.
    fn advice(&mut self, what: &str) {
        self.text.push_str(&format!("{:<10} -> {what}\n", ""));
    }

    fn failed(&mut self, what: &str, why: &str) {
        self.line(what, why);
        self.broken = true;
    }
}

pub fn run() -> Result<()> {
    let mut findings = Findings::default();
    findings.line("krn", krn_compiler::VERSIONS);
    let target = gpus(&mut findings);
    match open(Selection::Emulator).and_then(|device| tried(&device).map(|said| (device, said))) {
        Ok((device, (said, _))) => findings.line("emulator", &format!("{}: {said}", device.description())),
        Err(failure) => findings.failed("emulator", failure.message()),
    }
    assembler(&mut findings, &target);
    match cuda_tools::find("nvdisasm") {
        Ok(Some(found)) => {
            let version = found.version().unwrap_or_else(|| "of unknown version".to_string());
            findings.line("nvdisasm", &format!("{version} ({}, {})", found.program.display(), found.by));
        }
        Ok(None) => {
            findings.line("nvdisasm", "none: `krn build --emit sass` needs it");
            findings.advice("`cargo xtask setup`, or `pip install nvidia-cuda-nvdisasm`; KRN_NVDISASM names one elsewhere");
        }
        Err(failure) => findings.failed("nvdisasm", failure.message()),
    }
    files::print(&findings.text)?;
    if findings.broken { Err(Failure::silent(DEVICE)) } else { Ok(()) }
}

/// The driver and its devices; the target that the first device runs.
fn gpus(findings: &mut Findings) -> String {
    let mut target = CompileOptions::default().target;
    if !cuda::driver_present() {
        findings.line("driver", "none: kernels run on the emulator");
        findings.advice(
            "to use an NVIDIA GPU install its driver, of CUDA 12.0 or newer; no CUDA toolkit is needed",
        );
        return target;
    }
    match cuda::driver() {
        Ok(said) => findings.line("driver", &said),
        Err(error) => {
            findings.failed("driver", &error.to_string());
            findings.advice("install a newer driver");
            return target;
        }
    }
    let count = match cuda::device_count() {
        Ok(0) => {
            findings.line("GPU", "none: kernels run on the emulator");
            findings.advice("`nvidia-smi` shows what the driver sees; CUDA_VISIBLE_DEVICES may hide devices");
            return target;
        }
        Ok(count) => count,
        Err(error) => {
            findings.failed("GPU", &error.to_string());
            findings.advice(
                "`nvidia-smi` shows what the driver sees; after an update of the driver restart the machine",
            );
            return target;
        }
    };
    for number in 0..count {
        let name = format!("GPU {number}");
        match open(Selection::Cuda(number)).and_then(|device| tried(&device).map(|said| (device, said))) {
            Ok((device, (said, its_target))) => {
                findings.line(&name, &format!("{}: {said}", device.description()));
                if number == 0 {
                    target = its_target;
                }
            }
            Err(failure) => findings.failed(&name, failure.message()),
        }
    }
    target
}

/// Compiles, runs and checks a kernel: what to say of it, and the target.
fn tried(device: &Device) -> Result<(String, String)> {
    let target = newest_target(device.capability()).ok_or_else(|| {
        let capability = device.capability().unwrap_or(0);
        Failure::new(DEVICE, format!("{}: there is no code for sm_{capability}", device.description()))
    })?;
    let source = SourceFile::new("doctor.krn", KERNEL);
    let compilation = krn_compiler::compile(&source, &CompileOptions::for_target(target))
        .map_err(|error| Failure::new(DEVICE, error))?;
    let module = device.load(&compilation.compiled)?;
    let kernel = &compilation.program.kernels[0];
    let element = krn_compiler::data::ElementType::scalar(krn_compiler::data::Scalar::F32);
    let x = verify::fill("x", &element, &[SIZE], &Fill::Random.into(), 0)
        .map_err(|error| Failure::new(DEVICE, error))?;
    let case = Case { params: BTreeMap::new(), arrays: BTreeMap::from([("x".to_string(), x)]) };
    let (_, report) = verify::check(&module, &compilation.program, kernel, &case, &CheckOptions::default())
        .map_err(super::run::failure)?;
    if !report.agrees() {
        return Err(Failure::new(DEVICE, format!("{}: a kernel gave wrong results", device.description())));
    }
    Ok((format!("a kernel for {target} ran, and its results are right"), target.to_string()))
}

fn assembler(findings: &mut Findings, target: &str) {
    let found = match cuda_tools::find("ptxas") {
        Ok(Some(found)) => found,
        Ok(None) => {
            findings.line(
                "ptxas",
                "none: registers and spills are not known, and `--emit cubin` and `sass` need it",
            );
            findings.advice(
                "`cargo xtask setup`, or `pip install nvidia-cuda-nvcc`; KRN_PTXAS names one elsewhere",
            );
            return;
        }
        Err(failure) => return findings.failed("ptxas", failure.message()),
    };
    let version = found.version().unwrap_or_else(|| "of unknown version".to_string());
    findings.line("ptxas", &format!("{version} ({}, {})", found.program.display(), found.by));
    let source = SourceFile::new("doctor.krn", KERNEL);
    let compiled = krn_compiler::compile(&source, &CompileOptions::for_target(target));
    let assembled = compiled.map_err(|error| Failure::new(DEVICE, error)).and_then(|compilation| {
        let ptxas = Ptxas::find()?;
        ptxas.map(|ptxas| ptxas.code(&compilation.compiled.ptx, target)).transpose()
    });
    match assembled {
        Ok(_) => findings.line("", &format!("assembles for {target}")),
        Err(failure) => {
            findings.failed("", failure.message());
            findings
                .advice("a newer ptxas: `cargo xtask setup`, or `pip install --upgrade nvidia-cuda-nvcc`");
        }
    }
}

//! The reference evaluator on the programs of `bench/`, `examples/` and `tests/kernels/`: every kernel evaluates, no
//! proof is broken, and where a kernel can be sampled the sample agrees with the whole.

use crate::support::run;
use krn_compiler::check::typed::{Kernel, Program};
use krn_compiler::check_source;
use krn_compiler::reference::{EvalError, Options, Outputs, SampleSpec, can_sample, compare};
use krn_compiler::source::SourceFile;
use std::path::{Path, PathBuf};

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "krn") {
            paths.push(path);
        }
    }
}

/// Errors that these careless inputs deserve; anything else is the compiler's fault.
fn is_inputs_fault(error: &EvalError) -> bool {
    matches!(
        error,
        EvalError::FactFailed { .. }
            | EvalError::NegativeExtent { .. }
            | EvalError::ExtentMismatch { .. }
            | EvalError::OutOfBounds { proved: false, .. }
            | EvalError::NotInjective { .. }
            | EvalError::AssertionFailed { .. }
    )
}

#[test]
fn every_kernel_evaluates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut paths = Vec::new();
    collect(&root.join("bench"), &mut paths);
    collect(&root.join("examples"), &mut paths);
    collect(&root.join("tests/kernels"), &mut paths);
    // `krn test` evaluates all, and holds them against the emulator.
    paths.retain(|path| {
        let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
        xtask::is_program_in_share(&name)
    });
    paths.sort();
    let (mut kernels, mut evaluated, mut sampled) = (0, 0, 0);
    let mut faults = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let (program, _) = check_source(&SourceFile::new(path.to_string_lossy().as_ref(), text));
        for kernel in &program.kernels {
            kernels += 1;
            let mut fine = false;
            let rank = kernel.dims.len();
            // The more there are, the smaller: a reduction may go over all of them.
            let [some, more, most] = match rank {
                0..=3 => [6, 33, 9],
                4 => [6, 8, 9],
                _ => [3, 4, 5],
            };
            for (number, dims) in [
                vec![some; rank],
                vec![more; rank],
                (0..rank as i64).map(|d| (most - d).max(1)).collect(),
                vec![0; rank],
            ]
            .iter()
            .enumerate()
            {
                // Own reductions are folded in several orders.
                let options = Options { step_limit: 1 << 25, ..Options::default() };
                match run(&program, kernel, dims, 0, &options) {
                    Ok(outputs) => {
                        fine |= number < 3;
                        if number == 1 && can_sample(kernel) {
                            sampled += 1;
                            check_sample(&program, kernel, dims, &outputs);
                        }
                    }
                    Err(error) if is_inputs_fault(&error) => {}
                    // Its loops end where a check fails, as with the inputs that are said there.
                    Err(EvalError::StepLimit { .. }) if path.ends_with("accesses/failing.krn") => {}
                    // Kernels that are timed may do much for each element.
                    Err(EvalError::StepLimit { .. }) if path.starts_with(root.join("bench")) => {}
                    Err(error) => {
                        faults.push(format!("{}: {} {dims:?}: {error}", path.display(), kernel.name))
                    }
                }
            }
            evaluated += u32::from(fine);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let least = if xtask::tests_run_in_full() { 400 } else { 300 };
    assert!(kernels >= least, "only {kernels} kernels check");
    assert!(evaluated * 20 >= kernels * 17, "only {evaluated} of {kernels} kernels were evaluated");
    assert!(sampled * 2 >= kernels, "only {sampled} of {kernels} kernels were sampled");
}

fn check_sample(program: &Program, kernel: &Kernel, dims: &[i64], whole: &Outputs) {
    let sample = Some(SampleSpec { iterations: 5, seed: 1 });
    let options = Options { sample, ..Options::default() };
    let outputs = run(program, kernel, dims, 0, &options).unwrap();
    for (name, sampled) in &outputs.arrays {
        let report = compare(sampled, &whole.arrays[name].to_host().unwrap()).unwrap();
        assert_eq!(report.worst.filter(|worst| worst.excess > 0.0), None, "{}: {name}", kernel.name);
    }
}

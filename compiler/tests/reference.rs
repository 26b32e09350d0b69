//! The reference evaluator on the programs of `examples/` and `tests/kernels/`: every kernel evaluates, no
//! proof is broken, and where a kernel can be sampled the sample agrees with the whole.

use krn_compiler::check::typed::{ArrayRole, Kernel, Program, Type};
use krn_compiler::check_source;
use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_compiler::reference::{
    EvalError, Inputs, Options, Outputs, Plain, SampleSpec, can_sample, compare, evaluate, initial_statics,
    shapes, write_bytes,
};
use krn_compiler::source::SourceFile;
use std::collections::BTreeMap;
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

/// Small numbers of every type: integers in 0..5, so that they index small arrays.
fn fill(element: ElementType, shape: Vec<u64>, seed: u64) -> HostArray {
    let mut array = HostArray::zeros(element.clone(), shape).unwrap();
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for bytes in array.bytes.chunks_exact_mut(element.size.max(1) as usize) {
        for leaf in &element.leaves {
            for at in 0..leaf.count() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let number = (state >> 40) as i128;
                let wide = leaf.scalar.widened();
                let value = match leaf.scalar {
                    Scalar::Bool => Some(Plain::Bool(number % 2 == 0)),
                    scalar if scalar.is_integer() => Plain::wrapped(number % 5, wide),
                    // A narrow float's own value: `write_bytes` takes it as it is.
                    _ => Plain::float((number % 33 - 16) as f64 / 16.0, wide),
                };
                let stride = leaf.strides.last().copied().unwrap_or(0);
                let offset = (leaf.offset + at * stride) as usize;
                assert!(write_bytes(&mut bytes[offset..], leaf.scalar, value.unwrap()));
            }
        }
    }
    array
}

fn run(program: &Program, kernel: &Kernel, dims: &[i64], options: &Options) -> Result<Outputs, EvalError> {
    let statics = initial_statics(program);
    let params: BTreeMap<String, HostArray> = kernel
        .params
        .values()
        .map(|param| {
            let element = match &param.ty {
                Type::Struct(id) => program.structs[*id].element.clone(),
                other => ElementType::scalar(other.as_scalar().unwrap()),
            };
            (param.name.clone(), fill(element, Vec::new(), 3))
        })
        .collect();
    let mut inputs = Inputs {
        program,
        kernel,
        dims: BTreeMap::new(),
        params,
        arrays: BTreeMap::new(),
        statics: statics.iter().map(|(name, value)| (name.clone(), value)).collect(),
    };
    let shapes = shapes(&inputs, dims)?;
    let arrays: Vec<(String, HostArray)> = kernel
        .arrays
        .iter()
        .filter(|(_, array)| matches!(array.role, ArrayRole::Input | ArrayRole::InOut))
        .map(|(id, array)| (array.name.clone(), fill(array.element.clone(), shapes[id].clone(), 7)))
        .collect();
    inputs.arrays = arrays.iter().map(|(name, array)| (name.clone(), array)).collect();
    evaluate(&inputs, options)
}

/// Errors that these careless inputs deserve; anything else is the compiler's fault.
fn is_inputs_fault(error: &EvalError) -> bool {
    matches!(
        error,
        EvalError::FactFailed { .. }
            | EvalError::NegativeExtent { .. }
            | EvalError::ExtentMismatch { .. }
            | EvalError::OutOfBounds { proved: false, .. }
    )
}

#[test]
fn every_kernel_evaluates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut paths = Vec::new();
    collect(&root.join("examples"), &mut paths);
    collect(&root.join("tests/kernels"), &mut paths);
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
            for (number, dims) in [
                vec![6; rank],
                vec![if rank > 3 { 8 } else { 33 }; rank],
                (0..rank as i64).map(|d| 9 - d).collect(),
                vec![0; rank],
            ]
            .iter()
            .enumerate()
            {
                let options = Options { step_limit: 1 << 24, ..Options::default() };
                match run(&program, kernel, dims, &options) {
                    Ok(outputs) => {
                        fine |= number < 3;
                        if number == 1 && can_sample(kernel) {
                            sampled += 1;
                            check_sample(&program, kernel, dims, &outputs);
                        }
                    }
                    Err(error) if is_inputs_fault(&error) => {}
                    Err(error) => {
                        faults.push(format!("{}: {} {dims:?}: {error}", path.display(), kernel.name))
                    }
                }
            }
            evaluated += u32::from(fine);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(kernels >= 400, "only {kernels} kernels check");
    assert!(evaluated * 20 >= kernels * 17, "only {evaluated} of {kernels} kernels were evaluated");
    assert!(sampled * 2 >= kernels, "only {sampled} of {kernels} kernels were sampled");
}

fn check_sample(program: &Program, kernel: &Kernel, dims: &[i64], whole: &Outputs) {
    let sample = Some(SampleSpec { iterations: 5, seed: 1 });
    let options = Options { sample, ..Options::default() };
    let outputs = run(program, kernel, dims, &options).unwrap();
    for (name, sampled) in &outputs.arrays {
        let report = compare(sampled, &whole.arrays[name].to_host().unwrap()).unwrap();
        assert_eq!(report.worst.filter(|worst| worst.excess > 0.0), None, "{}: {name}", kernel.name);
    }
}

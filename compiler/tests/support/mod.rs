//! Compiling kernels, and running them on the reference evaluator with made-up data.

pub mod assembler;
pub mod forms;

use krn_compiler::manifest::Value;
use krn_compiler::source::SourceFile;
use krn_compiler::{Compilation, CompileOptions, Variants, compile};

use krn_compiler::check::typed::{ArrayRole, Kernel, Program, Type};
use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_compiler::reference::{
    EvalError, Inputs, Options, Outputs, Plain, evaluate, initial_statics, shapes, write_bytes,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A text compiled for sm_90, with its IR, for these sizes of dimensions (none: for all sizes).
pub fn compiled(text: &str, sizes: &[(&str, u64)]) -> Compilation {
    compiled_for(text, "sm_90", sizes)
}

/// The same for a target.
pub fn compiled_for(text: &str, target: &str, sizes: &[(&str, u64)]) -> Compilation {
    let sizes = sizes.iter().map(|(name, size)| ((*name).to_string(), *size)).collect();
    let options = CompileOptions { ir: true, sizes, ..CompileOptions::for_target(target) };
    compile(&SourceFile::new("test.krn", text), &options).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A text compiled for sm_90 in one variant, for these values of symbols.
pub fn compiled_at(text: &str, values: &[(&str, i64)]) -> Compilation {
    let values = values.iter().map(|(name, value)| ((*name).to_string(), Value::Int((*value).into())));
    let variants = Variants::For(values.collect());
    let options = CompileOptions { ir: true, variants, ..CompileOptions::for_target("sm_90") };
    compile(&SourceFile::new("test.krn", text), &options).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The examples of the repository, in the order of their names.
pub fn examples() -> Vec<SourceFile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let files = std::fs::read_dir(folder).expect("the examples are there").filter_map(Result::ok);
    let mut paths: Vec<_> = files.map(|file| file.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "krn"));
    paths.sort();
    assert!(paths.len() > 10, "{paths:?}");
    let source = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        SourceFile::new(name, std::fs::read_to_string(path).expect("it can be read"))
    };
    paths.iter().map(source).collect()
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

/// Evaluates a kernel on such data, `dims` by number.
pub fn run(
    program: &Program,
    kernel: &Kernel,
    dims: &[i64],
    seed: u64,
    options: &Options,
) -> Result<Outputs, EvalError> {
    let statics = initial_statics(program);
    let params: BTreeMap<String, HostArray> = kernel
        .params
        .values()
        .map(|param| {
            let element = match &param.ty {
                Type::Struct(id) => program.structs[*id].element.clone(),
                other => ElementType::scalar(other.as_scalar().unwrap()),
            };
            (param.name.clone(), fill(element, Vec::new(), seed + 3))
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
        .map(|(id, array)| (array.name.clone(), fill(array.element.clone(), shapes[id].clone(), seed + 7)))
        .collect();
    inputs.arrays = arrays.iter().map(|(name, array)| (name.clone(), array)).collect();
    evaluate(&inputs, options)
}

//! Tile programs of matrix atoms from text to numbers: what selection makes of them, and that it computes what the reference
//! says.

use krn_compiler::fat::{Fat, Image};
use krn_compiler::ir::text::parse_module;
use krn_compiler::manifest::ArgumentKind;
use krn_compiler::source::SourceFile;
use krn_compiler::{Compilation, CompileError, CompileOptions, Variants, compile};
use krn_runtime::verify::{Case, CheckOptions, Expectation, Fill, choose_sizes, fill, read_statics};
use krn_runtime::{Device, Module};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use xtask::ptxas::Assembler;

/// A kernel by its text and by the tile program of that name in a file.
fn compiled(name: &str, krn: &str, kir: &str, target: &str) -> Result<Compilation, CompileError> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    let text = std::fs::read_to_string(root.join(kir)).unwrap_or_else(|error| panic!("{kir}: {error}"));
    let module = parse_module(&text).unwrap_or_else(|error| panic!("{kir}: {error}"));
    let kernel = module.kernels.into_iter().find(|kernel| kernel.name == name);
    let kernel = kernel.unwrap_or_else(|| panic!("{kir} has no kernel {name}"));
    let options = CompileOptions {
        by_hand: Arc::new([kernel]),
        only: Some(name.to_string()),
        variants: Variants::With(Vec::new()),
        ..CompileOptions::for_target(target)
    };
    compile(&SourceFile::new("tensor.krn", krn), &options)
}

fn product(name: &str, factor: &str, sum: &str, multiple: u64) -> String {
    format!(
        "kernel {name}(a: {factor}[m, k], b: {factor}[k, n]) -> c: {sum}[m, n]\nwhere k % {multiple} == 0, \
         n % {multiple} == 0\n{{\n    c[i, j] = sum(p: a[i, p] * b[p, j])\n}}\n"
    )
}

/// Runs a compiled kernel on the emulator, and holds it against the reference.
fn assert_right(compilation: Compilation, target: &str, dims: [i64; 3]) {
    let dims: BTreeMap<String, i64> = ["m", "k", "n"].map(str::to_string).into_iter().zip(dims).collect();
    let manifest = compilation.compiled.manifest.kernels[0].clone();
    let sizes = choose_sizes(&manifest, &dims, &BTreeMap::new(), 1, |_| 1).expect("sizes");
    let mut case = Case { params: sizes.params, arrays: BTreeMap::new() };
    for argument in &manifest.arguments {
        let ArgumentKind::Array { buffer, .. } = &argument.kind else { continue };
        let Some(shape) = sizes.shapes.get(&argument.name) else { continue };
        let array = fill(&argument.name, &buffer.element, shape, &Fill::Random.into(), 1).expect("an array");
        case.arrays.insert(argument.name.clone(), array);
    }
    let kernel = compilation.program.kernels.iter().find(|kernel| kernel.name == manifest.name);
    let kernel = kernel.expect("the kernel").clone();
    let program = compilation.program;
    let document = Fat::new(vec![Image::new(target, compilation.compiled, None)]).to_json();
    let device = Device::interruptible_emulator(Arc::new(AtomicBool::new(false)));
    let module = Module::from_fat(&device, &document).unwrap_or_else(|error| panic!("{error}"));
    let statics = read_statics(&module).expect("statics");
    let expected = Expectation::of(&program, &kernel, &case, &statics, &CheckOptions::default());
    let (_, report) = expected.check(&module, &kernel, &case).unwrap_or_else(|error| panic!("{error}"));
    for output in &report.outputs {
        assert!(output.report.agrees(), "{}: {:?}", output.name, output.report.worst);
    }
}

#[test]
fn products_of_matrix_instructions_are_right() {
    for (name, factor, sum, multiple, dims) in
        [("tensor", "bf16", "f32", 8, [40, 56, 48]), ("tensor_int8", "i8", "i32", 16, [40, 80, 48])]
    {
        let (krn, kir) = (product(name, factor, sum, multiple), format!("compiler/tests/tiles/{name}.kir"));
        for target in ["sm_80", "sm_90"] {
            let compilation = compiled(name, &krn, &kir, target).unwrap_or_else(|error| panic!("{error}"));
            assert!(compilation.compiled.ptx.contains("mma.sync.aligned"), "{name}");
            assert_right(compilation, target, dims);
        }
    }
}

#[test]
fn matrix_instructions_need_their_target() {
    let krn = product("tensor_tf32", "f32", "f32", 4);
    let compiled = |target| compiled("tensor_tf32", &krn, "compiler/tests/tiles/tensor_tf32.kir", target);
    let ptx = compiled("sm_80").unwrap_or_else(|error| panic!("{error}")).compiled.ptx;
    assert!(ptx.contains("m16n8k8.row.col.f32.tf32.tf32.f32"), "{ptx}");
    let error = compiled("sm_75").expect_err("sm_75 has none").to_string();
    assert!(error.contains("needs sm_80") || error.contains("need sm_80"), "{error}");
}

#[test]
fn the_timed_products_do_not_spill() {
    let krn = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/tiles/tiles.krn"));
    let krn = krn.expect("the kernels");
    let assembler = Assembler::find().unwrap_or_else(|error| panic!("{error}"));
    for name in ["tensor_f32", "tensor_bf16"] {
        let compilation = compiled(name, &krn, "bench/tiles/tiles.kir", "sm_90");
        let ptx = compilation.unwrap_or_else(|error| panic!("{error}")).compiled.ptx;
        assert_eq!(ptx.matches("mma.sync").count(), 64, "{name}");
        assert_eq!(ptx.matches("ldmatrix.sync").count(), 24, "{name}");
        let report = assembler.optimise(&ptx, "sm_90").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(report.spilled_bytes(), 0, "{name}: {}", report.log);
    }
}

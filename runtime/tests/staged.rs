//! The largest tiles, which only matrices have that the reference evaluator could not afford: here every launch that
//! has one whole tile takes them.

use crate::support;
use krn_compiler::manifest::Value;
use krn_compiler::passes::{Pipeline, Stage, TargetFacts};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, Variants, compile};
use krn_runtime::verify::{CheckOptions, check};
use krn_runtime::{Device, Module};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Rows, columns and steps: whole tiles, one more and one less, chunks whole and not, rows that are vectors and not.
const SIZES: [[i64; 3]; 6] =
    [[128, 256, 16], [129, 257, 17], [128, 256, 47], [200, 300, 36], [255, 511, 20], [260, 264, 33]];

const SOURCE: &str = "
kernel plain(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }
kernel transposed(a: f32[k, m], b: f32[n, k]) -> c: f32[n, m] { c[j, i] = sum(p: a[p, i] * b[j, p]) }
kernel doubles(a: f64[m, k], b: f64[k, n]) -> c: f64[m, n] { c[i, j] = max(p: a[i, p] - b[p, j]) }
kernel narrow(a: i8[m, k], b: f16[k, n]) -> c: f16[m, n] { c[i, j] = sum(p: a[i, p] as f32 * b[p, j]) }
kernel shortest(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = min(p: a[i, p] + b[p, j]) }
kernel shifted(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: (a[i, p] + 1.0) * (b[p, j] + 1.0)) }
kernel added(a: f32[m, k], b: f32[k, n], c: inout f32[m, n]) {
    forall i in m, j in n { c[i, j] += sum(p: a[i, p] * b[p, j]) }
}
";

fn run(module: &Module, compilation: &krn_compiler::Compilation, number: usize, [m, n, k]: [i64; 3]) {
    let manifest = &compilation.compiled.manifest.kernels[number];
    let case = support::random_case(manifest, &[("m", m), ("n", n), ("k", k)]);
    let kernel = &compilation.program.kernels[number];
    let options = CheckOptions { full_steps: (2_000 * k as u128).max(80_000), ..CheckOptions::default() };
    let (_, report) = check(module, &compilation.program, kernel, &case, &options).expect("a run");
    for output in &report.outputs {
        assert!(output.report.compared > 100, "{} {m} {n} {k}: nothing compared", manifest.name);
        assert!(output.report.agrees(), "{} {m} {n} {k}: {:?}", manifest.name, output.report.worst);
    }
}

/// The kernels with tiles of a shape wherever one fits, for a machine with so many multiprocessors.
fn compiled(shape: &'static str, multiprocessors: u32) -> krn_compiler::Compilation {
    compile(&SourceFile::new("staged.krn", SOURCE), &options(shape, multiprocessors))
        .expect("kernels that compile")
}

fn options(shape: &'static str, multiprocessors: u32) -> CompileOptions {
    let mut options = CompileOptions::for_target("sm_90");
    let facts = TargetFacts { multiprocessors, ..TargetFacts::new(90) };
    let stage = Stage { shape: Some(shape) };
    let pipeline = Pipeline::for_target(&facts).replace("stage", stage);
    options.pipeline = Some(pipeline.expect("the standard pipeline stages"));
    options
}

/// The scratch memory of a kernel's parts at some sizes; 0 where tiles are not shared.
fn parts(options: &CompileOptions, kernel: &str, [m, n, k]: [i64; 3]) -> i128 {
    let sizes =
        [("m", m), ("n", n), ("k", k)].map(|(name, size)| (name.to_string(), Value::Int(size.into())));
    let (only, variants) = (Some(kernel.to_string()), Variants::For(sizes.into_iter().collect()));
    let options = CompileOptions { only, variants, ..options.clone() };
    let compiled =
        compile(&SourceFile::new("staged.krn", SOURCE), &options).expect("kernels that compile").compiled;
    let kernel = &compiled.manifest.kernels[0];
    let value = |name: &str| match name {
        "m" => m,
        "n" => n,
        _ => k,
    };
    let symbols: Vec<Value> =
        kernel.symbols.iter().map(|symbol| Value::Int(value(&symbol.name).into())).collect();
    let extent = kernel.variants[0].scratch.first().and_then(|parts| parts.extents[0].evaluate(&symbols));
    match extent {
        Some(Value::Int(extent)) => extent,
        _ => 0,
    }
}

fn agree(compilation: &krn_compiler::Compilation, kernels: &[&str], sizes: &[[i64; 3]]) {
    let device = Device::interruptible_emulator(Arc::new(AtomicBool::new(false)));
    let module = device.load(&compilation.compiled).expect("a module");
    for (number, kernel) in compilation.compiled.manifest.kernels.iter().enumerate() {
        for size in sizes.iter().filter(|_| kernels.is_empty() || kernels.contains(&kernel.name.as_str())) {
            run(&module, compilation, number, *size);
        }
    }
}

#[test]
fn the_largest_tiles_agree_with_the_reference() {
    let compilation = compiled("tiled_large", TargetFacts::new(90).multiprocessors);
    assert!(compilation.compiled.ptx.contains("plain_tiled_large_vector"));
    agree(&compilation, &[], &SIZES);
}

/// Every other shape, at sizes that its tiles do not divide, larger and smaller than one.
#[test]
fn tiles_of_each_shape_agree_with_the_reference() {
    for shape in ["tiled_medium", "tiled", "tiled_low", "tiled_narrow"] {
        let compilation = compiled(shape, TargetFacts::new(90).multiprocessors);
        assert!(compilation.compiled.ptx.contains(&format!("plain_{shape}")), "{shape}");
        agree(&compilation, &[], &[[70, 134, 37], [9, 13, 70]]);
    }
}

/// Tiles that do not fill a wave, of which each multiprocessor takes some chunks: all of them, and the last two of six
/// after a whole wave; parts of one chunk, parts of two tiles; rows that are vectors and not; few tiles and many steps.
#[test]
fn tiles_that_all_multiprocessors_share_agree_with_the_reference() {
    const FEW: [&str; 3] = ["plain", "narrow", "added"];
    for (shape, multiprocessors, resident, kernels, sizes) in [
        ("tiled_large", 132, 1, &[] as &[&str], &[[128i64, 256, 160], [129, 257, 163]] as &[_]),
        ("tiled_large", 4, 1, &FEW, &[[257, 260, 309], [257, 261, 309]]),
        ("tiled_medium", 3, 4, &FEW, &[[66, 130, 900]]),
        ("tiled", 132, 4, &[], &[[70, 66, 700]]),
        ("tiled_low", 132, 8, &FEW, &[[6, 66, 1500]]),
        ("tiled_narrow", 132, 8, &FEW, &[[66, 6, 1500]]),
    ] {
        for size in sizes {
            let found = parts(&options(shape, multiprocessors), "plain", *size);
            assert_eq!(found, 2 * resident * i128::from(multiprocessors), "{shape} {size:?}");
        }
        agree(&compiled(shape, multiprocessors), kernels, sizes);
    }
}

/// A wave that is full, or that nearly is, or a reduction too short for what sharing takes: each block has its own tile. Nor
/// is anything shared where each block would have a whole tile.
#[test]
fn tiles_are_shared_only_where_it_pays() {
    let large = options("tiled_large", 4);
    for (m, n, k, shared) in [
        (256, 512, 10_000, false),
        (256, 512 + 256, 10_000, true),
        (256, 512 + 256, 216, false),
        (256, 512 + 256, 217, true),
        (128, 3 * 256, 504, false),
        (128, 3 * 256, 505, true),
    ] {
        let expected = if shared { 8 } else { 0 };
        assert_eq!(parts(&large, "plain", [m, n, k]), expected, "{m} {n} {k}");
    }
    let small = options("tiled", 132);
    assert_eq!(parts(&small, "plain", [17 * 64, 31 * 64, 4000]), 0);
    assert_eq!(parts(&small, "plain", [64, 64, 16 * 4]), 0);
}

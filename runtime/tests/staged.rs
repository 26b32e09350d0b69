//! The largest tiles, which only matrices have that the reference evaluator could not afford: here every launch that
//! has one whole tile takes them.

mod support;

use krn_compiler::passes::{Pipeline, Stage, TargetFacts};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
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
    let options = CheckOptions { full_steps: 80_000, ..CheckOptions::default() };
    let (_, report) = check(module, &compilation.program, kernel, &case, &options).expect("a run");
    for output in &report.outputs {
        assert!(output.report.compared > 100, "{} {m} {n} {k}: nothing compared", manifest.name);
        assert!(output.report.agrees(), "{} {m} {n} {k}: {:?}", manifest.name, output.report.worst);
    }
}

#[test]
fn the_largest_tiles_agree_with_the_reference() {
    let mut options = CompileOptions::for_target("sm_90");
    let pipeline = Pipeline::for_target(&TargetFacts::new(90));
    let stage = Stage { least_blocks: Some(1) };
    options.pipeline = Some(pipeline.replace("stage", stage).expect("the standard pipeline stages"));
    let compilation =
        compile(&SourceFile::new("staged.krn", SOURCE), &options).expect("kernels that compile");
    assert!(compilation.compiled.ptx.contains("plain_tiled_large_vector"));
    let device = Device::interruptible_emulator(Arc::new(AtomicBool::new(false)));
    let module = device.load(&compilation.compiled).expect("a module");
    for number in 0..compilation.compiled.manifest.kernels.len() {
        for size in SIZES {
            run(&module, &compilation, number, size);
        }
    }
}

//! Pieces of reductions whose threads take what they all read from shared memory: any number of results, tiles whole and
//! not, and elements of every form.

mod support;

use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use krn_runtime::Device;
use krn_runtime::verify::{CheckOptions, check};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const SOURCE: &str = "
struct Body { x: f32, y: f32, z: f32, mass: f32 }
struct Vec3 { x: f32, y: f32, z: f32 }
struct Wide { key: f64, bits: u16, weight: f64 }

fn pull(at: Body, from: Body) -> Vec3 {
    let dx = from.x - at.x
    let dy = from.y - at.y
    let w = from.mass / (1.0 + dx*dx + dy*dy)
    Vec3 { x: w*dx, y: w*dy, z: w*from.z }
}

kernel structs(at: Body[m], from: Body[n]) -> force: Vec3[m] { force[i] = sum(j: pull(at[i], from[j])) }
kernel fields(at: Body[m], from: Body[n]) -> y: f32[m] { y[i] = sum(j: at[i].x * from[j].z) }
kernel arrays(x: f32[m], a: f32[n], b: bf16[n]) -> y: f32[m] { y[i] = sum(j: a[j] / (1.0 + abs(x[i] - b[j]))) }
kernel numbered(x: f32[m], a: f32[n]) -> y: f32[m] {
    y[i] = max(j: a[j] * (if i % 64 == j % 64 { 0.0 } else { x[i] }))
}
kernel whole(x: i32[m], a: i32[n]) -> y: i32[m] { y[i] = min(j: (a[j] % 1000 - x[i] % 1000)) }
kernel wide(x: f64[m], a: Wide[n]) -> y: f64[m] { y[i] = sum(j: a[j].weight * abs(x[i] - a[j].key)) }
kernel own(x: f32[n]) -> y: f32[n] { y[i] = sum(j: abs(x[i] - x[j])) }
kernel added(x: f32[m], a: f32[n], y: inout f32[m]) { forall i in m { y[i] += sum(j: abs(x[i] - a[j])) } }
";

/// Results and what is summed up.
const SIZES: [[i64; 2]; 4] = [[1, 4096], [257, 4101], [1024, 4111], [1029, 4097]];

#[test]
fn pieces_from_shared_memory_agree_with_the_reference() {
    let source = SourceFile::new("shared_pieces.krn", SOURCE);
    for target in ["sm_75", "sm_90"] {
        let compilation =
            compile(&source, &CompileOptions::for_target(target)).expect("kernels that compile");
        let device = Device::interruptible_emulator(Arc::new(AtomicBool::new(false)));
        let module = device.load(&compilation.compiled).expect("a module");
        for (number, manifest) in compilation.compiled.manifest.kernels.iter().enumerate() {
            // Nothing is tested if the launch is not there, or does not wait for a tile.
            let entry = format!(".entry {}_pieces(", manifest.name);
            let (_, code) = compilation.compiled.ptx.split_once(&entry).expect("a launch of pieces");
            let code = code.split(".entry").next().unwrap_or_default();
            assert!(code.contains("bar.sync") && code.contains("ld.shared"), "{target}: {}", manifest.name);
            for [m, n] in SIZES {
                let sizes = if manifest.name == "own" { &[("n", n)][..] } else { &[("m", m), ("n", n)] };
                let case = support::random_case(manifest, sizes);
                let kernel = &compilation.program.kernels[number];
                let options = CheckOptions { full_steps: 80_000, ..CheckOptions::default() };
                let (_, report) =
                    check(&module, &compilation.program, kernel, &case, &options).expect("a run");
                for output in &report.outputs {
                    assert!(output.report.compared > 0, "{target}: {} {m} {n}", manifest.name);
                    assert!(
                        output.report.agrees(),
                        "{target}: {} {m} {n}: {:?}",
                        manifest.name,
                        output.report.worst
                    );
                }
            }
        }
    }
}

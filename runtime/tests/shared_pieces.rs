//! Reductions, in pieces and whole, whose threads take what they all read from shared memory: any number of results, tiles
//! whole and not, and elements of every form.

use crate::support;
use krn_compiler::manifest::{Step, Value};
use krn_compiler::source::SourceFile;
use krn_compiler::{Compilation, CompileOptions, Variants, compile};
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
kernel guarded(x: f32[m], a: f32[n], k: i32) -> y: f32[m] {
    y[i] = sum(j: abs(a[j] - ((x[k] else 0.1) + x[i])))
}
kernel some(x: f32[m], a: f32[n], k: i32) -> y: bool[m] { y[i] = any(j: a[j] > (x[k] else 0.1) + x[i]) }
kernel added(x: f32[m], a: f32[n], y: inout f32[m]) { forall i in m { y[i] += sum(j: abs(x[i] - a[j])) } }
";

/// Results and what is summed up: blocks and tiles, whole and not.
const LONG: [[i64; 2]; 4] = [[1, 4096], [257, 4101], [1024, 4111], [1029, 4097]];
/// The same of tiles that no pieces share: one is as good as sixteen.
const SHORT: [[i64; 2]; 4] = [[1, 256], [257, 261], [1024, 271], [1029, 513]];

/// Compares all kernels with the reference, each of which has a launch of this form in its plan.
fn agree(compilation: &Compilation, target: &str, form: &str, sizes: &[[i64; 2]]) {
    let device = Device::interruptible_emulator(Arc::new(AtomicBool::new(false)));
    let module = device.load(&compilation.compiled).expect("a module");
    for (number, manifest) in compilation.compiled.manifest.kernels.iter().enumerate() {
        // Nothing is tested if the launch is not there, or does not wait for a tile.
        let name = format!("{}_{form}", manifest.name);
        let mut names: Vec<String> = Vec::new();
        let plan = &manifest.general().expect("a plan").plan;
        Step::each_launch(plan, &mut |launch| names.push(launch.entry.clone()));
        assert!(names.contains(&name), "{target}: {names:?}");
        let (_, code) = compilation.compiled.ptx.split_once(&format!(".entry {name}(")).expect("the launch");
        let code = code.split(".entry").next().unwrap_or_default();
        assert!(code.contains("bar.sync") && code.contains("ld.shared"), "{target}: {name}");
        for [m, n] in sizes {
            let sizes = if manifest.name == "own" { &[("n", m + n)][..] } else { &[("m", *m), ("n", *n)] };
            let case = support::random_case(manifest, sizes);
            let kernel = &compilation.program.kernels[number];
            let options = CheckOptions { full_steps: 80_000, ..CheckOptions::default() };
            let (_, report) = check(&module, &compilation.program, kernel, &case, &options).expect("a run");
            for output in &report.outputs {
                assert!(output.report.compared > 0, "{target}: {name} {m} {n}");
                assert!(output.report.agrees(), "{target}: {name} {m} {n}: {:?}", output.report.worst);
            }
        }
    }
}

/// The kernels as they are compiled for so many results of so many elements, and run for other sizes.
fn compiled_as(target: &str, results: i64, elements: i64) -> Compilation {
    let sizes = [("m", results), ("n", elements)];
    let values = sizes.map(|(name, size)| (name.to_string(), Value::Int(size.into())));
    let variants = Variants::For(values.into());
    let options = CompileOptions { variants, ..CompileOptions::for_target(target) };
    let mut compilation = compile(&SourceFile::new("pieces.krn", SOURCE), &options).expect("it compiles");
    compilation.compiled.origin = None;
    compilation
}

#[test]
fn pieces_from_shared_memory_agree_with_the_reference() {
    // The last one has a full block and one that is not. Of another target, the latter is enough.
    for (target, quick) in [("sm_90", &[LONG[0], LONG[1], LONG[3]][..]), ("sm_75", &LONG[1..2])] {
        let sizes = if xtask::tests_run_in_full() { &LONG[..] } else { quick };
        agree(&compiled_as(target, 1024, 100_000), target, "pieces", sizes);
    }
    // What a machine of any size runs where there are enough results.
    let sizes = if xtask::tests_run_in_full() { LONG } else { SHORT };
    agree(&compiled_as("sm_90", 1 << 20, 1 << 20), "sm_90", "shared", &sizes);
}

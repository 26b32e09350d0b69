//! The pass does what it says, does it to the bit, and the program around it runs.

use krn_compiler::data::HostArray;
use krn_compiler::passes::TargetFacts;
use krn_compiler::source::SourceFile;
use krn_compiler::{Compilation, CompileOptions, compile};
use krn_runtime::verify::{self, Case, CheckOptions};
use krn_runtime::{Device, Selection};
use std::collections::BTreeMap;
use std::process::Command;

fn compiled(kernel: &str, with_the_pass: bool) -> Compilation {
    let mut options = CompileOptions::for_target("sm_90");
    if with_the_pass {
        options.pipeline = Some(own_pass::pipeline(&TargetFacts::new(90)).expect("it fits"));
    }
    compile(&SourceFile::new("test.krn", kernel), &options).expect("it compiles")
}

/// What the pass reports.
fn changed(compilation: &Compilation) -> bool {
    let passes = &compilation.reports[0].1.passes;
    passes.iter().find(|pass| pass.name == "doubling").expect("it ran").changed
}

/// The bits of the result, held against the reference evaluator as well.
fn run(compilation: &Compilation, x: &[f32]) -> Vec<u32> {
    let device = Device::open_as(Selection::Emulator).expect("always there");
    let module = device.load(&compilation.compiled).expect("it loads");
    let x = HostArray::from_values(&[x.len() as u64], x).expect("as many values as the shape holds");
    let case = Case { params: BTreeMap::new(), arrays: BTreeMap::from([("x".to_string(), x)]) };
    let kernel = &compilation.program.kernels[0];
    let (outputs, report) =
        verify::check(&module, &compilation.program, kernel, &case, &CheckOptions::default())
            .expect("it runs");
    assert!(report.agrees(), "{report:?}");
    let outputs = outputs.expect("nothing is refused");
    outputs.arrays[0].1.values::<f32>().expect("it is f32").iter().map(|value| value.to_bits()).collect()
}

#[test]
fn doubling_by_addition_is_the_same_to_the_bit() {
    let kernel = "kernel k(x: f32[n]) -> y: f32[n] { y[i] = abs(x[i] * 2.0) }\n";
    let (with, without) = (compiled(kernel, true), compiled(kernel, false));
    assert!(changed(&with));
    assert!(!with.compiled.ptx.contains("mul.rn.f32") && without.compiled.ptx.contains("mul.rn.f32"));
    let x = [0.0, -0.0, 1.5, -3.0, f32::MAX, f32::MIN_POSITIVE / 4.0, f32::INFINITY, 1e-3];
    assert_eq!(run(&with, &x), run(&without, &x));
}

#[test]
fn other_products_stay() {
    for kernel in [
        "kernel k(x: f32[n]) -> y: f32[n] { y[i] = abs(x[i] * 3.0) }\n",
        "kernel k(x: f32[n]) -> y: f32[n] { y[i] = abs(x[i] * x[i]) }\n",
    ] {
        let compilation = compiled(kernel, true);
        assert!(!changed(&compilation) && compilation.compiled.ptx.contains("mul.rn.f32"), "{kernel}");
        run(&compilation, &[1.0, -2.5, 0.1]);
    }
}

#[test]
fn the_program_shows_the_change_and_the_result() {
    let output = Command::new(env!("CARGO_BIN_EXE_own-pass")).output().expect("it can be started");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("// changes of doubling") && out.contains("y = [3.0, 0.0, 0.5, 16.0]"), "{out}");
}

//! The Python host (examples/python/krn.py) reads a document as the runtime does: the same launches, for all examples.

use krn::{Argument, Device, DeviceArray, HostArray, Module, Selection};
use krn_compiler::manifest::ArgumentKind;
use std::collections::BTreeMap;
use std::process::{Command, Output};

/// Standard output of a program that must succeed.
fn run(program: &str, arguments: &[&str]) -> String {
    let output: Output = Command::new(program)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the program can be started");
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Prints entry, grid, block and shared memory of each launch.
const SCRIPT: &str = "
import json, sys
sys.path.insert(0, 'examples/python')
import krn
document, kernel, shapes, values = json.load(open(sys.argv[1])), sys.argv[2], *map(json.loads, sys.argv[3:])
kernel = next(k for k in krn.image_for(document, 90)['manifest']['kernels'] if k['name'] == kernel)
kernel = krn.Kernel(kernel)
for launch, grid, shared, _ in kernel.plan(kernel.symbols(shapes, values)):
    print(launch['entry'], list(grid), launch['block'], shared)
";

#[test]
fn python_plans_what_the_runtime_launches() {
    let krn = env!("CARGO_BIN_EXE_krn");
    let folder = tempfile::tempdir().expect("a temporary folder");
    // File, kernel, shapes of the arrays.
    let cases: &[(&str, &str, &str)] = &[
        ("matmul", "matmul", r#"{"a": [70, 40], "b": [40, 90]}"#),
        ("matmul", "matmul", r#"{"a": [256, 256], "b": [256, 256]}"#),
        ("sum", "total", r#"{"x": [1000]}"#),
        ("sum", "total", r#"{"x": [70000]}"#),
        ("softmax", "softmax", r#"{"x": [5, 1001]}"#),
        ("transpose", "transpose", r#"{"a": [70, 90]}"#),
        ("histogram", "histogram", r#"{"x": [5000]}"#),
    ];
    let device = Device::open_as(Selection::Emulator).expect("always there");
    for (file, kernel, shapes) in cases {
        let source = format!("examples/{file}.krn");
        let document = folder.path().join(format!("{file}.json")).display().to_string();
        // With the source the runtime would have code made for these sizes.
        let build =
            ["build", &source, "--emit", "fat", "--target", "sm_80,sm_90", "--no-source", "-o", &document];
        run(krn, &build);
        let planned = run("python3", &["-c", SCRIPT, &document, kernel, shapes, "{}"]);
        let planned: Vec<&str> = planned.lines().collect();
        let launched = launched(&device, &document, kernel, shapes);
        assert_eq!(planned.len(), launched.len(), "{file} {shapes}");
        for (planned, wanted) in planned.iter().zip(launched) {
            assert!(planned.starts_with(&wanted), "{planned} instead of {wanted}");
        }
    }
}

/// Entry, grid and block of each launch that the runtime makes of a document's kernel for arrays of these shapes.
fn launched(device: &Device, document: &str, kernel: &str, shapes: &str) -> Vec<String> {
    let document = std::fs::read_to_string(document).expect("it was written");
    let module = Module::from_fat(device, &document).expect("its own document");
    let kernel = module.kernel(kernel).expect("there");
    let shapes: BTreeMap<String, Vec<u64>> = serde_json::from_str(shapes).expect("shapes");
    let arrays: Vec<(&str, DeviceArray)> = kernel
        .manifest()
        .arguments
        .iter()
        .filter_map(|argument| {
            let ArgumentKind::Array { buffer, .. } = &argument.kind else { return None };
            let shape = shapes.get(&argument.name)?.clone();
            let array = HostArray::zeros(buffer.element.clone(), shape).expect("small");
            Some((argument.name.as_str(), device.upload(&array, buffer.layout).expect("small")))
        })
        .collect();
    let arguments: Vec<(&str, Argument<'_>)> =
        arrays.iter().map(|(name, array)| (*name, Argument::Array(array))).collect();
    let counted = kernel.bind(&arguments).expect("they fit").count().expect("it runs");
    let line = |launch: &krn::profile::CountedLaunch| {
        format!("{} {:?} {:?} ", launch.entry, launch.grid, launch.block)
    };
    counted.expect("the emulator counts").iter().map(line).collect()
}

#[test]
fn python_refuses_facts_that_do_not_hold() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("fact.krn").display().to_string();
    std::fs::write(&file, "kernel k(x: f32[n]) -> y: f32[n / 4] where n % 4 == 0 { y[i] = x[4 * i] }\n")
        .expect("written");
    let document = folder.path().join("fact.json").display().to_string();
    run(env!("CARGO_BIN_EXE_krn"), &["build", &file, "--emit", "fat", "--target", "sm_90", "-o", &document]);
    let refused = Command::new("python3")
        .args(["-c", SCRIPT, &document, "k", r#"{"x": [6]}"#, "{}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("python3 starts");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("`where n % 4 == 0` does not hold"), "{said}");
    run("python3", &["-c", SCRIPT, &document, "k", r#"{"x": [8]}"#, "{}"]);
}

//! The Python host (examples/python/krn.py) reads a document as the runtime does: the same launches, for all examples.

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
    // File, kernel, sizes, shapes of the arrays that bind them, values of the parameters that count.
    let cases: &[(&str, &str, &[&str], &str, &str)] = &[
        ("matmul", "matmul", &["m=70", "k=40", "n=90"], r#"{"a": [70, 40], "b": [40, 90]}"#, "{}"),
        ("matmul", "matmul", &["m=256", "k=256", "n=256"], r#"{"a": [256, 256], "b": [256, 256]}"#, "{}"),
        ("sum", "total", &["n=1000"], r#"{"x": [1000]}"#, "{}"),
        ("sum", "total", &["n=70000"], r#"{"x": [70000]}"#, "{}"),
        ("softmax", "softmax", &["rows=5", "cols=1001"], r#"{"x": [5, 1001]}"#, "{}"),
        ("transpose", "transpose", &["m=70", "n=90"], r#"{"a": [70, 90]}"#, "{}"),
        ("histogram", "histogram", &["n=5000"], r#"{"x": [5000]}"#, "{}"),
    ];
    for (file, kernel, sizes, shapes, values) in cases {
        let source = format!("examples/{file}.krn");
        let document = folder.path().join(format!("{file}.json")).display().to_string();
        run(krn, &["build", &source, "--emit", "fat", "--target", "sm_80,sm_90", "-o", &document]);
        let planned = run("python3", &["-c", SCRIPT, &document, kernel, shapes, values]);
        let fixed =
            [&["profile", &source, "--kernel", kernel, "--device", "emulator", "--json", "-D"], *sizes]
                .concat();
        let profile: serde_json::Value = serde_json::from_str(&run(krn, &fixed)).expect("one JSON object");
        let launched = profile["launches"].as_array().expect("a list");
        let planned: Vec<&str> = planned.lines().collect();
        assert_eq!(planned.len(), launched.len(), "{file} {sizes:?}");
        for (planned, launched) in planned.iter().zip(launched) {
            let list = |name: &str| launched[name].to_string().replace(',', ", ");
            let (entry, grid, block) = (&launched["entry"], list("grid"), list("block"));
            let wanted = format!("{} {grid} {block} ", entry.as_str().expect("a name"));
            assert!(planned.starts_with(&wanted), "{planned} instead of {wanted}");
        }
    }
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

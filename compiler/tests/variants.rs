//! Which entries a kernel is compiled to, at the edges of each condition.

use krn_compiler::manifest::{Step, Value};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, Variants, compile};

/// The names of the entries that the only kernel runs for these dimensions and parameters, in the manifest's order of
/// symbols.
fn entries(source: &str, symbols: &[i64]) -> Vec<String> {
    let symbols: Vec<Value> = symbols.iter().map(|value| Value::Int(i128::from(*value))).collect();
    let variants = Variants::Only(symbols.iter().copied().map(Some).collect());
    let options = CompileOptions { variants, ..CompileOptions::for_target("sm_90") };
    let compiled = compile(&SourceFile::new("test.krn", source), &options).expect("it compiles").compiled;
    let kernel = &compiled.manifest.kernels[0];
    assert_eq!(kernel.symbols.len(), symbols.len(), "{:?}", kernel.symbols);
    let [variant] = &kernel.variants[..] else { panic!("{:?}", kernel.variants) };
    assert!(variant.guard.holds(&symbols), "{:?}", variant.guard);
    let mut names = Vec::new();
    taken(&variant.plan, &symbols, &mut names);
    names
}

fn taken(steps: &[Step], symbols: &[Value], names: &mut Vec<String>) {
    for step in steps {
        match step {
            Step::Launch(launch) => names.push(launch.entry.clone()),
            Step::Repeat { body, .. } => taken(body, symbols, names),
            Step::Branch { condition, then, otherwise } => match condition.evaluate(symbols) {
                Some(Value::Bool(true)) => taken(then, symbols, names),
                Some(Value::Bool(false)) => taken(otherwise, symbols, names),
                other => panic!("{condition:?} is {other:?}"),
            },
            Step::While { test, body, .. } => {
                taken(test, symbols, names);
                taken(body, symbols, names);
            }
        }
    }
}

const EDGE: i64 = 1 << 31;

#[test]
fn indices_are_narrow_below_2_to_the_31() {
    let wrapped = "kernel k(x: u8[m], n: i64) -> y: u8[n] where m >= 1, n >= 0 { y[i] = x[i % m] }\n";
    for (m, n, entry) in [
        (EDGE - 1, EDGE - 1, "k_narrow"),
        (EDGE, EDGE - 1, "k"),
        (EDGE - 1, EDGE, "k"),
        (1, 0, "k_narrow"),
        (1 << 35, 5, "k"),
    ] {
        assert_eq!(entries(wrapped, &[m, n]), [entry], "m = {m}, n = {n}");
    }
    // It is the product that counts here, and the divisor.
    let flattened =
        "kernel k(x: u8[m, n]) -> y: u8[m * n] { y[i] = (x[i / n, i % n] + (i % 7) as u32) as u8 }\n";
    for (m, n, entry) in [
        (1, EDGE - 1, "k_narrow"),
        (2, EDGE / 2, "k"),
        (2, EDGE / 2 - 1, "k_narrow"),
        (0, EDGE, "k"),
        (EDGE, 0, "k_narrow"),
    ] {
        assert_eq!(entries(flattened, &[m, n]), [entry], "m = {m}, n = {n}");
    }
}

#[test]
fn rows_of_whole_vectors_have_a_variant() {
    let rows = "kernel k(x: f32[m, n]) -> y: f32[m, n] { y[i, j] = x[i, j] + x[0, j] }\n";
    let names = |n| entries(rows, &[1000, n]);
    assert_eq!(names(1024), names(1028));
    assert_ne!(names(1024), names(1023), "four elements are a vector");
}

//! What is said of an `assert` that does not hold, by the device and by the reference; and that it costs nothing where it
//! is left out.

use crate::support::compiled;
use krn_compiler::data::{ElementType, HostArray, Scalar};
use krn_compiler::reference::{self, EvalError, Options};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, compile};
use krn_runtime::verify::{Case, reference_inputs};
use krn_runtime::{Device, Error, Selection};
use std::collections::BTreeMap;

/// 0, 1, 2, …
fn iota(shape: &[u64]) -> HostArray {
    let count = shape.iter().product::<u64>();
    let bytes = (0..count as i32).flat_map(i32::to_le_bytes).collect();
    HostArray { element: ElementType::scalar(Scalar::I32), shape: shape.to_vec(), bytes }
}

/// What the emulator says of a kernel whose array `x` counts, and what the reference says.
fn told(text: &str, shape: &[u64]) -> (String, String) {
    let compilation = compiled(text, &[]);
    let device = Device::open_as(Selection::Emulator).expect("always there");
    let module = device.load(&compilation.compiled).expect("it loads");
    let x = iota(shape);
    let error = module.kernel("k").and_then(|kernel| kernel.run(&[("x", &x)])).expect_err("it fails");
    let Error::Assertion(failure) = &error else { panic!("{error}\n{text}") };
    let case = Case { params: BTreeMap::new(), arrays: BTreeMap::from([("x".to_string(), x)]) };
    let program = &compilation.program;
    let inputs = reference_inputs(program, &program.kernels[0], &case, const { &BTreeMap::new() });
    let refused = reference::evaluate(&inputs, &Options::default()).expect_err("it fails");
    let EvalError::AssertionFailed { text, indices, .. } = &refused else { panic!("{refused}") };
    assert_eq!(text, &failure.condition);
    assert_eq!(indices.len(), failure.indices.len());
    (error.to_string(), refused.to_string())
}

#[test]
fn place_condition_and_index_names_are_told() {
    for (text, shape, place, said) in [
        (
            "kernel k(x: i32[n]) -> y: i32[n] {\n    forall i in n {\n        assert x[i] != 7\n        y[i] = x[i]\n    }\n}\n",
            &[40][..],
            "3:16",
            "the assertion `x[i] != 7` does not hold for i = 7",
        ),
        // Of a function it is the caller's iteration, and the function's own.
        (
            "fn f(v: i32) -> i32 {\n    var s = 0\n    for t in 0..3 {\n        assert v + t as i32 != 9\n        s += v\n    }\n    s\n}\nkernel k(x: i32[m, n]) -> y: i32[m, n] { y[r, c] = f(x[r, c]) }\n",
            &[2, 4],
            "4:16",
            "the assertion `v + t as i32 != 9` does not hold for r = 1, c = 3, t = 2",
        ),
        // In a row that a team shares, and at kernel level.
        (
            "kernel k(x: i32[m, n]) -> y: i32[m] {\n    forall r in m { y[r] = sum(c: { assert x[r, c] < 1299; x[r, c] }) }\n}\n",
            &[13, 100],
            "2:44",
            "the assertion `x[r, c] < 1299` does not hold for r = 12, c = 99",
        ),
        (
            "kernel k(x: i32[n]) -> y: i32 {\n    y = 0\n    for t in 0..3 {\n        assert sum(i: x[i]) as i64 + t != 12\n        y += 1\n    }\n}\n",
            &[5],
            "4:16",
            "the assertion `sum(i: x[i]) as i64 + t != 12` does not hold for t = 2",
        ),
        (
            "kernel k(x: i32[n]) -> y: i32 {\n    y = 1\n    assert all(i: x[i] < 4)\n}\n",
            &[5],
            "3:12",
            "the assertion `all(i: x[i] < 4)` does not hold",
        ),
        // More names than the record has room for.
        (
            "kernel k(x: i32[n]) -> y: i32[n] {\n    forall i in n {\n        y[i] = sum(a in 0..1, b in 0..1, c in 0..1, d in 0..1: { sum(e in 0..1, f in 0..1, g in 0..1, h in 0..2: { assert h + i != 5; x[i] }) })\n    }\n}\n",
            &[5],
            "3:123",
            "the assertion `h + i != 5` does not hold for i = 4, a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0",
        ),
    ] {
        let (device, reference) = told(text, shape);
        assert_eq!(device, format!("test.krn:{place}: kernel `k`: {said}"));
        assert_eq!(reference, said);
    }
}

#[test]
fn a_failure_is_told_once_and_the_kernel_goes_on_working() {
    let text = "kernel k(x: i32[n]) -> y: i32[n] { forall i in n { assert x[i] != 7; y[i] = x[i] } }\n";
    let device = Device::open_as(Selection::Emulator).expect("always there");
    let module = device.load(&compiled(text, &[]).compiled).expect("it loads");
    let kernel = module.kernel("k").expect("it is there");
    for _ in 0..2 {
        assert!(matches!(kernel.run(&[("x", &iota(&[100]))]), Err(Error::Assertion(_))));
        device.synchronize().expect("told once");
        let outputs = kernel.run(&[("x", &iota(&[7]))]).expect("it holds");
        assert_eq!(outputs.arrays[0].1.bytes, iota(&[7]).bytes);
    }
}

#[test]
fn unchecked_code_is_that_of_a_kernel_without_them() {
    let with = "kernel k(x: i32[n]) -> y: i32[n] {\n    forall i in n {\n        let own = x[i]\n        assert own != 7\n        \
                y[i] = own\n    }\n}\n";
    let without = with.replace("assert own != 7", "               ");
    let ptx = |text: &str, unchecked| {
        let options = CompileOptions { unchecked, ..CompileOptions::for_target("sm_90") };
        compile(&SourceFile::new("test.krn", text), &options).expect("it compiles").compiled.ptx
    };
    assert_eq!(ptx(with, true), ptx(&without, false));
    assert_ne!(ptx(with, false), ptx(with, true));
}

#[test]
fn nothing_is_taken_for_granted_that_is_asserted() {
    let checks = |body: &str| {
        let text = format!("kernel k(x: i32[n], at: i64[n]) -> y: i32[n] {{ forall i in n {{ {body} }} }}\n");
        compiled(&text, &[]).program.kernels[0].sites.len()
    };
    assert_eq!(checks("y[i] = x[at[i]]"), 1);
    assert_eq!(checks("assert at[i] >= 0 && at[i] < n; y[i] = x[at[i]]"), 2);
    assert_eq!(checks("if at[i] >= 0 && at[i] < n { y[i] = x[at[i]] } else { assert false }"), 1);
}

//! The least work of a launch: bytes by field and direction, operations by trip counts.

use krn_compiler::check_source;
use krn_compiler::reference::{Inputs, Work, estimate_work};
use krn_compiler::source::SourceFile;
use std::collections::BTreeMap;

/// Bytes and operations of the only kernel of a text, at these dimensions.
fn work(text: &str, dims: &[i64]) -> (u128, Option<u128>) {
    let (program, found) = check_source(&SourceFile::new("work.krn", text));
    assert!(!found.has_errors(), "{text}");
    let inputs = Inputs {
        program: &program,
        kernel: &program.kernels[0],
        dims: BTreeMap::new(),
        params: BTreeMap::new(),
        arrays: BTreeMap::new(),
        statics: BTreeMap::new(),
    };
    let Work { bytes, flops, steps } = estimate_work(&inputs, dims).expect("the dimensions fit");
    assert!(steps > 0);
    (bytes, flops)
}

#[test]
fn arrays_count_once_a_direction() {
    assert_eq!(work("kernel k(x: f32[n]) -> y: f64[n] { y[i] = x[i] as f64 }", &[10]), (120, Some(0)));
    // Read three times, but once is enough.
    let text = "kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] * x[i] + x[n - 1 - i] }";
    assert_eq!(work(text, &[10]), (80, Some(20)));
    assert_eq!(work("kernel k(x: inout f32[n]) { x[i] = 1.0 }", &[10]), (40, Some(0)));
    assert_eq!(work("kernel k(x: inout f32[n]) { x[i] = x[i] + 1.0 }", &[10]), (80, Some(10)));
    assert_eq!(work("kernel k(x: inout f32[n]) { x[i] += 1.0 }", &[10]), (80, Some(10)));
    // A result is not read, nor is a temporary.
    let text = "kernel k(x: u8[n]) -> h: u32[256] { forall i in n { h[x[i]] += 1 } }";
    assert_eq!(work(text, &[100]), (100 + 1024, Some(0)));
    let text = "kernel k(x: f32[n]) -> y: f32[n] { let t[i] = 2.0 * x[i]\n y[i] = t[i] else 0.0 }";
    assert_eq!(work(text, &[8]).0, 64);
}

#[test]
fn only_the_fields_that_are_touched_count() {
    let structs = "struct V { x: f32, y: f64 }\nstruct P { at: V, k: u8 }\n";
    let work = |kernel: &str| work(&format!("{structs}{kernel}"), &[10]).0;
    assert_eq!(work("kernel k(p: P[n]) -> y: f32[n] { y[i] = p[i].at.x }"), 80);
    assert_eq!(work("kernel k(p: P[n]) -> y: V[n] { y[i] = p[i].at }"), 240);
    assert_eq!(work("kernel k(p: inout P[n]) { p[i].k = 1 }"), 10);
    assert_eq!(work("kernel k(p: P[n]) -> q: P[n] { q[i] = p[i] }"), 260);
}

#[test]
fn operations_are_counted_by_trips_or_not_at_all() {
    let matmul =
        "kernel k(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }";
    // Dimensions in the order in which they are bound: m, k, n.
    assert_eq!(work(matmul, &[3, 5, 7]).1, Some(2 * 3 * 5 * 7));
    let text = "kernel k(x: f32[n]) -> y: f32[n] { y[i] = fma(x[i], 2.0, exp(x[i])) }";
    assert_eq!(work(text, &[4]).1, Some(12));
    let text = "kernel k(x: f32[n]) -> y: f32[n] { y[i] = max(x[i], 0.0) }";
    assert_eq!(work(text, &[4]).1, Some(0));
    let text = "kernel k(x: f32[n]) -> y: f32[n] {
        forall i in n { var v = x[i]
            while v > 1.0 { v = v * 0.5 }
            y[i] = v } }";
    assert_eq!(work(text, &[4]).1, None);
    let text = "kernel k(x: f32[n], m: i32[n]) -> y: f32[n] { y[i] = sum(j in 0..m[i]: 2.0 * i as f32) }";
    assert_eq!(work(text, &[4]).1, None);
    let text = "kernel k(x: f32[n]) -> y: f32[n] {
        y[i] = x[i]
        for s in 0..n { y[i] = 2.0 * x[i] } }";
    assert_eq!(work(text, &[4]).1, Some(16));
}

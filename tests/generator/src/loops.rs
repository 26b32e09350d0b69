//! Loops in order whose iterations touch places of their own, and others' by a hair; indices that are taken apart by sizes; and
//! ranges that another index bounds, around a product.

use crate::Program;
use crate::choices::Choices;

/// The program that a list of choices stands for.
pub fn generate(choices: &[u32]) -> Program {
    let mut choices = Choices::new(choices);
    let seed = choices.seed();
    let source = match choices.below(5) {
        0 | 1 => in_order(&mut choices),
        2 | 3 => digits(&mut choices),
        _ => triangle(&mut choices),
    };
    let size = |choices: &mut Choices<'_>| choices.one_of(&[3, 1, 2, 5, 8]);
    let [m, n, k] = [0; 3].map(|_| size(&mut choices));
    Program { source, dims: vec![("k".to_string(), k), ("m".to_string(), m), ("n".to_string(), n)], seed }
}

/// A loop over `n` in each of `m` iterations, which reads and writes `y` and writes `z`.
fn in_order(choices: &mut Choices<'_>) -> String {
    let place = choices.one_of(&["p", "n - 1 - p", "p", "p + 1", "2 * p", "p / 2", "0"]);
    let other = match choices.below(3) {
        0 => place,
        _ => choices.one_of(&["p", "p + 1", "n - 1 - p", "2 * p", "0", "p + 2"]),
    };
    let term = choices.one_of(&["x[i, p]", "x[i, p] * s", "x[i, n - 1 - p] + 1.0"]);
    let read = match choices.below(3) {
        0 => String::new(),
        1 => format!(" + y[i, {other}]"),
        _ => format!(" + 0.5 * y[i, {place}]"),
    };
    let width = choices.one_of(&[2, 2, 3, 1]);
    let inner = match choices.below(3) {
        0 => format!("for q in {width} {{ z[i, 2 * p + q] = y[i, p] + q as f32 }}"),
        1 => format!("z[i, 2 * p] = {term}"),
        _ => String::new(),
    };
    format!(
        "kernel random(x: f32[m, n], y: inout f32[m, 2 * n + 2], z: inout f32[m, 2 * n + 2], w: f32[k]) {{\n    \
         forall i in m {{\n        let s = 1.0 + sum(p in n: x[i, p] * x[i, p])\n        \
         for p in n {{\n            y[i, {place}] = {term}{read}\n            {inner}\n        }}\n    }}\n}}\n"
    )
}

/// An index over a product of sizes, by its digits.
fn digits(choices: &mut Choices<'_>) -> String {
    let (extent, parts): (&str, &[&str]) = choices.one_of(&[
        ("m * n", &["t / n", "t % n", "0"]),
        ("m * n * k", &["t / n / k", "t / k % n", "t % k"]),
        ("m * n * k", &["t / (n * k)", "t % (n * k) / k", "t % (n * k) % k"]),
        ("2 * n * m", &["t / n / 2", "t % n", "t / n % 2"]),
        ("m * n", &["t / n", "t % n", "t % n / 2"]),
        ("4 * k", &["t / k / 2", "t / k % 2", "t % k"]),
    ]);
    let [a, b, c] = parts else { unreachable!("three digits") };
    let whole = choices.one_of(&[" + t as f32", "", " + (x[t, 0, 0] else 0.5)"]);
    let term = format!("(x[{a}, {b}, {c}] else 0.25) + 2.0 * (x[{b}, {a}, {c}] else 1.5){whole}");
    let body = match choices.below(4) {
        0 => format!("y[0] = sum(t in {extent}: {term})"),
        1 => format!(
            "forall i in 1 {{ var v = 1.0\n        for t in {extent} {{ v = 0.5 * v + ({term}) }}\n        y[0] = v }}"
        ),
        _ => format!("forall t in {extent} {{ y[t] = {term} }}"),
    };
    format!(
        "kernel random(x: f32[m, n, k], y: inout f32[4 * m * n * k]) where m >= 1, n >= 1, k >= 1 {{\n    {body}\n}}\n"
    )
}

/// A product whose columns end, or begin, with its row.
fn triangle(choices: &mut Choices<'_>) -> String {
    let range =
        choices.one_of(&["0..=i", "i..n", "0..i", "i + 1..n", "0..n - i", "0..i / 2 + 1", "i..i + 2"]);
    let factor = choices.one_of(&["b[j, p]", "a[j, p]", "b[j, p] * c[p]"]);
    let value = choices.one_of(&["v", "2.0 * v + y[i, j]", "v - y[i, j]"]);
    format!(
        "kernel random(a: f32[n, k], b: f32[n + 2, k], c: f32[k], y: inout f32[n, n + 2], d: f32[m]) {{\n    \
         forall i in n, j in {range} {{\n        let v = sum(p in k: a[i, p] * {})\n        y[i, j] = {value}\n    }}\n}}\n",
        factor.replace("a[j, p]", "(a[j, p] else 0.5)")
    )
}

//! Branches whose sides store to the same elements, or to others by a hair; loops in branches; and products that one side stores.

use crate::Program;
use crate::choices::Choices;

/// The program that a list of choices stands for.
pub fn generate(choices: &[u32]) -> Program {
    let mut choices = Choices::new(choices);
    let seed = choices.seed();
    let condition =
        choices.one_of(&["on[i] < 100", "i % 2 == 0", "w[0, i] > 0.0", "s[0] > 0.0", "on[i] < 100 && i > 0"]);
    // Products have tiles from some rows and steps on.
    let (body, rows, columns): (String, &[i64], &[i64]) = match choices.below(3) {
        0 => (stores(&mut choices, condition), &[3, 1, 2, 5, 8], &[3, 1, 2, 5, 33]),
        1 => (loops(&mut choices, condition), &[3, 1, 2, 5, 8], &[3, 1, 2, 5, 33]),
        _ => (products(&mut choices, condition), &[5, 8, 33, 1], &[33, 40, 3]),
    };
    let (m, n) = (choices.one_of(rows), choices.one_of(columns));
    let source = format!(
        "kernel random(x: f32[m, n], w: f32[n, m], on: u8[m], s: f32[1], y: inout f32[m, 2 * n + 2], \
         z: inout f32[m, n], v: inout f32[m, m]) where m >= 1, n >= 1 {{\n    {body}\n}}\n"
    );
    Program { source, dims: vec![("m".to_string(), m), ("n".to_string(), n)], seed }
}

/// A value for an element of each row.
fn value(choices: &mut Choices<'_>) -> &'static str {
    choices.one_of(&["x[i, j]", "0.0", "2.0 * x[i, j] - 1.0", "y[i, 2 * j] + 1.0", "z[i, j] - w[j, i]"])
}

/// Stores to the same elements of two arrays, in this order or the other one, with reads among them.
fn stores(choices: &mut Choices<'_>, condition: &str) -> String {
    let side = |choices: &mut Choices<'_>| {
        let place = choices.one_of(&["2 * j", "2 * j", "2 * j + 1"]);
        let [first, second] = [0; 2].map(|_| value(choices));
        match choices.below(6) {
            0 | 1 => format!("y[i, {place}] = {first}"),
            2 => format!("y[i, {place}] = {first}\n            z[i, j] = {second}"),
            3 => format!("z[i, j] = {second}\n            y[i, {place}] = {first}"),
            4 => format!("y[i, {place}] = {first}\n            z[i, j] = y[i, 2 * j] + 0.5"),
            _ => format!(
                "y[i, 2 * j] = {first}\n            y[i, 2 * j + 1] = {second} + y[i, {place}]\n            z[i, j] = 1.0"
            ),
        }
    };
    let (then, otherwise) = (side(choices), side(choices));
    format!(
        "forall i in m, j in n {{\n        if {condition} {{\n            {then}\n        }} else {{\n            {otherwise}\n        }}\n    }}"
    )
}

/// Loops over one range, or nearly one, in each side of a branch, behind what is computed or loaded.
fn loops(choices: &mut Choices<'_>, condition: &str) -> String {
    let side = |choices: &mut Choices<'_>| {
        let range = choices.one_of(&["n", "0..n", "n", "1..n", "0..n - 1"]);
        let before = choices.one_of(&[
            "let t = 0.5",
            "let t = x[i, 0]",
            "let t = 2.0 * w[0, i]",
            "let t = y[i, 0]",
            "let t = sum(p in n: x[i, p])",
        ]);
        let stored = value(choices);
        format!("{before}\n            forall j in {range} {{ y[i, 2 * j] = t + {stored} }}")
    };
    let then = side(choices);
    let otherwise = match choices.below(3) {
        0 => "let t = 1.0\n            forall j in n { y[i, 2 * j] = t }".to_string(),
        1 => side(choices),
        _ => String::new(),
    };
    let otherwise = if otherwise.is_empty() {
        otherwise
    } else {
        format!(" else {{\n            {otherwise}\n        }}")
    };
    format!("forall i in m {{\n        if {condition} {{\n            {then}\n        }}{otherwise}\n    }}")
}

/// A product that one side stores, or both.
fn products(choices: &mut Choices<'_>, condition: &str) -> String {
    // Columns of `v`, of which there are as many as rows.
    let factor = choices.one_of(&["w[p, j]", "0.5 * w[p, j]", "(w[p, j + 1] else 0.25)"]);
    let behind = choices.one_of(&["", " * 2.0", " + x[i, 0]"]);
    let otherwise = choices.one_of(&["", "", " else { v[i, j] = 0.5 }", " else { v[i, j] = x[i, 0] }"]);
    format!(
        "forall i in m, j in m {{\n        if {condition} {{\n            \
         v[i, j] = sum(p in n: x[i, p] * {factor}){behind}\n        }}{otherwise}\n    }}"
    )
}

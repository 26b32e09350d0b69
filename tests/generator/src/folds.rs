//! Loops in order that combine what they carry, or look for the best of something, and others that do so by a hair; local arrays
//! that are read at other places than an iteration's own.

use crate::Program;
use crate::choices::Choices;

/// The program that a list of choices stands for.
pub fn generate(choices: &[u32]) -> Program {
    let mut choices = Choices::new(choices);
    let seed = choices.seed();
    let source = match choices.below(5) {
        0..=2 => folds(&mut choices),
        3 => search(&mut choices),
        _ => elsewhere(&mut choices),
    };
    let size = |choices: &mut Choices<'_>| choices.one_of(&[3, 1, 2, 5, 8, 40]);
    let [m, n] = [0; 2].map(|_| size(&mut choices));
    let k = choices.one_of(&[2, 1, 3, 5]);
    Program { source, dims: vec![("k".to_string(), k), ("m".to_string(), m), ("n".to_string(), n)], seed }
}

/// Types that a variable may have, and that of the array that it is made of.
const TYPES: [(&str, &str); 9] = [
    ("i32", "i32"),
    ("f32", "f32"),
    ("u32", "u32"),
    ("i64", "i32"),
    ("i8", "i8"),
    ("u8", "u8"),
    ("f16", "f16"),
    ("f64", "f64"),
    ("i16", "i32"),
];

/// A loop over `p` in each of `m` iterations, with some variables around it.
fn folds(choices: &mut Choices<'_>) -> String {
    let (ty, element) = choices.one_of(&TYPES);
    let count = choices.one_of(&[1, 2, 1, 3]);
    let is_nested = choices.once_in(3);
    let mut lines = Vec::new();
    let mut body = Vec::new();
    for at in 0..count {
        let name = ["s", "t", "u"][at];
        let first = match choices.below(3) {
            0 => "0".to_string(),
            1 => "3".to_string(),
            _ => format!("w[i] as {ty}"),
        };
        let first = if first.contains('w') { first } else { format!("{first} as {ty}") };
        lines.push(format!("var {name}: {ty} = {first}"));
        let other = if count > 1 && choices.once_in(8) { ["t", "s", "s"][at] } else { name };
        let read = if is_nested { "x[i, p] * (q as ELEMENT)" } else { "x[i, p]" }.replace("ELEMENT", element);
        let read = if choices.once_in(3) { format!("({read} + x[i, n - 1 - p])") } else { read };
        let term = if element == ty { read } else { format!("(({read}) as {ty})") };
        body.push(step(choices, ty, name, other, &term));
    }
    let has_truth = choices.once_in(3);
    if has_truth {
        lines.push(format!("var a = {}", choices.one_of(&["false", "true"])));
        let text = choices.one_of(&["if C { a = true }", "if C { a = false }", "a = a || C", "a = a && C"]);
        let condition = choices.one_of(&["x[i, p] > w[i]", "(p + i) % 2 == 0", "a != (p > 1)"]);
        body.push(text.replace('C', condition));
    }
    // A condition of data, or of the index, around all of it.
    let mut body = body.join("\n            ");
    if choices.once_in(4) {
        let condition = choices.one_of(&["x[i, p] > w[i]", "p > 1", "p != i", "s > 1 as TYPE"]);
        body = format!("if {} {{ {body} }}", condition.replace("TYPE", ty));
    }
    if choices.once_in(10) {
        body.push_str("\n            z[i, p] = x[i, p]");
    }
    if is_nested {
        body = format!("for q in 0..k {{ {body} }}");
    }
    let range = choices.one_of(&["0..n", "0..n", "n", "i..n", "1..n", "0..n step 2", "0..=i"]);
    let range = if range == "0..=i" { "0..min(i, n)" } else { range };
    let mut end: Vec<String> = (0..count).map(|at| format!("y[i, {at}] = {}", ["s", "t", "u"][at])).collect();
    end.extend(has_truth.then(|| "b[i] = a".to_string()));
    format!(
        "kernel random(x: {element}[m, n], w: {element}[m], z: inout {element}[m, n], y: inout {ty}[m, 3], b: inout bool[m], v: f32[k]) {{\n    \
         forall i in m {{\n        {}\n        for p in {range} {{\n            {body}\n        }}\n        {}\n    }}\n}}\n",
        lines.join("\n        "),
        end.join("\n        "),
    )
}

/// A loop over `p` that keeps the best of something, its place, and what else belongs to it.
fn search(choices: &mut Choices<'_>) -> String {
    let ty = choices.one_of(&["f32", "i32", "f64", "u32", "f32"]);
    let term = match choices.below(4) {
        0 => "x[i, p]",
        1 => "x[i, p] * x[i, n - 1 - p]",
        2 if ty.starts_with('f') => "sqrt(x[i, p])",
        _ => "min(x[i, p], w[i])",
    };
    let compare = choices.one_of(&[">", "<", ">", ">=", "<="]);
    let condition = match choices.below(6) {
        0 => format!("s {compare} {term}"),
        1 => format!("p != 2 && {term} {compare} s"),
        _ => format!("{term} {compare} s"),
    };
    let first = choices.one_of(&["0 as TYPE", "w[i]", "5 as TYPE", "x[i, 0]"]).replace("TYPE", ty);
    let kept = choices.one_of(&["a = p as i32", "a = p as i32; t = w[i] * x[i, p]", "", "a += 1", "t = s"]);
    let value = if choices.once_in(8) { "x[i, n - 1 - p]" } else { term };
    let range = choices.one_of(&["0..n", "1..n", "i..n", "n", "0..min(i, n)"]);
    let order =
        if choices.once_in(3) { format!("{kept}; s = {value}") } else { format!("s = {value}; {kept}") };
    let order = order.trim_matches(|c| c == ';' || c == ' ').to_string();
    format!(
        "kernel random(x: {ty}[m, n], w: {ty}[m], y: inout {ty}[m, 2], b: inout i32[m], v: f32[k]) where n >= 1 {{\n    \
         forall i in m {{\n        var s = {first}\n        var t = w[i]\n        var a = -1\n        \
         for p in {range} {{\n            if {condition} {{ {order} }}\n        }}\n        \
         y[i, 0] = s\n        y[i, 1] = t\n        b[i] = a\n    }}\n}}\n"
    )
}

/// Arrays of an iteration's own, read elsewhere.
fn elsewhere(choices: &mut Choices<'_>) -> String {
    let element =
        choices.one_of(&["x[i, p]", "x[i, p] * w[i]", "x[i, p] + x[i, n - 1 - p]", "w[i] - x[i, p]"]);
    let places = [
        "n - 1 - p",
        "(p + 1) % n",
        "p / 2",
        "0",
        "p",
        "(p + i) % n",
        "max(p - 1, 0)",
        "(a[p] as i64 % n + n) % n",
    ];
    let (one, other) = (choices.one_of(&places), choices.one_of(&places));
    let of_it = choices.one_of(&["e[p] * 0.5", "e[p] + e[n - 1 - p]", "e[(p + 2) % n]"]);
    let second =
        if choices.once_in(2) { format!("let f[p in n] = {of_it}\n        ") } else { String::new() };
    let f = if second.is_empty() { "e" } else { "f" };
    let own = choices.one_of(&[
        "sum(p in n: e[p])",
        "max(p in n: e[p] * e[p])",
        "sum(p in n, q in k: e[p] * v[q])",
        "w[i]",
    ]);
    let between = if choices.once_in(4) { "forall p in n { x[i, p] = s }\n        " } else { "" };
    let value = match choices.below(3) {
        0 => format!("{f}[{one}] - s"),
        1 => format!("{f}[{one}] + 2.0 * e[{other}]"),
        _ => format!("if w[i] > 0.0 {{ {f}[{one}] }} else {{ s }}"),
    };
    let loops = choices.one_of(&[
        "forall p in n { z[i, p] = VALUE }",
        "for p in n { z[i, p] = VALUE }",
        "z[i, 0] = sum(p in n, q in k: VALUE)",
    ]);
    format!(
        "kernel random(x: inout f32[m, n], w: f32[m], a: i32[n], z: inout f32[m, n], v: f32[k]) where n >= 1 {{\n    \
         forall i in m {{\n        let e[p in n] = {element}\n        {second}let s = {own}\n        {between}{}\n    }}\n}}\n",
        loops.replace("VALUE", &value)
    )
}

/// What an iteration does with a variable. `other` is the variable itself, but for mistakes.
fn step(choices: &mut Choices<'_>, ty: &str, name: &str, other: &str, term: &str) -> String {
    let is_float = ty.starts_with('f');
    match choices.below(if is_float { 7 } else { 13 }) {
        0 => format!("{name} = max({other}, {term})"),
        1 => format!("{name} = min({term}, {other})"),
        2 if is_float => format!("{name} += {term} / 3 as {ty}"),
        2 => format!("{name} += {term}"),
        3 => format!("if x[i, p] > w[i] {{ {name} = max({other}, {term}) }}"),
        4 => format!("if {term} > {other} {{ {name} = {term} }}"),
        5 => format!("{name} = max(min({other}, {term}), {term})"),
        6 => format!("if {name} < {term} {{ {name} = min({other}, {term}) }}"),
        7 => format!("{name} -= {term}"),
        8 => format!("{name} ^= {term}"),
        9 => format!("if x[i, p] > w[i] {{ {name} += 1 as {ty} }} else {{ {name} = {other} - {term} }}"),
        10 => format!("{name} = {term} - {other}"),
        11 => format!("{name} = max({other} as i32, x[i, p] as i32 * 9) as {ty}"),
        _ => format!("{name} |= {term}"),
    }
}

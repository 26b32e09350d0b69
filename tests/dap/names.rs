//! No value that a debugger shows is stale or invented: what names are at every line, in every lane, is held against the
//! same program in Rust, with passes and without.

use super::client::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const TEXT: &str = "\
fn odd(v: i64) -> i64 {
    let two = v * 2
    two + 1
}

kernel k(x: i64[n]) -> y: i64[n], z: i64[n] {
    forall i in n {
        let own = x[i]
        var s = own * 3
        for j in 1..6 {
            let term = s + j
            s = term * 2
            if s > 100 {
                s = s - 100 + own
            }
            let after = s + 1
            s = after + term
        }
        let t = sum(p in 0..5: own + p)
        var w = t * 2 - t
        while w > 50 {
            w = w - 37
        }
        let last = odd(w + s)
        y[i] = last
        z[i] = w
    }
}
";

const NAMES: [&str; 10] = ["i", "j", "own", "s", "term", "after", "t", "w", "last", "v"];

/// The lines that are looked at, by how they start.
const LINES: [&str; 15] = [
    "let two",
    "let own",
    "var s",
    "let term",
    "s = term",
    "if s",
    "s = s - 100",
    "let after",
    "s = after",
    "let t =",
    "var w",
    "w = w - 37",
    "let last",
    "y[i]",
    "z[i]",
];

type Scope = BTreeMap<&'static str, i64>;

/// What names are in front of each of those lines, as often as iteration `i` comes by. A short `if` is computed in any case,
/// and chosen from.
fn expected(i: i64) -> Vec<(&'static str, Scope)> {
    let mut found = Vec::new();
    let mut scope = Scope::from([("i", i)]);
    let mut note = |line: &'static str, scope: &Scope| found.push((line, scope.clone()));
    note("let own", &scope);
    let own = i;
    scope.insert("own", own);
    note("var s", &scope);
    let mut s = own * 3;
    for j in 1..6 {
        let mut scope = scope.clone();
        scope.extend([("s", s), ("j", j)]);
        note("let term", &scope);
        let term = s + j;
        scope.insert("term", term);
        note("s = term", &scope);
        s = term * 2;
        scope.insert("s", s);
        note("if s", &scope);
        note("s = s - 100", &scope);
        if s > 100 {
            s = s - 100 + own;
            scope.insert("s", s);
        }
        note("let after", &scope);
        let after = s + 1;
        scope.insert("after", after);
        note("s = after", &scope);
        s = after + term;
    }
    scope.insert("s", s);
    note("let t =", &scope);
    let t = (0..5).map(|p| own + p).sum();
    scope.insert("t", t);
    note("var w", &scope);
    let mut w = t;
    while w > 50 {
        scope.insert("w", w);
        note("w = w - 37", &scope);
        w -= 37;
    }
    scope.insert("w", w);
    note("let last", &scope);
    let inside = Scope::from([("v", w + s)]);
    note("let two", &inside);
    scope.insert("last", 2 * (w + s) + 1);
    note("y[i]", &scope);
    note("z[i]", &scope);
    found
}

/// What breakpoints with messages say of all lines: the line, and the names that have values.
fn told(text: &str, configuration: Value) -> Vec<(&'static str, Scope, usize)> {
    let mut client = Client::start(text);
    client.launch(configuration);
    let message = |line: &str| {
        let names: Vec<String> = NAMES.iter().map(|name| format!("{{{name}}}")).collect();
        format!("@{line}|{}", names.join("|"))
    };
    let breakpoints: Vec<Value> =
        LINES.iter().map(|line| json!({ "line": client.line(line), "logMessage": message(line) })).collect();
    let placed = client.set(breakpoints.into());
    client.begin();
    assert_eq!(client.ended(), 0, "{:?} {placed}", client.said);
    let mut found = Vec::new();
    for text in client.said.iter().filter_map(|text| text.strip_prefix('@')) {
        let mut parts = text.split('|');
        let line = parts.next().expect("a line");
        let line = LINES.iter().find(|known| **known == line).expect("one of ours");
        let (mut scope, mut gone) = (Scope::new(), 0);
        for (name, value) in NAMES.iter().zip(parts) {
            match value.parse() {
                Ok(value) => drop(scope.insert(name, value)),
                Err(_) => gone += usize::from(value.contains("gone")),
            }
        }
        found.push((*line, scope, gone));
    }
    found
}

/// Holds what is told against what is so; how many values were seen, and how many were gone.
fn judge(text: &str, configuration: Value) -> (usize, usize) {
    let n = configuration["sizes"]["n"].as_i64().expect("a size");
    let of_one: BTreeMap<i64, Vec<(&str, Scope)>> = (0..n).map(|i| (i, expected(i))).collect();
    let (mut seen, mut gone) = (0, 0);
    for (line, scope, missing) in told(text, configuration.clone()) {
        // Of a thread past the end, passes may let run what does no harm.
        if scope.get("i").is_some_and(|i| *i >= n) {
            continue;
        }
        let agrees = |(known, right): &&(&str, Scope)| {
            *known == line && scope.iter().all(|(name, value)| right.get(name) == Some(value))
        };
        let is_so = match scope.get("i").and_then(|i| of_one.get(i)) {
            Some(states) => states.iter().any(|state| agrees(&state)),
            None => of_one.values().flatten().any(|state| agrees(&state)),
        };
        assert!(is_so, "{configuration}: at `{line}` nothing is {scope:?}");
        seen += scope.len();
        gone += missing;
    }
    (seen, gone)
}

#[test]
fn without_passes_every_name_has_its_value_at_every_line() {
    let configuration = json!({ "sizes": { "n": 70 }, "inputs": { "x": "iota" } });
    let mut right: Vec<(&str, Scope)> = (0..70).flat_map(expected).collect();
    let mut told: Vec<(&str, Scope)> =
        told(TEXT, configuration).into_iter().map(|(line, scope, _)| (line, scope)).collect();
    // A line is come to several times where a function is called in it, and in each round of a reduction.
    for list in [&mut right, &mut told] {
        list.sort();
        list.dedup();
    }
    for (right, told) in right.iter().zip(&told) {
        assert_eq!(told, right);
    }
    assert_eq!(told.len(), right.len());
}

#[test]
fn with_passes_a_name_has_its_value_or_none() {
    // A warp, and a part of one.
    let plain = json!({ "sizes": { "n": 34 }, "inputs": { "x": "iota" }, "optimize": true });
    let with = |more: Value| {
        let mut configuration = plain.clone();
        for (name, value) in more.as_object().expect("fields") {
            configuration[name] = value.clone();
        }
        configuration
    };
    let (seen, gone) = judge(TEXT, plain.clone());
    assert!(seen > 500 && gone > 0, "{seen} seen, {gone} gone");
    for pass in ["unroll", "unroll_short", "licm", "cse", "fold", "dce", "strength_reduce", "narrow"] {
        judge(TEXT, with(json!({ "without": [pass] })));
    }
    judge(TEXT, with(json!({ "sizes": { "n": 1 } })));
    judge(TEXT, with(json!({ "sizes": { "n": 300 } , "block": 1 })));
    for schedule in
        ["unroll j: 2", "unroll j: 5", "per_thread i: 4", "tile i: 64\n    unroll j: 3", "unroll p: 5"]
    {
        let text = format!("{TEXT}\nschedule k {{\n    {schedule}\n}}\n");
        judge(&text, plain.clone());
        judge(&text, with(json!({ "optimize": false })));
    }
}

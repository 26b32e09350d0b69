//! Kernels that must be proved, and kernels that must not be.

use crate::check::{check, typed::*};
use crate::diagnostic::Diagnostics;
use crate::source::SourceFile;
use crate::syntax;

/// Collects what differs, so that one run shows the whole table.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare<T: PartialEq + std::fmt::Debug>(&mut self, found: T, expected: T, text: &str) {
        if found != expected {
            self.0.push(format!("{text}\n    found {found:?}, expected {expected:?}"));
        }
    }
}

impl Drop for Differences {
    fn drop(&mut self) {
        assert!(self.0.is_empty() || std::thread::panicking(), "{}", self.0.join("\n"));
    }
}

fn checked(text: &str) -> (Program, Diagnostics) {
    let file = SourceFile::new("test.krn", text);
    let (parsed, reports) = syntax::parse(&file);
    assert!(!reports.has_errors(), "{text}: {reports:?}");
    check(&parsed, &Default::default())
}

/// The codes that are reported, but for unused names.
fn codes(text: &str) -> Vec<&'static str> {
    let (_, diagnostics) = checked(text);
    let mut codes: Vec<_> =
        diagnostics.iter().map(|one| one.code.0).filter(|code| !code.starts_with("W01")).collect();
    codes.dedup();
    codes
}

fn kernel(text: &str) -> Kernel {
    let (program, diagnostics) = checked(text);
    assert!(!diagnostics.has_errors(), "{text}: {diagnostics:?}");
    program.kernels.into_iter().next().expect("a kernel")
}

/// How many subscripts are checked on the device.
fn sites(text: &str) -> usize {
    kernel(text).sites.len()
}

#[test]
fn everyday_accesses_cost_nothing() {
    let mut differences = Differences::default();
    for text in [
        "kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] }",
        "kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[n - 1 - i] }",
        "kernel k(x: f32[n], offset: i64) -> y: f32[n - offset] where offset >= 0, offset <= n { y[i] = x[i + offset] }",
        "kernel k(x: f32[2 * n], z: f32[n]) -> y: f32[n] { y[i] = z[i] + x[2 * i] + x[2*i + 1] + x[i + n] }",
        "kernel f(x: f32[m, k], a: f32[m * k]) -> y: f32[m, k] { forall i in m, j in k { y[i, j] = a[i * k + j] } }",
        "kernel k(x: f32[n]) -> y: f32[n] { forall i in n { y[i] = if i > 0 { x[i - 1] } else { 0.0 } } }",
        "kernel k(x: f32[n]) -> y: f32[n] { forall i in n { y[i] = if i > 0 && i < n - 1 { x[i - 1] + x[i + 1] } else { 0.0 } } }",
        "kernel k(x: f32[n]) -> y: f32[n] { y[i] = sum(j in 0..=i: x[j]) }",
        "kernel k(x: u8[n]) -> h: u32[256] { forall i in n { h[x[i]] += 1 } }",
        "kernel k(x: f32[n]) -> y: f32[n] where n % 32 == 0 { forall t in 0..n/32, l in 0..32 { y[32 * t + l] = x[32*t + l] } }",
        "kernel k(x: f32[n]) -> y: f32[n] { forall i in n { y[i] = x[i / 2] + x[i % n] + x[max(i - 1, 0)] + x[min(i + 1, n - 1)] } }",
        "kernel k(x: f32[n]) -> y: f32[n] { forall i in n { var t = 0.0; for j in 0..n step 3 { t += x[j] }; y[i] = t } }",
        "const TAPS: f32[3] = [1.0, 2.0, 1.0]\nkernel k(x: f32[n]) -> y: f32[n] { y[i] = sum(t in 0..3: TAPS[t]) * TAPS[2] * x[i] }",
        "kernel k(x: f32[rows * cols], s: f32[rows], t: f32[cols]) -> y: f32[cols, rows] { y[c, r] = x[r * cols + c] }",
        "kernel k(x: f32[n]) -> y: f32[n] { forall i in n { let j = n - 1 - i; y[i] = x[j] } }",
        "kernel k(x: f32[n]) -> y: f32[n] { forall i in n { let j = i as i32 & 7; y[i] = if j as i64 < n { x[j] } else { 0.0 } } }",
    ] {
        differences.compare(sites(text), 0, text);
    }
}

/// What a launch with a check leaves is not known to those after it; terms whose checks fail are none.
#[test]
fn what_may_have_failed_proves_nothing() {
    let mut differences = Differences::default();
    for (expected, text) in [
        (0, "kernel k(x: f32[n], h: inout f32[n]) where n >= 1 { let at = argmax(j: x[j]); h[at] += 1.0 }"),
        (
            2,
            "kernel k(x: f32[n], idx: i32[n], h: inout f32[n]) where n >= 1 { let at = argmax(j: x[idx[j]]); h[at] += 1.0 }",
        ),
        (
            2,
            "kernel k(x: i32[n], idx: i32[n], h: inout f32[n]) where n >= 1 { let at = min(max(x[idx[0]], 0), 0); h[at] += 1.0 }",
        ),
        (
            2,
            "kernel k(x: i32[n], idx: i32[n], h: inout f32[n]) where n >= 1 { var at = 0; at = x[idx[0]] * 0; h[at] += 1.0 }",
        ),
        (
            3,
            "kernel k(x: i32[n], idx: i32[n], h: inout f32[n], m: i64) { if m >= 0 && m < n + 0 * x[idx[0]] as i64 { h[m] += 1.0 } }",
        ),
        // In one iteration nothing comes after a check that failed, but for what is found among terms.
        (
            1,
            "kernel k(x: i32[n], idx: i32[n], h: inout f32[1]) { forall i in n { let at = x[idx[i]] * 0; h[at] += 1.0 } }",
        ),
        (
            2,
            "kernel k(x: f32[n], idx: i32[n], h: inout f32[n]) where n >= 1 { forall i in n { h[argmax(j: x[idx[j]])] += 1.0 } }",
        ),
        (
            0,
            "kernel k(x: f32[n], h: inout f32[n]) where n >= 1 { forall i in n { h[argmax(j: x[j])] += 1.0 } }",
        ),
    ] {
        differences.compare(sites(text), expected, text);
    }
}

#[test]
fn subscripts_that_go_round_write_each_element_once() {
    let mut differences = Differences::default();
    for text in [
        "kernel k(x: f32[n]) -> y: f32[n] { forall i in n { y[(i + 3) % n] = x[i] } }",
        "kernel k(x: f32[n], s: i64) -> y: f32[n] where s >= 0, s < n { forall i in n { y[(i + s) % n] = x[i] } }",
        "kernel k(x: f32[n]) -> y: f32[n] { forall i in n { y[(n - 1 - i + 5) % n] = x[i] } }",
        "kernel k(x: f32[m, n]) -> y: f32[m, n] { forall r in m, i in n { y[r, (i + r) % n] = x[r, i] } }",
        "kernel k(x: f32[64]) -> y: f32[64] { forall i in 64 { y[(i + 70) % 64] = x[i] } }",
        "kernel k(x: f32[n]) -> y: f32[n] { forall i in 1..n + 1 { y[(i + 3) % n] = x[i - 1] } }",
    ] {
        differences.compare(codes(text), vec![], text);
    }
    for text in [
        "kernel k(x: f32[n]) -> y: f32[n] { forall i in n - 1 { y[(i + 3) % n] = x[i] } }",
        "kernel k(x: f32[n]) -> y: f32[n] where n >= 4 { forall i in 1..n { y[(n - 1 - i) % n] = x[i] } }",
        "kernel k(x: f32[m, n]) -> y: f32[m, n] { forall r in m, i in n { if i != r { y[r, (i + r) % n] = x[r, i] } } }",
        "kernel k(x: f32[5, 5]) -> y: f32[5, 5] { forall i in 5, j in 5 { y[i, (i + 3 * j) % 5] = x[i, j] } }",
        "kernel k(x: f32[n, 7]) -> y: f32[n, 7] { forall i in n, j in 7 { y[i, (5 * j + 2) % 7] = x[i, j] } }",
    ] {
        differences.compare(codes(text), vec!["W0401"], text);
    }
    for text in [
        "kernel k(x: f32[n]) -> y: f32[n] { forall i in n { y[(2 * i) % n] = x[i] } }",
        "kernel k(x: f32[n]) -> y: f32[n] where n >= 2 { forall i in n { y[(i + 3) % (n - 1)] = x[i] } }",
        "kernel k(x: f32[m], z: f32[n]) -> y: f32[n] where n >= 1 { forall i in m { y[i % n] = x[i] + z[0] } }",
        "kernel k(x: f32[n], s: i64) -> y: f32[n] where s >= 0 { forall i in n { y[(i * s) % n] = x[i] } }",
        "kernel k(x: f32[5, 6]) -> y: f32[5, 5] { forall i in 5, j in 6 { y[i, (i + 3 * j) % 5] = x[i, j] } }",
        "kernel k(x: f32[6, 6]) -> y: f32[6, 6] { forall i in 6, j in 6 { y[i, (i + 3 * j) % 6] = x[i, j] } }",
        "kernel k(x: f32[6, 6]) -> y: f32[6, 6] { forall i in 6, j in 6 { y[i, (i + 4 * j) % 6] = x[i, j] } }",
    ] {
        differences.compare(codes(text), vec!["E0403"], text);
    }
}

#[test]
fn unproved_accesses_are_checked() {
    let mut differences = Differences::default();
    for (text, count) in [
        ("kernel k(x: f32[n], at: i32[m]) -> y: f32[m] { y[i] = x[at[i]] }", 1),
        ("kernel k(x: f32[n], z: f32[m]) -> y: f32[n] { y[i] = x[i] + z[0] }", 1),
        ("kernel k(x: f32[n]) -> y: f32[n] { forall i in n { y[i] = x[i] + x[i / 2 + 1] } }", 1),
        ("kernel k(x: u8[n]) -> h: u32[255] { forall i in n { h[x[i]] += 1 } }", 1),
        ("kernel k(x: f32[n], p: i64) -> y: f32[n] { forall i in n { y[i] = x[i + p - p * 1] } }", 1),
        (
            "kernel k(x: f32[n], at: i64[n]) -> y: f32[n] { forall i in n { y[i] = if at[i] > 0 && at[i] < n { x[at[i] - 1] } else { 0.0 } } }",
            0,
        ),
        // A position may lie below -1, if the range does.
        (
            "kernel k(x: f32[n]) -> y: f32[n] { forall i in n { y[i] = x[argmax(d in 0 - i..1: x[i + d]) + 1] } }",
            1,
        ),
        (
            "kernel k(x: f32[n]) -> y: f32[n] { forall i in 0..n - 1 { y[i] = x[argmax(j in i..n - 1: x[j]) + 1] } }",
            0,
        ),
        // An intermediate that wraps proves nothing.
        (
            "kernel k(x: f32[n], p: i64) -> y: f32[n] { forall i in n { y[i] = if p + 1 > 0 && p < n { x[p] } else { 0.0 } } }",
            1,
        ),
        // A condition that no fact describes: two choices by it are not one number.
        (
            "kernel k(x: f32[n], f: f32[n]) -> y: f32[n] { forall i in n { let a = if f[i] > 0.0 { 1 } else { 0 }; let b = if f[i] > 1.0 { 1 } else { 0 }; y[i] = x[i + a - b] } }",
            1,
        ),
    ] {
        differences.compare(sites(text), count, text);
    }
}

/// What the parallel loops of one statement may and may not do.
#[test]
fn races_are_refused_and_nothing_else() {
    let mut differences = Differences::default();
    for (body, expected) in [
        ("y[i] = 2.0 * y[i]", ""),
        ("y[i] = 2.0 * x[i]\n y[i] = y[n - 1 - i] * 0.0", "E0405"),
        ("forall i in n { y[n - 1 - i] = x[i] }", ""),
        ("forall i in n { y[0] = x[i] }", "E0403"),
        ("forall i in n { if i == 0 { y[i] = x[i] } }", ""),
        ("forall i in n { if i == n - 1 { y[0] = x[i] } }", "checked"),
        ("forall i in n { y[at[i]] = x[i] }", "E0404"),
        ("forall i in n { y[at[i]] += x[i] }", ""),
        ("forall i in n { y[i / 2] = x[i] }", "E0403"),
        ("forall i in n { if i % 2 == 0 { y[i / 2] = x[i] } }", ""),
        ("forall i in n { y[i % 2] = x[i] }", "E0403"),
        ("forall i in 1..n { y[i] = x[i] + y[i - 1] }", "E0405"),
        ("forall i in 0..n/2 { y[2 * i] = x[i]; y[2*i + 1] = x[i] }", ""),
        ("forall i in 0..n/2 { y[2 * i] = y[2*i + 1] }", ""),
        ("forall i in 0..n/2 { y[i] = x[i]; y[i + n/2] = x[i] }", ""),
        ("forall i in 0..n-1 { y[i] = x[i]; y[i + 1] = x[i] }", "E0406"),
        ("forall i in n { y[i] += x[i]; y[0] *= 2.0 }", "E0409"),
        ("forall i in n { y[at[i]] += y[i] }", "E0407"),
        ("forall i in n { y[i] += y[i] }", ""),
        ("forall i in n { for j in 0..n { y[i] = x[j] } }", ""),
        ("forall i in n { for j in 0..n { y[j] = x[j] } }", "E0403"),
        ("forall i in n { let v = at[i]; forall j in 0..4 { y[v + j] = x[j] } }", "E0404"),
        ("forall i in n { if x[i] > 0.0 { y[i] = x[i] } else { y[i] = 0.0 } }", ""),
        ("let t[i] = y[i]\n y[i] = t[n - 1 - i]", ""),
        ("forall i in n { var p = i; while p > 0 { p = p / 2; y[p] = 1.0 } }", "E0404"),
        ("forall i in n { let e[c in 0..8] = x[i]; y[i] = sum(c in 0..8: e[c]) }", ""),
        ("y[i] = sum(j in 0..n: y[j])", "E0405"),
    ] {
        let text = format!("kernel k(x: f32[n], at: i32[n], y: inout f32[n]) {{ {body} }}");
        let found = codes(&text).join(" ");
        differences.compare(found.as_str(), if expected == "checked" { "" } else { expected }, &text);
    }
}

#[test]
fn races_in_two_axes() {
    let mut differences = Differences::default();
    for (body, expected) in [
        ("y[j, i] = x[i, j]", ""),
        ("forall i in n, j in m { y[i + j, j] = x[i, j] }", ""),
        ("forall i in n, j in m { y[j, j] = x[i, j] }", "E0403"),
        ("forall i in n, j in m { flat[i * m + j] = x[i, j] }", ""),
        ("forall j in m, i in n { flat[i * m + j] = x[i, j] }", ""),
        ("forall i in n, j in m { flat[i * n + j] = x[i, j] }", "E0403"),
        // What is known of the position is no help, and must not use the proof's steps up.
        ("forall i in n, j in m { flat[i * m + j] = argmax(p in j - 1..j + 2: x[i, j]) as f32 }", ""),
        ("forall i in n, j in 0..i { y[j, i] = 0.0 }", ""),
        ("forall i in n, j in 0..i { y[j, i] = 0.0; y[i, j] = 1.0 }", ""),
        ("forall i in n { forall j in m { y[j, i] = 1.0 }; forall j in m { y[j, i] = y[j, i] + 1.0 } }", ""),
        (
            "forall i in n { forall j in m { y[j, i] = 1.0 }; forall j in 1..m { y[j, i] = y[j - 1, i] + 1.0 } }",
            "E0405",
        ),
    ] {
        let text = format!("kernel k(x: f32[n, m], y: inout f32[m, n], flat: inout f32[n * m]) {{ {body} }}");
        differences.compare(codes(&text).join(" ").as_str(), expected, &text);
    }
}

fn may_meet(body: &str) -> bool {
    let kernel = kernel(&format!("kernel k(x: f32[n], at: i32[n], y: inout f32[n]) {{ {body} }}"));
    fn find(statements: &[Stmt]) -> Option<bool> {
        statements.iter().find_map(|one| match &one.kind {
            StmtKind::Store { combine: Some(combine), .. } => Some(combine.may_meet),
            StmtKind::Forall { body, .. } | StmtKind::For { body, .. } => find(&body.statements),
            _ => None,
        })
    }
    find(&kernel.body).expect("a combining store")
}

#[test]
fn only_stores_that_meet_are_atomics() {
    assert!(!may_meet("y[i] += x[i]"));
    assert!(!may_meet("forall i in n { y[i] += x[i] }"));
    assert!(!may_meet("forall i in n { for j in 0..n { y[i] += x[j] } }"));
    assert!(may_meet("forall i in n { y[at[i]] += x[i] }"));
    assert!(may_meet("forall i in n { y[0] += x[i] }"));
    assert!(may_meet("forall i in n, j in 0..4 { y[i] += x[i] }"));
    assert!(may_meet("forall i in 0..n-1 { y[i] += x[i]; y[i + 1] += x[i] }"));
}

#[test]
fn results_start_from_what_they_need() {
    use CombineOp::Add;
    use ResultStart::{Identity, Written, Zero};
    let mut differences = Differences::default();
    for (body, expected) in [
        ("y[i] = x[i]", Written),
        ("forall i in n { y[n - 1 - i] = x[i] }", Written),
        ("forall i in 0..n-1 { y[i] = x[i] }", Zero),
        ("forall i in n { if x[i] > 0.0 { y[i] = x[i] } }", Zero),
        ("forall i in n { if x[i] > 0.0 { y[i] = x[i] } else { y[i] = 0.0 } }", Written),
        (
            "forall i in n { if x[i] > 0.0 { y[i] = 1.0 } else if x[i] < 0.0 { y[i] = 0.0 } else { y[i] = 2.0 } }",
            Written,
        ),
        ("forall i in n { if i < n { y[i] = x[i] } }", Written),
        ("y[0] = 0.0\n forall i in 1..n - 1 { y[i] = x[i] }\n y[n - 1] = 1.0", Written),
        ("forall i in n { y[i] += x[i] }", Identity(Add)),
        ("y[i] = x[i]\n forall i in n { y[0] += x[i] }", Written),
        ("forall i in n { for j in 0..n { y[i] = x[j] } }", Written),
        ("forall i in n { for j in 0..4 { y[i] = x[i] } }", Written),
        ("forall i in n { for j in 1..n { y[i] = x[j] } }", Zero),
    ] {
        let kernel = kernel(&format!("kernel k(x: f32[n]) -> y: f32[n] {{ {body} }}"));
        let role = kernel.arrays.values().find_map(|array| match array.role {
            ArrayRole::Result(start) => Some(start),
            _ => None,
        });
        differences.compare(role, Some(expected), body);
    }
}

#[test]
fn unions_of_stores_cover() {
    let mut differences = Differences::default();
    for (text, expected) in [
        ("kernel k(x: f32[n]) -> y: f32[2 * n] { forall i in n { y[2*i] = x[i]; y[2*i + 1] = 0.0 } }", ""),
        (
            "kernel k(x: f32[n]) -> y: f32[3 * n] { forall i in n { y[3*i] = x[i]; y[3*i + 1] = 0.0 } }",
            "W0401",
        ),
        ("kernel k(x: f32[n]) -> y: f32[2 * n] { forall i in n { y[i] = x[i]; y[i + n] = 0.0 } }", ""),
        ("kernel k(x: f32[n, m]) -> y: f32[n * m] { forall j in m, i in n { y[i*m + j] = x[i, j] } }", ""),
        ("kernel k(x: f32[n], a: bool) -> y: f32[n] { if a { y[i] = x[i] } else { y[i] = 0.0 } }", ""),
        (
            "kernel k(x: f32[n], a: bool, b: bool) -> y: f32[n] { if a { y[i] = x[i] } else if b { y[i] = 0.0 } }",
            "W0401",
        ),
        (
            "kernel k(x: f32[n, n]) -> y: f32[n, n] { forall i in n, j in 0..=i { y[i, j] = x[i, j] }\n forall i in n, j in i + 1..n { y[i, j] = 0.0 } }",
            "",
        ),
        (
            "kernel k(x: f32[n, n]) -> y: f32[n, n] { forall i in n, j in 0..i { y[i, j] = x[i, j] }\n forall i in n, j in i + 1..n { y[i, j] = 0.0 } }",
            "W0401",
        ),
        ("kernel k(x: f32[n]) -> y: f32[n, n] { forall i in n { y[i, i] = x[i] } }", "W0401"),
        ("kernel k(x: f32[n]) -> y: f32[n, n] { forall i in n, j in n { y[j, i] = x[i] } }", ""),
        (
            "kernel k(x: f32[n], at: i64) -> y: f32[n, n, n], z: f32[n] {\n y[i, j, k] = x[k]\n forall i in n { z[i] = y[(i * 3 + 1) % n, clamp(at, 0, n - 1), i] } }",
            "",
        ),
        ("kernel k(x: f32[n], p: i32) -> y: f32[n + 2 * p] { y[i] = x[i - p] else 0.0 }", ""),
        (
            "kernel k(x: f32[n], p: i32) -> y: f32[n + 2 * p] { forall i in n + p { y[i] = x[i - p] else 0.0 } }",
            "W0401",
        ),
        ("kernel k(x: f32[n]) -> y: f32 { forall i in n { if i == 0 { y = x[i] } } }", "W0401"),
        ("kernel k(x: f32[n]) -> y: f32, z: f32 { y = sum(i: x[i]); z = y + 1.0 }", ""),
        ("kernel k(x: f32[n]) -> y: f32, z: f32 { z = y + 1.0; y = sum(i: x[i]) }", "E0411"),
        ("kernel k(x: f32[n]) -> y: f32[n], z: f32[n] { forall i in n { y[i] = x[i]; z[i] = y[i] } }", ""),
        ("kernel k(x: f32[n]) -> y: f32[n] { forall i in 1..n { y[i] = x[i] }; y[0] = y[n - 1] }", "E0411"),
        (
            "struct P { a: f32, b: f32 } kernel k(x: f32[n]) -> y: P[n] { forall i in n { y[i].a = x[i]; y[i].b = x[i] } }",
            "",
        ),
        (
            "struct P { a: f32, b: f32 } kernel k(x: f32[n]) -> y: P[n] { forall i in n { y[i].a = x[i] } }",
            "W0401",
        ),
    ] {
        differences.compare(codes(text).join(" ").as_str(), expected, text);
    }
}

/// A number taken apart: `y[s, t / (h * w), t / w % h, t % w]`.
#[test]
fn digits_are_told_apart_and_cover() {
    let mut differences = Differences::default();
    for (extents, count, digits, expected) in [
        ("b, 3, h, w", "h * w * 3", "t / (h * w), t / w % h, t % w", ""),
        ("b, 3, h, w", "h * w * 3", "t / w / h, t / w % h, t % w", ""),
        ("b, h, w", "h * w", "t / w, t % w", ""),
        ("b, w, h", "h * w", "t % w, t / w", ""),
        ("b, w, h, c", "h * w * c", "t % w, t / w % h, t / (h * w)", ""),
        ("b, w, h, c", "c * (h * w)", "t % w, t / w % h, t / (w * h)", ""),
        ("b, h, c, w", "h * w * c", "t / w % h, t / w / h, t % w", ""),
        ("b, h, w, 4", "h * w * 4", "t / (w * 4), t / 4 % w, t % 4", ""),
        ("b, c, h, w", "c * h * w", "t / (h * w), t / w % h, t % w", ""),
        // Not all of the range, and more than it.
        ("b, w, h", "h * w - 1", "t % w, t / w", "W0401"),
        ("b, 3, h, w", "h * w * 2", "t / (h * w), t / w % h, t % w", "W0401"),
        ("b, 4, h, w", "h * w * 3", "t / (h * w), t / w % h, t % w", "W0401"),
        // Another radix.
        ("b, h, w", "h * w", "t / h, t % w", "E0403"),
        ("b, w, h, c", "h * w * c", "t % w, t / h % h, t / (h * w)", "E0403"),
        ("b, 3, h, w", "h * w * 3", "t / (h * w), t / w % (h - 1), t % w", "E0403"),
        ("b, 3, h, w", "h * w * 3", "t / (h * w), t / w % h, t % (w - 1)", "E0403"),
        ("b, 3, h, w", "h * w * 3", "t / (2 * h * w), t / w % h, t % w", "E0403"),
        // Digits that overlap, or leave one out.
        ("b, 3, h, w", "h * w * 3", "t / (h * w), t / h % h, t % w", "E0403"),
        ("b, c, h, w", "h * w * c", "t / (h * w), t / w % h, 0", "E0403"),
        ("b, c, w, w", "h * w * c", "t / (h * w), t % w, t % w", "E0403"),
    ] {
        let text = format!(
            "kernel k(d: f32[c, h, w], e: f32[b]) -> y: f32[{extents}] {{ forall s in b, t in {count} {{ y[s, {digits}] = 1.0 }} }}"
        );
        // What is out of an array is another matter.
        let found: Vec<&str> = codes(&text).into_iter().filter(|code| *code != "E0401").collect();
        let found =
            if found.contains(&"E0403") { "E0403" } else { found.first().copied().unwrap_or_default() };
        differences.compare(found, expected, &text);
    }
}

#[test]
fn certain_mistakes_are_errors() {
    let mut differences = Differences::default();
    for (text, expected) in [
        ("kernel k(x: f32[4]) -> y: f32 { y = x[4] }", "E0401"),
        ("kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[-1] + x[i] }", "E0401"),
        ("kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i + n] }", "E0401"),
        ("kernel k(x: f32[4]) -> y: f32 { y = x[4] else 0.0 }", ""),
        ("struct C { v: f32[3] } kernel k(x: C[n]) -> y: f32[n] { y[i] = x[i].v[3] }", "E0323"),
        ("struct C { v: f32[3] } kernel k(x: C[n]) -> y: f32[n] { y[i] = x[i].v[2] }", ""),
    ] {
        differences.compare(codes(text).join(" ").as_str(), expected, text);
    }
}

#[test]
fn the_corpus_is_accepted() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the corpus").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("text");
        let (_, diagnostics) = checked(&text);
        let found: Vec<_> = diagnostics.iter().filter(|one| one.code.0.starts_with("E04")).collect();
        assert!(found.is_empty(), "{}: {found:?}", path.display());
    }
}

/// A scatter of `x` by `to`, with a fact and a body.
fn scatter(fact: &str, body: &str) -> Vec<&'static str> {
    codes(&format!(
        "kernel k(x: f32[n], to: i32[n], at: i32[n], far: u64[n], both: i64[n, c], y: inout f32[m], w: inout f32[m, c]) \
         where {fact} {{ {body} }}"
    ))
}

#[test]
fn subscripts_whose_values_all_differ_write_each_element_once() {
    let mut differences = Differences::default();
    for (fact, body) in [
        ("injective(to)", "forall i in n { y[to[i]] = x[i] }"),
        ("injective(to)", "forall i in n { let k = to[i]; y[k] = x[i] }"),
        ("injective(to)", "forall i in n { y[to[i]] = y[to[i]] + x[i] }"),
        ("injective(to)", "forall i in n { y[to[i]] = x[i]; y[to[i]] += 1.0 }"),
        ("injective(to)", "forall i in n { y[to[n - 1 - i]] = x[i] }"),
        ("injective(to)", "forall i in n { if to[i] >= 0 { y[to[i]] = x[i] } }"),
        ("injective(to)", "forall i in n, j in c { w[to[i], j] = x[i] }"),
        ("injective(to)", "forall j in c, i in n { w[to[i], c - 1 - j] = x[i] }"),
        ("injective(to in 0..m)", "forall i in n { w[to[i], i % c] = x[i] }"),
        ("injective(both)", "forall i in n, j in c { y[both[i, j]] = x[i] }"),
        ("injective(far)", "forall i in n { y[far[i]] = x[i] }"),
        ("injective(to in 1..=m)", "forall i in n { y[to[i] as i64 - 1] = x[i] }"),
        ("injective(to in 0..m)", "forall i in n { y[m - 1 - to[i]] = x[i] }"),
        ("injective(to in 0..m)", "forall i in n { y[2 * (to[i] as i64) + 1] = x[i] }"),
        (
            "injective(to in 0..m), m <= 1000000",
            "forall i in n, j in 0..8 { y[8 * (to[i] as i64) + j] = x[i] }",
        ),
        // A range that is larger than what is written.
        ("injective(to in -5..m + 7)", "forall i in n { y[to[i]] = x[i] }"),
    ] {
        differences.compare(scatter(fact, body), vec![], &format!("{fact}: {body}"));
    }
    let text = "kernel k(x: f32[n], to: i32[n], y: inout f32[m]) where injective(to) { forall i in n { y[to[i]] += x[i] } }";
    let kernel = kernel(text);
    let StmtKind::Forall { body, .. } = &kernel.body[0].kind else { panic!("a forall") };
    let StmtKind::Store { combine: Some(combine), access, .. } = &body.statements[0].kind else {
        panic!("a store")
    };
    assert!(!combine.may_meet, "no atomic");
    assert!(matches!(access.checks[..], [BoundsCheck::Runtime(_)]), "values may be anything");
}

#[test]
fn what_different_values_do_not_say_is_not_proved() {
    let mut differences = Differences::default();
    for (fact, body, code) in [
        // Of another array, or at other positions.
        ("injective(to)", "forall i in n { y[at[i]] = x[i]; y[to[i]] = 0.0 }", "E0404"),
        ("injective(to), injective(at)", "forall i in n { y[to[i]] = x[i]; y[at[i]] = 0.0 }", "E0406"),
        ("injective(to)", "forall i in n { y[to[i]] = x[i]; y[to[n - 1 - i]] = 0.0 }", "E0406"),
        ("injective(to)", "forall i in n { y[to[i]] = x[i]; y[i] = 0.0 }", "E0406"),
        ("injective(to)", "forall i in n { y[to[i]] = y[i] }", "E0405"),
        // Two iterations read one position.
        ("injective(to)", "forall i in n, j in c { y[to[i]] = x[i] }", "E0404"),
        ("injective(to)", "forall i in n { y[to[i / 2]] = x[i] }", "E0404"),
        ("injective(both)", "forall i in n, j in c { y[both[i, 0]] = x[i] }", "E0404"),
        // Different values at one place.
        ("injective(to in 0..m)", "forall i in n { y[to[i] / 2] = x[i] }", "E0404"),
        ("injective(to in 0..m)", "forall i in n { y[to[i] % 4] = x[i] }", "E0404"),
        ("injective(to in 0..m)", "forall i in n { y[to[i] & 7] = x[i] }", "E0404"),
        ("injective(to in 0..m)", "forall i in n { y[(to[i] as u8) as i64] = x[i] }", "E0404"),
        ("injective(to in 0..m)", "forall i in n { y[to[i] + i] = x[i] }", "E0404"),
        ("injective(to in 0..m)", "forall i in n { y[to[i] as i64 * to[i]] = x[i] }", "E0404"),
        ("injective(to in 0..m)", "forall i in n { y[to[i] * n] = x[i] }", "E0404"),
        ("injective(to in 0..m)", "forall i in n, j in 0..9 { y[8 * (to[i] as i64) + j] = x[i] }", "E0404"),
        ("injective(to in 0..m)", "forall i in n { y[(to[i] else 0)] = x[i] }", "E0404"),
        ("injective(to in 0..m)", "forall i in n { y[abs(to[i])] = x[i] }", "E0404"),
        // Values that the fact does not speak of.
        ("injective(to in 0..m - 1)", "forall i in n { y[to[i]] = x[i] }", "E0404"),
        ("injective(to in 1..m)", "forall i in n { y[to[i]] = x[i] }", "E0404"),
        ("injective(to in 0..m)", "forall i in n { y[to[i] as i64 - 1] = x[i] }", "E0404"),
        // The difference wraps around in `i32`, and what is written may go on beyond that.
        ("injective(to in 1..=m)", "forall i in n { y[to[i] - 1] = x[i] }", "E0404"),
        ("injective(to in 0..c)", "forall i in n { y[to[i]] = x[i] }", "E0404"),
    ] {
        differences.compare(scatter(fact, body), vec![code], &format!("{fact}: {body}"));
    }
}

/// A kernel in place on `x` and `u`.
fn in_place(facts: &str, body: &str) -> String {
    let facts = if facts.is_empty() { String::new() } else { format!(" where {facts}") };
    format!("kernel k(t: i32[n], x: inout i32[n], u: inout i32[n, m], s: i64){facts} {{ {body} }}")
}

const SWAP: &str = "let a = x[p]; let b = x[q]; x[p] = b; x[q] = a";
const AROUND: &str =
    "u[i, j] = (u[i - 1, j] else 0) + (u[i + 1, j] else 0) + (u[i, j - 1] else 0) + (u[i, j + 1] else 0)";

#[test]
fn what_iterations_touch_in_place_is_disjoint() {
    let mut differences = Differences::default();
    for (facts, body) in [
        ("", format!("forall i in n, j in m {{ if (i + j) % 2 == s {{ {AROUND} }} }}")),
        ("", format!("forall i in n, j in m {{ if (i + j) % 2 != 0 {{ {AROUND} }} }}")),
        ("", format!("forall i in n, j in m {{ if (i + j) & 1 == s {{ {AROUND} }} }}")),
        ("", format!("forall i in n, j in m {{ if i % 2 == j % 2 {{ {AROUND} }} }}")),
        ("", format!("forall i in n {{ for j in 0..m {{ if (i + j) % 2 == s {{ {AROUND} }} }} }}")),
        ("", format!("for c in 0..2 {{ forall i in n, j in m {{ if (i + j) % 2 == c {{ {AROUND} }} }} }}")),
        ("", format!("forall i in n, j in m {{ if (i + 2 * j) % 5 == s {{ {AROUND} }} }}")),
        ("", format!("forall i in n {{ let p = i; let q = i ^ s; if q > p {{ {SWAP} }} }}")),
        ("", format!("forall i in n {{ let p = i; let q = i ^ s; if p < q && q < n {{ {SWAP} }} }}")),
        ("", format!("forall i in n {{ let p = i; let q = i ^ s; if i & s == 0 {{ {SWAP} }} }}")),
        ("", format!("forall i in n {{ let p = i; let q = i | s; if s & i == 0 {{ {SWAP} }} }}")),
        ("", format!("forall i in n {{ let p = i; let q = i + 4; if i & 4 == 0 {{ {SWAP} }} }}")),
        (
            "s >= 1, s <= n",
            format!("forall j in n / (2 * s), k in s {{ let p = 2 * j * s + k; let q = p + s; {SWAP} }}"),
        ),
        ("s >= 1, s <= n", format!("forall j in n / 2 {{ let p = 2 * j - j % s; let q = p + s; {SWAP} }}")),
        (
            "s >= 1, s <= n",
            format!("forall j in n / 2 {{ let p = 2 * (j / s) * s + j % s; let q = p + s; {SWAP} }}"),
        ),
        (
            "s >= 1, s <= n",
            format!("forall i in n {{ let p = i; let q = i + s; if (i / s) % 2 == 0 {{ {SWAP} }} }}"),
        ),
        (
            "s >= 1, s <= n",
            format!("forall i in n {{ let p = i; let q = i + s; if i % (2 * s) < s {{ {SWAP} }} }}"),
        ),
        (
            "s >= 0, s < 40",
            format!(
                "let d = 1i64 << s; forall j in n / (2 * d), k in d {{ let p = 2 * j * d + k; let q = p + d; {SWAP} }}"
            ),
        ),
        (
            "",
            format!(
                "for c in 0..2 {{ forall i in n - 1 {{ if i % 2 == c % 2 {{ let p = i; let q = i + 1; {SWAP} }} }} }}"
            ),
        ),
    ] {
        let text = in_place(facts, &body);
        differences.compare(codes(&text).join(" ").as_str(), "", &text);
    }
}

/// Each rule of the proof, made wrong, accepts a kernel that races.
#[test]
fn wrong_rules_accept_races() {
    let mut differences = Differences::default();
    for (rule, facts, body) in [
        (
            "prove: exclusive ors with two values",
            "",
            format!("forall i in n {{ let p = i; let q = i ^ (t[i] as i64); if q > p {{ {SWAP} }} }}"),
        ),
        (
            "prove: a digit may be the radix",
            "s >= 1, s <= n",
            String::from("forall j in n / s, k in 0..=s { x[j * s + k] = 1 }"),
        ),
        (
            "prove: facts may fail",
            "",
            String::from("forall i in n { if (i ^ s) >= i - 1 { x[i] = x[i ^ s] } }"),
        ),
        (
            "prove: bits of both",
            "s >= 0, s <= n",
            String::from("forall i in n { if i & s == s { x[i] = x[i - 2 * s] } }"),
        ),
        (
            "prove: an inequality is an equality",
            "",
            format!("forall i in n, j in m {{ if (i + j) % 3 >= 1 {{ {AROUND} }} }}"),
        ),
    ] {
        let text = in_place(facts, &body);
        differences.compare(codes(&text).is_empty(), false, &text);
        let (accepted, reached) = crate::mutants::with(rule, || codes(&text).is_empty());
        differences.compare((accepted, reached > 0), (true, true), &format!("{rule}: {text}"));
    }
}

//! Kernels in place on disjoint sets, and kernels that nearly are: red-black sweeps, pair exchanges, butterflies, each with
//! every guard, partner and range of a list. What is accepted is run by brute force, and may not race.

use krn_compiler::check_source;
use krn_compiler::diagnostic::Severity;
use krn_compiler::source::SourceFile;

use super::trace;
use rayon::prelude::*;

/// A kernel, and the sizes that it is run at: of `n`, `m` and `s`.
struct Candidate {
    text: String,
    sizes: Vec<[i128; 3]>,
}

/// What became of a candidate.
#[derive(PartialEq, Debug)]
enum Outcome {
    /// Accepted, and no two iterations met.
    Accepted,
    /// Refused, so that there is no kernel to run.
    Refused,
}

fn outcome(candidate: &Candidate) -> Result<Outcome, String> {
    let text = &candidate.text;
    let (program, diagnostics) = check_source(&SourceFile::new("family.krn", text.as_str()));
    let errors: Vec<_> = diagnostics.iter().filter(|one| one.severity == Severity::Error).collect();
    let is_expected = |code: &str| ["E0401", "E0403", "E0404", "E0405", "E0406"].contains(&code);
    if let Some(other) = errors.iter().find(|one| !is_expected(one.code.0)) {
        return Err(format!("{}: {}\n{text}", other.code.0, other.message));
    }
    let Some(kernel) = program.kernels.first().filter(|_| errors.is_empty()) else {
        return Ok(Outcome::Refused);
    };
    let race = candidate
        .sizes
        .iter()
        .find_map(|[n, m, s]| trace::run(&program, kernel, &[("n", *n), ("m", *m), ("s", *s)]).err());
    race.map_or(Ok(Outcome::Accepted), |race| Err(format!("accepted, and {race}\n{text}")))
}

/// What became of all of them; the first ones that break a promise where any does.
fn outcomes(candidates: &[Candidate]) -> Vec<Outcome> {
    let all: Vec<Result<Outcome, String>> = candidates.par_iter().map(outcome).collect();
    let wrong: Vec<&str> = all.iter().filter_map(|one| one.as_ref().err()).map(String::as_str).collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        all.len(),
        wrong[..wrong.len().min(5)].join("\n")
    );
    all.into_iter().flatten().collect()
}

fn kernel(facts: &str, body: &str) -> String {
    let facts = if facts.is_empty() { String::new() } else { format!(" where {facts}") };
    format!("kernel k(t: i32[n], x: inout i32[n], u: inout i32[n, m], s: i64){facts} {{\n{body}\n}}\n")
}

fn sizes(n: &[i128], m: &[i128], s: &[i128]) -> Vec<[i128; 3]> {
    n.iter().flat_map(|n| m.iter().flat_map(move |m| s.iter().map(move |s| [*n, *m, *s]))).collect()
}

/// Iterations that each change an element and its partner.
fn exchanges() -> Vec<Candidate> {
    let guards = [
        "true",
        "(i ^ s) > i",
        "i < (i ^ s)",
        "(i ^ s) >= i",
        "(i ^ s) < i",
        "(i ^ s) != i",
        "(i ^ (s + 1)) > i",
        "(i ^ 1) > i",
        "(i ^ i) > i",
        "(i ^ n) > i",
        "(i ^ (t[i] as i64)) > i",
        "(i ^ (i & 3)) > i",
        "(i & s) == 0",
        "(s & i) == 0",
        "(i & s) != 0",
        "(i & s) == s",
        "(i & 4) == 0",
        "(i & 6) == 0",
        "(i & 5) == 0",
        "i + s > i",
        "i < s",
        "i % 2 == 0",
        "i % 2 != 0",
        "i % 2 == s",
        "i % 2 == i",
        "i % 2 == (t[i] as i64)",
        "i % 3 == s",
        "i % (2 * s) < s",
        "i % (2 * s) <= s",
        "(i / s) % 2 == 0",
        "(i / s) % 2 == s",
        "(i / s) % 3 == 0",
        "(i - s) % 2 == 0",
        "i < n / 2",
        "i < n - 1 - i",
        "i <= n / 2",
    ];
    let partners = [
        "i ^ s",
        "s ^ i",
        "i ^ (s + 1)",
        "i ^ 1",
        "i ^ 2",
        "i ^ i",
        "i ^ (i / 2)",
        "i ^ (t[i] as i64)",
        "i | s",
        "i + s",
        "i - s",
        "i + 1",
        "i - 1",
        "i + 2",
        "i + 4",
        "n - 1 - i",
        "(i + s) ^ s",
        "i ^ s ^ 1",
    ];
    let mut all = Vec::new();
    for guard in guards {
        for partner in partners {
            for body in ["let a = x[i]\nlet b = x[p]\nx[i] = b\nx[p] = a", "x[i] = x[p]", "x[p] = 1"] {
                let positive = guard.contains("% (2 * s)") || guard.contains("/ s");
                all.push(Candidate {
                    text: kernel(
                        if positive { "s >= 1, s <= n" } else { "" },
                        &format!("forall i in n {{\nif {guard} {{\nlet p = {partner}\n{body}\n}}\n}}"),
                    ),
                    sizes: sizes(&[1, 3, 4, 8, 9, 13], &[0], &[-3, -1, 0, 1, 2, 3, 4, 5]),
                });
            }
        }
    }
    all
}

/// Sweeps over the cells of one color, which read others.
fn sweeps() -> Vec<Candidate> {
    let guards = [
        "true",
        "(i + j) % 2 == s",
        "(i + j) % 2 == 0",
        "(i + j) % 2 == 1",
        "(i + j) % 2 != 0",
        "(i + j) % 2 != s",
        "(i + j) % 2 >= s",
        "(i - j) % 2 == 0",
        "(i - j) % 2 == s",
        "(i - j) % 2 != 0",
        "(i + j) & 1 == s",
        "(i + j) & 2 == 0",
        "(i - j) & 1 == s",
        "(i ^ j) & 1 == s",
        "i % 2 == j % 2",
        "i % 2 != j % 2",
        "(i * j) % 2 == s",
        "(i + 2 * j) % 2 == s",
        "(i + 3 * j) % 2 == s",
        "(i + j) % 3 == s",
        "(i + 2 * j) % 5 == s",
        "(i + 2 * j) % 4 == s",
        "i % 2 == s",
        "i % 2 == s && j % 2 == 0",
        "i % 2 == s || j % 2 == 0",
        "(i + j) % 2 == (t[i] as i64)",
        "(i + j) % 2 == (t[j] as i64 else 0)",
        "(i + j) % 2 == i",
        "(i + j) / 2 == s",
        "(i + s) % 2 == j % 2",
        "(i + j + s) % 2 == 0",
        "i + j == s",
        "i < j",
        "i <= j",
    ];
    let reads = [
        "u[i - 1, j]",
        "u[i + 1, j]",
        "u[i, j - 1]",
        "u[i, j + 1]",
        "u[i - 1, j - 1]",
        "u[i + 1, j - 1]",
        "u[i - 2, j]",
        "u[i, j + 3]",
        "u[i + 1, j + 2]",
        "u[j, i]",
        "u[i, m - 1 - j]",
    ];
    let mut all = Vec::new();
    for guard in guards {
        for read in reads {
            for range in ["i in n, j in m", "i in 1..n - 1, j in 1..m - 1"] {
                let guard = guard.replace("t[j] as i64 else 0", "(t[j] else 0) as i64");
                all.push(Candidate {
                    text: kernel(
                        "",
                        &format!("forall {range} {{\nif {guard} {{ u[i, j] = ({read} else 0) + 1 }}\n}}"),
                    ),
                    sizes: sizes(&[1, 3, 4, 6], &[2, 4, 5], &[-1, 0, 1, 2]),
                });
            }
        }
    }
    // One color by its columns.
    for column in [
        "2 * k + (i + s) % 2",
        "2 * k + i % 2",
        "2 * k + s % 2",
        "2 * k + k % 2",
        "k + (i + s) % 2",
        "3 * k + i % 2",
    ] {
        for read in ["u[i - 1, j]", "u[i, j + 1]", "u[i, j + 2]", "u[i + 1, j - 1]", "u[i, j]"] {
            all.push(Candidate {
                text: kernel(
                    "s >= 0",
                    &format!("forall i in n, k in m / 2 {{\nlet j = {column}\nif j < m {{ u[i, j] = ({read} else 0) + 1 }}\n}}"),
                ),
                sizes: sizes(&[1, 3, 4], &[2, 5, 8], &[0, 1, 2]),
            });
        }
    }
    all
}

/// Butterflies: pairs of a flat array whose distance is a parameter.
fn butterflies() -> Vec<Candidate> {
    let swap = "let a = x[p]\nlet b = x[q]\nx[p] = a + b\nx[q] = a - b";
    let mut all = Vec::new();
    let mut push = |facts: &str, range: &str, first: &str, second: &str| {
        all.push(Candidate {
            text: kernel(facts, &format!("forall {range} {{\nlet p = {first}\nlet q = {second}\n{swap}\n}}")),
            sizes: sizes(&[1, 4, 8, 9, 12], &[0], &[-2, 0, 1, 2, 3, 4]),
        });
    };
    for range in [
        "j in n / (2 * s), k in s",
        "j in n / (2 * s), k in 0..=s",
        "j in n / (2 * s), k in 2 * s",
        "j in n / s, k in s",
        "j in n / (2 * s), k in s + 1",
        "k in s, j in n / (2 * s)",
    ] {
        for first in [
            "2 * j * s + k",
            "j * s + k",
            "j * (2 * s) + k",
            "2 * j * s + 2 * k",
            "2 * j + k",
            "2 * j * s - k",
            "3 * j * s + k",
        ] {
            for second in
                ["p + s", "p + s - 1", "p + s + 1", "p + 2 * s", "p + 1", "2 * j * s + s + k", "p + k"]
            {
                push("s >= 1, s <= n", range, first, second);
            }
        }
    }
    for first in [
        "2 * (j / s) * s + j % s",
        "2 * j - j % s",
        "j + (j / s) * s",
        "2 * (j / s) + j % s",
        "(j / s) * s + j % s",
        "2 * j",
        "2 * j + j % s",
        "2 * (j / s) * s + j % (s + 1)",
        "2 * (j / (s + 1)) * s + j % s",
    ] {
        for second in ["p + s", "p + s - 1", "p + s + 1", "p + 2 * s", "p + 1"] {
            for range in ["j in n / 2", "j in n"] {
                push("s >= 1, s <= n", range, first, second);
            }
            push("", "j in n / 2", first, second);
        }
    }
    for m in ["1i64 << s", "2i64 << s", "3i64 << s", "1i64 << (s - 1)"] {
        for second in ["p + d", "p + d + 1", "p + 2 * d", "p + k"] {
            for range in ["k in d", "k in 0..=d"] {
                all.push(Candidate {
                    text: kernel(
                        "s >= 0, s < 20",
                        &format!(
                            "let d = {m}\nforall j in n / (2 * d), {range} {{\nlet p = 2 * j * d + k\nlet q = {second}\n{swap}\n}}"
                        ),
                    ),
                    sizes: sizes(&[1, 4, 8, 13], &[0], &[0, 1, 2]),
                });
            }
        }
    }
    all
}

/// Results whose subscripts are digits of one number, and near misses: a wrong radix, a wrong range, digits that overlap.
fn digits() -> Vec<Candidate> {
    // With the extent of the axis that they subscript.
    let digits = [
        ("c % m", "m"),
        ("c / m % n", "n"),
        ("c / (n * m)", "2"),
        ("c / m / n", "2"),
        ("c / n / m", "2"),
        ("c / (m * n) % 2", "2"),
        ("c % n", "n"),
        ("c / n % m", "m"),
        ("c / m", "n * 2"),
        ("c / m % m", "m"),
        ("c % (m + 1)", "m + 1"),
        ("c % (n * m)", "n * m"),
    ];
    let mut all = Vec::new();
    let mut push = |parts: &[(&str, &str)]| {
        let ranges = ["2 * n * m", "2 * m * n + 1", "n * m", "n * m * 3"];
        for range in &ranges[..if parts.len() == 2 { 4 } else { 2 }] {
            let extents: Vec<&str> = parts.iter().map(|(_, extent)| *extent).collect();
            let subscripts: Vec<&str> = parts.iter().map(|(digit, _)| *digit).collect();
            all.push(Candidate {
                text: format!(
                    "kernel k(u: i32[n, m], s: i64) -> y: i32[{}] {{\nforall c in {range} {{ y[{}] = 1 }}\n}}\n",
                    extents.join(", "),
                    subscripts.join(", ")
                ),
                sizes: sizes(&[0, 1, 3], &[1, 2, 4], &[0]),
            });
        }
    };
    for one in digits {
        for two in digits.into_iter().filter(|two| *two != one) {
            push(&[one, two]);
            digits
                .into_iter()
                .filter(|three| *three != one && *three != two)
                .for_each(|three| push(&[one, two, three]));
        }
    }
    all
}

/// Of so many candidates one is looked at, unless tests run in full.
const SHARE: u64 = 4;

/// No near miss is accepted, and what people write is.
#[test]
fn kernels_that_race_are_refused() {
    for (name, candidates, least) in [
        ("exchanges", exchanges(), [40, 300]),
        ("sweeps", sweeps(), [60, 200]),
        ("butterflies", butterflies(), [20, 150]),
        ("digits", digits(), [100, 1000]),
    ] {
        let candidates: Vec<Candidate> =
            candidates.into_iter().filter(|one| xtask::is_in_share(&one.text, SHARE)).collect();
        let least =
            least.map(|count| if xtask::tests_run_in_full() { count } else { count / SHARE as usize / 2 });
        let all = outcomes(&candidates);
        let count = |outcome| all.iter().filter(|one| **one == outcome).count();
        let found = [count(Outcome::Accepted), count(Outcome::Refused)];
        println!("{name}: {} accepted, {} refused", found[0], found[1]);
        assert!(found[0] >= least[0] && found[1] >= least[1], "{name}: {found:?}");
    }
}

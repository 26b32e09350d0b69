//! What the compiler's choices cost beside others that were measured: `tests/regret.table` has the times of schedules of kernels
//! from `bench/breadth/`, on one GPU, and what the compiler made of each (`bench/regret.py` writes it).
//!
//! The regret of a kernel is the time of the compiler's own choice by the least of its rows. Kernels that are `held` are not
//! looked at when rules are changed; those that are `fit` may be. The limits are what has been reached: they may only fall, but
//! where kernels join, and the aim for those that are held is a mean of 1.05, and 1.20 for the worst. A choice that is in no row
//! has no time: then `bench/regret.py time --only KERNEL` measures the kernel again, on a GPU; without one,
//! `KRN_ACCEPT_REGRET=1` writes a row with `?` for it, of which there may be few.

use krn_compiler::manifest::Value;
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileOptions, SymbolValues, Variants, compile, explain_choice};
use std::path::Path;

const TABLE: &str = "tests/regret.table";
/// What the first row of a kernel asks for: nothing.
const OWN: &str = "-";
/// Kernels whose choices nobody has measured, at most.
const UNKNOWN: usize = 8;

/// The most that the geometric mean of some kernels' regrets may be, and the worst of them. Those that were held before and have been
/// read are among the others, with what nobody has mended of theirs.
struct Limits {
    mean: f64,
    worst: f64,
}

const HELD: Limits = Limits { mean: 1.06, worst: 1.27 };
const FIT: Limits = Limits { mean: 1.07, worst: 1.96 };

struct Row {
    /// Microseconds; none where nobody has measured it.
    time: Option<f64>,
    asked: String,
    choice: String,
}

struct Body {
    head: String,
    file: String,
    kernel: String,
    sizes: SymbolValues,
    is_held: bool,
    rows: Vec<Row>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn table() -> (String, Vec<Body>) {
    let text = std::fs::read_to_string(root().join(TABLE)).expect("the table");
    let (mut head, mut bodies) = (String::new(), Vec::<Body>::new());
    for line in text.lines() {
        let parts: Vec<&str> = line.trim().split(" | ").map(str::trim).collect();
        match parts[..] {
            _ if line.starts_with('#') => head.push_str(&format!("{line}\n")),
            [time, asked, forms, directives] if line.starts_with(' ') => {
                let choice = format!("{forms} | {}", if directives == OWN { "" } else { directives });
                let row =
                    Row { time: time.parse().ok(), asked: asked.into(), choice: choice.trim_end().into() };
                bodies.last_mut().expect("a kernel before its rows").rows.push(row);
            }
            [place, sizes, _, use_] => {
                let (file, kernel) = place.split_once(':').expect("a file and a kernel");
                let size = |pair: &str| {
                    let (name, size) = pair.split_once('=').expect("a size");
                    (name.to_string(), Value::Int(size.parse().expect("a number")))
                };
                bodies.push(Body {
                    head: line.into(),
                    file: file.into(),
                    kernel: kernel.into(),
                    sizes: sizes.split(',').map(size).collect(),
                    is_held: use_ == "held",
                    rows: Vec::new(),
                });
            }
            _ => assert!(line.is_empty(), "{line}"),
        }
    }
    (head, bodies)
}

/// What the compiler chooses for a kernel at its sizes.
fn chosen(body: &Body) -> String {
    let text = std::fs::read_to_string(root().join(&body.file)).expect("a file of kernels");
    let source = SourceFile::new(body.file.as_str(), text);
    let options = CompileOptions {
        ir: true,
        only: Some(body.kernel.clone()),
        variants: Variants::For(body.sizes.clone()),
        ..CompileOptions::for_target("sm_90")
    };
    let compilation = compile(&source, &options).unwrap_or_else(|error| panic!("{}: {error}", body.head));
    explain_choice(&compilation, &body.kernel).expect("the code was asked for")
}

fn write(head: &str, bodies: &[Body]) {
    let mut text = head.to_string();
    for body in bodies {
        text.push_str(&format!("\n{}\n", body.head));
        for Row { time, asked, choice } in &body.rows {
            let time = time.map_or("?".to_string(), |time| format!("{time:.1}"));
            let choice = choice.strip_suffix(" |").map_or(choice.clone(), |forms| format!("{forms} | {OWN}"));
            text.push_str(&format!("    {time} | {asked} | {choice}\n"));
        }
    }
    std::fs::write(root().join(TABLE), text).expect("the table can be written");
}

#[test]
fn choices_cost_little_more_than_the_best_that_was_measured() {
    let (head, mut bodies) = table();
    assert!(bodies.len() >= 60, "{} kernels", bodies.len());
    let (mut unknown, mut held, mut fit, mut report) = (Vec::new(), Vec::new(), Vec::new(), String::new());
    for body in &mut bodies {
        let choice = chosen(body);
        let best = body.rows.iter().filter_map(|row| row.time).fold(f64::INFINITY, f64::min);
        let same = |row: &&Row| row.choice == choice;
        let time = body.rows.iter().filter(same).filter_map(|row| row.time).reduce(f64::min);
        match time {
            Some(time) => {
                if !body.is_held {
                    report.push_str(&format!("{:.3} {}\n", time / best, body.head));
                }
                let side = if body.is_held { &mut held } else { &mut fit };
                side.push((time / best, body.kernel.clone()));
            }
            None => {
                if !body.rows.iter().any(|row| same(&row)) {
                    body.rows.insert(0, Row { time: None, asked: OWN.into(), choice: choice.clone() });
                }
                unknown.push(format!("{}: {choice}", body.kernel));
            }
        }
    }
    if std::env::var_os("KRN_ACCEPT_REGRET").is_some() {
        write(&head, &bodies);
    }
    print!("{report}");
    assert!(
        unknown.len() <= UNKNOWN,
        "{} choices that nobody has measured, which `bench/regret.py time --only` does:\n{}",
        unknown.len(),
        unknown.join("\n")
    );
    for (regrets, limits) in [(&held, HELD), (&fit, FIT)] {
        let sum: f64 = regrets.iter().map(|(regret, _)| regret.ln()).sum();
        let mean = (sum / regrets.len().max(1) as f64).exp();
        assert!(
            mean <= limits.mean,
            "the geometric mean of {} kernels is {mean:.3}\n{report}",
            regrets.len()
        );
        let worst: Vec<&(f64, String)> =
            regrets.iter().filter(|(regret, _)| *regret > limits.worst).collect();
        assert!(worst.is_empty(), "{worst:?}\n{report}");
    }
}

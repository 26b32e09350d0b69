//! The table by source line.

use super::found::{Profile, used};
use crate::numbers::grouped;
use crate::table::align;
use krn_runtime::emulator::{Counts, Kind};
use krn_runtime::profile::LineCounts;

/// How much of a source line is shown.
const WIDTH: usize = 60;

type Cell = fn(&LineCounts) -> Option<String>;

fn number(count: u64) -> Option<String> {
    (count > 0).then(|| grouped(count))
}

fn percent(counts: &Counts) -> Option<String> {
    used(counts).map(|share| format!("{:.1}%", share * 100.0))
}

fn loads(line: &LineCounts) -> Counts {
    line.total(|kind| matches!(kind, Kind::GlobalLoad | Kind::Copy))
}

fn stores(line: &LineCounts) -> Counts {
    line.total(|kind| kind == Kind::GlobalStore)
}

fn atomics(line: &LineCounts) -> Counts {
    line.total(|kind| matches!(kind, Kind::GlobalReduction | Kind::GlobalAtomic))
}

fn local(line: &LineCounts) -> Counts {
    line.total(|kind| matches!(kind, Kind::LocalLoad | Kind::LocalStore))
}

fn all(line: &LineCounts) -> Counts {
    line.total(|_| true)
}

/// Head and cell of each column; those without any number are left out.
const COLUMNS: &[(&str, Cell)] = &[
    ("warps", |line| number(all(line).warps)),
    ("lanes", |line| {
        let counts = all(line);
        (counts.warps > 0).then(|| format!("{:.1}", counts.lanes as f64 / counts.warps as f64))
    }),
    ("flops", |line| number(all(line).flops + all(line).flops64)),
    ("divergent", |line| number(all(line).divergent)),
    ("loads", |line| number(loads(line).requests)),
    ("sectors", |line| number(loads(line).sectors)),
    ("used", |line| percent(&loads(line))),
    ("stores", |line| number(stores(line).requests)),
    ("sectors", |line| number(stores(line).sectors)),
    ("used", |line| percent(&stores(line))),
    ("atomics", |line| number(atomics(line).requests)),
    ("sectors", |line| number(atomics(line).sectors)),
    ("local", |line| number(local(line).requests)),
    ("sectors", |line| number(local(line).sectors)),
    ("shared", |line| number(all(line).shared_requests)),
    ("wavefronts", |line| number(all(line).wavefronts)),
    ("conflicts", |line| number(all(line).conflicts)),
    ("turns", |line| number(all(line).serial)),
];

/// Head first, a column for each thing of which there is any number, in front of them the numbers of the lines.
pub fn columns(profile: &Profile<'_>) -> Vec<Vec<String>> {
    let mut columns: Vec<Vec<String>> = vec![vec!["line".to_string()]];
    columns[0]
        .extend(profile.lines.keys().map(|line| if *line == 0 { "-".into() } else { line.to_string() }));
    for (head, cell) in COLUMNS {
        let cells: Vec<Option<String>> = profile.lines.values().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            let mut column = vec![(*head).to_string()];
            column.extend(cells.into_iter().map(Option::unwrap_or_default));
            columns.push(column);
        }
    }
    columns
}

/// The head, and a row for each line that was executed.
pub fn lines(profile: &Profile<'_>) -> String {
    let columns = columns(profile);
    // To the left, after all that stand to the right.
    let texts: Vec<&str> = profile.lines.keys().map(|line| profile.text_of(*line)).collect();
    let shown = |text: &str| -> String {
        if text.chars().count() <= WIDTH {
            return text.to_string();
        }
        text.chars().take(WIDTH - 3).chain("...".chars()).collect()
    };
    let mut source = vec!["source".to_string()];
    source.extend(texts.into_iter().map(shown));
    let rows: Vec<Vec<String>> =
        (0..source.len()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect();
    let mut text = String::new();
    for (line, source) in align_all(&rows).into_iter().zip(source) {
        text.push_str(format!("{line}  {source}").trim_end());
        text.push('\n');
    }
    text
}

/// As [`align`], each line as long as the longest.
fn align_all(rows: &[Vec<String>]) -> Vec<String> {
    let text = align(rows);
    let width = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    text.lines().map(|line| format!("{line:<width$}")).collect()
}

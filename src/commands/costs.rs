//! `krn test --costs`: what every kernel costs, held against the table that was reviewed.

use crate::arguments::{MessageFormat, TestOptions};
use crate::exit::{DEVICE, FILE, Failure, INPUT, MISMATCH, Result, USAGE};
use crate::numbers::counted;
use crate::{files, messages};
use krn_runtime::profile::{Change, CostError, Costs, Verdict, costs_of};
use std::path::Path;

/// The first lines of a table that is kept.
const HEAD: &str = "\
# What each kernel costs: `krn test --costs` compares, `--accept` writes.
# kernel | sizes | predicted time: may rise by 2 % | form | counts, for reading | who counted | why it may cost more\n\n";

pub fn run(options: &TestOptions) -> Result<()> {
    let mut sums = Sums::default();
    match &options.table {
        Some(table) => {
            let mut found = Costs::default();
            for path in &options.files {
                let of_file = |name: &str| format!("{}:{name}", path.display());
                found.0.extend(count(path, options)?.0.into_iter().map(|mut cost| {
                    cost.kernel = of_file(&cost.kernel);
                    cost
                }));
            }
            let files: Vec<String> =
                options.files.iter().map(|path| format!("{}:", path.display())).collect();
            judge(table, found, &|name| files.iter().any(|file| name.starts_with(file)), options, &mut sums)?;
        }
        None => {
            for path in &options.files {
                judge(&path.with_extension("costs"), count(path, options)?, &|_| true, options, &mut sums)?;
            }
        }
    }
    if sums.lines == 0 {
        return Err(Failure::new(USAGE, "no kernel was counted"));
    }
    if options.accept {
        return Ok(());
    }
    let Sums { lines, failed } = sums;
    let differ = if failed == 1 { "differs" } else { "differ" };
    files::print(&format!("{}, {failed} {differ} from the table\n", counted(lines, "line")))?;
    if failed > 0 { Err(Failure::silent(MISMATCH)) } else { Ok(()) }
}

#[derive(Default)]
struct Sums {
    lines: usize,
    failed: usize,
}

fn count(path: &Path, options: &TestOptions) -> Result<Costs> {
    let source = messages::load(path, MessageFormat::Human)?;
    let compile = messages::options(&options.compile, None)?;
    // Mistakes are shown as everywhere.
    messages::compile(&source, &compile, None, MessageFormat::Human)?;
    costs_of(&source, &compile, &|name| options.asks_for(name)).map_err(|error| match error {
        CostError::Run(error) => Failure::new(DEVICE, format!("{}: {error}", path.display())),
        error => Failure::new(INPUT, format!("{}: {error}", path.display())),
    })
}

/// Holds costs against a table, or writes it. `complete` says of which kernels all lines are among those found.
fn judge(
    table: &Path,
    found: Costs,
    complete: &dyn Fn(&str) -> bool,
    options: &TestOptions,
    sums: &mut Sums,
) -> Result<()> {
    // In a table for all files the file stands in front.
    let concerned = |name: &str| complete(name) && options.asks_for(name.rsplit(':').next().unwrap_or(name));
    let before = if table.exists() {
        let text = String::from_utf8_lossy(&files::read_own(table)?).into_owned();
        Costs::parse(&text).map_err(|error| Failure::new(FILE, format!("{}: {error}", table.display())))?
    } else {
        Costs::default()
    };
    // What is not asked for stays as it is.
    let (mut old, rest): (Vec<_>, Vec<_>) = before.0.into_iter().partition(|cost| concerned(&cost.kernel));
    let found = Costs(found.0.into_iter().filter(|cost| concerned(&cost.kernel)).collect());
    sums.lines += found.0.len();
    let before = Costs(std::mem::take(&mut old));
    if options.accept {
        let count = found.0.len();
        let mut all = found.accepted(&before, options.because.as_deref()).map_err(|worse| {
            let text: String = worse.iter().map(told).collect();
            Failure::new(MISMATCH, format!("{text}--because \"…\" says why these may cost more"))
        })?;
        all.0.extend(rest);
        all.0.sort_by(|one, other| one.kernel.cmp(&other.kernel));
        files::Target::new(table)?.write(format!("{HEAD}{all}").as_bytes())?;
        return files::print(&format!("written {} ({})\n", table.display(), counted(count, "line")));
    }
    let changes = found.against(&before);
    sums.failed += changes.iter().filter(|change| change.verdict.fails()).count();
    let shown = |change: &&Change| change.verdict.fails() || options.verbose;
    let text: String = changes.iter().filter(shown).map(told).collect();
    files::print(&text)?;
    let changed = changes.iter().any(|change| change.verdict == Verdict::Changed);
    if changed && !options.verbose {
        let count = changes.iter().filter(|change| change.verdict == Verdict::Changed).count();
        files::print(&format!(
            "{}: {} changed and cost no more; -v shows them\n",
            table.display(),
            counted(count, "line")
        ))?;
    }
    Ok(())
}

fn told(change: &Change) -> String {
    let word = match change.verdict {
        Verdict::Worse => "WORSE",
        Verdict::New => "NEW",
        Verdict::Gone => "GONE",
        Verdict::Changed => "changed",
    };
    format!("{word:<7} {}\n{}", change.kernel, change.text)
}

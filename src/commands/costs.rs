//! `krn test --costs`: what every kernel costs, held against the table that was reviewed.

use crate::arguments::{MessageFormat, TestOptions};
use crate::exit::{DEVICE, FILE, Failure, INPUT, MISMATCH, Result, USAGE};
use crate::numbers::counted;
use crate::{files, messages, request};
use krn_runtime::profile::{Change, Cost, CostError, Costs, Verdict, costs_at};
use std::collections::BTreeSet;
use std::path::Path;

/// The first lines of a table that is kept.
const HEAD: &str = "\
# What each kernel costs: `krn test --costs` compares, `--accept` writes.
# kernel | sizes | predicted time: may rise by 2 % | form | counts, for reading | who counted | why it may cost more\n\n";

pub fn run(options: &TestOptions) -> Result<()> {
    let mut sums = Sums::default();
    let mut asked = Asked {
        kernel: request::Named::new(options.kernel.as_deref()),
        sizes: request::dims(&options.dims)?.into_iter().map(|(name, size)| (name, size as i64)).collect(),
        dims: BTreeSet::new(),
    };
    let mut counted_files = Vec::with_capacity(options.files.len());
    for path in &options.files {
        counted_files.push((path, count(path, options, &mut asked)?));
    }
    asked.check()?;
    match &options.table {
        Some(table) => {
            let mut found = Costs::default();
            for (path, costs) in counted_files {
                let of_file = |name: &str| format!("{}:{name}", path.display());
                found.0.extend(costs.0.into_iter().map(|mut cost| {
                    cost.kernel = of_file(&cost.kernel);
                    cost
                }));
            }
            let files: Vec<String> =
                options.files.iter().map(|path| format!("{}:", path.display())).collect();
            judge(table, found, &|name| files.iter().any(|file| name.starts_with(file)), options, &mut sums)?;
        }
        None => {
            for (path, found) in counted_files {
                judge(&path.with_extension("costs"), found, &|_| true, options, &mut sums)?;
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

/// What the command line asks for, of which one of the files has to have it.
struct Asked<'n> {
    kernel: request::Named<'n>,
    /// Sizes to count at.
    sizes: Vec<(String, i64)>,
    /// The dimensions of the kernels so far.
    dims: BTreeSet<String>,
}

impl Asked<'_> {
    fn check(&self) -> Result<()> {
        self.kernel.check()?;
        match self.sizes.iter().find(|(name, _)| !self.dims.contains(name)) {
            Some((name, _)) => {
                Err(Failure::new(USAGE, format!("-D {name}: no kernel that is counted has this dimension")))
            }
            None => Ok(()),
        }
    }
}

fn count(path: &Path, options: &TestOptions, asked: &mut Asked) -> Result<Costs> {
    let source = messages::load(path, MessageFormat::Human)?;
    let compile = messages::options(&options.compile, None)?;
    // Mistakes are shown as everywhere.
    let compilation = messages::compile(&source, &compile, None, MessageFormat::Human)?;
    asked.kernel.seen(&compilation.program);
    let kernels = compilation.program.kernels.iter().filter(|kernel| options.asks_for(&kernel.name));
    asked.dims.extend(kernels.flat_map(|kernel| kernel.dims.values()).map(|dim| dim.name.clone()));
    costs_at(&source, &compile, &|name| options.asks_for(name), &asked.sizes).map_err(|error| match error {
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
    // Of kernels that are counted at sizes of the command line, lines for other sizes are.
    let among = |cost: &Cost| {
        options.dims.is_empty()
            || found.0.iter().any(|other| other.kernel == cost.kernel && other.sizes == cost.sizes)
    };
    let (mut old, rest): (Vec<_>, Vec<_>) =
        before.0.into_iter().partition(|cost| concerned(&cost.kernel) && among(cost));
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

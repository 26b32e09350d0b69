//! `krn test --costs`: what every kernel costs, held against what was reviewed.

use crate::arguments::{MessageFormat, TestOptions};
use crate::exit::{DEVICE, FILE, Failure, INPUT, MISMATCH, Result, USAGE};
use crate::{files, messages};
use krn_runtime::profile::{Cost, CostError, Costs, costs};
use std::path::{Path, PathBuf};

/// The first lines of a file that is kept.
const HEAD: &str = "# What each kernel costs, counted by the emulator: `krn test --costs` compares, with `--accept` it writes.\n\n";

pub fn run(options: &TestOptions) -> Result<()> {
    let (mut kernels, mut worse) = (0, 0);
    for path in &options.files {
        let (count, wrong) = file(path, options)?;
        kernels += count;
        worse += wrong;
    }
    if kernels == 0 {
        return Err(Failure::new(USAGE, "no kernel was counted"));
    }
    files::print(&format!("{} kernels cost no more than they did, {worse} do\n", kernels - worse))?;
    if worse > 0 { Err(Failure::silent(MISMATCH)) } else { Ok(()) }
}

/// `kernels/blur.costs` for `kernels/blur.krn`.
fn kept(path: &Path) -> PathBuf {
    path.with_extension("costs")
}

/// How many kernels the file has, and how many of them cost more.
fn file(path: &Path, options: &TestOptions) -> Result<(usize, usize)> {
    let source = messages::load(path, MessageFormat::Human)?;
    let compile = messages::options(&options.compile, None);
    // Mistakes are shown as everywhere.
    messages::compile(&source, &compile, MessageFormat::Human)?;
    let mut found = costs(&source, &compile).map_err(|error| match error {
        CostError::Run(error) => Failure::new(DEVICE, format!("{}: {error}", path.display())),
        error => Failure::new(INPUT, format!("{}: {error}", path.display())),
    })?;
    let wanted = |cost: &Cost| options.kernel.as_ref().is_none_or(|text| cost.kernel.contains(text.as_str()));
    let at = kept(path);
    let before = if at.exists() {
        let text = String::from_utf8_lossy(&files::read_own(&at)?).into_owned();
        Costs::parse(&text).map_err(|error| Failure::new(FILE, format!("{}: {error}", at.display())))?
    } else {
        Costs::default()
    };
    if options.accept {
        for cost in &mut found.0 {
            // What is not asked for stays as it is.
            if let (false, Some(old)) = (wanted(cost), before.get(&cost.kernel)) {
                cost.clone_from(old);
            }
        }
        files::Target::new(&at)?.write(format!("{HEAD}{found}").as_bytes())?;
        files::print(&format!("written {} ({} kernels)\n", at.display(), found.0.len()))?;
        return Ok((found.0.len(), 0));
    }
    let (mut count, mut worse) = (0, 0);
    for cost in found.0.iter().filter(|cost| wanted(cost)) {
        count += 1;
        let (text, is_worse) = verdict(cost, before.get(&cost.kernel), &at);
        worse += usize::from(is_worse);
        if is_worse || options.verbose || !text.is_empty() {
            let word = if is_worse { "WORSE" } else { "ok" };
            files::print(&format!("{word:<7} {}: {}\n{text}", path.display(), cost.kernel))?;
        }
    }
    Ok((count, worse))
}

/// What there is to say of a kernel, and whether it is a reason to fail.
fn verdict(cost: &Cost, before: Option<&Cost>, at: &Path) -> (String, bool) {
    let Some(before) = before else {
        return (format!("  `{}` says nothing of it; --accept writes it\n", at.display()), true);
    };
    if before.sizes != cost.sizes {
        let (old, new) = (&before.sizes, &cost.sizes);
        return (format!("  counted for {new}, but kept for {old}; --accept writes it anew\n"), true);
    }
    let changes = cost.changes(before);
    let text = changes.iter().map(|change| format!("  {change}\n")).collect();
    (text, changes.iter().any(|change| change.worse))
}

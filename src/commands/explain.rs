//! `krn explain`: schedules of a file, or pages of diagnostics.

use crate::arguments::ExplainOptions;
use crate::exit::{Failure, INPUT, Result};
use crate::{files, messages, numbers, request};
use krn_compiler::analysis::model::sizes_made_for;
use krn_compiler::diagnostic::codes::ALL;
use krn_compiler::diagnostic::explain;
use krn_compiler::diagnostic::suggest::nearest;
use krn_compiler::source::SourceFile;
use krn_compiler::{Compilation, Variants, explain_forms, explain_schedules, explain_sizes};
use krn_runtime::profile::{gpu_for, predicted, slow_loops};
use std::path::Path;
use std::time::Duration;

pub fn run(options: &ExplainOptions) -> Result<()> {
    let Some(subject) = &options.subject else {
        let list: String = ALL.iter().map(|(code, title, _)| format!("{}  {title}\n", code.0)).collect();
        return files::print(&list);
    };
    if let Some((_, page)) = explain(subject) {
        return files::print(page);
    }
    let path = Path::new(subject);
    if path.extension().is_some_and(|extension| extension == "krn") || path.exists() {
        return schedules(path, options);
    }
    let near = nearest(&subject.to_uppercase(), ALL.iter().map(|(code, ..)| code.0));
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Err(Failure::new(INPUT, format!("there is no code `{subject}`{hint} (`krn explain` lists them)")))
}

/// Prints the schedule of each kernel of a file.
fn schedules(path: &Path, options: &ExplainOptions) -> Result<()> {
    let source = messages::load(path, options.message_format)?;
    let mut compile = messages::options(&options.compile, None)?;
    compile.ir = true;
    compile.sizes = request::dims(&options.dims)?;
    compile.only.clone_from(&options.kernel);
    let values = options.for_sizes.as_deref().map(request::symbol_values).transpose()?;
    compile.variants = Variants::For(values.unwrap_or_default());
    let compilation =
        messages::compile(&source, &compile, options.kernel.as_deref(), options.message_format)?;
    let mut explained = explain_schedules(&compilation);
    if let Some(wanted) = &options.kernel {
        request::pick_named(&compilation.program, wanted)?;
        explained.retain(|known| known.kernel == *wanted);
    }
    let head = |kernel: &str| {
        let code = made_for(&compilation, kernel) + &forms(&compilation, kernel);
        code + &slow(&compilation, &source, kernel, &compile.target)
            + &facts(&compilation, kernel, compile.unchecked)
    };
    let whole = |kernel: &str, schedule: &str| {
        let total = options.for_sizes.as_ref().map(|_| total(&compilation, kernel, &compile.target));
        head(kernel) + schedule + &total.unwrap_or_default()
    };
    let texts: Vec<String> = explained.iter().map(|known| whole(&known.kernel, &known.text)).collect();
    files::print(&texts.join("\n"))
}

/// Comments that say what sizes a kernel's code is made for.
pub fn made_for(compilation: &Compilation, kernel: &str) -> String {
    explain_sizes(compilation, kernel).iter().map(|line| format!("// {line}\n")).collect()
}

/// A comment for each form that the kernel's launches have.
pub fn forms(compilation: &Compilation, kernel: &str) -> String {
    let forms = explain_forms(compilation, kernel).unwrap_or_default();
    forms.iter().map(|(launches, form)| format!("// {}: {form}\n", launches.join(", "))).collect()
}

/// A comment for each launch whose threads walk a long loop by themselves, far longer than what it moves takes: where the
/// loop is, and why it is so.
pub fn slow(compilation: &Compilation, source: &SourceFile, kernel: &str, target: &str) -> String {
    let module = compilation.ir().unwrap_or_default();
    let Some(kernel) = module.kernels.iter().find(|known| known.name == kernel) else { return String::new() };
    let Some(sizes) = sizes_made_for(kernel) else { return String::new() };
    let found = slow_loops(source, kernel, &sizes, gpu_for(target));
    found.iter().map(|slow| format!("// {}\n", slow.told(source))).collect()
}

/// A comment with the time that the launches of a kernel are predicted to take, one by one and in all; nothing where
/// there is one launch, or where memory decides what they do.
fn total(compilation: &Compilation, kernel: &str, target: &str) -> String {
    let module = compilation.ir().unwrap_or_default();
    let Some(kernel) = module.kernels.iter().find(|known| known.name == kernel) else { return String::new() };
    let times = sizes_made_for(kernel).and_then(|sizes| predicted(kernel, &sizes, gpu_for(target)));
    let Some(times) = times.filter(|times| times.len() > 1) else { return String::new() };
    let seconds = |seconds: f64| numbers::duration(Duration::from_secs_f64(seconds));
    let parts: Vec<String> =
        times.iter().map(|(launch, time)| format!("{launch} {}", seconds(*time))).collect();
    let sum = seconds(times.iter().map(|(_, time)| time).sum());
    format!("// predicted: {sum} for all launches ({})\n", parts.join(", "))
}

/// A comment for each fact that the device checks: what that costs.
fn facts(compilation: &Compilation, kernel: &str, unchecked: bool) -> String {
    let known = compilation.compiled.manifest.kernels.iter().find(|known| known.name == kernel);
    let cost = match unchecked {
        true => "not checked",
        false => "checked on the device, with 8 bytes of scratch memory for each value of its range",
    };
    let facts = known.into_iter().flat_map(|known| &known.injections);
    facts.map(|fact| format!("// `{}`: {cost}\n", fact.text)).collect()
}

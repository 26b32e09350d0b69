//! The schedules that the compiler chose, as text that can be pasted into the file.

use super::Compilation;
use crate::analysis::{form, stated_guard};
use crate::check::typed;
use crate::ir::kernel::{Kernel, LaunchData};
use crate::ir::schedule::{Choice, Directive, Outcome, SAID};
use crate::manifest::{BinaryOp, Expr, Value};
use std::fmt::Write as _;

/// The schedule of one kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExplainedSchedule {
    pub kernel: String,
    /// A `schedule` block. Pasted in the place of the kernel's own, it compiles to the same code; its comments give the
    /// reasons, and what no one directive says for all launches.
    pub text: String,
}

/// The schedules of a compilation's kernels, in source order.
pub fn explain_schedules(compilation: &Compilation) -> Vec<ExplainedSchedule> {
    let schedule = |kernel: &Kernel| {
        let typed = compilation.program.kernels.iter().find(|typed| typed.name == kernel.name);
        let text = block(kernel, &|name| typed.is_some_and(|typed| knows(typed, name)));
        ExplainedSchedule { kernel: kernel.name.clone(), text }
    };
    let mut explained: Vec<ExplainedSchedule> = Vec::new();
    for kernel in &compilation.ir.kernels {
        // Of variants the first one.
        if explained.last().is_none_or(|last| last.kernel != kernel.declarations.name) {
            explained.push(schedule(&kernel.declarations));
        }
    }
    explained
}

/// How each launch of a kernel spreads its work over threads, launches of one form together: their names, and the form.
/// `None` unless [`CompileOptions::ir`](super::CompileOptions::ir) asked for the code.
pub fn explain_forms(compilation: &Compilation, kernel: &str) -> Option<Vec<(Vec<String>, String)>> {
    let module = compilation.ir()?;
    let kernel = module.kernels.iter().find(|known| known.name == kernel)?;
    let mut forms: Vec<(Vec<String>, String)> = Vec::new();
    for (launch, data) in &kernel.launches {
        let form = form(kernel, launch);
        match forms.iter_mut().find(|(_, known)| *known == form) {
            Some((launches, _)) => launches.push(data.name.clone()),
            None => forms.push((vec![data.name.clone()], form)),
        }
    }
    Some(forms)
}

/// What was chosen for a kernel, in one line: the forms of its launches, and the directives that are followed or were
/// chosen for one of them, without reasons. Equal lines need not be equal code; different ones are different choices.
/// `None` unless [`CompileOptions::ir`](super::CompileOptions::ir) asked for the code.
pub fn explain_choice(compilation: &Compilation, kernel: &str) -> Option<String> {
    let forms: Vec<String> = explain_forms(compilation, kernel)?.into_iter().map(|(_, form)| form).collect();
    let mut kernels = compilation.ir.kernels.iter().map(|kernel| &kernel.declarations);
    let kernel = kernels.find(|known| known.name == kernel)?;
    let said = kernel.schedule.directives.iter().filter(|known| known.outcome == Outcome::Done);
    let chosen = kernel.schedule.choices.iter().filter(|choice| counts(kernel, &choice.launch));
    let mut directives: Vec<String> = Vec::new();
    for directive in said.map(|known| &known.directive).chain(chosen.map(|choice| &choice.directive)) {
        let text = directive.to_string();
        if !is_nothing(directive) && !directives.contains(&text) {
            directives.push(text);
        }
    }
    directives.sort_unstable();
    Some(format!("{} | {}", forms.join(", "), directives.join("; ")).trim_end().to_string())
}

/// Characters of a condition that stands beside others: those that compare what shapes of tiles cost are formulas of a
/// line or two.
const LONGEST_BESIDE_OTHERS: usize = 120;
/// Characters of one side of a comparison in a long condition; of a longer one stands what it comes to.
const LONGEST_SIDE: usize = 40;

/// What a kernel's code is made for, line by line: the sizes, what it relies on, what it was chosen by, and what faster
/// code would have relied on. Long conditions have lines of their own.
pub fn explain_sizes(compilation: &Compilation, kernel: &str) -> Vec<String> {
    let mut kernels = compilation.ir.kernels.iter().map(|kernel| &kernel.declarations);
    let Some(kernel) = kernels.find(|known| known.name == kernel) else { return Vec::new() };
    let symbols = kernel.symbol_names();
    let values: Option<Vec<Value>> = kernel.specialization.values().iter().copied().collect();
    let listed = |head: &str, conditions: &[Expr], values: Option<&Vec<Value>>| {
        let (mut short, mut long) = (Vec::new(), Vec::new());
        for condition in conditions {
            let text = condition.in_words(&symbols);
            if text.len() <= LONGEST_BESIDE_OTHERS {
                short.push(text);
                continue;
            }
            let known = values.map(|values| with_values(condition, values, &symbols).in_words(&symbols));
            long.push(
                known.map_or(text, |known| format!("{known}: estimates for these sizes, in cycles or bytes")),
            );
        }
        let mut lines = Vec::with_capacity(1 + long.len());
        if !conditions.is_empty() {
            lines.push(format!("{head} {}", short.join(", ")).trim_end().to_string());
        }
        lines.extend(long.into_iter().map(|text| format!("    {text}")));
        lines
    };
    let guard = stated_guard(kernel);
    if guard.conditions().next().is_none() {
        return vec!["the same for all sizes".to_string()];
    }
    let sizes = kernel.sizes_in_words();
    let made = (!sizes.is_empty()).then(|| format!("made for {sizes}"));
    let mut lines: Vec<String> = made.into_iter().collect();
    lines.extend(listed("relies on", &guard.relies_on, None));
    lines.extend(listed("chosen by", &guard.chosen_by, values.as_ref()));
    lines.extend(listed("faster code would rely on", kernel.specialization.missed(), None));
    lines
}

/// A condition whose long sides of comparisons are what they come to.
fn with_values(condition: &Expr, values: &[Value], symbols: &[&str]) -> Expr {
    let again = |part: &Expr| std::sync::Arc::new(with_values(part, values, symbols));
    let value = |side: &Expr| {
        let is_long = side.in_words(symbols).len() > LONGEST_SIDE;
        let known = side.evaluate_int(values).and_then(|known| i64::try_from(known).ok());
        known.filter(|_| is_long).map_or_else(|| side.clone(), Expr::Int)
    };
    match condition {
        Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), left, right) => {
            Expr::Binary(*op, again(left), again(right))
        }
        Expr::Binary(op, left, right) => Expr::Binary(*op, value(left).into(), value(right).into()),
        Expr::Unary(op, operand) => Expr::Unary(*op, again(operand)),
        other => other.clone(),
    }
}

/// Whether the source has the name: loops that the compiler made have names of its own.
fn knows(kernel: &typed::Kernel, name: &str) -> bool {
    kernel.indices.values().any(|index| index.name == name)
        || kernel.arrays.values().any(|array| array.name == name)
}

/// A line of a schedule: the directive, or nothing, and what is said of it.
struct Line {
    directive: String,
    comment: String,
}

fn block(kernel: &Kernel, known: &dyn Fn(&str) -> bool) -> String {
    let mut lines = Vec::new();
    let own: Vec<&Directive> = kernel
        .schedule
        .directives
        .iter()
        .filter(|known| known.outcome == Outcome::Done || known.directive == Directive::FastMath)
        .map(|known| &known.directive)
        .collect();
    lines.extend(
        own.iter().map(|directive| Line { directive: directive.to_string(), comment: SAID.to_string() }),
    );
    let mut rest: Vec<&Choice> =
        kernel.schedule.choices.iter().filter(|choice| counts(kernel, &choice.launch)).collect();
    rest.retain(|choice| match &choice.directive {
        Directive::Order(names) => names.iter().all(|name| known(name)),
        directive => directive.subject().is_none_or(known),
    });
    rest.retain(|choice| !own.iter().any(|own| own.same_subject(&choice.directive)));
    // Axes of which a thread takes several iterations: how many are neighbours is part of that.
    let several: Vec<String> = rest
        .iter()
        .filter_map(|choice| match &choice.directive {
            Directive::PerThread { axis, count: 2.. } => Some(axis.clone()),
            _ => None,
        })
        .collect();
    let spread: Vec<(String, String)> = rest
        .iter()
        .filter_map(|choice| match &choice.directive {
            Directive::PerThread { axis, .. } => Some((axis.clone(), choice.launch.clone())),
            _ => None,
        })
        .collect();
    let nothing = |directive: &Directive| match directive {
        Directive::Vectorize { axis, width: 1 } => !several.contains(axis),
        directive => is_nothing(directive),
    };
    while let Some(first) = rest.first().copied() {
        let (group, others): (Vec<&Choice>, Vec<&Choice>) =
            rest.into_iter().partition(|choice| choice.directive.same_subject(&first.directive));
        // These count for every loop over the name, also for those that have none here.
        let everywhere = !matches!(first.directive, Directive::Tile { .. } | Directive::Warps { .. })
            || spread.iter().all(|(axis, launch)| {
                first.directive.subject() != Some(axis) || group.iter().any(|choice| choice.launch == *launch)
            });
        rest = others;
        group_lines(&group, everywhere, &nothing, &mut lines);
    }
    remarks(kernel, &mut lines);
    let condition = kernel.schedule.condition.as_ref().map(|condition| format!(" where {condition}"));
    let mut text = format!("schedule {}{} {{\n", kernel.name, condition.unwrap_or_default());
    let width = lines.iter().map(|line| line.directive.len()).max().unwrap_or(0);
    for Line { directive, comment } in &lines {
        let _ = match directive.as_str() {
            "" => writeln!(text, "    // {comment}"),
            directive => writeln!(text, "    {directive:width$}  // {comment}"),
        };
    }
    if lines.is_empty() {
        for said in no_choice(kernel) {
            let _ = writeln!(text, "    // {said}");
        }
    }
    text.push_str("}\n");
    text
}

/// What to say of a kernel about which no directive says anything: how its launches share the work.
fn no_choice(kernel: &Kernel) -> Vec<String> {
    let alone = |launch: &LaunchData| {
        launch.threads == Some(1)
            && launch.grid.as_ref().is_none_or(|grid| grid.iter().all(|size| *size == Expr::Int(1)))
    };
    if kernel.launches.values().all(alone) {
        return vec![String::from("one thread does all of it: no directive is about that")];
    }
    let said = kernel.launches.values().map(|launch| {
        let grid = launch.grid.iter().flatten().all(|size| *size == Expr::Int(1));
        let blocks = if grid { "one block" } else { "blocks" };
        let threads = launch.threads.unwrap_or(1);
        format!("{}: {blocks} of {threads} threads, as no directive says it", launch.name)
    });
    said.collect()
}

/// Whether the launch, if it is about one, is still there.
fn counts(kernel: &Kernel, name: &str) -> bool {
    name.is_empty() || kernel.launches.values().any(|launch| launch.name == name)
}

/// Comments that tell what no directive says, each with the launches of which it is true.
fn remarks(kernel: &Kernel, lines: &mut Vec<Line>) {
    let mut seen: Vec<(&str, Vec<&str>)> = Vec::new();
    for remark in kernel.schedule.remarks.iter().filter(|remark| counts(kernel, &remark.launch)) {
        match seen.iter_mut().find(|(text, _)| *text == remark.text) {
            Some((_, launches)) if launches.contains(&remark.launch.as_str()) => {}
            Some((_, launches)) => launches.push(&remark.launch),
            None => seen.push((&remark.text, vec![&remark.launch])),
        }
    }
    for (text, launches) in seen {
        let comment = format!("{}: {text}", launches.join(", "));
        lines.push(Line { directive: String::new(), comment });
    }
}

/// The lines for the choices about one thing: a directive where all launches have the same, else a comment for each.
fn group_lines(
    group: &[&Choice],
    everywhere: bool,
    nothing: &dyn Fn(&Directive) -> bool,
    lines: &mut Vec<Line>,
) {
    let Some(first) = group.first() else { return };
    let same = group.iter().all(|choice| choice.directive == first.directive);
    if same && everywhere && group.iter().all(|choice| choice.reproducible) {
        if !nothing(&first.directive) {
            // The reason of a launch that has one: the last one, which is of the pass that decided.
            let comment = group.last().map(|choice| choice.reason.clone()).unwrap_or_default();
            lines.push(Line { directive: first.directive.to_string(), comment });
        }
        return;
    }
    if let Directive::Stage { array, .. } = &first.directive
        && group.iter().any(|choice| choice.reproducible)
    {
        let plain = Directive::Stage { array: array.clone(), place: None, depth: None };
        lines.push(Line {
            directive: plain.to_string(),
            comment: "padded as each launch needs it".to_string(),
        });
    }
    let mut seen: Vec<(&Directive, &str, Vec<&str>)> = Vec::new();
    for choice in group.iter().filter(|choice| !nothing(&choice.directive)) {
        match seen.iter_mut().find(|known| *known.0 == choice.directive && known.1 == choice.reason) {
            Some(known) => known.2.push(&choice.launch),
            None => seen.push((&choice.directive, &choice.reason, vec![&choice.launch])),
        }
    }
    for (directive, reason, launches) in seen {
        let comment = format!("{directive}, in {}: {reason}", launches.join(", "));
        lines.push(Line { directive: String::new(), comment });
    }
}

/// Whether the directive says that nothing is done.
fn is_nothing(directive: &Directive) -> bool {
    matches!(directive, Directive::PerThread { count: 1, .. } | Directive::Split { pieces: 1, .. })
}

//! The kernels that a kernel is compiled as: one for each of the sizes that the options ask for, and the general one.

use super::error::{CompileError, there_are};
use super::options::{CompileOptions, SymbolValues, Variants};
use crate::analysis::holds;
use crate::analysis::model::{representative_sizes, representative_sizes_where};
use crate::diagnostic::{Diagnostic, codes};
use crate::ir::Specialization;
use crate::ir::kernel::Kernel;
use crate::ir::schedule::Conditional;
use crate::manifest::{BinaryOp, Expr, SymbolKind, UnaryOp, Value};
use std::collections::BTreeSet;

/// The kernel for each of the sizes that are asked for, and those for which the source has a schedule; the last one is
/// the general one, where that is asked for.
pub fn specialized(kernel: &Kernel, options: &CompileOptions) -> Vec<Kernel> {
    let representative = || fixed(kernel, known_values(kernel, representative_sizes(kernel)), options);
    let specializations = match &options.variants {
        Variants::Only(values) => vec![Specialization::for_values(values.clone())],
        Variants::For(values) => vec![Specialization::for_values(asked(kernel, values, options))],
        Variants::With(all) => {
            let usual = representative();
            let asked = all.iter().map(|values| asked(kernel, values, options));
            let mut made: Vec<Specialization> = asked.map(Specialization::for_values).collect();
            made.push(Specialization::for_values(usual.clone()));
            let scheduled = scheduled_sizes(kernel).filter_map(|(_, values)| values);
            made.extend(
                scheduled.map(|values| Specialization::for_values(known_values(kernel, Some(values)))),
            );
            made.push(Specialization::general(usual));
            made
        }
    };
    let made = specializations.into_iter();
    made.map(|specialization| {
        let mut kernel = Kernel { specialization, ..kernel.clone() };
        choose_schedule(&mut kernel);
        kernel
    })
    .collect()
}

/// Of the schedules for some sizes the first one whose condition holds counts.
fn choose_schedule(kernel: &mut Kernel) {
    let conditional = std::mem::take(&mut kernel.schedule.conditional);
    let first = conditional.into_iter().find(|known| holds(kernel, &known.condition));
    first.into_iter().for_each(|first| kernel.follow(first));
}

/// The schedules for some sizes, each with sizes for which it counts: its condition holds, and none before it.
fn scheduled_sizes(kernel: &Kernel) -> impl Iterator<Item = (&Conditional, Option<Vec<Value>>)> {
    let conditional = &kernel.schedule.conditional;
    conditional.iter().enumerate().map(|(at, known)| {
        let not = |before: &Conditional| Expr::Unary(UnaryOp::Not, before.condition.clone().into());
        let mut conditions: Vec<Expr> = conditional[..at].iter().map(not).collect();
        conditions.push(known.condition.clone());
        (known, representative_sizes_where(kernel, &conditions))
    })
}

/// An error for each schedule that counts for no sizes, as far as they are looked for. Nothing is said of a kernel of
/// which no sizes are found at all.
pub fn schedules_without_sizes(kernel: &Kernel) -> Vec<Diagnostic> {
    if kernel.schedule.conditional.is_empty() || representative_sizes(kernel).is_none() {
        return Vec::new();
    }
    let without = scheduled_sizes(kernel).filter(|(_, values)| values.is_none());
    let diagnostic = |(known, _): (&Conditional, _)| {
        Diagnostic::error(
            codes::E0522,
            known.span,
            format!("no sizes are found for which this schedule of `{}` counts", kernel.name),
            "does not hold, or a schedule before it counts",
        )
        .help("of the schedules whose `where` holds the first in the file counts: ask for more first, or remove it")
    };
    without.map(diagnostic).collect()
}

/// That each symbol of which a value is given is one of some kernel's.
///
/// # Errors
/// [`CompileError::Size`] with the names that there are.
pub fn check_names(kernels: &[Kernel], variants: &Variants) -> Result<(), CompileError> {
    let given = match variants {
        Variants::With(all) => all.as_slice(),
        Variants::For(values) => std::slice::from_ref(values),
        Variants::Only(_) => &[],
    };
    let symbols = kernels.iter().flat_map(|kernel| kernel.symbols.values());
    let known: BTreeSet<&str> = symbols
        .filter(|symbol| !matches!(symbol.kind, SymbolKind::Counter))
        .map(|symbol| symbol.name.as_str())
        .collect();
    for name in given.iter().flat_map(SymbolValues::keys) {
        if !known.contains(name.as_str()) {
            let known = there_are(&known);
            return Err(CompileError::Size(format!(
                "no kernel has a dimension or parameter `{name}`; {known}"
            )));
        }
    }
    Ok(())
}

/// That no fact of a kernel that code is made for is broken by values that are given.
///
/// # Errors
/// [`CompileError::Size`] with the first one that is.
pub fn check_facts(kernels: &[Kernel], options: &CompileOptions) -> Result<(), CompileError> {
    let given = match &options.variants {
        Variants::With(all) => all.as_slice(),
        Variants::For(values) => std::slice::from_ref(values),
        Variants::Only(_) => &[],
    };
    for (kernel, given) in kernels.iter().flat_map(|kernel| given.iter().map(move |given| (kernel, given))) {
        let values = Specialization::for_values(named(kernel, vec![None; kernel.symbols.len()], given));
        // One about other symbols as well may hold for some values of those.
        let is_broken =
            |condition: &Expr| values.knows(condition) && values.evaluate(condition) != Some(true);
        let broken = kernel.facts.iter().find(|fact| is_broken(&fact.condition));
        if let Some(fact) = broken {
            let mut named = Vec::new();
            fact.condition.each_symbol(&mut |symbol| named.push(symbol));
            let symbols = kernel.symbols.values().enumerate().filter(|(at, _)| named.contains(at));
            let said = symbols.filter_map(|(_, symbol)| {
                let value = given.get(&symbol.name)?;
                Some(format!("{} = {value}", symbol.name))
            });
            let said = said.collect::<Vec<_>>().join(", ");
            return Err(CompileError::Size(format!(
                "kernel `{}`: `where {}` does not hold ({said})",
                kernel.name, fact.text
            )));
        }
    }
    Ok(())
}

/// Whether the passes were told the same of two variants of a kernel: then they made the same code.
pub fn are_same(left: &Kernel, right: &Kernel) -> bool {
    left.name == right.name && left.specialization.guard() == right.specialization.guard()
}

/// Names the launches of variants apart: those of the first one of a kernel keep their names.
pub fn name_apart(kernels: &mut [Kernel]) {
    for at in 1..kernels.len() {
        let before = kernels[..at].iter().filter(|known| known.name == kernels[at].name).count();
        if before == 0 {
            continue;
        }
        let kernel = &mut kernels[at];
        let suffix = match kernel.specialization.is_general() {
            true => "general".to_string(),
            false => format!("v{}", before + 1),
        };
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            kernel.rename_launch(launch, &suffix);
        }
    }
}

/// The value of each symbol; nothing is known of counters, nor of a kernel that has no such sizes.
fn known_values(kernel: &Kernel, values: Option<Vec<Value>>) -> Vec<Option<Value>> {
    let Some(values) = values else { return vec![None; kernel.symbols.len()] };
    let counted = kernel.symbols.values().map(|symbol| matches!(symbol.kind, SymbolKind::Counter));
    values.into_iter().zip(counted).map(|(value, counted)| (!counted).then_some(value)).collect()
}

/// The values with the sizes that are fixed when the kernel is compiled.
fn fixed(kernel: &Kernel, values: Vec<Option<Value>>, options: &CompileOptions) -> Vec<Option<Value>> {
    if options.only.as_ref().is_some_and(|only| *only != kernel.name) {
        return values;
    }
    let sizes = options.sizes.iter().map(|(name, size)| (name.clone(), Value::Int((*size).into())));
    named(kernel, values, &sizes.collect())
}

/// The values that are asked for, and representative ones that go with them. Where none are found, nothing is known of
/// symbols that have no value of their own.
fn asked(kernel: &Kernel, given: &SymbolValues, options: &CompileOptions) -> Vec<Option<Value>> {
    let own = fixed(kernel, named(kernel, vec![None; kernel.symbols.len()], given), options);
    let is_given = |(at, value): (usize, &Option<Value>)| {
        let value = match (*value)? {
            Value::Int(value) => Expr::Int(i64::try_from(value).ok()?),
            Value::Float(value) => Expr::Float(value),
            Value::Bool(value) => Expr::Bool(value),
        };
        Some(Expr::binary(BinaryOp::Equal, Expr::Symbol(at), value))
    };
    let conditions: Vec<Expr> = own.iter().enumerate().filter_map(is_given).collect();
    let (with, usual) = (representative_sizes_where(kernel, &conditions), || representative_sizes(kernel));
    let overlaid = |others: Vec<Option<Value>>| -> Vec<Option<Value>> {
        own.iter().zip(others).map(|(own, other)| own.or(other)).collect()
    };
    match with {
        Some(with) => overlaid(known_values(kernel, Some(with))),
        // Of an array without elements there are no representative sizes.
        None => {
            let values = overlaid(known_values(kernel, usual()));
            let all = Specialization::for_values(values.clone());
            match kernel.facts.iter().all(|fact| all.evaluate(&fact.condition) == Some(true)) {
                true => values,
                false => own,
            }
        }
    }
}

fn named(kernel: &Kernel, mut values: Vec<Option<Value>>, given: &SymbolValues) -> Vec<Option<Value>> {
    for (symbol, value) in kernel.symbols.values().zip(&mut values) {
        if let Some(given) = given.get(&symbol.name) {
            *value = Some(match *given {
                Value::Int(number) if !symbol.scalar.is_integer() => Value::Float(number as f64),
                given => given,
            });
        }
    }
    values
}

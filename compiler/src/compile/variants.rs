//! The kernels that a kernel is compiled as: one for each of the sizes that the options ask for, and the general one.

use super::error::{CompileError, there_are};
use super::options::{SymbolValues, Variants};
use crate::analysis::model::representative_sizes;
use crate::ir::Specialization;
use crate::ir::kernel::Kernel;
use crate::manifest::{SymbolKind, Value};
use std::collections::BTreeSet;

/// The kernel for each of the sizes that are asked for; the last one is the general one, where that is asked for.
pub fn specialized(kernel: &Kernel, variants: &Variants) -> Vec<Kernel> {
    let representative = || representative_values(kernel);
    let specializations = match variants {
        Variants::Only(values) => vec![Specialization::for_values(values.clone())],
        Variants::For(values) => vec![Specialization::for_values(named(kernel, representative(), values))],
        Variants::With(all) => {
            let usual = representative();
            let asked = all.iter().map(|values| named(kernel, usual.clone(), values));
            let mut made: Vec<Specialization> = asked.map(Specialization::for_values).collect();
            made.push(Specialization::for_values(usual.clone()));
            made.push(Specialization::general(usual));
            made
        }
    };
    let made = specializations.into_iter();
    made.map(|specialization| Kernel { specialization, ..kernel.clone() }).collect()
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

/// The representative value of each symbol; nothing is known of counters, nor of a kernel that has no such sizes.
fn representative_values(kernel: &Kernel) -> Vec<Option<Value>> {
    let Some(values) = representative_sizes(kernel) else { return vec![None; kernel.symbols.len()] };
    let counted = kernel.symbols.values().map(|symbol| matches!(symbol.kind, SymbolKind::Counter));
    values.into_iter().zip(counted).map(|(value, counted)| (!counted).then_some(value)).collect()
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

//! W0606: a thread has more values than registers, and the assembler keeps some in memory.

use super::assembled::Usage;
use super::finding::{Finding, Gain};
use super::mends::Proposal;
use super::parallelism::first_access;
use super::subject::Modelled;
use crate::diagnostic::codes;
use crate::ir::kernel::Kernel;
use crate::ir::schedule::Directive;

/// Whether spills are worth a word: more than a tenth of what the registers hold. How often spilled values are wanted nobody says.
fn is_much(usage: &Usage) -> bool {
    usage.spill_bytes > usage.registers * 4 / 10
}

/// Directives that say how much a thread holds at a time, or how many threads share the registers.
const HOLDS: &[&str] = &["per_thread", "unroll", "vectorize", "tile", "warps", "split", "block", "stage"];

pub(super) fn find(modelled: &Modelled<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for launch in &modelled.launches {
        let Some(usage) = modelled.usage(launch).filter(|usage| is_much(usage)) else { continue };
        let Some(place) = first_access(modelled, launch.launch) else { continue };
        if found.iter().any(|known| known.place == place) {
            continue;
        }
        let name = &modelled.kernel.launches[launch.launch].name;
        found.push(Finding {
            code: codes::W0606,
            place,
            span: place,
            about: String::new(),
            message: format!(
                "the registers of a thread are not enough: {} bytes of values go to memory and back",
                usage.spill_bytes
            ),
            label: format!(
                "`{name}` has blocks of {} threads with {} registers each",
                launch.threads, usage.registers
            ),
            notes: Vec::new(),
            proposals: proposals(modelled.kernel, name),
            gain: Gain::Spills,
        });
    }
    found
}

/// The user's directives chosen anew, or halved, and the compiler's own halved.
fn proposals(kernel: &Kernel, launch: &str) -> Vec<Proposal> {
    let mut proposals = vec![Proposal::Rechoose(HOLDS)];
    for known in &kernel.schedule.directives {
        let Some(less) = less(&known.directive) else { continue };
        let line = less.to_string();
        let word = HOLDS.iter().find(|word| line.split(' ').next() == Some(**word));
        if let (Some(word), Some(about)) = (word, less.subject()) {
            proposals.push(Proposal::Replace { word, about: about.to_string(), line });
        }
    }
    for choice in kernel.schedule.choices.iter() {
        if choice.reproducible && (choice.launch.is_empty() || choice.launch == launch) {
            proposals.extend(less(&choice.directive).map(|less| Proposal::Directive(less.to_string())));
        }
    }
    proposals
}

/// The directive with which a thread holds half as much.
fn less(directive: &Directive) -> Option<Directive> {
    let half = |count: &u32| (*count > 1).then_some(count / 2);
    Some(match directive {
        Directive::PerThread { axis, count } => {
            Directive::PerThread { axis: axis.clone(), count: half(count)? }
        }
        Directive::Unroll { axis, factor } => {
            let factor = factor.as_ref().map_or(Some(8), half)?;
            Directive::Unroll { axis: axis.clone(), factor: Some(factor) }
        }
        Directive::Vectorize { axis, width } => {
            Directive::Vectorize { axis: axis.clone(), width: half(width)? }
        }
        Directive::Warps { axis, count } => Directive::Warps { axis: axis.clone(), count: count * 2 },
        _ => return None,
    })
}

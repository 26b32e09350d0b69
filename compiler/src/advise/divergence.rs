//! W0607: the lanes of a warp part at a branch or a loop, so that some wait for the others.

use super::finding::{Finding, Gain};
use super::mends::Proposal;
use super::strided::LANES;
use super::subject::Modelled;
use crate::diagnostic::codes;
use crate::ir::op::Opcode;
use crate::ir::schedule::Directive;

pub(super) fn find(modelled: &Modelled<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for launch in &modelled.launches {
        for branch in &launch.branches {
            let place = modelled.kernel.insts[branch.inst].span;
            let known = found.iter().any(|known| known.place == place);
            // Not the guards at the edges of a grid, and not what costs little.
            if known || branch.divergent < 0.5 * branch.runs || branch.lost < 0.1 * launch.instructions {
                continue;
            }
            let is_if = modelled.kernel.insts[branch.inst].opcode == Opcode::If;
            found.push(Finding {
                code: codes::W0607,
                place,
                span: place,
                about: String::new(),
                message: format!(
                    "the lanes of a warp part here, and wait for each other in {:.0}% of the kernel's instructions",
                    100.0 * branch.lost / launch.instructions
                ),
                label: if is_if {
                    "both sides run one after the other, each for some of the lanes".to_string()
                } else {
                    "lanes run different numbers of rounds, and all take as long as the longest".to_string()
                },
                notes: Vec::new(),
                proposals: proposals(modelled),
                gain: Gain::Lost,
            });
        }
    }
    found
}

/// The user's directives that say where lanes go, and the other orders of the axes.
fn proposals(modelled: &Modelled<'_>) -> Vec<Proposal> {
    let mut proposals = vec![Proposal::Rechoose(LANES)];
    let schedule = &modelled.kernel.schedule;
    if schedule.has_order() {
        return proposals;
    }
    let order = schedule.choices.iter().find_map(|choice| match &choice.directive {
        Directive::Order(names) if choice.reproducible => Some(names),
        _ => None,
    });
    for last in order.into_iter().flat_map(|names| names.iter().rev().skip(1)) {
        let names = order.into_iter().flatten().filter(|name| *name != last);
        let names: Vec<&str> = names.map(String::as_str).chain([last.as_str()]).collect();
        proposals.push(Proposal::Directive(format!("order {}", names.join(", "))));
    }
    proposals
}

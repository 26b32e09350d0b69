//! W0605: an array of a thread is kept in memory, since a subscript of it changes from round to round of a loop.
//!
//! Registers have no numbers that change. The assembler unrolls some loops by itself: only what it says counts.

use super::finding::{Finding, Gain};
use super::mends::Proposal;
use super::subject::Modelled;
use super::text::accessed;
use crate::analysis::model::{AccessCost, LaunchCost, Space};
use crate::diagnostic::codes;
use crate::ir::FoundOwners;
use crate::ir::entities::{Buffer, Inst, Value};
use crate::ir::kernel::{Definition, Payload};
use crate::ir::op::{Effect, Opcode};

pub(super) fn find(modelled: &Modelled<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for launch in &modelled.launches {
        let kept = modelled.usage(launch).map_or(0, |usage| u64::from(usage.array_bytes()));
        let mut arrays: Vec<Buffer> = Vec::new();
        for access in launch.accesses.iter().filter(|access| access.space == Space::Local) {
            if arrays.contains(&access.buffer) {
                continue;
            }
            arrays.push(access.buffer);
            let known = |known: &Finding| known.about == modelled.buffer(access.buffer).name;
            let bytes = modelled.bytes(access.buffer);
            if bytes.is_some_and(|bytes| 0 < bytes && bytes <= kept) && !found.iter().any(known) {
                found.extend(finding(modelled, launch, access.buffer, kept));
            }
        }
    }
    found
}

/// A loop whose index is part of a subscript.
#[derive(Clone, PartialEq)]
struct Rounds {
    axis: String,
    count: i128,
}

/// `None` where a subscript depends on what no loop counts: no directive takes that away.
fn finding(modelled: &Modelled<'_>, launch: &LaunchCost, array: Buffer, kept: u64) -> Option<Finding> {
    let mut loops: Vec<Rounds> = Vec::new();
    let mut worst: Option<(&AccessCost, usize)> = None;
    for access in launch.accesses.iter().filter(|access| access.buffer == array) {
        for (at, subscript) in modelled.subscripts(access).iter().enumerate() {
            if modelled.kernel.int_of(*subscript).is_some() {
                continue;
            }
            let own = rounds(modelled, *subscript)?;
            own.into_iter().for_each(|one| {
                if !loops.contains(&one) {
                    loops.push(one)
                }
            });
            // The one that costs most is shown.
            if worst.is_none_or(|(known, _)| known.requests < access.requests) {
                worst = Some((access, at));
            }
        }
    }
    let (access, at) = worst?;
    let (name, place) = (&modelled.buffer(array).name, span(modelled, access));
    let text = accessed(modelled.source, place, name);
    let what = text.as_ref().map_or(name.as_str(), |text| modelled.source.slice(text.span));
    let subscript = text.as_ref().and_then(|text| text.subscripts.get(at));
    let subscript = subscript.map_or_else(|| format!("subscript {}", at + 1), |text| format!("`{text}`"));
    let names: Vec<String> = loops.iter().map(|one| format!("`{}`", one.axis)).collect();
    let (s, names) = (if names.len() == 1 { "" } else { "s" }, names.join(", "));
    Some(Finding {
        code: codes::W0605,
        place,
        span: text.as_ref().map_or(place, |text| text.span),
        about: name.clone(),
        message: format!(
            "`{what}` is in memory: the assembler keeps {kept} bytes of a thread's arrays there"
        ),
        label: format!(
            "{subscript} changes from round to round (of the loop{s} over {names}), and registers have no numbers that change"
        ),
        notes: Vec::new(),
        proposals: proposals(&loops),
        gain: Gain::Local,
    })
}

/// Inner loops first: they are the short ones, and often enough.
fn proposals(loops: &[Rounds]) -> Vec<Proposal> {
    let whole = |one: &Rounds| format!("{}: {}", one.axis, one.count);
    let mut proposals = vec![Proposal::Rechoose(&["unroll"])];
    for one in loops.iter().rev() {
        let line = format!("unroll {}", whole(one));
        proposals.push(Proposal::Replace { word: "unroll", about: one.axis.clone(), line: line.clone() });
        proposals.push(Proposal::Directive(line));
    }
    if loops.len() > 1 {
        let all: Vec<String> = loops.iter().map(whole).collect();
        proposals.push(Proposal::Directive(format!("unroll {}", all.join(", "))));
    }
    proposals
}

fn span(modelled: &Modelled<'_>, access: &AccessCost) -> crate::source::Span {
    modelled.kernel.insts[access.inst].span
}

/// The loops of which a subscript is computed, where these and literals are all that it is computed from and literals say
/// how often they run.
fn rounds(modelled: &Modelled<'_>, subscript: Value) -> Option<Vec<Rounds>> {
    let kernel = modelled.kernel;
    let mut owners = FoundOwners::default();
    let (mut loops, mut seen, mut open) = (Vec::new(), Vec::new(), vec![subscript]);
    while let Some(value) = open.pop() {
        if kernel.int_of(value).is_some() || seen.contains(&value) {
            continue;
        }
        seen.push(value);
        match kernel.values[value].definition {
            Definition::Result(inst, _) => {
                let data = &kernel.insts[inst];
                let pure = data.opcode.info().effect == Effect::Pure && data.regions.is_empty();
                let computed = pure && !matches!(data.opcode, Opcode::ThreadIndex | Opcode::BlockIndex);
                if !computed || matches!(data.payload, Payload::Symbol(_)) {
                    return None;
                }
                open.extend(&data.arguments);
            }
            Definition::Param(block, position) => {
                let one = counted(modelled, owners.of(kernel, block)?, position.into())?;
                if !loops.contains(&one) {
                    loops.push(one);
                }
            }
        }
    }
    Some(loops)
}

/// A loop's index, where literals say how often it runs.
fn counted(modelled: &Modelled<'_>, inst: Inst, position: usize) -> Option<Rounds> {
    let kernel = modelled.kernel;
    let data = &kernel.insts[inst];
    let (Payload::Loop { axes } | Payload::Reduce { axes, .. }) = &data.payload else { return None };
    let [axis] = axes.as_slice() else { return None };
    let (low, high) = *kernel.loop_bounds(inst).get(position)?;
    let step = if data.opcode == Opcode::For { kernel.int_of(data.arguments[2])? } else { 1 };
    let extent = kernel.int_of(high)? - kernel.int_of(low)?;
    (step > 0 && extent > 0)
        .then(|| Rounds { axis: kernel.axes[*axis].name.clone(), count: (extent + step - 1) / step })
}

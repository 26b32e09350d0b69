//! `atomic`: the pieces of a reduction meet in the result itself.

use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Combiner, Opcode};
use crate::ir::schedule::{Directive, Refusal, RefusalKind};

/// The store that a reduction's pieces are combined into.
pub struct Target {
    pub store: Inst,
    pub combiner: Combiner,
}

/// Whether the schedule says `atomic` of any array.
pub fn is_said(kernel: &Kernel) -> bool {
    kernel.schedule.directives.iter().any(|known| matches!(known.directive, Directive::Atomic { .. }))
}

/// The store of a reduction's result, if the schedule says `atomic` of its array; where it does and that cannot be,
/// the directive is refused. `again` says whether values can be computed in the launch of the pieces too; the reduction
/// must be `alone` in its launch.
pub fn target(
    kernel: &mut Kernel,
    reduce: Inst,
    alone: bool,
    again: impl Fn(&Kernel, Value) -> bool,
) -> Option<Target> {
    if !is_said(kernel) {
        return None;
    }
    let Payload::Reduce { combiners, .. } = &kernel.insts[reduce].payload else { return None };
    let (combiners, results) = (combiners.clone(), kernel.insts[reduce].results.clone());
    let mut users: Vec<Inst> = Vec::new();
    for launch in kernel.launches.keys() {
        kernel.walk(kernel.launches[launch].body, &mut |_, inst| {
            if kernel.insts[inst].arguments.iter().any(|value| results.contains(value)) {
                users.push(inst);
            }
        });
    }
    let stored: Vec<String> = users
        .iter()
        .filter_map(|inst| match kernel.insts[*inst].payload {
            Payload::Access { buffer, .. } => Some(kernel.buffers[buffer].name.clone()),
            _ => None,
        })
        .filter(|name| kernel.schedule.atomic(name))
        .collect();
    let name = stored.into_iter().next()?;
    let refusal = match (users.as_slice(), combiners.as_slice()) {
        ([store], [combiner]) if combiner.opcode().is_some() => {
            let arguments = &kernel.insts[*store].arguments;
            let (_, place) = arguments.split_last()?;
            if !alone {
                "its launch has other reductions, which combine their pieces after it"
            } else if !place.iter().all(|value| again(kernel, *value)) {
                "where it is stored depends on more than the loop's indices"
            } else if kernel.insts[*store].opcode == Opcode::Store && stores_whole(kernel, *store) {
                kernel.schedule.done(|known| matches!(known, Directive::Atomic { array } if *array == name));
                return Some(Target { store: *store, combiner: *combiner });
            } else {
                "its elements are narrower than what is combined, so every piece would be rounded"
            }
        }
        _ => "more is done with the reduction than one store",
    };
    let help = "it works where a sum or the like is stored as it is, in 32 or 64 bits";
    let refusal = Refusal::new(RefusalKind::DoesNotFit, refusal, help);
    kernel.schedule.refuse(|known| matches!(known, Directive::Atomic { array } if *array == name), &refusal);
    None
}

/// Whether memory has the value as wide as it is computed.
fn stores_whole(kernel: &Kernel, store: Inst) -> bool {
    let data = &kernel.insts[store];
    let Payload::Access { buffer, leaf } = data.payload else { return false };
    let leaf = &kernel.buffers[buffer].element.leaves[leaf as usize];
    let value = data.arguments.last().map(|value| kernel.value_type(*value));
    leaf.extents.is_empty() && leaf.scalar != Scalar::Bool && Some(leaf.scalar) == value
}

/// Appends the combining of a value into the place that the store writes. `indices` are its subscripts here.
pub fn combine(emit: &mut Emit<'_>, target: &Target, indices: &[Value], value: Value) {
    let Payload::Access { buffer, leaf } = emit.kernel.insts[target.store].payload else { return };
    let payload = Payload::Atomic { buffer, leaf, op: target.combiner };
    let arguments: Vec<Value> = indices.iter().copied().chain([value]).collect();
    emit.inst(Opcode::Atomic, payload, &arguments);
}

//! What a loop combines into one place in many iterations, and what it writes beside that.

use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Combiner, Opcode};
use crate::ir::schedule::Directive;
use crate::manifest::Expr;
use crate::mutants::mutant;
use crate::passes::accumulate::has_atomics;
use crate::passes::rematerialize::is_rematerializable;
use std::collections::BTreeSet;

/// A place is made of its indices in so many steps at most.
const DEPTH: u32 = 16;

/// A combining assignment that many iterations of a loop make in one place.
pub struct Found {
    pub forall: Inst,
    pub atomic: Inst,
    /// The `if` that it stands under.
    pub under: Option<Inst>,
    /// The place may lie outside of the array where that `if` never holds.
    pub outside: bool,
    pub buffer: Buffer,
    pub leaf: u32,
    pub combiner: Combiner,
    pub subscripts: Vec<Value>,
    pub value: Value,
    /// For each axis of the loop, whether the place does not depend on it.
    pub reduced: Vec<bool>,
}

/// What a launch combines, if that is all it does.
pub fn find(kernel: &Kernel, launch: Launch) -> Option<Found> {
    let forall = kernel.only_loop(launch)?;
    match writes(kernel, kernel.insts[forall].regions[0]).as_slice() {
        [write] => combined(kernel, launch, forall, *write),
        _ => None,
    }
}

/// What a loop's body writes, and the blocks where it does.
pub fn writes(kernel: &Kernel, body: Block) -> Vec<(Block, Inst)> {
    let mut writes = Vec::new();
    kernel.walk(body, &mut |block, inst| {
        if kernel.insts[inst].opcode.info().effect.shows() {
            writes.push((block, inst));
        }
    });
    writes
}

/// An instruction that writes as a combining assignment that many iterations make in one place, if it is an atomic of the
/// body or of an `if` in it.
pub fn combined(
    kernel: &Kernel,
    launch: Launch,
    forall: Inst,
    (block, atomic): (Block, Inst),
) -> Option<Found> {
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return None };
    let body = kernel.insts[forall].regions[0];
    let holds = |inst: &&Inst| {
        let data = &kernel.insts[**inst];
        data.opcode == Opcode::If && data.regions.contains(&block)
    };
    let under = match block == body {
        true => None,
        false => Some(*kernel.blocks[body].insts.iter().find(holds)?),
    };
    let data = &kernel.insts[atomic];
    let Payload::Atomic { buffer, leaf, op } = data.payload else { return None };
    let (value, subscripts) = data.arguments.split_last()?;
    let mut read = false;
    kernel.walk(body, &mut |_, inst| {
        read |= matches!(kernel.insts[inst].payload, Payload::Access { buffer: other, .. } if other == buffer);
    });
    let params = &kernel.blocks[body].params;
    if !has_atomics(kernel, buffer)
        || read
        || !subscripts.iter().all(|value| is_rematerializable(kernel, *value, params, DEPTH))
    {
        return None;
    }
    let mut needed = BTreeSet::new();
    subscripts.iter().for_each(|value| reach(kernel, *value, params, &mut needed));
    let needs = |param: &Value| {
        mutant!(
            "reduce_atomics: a place that is made of an index does not depend on it",
            needed.contains(param),
            subscripts.contains(param),
        )
    };
    let reduced: Vec<bool> = params.iter().map(|param| !needs(param)).collect();
    let names = axes.iter().zip(&reduced).filter(|(_, reduced)| **reduced);
    let names: Vec<&str> = names.map(|(axis, _)| kernel.axes[*axis].name.as_str()).collect();
    let shaped = names.iter().any(|name| shaped(kernel, launch, name));
    let outside = under.is_some() && !is_inside(kernel, forall, (buffer, leaf), subscripts);
    let subscripts = subscripts.to_vec();
    (!names.is_empty() && !shaped).then_some(Found {
        forall,
        atomic,
        under,
        outside,
        buffer,
        leaf,
        combiner: op,
        subscripts,
        value: *value,
        reduced,
    })
}

/// Whether the schedule shapes the loop over an axis: where other loops over that name are, it may mean these.
fn shaped(kernel: &Kernel, launch: Launch, name: &str) -> bool {
    let said = kernel.schedule.directives.iter().any(|known| match &known.directive {
        Directive::Order(axes) => axes.iter().any(|axis| axis == name),
        Directive::Tile { axis, .. } | Directive::PerThread { axis, .. } | Directive::Warps { axis, .. } => {
            axis == name
        }
        _ => false,
    });
    if !said {
        return false;
    }
    let mut elsewhere = false;
    for other in kernel.launches.keys().filter(|other| *other != launch) {
        kernel.walk(kernel.launches[other].body, &mut |_, inst| {
            let data = &kernel.insts[inst];
            if let (Opcode::Forall, Payload::Loop { axes }) = (data.opcode, &data.payload) {
                elsewhere |= axes.iter().any(|axis| kernel.axes[*axis].name == name);
            }
        });
    }
    !elsewhere
}

/// Whether the place lies in the array for all iterations, whether the condition holds or not.
fn is_inside(kernel: &Kernel, forall: Inst, (buffer, leaf): (Buffer, u32), subscripts: &[Value]) -> bool {
    let data = &kernel.buffers[buffer];
    let inner = data.element.leaves[leaf as usize].extents.iter().map(|extent| Expr::Int(*extent as i64));
    let extents = data.extents.iter().cloned().chain(inner);
    let params = &kernel.blocks[kernel.insts[forall].regions[0]].params;
    let bounds = kernel.loop_bounds(forall);
    subscripts.iter().zip(extents).all(|(subscript, extent)| {
        match params.iter().position(|param| param == subscript) {
            Some(axis) => {
                let (low, high) = bounds[axis];
                kernel.int_of(low).is_some_and(|low| low >= 0) && kernel.symbolic(high) == Some(extent)
            }
            None => match (kernel.int_of(*subscript), extent) {
                (Some(at), Expr::Int(extent)) => (0..i128::from(extent)).contains(&at),
                _ => false,
            },
        }
    })
}

/// The parameters that a value is made of.
fn reach(kernel: &Kernel, value: Value, params: &[Value], needed: &mut BTreeSet<Value>) {
    if params.contains(&value) {
        needed.insert(value);
    } else if let Some(data) = kernel.definition_data(value) {
        data.arguments.iter().for_each(|argument| reach(kernel, *argument, params, needed));
    }
}

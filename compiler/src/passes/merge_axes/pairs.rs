//! Which axes of loops, and of arrays, belong together.

use crate::data::Scalar;
use crate::ir::entities::{Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::{Constant, Opcode};
use crate::mutants::mutant;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// An axis of an array, and the next one.
type Dimension = (Buffer, usize);

/// A loop, and its axes by their places: the outer one of the two, and the inner one.
type Axes = (Inst, usize, usize);

/// Axes of arrays and of loops.
type Together = (BTreeSet<Dimension>, BTreeSet<Axes>);

/// What becomes one together.
pub struct Pairs {
    /// The later axes of an array first.
    pub dimensions: Vec<Dimension>,
    /// Of each access, the subscript that goes, into the one behind it where it is a literal; the later ones first.
    pub accesses: Vec<(Inst, usize)>,
    pub loops: Vec<Axes>,
}

/// Where the indices of loops are used.
struct Uses {
    /// Of each index, the loop and the axis.
    owners: FxHashMap<Value, (Inst, usize)>,
    accesses: Vec<(Inst, Buffer)>,
    /// Of each index, the accesses of which it is a subscript, and which one.
    subscripts: FxHashMap<Value, Vec<(Inst, usize)>>,
    /// Indices that something else uses.
    elsewhere: BTreeSet<Value>,
}

/// The first axes that can be made one, with all that become one with them.
pub fn find(kernel: &Kernel) -> Option<Pairs> {
    let uses = uses(kernel);
    let mut dimensions: BTreeSet<Dimension> = BTreeSet::new();
    for (_, buffer) in &uses.accesses {
        let data = &kernel.buffers[*buffer];
        if matches!(data.kind, BufferKind::Argument { .. } | BufferKind::Scratch) {
            dimensions.extend((1..data.extents.len()).map(|at| (*buffer, at - 1)));
        }
    }
    // What does not fit goes, until all that is left fits.
    while !dimensions.is_empty() {
        let misfit = |(inst, buffer): &(Inst, Buffer)| {
            let of_it = dimensions.range((*buffer, 0)..(*buffer, usize::MAX));
            let fits = |at: usize| match axes(kernel, &uses, *inst, at) {
                Some(axes) => belong(kernel, &uses, axes, &dimensions),
                None => picks(kernel, *inst, at),
            };
            of_it.filter(|known| !fits(known.1)).copied().collect::<Vec<_>>()
        };
        let misfits: Vec<Dimension> = uses.accesses.iter().flat_map(misfit).collect();
        if misfits.is_empty() {
            break;
        }
        dimensions.retain(|known| !misfits.contains(known));
    }
    let is_picked = |(together, _): &Together| {
        uses.accesses.iter().any(|(inst, buffer)| {
            let mut places = together.iter().filter(|known| known.0 == *buffer);
            places.any(|known| axes(kernel, &uses, *inst, known.1).is_none())
        })
    };
    // Sums gain where rows are picked by literals elsewhere: their tiles have one axis.
    let has_sum = |(inst, ..): &Axes| kernel.blocks_in(kernel.insts[*inst].regions[0]).len() > 1;
    let all = dimensions.iter().map(|first| joined(kernel, &uses, &dimensions, *first));
    let (picked, plain): (Vec<Together>, Vec<Together>) =
        all.filter(|(_, loops)| !loops.is_empty()).partition(is_picked);
    let gains = |(_, loops): &Together| loops.iter().all(has_sum);
    let (together, loops) = plain.into_iter().chain(picked.into_iter().filter(gains)).next()?;
    let of = |(inst, buffer): &(Inst, Buffer)| {
        let places = together.iter().rev().filter(|known| known.0 == *buffer).map(|known| known.1);
        places.map(|at| (*inst, at)).collect::<Vec<_>>()
    };
    let accesses = uses.accesses.iter().flat_map(of).collect();
    Some(Pairs {
        dimensions: together.into_iter().rev().collect(),
        accesses,
        loops: loops.into_iter().collect(),
    })
}

/// The axes of arrays, and of loops, that become one with one.
fn joined(kernel: &Kernel, uses: &Uses, dimensions: &BTreeSet<Dimension>, first: Dimension) -> Together {
    let mut together = BTreeSet::from([first]);
    let mut loops: BTreeSet<Axes> = BTreeSet::new();
    loop {
        let known = (together.len(), loops.len());
        for (inst, buffer) in &uses.accesses {
            for at in 0..kernel.buffers[*buffer].extents.len().saturating_sub(1) {
                let Some(axes) = axes(kernel, uses, *inst, at) else { continue };
                if dimensions.contains(&(*buffer, at))
                    && (together.contains(&(*buffer, at)) || loops.contains(&axes))
                {
                    together.insert((*buffer, at));
                    loops.insert(axes);
                }
            }
        }
        if known == (together.len(), loops.len()) {
            return (together, loops);
        }
    }
}

/// Whether an access picks a row by a literal: its place along both axes is the literal's row, and what is along the inner one.
fn picks(kernel: &Kernel, inst: Inst, at: usize) -> bool {
    kernel.int_of(kernel.insts[inst].arguments[at]).is_some()
}

fn uses(kernel: &Kernel) -> Uses {
    let mut uses = Uses {
        owners: FxHashMap::default(),
        accesses: Vec::new(),
        subscripts: FxHashMap::default(),
        elsewhere: BTreeSet::new(),
    };
    kernel.walk_all(&mut |_, inst| {
        let data = &kernel.insts[inst];
        if matches!(data.opcode, Opcode::Forall | Opcode::Reduce) {
            let params = kernel.blocks[data.regions[0]].params.iter();
            uses.owners.extend(params.enumerate().map(|(at, param)| (*param, (inst, at))));
        }
        let buffer = match data.payload {
            Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } => Some(buffer),
            _ => None,
        };
        uses.accesses.extend(buffer.map(|buffer| (inst, buffer)));
        let rank = buffer.map_or(0, |buffer| kernel.buffers[buffer].extents.len());
        for (at, value) in data.arguments.iter().enumerate() {
            if at < rank {
                uses.subscripts.entry(*value).or_default().push((inst, at));
            } else {
                uses.elsewhere.insert(*value);
            }
        }
    });
    uses
}

/// The axes of which a subscript of an access and the next one are the indices.
fn axes(kernel: &Kernel, uses: &Uses, inst: Inst, at: usize) -> Option<Axes> {
    let arguments = &kernel.insts[inst].arguments;
    let (outer, inner) = (uses.owners.get(&arguments[at])?, uses.owners.get(&arguments[at + 1])?);
    let one_loop = mutant!("merge_axes: axes of different loops", outer.0 == inner.0, true);
    (one_loop && outer.1 != inner.1).then_some((outer.0, outer.1, inner.1))
}

/// Whether the indices of two axes are used as neighbours alone, in arrays of which those axes can become one, from the
/// first to the last element.
fn belong(
    kernel: &Kernel,
    uses: &Uses,
    (inst, outer, inner): Axes,
    dimensions: &BTreeSet<Dimension>,
) -> bool {
    let data = &kernel.insts[inst];
    let name = &kernel.axes[data.payload.axes()[outer]].name;
    if kernel.schedule.speaks_of(name) {
        return false;
    }
    let params = &kernel.blocks[data.regions[0]].params;
    let pair = [params[outer], params[inner]];
    let alone = pair.iter().all(|index| !uses.elsewhere.contains(index));
    if !mutant!("merge_axes: an index is used by itself", alone, true) {
        return false;
    }
    let beside = |inst: &Inst, at: usize| {
        let arguments = &kernel.insts[*inst].arguments;
        let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = kernel.insts[*inst].payload
        else {
            return false;
        };
        arguments[at] == pair[0]
            && arguments.get(at + 1) == Some(&pair[1])
            && dimensions.contains(&(buffer, at))
            && is_whole(kernel, uses, pair[0], (buffer, at))
            && is_whole(kernel, uses, pair[1], (buffer, at + 1))
    };
    let none = Vec::new();
    let of = |index: Value| uses.subscripts.get(&index).unwrap_or(&none).iter();
    of(pair[0]).all(|(inst, at)| beside(inst, *at))
        && of(pair[1]).all(|(inst, at)| *at > 0 && beside(inst, *at - 1))
}

/// Whether an index runs over the whole extent of an array, which cannot be negative.
fn is_whole(kernel: &Kernel, uses: &Uses, index: Value, (buffer, at): Dimension) -> bool {
    let Some((inst, axis)) = uses.owners.get(&index) else { return false };
    let Some((low, high)) = kernel.loop_bounds(*inst).get(*axis).copied() else { return false };
    let extent = &kernel.buffers[buffer].extents[at];
    let whole = kernel.symbolic(high).is_some_and(|high| high == *extent) && kernel.never_negative(extent);
    whole && kernel.constant_of(low) == Some(Constant::Int(Scalar::I64, 0))
}

//! `vectorize`: accesses to neighbouring scalars become one access of up to 16 bytes.
//!
//! ```text
//! v5: f32 = load buf0[v1]                 v5: f32, v6: f32 = load_vector buf0[v1]
//! v2 = add v1, 1                     →
//! v6: f32 = load buf0[v2]
//! ```
//!
//! A warp's request then moves four times the bytes for one instruction. Loads move up to the first of them,
//! stores down to the last.
//!
//! # Preconditions
//!
//! The accesses stand in one block; the address of the first is proved to be a multiple of the whole's size (arrays
//! start at multiples of 256 bytes); nothing between them may touch what they touch: for loads no write to the
//! buffer, for stores neither reads of the buffer nor other writes to it. Literals in last axes of known extents are
//! constants of the address. A vector of which more than half is loaded may bring what lies between, or behind in the same row
//! of such axes, if nothing is conditional and the array is an input. Loads that are the same in every iteration of a loop stay
//! scalar where a vector's registers would be in the way (`banks.rs`). Loads of neighbours that each stand in a branch of the
//! same condition are conditional loads first (`branches.rs`).

mod banks;
mod branches;
mod candidate;

use super::pass::{Changed, Pass, PassContext};
use crate::analysis::Multiples;
use crate::data::{LeafPlaces, Scalar};
use crate::ir::entities::{Block, Buffer, Inst};
use crate::ir::kernel::{BufferKind, InstData, Kernel, Payload, Phase, Phases, Short};
use crate::ir::op::{Constant, Opcode};
use crate::ir::{Parents, Substitution};
use crate::mutants::mutant;
use branches::into_conditional_loads;
use candidate::{Candidate, Part, Place};

use crate::manifest::{Direction, Expr, Layout};

pub struct Vectorize;

impl Pass for Vectorize {
    fn name(&self) -> &str {
        "vectorize"
    }

    fn reason(&self) -> &str {
        "makes one access of up to 16 bytes of accesses to neighbours"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Staged])
    }

    fn runs_after(&self) -> &[&str] {
        &["threads"]
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        // As it stands before anything is merged; for the first block in which something may be.
        let mut parents = None;
        let mut replaced = Substitution::new();
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            for block in kernel.blocks_in(kernel.launches[launch].body) {
                changed |= into_conditional_loads(kernel, block);
            }
            let mut multiples = Multiples::new(kernel, launch);
            // From the innermost outwards: what is loaded before a loop looks at what the loop loads.
            for block in kernel.blocks_in(kernel.launches[launch].body).into_iter().rev() {
                changed |= merge(kernel, block, &mut parents, &mut multiples, &mut replaced);
            }
        }
        if changed {
            kernel.substitute(&replaced);
        }
        changed.into()
    }
}

/// Merges the accesses of a block; whether there was anything to merge. `values` is what the results of old loads are
/// to be replaced by.
fn merge(
    kernel: &mut Kernel,
    block: Block,
    parents: &mut Option<Parents>,
    multiples: &mut Multiples,
    values: &mut Substitution,
) -> bool {
    let insts = &kernel.blocks[block].insts;
    let mut found = Vec::new();
    for (at, inst) in insts.iter().enumerate() {
        let Some(candidate) = candidate(kernel, values, *inst, at) else { continue };
        if found.is_empty() {
            found.reserve(insts.len() - at);
        }
        found.push(candidate);
    }
    let found = with_neighbours(found);
    if found.is_empty() {
        return false;
    }
    let insts = insts.clone();
    let parents = parents.get_or_insert_with(|| kernel.parents());
    let runs = runs(found, &effects(kernel, values, &insts));
    let mut parts: Vec<_> = runs.iter().flat_map(|run| split(kernel, run, multiples)).collect();
    banks::leave_scalar(kernel, block, parents, values, &mut parts);
    let mut replaced: Vec<(usize, Inst, Vec<usize>)> = Vec::new();
    for part in &parts {
        let places = part.candidates.iter().map(|candidate| candidate.at);
        let anchor = if part.place().stores { places.clone().max() } else { places.clone().min() };
        let Some(anchor) = anchor else { continue };
        replaced.push((anchor, merged(kernel, part, values), places.collect()));
    }
    let changed = !replaced.is_empty();
    if changed {
        rebuild(kernel, block, &insts, &replaced);
    }
    changed
}

/// Those of which others of their place lie one scalar apart: of places without any there is nothing to merge.
fn with_neighbours(mut found: Vec<Candidate>) -> Vec<Candidate> {
    if found.len() < 2 {
        return Vec::new();
    }
    let mut places: Vec<(usize, Vec<i64>)> = Vec::new();
    let mut place_of = Vec::with_capacity(found.len());
    for (at, candidate) in found.iter().enumerate() {
        let known = places.iter().rposition(|(first, _)| found[*first].place == candidate.place);
        let known = known.unwrap_or_else(|| {
            places.push((at, Vec::new()));
            places.len() - 1
        });
        places[known].1.push(candidate.offset);
        place_of.push(known);
    }
    let has_neighbours = |(first, mut offsets): (usize, Vec<i64>)| {
        let size = found[first].place.scalar.size() as i64;
        offsets.sort_unstable();
        offsets.dedup();
        offsets.windows(2).any(|pair| pair[1] - pair[0] == size)
    };
    let wanted: Vec<bool> = places.into_iter().map(has_neighbours).collect();
    let mut place_of = place_of.into_iter();
    found.retain(|_| place_of.next().is_some_and(|place| wanted[place]));
    found
}

/// Which buffers an instruction, with everything inside it, reads and writes.
struct MemoryEffects {
    reads: Vec<Buffer>,
    writes: Vec<Buffer>,
    /// Barriers and the like: everything ends.
    all: bool,
    /// The plain access that the instruction itself is.
    own: Option<Place>,
}

impl MemoryEffects {
    /// Whether a candidate that stands before may not be merged with one that comes after.
    fn conflicts_with(&self, place: &Place) -> bool {
        if self.all {
            return true;
        }
        // Accesses at the same place with other constants are the very ones that are merged.
        if self.own.as_ref() == Some(place) {
            return false;
        }
        if place.stores {
            self.reads.contains(&place.buffer) || self.writes.contains(&place.buffer)
        } else {
            mutant!("vectorize: a load over a store", self.writes.contains(&place.buffer), false)
        }
    }
}

/// What the instructions of a block touch, of those that touch anything, with their positions.
fn effects(kernel: &Kernel, values: &Substitution, insts: &[Inst]) -> Vec<(usize, MemoryEffects)> {
    let touches = |inst: &Inst| {
        let data = &kernel.insts[*inst];
        let access = matches!(data.payload, Payload::Access { .. } | Payload::Atomic { .. });
        access || !data.regions.is_empty() || data.opcode.is_barrier()
    };
    let places = insts.iter().enumerate().filter(|(_, inst)| touches(inst));
    places.map(|(at, inst)| (at, effects_of(kernel, values, *inst))).collect()
}

fn effects_of(kernel: &Kernel, values: &Substitution, inst: Inst) -> MemoryEffects {
    let mut effects = MemoryEffects { reads: Vec::new(), writes: Vec::new(), all: false, own: None };
    let mut look =
        |kernel: &Kernel, inst: Inst| match (&kernel.insts[inst].payload, kernel.insts[inst].opcode) {
            (Payload::Access { buffer, .. }, opcode) if opcode.is_load() => effects.reads.push(*buffer),
            (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }, _) => {
                effects.writes.push(*buffer)
            }
            (_, opcode) if opcode.is_barrier() => effects.all = true,
            _ => {}
        };
    look(kernel, inst);
    for region in &kernel.insts[inst].regions {
        kernel.walk(*region, &mut |_, inst| look(kernel, inst));
    }
    effects.own = candidate(kernel, values, inst, 0).map(|candidate| candidate.place);
    effects
}

/// An access that may be merged; most instructions are none.
fn candidate(kernel: &Kernel, values: &Substitution, inst: Inst, at: usize) -> Option<Candidate> {
    match kernel.insts[inst].opcode {
        Opcode::Load | Opcode::LoadIf => scalar_access(kernel, values, inst, at, false),
        Opcode::Store => scalar_access(kernel, values, inst, at, true),
        _ => None,
    }
}

fn scalar_access(
    kernel: &Kernel,
    values: &Substitution,
    inst: Inst,
    at: usize,
    stores: bool,
) -> Option<Candidate> {
    let data = &kernel.insts[inst];
    let Payload::Access { buffer, leaf } = data.payload else { return None };
    let buffer_data = &kernel.buffers[buffer];
    let leaf_data = &buffer_data.element.leaves[leaf as usize];
    let rank = buffer_data.extents.len();
    let usable = rank > 0
        && leaf_data.extents.is_empty()
        && !matches!(buffer_data.kind, BufferKind::Private | BufferKind::Constant(_));
    let places = LeafPlaces::new(&buffer_data.element, buffer_data.layout, leaf as usize);
    if !usable || places.group.is_some() {
        return None;
    }
    let mut indices = Short::from_slice(&data.arguments[..rank]);
    let (mut unit, mut offset) = (i64::try_from(places.element).ok()?, places.start as i64);
    // Behind a literal in the last axis, of known extent, rows lie side by side as well.
    while let Some(at) = indices.len().checked_sub(1) {
        let (root, literal) = kernel.root_and_literal(indices[at]);
        offset = offset.checked_add(literal.checked_mul(unit)?)?;
        if let Some(root) = root {
            indices[at] = root;
            break;
        }
        indices.pop();
        let Expr::Int(extent) = buffer_data.extents[at] else { break };
        unit = unit.checked_mul(extent)?;
    }
    for index in &mut indices {
        *index = values[*index].expand().unwrap_or(*index);
    }
    let conditional = data.opcode == Opcode::LoadIf;
    let condition = data.arguments.last().filter(|_| conditional);
    let condition = condition.map(|value| values[*value].expand().unwrap_or(*value));
    let (scalar, row) = (leaf_data.scalar, unit);
    let place = Place { buffer, leaf: places.allocation as u32, indices, row, scalar, stores, condition };
    Some(Candidate { at, inst, place, offset })
}

/// Candidates of one place that nothing disturbs between, in the order of their addresses.
fn runs(candidates: Vec<Candidate>, effects: &[(usize, MemoryEffects)]) -> Vec<Vec<Candidate>> {
    let mut runs: Vec<Run> = Vec::new();
    for candidate in candidates {
        let known = runs.iter_mut().rev().find(|run| run.candidates[0].place == candidate.place);
        if let Some(run) = known
            && run.is_free_of_conflicts(effects, &candidate)
        {
            run.candidates.push(candidate);
            continue;
        }
        let checked = effects.partition_point(|(at, _)| *at <= candidate.at);
        runs.push(Run { candidates: vec![candidate], checked, ended: false });
    }
    let sorted = runs.into_iter().map(|mut run| {
        run.candidates.sort_by_key(|candidate| (candidate.offset, candidate.at));
        run.candidates
    });
    sorted.collect()
}

/// Candidates of one place, in the order of the block.
struct Run {
    candidates: Vec<Candidate>,
    /// How many of what the block touches have been looked at: those before the last candidate.
    checked: usize,
    /// Whether something among them ends the run.
    ended: bool,
}

impl Run {
    /// Whether nothing disturbs between the run and a candidate that comes after.
    fn is_free_of_conflicts(&mut self, effects: &[(usize, MemoryEffects)], next: &Candidate) -> bool {
        while let Some((_, more)) = effects.get(self.checked).filter(|(at, _)| *at < next.at) {
            self.ended |= more.conflicts_with(&next.place);
            self.checked += 1;
        }
        // Two stores to one place stay in order.
        let twice = || self.candidates.iter().any(|candidate| candidate.offset == next.offset);
        !(self.ended || next.place.stores && twice())
    }
}

/// The parts of a run that become one access each: 16, 8, 4 or 2 neighbours at a proved address. Where most of a vector is
/// loaded, the others, which lie in the array as well, come with it.
fn split(kernel: &Kernel, run: &[Candidate], multiples: &mut Multiples) -> Vec<Part> {
    let place = &run[0].place;
    let size = place.scalar.size() as i64;
    let base = base_alignment(kernel, place, multiples);
    let brings_others = brings_others(kernel, place);
    let mut parts = Vec::new();
    let mut at = 0;
    'next: while at < run.len() {
        for width in [16usize, 8, 4, 2] {
            let bytes = width as u64 * size as u64;
            if bytes > 16 {
                continue;
            }
            let start = run[at].offset;
            let count = run[at..].partition_point(|candidate| candidate.offset < start + bytes as i64);
            let count = mutant!("vectorize: no neighbours", count, width.min(run.len() - at));
            let part = &run[at..at + count];
            let apart = |pair: &[Candidate]| {
                let distance = pair[1].offset - pair[0].offset;
                distance > 0 && distance % size == 0
            };
            let whole = count == width || {
                let end = start + (width as i64 - 1) * size;
                let last = run[run.len() - 1].offset;
                let inside = end <= last || end.div_euclid(place.row) == last.div_euclid(place.row);
                brings_others && 2 * count > width && inside
            };
            let fits = part.windows(2).all(apart) && whole;
            let base_fits = mutant!("vectorize: an address of any row", base.is_multiple_of(bytes), true);
            let first = start.rem_euclid(bytes as i64);
            if fits && base_fits && mutant!("vectorize: any first element", first == 0, true) {
                parts.push(Part { candidates: part.to_vec(), width });
                at += count;
                continue 'next;
            }
        }
        at += 1;
    }
    parts
}

/// Whether a load of a place may bring what nobody asks for: of an input, since another thread may write other arrays at the
/// same time, that is scalars of the place's type, one behind the other.
fn brings_others(kernel: &Kernel, place: &Place) -> bool {
    let buffer = &kernel.buffers[place.buffer];
    let leaves = &buffer.element.leaves;
    let is_input = matches!(buffer.kind, BufferKind::Argument { direction: Direction::In, .. });
    let alike = leaves.iter().all(|leaf| leaf.scalar == place.scalar && leaf.extents.is_empty());
    let is_dense = alike && buffer.element.size == place.scalar.size() * leaves.len() as u64;
    is_input && place.condition.is_none() && (buffer.layout == Layout::Soa || is_dense)
}

/// A power of two that divides the byte address of the place.
fn base_alignment(kernel: &Kernel, place: &Place, multiples: &mut Multiples) -> u64 {
    let buffer = &kernel.buffers[place.buffer];
    let unit = if buffer.layout == Layout::Soa { place.scalar.size() } else { buffer.element.size };
    let unit = 1u64 << unit.trailing_zeros().min(8);
    let mut divisor = 256u64;
    let mut stride = 1u64;
    for (at, extent) in buffer.extents.iter().enumerate().rev() {
        if let Some(index) = place.indices.get(at) {
            let index = multiples.of(kernel, *index);
            divisor = divisor.min(index.saturating_mul(stride).saturating_mul(unit));
        }
        stride = stride.saturating_mul(multiples.of_expression(extent));
    }
    let shared = if buffer.kind == BufferKind::Shared { 16 } else { 256 };
    divisor.min(shared)
}

/// The vector access of a part; no block lists it yet.
fn merged(kernel: &mut Kernel, part: &Part, values: &mut Substitution) -> Inst {
    let first = kernel.insts[part.candidates[0].inst].clone();
    let Payload::Access { buffer, .. } = first.payload else { unreachable!("a candidate is an access") };
    let rank = kernel.buffers[buffer].extents.len();
    let mut arguments = first.arguments[..rank].to_vec();
    if part.place().stores {
        let stored = part.candidates.iter().map(|candidate| kernel.insts[candidate.inst].arguments[rank]);
        arguments.extend(stored);
        return kernel.insts.push(InstData {
            opcode: Opcode::StoreVector,
            arguments: arguments.into(),
            results: Short::new(),
            ..first
        });
    }
    arguments.extend(part.place().condition);
    let conditional = part.place().condition.is_some();
    let like = first.results[0];
    let inst = kernel.insts.push(InstData {
        opcode: if conditional { Opcode::LoadIf } else { Opcode::LoadVector },
        arguments: arguments.into(),
        results: Short::new(),
        ..first
    });
    let mut asked = part.positions().peekable();
    for position in 0..part.width {
        let candidate = asked.next_if(|(at, _)| *at == position);
        let old = candidate.map(|(_, candidate)| kernel.insts[candidate.inst].results[0]);
        let value = kernel.clone_result(old.unwrap_or(like), inst);
        if let Some(old) = old {
            values[old] = value.into();
        }
    }
    inst
}

/// Lists the merged accesses at their anchors, without the ones that they replace. A subscript that is computed
/// after the anchor of a load is computed again before it.
fn rebuild(kernel: &mut Kernel, block: Block, insts: &[Inst], replaced: &[(usize, Inst, Vec<usize>)]) {
    let mut list = Vec::with_capacity(insts.len());
    let mut gone = vec![false; insts.len()];
    replaced.iter().flat_map(|(_, _, places)| places).for_each(|at| gone[*at] = true);
    let mut anchors: Vec<(usize, Inst)> = replaced.iter().map(|(anchor, inst, _)| (*anchor, *inst)).collect();
    anchors.sort_by_key(|(anchor, _)| *anchor);
    let mut anchors = anchors.into_iter().peekable();
    for (at, inst) in insts.iter().enumerate() {
        while let Some((_, merged)) = anchors.next_if(|(anchor, _)| *anchor == at) {
            subscripts(kernel, merged, &mut list, insts, at);
            list.push(merged);
        }
        if !gone[at] {
            list.push(*inst);
        }
    }
    kernel.blocks[block].insts = list;
}

/// Subscripts of a merged load may be sums or literals that stand after the first of the loads: made anew.
fn subscripts(kernel: &mut Kernel, merged: Inst, list: &mut Vec<Inst>, insts: &[Inst], at: usize) {
    let data = &kernel.insts[merged];
    if data.opcode == Opcode::StoreVector {
        return;
    }
    let span = data.span;
    for axis in 0..kernel.subscripts(data).len() {
        let value = kernel.insts[merged].arguments[axis];
        let later = kernel.defining_inst(value).is_some_and(|inst| insts[at..].contains(&inst));
        if !later {
            continue;
        }
        let (root, literal) = kernel.root_and_literal(value);
        let number = Payload::Constant(Constant::Int(Scalar::I64, literal.into()));
        let number = kernel.make_inst(Opcode::Const, number, &[], span);
        list.push(number);
        let mut made = kernel.insts[number].results[0];
        if let Some(root) = root {
            let sum = kernel.make_inst(Opcode::Add, Payload::None, &[root, made], span);
            list.push(sum);
            made = kernel.insts[sum].results[0];
        }
        kernel.insts[merged].arguments[axis] = made;
    }
}

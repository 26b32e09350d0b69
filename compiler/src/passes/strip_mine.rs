//! `strip_mine`: a reduction over a row takes as many elements at a time as another loop over the row does.
//!
//! ```text
//! v5: f32 = reduce [max] axis1 "e" = 0..128 (v6) { … load buf0[v0, v6] … }                       before
//! forall axis2 "w" = 0..64 (v7) { … load buf0[v0, 2 * v7] … load buf0[v0, 2 * v7 + 1] … }
//!
//! v5: f32 = reduce [max] axis1 "e" = 0..64 (v6) {                                                after
//!     … max(load buf0[v0, 2 * v6], load buf0[v0, 2 * v6 + 1]) …
//! }
//! ```
//!
//! Groups of a quantised array are looked through for their extremes element by element, and packed several elements in a word.
//! Loops of one length are a row that a team of threads shares, each with its own words, and holds in registers.
//!
//! # Preconditions
//!
//! A parallel loop whose body has the reduction and the other loop, each over one axis from 0 on, the first one a literal of 2 to
//! [`MOST`] times as long; both access one array, whose last subscript moves by 1 with the one and by that literal with the other.
//! The reduction's terms have no loops, and its combiners are those of one opcode. The schedule says nothing of its axis.
//!
//! # Limits
//!
//! All reductions of the longer range are changed, or none; where another loop goes over the longer range, they stay.

use super::fold::Fold;
use super::insert::{before, emitted};
use super::iterations::{iteration, yielded};
use super::pass::{Changed, Pass, PassContext};
use super::sweep::sweep;
use crate::analysis::{Affine, Polynomial, polynomial_of};
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst};
use crate::ir::kernel::{BlockData, Kernel, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use std::collections::BTreeMap;

/// The pass.
pub struct StripMine;

/// Elements that are taken at a time, at most: as many as the widest access of a thread has bytes.
const MOST: i64 = 16;

impl Pass for StripMine {
    fn name(&self) -> &str {
        "strip_mine"
    }

    fn reason(&self) -> &str {
        "lets reductions over a row take as many elements at a time as another loop over it does"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            if kernel.launches[launch].phase != Phase::Abstract {
                continue;
            }
            for body in kernel.blocks_in(kernel.launches[launch].body) {
                for (reduce, count) in found(kernel, body) {
                    changed |= strip(kernel, body, reduce, count).is_some();
                }
            }
        }
        if changed {
            Fold.run(kernel, context);
            sweep(kernel);
        }
        changed.into()
    }
}

/// A loop over one axis from 0 on.
struct Loop {
    inst: Inst,
    extent: Polynomial,
    /// The arrays whose last subscript moves with the index, and by how much.
    moves: BTreeMap<Buffer, Vec<i128>>,
    /// Whether it is a reduction that can be changed.
    can_change: bool,
}

/// The reductions of a block that are to take so many elements at a time.
fn found(kernel: &Kernel, body: Block) -> Vec<(Inst, i64)> {
    let is_loop = |inst: &&Inst| kernel.insts[**inst].opcode.is_loop();
    let loops: Option<Vec<Loop>> =
        kernel.blocks[body].insts.iter().filter(is_loop).map(|inst| loop_of(kernel, *inst)).collect();
    let Some(loops) = loops.filter(|loops| loops.len() > 1) else { return Vec::new() };
    for word in &loops {
        for (buffer, steps) in &word.moves {
            let first = steps[0];
            let count = i64::try_from(first).ok().filter(|count| (2..=MOST).contains(count));
            let (Some(count), Some(longer)) = (count, word.extent.scale(first)) else { continue };
            if steps.iter().any(|step| *step != first) {
                continue;
            }
            let of_row: Vec<&Loop> = loops.iter().filter(|one| one.extent == longer).collect();
            let reads =
                |one: &&Loop| one.moves.get(buffer).is_some_and(|steps| steps.iter().all(|by| *by == 1));
            let all_change = of_row.iter().all(|one| one.can_change);
            let are_one = loops.iter().all(|one| one.extent == longer || one.extent == word.extent);
            if all_change && are_one && of_row.iter().any(reads) {
                return of_row.iter().map(|one| (one.inst, count)).collect();
            }
        }
    }
    Vec::new()
}

/// `None` where a loop has several axes, or an end that the host does not know.
fn loop_of(kernel: &Kernel, inst: Inst) -> Option<Loop> {
    let data = &kernel.insts[inst];
    let [(low, high)] = kernel.loop_bounds(inst)[..] else { return None };
    if !matches!(data.opcode, Opcode::Reduce | Opcode::Forall) || kernel.int_of(low) != Some(0) {
        return None;
    }
    let extent = polynomial_of(&kernel.symbolic(high)?)?;
    let region = data.regions[0];
    let index = kernel.blocks[region].params[0];
    let mut affine = Affine::new(kernel);
    let mut moves: BTreeMap<Buffer, Vec<i128>> = BTreeMap::new();
    let mut has_loops = false;
    kernel.walk(region, &mut |_, inside| {
        let data = &kernel.insts[inside];
        has_loops |= data.opcode.is_loop();
        let Payload::Access { buffer, .. } = data.payload else { return };
        let Some(last) = kernel.subscripts(data).last() else { return };
        if affine.depends(*last, index) {
            let step = affine.coefficient(*last, index).and_then(|step| step.as_constant());
            moves.entry(buffer).or_default().push(step.unwrap_or(0));
        }
    });
    let is_plain = match &data.payload {
        Payload::Reduce { axes, combiners } => {
            combiners.iter().all(|combiner| combiner.opcode().is_some())
                && !kernel.schedule.speaks_of(&kernel.axes[axes[0]].name)
        }
        _ => false,
    };
    Some(Loop { inst, extent, moves, can_change: is_plain && !has_loops })
}

/// Makes a reduction of a block take so many neighbours at a time.
fn strip(kernel: &mut Kernel, block: Block, reduce: Inst, count: i64) -> Option<()> {
    let (_, high) = kernel.loop_bounds(reduce).pop()?;
    let words = mutant!("strip_mine: as many words as elements", count, 1);
    let fewer = polynomial_of(&kernel.symbolic(high)?)?.divided_exactly(words.into())?;
    let high = before(kernel, block, reduce, |emit| emitted(emit, &fewer))??;
    let old = kernel.insts[reduce].regions[0];
    let span = kernel.insts[reduce].span;
    let new = kernel.blocks.push(BlockData::default());
    let index = kernel.add_param(new, Scalar::I64);
    kernel.values[index].name = kernel.values[kernel.blocks[old].params[0]].name.clone();
    let mut emit = Emit::new(kernel, new, span);
    let first = emit.mul_int(index, count);
    let mut sums = yielded(&mut emit, reduce, &[first], &[]);
    for at in 1..mutant!("strip_mine: the last neighbour is left out", count, count - 1) {
        let place = emit.add_int(first, mutant!("strip_mine: all neighbours are the first", at, 0));
        sums = iteration(&mut emit, reduce, &[place], &sums);
    }
    emit.inst(Opcode::Yield, Payload::None, &sums);
    let axis = kernel.insts[reduce].payload.axes()[0];
    let name = kernel.axes[axis].name.clone();
    kernel.schedule.remade.push(name);
    let data = &mut kernel.insts[reduce];
    data.regions[0] = new;
    data.arguments[1] = high;
    Some(())
}

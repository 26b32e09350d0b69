//! Arrays with a part for each iteration of outer axes, as the histograms of many images: a block has a copy of one part, and
//! walks a piece of what goes there.
//!
//! ```text
//! forall axis0 "m" = v0..v1, axis1 "j" = v2..v3 (v4, v5) { …; atomic add buf1[v4, v6], v7 }          before
//!
//! v4, v8 = block / pieces, block % pieces                                                               after
//! store buf2[…], 0; barrier                                      buf2 is shared, [256, 32]
//! for axis1 "j" = v8 * 65536 + tid..min(v8 * 65536 + 65536, v3) step 1024 (v5) { …; atomic add buf2[v6, lane], v7 }
//! barrier; atomic add buf1[v4, …], reduce of buf2[…, 0..32]
//! ```

use super::held::{Copies, Held, LANES, MAX_BYTES, MIN_TURNS, Team, combining, size};
use crate::analysis::{Conditions, block_count};
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Inst, Launch};
use crate::ir::kernel::{BlockData, Kernel, Payload};
use crate::ir::op::{Combiner, Opcode};
use crate::ir::schedule::Directive;
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use crate::passes::numbers::divided;
use crate::passes::pass::PassContext;
use crate::passes::special::specialize;

/// Iterations of a block at most: clearing and adding up are little beside them, and there are blocks enough.
const PIECE: i64 = 65_536;

struct Found {
    forall: Inst,
    buffer: Buffer,
    op: Combiner,
    /// The loop's axes whose indices are subscripts, in the order of these, by their numbers.
    around: Vec<usize>,
    /// The one that blocks walk.
    walked: usize,
    /// The extents of a part.
    extents: Vec<i64>,
    copies: Copies,
}

impl Found {
    fn of(kernel: &Kernel, launch: Launch) -> Option<Self> {
        let (forall, arrays) = combining(kernel, launch)?;
        let &[(buffer, op)] = arrays.as_slice() else { return None };
        let body = kernel.insts[forall].regions[0];
        let params = kernel.blocks[body].params.clone();
        let mut subscripts: Vec<Vec<_>> = Vec::new();
        kernel.walk(body, &mut |_, inst| {
            let data = &kernel.insts[inst];
            if matches!(data.payload, Payload::Atomic { .. }) {
                subscripts.push(data.arguments[..data.arguments.len() - 1].to_vec());
            }
        });
        let first = subscripts.first()?;
        let is_index = |value| params.iter().position(|index| index == value);
        let around: Vec<usize> = first.iter().map_while(is_index).collect();
        let same = subscripts.iter().all(|other| other[..around.len()] == first[..around.len()]);
        let mut walked = (0..params.len()).filter(|axis| !around.contains(axis));
        let (walked, None) = (walked.next()?, walked.next()) else { return None };
        let literal = |extent: &Expr| if let Expr::Int(extent) = extent { Some(*extent) } else { None };
        let extents = &kernel.buffers[buffer].extents[around.len()..];
        let extents: Vec<i64> = extents.iter().map(literal).collect::<Option<_>>()?;
        let elements = extents.iter().try_fold(1i64, |all, extent| all.checked_mul(*extent))?;
        // Each of them is one axis of the grid.
        let are_distinct = (1..around.len()).all(|at| !around[..at].contains(&around[at]));
        let fits = same && are_distinct && !around.is_empty() && !extents.is_empty();
        let is_small = (2..=MAX_BYTES / size(kernel, buffer)).contains(&elements);
        let copies = Copies::of(elements * size(kernel, buffer));
        (fits && is_small).then_some(Self { forall, buffer, op, around, walked, extents, copies })
    }

    fn elements(&self) -> i64 {
        self.extents.iter().product()
    }

    /// The grid, and how many pieces a part has.
    fn grid(&self, kernel: &Kernel) -> Option<([Expr; 3], Expr)> {
        let bounds = kernel.loop_bounds(self.forall);
        let pieces = Expr::binary(BinaryOp::CeilDiv, self.walked(kernel)?, Expr::Int(PIECE));
        let blocks = self.around.iter().try_fold(pieces.clone(), |all, at| {
            let extent = kernel.symbolic_extent(bounds[*at].0, bounds[*at].1)?;
            Some(Expr::binary(BinaryOp::Mul, all, block_count(kernel, &extent, 1)))
        });
        Some(([blocks?, Expr::Int(1), Expr::Int(1)], pieces))
    }

    /// How many iterations there are along the axis that blocks walk, where that is counted from 0.
    fn walked(&self, kernel: &Kernel) -> Option<Expr> {
        let (low, high) = kernel.loop_bounds(self.forall)[self.walked];
        let is_zero = kernel.int_of(low) == Some(0);
        is_zero.then(|| kernel.symbolic_extent(low, high)).flatten()
    }
}

/// Gives blocks copies of a part each of the array that a launch combines into; whether they have any.
pub fn give(kernel: &mut Kernel, launch: Launch, context: &PassContext) -> bool {
    let Some(found) = Found::of(kernel, launch) else { return false };
    let (Some(walked), Some((grid, _))) = (found.walked(kernel), found.grid(kernel)) else { return false };
    let has_room = found.copies.threads <= context.target.max_threads;
    if kernel.schedule.block().is_some() || !has_room || context.target.warp_size != LANES as u32 {
        return false;
    }
    let conditions =
        Conditions::new().prefers_at_least(&walked, found.elements() * MIN_TURNS).fits_grid(&grid);
    let special = specialize(kernel, launch, &conditions, "shared", |kernel, launch| {
        apply(kernel, launch);
        true
    });
    special.is_some()
}

fn apply(kernel: &mut Kernel, launch: Launch) {
    let Some(found) = Found::of(kernel, launch) else { return };
    let Some((grid, pieces)) = found.grid(kernel) else { return };
    let span = kernel.insts[found.forall].span;
    let (before, body) = (kernel.launches[launch].body, kernel.insts[found.forall].regions[0]);
    let bounds = kernel.loop_bounds(found.forall);
    let params = kernel.blocks[body].params.clone();
    let threads = i64::from(found.copies.threads);
    let held = Held::new(kernel, (found.buffer, found.op), found.extents.clone(), found.copies.count);
    let root = kernel.blocks.push(BlockData::default());
    let mut map = ValueMap::default();
    for inst in kernel.blocks[before].insts.clone() {
        if inst != found.forall {
            kernel.clone_inst(inst, root, &mut map);
        }
    }
    let mut emit = Emit::new(kernel, root, span);
    let block = emit.value(Opcode::BlockIndex, Payload::Grid(0), &[]);
    emit.name(block, "block");
    let pieces = emit.expression(&pieces);
    let (mut number, piece) = divided(&mut emit, block, pieces);
    for (place, at) in found.around.iter().enumerate().rev() {
        let (low, high) = bounds[*at];
        let own = if place == 0 {
            number
        } else {
            let extent = emit.kernel.symbolic_extent(low, high);
            let extent = emit.expression(&extent.unwrap_or(Expr::Int(1)));
            let (rest, own) = divided(&mut emit, number, extent);
            number = rest;
            own
        };
        let index = emit.add(mapped(&map, low), own);
        map.insert(params[*at], index);
    }
    let elements = emit.int(found.elements());
    let tid = emit.value(Opcode::ThreadIndex, Payload::None, &[]);
    emit.name(tid, "tid");
    let team = Team { tid, threads, elements };
    held.clear(&mut emit, &team);
    let copy = team.copy(&mut emit, found.copies);
    emit.barrier();
    let begin = emit.mul_int(piece, PIECE);
    let behind = emit.add_int(begin, PIECE);
    let all = mapped(&map, bounds[found.walked].1);
    let end = emit.min(behind, all);
    let end = mutant!("privatize: a block walks to the end of its part", end, all);
    let (first, step) = (emit.add(begin, tid), emit.int(threads));
    let mut insts = emit.kernel.blocks[body].insts.clone();
    insts.retain(|inst| emit.kernel.insts[*inst].opcode != Opcode::Yield);
    let name = emit.kernel.values[params[found.walked]].name.clone().unwrap_or_default();
    emit.for_loop(&name, (first, end, step), &[], |emit, index, _| {
        let mut map = map.clone();
        map.insert(params[found.walked], index);
        for inst in &insts {
            emit.kernel.clone_inst(*inst, emit.block, &mut map);
        }
        Vec::new()
    });
    held.redirect(emit.kernel, root, (found.around.len(), copy));
    let mut emit = Emit::new(kernel, root, span);
    emit.barrier();
    let indices: Vec<_> = found.around.iter().map(|axis| mapped(&map, params[*axis])).collect();
    held.merge(&mut emit, &team, (&indices, copy));
    let data = &mut kernel.launches[launch];
    (data.body, data.grid, data.threads) = (root, Some(grid), Some(found.copies.threads));
    let name = data.name.clone();
    let reason = "a block clears and adds up its copies of a part of the array";
    kernel.schedule.noted(&name, Directive::Block(found.copies.threads), reason);
}

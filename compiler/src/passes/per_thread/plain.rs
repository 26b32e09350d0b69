//! Loops whose body is short code: threads get several elements of them for the accesses' sake.

use crate::analysis::{Affine, Stride, accesses, trip_count};
use crate::ir::entities::{Axis, Inst};
use crate::ir::kernel::{BufferKind, Factor, Kernel, Level, Payload};
use crate::ir::op::Opcode;
use crate::passes::distinct::distinct;
use crate::passes::hoist_reductions::holds_loops;
use crate::passes::unroll_and_jam::is_one_threads;
use crate::passes::weights::{SLOW, work};

/// A body of more different instructions has enough to do.
pub const MAX_BODY: usize = 300;
/// A body of no more waits for memory: its blocks are small (H200, of 256 and of 128 threads: shallow water 146 us and 119, a
/// wave 227 and 220; implied volatilities 391 and 416).
pub const LIGHT: usize = 96;
/// Iterations of a loop in a body that counts as one without loops (H200, four streams of a row of bf16 numbers: 231 us one by one,
/// 148 with eight).
const SHORT: u64 = 4;

/// Whether it has neighbouring threads along its last axis, and many blocks.
pub fn has_neighbours(kernel: &Kernel, forall: Inst) -> bool {
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return false };
    let has = |axis: &Axis, wanted: fn(&Factor) -> bool| kernel.axes[*axis].factors.iter().any(wanted);
    let lanes = |factor: &Factor| factor.level == Level::Lane && factor.size.is_some_and(|size| size >= 2);
    axes.last().is_some_and(|axis| has(axis, lanes))
        && axes.iter().any(|axis| has(axis, |factor| factor.level == Level::Grid))
}

/// Whether it has neighbouring threads along its last axis, many blocks, and a short body without loops of many iterations.
pub fn is_plain(kernel: &Kernel, forall: Inst) -> bool {
    let region = kernel.insts[forall].regions[0];
    let (mut count, mut plain) = (0, true);
    kernel.walk(region, &mut |_, inst| {
        count += 1;
        plain &= !kernel.insts[inst].opcode.is_loop() || is_short(kernel, inst);
    });
    plain &= !holds_loops(kernel, forall) || walks_rows(kernel, forall);
    has_neighbours(kernel, forall) && plain && (count <= MAX_BODY || distinct(kernel, region) <= MAX_BODY)
}

/// Whether a loop has few iterations, the same for all threads, without others, functions and quotients in it: too long a body to be
/// straight code, but one that waits for memory.
fn is_short(kernel: &Kernel, inst: Inst) -> bool {
    let is_own = matches!(kernel.insts[inst].opcode, Opcode::For | Opcode::Reduce);
    let mut is_light = !holds_loops(kernel, inst);
    kernel.walk(kernel.insts[inst].regions[0], &mut |_, inside| is_light &= work(kernel, inside) < SLOW);
    is_own && is_light && is_one_threads(kernel, inst) && trip_count(kernel, inst) <= SHORT
}

/// Whether a short body moves nothing but neighbours along the last axis, and what is the same for all of these.
fn walks_rows(kernel: &Kernel, forall: Inst) -> bool {
    let body = kernel.insts[forall].regions[0];
    let Some(index) = kernel.blocks[body].params.last().copied() else { return false };
    let mut affine = Affine::new(kernel);
    let walks = accesses(kernel, body).into_iter().all(|access| {
        let width = kernel.buffers[access.buffer].element.leaves[access.leaf as usize].scalar.size();
        let is_private = kernel.buffers[access.buffer].kind == BufferKind::Private;
        let is_atomic = kernel.insts[access.inst].opcode == Opcode::Atomic;
        let stride = affine.stride(access.inst, index);
        let is_row = stride == Stride::Bytes(0) || stride == Stride::Bytes(width as i64);
        is_row && !is_private && !is_atomic
    });
    walks && distinct(kernel, body) <= LIGHT
}

/// Threads of a block along the last axis.
pub fn threads_of_row(kernel: &Kernel, forall: Inst) -> u64 {
    let side_by_side = |factor: &&Factor| matches!(factor.level, Level::Warp | Level::Lane);
    let last = kernel.insts[forall].payload.axes().last();
    let factors = last.into_iter().flat_map(|axis| &kernel.axes[*axis].factors).filter(side_by_side);
    factors.filter_map(|factor| factor.size).product()
}

//! `privatize`: combines into a small array first within each block, in shared memory.
//!
//! ```text
//! forall axis0 "i" = v0..v1 [grid:*, warp:8, lane:32] {      before
//!     atomic add buf1[v5], v6
//!
//! store buf2[…], 0; barrier                                  after: buf2 is shared
//! forall axis0 "i" = v0..v1 [serial:*, grid:1056, warp:8, lane:32] {
//!     atomic add buf2[v5], v6
//! }
//! barrier; atomic add buf1[…], load buf2[…]
//! ```
//!
//! A histogram's few bins would otherwise be fought over by the whole grid. The grid is as large as the machine and
//! walks the range, so that each bin meets global memory once a block.
//!
//! # Preconditions
//!
//! The array has constant extents and at most 16 KiB of 32-bit integers; the launch does nothing with it but
//! combine by one operation. A launch over few elements keeps the plain form: the plan chooses.

use super::pass::{Changed, Pass, PassContext};
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferData, BufferKind, Factor, Kernel, Level, Payload, Phase};
use crate::ir::op::{Combiner, Opcode};
use crate::manifest::{BinaryOp, Expr, Layout};

pub struct Privatize;

/// The largest array that a block has a copy of.
const MAX_BYTES: i64 = 16 * 1024;
/// Fewer iterations than these times the array's length do not pay for the copies.
const MIN_TURNS: i64 = 64;
/// Blocks that a multiprocessor gets.
const BLOCKS: u64 = 8;

impl Pass for Privatize {
    fn name(&self) -> &str {
        "privatize"
    }

    fn reason(&self) -> &str {
        "combines into small arrays within a block first, in shared memory"
    }

    fn needs(&self) -> (Phase, Phase) {
        (Phase::Mapped, Phase::Mapped)
    }

    fn runs_after(&self) -> &[&str] {
        &["map"]
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            let Some(found) = find(kernel, launch) else { continue };
            let Some(condition) = condition(kernel, &found) else { continue };
            let special = kernel.clone_launch(launch, "shared");
            apply(kernel, special, u64::from(context.target.multiprocessors) * BLOCKS);
            kernel.prefer(condition, special, launch);
            changed = true;
        }
        changed.into()
    }
}

/// An array that a launch combines into.
struct Found {
    forall: Inst,
    buffer: Buffer,
    op: Combiner,
    extents: Vec<i64>,
}

fn find(kernel: &Kernel, launch: Launch) -> Option<Found> {
    let root = kernel.launches[launch].body;
    let mut loops =
        kernel.blocks[root].insts.iter().copied().filter(|inst| !kernel.insts[*inst].regions.is_empty());
    let forall = loops.next().filter(|inst| kernel.insts[*inst].opcode == Opcode::Forall)?;
    if loops.next().is_some() {
        return None;
    }
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return None };
    let grid = Factor { level: Level::Grid, size: None };
    let spread = axes.len() == 1
        && kernel.axes[axes[0]].factors.first() == Some(&grid)
        && kernel.axes[axes[0]].factors[1..].iter().all(|factor| factor.level.is_parallel());
    let mut found: Option<(Buffer, Combiner)> = None;
    let mut fits = spread;
    kernel.walk(root, &mut |_, inst| {
        if let Payload::Atomic { buffer, op, .. } = kernel.insts[inst].payload {
            fits &= found.is_none_or(|known| known == (buffer, op));
            found = Some((buffer, op));
        }
        // A thread that ends would not come to the barrier.
        fits &= kernel.insts[inst].opcode != Opcode::Check;
    });
    let (buffer, op) = found.filter(|_| fits)?;
    kernel.walk(root, &mut |_, inst| {
        fits &= !matches!(kernel.insts[inst].payload, Payload::Access { buffer: other, .. } if other == buffer);
    });
    let data = &kernel.buffers[buffer];
    let integer = matches!(data.element.as_scalar(), Some(Scalar::U32 | Scalar::I32));
    let native = !matches!(op, Combiner::Mul | Combiner::ArgMin | Combiner::ArgMax);
    let mut extents = Vec::new();
    for extent in &data.extents {
        let Expr::Int(extent) = extent else { return None };
        extents.push(*extent);
    }
    let bytes = extents.iter().try_fold(4i64, |bytes, extent| bytes.checked_mul(*extent))?;
    let small = (1..=MAX_BYTES).contains(&bytes) && !extents.is_empty();
    (fits && integer && native && small).then_some(Found { forall, buffer, op, extents })
}

/// Enough iterations; `None` where the host does not know how many there are.
fn condition(kernel: &Kernel, found: &Found) -> Option<Expr> {
    let (low, high) = *kernel.loop_bounds(found.forall).first()?;
    let (low, high) = (kernel.symbolic(low)?, kernel.symbolic(high)?);
    let extent = if low == Expr::Int(0) { high } else { Expr::binary(BinaryOp::Sub, high, low) };
    let count: i64 = found.extents.iter().product();
    Some(Expr::binary(BinaryOp::GreaterEqual, extent, Expr::Int(count * MIN_TURNS)))
}

fn apply(kernel: &mut Kernel, launch: Launch, blocks: u64) {
    let Some(found) = find(kernel, launch) else { return };
    let span = kernel.insts[found.forall].span;
    let data = kernel.buffers[found.buffer].clone();
    let scalar = data.element.as_scalar().unwrap_or(Scalar::U32);
    let own = kernel.buffers.push(BufferData {
        name: format!("{}_of_block", data.name),
        kind: BufferKind::Shared,
        layout: Layout::Aos,
        layout_fixed: true,
        cache: None,
        ..data
    });
    let body = kernel.insts[found.forall].regions[0];
    let mut atomics = Vec::new();
    kernel.walk(body, &mut |_, inst| {
        if matches!(kernel.insts[inst].payload, Payload::Atomic { .. }) {
            atomics.push(inst);
        }
    });
    for inst in atomics {
        if let Payload::Atomic { buffer, .. } = &mut kernel.insts[inst].payload {
            *buffer = own;
        }
    }
    if let Payload::Loop { axes } = &kernel.insts[found.forall].payload {
        let factors = &mut kernel.axes[axes[0]].factors;
        factors[0] = Factor { level: Level::Serial, size: None };
        factors.insert(1, Factor { level: Level::Grid, size: Some(blocks) });
    }
    let threads = i64::from(kernel.launches[launch].threads.unwrap_or(1));
    let root = kernel.launches[launch].body;
    let mut insts = std::mem::take(&mut kernel.blocks[root].insts);
    let position = insts.iter().position(|inst| *inst == found.forall).unwrap_or(insts.len());
    let after = insts.split_off(position);
    kernel.blocks[root].insts = insts;
    let mut emit = Emit::new(kernel, root, span);
    each_element(&mut emit, &found, threads, |emit, indices| {
        let identity = emit.identity(found.op, scalar)[0];
        emit.store(own, 0, indices, identity);
    });
    emit.barrier();
    emit.kernel.blocks[root].insts.extend(after);
    emit.barrier();
    each_element(&mut emit, &found, threads, |emit, indices| {
        let value = emit.load(own, 0, indices);
        let identity = emit.identity(found.op, scalar)[0];
        let changed = emit.binary(Opcode::Ne, value, identity);
        emit.if_then(changed, |emit| {
            let payload = Payload::Atomic { buffer: found.buffer, leaf: 0, op: found.op };
            let arguments: Vec<Value> = indices.iter().copied().chain([value]).collect();
            emit.inst(Opcode::Atomic, payload, &arguments);
        });
    });
}

/// A loop over the array's elements, shared by the block's threads.
fn each_element(
    emit: &mut Emit<'_>,
    found: &Found,
    threads: i64,
    body: impl FnOnce(&mut Emit<'_>, &[Value]),
) {
    let count: i64 = found.extents.iter().product();
    let tid = emit.value(Opcode::ThreadIndex, Payload::None, &[]);
    let (high, step) = (emit.int(count), emit.int(threads));
    emit.for_loop("element", (tid, high, step), &[], |emit, index, _| {
        let mut indices = Vec::with_capacity(found.extents.len());
        let mut rest = index;
        for extent in found.extents.iter().skip(1).rev() {
            indices.push(emit.rem_by(rest, *extent));
            rest = emit.div_by(rest, *extent);
        }
        indices.push(rest);
        indices.reverse();
        body(emit, &indices);
        Vec::new()
    });
}

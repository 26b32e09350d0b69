//! Grid: a reduction is cut into pieces, which a second launch combines.
//!
//! Where a reduction begins or ends elsewhere in each iteration of the loop around (`sum(i in 0..n - k: …)`), the pieces are
//! those of the longest range, of which each iteration has its part (`range.rs`).

use super::atomic;
use super::pieces::{GROUPS, cut, give, piece_launch, push_forall, vector_of};
use super::said::{Said, said};
use crate::analysis::{Conditions, written_buffers};
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch};
use crate::ir::kernel::{AxisData, BlockData, Factor, Kernel, Level, Payload, Step};
use crate::ir::op::{Effect, Opcode};
use crate::ir::schedule::{Directive, SAID};
use crate::manifest::{BinaryOp, Expr};
use crate::passes::accumulate::into_atomics;
use crate::passes::fill::MIN_SINGLE;
use crate::passes::pass::TargetFacts;
use crate::passes::rematerialize::{is_rematerializable, reads_what_was_written};
use crate::passes::special::{Special, specialize};

/// Pieces for each multiprocessor: of one with as many results, and of one with many.
const PIECES: i64 = 8;
const LEAST_PIECES: i64 = 2;
/// Threads of the block that combines the pieces of a single reduction.
pub(super) const LAST_THREADS: u64 = 1024;

/// A launch without a loop: each reduction over many elements gets a launch of its own, of a block a piece; what
/// is left runs in one block.
pub(super) fn single(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> bool {
    let root = kernel.launches[launch].body;
    let reduces: Vec<Inst> = kernel.blocks[root]
        .insts
        .iter()
        .copied()
        .filter(|inst| kernel.insts[*inst].opcode == Opcode::Reduce)
        .collect();
    if reduces.is_empty() {
        return false;
    }
    into_atomics(kernel, root);
    if !straight(kernel, root) {
        return false;
    }
    if !reduces.iter().all(|reduce| said(kernel, *reduce).team_fits()) {
        return false;
    }
    let name = kernel.launches[launch].name.clone();
    let mut conditions = Conditions::new();
    let mut any = false;
    for inst in &reduces {
        if said(kernel, *inst).pieces != Some(1)
            && let Some(cut) = cut(kernel, *inst, &[])
        {
            any = true;
            let enough = Expr::binary(BinaryOp::GreaterEqual, cut.range.extent, Expr::Int(MIN_SINGLE));
            conditions = conditions.prefers(enough);
        }
    }
    for inst in &reduces {
        said(kernel, *inst).done(kernel, vector_of(kernel, *inst) as i64);
    }
    let mut steps = Vec::new();
    let mut special = None;
    if any {
        special = specialize(kernel, launch, &conditions, "combine", |kernel, launch| {
            steps = in_pieces(kernel, launch, &name, target);
            true
        });
    }
    if let Some(special) = special {
        kernel.replace_step(special.of(launch), &steps);
    }
    if special != Some(Special::Always) {
        // One iteration of a loop over nothing else, so that a team can share it.
        wrap(kernel, launch, LAST_THREADS);
        kernel.rename_launch(launch, "one_block");
    }
    true
}

/// Makes the launches of the pieces of a launch's reductions; it combines them. What is run instead.
fn in_pieces(kernel: &mut Kernel, launch: Launch, name: &str, target: &TargetFacts) -> Vec<Step> {
    let body = kernel.launches[launch].body;
    let is_reduce = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Reduce;
    let reduces: Vec<Inst> = kernel.blocks[body].insts.iter().copied().filter(is_reduce).collect();
    let mut pieces = Vec::new();
    let mut atomics = 0;
    for inst in &reduces {
        let said = said(kernel, *inst);
        if said.pieces == Some(1) {
            continue;
        }
        let Some(cut) = cut(kernel, *inst, &[]) else { continue };
        said.split_done(kernel);
        let fitting = vector_of(kernel, *inst) as i64;
        let alone = reduces.len() == 1;
        let count = said.pieces.unwrap_or_else(|| pieces_of(kernel, *inst, target));
        let target =
            atomic::target(kernel, *inst, alone, |kernel, value| is_rematerializable(kernel, value, &[], 16));
        atomics += usize::from(target.is_some());
        let piece = piece_launch(kernel, launch, &cut, count, &[], None, name, &said, target.as_ref());
        let reason = "enough blocks to fill every multiprocessor several times";
        record(kernel, piece, &said, count, false, reason);
        let name = kernel.launches[piece].name.clone();
        let (axis, width) = (said.axis.clone(), said.vector(fitting) as u32);
        let reason = if said.vector.is_some() { SAID } else { "one access brings so many neighbours" };
        kernel.schedule.chose_vector(&name, axis, width, reason, said.vector.is_some());
        pieces.push(piece);
    }
    // Where all pieces meet in the results, what is left is straight code.
    if kernel.blocks[body].insts.iter().any(|inst| kernel.insts[*inst].opcode == Opcode::Reduce) {
        wrap(kernel, launch, LAST_THREADS);
    }
    let mut steps: Vec<Step> = pieces.into_iter().map(Step::Launch).collect();
    // Atomics go into what the rest has set to the identity.
    let place = if atomics > 0 { 0 } else { steps.len() };
    steps.insert(place, Step::Launch(launch));
    steps
}

/// Pieces of a reduction: several for each multiprocessor, so that they end together. One block combines what they leave: of many
/// results it has fewer.
fn pieces_of(kernel: &Kernel, reduce: Inst, target: &TargetFacts) -> i64 {
    let results = kernel.insts[reduce].results.len() as i64;
    i64::from(target.multiprocessors) * (PIECES / ((results + PIECES - 1) / PIECES)).max(LEAST_PIECES)
}

/// Records how a reduction is cut.
pub(super) fn record(kernel: &mut Kernel, piece: Launch, said: &Said, pieces: i64, rows: bool, reason: &str) {
    let launch = kernel.launches[piece].name.clone();
    let reason = if said.pieces.is_some() { SAID } else { reason };
    let (axis, pieces) = (said.axis.clone(), pieces as u32);
    // Of rows a directive would cut short ones too, and any number of them.
    if rows && said.pieces.is_none() {
        kernel.schedule.noted(&launch, Directive::Split { axis, pieces }, reason);
    } else {
        kernel.schedule.chose(&launch, Directive::Split { axis, pieces }, reason);
    }
    if let Some(threads) = kernel.launches[piece].threads {
        let reason = if said.threads.is_some() { SAID } else { "of the blocks that take a piece" };
        kernel.schedule.chose(&launch, Directive::Block(threads), reason);
    }
}

/// Whether a block has nothing but straight code, stores, and reductions of one axis that a team can share.
fn straight(kernel: &Kernel, block: Block) -> bool {
    let written = written_buffers(kernel, block);
    let is_written = |inst: Inst| match kernel.insts[inst].payload {
        Payload::Access { buffer, .. } => written.contains(buffer),
        _ => false,
    };
    kernel.blocks[block].insts.iter().all(|inst| {
        let data = &kernel.insts[*inst];
        match data.opcode {
            Opcode::Reduce => {
                let mut plain = !reads_what_was_written(kernel, block, *inst);
                kernel.walk(data.regions[0], &mut |_, inst| {
                    let opcode = kernel.insts[inst].opcode;
                    plain &= !opcode.info().effect.shows() && opcode != Opcode::While;
                });
                plain && matches!(&data.payload, Payload::Reduce { axes, .. } if axes.len() == 1)
            }
            // What one thread writes and all read would need an order.
            Opcode::Load => !is_written(*inst),
            Opcode::If => {
                let mut is_pure = true;
                let mut look = |inst: Inst| {
                    let data = &kernel.insts[inst];
                    is_pure &= match data.opcode.info().effect {
                        Effect::Pure | Effect::Terminator => true,
                        Effect::Read => !is_written(inst),
                        _ => data.opcode == Opcode::If,
                    };
                };
                data.regions.iter().for_each(|region| kernel.walk(*region, &mut |_, inst| look(inst)));
                is_pure
            }
            _ => data.regions.is_empty(),
        }
    })
}

/// Puts the launch's code into a loop of one iteration that a block shares.
fn wrap(kernel: &mut Kernel, launch: Launch, threads: u64) {
    let body = kernel.launches[launch].body;
    let insts = std::mem::take(&mut kernel.blocks[body].insts);
    let region = kernel.blocks.push(BlockData::default());
    kernel.add_param(region, Scalar::I64);
    for inst in &insts {
        if kernel.insts[*inst].opcode == Opcode::Reduce {
            let vector = said(kernel, *inst).vector(vector_of(kernel, *inst) as i64) as u64;
            give(kernel, *inst, GROUPS, Some(threads / 32), vector);
        }
    }
    kernel.blocks[region].insts = insts;
    let span = kernel.span;
    let yielded = kernel.make_inst(Opcode::Yield, Payload::None, &[], span);
    kernel.blocks[region].insts.push(yielded);
    let mut emit = Emit::new(kernel, body, span);
    let (low, high) = (emit.int(0), emit.int(1));
    let factors = vec![Factor { level: Level::Grid, size: None }];
    let axis = kernel.axes.push(AxisData::new("once", factors));
    push_forall(kernel, body, vec![axis], vec![low, high], region, span);
    kernel.launches[launch].threads = Some(threads as u32);
}

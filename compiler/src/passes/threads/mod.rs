//! `threads`: what the factors say becomes code for one thread.
//!
//! ```text
//! forall axis0 "i" = v0..v1 [grid:*, warp:8, lane:32] (v2 "i") {     before
//!     …
//! }
//!
//! v3 "block": i64 = block_index 0                                    after
//! v4 "tid": i64 = thread_index
//! v5 = mul v3, 256
//! v6 "i" = add v5, v4
//! v7 = lt v6, v1
//! if v7 { … }
//! ```
//!
//! Sized serial and vector factors of an axis are iterations that one thread runs side by side (`jam.rs`). Where
//! they all lie inside the extents the body is jammed; at the edge the iterations run one by one, each guarded.
//!
//! A loop inside, of which an axis has warps or lanes, is shared by the threads of a team (`team.rs`).
//!
//! # Limits
//!
//! A launch whose loop is not spread over threads stays as it is, on one thread.

pub(super) mod coordinates;
pub(super) mod jam;
mod mask;
mod meet;
mod open;
mod own;
mod partial;
mod private;
mod read;
mod slots;
mod team;
#[cfg(test)]
mod tests;

use super::pass::{Changed, Pass, PassContext};
use crate::analysis::{Answer, Conditions, ask, may_exceed};
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{BlockData, Kernel, Level, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use crate::ir::placement;
use crate::manifest::{BinaryOp, Expr};
use coordinates::{Grid, Spread, Threads, block_stride, grid_counts, mixed, open_serial, with_blocks};
use team::Team;

pub struct ThreadsPass;

impl Pass for ThreadsPass {
    fn name(&self) -> &str {
        "threads"
    }

    fn reason(&self) -> &str {
        "makes of the factors what each thread does: its indices, its guards, its iterations side by side"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Mapped])
    }

    fn leaves(&self) -> Option<Phase> {
        Some(Phase::Staged)
    }

    fn runs_after(&self) -> &[&str] {
        &["map"]
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            spread_launch(kernel, launch);
            own::into_loops(kernel, launch);
            private::into_stores(kernel, launch);
        }
        (!kernel.launches.is_empty()).into()
    }
}

/// Replaces the launch's distributed loop by code for one thread.
fn spread_launch(kernel: &mut Kernel, launch: Launch) {
    let Some((root, position)) = place(kernel, kernel.launches[launch].body) else { return };
    let mut before = std::mem::take(&mut kernel.blocks[root].insts);
    let after = before.split_off(position + 1);
    let Some(forall) = before.pop() else { return };
    kernel.blocks[root].insts = before;

    let mut axes = Spread::of(kernel, forall);
    let body = kernel.insts[forall].regions[0];
    let span = kernel.insts[forall].span;
    // The verifier has checked that the host can compute every open grid factor.
    let Some(grid) = grid_counts(kernel, &axes) else { return };
    let shared = team::shared_loop(kernel, body);
    let looped = (0..3).any(|axis| may_exceed(kernel, axis, &grid[axis]))
        || axes.iter().any(|axis| open_serial(axis).is_some());
    let mut all = Spread::of(kernel, forall);
    all.extend(shared.and_then(|inst| team::team_axis(kernel, inst)));
    let narrow = mixed(&axes, &grid).is_some_and(|blocks| is_narrow(kernel, launch, blocks));
    let counts = Grid { counts: &grid, narrow };
    let mut emit = Emit::new(kernel, root, span);
    with_blocks(&mut emit, &axes, &counts, &mut |emit, blocks| {
        let threads = Threads::new(emit, &all);
        let mut bases = Vec::with_capacity(axes.len());
        for (at, axis) in axes.iter().enumerate() {
            let block = emit.mul_int(blocks[at], block_stride(axis));
            let part = threads.part(emit, axis, at);
            let start = emit.add(axis.low, block);
            bases.push(emit.add(start, part));
        }
        let mut team = all.get(axes.len()).map(|axis| Team::new(emit, &threads, axis, axes.len(), looped));
        serial_loops(emit, &axes, 0, &mut bases, &mut |emit, bases| match &mut team {
            Some(team) => team_iteration(emit, &axes, team, body, bases),
            None => iterations(emit, &axes, body, bases),
        });
    });
    kernel.launches[launch].grid = Some(grid);
    kernel.blocks[root].insts.extend(after);
    let launch = kernel.launches[launch].name.clone();
    axes.extend(shared.map(|inst| Spread::of(kernel, inst)).unwrap_or_default());
    for axis in axes {
        let Spread { name, extent, factors, .. } = axis;
        let launch = launch.clone();
        kernel.schedule.spread(placement::Spread { launch, axis: name, extent, factors });
    }
}

/// Whether blocks are numbered in 32 bits, for all sizes that the code is for. No GPU divides 64-bit integers.
fn is_narrow(kernel: &mut Kernel, launch: Launch, blocks: &Expr) -> bool {
    let most = Expr::Int(i64::from(i32::MAX));
    let conditions = Conditions::new().needs(Expr::binary(BinaryOp::LessEqual, blocks.clone(), most));
    ask(kernel, launch, &conditions) == Answer::Yes
}

/// Where the distributed loop stands: in the launch's root, or in a branch there that all threads take alike.
fn place(kernel: &Kernel, block: Block) -> Option<(Block, usize)> {
    kernel.blocks[block].insts.iter().enumerate().find_map(|(position, inst)| {
        if is_spread(kernel, *inst) {
            return Some((block, position));
        }
        let data = &kernel.insts[*inst];
        if data.opcode != Opcode::If {
            return None;
        }
        data.regions.iter().find_map(|region| place(kernel, *region))
    })
}

fn is_spread(kernel: &Kernel, inst: Inst) -> bool {
    let Payload::Loop { axes } = &kernel.insts[inst].payload else { return false };
    kernel.insts[inst].opcode == Opcode::Forall
        && axes.iter().flat_map(|axis| &kernel.axes[*axis].factors).any(|factor| factor.level.is_parallel())
}

/// Loops over the open serial factors, from axis `at` on; `body` gets the thread's first index of each axis.
fn serial_loops(
    emit: &mut Emit<'_>,
    axes: &[Spread],
    at: usize,
    bases: &mut Vec<Value>,
    body: &mut dyn FnMut(&mut Emit<'_>, &[Value]),
) {
    let Some(axis) = axes.get(at) else {
        for (axis, base) in axes.iter().zip(bases.iter()) {
            emit.name(*base, &axis.name);
        }
        body(emit, bases);
        return;
    };
    let Some(stride) = open_serial(axis) else {
        serial_loops(emit, axes, at + 1, bases, body);
        return;
    };
    let step = emit.int(stride);
    // All threads of a block run the loop as often: up to the end for the axis' first index, not their own.
    let start = axis.low;
    let own = emit.sub(bases[at], start);
    emit.for_loop(&axis.name, (start, axis.high, step), &[], |emit, index, _| {
        let outer = bases[at];
        bases[at] = emit.add(index, own);
        serial_loops(emit, axes, at + 1, bases, body);
        bases[at] = outer;
        Vec::new()
    });
}

/// One iteration of a team: the same for all its threads, so that they go through barriers and shuffles together.
fn team_iteration(emit: &mut Emit<'_>, axes: &[Spread], team: &mut Team, body: Block, bases: &[Value]) {
    let offsets: Vec<Vec<i64>> = axes.iter().map(Spread::offsets).collect();
    let whole = all_inside(emit, axes, bases, &offsets);
    if offsets.iter().all(|offsets| offsets.len() == 1) {
        match whole {
            Some(inside) if team.is_part_of_warp() => {
                let last = clamped(emit, axes, bases);
                team.iteration_inside(emit, body, &last, inside);
            }
            Some(inside) => emit.if_then(inside, |emit| team.iteration(emit, body, bases)),
            None => team.iteration(emit, body, bases),
        }
        return;
    }
    let jammed = jammed(emit.kernel, body, &offsets, emit.span);
    match whole {
        None => team.iteration(emit, jammed, bases),
        Some(inside) => {
            let edge = std::cell::RefCell::new(team);
            emit.if_else(
                inside,
                |emit| {
                    edge.borrow_mut().iteration(emit, jammed, bases);
                    Vec::new()
                },
                |emit| {
                    let mut run = |emit: &mut Emit<'_>, indices: &[Value]| {
                        edge.borrow_mut().iteration(emit, body, indices);
                    };
                    one_by_one(emit, axes, 0, &mut bases.to_vec(), &mut run);
                    Vec::new()
                },
            );
        }
    }
}

/// The indices, or the last ones of their axes where they lie behind these. A block has an iteration of each axis.
fn clamped(emit: &mut Emit<'_>, axes: &[Spread], bases: &[Value]) -> Vec<Value> {
    let clamp = |(axis, base): (&Spread, &Value)| match axis.needs_guard() {
        true => {
            let last = emit.add_int(axis.high, -1);
            emit.binary(Opcode::Min, *base, last)
        }
        false => *base,
    };
    axes.iter().zip(bases).map(clamp).collect()
}

/// Every iteration of one thread: side by side where all are inside, else one by one.
fn iterations(emit: &mut Emit<'_>, axes: &[Spread], body: Block, bases: &[Value]) {
    let offsets: Vec<Vec<i64>> = axes.iter().map(Spread::offsets).collect();
    let whole = all_inside(emit, axes, bases, &offsets);
    if offsets.iter().all(|offsets| offsets.len() == 1) {
        match whole {
            Some(inside) => emit.if_then(inside, |emit| copy(emit, body, bases)),
            None => copy(emit, body, bases),
        }
        return;
    }
    let jammed = jammed(emit.kernel, body, &offsets, emit.span);
    match whole {
        None => copy(emit, jammed, bases),
        Some(inside) => {
            emit.if_else(
                inside,
                |emit| {
                    copy(emit, jammed, bases);
                    Vec::new()
                },
                |emit| {
                    let mut run = |emit: &mut Emit<'_>, indices: &[Value]| copy(emit, body, indices);
                    one_by_one(emit, axes, 0, &mut bases.to_vec(), &mut run);
                    Vec::new()
                },
            );
        }
    }
}

/// Whether the last iteration of each guarded axis is inside; `None` where it always is.
fn all_inside(emit: &mut Emit<'_>, axes: &[Spread], bases: &[Value], offsets: &[Vec<i64>]) -> Option<Value> {
    let mut all: Option<Value> = None;
    for (at, axis) in axes.iter().enumerate().filter(|(_, axis)| axis.needs_guard()) {
        let last = emit.add_int(bases[at], offsets[at].iter().copied().max().unwrap_or(0));
        let inside = emit.binary(Opcode::Lt, last, axis.high);
        all = Some(match all {
            Some(all) => emit.binary(Opcode::And, all, inside),
            None => inside,
        });
    }
    all
}

/// Loops over the iterations of each axis from `at` on, with a guard where one may be outside.
fn one_by_one(
    emit: &mut Emit<'_>,
    axes: &[Spread],
    at: usize,
    indices: &mut Vec<Value>,
    run: &mut dyn FnMut(&mut Emit<'_>, &[Value]),
) {
    let Some(axis) = axes.get(at) else {
        run(emit, indices);
        return;
    };
    let sized: Vec<(i64, i64)> = (0..axis.factors.len())
        .filter(|place| matches!(axis.factors[*place].level, Level::Serial | Level::Vector))
        .filter_map(|place| {
            let stride: i64 =
                axis.factors[place + 1..].iter().map(|factor| factor.size.unwrap_or(1) as i64).product();
            axis.factors[place].size.map(|size| (size as i64, stride))
        })
        .collect();
    factor_loops(emit, axes, at, &sized, indices, run);
}

fn factor_loops(
    emit: &mut Emit<'_>,
    axes: &[Spread],
    at: usize,
    left: &[(i64, i64)],
    indices: &mut Vec<Value>,
    run: &mut dyn FnMut(&mut Emit<'_>, &[Value]),
) {
    let axis = &axes[at];
    let Some(((size, stride), rest)) = left.split_first() else {
        if !axis.needs_guard() {
            one_by_one(emit, axes, at + 1, indices, run);
            return;
        }
        let inside = emit.binary(Opcode::Lt, indices[at], axis.high);
        emit.if_then(inside, |emit| one_by_one(emit, axes, at + 1, indices, run));
        return;
    };
    let (low, high, step) = (emit.int(0), emit.int(size * stride), emit.int(*stride));
    emit.for_loop(&axis.name, (low, high, step), &[], |emit, offset, _| {
        let outer = indices[at];
        indices[at] = emit.add(outer, offset);
        factor_loops(emit, axes, at, rest, indices, run);
        indices[at] = outer;
        Vec::new()
    });
}

/// Appends a copy of a loop's body without its yield.
fn copy(emit: &mut Emit<'_>, body: Block, indices: &[Value]) {
    let params = emit.kernel.blocks[body].params.clone();
    params.iter().zip(indices).for_each(|(param, index)| emit.kernel.stand_in(*index, *param));
    let mut map: ValueMap = params.into_iter().zip(indices.iter().copied()).collect();
    for inst in emit.kernel.blocks[body].insts.clone() {
        if emit.kernel.insts[inst].opcode != Opcode::Yield {
            emit.kernel.clone_inst(inst, emit.block, &mut map);
        }
    }
}

/// A block with the body's parameters that runs all combinations of the offsets, axis by axis. Copies of one instruction
/// for neighbours along the last axis, of which one access can be made, stand side by side.
fn jammed(kernel: &mut Kernel, body: Block, offsets: &[Vec<i64>], span: crate::source::Span) -> Block {
    let mut current = body;
    for (at, offsets) in offsets.iter().enumerate() {
        if offsets.len() == 1 {
            continue;
        }
        let next = kernel.blocks.push(BlockData::default());
        let params = kernel.blocks[current].params.clone();
        let mut map = ValueMap::default();
        for param in &params {
            let value = kernel.add_param(next, kernel.values[*param].ty);
            // It stands for one of several copies: a debugger does not know it by that.
            kernel.values[value].name = kernel.readable(*param);
            map.insert(*param, value);
        }
        let base = map[&params[at]];
        let mut emit = Emit::new(kernel, next, span);
        let values: Vec<Vec<Value>> =
            offsets.iter().map(|offset| vec![emit.add_int(base, *offset)]).collect();
        jam::jam(&mut emit, current, &[params[at]], &values, &map, &[]);
        emit.inst(Opcode::Yield, Payload::None, &[]);
        current = next;
    }
    current
}

//! Rows: an iteration whose loops all walk one contiguous range is given to a team of threads.

use super::arrays::{exchanged, row_index, to_exchange};
use super::cost::{Cost, loop_cost, outer_cost, ragged_cost, reads_and_writes};
use super::length::{Length, length};
use super::row_shapes::{GROUPS, Held, MIN_ROW, Rows, Shape, conditions, rows_of_block, shapes};
use super::said::{Said, said};
use super::streams::streams;
use crate::analysis::{
    Affine, Answer, Conditions, SECTOR_BYTES, Stride, accesses, ask, blocks_by_registers, written_buffers,
};
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Factor, Kernel, Level, Payload};
use crate::ir::op::{Constant, Opcode};
use crate::ir::schedule::{Directive, SAID};
use crate::manifest::{BinaryOp, Expr};
use crate::passes::accumulate::into_atomics;
use crate::passes::pass::TargetFacts;
use crate::passes::rows_last::rows_into_scratch;
use crate::passes::special::{Special, specialize};
use rustc_hash::FxHashMap;

/// Rows whose neighbours lie a sector apart each: so many threads, one for each, wait for memory as long as teams do that bring
/// a sector for each element. A load takes some 150 cycles where four are under way, and 60 sectors come in a cycle.
const STRIDED_ROWS: i64 = 8192;

/// An axis so many times as long as a block has teams for it leaves few of them without a row, whatever its length is.
const LONG_AXIS: i64 = 4;

/// So many neighbours of the outer axis within a sector lie side by side.
const BESIDE: i128 = 4;

/// What of a launch's outer loop is rows, if it pays to share them.
pub fn find(kernel: &Kernel, forall: Inst) -> Option<Rows> {
    let body = kernel.insts[forall].regions[0];
    let mut loops = Vec::new();
    collect(kernel, body, &mut loops);
    if loops.is_empty() {
        return None;
    }
    let exchanges = !to_exchange(kernel, body, &loops)?.is_empty();
    let Length { extent, exact } = length(kernel, forall, &loops)?;
    let outer = *kernel.blocks[body].params.last()?;
    if loops.iter().all(|inst| is_of_a_sector(kernel, *inst, outer)) {
        return None;
    }
    let mut own = Cost::default();
    let mut shared = Cost::default();
    for inst in &loops {
        let region = kernel.insts[*inst].regions[0];
        let index = row_index(kernel, *inst);
        shared.add(loop_cost(kernel, region, index));
        // Where the rows begin, memory says.
        let Some((low, _)) = kernel.loop_bounds(*inst).pop() else { continue };
        let mut affine = Affine::new(kernel);
        own.add(match affine.depends(low, outer) && affine.coefficient(low, outer).is_none() {
            true => ragged_cost(kernel, region, index, outer),
            false => outer_cost(kernel, region, forall),
        });
    }
    // Neighbours of a row lie apart, and those of the outer axis do not. What threads exchange turns round.
    let strided = shared.sectors >= own.sectors && !exchanges;
    if strided && !turns_in_order(kernel, body, &loops) {
        return None;
    }
    let (vector, is_left) = if strided || exchanges { (1, false) } else { vector(kernel, body, &loops) };
    let said = loops.iter().map(|inst| said(kernel, *inst));
    let said = said.reduce(|first, next| Said {
        threads: first.threads.or(next.threads),
        vector: first.vector.or(next.vector),
        axis: if first.vector.is_none() && next.vector.is_some() { next.axis } else { first.axis },
        ..first
    })?;
    let mut own_array = false;
    kernel.walk(body, &mut |_, inst| {
        let Payload::Access { buffer, .. } = kernel.insts[inst].payload else { return };
        own_array |= match kernel.buffers[buffer].kind {
            BufferKind::Private => true,
            // What another launch has written is read like an argument, and what another one reads is a result.
            BufferKind::Scratch => reads_and_writes(kernel, body, buffer),
            _ => false,
        };
    });
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return None };
    let outer = axes.iter().map(|axis| kernel.axes[*axis].name.clone()).collect();
    // Where rows begin and end differs: none begins at a multiple of a vector, or is held.
    let vector = if exact { vector } else { 1 };
    let last = kernel.loop_bounds(forall).last().and_then(|(low, high)| kernel.symbolic_extent(*low, *high));
    let count = kernel.symbolic_iterations(forall).zip(last);
    if (strided || exchanges) && count.is_none() {
        return None;
    }
    let sectors = shared.sectors.max(1).div_ceil(loops.len() as u64);
    let mut checked = false;
    kernel.walk(body, &mut |_, inst| checked |= kernel.insts[inst].opcode == Opcode::Check);
    let straight = &kernel.blocks[body].insts;
    let meets = loops.iter().all(|inst| straight.contains(inst));
    Some(Rows {
        // What several axes go through is more than threads hold.
        reused: loops.len() > 1 && exact && !strided && !has_nest(kernel, &loops),
        held: held(kernel, &kernel.blocks[body].params, &loops),
        checked,
        packs: !exact && meets && !exchanges,
        in_order: walks_in_order(kernel, body, &loops, &extent) && !exchanges,
        short: exact && meets && !strided && !exchanges,
        at_most: match exchanges {
            // Threads with a row each would not find its elements side by side.
            true => (shared.sectors >= own.sectors).then_some(STRIDED_ROWS),
            false => strided.then(|| STRIDED_ROWS * 32 / i64::try_from(sectors).unwrap_or(i64::MAX)),
        },
        exchanges,
        own_array,
        outer,
        extent,
        exact,
        count,
        vector,
        is_left,
        said,
    })
}

/// Whether some of the loops are done again and again by a sequential loop around them: what no form but a team shares.
fn turns_in_order(kernel: &Kernel, body: Block, loops: &[Inst]) -> bool {
    let parents = kernel.parents_in(body);
    let is_sequential = |inst: Inst| matches!(kernel.insts[inst].opcode, Opcode::For | Opcode::While);
    loops.iter().any(|inst| parents.enclosing(*inst).any(is_sequential))
}

/// Whether each thread walks the row by itself as well, in order.
fn walks_in_order(kernel: &Kernel, body: Block, loops: &[Inst], extent: &Expr) -> bool {
    let mut walks = false;
    kernel.walk(body, &mut |_, inst| {
        let bounds = kernel.loop_bounds(inst);
        if let (Opcode::For, &[(low, high)]) = (kernel.insts[inst].opcode, &bounds[..]) {
            let mut shares = false;
            kernel.walk(kernel.insts[inst].regions[0], &mut |_, inside| shares |= loops.contains(&inside));
            walks |= !shares && kernel.symbolic_extent(low, high).as_ref() == Some(extent);
        }
    });
    walks
}

/// Whether all that a loop walks of an array along its last axis lies within a sector, or side by side with what the next outer
/// iteration walks: the thread that asks for one element has got all of them, or its neighbours ask for the rest. Of a window of
/// several axes there are few such walks.
fn is_of_a_sector(kernel: &Kernel, inst: Inst, outer: Value) -> bool {
    let bounds = kernel.loop_bounds(inst);
    let extents = bounds.iter().map(|(low, high)| Some(kernel.int_of(*high)? - kernel.int_of(*low)?));
    let Some(extents) = extents.collect::<Option<Vec<i128>>>() else { return false };
    let Some((own, others)) = extents.split_last() else { return false };
    if !others.is_empty() && extents.iter().product::<i128>() > MIN_ROW.into() {
        return false;
    }
    let index = row_index(kernel, inst);
    let mut affine = Affine::new(kernel);
    accesses(kernel, kernel.insts[inst].regions[0]).iter().all(|access| {
        let mut is_within =
            |index: Value, count: i128, may_stay: bool| match affine.stride(access.inst, index) {
                Stride::Bytes(0) => may_stay,
                Stride::Bytes(stride) => i128::from(stride).abs() * count <= i128::from(SECTOR_BYTES),
                _ => false,
            };
        is_within(index, *own, true) || is_within(outer, BESIDE, false)
    })
}

fn held(kernel: &Kernel, outer: &[Value], loops: &[Inst]) -> Held {
    let words = |scalar: Scalar| if scalar.size() > 4 { 2 } else { 1 };
    // From the first loop that accesses an array to the last one.
    let mut arrays: FxHashMap<(Buffer, u32), (usize, usize)> = FxHashMap::default();
    let mut results = 0;
    for (at, owner) in loops.iter().enumerate() {
        let data = &kernel.insts[*owner];
        if data.opcode == Opcode::Reduce {
            results = results.max(data.results.iter().map(|value| words(kernel.value_type(*value))).sum());
        }
        let index = row_index(kernel, *owner);
        let mut affine = Affine::new(kernel);
        for access in accesses(kernel, data.regions[0]) {
            let mut stays = |index: &Value| affine.stride(access.inst, *index) == Stride::Bytes(0);
            let is_own = kernel.buffers[access.buffer].kind == BufferKind::Private;
            if stays(&index) || (outer.iter().all(&mut stays) && !is_own) {
                continue;
            }
            arrays.entry((access.buffer, access.leaf)).or_insert((at, at)).1 = at;
        }
    }
    let of = |buffer: Buffer, leaf: u32| kernel.buffers[buffer].element.leaves[leaf as usize].scalar;
    let behind = |at: usize| -> i64 {
        let kept = arrays.iter().filter(|(_, (first, last))| *first <= at && *last > at);
        kept.map(|((buffer, leaf), _)| words(of(*buffer, *leaf))).sum()
    };
    let element = (0..loops.len()).map(behind).max().unwrap_or(0);
    Held { element: element.max(1), results }
}

/// The outermost loops that threads can share, in sequential loops and branches too: whether these go on is the same for
/// all of a team.
fn collect(kernel: &Kernel, block: Block, loops: &mut Vec<Inst>) {
    for inst in &kernel.blocks[block].insts {
        let data = &kernel.insts[*inst];
        match (&data.payload, data.opcode) {
            (Payload::Loop { .. }, Opcode::Forall) | (Payload::Reduce { .. }, _) => loops.push(*inst),
            _ => data.regions.iter().for_each(|region| collect(kernel, *region, loops)),
        }
    }
}

/// Whether a thread walks other axes around the one that the team shares.
fn has_nest(kernel: &Kernel, loops: &[Inst]) -> bool {
    loops.iter().any(|inst| kernel.loop_bounds(*inst).len() > 1)
}

/// 16 bytes of the narrowest array that the loops walk contiguously, and whether all these arrays were left by other launches.
fn vector(kernel: &Kernel, body: Block, loops: &[Inst]) -> (i64, bool) {
    let mut narrowest = None;
    let mut is_left = true;
    let written = written_buffers(kernel, body);
    for inst in loops {
        let region = kernel.insts[*inst].regions[0];
        let param = row_index(kernel, *inst);
        let mut affine = Affine::new(kernel);
        for access in accesses(kernel, region) {
            let buffer = &kernel.buffers[access.buffer];
            let width = buffer.element.leaves[access.leaf as usize].scalar.size();
            let memory = match buffer.kind {
                BufferKind::Private | BufferKind::Constant(_) => false,
                // What another launch has left, and not what becomes a thread's own.
                BufferKind::Scratch => !written.contains(access.buffer),
                _ => true,
            };
            if memory && affine.stride(access.inst, param) == Stride::Bytes(width as i64) {
                narrowest = Some(narrowest.map_or(width, |known: u64| known.min(width)));
                is_left &= buffer.kind == BufferKind::Scratch;
            }
        }
    }
    let vector = narrowest.map_or(1, |width| (16 / width.max(1)).clamp(1, 8) as i64);
    (vector, is_left && vector > 1)
}

/// Whether the threads that share a row hold it: loops after the first one find it there, or nearer than in memory where
/// a row is less than a warp's.
pub fn are_held(kernel: &mut Kernel, launch: Launch, rows: &Rows, target: &TargetFacts) -> bool {
    if !rows.said.team_fits() {
        return false;
    }
    let shapes = shapes(kernel, rows, target);
    let mut held = shapes.iter().filter(|shape| shape.held.is_some());
    if held.any(|shape| ask(kernel, launch, &conditions(rows, shape, target)) != Answer::No) {
        return true;
    }
    let long = Conditions::new().prefers_at_least(&rows.extent, MIN_ROW);
    ask(kernel, launch, &long) == Answer::No
}

/// Makes copies of a launch that share its rows among teams, and lets the plan choose by the length of a row.
pub fn share(kernel: &mut Kernel, launch: Launch, rows: &Rows, target: &TargetFacts) -> bool {
    let said = &rows.said;
    if !said.team_fits() {
        return false;
    }
    let vector = said.vector(rows.vector);
    let shapes = shapes(kernel, rows, target);
    let (mut changed, mut held) = (false, false);
    for shape in shapes {
        // For all sizes, one way to hold a row and one to walk it are enough.
        if held && shape.held.is_some() && kernel.specialization.is_general() {
            continue;
        }
        let special =
            specialize(kernel, launch, &conditions(rows, &shape, target), shape.suffix, |kernel, launch| {
                let applied = apply(kernel, launch, &shape, said);
                if applied {
                    let width = if shape.threads < 32 { shape.vector } else { vector };
                    record(kernel, launch, &shape, said, (width, rows.is_left));
                }
                applied
            });
        changed |= special.is_some();
        if special == Some(Special::Always) {
            break;
        }
        held |= special.is_some() && shape.held.is_some();
    }
    if changed {
        said.done(kernel, rows.vector);
        // How many rows a thread has is for shorter ones.
        kernel
            .schedule
            .done(|known| matches!(known, Directive::PerThread { axis, .. } if rows.outer.contains(axis)));
    }
    changed
}

/// Records how a row is shared, as directives.
fn record(kernel: &mut Kernel, launch: Launch, shape: &Shape, said: &Said, (vector, is_left): (i64, bool)) {
    let name = kernel.launches[launch].name.clone();
    let as_said = SAID.to_string();
    if let Some(threads) = kernel.launches[launch].threads {
        let reason = match (said.threads.is_some(), shape.threads) {
            (true, _) => as_said.clone(),
            (false, 32) => format!("a warp takes a short row over `{}`", said.axis),
            (false, lanes @ ..32) => format!("{lanes} lanes of a warp take a short row over `{}`", said.axis),
            (false, _) => format!("a block takes a row over `{}`", said.axis),
        };
        let block = Directive::Block(threads);
        match shape.held {
            // Which lengths a thread holds at most is no directive.
            Some(_) if said.threads.is_none() => kernel.schedule.noted(&name, block, reason),
            _ => kernel.schedule.chose(&name, block, reason),
        }
    }
    let reason = match vector {
        _ if said.vector.is_some() => as_said,
        1 => "lanes take elements of a row one by one".to_string(),
        _ => format!("one access brings {vector} neighbours of a row"),
    };
    let (axis, width) = (said.axis.clone(), vector as u32);
    match is_left && said.vector.is_none() {
        // A directive would say it of what the other launches walk along the axis, too.
        true => kernel.schedule.noted(&name, Directive::Vectorize { axis, width }, reason),
        false => kernel.schedule.chose_vector(&name, axis, width, reason, said.vector.is_some()),
    }
}

/// Sets the factors of a launch's loops.
fn apply(kernel: &mut Kernel, launch: Launch, shape: &Shape, said: &Said) -> bool {
    let Some(forall) = super::outer_loop(kernel, launch) else { return false };
    let body = kernel.insts[forall].regions[0];
    into_atomics(kernel, body);
    let mut loops = Vec::new();
    collect(kernel, body, &mut loops);
    let mut private = exchanged(kernel, body, &loops);
    private.retain(|buffer| kernel.buffers[*buffer].kind == BufferKind::Private);
    // Lanes go along a row.
    rows_into_scratch(kernel, launch, forall, private);
    // A block of several warps, each with a row of its own, or with several.
    let rows_a_warp = 32 / shape.threads.clamp(1, 32) as u64;
    let rows_a_block = rows_of_block(shape, said) as u64 / rows_a_warp;
    spread_rows(kernel, launch, forall, (rows_a_block, rows_a_warp));
    if shape.held.is_some() {
        kernel.launches[launch].streams = streams(kernel, body, &loops);
    }
    // How many registers several loops in one another take, no shape says.
    let has_nest = has_nest(kernel, &loops);
    for inst in loops {
        let (Payload::Loop { axes } | Payload::Reduce { axes, .. }) = &kernel.insts[inst].payload else {
            continue;
        };
        let Some((axis, around)) = axes.split_last() else { continue };
        let (axis, around) = (*axis, around.to_vec());
        for axis in around {
            kernel.axes[axis].factors = vec![Factor { level: Level::Serial, size: None }];
        }
        if let Some(held) = shape.held.filter(|_| shape.exact) {
            literal_end(kernel, inst, held * shape.vector * shape.threads);
        }
        let mut factors = match shape.held {
            Some(held) => vec![Factor { level: Level::Serial, size: Some(held as u64) }],
            None => vec![
                Factor { level: Level::Serial, size: None },
                Factor { level: Level::Serial, size: Some(GROUPS as u64) },
            ],
        };
        if shape.threads > 32 {
            factors.push(Factor { level: Level::Warp, size: Some(shape.threads as u64 / 32) });
        }
        factors.push(Factor { level: Level::Lane, size: Some(shape.threads.min(32) as u64) });
        if shape.vector > 1 {
            factors.push(Factor { level: Level::Vector, size: Some(shape.vector as u64) });
        }
        kernel.axes[axis].factors = factors;
    }
    let threads = shape.threads as u64 * rows_a_warp * rows_a_block;
    kernel.launches[launch].threads = u32::try_from(threads).ok();
    // As many blocks as leave a thread the registers that it needs.
    let registers = shape.registers().filter(|_| !has_nest);
    kernel.launches[launch].resident = registers.map(|registers| blocks_by_registers(threads, registers));
    true
}

/// Gives the teams of a block, of so many warps with so many each, rows of the last axis; of an axis in which many would have no
/// row only some, and of the one before it the rest.
fn spread_rows(kernel: &mut Kernel, launch: Launch, forall: Inst, (mut warps, mut lanes): (u64, u64)) {
    let axes = kernel.insts[forall].payload.axes().to_vec();
    let bounds = kernel.loop_bounds(forall);
    for (at, axis) in axes.into_iter().enumerate().rev() {
        let teams = warps * lanes;
        let own = if at == 0 { teams } else { most_teams(kernel, launch, bounds[at], teams) };
        let own_lanes = own.min(lanes);
        let own_warps = own / own_lanes;
        (warps, lanes) = (warps / own_warps, lanes / own_lanes);
        let teams = [(Level::Warp, own_warps), (Level::Lane, own_lanes)].into_iter();
        let teams =
            teams.filter(|(_, size)| *size > 1).map(|(level, size)| Factor { level, size: Some(size) });
        let open = Factor { level: Level::Grid, size: None };
        kernel.axes[axis].factors = std::iter::once(open).chain(teams).collect();
    }
}

/// How many of a block's teams, a power of two, have rows along an axis.
fn most_teams(kernel: &mut Kernel, launch: Launch, (low, high): (Value, Value), mut teams: u64) -> u64 {
    let Some(extent) = kernel.symbolic_extent(low, high) else { return teams };
    let compared = |op, left: &Expr, right| Expr::binary(op, left.clone(), Expr::Int(right));
    while teams > 1 {
        let count = teams as i64;
        let whole = compared(BinaryOp::Equal, &compared(BinaryOp::Rem, &extent, count), 0);
        let long = compared(BinaryOp::GreaterEqual, &extent, LONG_AXIS * count);
        let all = Conditions::new().prefers(Expr::binary(BinaryOp::Or, long, whole));
        if ask(kernel, launch, &all) == Answer::Yes {
            break;
        }
        teams /= 2;
    }
    teams
}

/// Says by a literal where a loop ends that begins at 0: the launch is run for that length alone.
fn literal_end(kernel: &mut Kernel, inst: Inst, length: i64) {
    let Some((low, _)) = kernel.loop_bounds(inst).pop() else { return };
    if kernel.int_of(low) != Some(0) {
        return;
    }
    let Some(block) = kernel.parents().block_of[inst].expand() else { return };
    let literal = Payload::Constant(Constant::Int(Scalar::I64, length.into()));
    let literal = kernel.make_inst(Opcode::Const, literal, &[], kernel.insts[inst].span);
    let Some(position) = kernel.blocks[block].insts.iter().position(|other| *other == inst) else { return };
    kernel.blocks[block].insts.insert(position, literal);
    let high = 2 * kernel.loop_bounds(inst).len() - 1;
    kernel.insts[inst].arguments[high] = kernel.insts[literal].results[0];
}

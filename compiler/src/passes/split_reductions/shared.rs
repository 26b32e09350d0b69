//! Reductions, whole or in pieces, whose threads all read the same elements take them from shared memory.
//!
//! ```text
//! forall "piece" [grid:*], "i" [grid:*, serial:4, warp:8, lane:32] { reduce "j" = … { load buf0[i]; load buf0[j]; … } }    before
//!
//! for "tile" = start..end step 256 {                                              after, written for one thread
//!     barrier; store buf9[tid], load buf0[tile + tid]; barrier
//!     for "j" = 0..256 step 8 { load buf9[j]; … }                                 four results, eight steps
//! }
//! ```
//!
//! Each thread brings one element of a tile; then all of them walk it. What is asked of shared memory comes soon, so that the
//! assembler fetches less far ahead and has registers for several steps side by side, which it takes if it is told that it may.
//! n-body of 65536 on an H200: 42.4 TFLOP/s, from global memory 40.2.
//!
//! # Preconditions
//!
//! One outer axis, whose threads are whole blocks; a reduction of plain combiners that ends for all iterations of the
//! outer loop at the same place. Every load in it either does not depend on its index, or has it for its only
//! subscript, stands at the top of its body, and is of an array that the launch does not write. A schedule that says
//! how one of the axes lies on the machine keeps it away.
//!
//! Threads beyond the end of the outer loop work on its last iteration, so that all come to the barriers, and store nothing.

use super::pieces::{REUSE, groups_reused};
use crate::analysis::written_buffers;
use crate::analysis::{Affine, block_count, blocks_by_registers};
use crate::data::ElementType;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BlockData, BufferData, BufferKind, Definition, Kernel, Level, Payload};
use crate::ir::op::{Combiner, Effect, Opcode};
use crate::ir::placement::{Spread, factors};
use crate::ir::schedule::Directive;
use crate::manifest::{Expr, Layout};
use crate::passes::rematerialize::free_values;

/// Bytes of an element, at most.
const MOST_BYTES: u64 = 64;
/// Registers of a thread, and values held from step to step that leave enough of these.
const OF_THREAD: u64 = 128;
const MOST_HELD: usize = 64;

/// A launch that can take what it reads from shared memory.
struct Found {
    root: Block,
    forall: Inst,
    reduce: Inst,
    threads: i64,
    /// How many pieces the reduction is cut into, if it is.
    pieces: Option<i64>,
    /// What stands before the reduction, and whether it is computed from the outer index.
    before: Vec<(Inst, bool)>,
    combiners: Vec<Combiner>,
    /// Loads of the element at the reduction's index.
    streamed: Vec<Inst>,
    /// What is in the reduction's body but the same in every step.
    settled: Vec<Inst>,
    /// Steps side by side.
    steps: i64,
}

/// Where the elements of an array lie in shared memory: for each leaf that is read, its buffer and leaf there.
struct Tile {
    load: Payload,
    buffer: Buffer,
    leaf: u32,
}

/// Gives a launch of pieces explicit threads, if it has the form.
pub(super) fn stage_pieces(kernel: &mut Kernel, launch: Launch) {
    if let Some(found) = find(kernel, launch, true) {
        stage(kernel, launch, &found);
    }
}

/// Gives a launch whose reductions are whole explicit threads, if it has the form. Its blocks do the work of four: it is for
/// loops that fill the machine all the same.
pub(super) fn stage_whole(kernel: &mut Kernel, launch: Launch) -> bool {
    find(kernel, launch, false).is_some_and(|found| stage(kernel, launch, &found))
}

fn stage(kernel: &mut Kernel, launch: Launch, found: &Found) -> bool {
    let Some((low, high)) = kernel.loop_bounds(found.forall).last().copied() else { return false };
    let Some(extent) = kernel.symbolic_extent(low, high) else { return false };
    let tiles = allocate(kernel, found);
    let root = kernel.blocks.push(BlockData::default());
    generate(kernel, root, found, &tiles);
    let per_block = found.threads * REUSE as i64;
    let grid = [block_count(kernel, &extent, per_block), Expr::Int(found.pieces.unwrap_or(1)), Expr::Int(1)];
    let threads = found.threads as u32;
    let data = &mut kernel.launches[launch];
    (data.body, data.grid) = (root, Some(grid));
    let held = (found.settled.len() + found.combiners.len()) * REUSE as usize;
    data.resident = (held <= MOST_HELD).then(|| blocks_by_registers(u64::from(threads), OF_THREAD));
    record(kernel, launch, found, &tiles, &extent);
    true
}

fn find(kernel: &Kernel, launch: Launch, in_pieces: bool) -> Option<Found> {
    let root = kernel.launches[launch].body;
    let threads = i64::from(kernel.launches[launch].threads?);
    let forall = *kernel.blocks[root].insts.last()?;
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return None };
    let (outer, pieces) = match axes[..] {
        [outer] if !in_pieces => (outer, None),
        [_, outer] if in_pieces => {
            (outer, Some(i64::try_from(kernel.int_of(kernel.loop_bounds(forall)[0].1)?).ok()?))
        }
        _ => return None,
    };
    if pieces.is_some_and(|pieces| pieces >= 1 << 16) {
        return None;
    }
    let region = kernel.insts[forall].regions[0];
    let index = *kernel.blocks[region].params.last()?;
    let (_, insts) = kernel.blocks[region].insts.split_last()?;
    let at = insts.iter().position(|inst| kernel.insts[*inst].opcode == Opcode::Reduce)?;
    let (reduce, before, after) = (insts[at], &insts[..at], &insts[at + 1..]);
    let straight = |inst: &Inst| kernel.insts[*inst].regions.is_empty();
    // Threads beyond the end of the loop do what stands before the reduction too, of what others may have written.
    let reads = |inst: &Inst| kernel.insts[*inst].opcode.info().effect == Effect::Read;
    let plain = before.iter().all(|inst| straight(inst) && !reads(inst)) && after.iter().all(straight);
    let Payload::Reduce { axes, combiners } = &kernel.insts[reduce].payload else { return None };
    let names = [outer, *axes.first()?].map(|axis| kernel.axes[axis].name.as_str());
    let free = names.iter().all(|name| {
        let schedule = &kernel.schedule;
        let numbers =
            [schedule.tile(name), schedule.per_thread(name), schedule.vectorize(name), schedule.warps(name)];
        numbers.iter().all(Option::is_none) && schedule.unroll(name).is_none()
    });
    let mut affine = Affine::new(kernel);
    let uniform = kernel.insts[reduce].arguments.iter().all(|value| !affine.depends(*value, index));
    let fits = plain
        && free
        && !kernel.schedule.has_order()
        && uniform
        && combiners.iter().all(|combiner| combiner.opcode().is_some())
        && combiners.len() == kernel.insts[reduce].results.len();
    if !fits {
        return None;
    }
    let streamed = streamed(&mut affine, kernel, root, reduce)?;
    let settled = settled(&mut affine, kernel, reduce);
    let own = |inst: &Inst| (*inst, affine.any_depends(&kernel.insts[*inst].arguments, index));
    let before = before.iter().map(own).collect();
    let steps = groups_reused(kernel, reduce) as i64;
    let combiners = combiners.to_vec();
    Some(Found { root, forall, reduce, threads, pieces, before, combiners, streamed, settled, steps })
}

/// What a reduction's body computes or reads that does not depend on its index, branches with nothing else in them included:
/// a guarded load is one.
fn settled(affine: &mut Affine<'_>, kernel: &Kernel, reduce: Inst) -> Vec<Inst> {
    let region = kernel.insts[reduce].regions[0];
    let index = kernel.blocks[region].params[0];
    let mut settled: Vec<Inst> = Vec::new();
    for inst in &kernel.blocks[region].insts {
        let data = &kernel.insts[*inst];
        let mut plain = is_plain(data.opcode);
        let mut needed = data.arguments.to_vec();
        for region in &data.regions {
            kernel.walk(*region, &mut |_, inst| {
                let opcode = kernel.insts[inst].opcode;
                plain &= is_plain(opcode) || opcode == Opcode::Yield;
            });
        }
        if !data.regions.is_empty() {
            needed.extend(free_values(kernel, *inst));
        }
        // What it needs of the body stands before it among the settled.
        let known = |value: &Value| match kernel.values[*value].definition {
            Definition::Result(inst, _) => {
                !kernel.blocks[region].insts.contains(&inst) || settled.contains(&inst)
            }
            Definition::Param(..) => *value != index,
        };
        if plain && needed.iter().all(known) && !affine.any_depends(&data.results, index) {
            settled.push(*inst);
        }
    }
    settled
}

/// Whether an op reads and computes only, or is a branch.
fn is_plain(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Load | Opcode::If) || opcode.info().effect == Effect::Pure
}

/// The loads of the element at the reduction's index; `None` where some load has another form.
fn streamed(affine: &mut Affine<'_>, kernel: &Kernel, root: Block, reduce: Inst) -> Option<Vec<Inst>> {
    let region = kernel.insts[reduce].regions[0];
    let index = kernel.blocks[region].params[0];
    let written = written_buffers(kernel, root);
    let (mut streamed, mut fits) = (Vec::new(), true);
    kernel.walk(region, &mut |block, inst| {
        let data = &kernel.insts[inst];
        let Payload::Access { buffer, .. } = data.payload else { return };
        let elements = &kernel.buffers[buffer];
        let memory = matches!(elements.kind, BufferKind::Argument { .. } | BufferKind::Scratch);
        if !affine.any_depends(&data.arguments, index) {
            return;
        }
        if data.opcode == Opcode::Load
            && block == region
            && data.arguments.as_slice() == [index]
            && memory
            && !written.contains(buffer)
            && elements.element.size <= MOST_BYTES
        {
            streamed.push(inst);
        } else {
            fits = false;
        }
    });
    (fits && !streamed.is_empty()).then_some(streamed)
}

/// The shared buffers: structs lie as in memory, so that one access brings several leaves.
fn allocate(kernel: &mut Kernel, found: &Found) -> Vec<Tile> {
    let mut tiles: Vec<Tile> = Vec::new();
    for load in &found.streamed {
        let payload = kernel.insts[*load].payload.clone();
        let Payload::Access { buffer: source, leaf } = payload else { continue };
        if tiles.iter().any(|known| known.load == payload) {
            continue;
        }
        let BufferData { name, element, layout, .. } = kernel.buffers[source].clone();
        let together = layout == Layout::Aos;
        let known = tiles.iter().find(
            |known| matches!(known.load, Payload::Access { buffer, .. } if together && buffer == source),
        );
        let buffer = match known {
            Some(known) => known.buffer,
            None => kernel.buffers.push(BufferData {
                name: format!("{name}_of_block"),
                kind: BufferKind::Shared,
                element: if together {
                    element
                } else {
                    ElementType::scalar(element.leaves[leaf as usize].scalar)
                },
                extents: vec![Expr::Int(found.threads)],
                layout: Layout::Aos,
                layout_fixed: true,
                cache: None,
                runs_on: false,
            }),
        };
        tiles.push(Tile { load: payload, buffer, leaf: if together { leaf } else { 0 } });
    }
    tiles
}

/// Writes the code of one thread.
fn generate(kernel: &mut Kernel, root: Block, found: &Found, tiles: &[Tile]) {
    let mut map = ValueMap::default();
    let around = kernel.blocks[found.root].insts.clone();
    for inst in around.into_iter().filter(|inst| *inst != found.forall) {
        kernel.clone_inst(inst, root, &mut map);
    }
    let region = kernel.insts[found.forall].regions[0];
    let Some((index, piece)) = kernel.blocks[region].params.split_last() else { return };
    let (index, piece) = (*index, piece.first().copied());
    let Some(bounds) = kernel.loop_bounds(found.forall).last().copied() else { return };
    let (low, high) = (mapped(&map, bounds.0), mapped(&map, bounds.1));
    let mut emit = Emit::new(kernel, root, kernel.insts[found.forall].span);
    let block = emit.value(Opcode::BlockIndex, Payload::Grid(0), &[]);
    emit.name(block, "block");
    if let Some(piece) = piece {
        let number = emit.value(Opcode::BlockIndex, Payload::Grid(1), &[]);
        emit.name(number, "piece");
        map.insert(piece, number);
    }
    let thread = emit.value(Opcode::ThreadIndex, Payload::None, &[]);
    emit.name(thread, "tid");
    let begin = emit.mul_int(block, found.threads * REUSE as i64);
    let begin = emit.add(low, begin);
    let begin = emit.add(begin, thread);
    let last = emit.add_int(high, -1);
    let own: Vec<Value> =
        (0..REUSE as i64).map(|member| emit.add_int(begin, member * found.threads)).collect();
    let mut members: Vec<ValueMap> = own
        .iter()
        .map(|place| {
            let mut map = map.clone();
            map.insert(index, emit.min(*place, last));
            map
        })
        .collect();
    let insts = emit.kernel.blocks[region].insts.clone();
    for (inst, own) in &found.before {
        let results = emit.kernel.insts[*inst].results.clone();
        for member in 0..members.len() {
            if *own || member == 0 {
                emit.kernel.clone_inst(*inst, root, &mut members[member]);
                continue;
            }
            for result in &results {
                let same = mapped(&members[0], *result);
                members[member].insert(*result, same);
            }
        }
    }
    let sums = walk(&mut emit, found, tiles, thread, &members);
    let results = emit.kernel.insts[found.reduce].results.clone();
    let after = &insts[found.before.len() + 1..insts.len() - 1];
    for (member, (map, place)) in members.iter_mut().zip(own).enumerate() {
        for (at, result) in results.iter().enumerate() {
            map.insert(*result, sums[member * results.len() + at]);
        }
        map.insert(index, place);
        let inside = emit.binary(Opcode::Lt, place, high);
        emit.if_then(inside, |emit| {
            for inst in after {
                emit.kernel.clone_inst(*inst, emit.block, map);
            }
        });
    }
}

/// The loop over the tiles; the sums of each member, side by side.
fn walk(
    emit: &mut Emit<'_>,
    found: &Found,
    tiles: &[Tile],
    thread: Value,
    members: &[ValueMap],
) -> Vec<Value> {
    let arguments = emit.kernel.insts[found.reduce].arguments.clone();
    let (start, end) = (mapped(&members[0], arguments[0]), mapped(&members[0], arguments[1]));
    let types: Vec<_> =
        emit.kernel.insts[found.reduce].results.iter().map(|value| emit.kernel.value_type(*value)).collect();
    let mut identities = Vec::new();
    for (combiner, scalar) in found.combiners.iter().zip(types) {
        identities.extend(emit.identity(*combiner, scalar));
    }
    let initial: Vec<Value> = members.iter().flat_map(|_| identities.clone()).collect();
    let length = emit.int(found.threads);
    emit.span = emit.kernel.insts[found.reduce].span;
    emit.for_loop("tile", (start, end, length), &initial, |emit, tile, sums| {
        // All threads are done with the tile before.
        emit.barrier();
        let place = emit.add(tile, thread);
        let last = emit.add_int(end, -1);
        let place = emit.min(place, last);
        let values: Vec<Value> =
            tiles.iter().map(|tile| emit.value(Opcode::Load, tile.load.clone(), &[place])).collect();
        for (tile, value) in tiles.iter().zip(values) {
            emit.store(tile.buffer, tile.leaf, &[thread], value);
        }
        emit.barrier();
        let count = emit.sub(end, tile);
        let count = emit.min(count, length);
        let odd = emit.rem_by(count, found.steps);
        let whole = emit.sub(count, odd);
        let (zero, one, steps) = (emit.int(0), emit.int(1), emit.int(found.steps));
        let mut members = members.to_vec();
        for inst in &found.settled {
            for map in &mut members {
                emit.kernel.clone_inst(*inst, emit.block, map);
            }
        }
        let body = Body { found, tiles, members: &members, tile };
        let sums = emit.for_loop("j", (zero, whole, steps), sums, |emit, at, sums| {
            body.steps(emit, at, found.steps, sums)
        });
        emit.for_loop("j", (whole, count, one), &sums, |emit, at, sums| body.steps(emit, at, 1, sums))
    })
}

/// What a thread does with the elements of a tile.
struct Body<'a> {
    found: &'a Found,
    tiles: &'a [Tile],
    members: &'a [ValueMap],
    /// The tile's first index.
    tile: Value,
}

impl Body<'_> {
    /// Some steps from a place of the tile on, for all members, instruction by instruction.
    fn steps(&self, emit: &mut Emit<'_>, at: Value, count: i64, sums: &[Value]) -> Vec<Value> {
        let region = emit.kernel.insts[self.found.reduce].regions[0];
        let index = emit.kernel.blocks[region].params[0];
        let mut maps = Vec::new();
        for step in 0..count {
            let place = emit.add_int(at, step);
            let known: Vec<Value> =
                self.tiles.iter().map(|tile| emit.load(tile.buffer, tile.leaf, &[place])).collect();
            let mut given = vec![(index, emit.add(self.tile, place))];
            for load in &self.found.streamed {
                let data = &emit.kernel.insts[*load];
                let from = self.tiles.iter().zip(&known).find(|(tile, _)| tile.load == data.payload);
                given.extend(from.map(|(_, value)| (data.results[0], *value)));
            }
            for member in self.members {
                let mut map = member.clone();
                map.extend(given.iter().copied());
                maps.push(map);
            }
        }
        let insts = emit.kernel.blocks[region].insts.clone();
        let Some((last, insts)) = insts.split_last() else { return sums.to_vec() };
        let known = [&self.found.streamed[..], &self.found.settled[..]].concat();
        for inst in insts.iter().filter(|inst| !known.contains(inst)) {
            for map in &mut maps {
                emit.kernel.clone_inst(*inst, emit.block, map);
            }
        }
        let yielded = emit.kernel.insts[*last].arguments.clone();
        let mut sums = sums.to_vec();
        for (at, combiner) in self.found.combiners.iter().enumerate() {
            for (number, map) in maps.iter().enumerate() {
                let sum = &mut sums[number % self.members.len() * self.found.combiners.len() + at];
                if let Some(value) = emit.combine_one(*combiner, *sum, mapped(map, yielded[at])) {
                    *sum = value;
                }
            }
        }
        sums
    }
}

/// Records how the axes lie on the machine.
fn record(kernel: &mut Kernel, launch: Launch, found: &Found, tiles: &[Tile], extent: &Expr) {
    let name = kernel.launches[launch].name.clone();
    let Payload::Loop { axes } = kernel.insts[found.forall].payload.clone() else { return };
    let Payload::Reduce { axes: reduced, .. } = kernel.insts[found.reduce].payload.clone() else { return };
    let blocks = [(Level::Serial, REUSE as i64), (Level::Warp, found.threads / 32), (Level::Lane, 32)];
    let steps = [(Level::Serial, found.threads / found.steps), (Level::Serial, found.steps)];
    let Some(outer) = axes.last() else { return };
    let mut spreads = vec![
        (*outer, Some(extent.clone()), factors(Level::Grid, &blocks)),
        (reduced[0], None, factors(Level::Serial, &steps)),
    ];
    spreads.extend(found.pieces.map(|pieces| (axes[0], Some(Expr::Int(pieces)), factors(Level::Grid, &[]))));
    for (axis, extent, factors) in spreads {
        let axis = kernel.axes[axis].name.clone();
        kernel.schedule.spread(Spread { launch: name.clone(), axis, extent, factors });
    }
    // Elsewhere the axis may have vectors.
    let axis = kernel.axes[*outer].name.clone();
    kernel.schedule.chose(&name, Directive::Vectorize { axis, width: 1 }, "");
    for tile in tiles {
        let Payload::Access { buffer, .. } = tile.load else { continue };
        let array = kernel.buffers[buffer].name.clone();
        let reason = "all threads of a block read the same elements of it";
        kernel.schedule.noted(&name, Directive::Stage { array, place: None, depth: None }, reason);
    }
}

//! `privatize`: combines into a small array first within each block, in shared memory.
//!
//! ```text
//! forall axis0 "i" = v0..v1 [grid:*, warp:8, lane:32] {      before
//!     atomic add buf1[v5], v6
//!
//! store buf2[…], 0; barrier                                  after: buf2 is shared, [256, 32]
//! forall axis0 "i" = v0..v1 [serial:*, grid:264, warp:32, lane:32] {
//!     atomic add buf2[v5, lane], v6
//! }
//! barrier; atomic add buf1[…], reduce of buf2[…, 0..32]
//! ```
//!
//! A histogram's few bins would otherwise be fought over by the whole grid. The grid is as large as the machine and
//! walks the range, so that each bin meets global memory once a block. Of several axes the outermost one that is long enough
//! is dealt out to the blocks; each block walks all of the others.
//!
//! Where there is room, each lane has a copy of its own, and the copies of one element lie side by side: the lanes of
//! a warp then never meet, neither in a bin nor in a bank, whatever the data. Fewer than 32 copies are slower than one
//! on skewed data, because equal elements of a warp, which the hardware adds up by itself, are torn apart.
//!
//! Of an array with a part for each iteration of an outer axis, as the histograms of many images, a block has one such part
//! (`rows.rs`).
//!
//! # Preconditions
//!
//! The arrays have at most 16 KiB, of numbers of 4 or 8 bytes, or of narrow integers, for which a block has 4 bytes; all of their extents but the first are constant. Where that is a
//! size, a block has room for as many elements as a guard allows, and clears and adds up those that there are. The launch does
//! nothing with an array but combine by one operation. A launch over few elements keeps the plain form: the plan chooses.

mod held;
mod rows;

use crate::analysis::Conditions;
use crate::ir::emit::Emit;
use crate::ir::entities::{Axis, Buffer, Inst, Launch};
use crate::ir::kernel::{Factor, Kernel, Level, Payload, Phase, Phases};
use crate::ir::op::{Combiner, Opcode};
use crate::ir::schedule::Directive;
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use crate::passes::pass::{Changed, Pass, PassContext};
use crate::passes::special::specialize;
use held::{Copies, Held, LANES, MAX_BYTES, MAX_COPIED_BYTES, MIN_TURNS, Team, combining, is_of_grid, size};

pub struct Privatize;

impl Pass for Privatize {
    fn name(&self) -> &str {
        "privatize"
    }

    fn reason(&self) -> &str {
        "combines into small arrays within a block first, in shared memory"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Mapped])
    }

    fn runs_after(&self) -> &[&str] {
        &["map"]
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            for room in [MAX_COPIED_BYTES / LANES, MAX_BYTES] {
                changed |= within(kernel, launch, room, context);
            }
            changed |= rows::give(kernel, launch, context);
        }
        changed.into()
    }
}

/// Gives the blocks of a launch copies of arrays of so many bytes, or at most as many; whether they have any.
fn within(kernel: &mut Kernel, launch: Launch, room: i64, context: &PassContext) -> bool {
    let mut changed = false;
    for dealt in 0.. {
        // Nothing any more once it is the launch itself that has changed.
        let Some(found) = find(kernel, launch, room) else { break };
        if dealt == kernel.loop_bounds(found.forall).len() {
            break;
        }
        if !grid_axes(kernel, found.forall).contains(&dealt) {
            continue;
        }
        let Some(conditions) = conditions(kernel, &found, dealt, context) else { continue };
        let special = specialize(kernel, launch, &conditions, "shared", |kernel, launch| {
            apply(kernel, launch, (dealt, room), context);
            true
        });
        changed |= special.is_some();
    }
    changed
}

/// The arrays that a launch combines into.
struct Found {
    forall: Inst,
    arrays: Vec<Array>,
    copies: Copies,
}

struct Array {
    buffer: Buffer,
    op: Combiner,
    /// Those that a block has room for.
    extents: Vec<i64>,
    /// How many there are along the first axis.
    first: Expr,
}

impl Array {
    /// How many elements there are.
    fn elements(&self) -> Expr {
        let inner: i64 = self.extents[1..].iter().product();
        match &self.first {
            Expr::Int(first) => Expr::Int(first * inner),
            first if inner == 1 => first.clone(),
            first => Expr::binary(BinaryOp::Mul, first.clone(), Expr::Int(inner)),
        }
    }
}

impl Found {
    /// How many elements all arrays have.
    fn elements(&self) -> Expr {
        let add = |all: Expr, more: Expr| match (all, more) {
            (Expr::Int(all), Expr::Int(more)) => Expr::Int(all + more),
            (all, more) => Expr::binary(BinaryOp::Add, all, more),
        };
        self.arrays.iter().map(Array::elements).reduce(add).unwrap_or(Expr::Int(0))
    }
}

/// The arrays of a launch of which a block has copies. Those whose extent is a size share the room that the others leave.
fn find(kernel: &Kernel, launch: Launch, room: i64) -> Option<Found> {
    let (forall, arrays) = combining(kernel, launch)?;
    let literal = |extent: &Expr| if let Expr::Int(extent) = extent { Some(*extent) } else { None };
    // Each with its number of rows, where that is a literal, the other extents, and the bytes of a row.
    let mut known = Vec::new();
    for (buffer, op) in arrays {
        let (first, inner) = kernel.buffers[buffer].extents.split_first()?;
        let inner: Vec<i64> = inner.iter().map(literal).collect::<Option<_>>()?;
        let start = Some(size(kernel, buffer));
        let row = inner.iter().fold(start, |all, extent| all?.checked_mul(*extent)).filter(|row| *row > 0)?;
        known.push((buffer, op, first.clone(), inner, row));
    }
    let is_size = |first: &Expr| literal(first).is_none();
    let sizes = known.iter().filter(|(_, _, first, ..)| is_size(first)).count() as i64;
    // A size has its question of each room, a constant one answer.
    if sizes == 0 && room != MAX_BYTES {
        return None;
    }
    let of_literals = known.iter().filter_map(|(_, _, first, _, row)| literal(first)?.checked_mul(*row));
    let left = room - of_literals.fold(0, i64::saturating_add);
    let (mut found, mut bytes) = (Vec::new(), 0i64);
    for (buffer, op, first, inner, row) in known {
        let rows = literal(&first).unwrap_or_else(|| left / sizes.max(1) / row);
        if rows < 1 || is_size(&first) && rows < 2 {
            return None;
        }
        bytes = bytes.checked_add(rows.checked_mul(row)?)?;
        found.push(Array { buffer, op, extents: [&[rows][..], &inner].concat(), first });
    }
    let copies = Copies::of(bytes);
    (bytes <= MAX_BYTES).then_some(Found { forall, arrays: found, copies })
}

/// The axes of a loop that the grid has, by their numbers.
fn grid_axes(kernel: &Kernel, forall: Inst) -> Vec<usize> {
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return Vec::new() };
    axes.iter().enumerate().filter(|(_, axis)| is_of_grid(kernel, **axis)).map(|(at, _)| at).collect()
}

/// Enough iterations, and enough along the axis that is dealt out for every block to have some; `None` where the host does
/// not know how many there are.
fn conditions(kernel: &Kernel, found: &Found, dealt: usize, context: &PassContext) -> Option<Conditions> {
    let bounds = kernel.loop_bounds(found.forall);
    let extents = bounds.iter().map(|(low, high)| kernel.symbolic_extent(*low, *high));
    let extents = extents.collect::<Option<Vec<Expr>>>()?;
    let least = |extent: Expr, least: i64| Expr::binary(BinaryOp::GreaterEqual, extent, Expr::Int(least));
    let all = extents.iter().cloned().reduce(|all, extent| Expr::binary(BinaryOp::Mul, all, extent))?;
    let turns = match found.elements() {
        Expr::Int(elements) => Expr::Int(elements * MIN_TURNS),
        elements => Expr::binary(BinaryOp::Mul, elements, Expr::Int(MIN_TURNS)),
    };
    let many = Expr::binary(BinaryOp::GreaterEqual, all, turns);
    let mut conditions = Conditions::new().prefers(many);
    for array in found.arrays.iter().filter(|array| !matches!(array.first, Expr::Int(_))) {
        let room = Expr::Int(array.extents[0]);
        conditions = conditions.needs(Expr::binary(BinaryOp::LessEqual, array.first.clone(), room));
    }
    // What no axis before has enough of, the last one is taken for.
    if grid_axes(kernel, found.forall).last() == Some(&dealt) {
        return Some(conditions);
    }
    let blocks = i64::from(context.target.multiprocessors) * found.copies.blocks as i64;
    Some(conditions.prefers(least(extents[dealt].clone(), blocks)))
}

fn apply(kernel: &mut Kernel, launch: Launch, (dealt, room): (usize, i64), context: &PassContext) {
    let Some(found) = find(kernel, launch, room) else { return };
    let span = kernel.insts[found.forall].span;
    spread(kernel, launch, &found, dealt, context);
    let threads = i64::from(kernel.launches[launch].threads.unwrap_or(1));
    let root = kernel.launches[launch].body;
    let new = |array: &Array| {
        let op = mutant!("privatize: each array has its own operation", array.op, found.arrays[0].op);
        Held::new(kernel, (array.buffer, op), array.extents.clone(), found.copies.count)
    };
    let held: Vec<Held> = found.arrays.iter().map(new).collect();
    let mut insts = std::mem::take(&mut kernel.blocks[root].insts);
    let position = insts.iter().position(|inst| *inst == found.forall).unwrap_or(insts.len());
    let after = insts.split_off(position);
    kernel.blocks[root].insts = insts;
    let mut emit = Emit::new(kernel, root, span);
    let tid = emit.value(Opcode::ThreadIndex, Payload::None, &[]);
    let team = |array: &Array, emit: &mut Emit<'_>| {
        let elements = emit.expression(&array.elements());
        Team { tid, threads, elements }
    };
    let teams: Vec<Team> = found.arrays.iter().map(|array| team(array, &mut emit)).collect();
    held.iter().zip(&teams).for_each(|(held, team)| held.clear(&mut emit, team));
    let copy = teams[0].copy(&mut emit, found.copies);
    emit.barrier();
    emit.kernel.blocks[root].insts.extend(after);
    let body = emit.kernel.insts[found.forall].regions[0];
    held.iter().for_each(|held| held.redirect(emit.kernel, body, (0, copy)));
    emit.barrier();
    held.iter().zip(&teams).for_each(|(held, team)| held.merge(&mut emit, team, (&[], copy)));
}

/// Lets a grid that fills the machine walk over the loop's range: each block has its part of one axis, and all of the others.
fn spread(kernel: &mut Kernel, launch: Launch, found: &Found, dealt: usize, context: &PassContext) {
    let Payload::Loop { axes } = &kernel.insts[found.forall].payload else { return };
    let (threads, blocks) = (found.copies.threads, found.copies.blocks);
    let blocks = u64::from(context.target.multiprocessors) * blocks;
    let free = kernel.schedule.block().is_none() && threads <= context.target.max_threads;
    let has_warps =
        |axis: &&Axis| kernel.axes[**axis].factors.iter().any(|factor| factor.level == Level::Warp);
    let one = axes.iter().filter(has_warps).count() == 1;
    let resized = free && one && context.target.warp_size == LANES as u32;
    for (at, axis) in axes.iter().enumerate() {
        if !is_of_grid(kernel, *axis) {
            continue;
        }
        let factors = &mut kernel.axes[*axis].factors;
        factors[0] = Factor { level: Level::Serial, size: None };
        if at == dealt {
            factors.insert(1, Factor { level: Level::Grid, size: Some(blocks) });
        }
        let warps = factors.iter_mut().find(|factor| factor.level == Level::Warp);
        if let Some(warps) = warps.filter(|_| resized) {
            warps.size = Some(u64::from(threads / LANES as u32));
        }
    }
    if resized {
        kernel.launches[launch].threads = Some(threads);
        let launch = kernel.launches[launch].name.clone();
        let reason = "a block clears and adds up its copies of the array: large ones have fewer";
        kernel.schedule.noted(&launch, Directive::Block(threads), reason);
    }
}

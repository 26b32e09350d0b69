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
//! The array has at most 16 KiB of 32-bit integers; all of its extents but the first are constant. Where that is a size, a block
//! has room for as many elements as a guard allows, and clears and adds up those that there are. The launch does nothing with the
//! array but combine by one operation. A launch over few elements keeps the plain form: the plan chooses.

mod rows;

use crate::analysis::Conditions;
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Axis, Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferData, BufferKind, Factor, Kernel, Level, Payload, Phase, Phases};
use crate::ir::op::{Combiner, Opcode};
use crate::ir::schedule::Directive;
use crate::manifest::{BinaryOp, Expr, Layout};
use crate::passes::pass::{Changed, Pass, PassContext};
use crate::passes::special::specialize;

pub struct Privatize;

/// Bytes of an element.
const SIZE: i64 = 4;
/// The largest array that a block has a copy of.
const MAX_BYTES: i64 = 16 * 1024;
/// Fewer iterations than these times the array's length do not pay for the copies.
const MIN_TURNS: i64 = 64;
/// The most shared memory for a copy a lane: every GPU has it.
const MAX_COPIED_BYTES: i64 = 64 * 1024;

/// How a block holds the array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Copies {
    /// 1, or one a lane.
    count: i64,
    /// Threads of a block, unless the schedule says how many.
    threads: u32,
    /// Blocks that a multiprocessor gets.
    blocks: u64,
}

impl Copies {
    /// Large blocks where there are many copies to clear and to add up (u8 to 256 bins on an H200: 3898 GB/s with
    /// 1024 threads, 3491 with 256).
    fn of(elements: i64) -> Self {
        if elements * SIZE * LANES <= MAX_COPIED_BYTES {
            Self { count: LANES, threads: 1024, blocks: 2 }
        } else {
            Self { count: 1, threads: 256, blocks: 8 }
        }
    }
}

/// Lanes of a warp.
const LANES: i64 = 32;

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
            for room in [MAX_COPIED_BYTES / LANES / SIZE, MAX_BYTES / SIZE] {
                changed |= within(kernel, launch, room, context);
            }
            changed |= rows::give(kernel, launch, context);
        }
        changed.into()
    }
}

/// Gives the blocks of a launch copies of an array of so many elements, or at most as many; whether they have any.
fn within(kernel: &mut Kernel, launch: Launch, room: i64, context: &PassContext) -> bool {
    let mut changed = false;
    for dealt in 0.. {
        // Nothing any more once it is the launch itself that has changed.
        let Some(found) = find(kernel, launch, room) else { break };
        if dealt == kernel.loop_bounds(found.forall).len() {
            break;
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

/// An array that a launch combines into.
struct Found {
    forall: Inst,
    buffer: Buffer,
    op: Combiner,
    /// Those that a block has room for.
    extents: Vec<i64>,
    /// How many there are along the first axis.
    first: Expr,
    copies: Copies,
}

impl Found {
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

/// The loop of a launch whose iterations combine into one array and do nothing else with it, the array, and how.
fn combining(kernel: &Kernel, launch: Launch) -> Option<(Inst, Buffer, Combiner)> {
    let root = kernel.launches[launch].body;
    let mut loops =
        kernel.blocks[root].insts.iter().copied().filter(|inst| !kernel.insts[*inst].regions.is_empty());
    let forall = loops.next().filter(|inst| kernel.insts[*inst].opcode == Opcode::Forall)?;
    if loops.next().is_some() {
        return None;
    }
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return None };
    let grid = Factor { level: Level::Grid, size: None };
    let spread = axes.iter().all(|axis| {
        let factors = &kernel.axes[*axis].factors;
        factors.first() == Some(&grid) && factors[1..].iter().all(|factor| factor.level.is_parallel())
    });
    let mut found: Option<(Buffer, Combiner)> = None;
    let mut fits = spread;
    kernel.walk(root, &mut |_, inst| {
        if let Payload::Atomic { buffer, op, .. } = kernel.insts[inst].payload {
            fits &= found.is_none_or(|known| known == (buffer, op));
            found = Some((buffer, op));
        }
    });
    let (buffer, op) = found.filter(|_| fits)?;
    kernel.walk(root, &mut |_, inst| {
        fits &= !matches!(kernel.insts[inst].payload, Payload::Access { buffer: other, .. } if other == buffer);
    });
    let integer = matches!(kernel.buffers[buffer].element.as_scalar(), Some(Scalar::U32 | Scalar::I32));
    let native = !matches!(op, Combiner::Mul | Combiner::ArgMin | Combiner::ArgMax);
    (fits && integer && native).then_some((forall, buffer, op))
}

/// The array of a launch of which a block has a copy, with room for so many elements where that is not constant.
fn find(kernel: &Kernel, launch: Launch, room: i64) -> Option<Found> {
    let (forall, buffer, op) = combining(kernel, launch)?;
    let data = &kernel.buffers[buffer];
    let (first, inner) = data.extents.split_first()?;
    let literal = |extent: &Expr| if let Expr::Int(extent) = extent { Some(*extent) } else { None };
    let inner: Vec<i64> = inner.iter().map(literal).collect::<Option<_>>()?;
    let of_row =
        inner.iter().try_fold(1i64, |all, extent| all.checked_mul(*extent).filter(|all| *all > 0))?;
    // A size has its question of each room, a constant one answer.
    let is_last = room == MAX_BYTES / SIZE;
    let rows = match literal(first) {
        Some(rows) => Some(rows).filter(|rows| is_last && *rows > 0)?,
        None => room / of_row,
    };
    let elements = rows.checked_mul(of_row)?;
    let small = (1..=MAX_BYTES / SIZE).contains(&elements);
    let extents = [&[rows][..], &inner].concat();
    let (first, copies) = (first.clone(), Copies::of(elements));
    small.then_some(Found { forall, buffer, op, extents, first, copies })
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
    if !matches!(found.first, Expr::Int(_)) {
        let room = Expr::Int(found.extents[0]);
        conditions = conditions.needs(Expr::binary(BinaryOp::LessEqual, found.first.clone(), room));
    }
    // What no axis before has enough of, the last one is taken for.
    if dealt + 1 == extents.len() {
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
    let held = Held::new(kernel, (found.buffer, found.op), found.extents.clone(), found.copies.count);
    let mut insts = std::mem::take(&mut kernel.blocks[root].insts);
    let position = insts.iter().position(|inst| *inst == found.forall).unwrap_or(insts.len());
    let after = insts.split_off(position);
    kernel.blocks[root].insts = insts;
    let mut emit = Emit::new(kernel, root, span);
    let elements = emit.expression(&found.elements());
    let team = Team { tid: emit.value(Opcode::ThreadIndex, Payload::None, &[]), threads, elements };
    held.clear(&mut emit, &team);
    let copy = held.copy(&mut emit, &team);
    emit.barrier();
    emit.kernel.blocks[root].insts.extend(after);
    let body = emit.kernel.insts[found.forall].regions[0];
    held.redirect(emit.kernel, body, (0, copy));
    emit.barrier();
    held.merge(&mut emit, &team, (&[], copy));
}

/// A block's copies of an array, or of a part of one.
struct Held {
    buffer: Buffer,
    op: Combiner,
    own: Buffer,
    extents: Vec<i64>,
    /// How many copies there are of each element.
    count: i64,
}

/// The threads of a block, and how many elements they share.
struct Team {
    tid: Value,
    threads: i64,
    elements: Value,
}

impl Held {
    fn new(kernel: &mut Kernel, (buffer, op): (Buffer, Combiner), extents: Vec<i64>, count: i64) -> Self {
        let data = kernel.buffers[buffer].clone();
        let copies = (count > 1).then_some(count);
        let own = kernel.buffers.push(BufferData {
            name: format!("{}_of_block", data.name),
            kind: BufferKind::Shared,
            extents: extents.iter().copied().chain(copies).map(Expr::Int).collect(),
            layout: Layout::Aos,
            layout_fixed: true,
            cache: None,
            ..data
        });
        Self { buffer, op, own, extents, count }
    }

    fn identity(&self, emit: &mut Emit<'_>) -> Value {
        let scalar = emit.kernel.buffers[self.buffer].element.as_scalar().unwrap_or(Scalar::U32);
        emit.identity(self.op, scalar)[0]
    }

    /// Nothing is in any copy.
    fn clear(&self, emit: &mut Emit<'_>, team: &Team) {
        let places = emit.mul_int(team.elements, self.count);
        let copies = (self.count > 1).then_some(self.count);
        let whole: Vec<i64> = self.extents.iter().copied().chain(copies).collect();
        each(emit, team, places, |emit, place| {
            let identity = self.identity(emit);
            let indices = subscripts(emit, place, &whole);
            emit.store(self.own, 0, &indices, identity);
        });
    }

    /// The copy of a thread, where there are several.
    fn copy(&self, emit: &mut Emit<'_>, team: &Team) -> Option<Value> {
        (self.count > 1).then(|| emit.rem_by(team.tid, self.count))
    }

    /// Lets the loop's atomics combine into the block's copy, or the lane's; so many subscripts in front are the same for all of
    /// the block's.
    fn redirect(&self, kernel: &mut Kernel, body: Block, (around, copy): (usize, Option<Value>)) {
        let mut atomics = Vec::new();
        kernel.walk(body, &mut |_, inst| {
            if matches!(kernel.insts[inst].payload, Payload::Atomic { .. }) {
                atomics.push(inst);
            }
        });
        for inst in atomics {
            if let Payload::Atomic { buffer, .. } = &mut kernel.insts[inst].payload {
                *buffer = self.own;
            }
            let arguments = &mut kernel.insts[inst].arguments;
            arguments.drain(..around);
            let value = arguments.len() - 1;
            if let Some(copy) = copy {
                arguments.insert(value, copy);
            }
        }
    }

    /// Combines what the block has with the array: with the part of it behind some subscripts.
    fn merge(&self, emit: &mut Emit<'_>, team: &Team, (around, copy): (&[Value], Option<Value>)) {
        each(emit, team, team.elements, |emit, place| {
            let identity = self.identity(emit);
            let indices = subscripts(emit, place, &self.extents);
            let value = match copy {
                None => emit.load(self.own, 0, &indices),
                Some(first) => self.add_up(emit, &indices, first, identity),
            };
            let changed = emit.binary(Opcode::Ne, value, identity);
            emit.if_then(changed, |emit| {
                let payload = Payload::Atomic { buffer: self.buffer, leaf: 0, op: self.op };
                let arguments: Vec<Value> = around.iter().chain(&indices).copied().chain([value]).collect();
                emit.inst(Opcode::Atomic, payload, &arguments);
            });
        });
    }

    /// All copies of one element, combined. Each thread begins with another copy, so that the lanes of a warp read different
    /// banks.
    fn add_up(&self, emit: &mut Emit<'_>, indices: &[Value], first: Value, identity: Value) -> Value {
        let (zero, one, count) = (emit.int(0), emit.int(1), emit.int(self.count));
        let sums = emit.for_loop("copy", (zero, count, one), &[identity], |emit, step, sums| {
            let place = emit.add(first, step);
            let place = emit.rem_by(place, self.count);
            let indices: Vec<Value> = indices.iter().copied().chain([place]).collect();
            let value = emit.load(self.own, 0, &indices);
            emit.combine(self.op, sums, &[value])
        });
        sums[0]
    }
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

/// A loop over so many places, shared by the block's threads.
fn each(emit: &mut Emit<'_>, team: &Team, count: Value, body: impl FnOnce(&mut Emit<'_>, Value)) {
    let step = emit.int(team.threads);
    emit.for_loop("element", (team.tid, count, step), &[], |emit, index, _| {
        body(emit, index);
        Vec::new()
    });
}

/// The subscripts of a place of an array, counted along its rows.
fn subscripts(emit: &mut Emit<'_>, place: Value, extents: &[i64]) -> Vec<Value> {
    let mut indices = Vec::with_capacity(extents.len());
    let mut rest = place;
    for extent in extents.iter().skip(1).rev() {
        indices.push(emit.rem_by(rest, *extent));
        rest = emit.div_by(rest, *extent);
    }
    // There is one row, perhaps.
    indices.push(if extents.first() == Some(&1) { emit.int(0) } else { rest });
    indices.reverse();
    indices
}

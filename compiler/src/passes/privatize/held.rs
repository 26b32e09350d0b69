//! What a block holds of an array that its iterations combine into: how many copies, how they are cleared, and how they are combined
//! with the array.

use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferData, BufferKind, Factor, Kernel, Level, Payload};
use crate::ir::op::{Combiner, Opcode};
use crate::manifest::{Expr, Layout};

/// Bytes of an element.
pub const SIZE: i64 = 4;
/// The largest array that a block has a copy of.
pub const MAX_BYTES: i64 = 16 * 1024;
/// Fewer iterations than these times the array's length do not pay for the copies.
pub const MIN_TURNS: i64 = 64;
/// The most shared memory for a copy a lane: every GPU has it.
pub const MAX_COPIED_BYTES: i64 = 64 * 1024;

/// How a block holds the array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copies {
    /// 1, or one a lane.
    pub count: i64,
    /// Threads of a block, unless the schedule says how many.
    pub threads: u32,
    /// Blocks that a multiprocessor gets.
    pub blocks: u64,
}

impl Copies {
    /// Large blocks where there are many copies to clear and to add up (u8 to 256 bins on an H200: 3898 GB/s with
    /// 1024 threads, 3491 with 256).
    pub fn of(elements: i64) -> Self {
        if elements * SIZE * LANES <= MAX_COPIED_BYTES {
            Self { count: LANES, threads: 1024, blocks: 2 }
        } else {
            Self { count: 1, threads: 256, blocks: 8 }
        }
    }
}

/// Lanes of a warp.
pub const LANES: i64 = 32;

/// The loop of a launch whose iterations combine into one array and do nothing else with it, the array, and how.
pub fn combining(kernel: &Kernel, launch: Launch) -> Option<(Inst, Buffer, Combiner)> {
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

/// A block's copies of an array, or of a part of one.
pub struct Held {
    buffer: Buffer,
    op: Combiner,
    own: Buffer,
    extents: Vec<i64>,
    /// How many copies there are of each element.
    count: i64,
}

/// The threads of a block, and how many elements they share.
pub struct Team {
    pub tid: Value,
    pub threads: i64,
    pub elements: Value,
}

impl Held {
    pub fn new(kernel: &mut Kernel, (buffer, op): (Buffer, Combiner), extents: Vec<i64>, count: i64) -> Self {
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
    pub fn clear(&self, emit: &mut Emit<'_>, team: &Team) {
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
    pub fn copy(&self, emit: &mut Emit<'_>, team: &Team) -> Option<Value> {
        (self.count > 1).then(|| emit.rem_by(team.tid, self.count))
    }

    /// Lets the loop's atomics combine into the block's copy, or the lane's; so many subscripts in front are the same for all of
    /// the block's.
    pub fn redirect(&self, kernel: &mut Kernel, body: Block, (around, copy): (usize, Option<Value>)) {
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
    pub fn merge(&self, emit: &mut Emit<'_>, team: &Team, (around, copy): (&[Value], Option<Value>)) {
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

//! What a block holds of an array that its iterations combine into: how many copies, how they are cleared, and how they are combined
//! with the array.

use crate::data::{ElementType, Scalar};
use crate::ir::emit::Emit;
use crate::ir::entities::{Axis, Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferData, BufferKind, Factor, Kernel, Level, Payload};
use crate::ir::op::{Combiner, Opcode};
use crate::manifest::{Expr, Layout};
use crate::mutants::mutant;
use std::cmp::Ordering;

/// The largest arrays, together, that a block has a copy of.
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
    /// Of arrays of so many bytes. Large blocks where there are many copies to clear and to add up (u8 to 256 bins on an H200: 3898 GB/s with
    /// 1024 threads, 3491 with 256).
    pub fn of(bytes: i64) -> Self {
        if bytes * LANES <= MAX_COPIED_BYTES {
            Self { count: LANES, threads: 1024, blocks: 2 }
        } else {
            Self { count: 1, threads: 256, blocks: 8 }
        }
    }
}

/// Lanes of a warp.
pub const LANES: i64 = 32;

/// The loop of a launch whose iterations combine into arrays and do nothing else with them, these, and how each.
pub fn combining(kernel: &Kernel, launch: Launch) -> Option<(Inst, Vec<(Buffer, Combiner)>)> {
    let root = kernel.launches[launch].body;
    let mut loops =
        kernel.blocks[root].insts.iter().copied().filter(|inst| !kernel.insts[*inst].regions.is_empty());
    let forall = loops.next().filter(|inst| kernel.insts[*inst].opcode == Opcode::Forall)?;
    if loops.next().is_some() {
        return None;
    }
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return None };
    // A short axis may be the lanes' alone.
    let is_parallel =
        |axis: &Axis| kernel.axes[*axis].factors.iter().all(|factor| factor.level.is_parallel());
    let spread = axes.iter().all(is_parallel) && axes.iter().any(|axis| is_of_grid(kernel, *axis));
    let mut found: Vec<(Buffer, Combiner)> = Vec::new();
    let mut fits = spread;
    kernel.walk(root, &mut |_, inst| {
        if let Payload::Atomic { buffer, op, .. } = kernel.insts[inst].payload {
            match found.iter().find(|(known, _)| *known == buffer) {
                Some((_, known)) => fits &= *known == op,
                None => found.push((buffer, op)),
            }
        }
    });
    kernel.walk(root, &mut |_, inst| {
        let Payload::Access { buffer, .. } = kernel.insts[inst].payload else { return };
        fits &= found.iter().all(|(known, _)| *known != buffer);
    });
    fits &= found.iter().all(|(buffer, op)| can_be_held(kernel, *buffer, *op));
    (fits && !found.is_empty()).then_some((forall, found))
}

/// Whether the grid has what threads leave of an axis.
pub fn is_of_grid(kernel: &Kernel, axis: Axis) -> bool {
    kernel.axes[axis].factors.first() == Some(&Factor { level: Level::Grid, size: None })
}

/// Whether a block can combine into a copy of an array: atomics on shared memory do the same.
fn can_be_held(kernel: &Kernel, buffer: Buffer, op: Combiner) -> bool {
    let scalar = kernel.buffers[buffer].element.as_scalar();
    let atomic = match op {
        Combiner::Add | Combiner::Min | Combiner::Max => true,
        Combiner::And | Combiner::Or | Combiner::Xor => scalar.is_some_and(|scalar| !scalar.is_float()),
        _ => false,
    };
    atomic && scalar.is_some_and(|scalar| scalar.size() >= 4 || scalar.is_integer())
}

/// Bytes of an element of a block's copy.
pub fn size(kernel: &Kernel, buffer: Buffer) -> i64 {
    own_scalar(kernel, buffer).size() as i64
}

/// What a block's copy has for an element: narrow integers are combined as 32 bits, of which the low ones come to the same.
fn own_scalar(kernel: &Kernel, buffer: Buffer) -> Scalar {
    let scalar = kernel.buffers[buffer].element.as_scalar().map_or(Scalar::U32, Scalar::widened);
    mutant!(
        "privatize: narrow numbers keep their sign",
        scalar,
        if scalar == Scalar::I32 { Scalar::U32 } else { scalar }
    )
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

impl Team {
    /// The copy of a thread, where there are several.
    pub fn copy(&self, emit: &mut Emit<'_>, copies: Copies) -> Option<Value> {
        (copies.count > 1).then(|| emit.rem_by(self.tid, copies.count))
    }
}

impl Held {
    pub fn new(kernel: &mut Kernel, (buffer, op): (Buffer, Combiner), extents: Vec<i64>, count: i64) -> Self {
        let data = kernel.buffers[buffer].clone();
        let copies = (count > 1).then_some(count);
        let own = kernel.buffers.push(BufferData {
            name: format!("{}_of_block", data.name),
            kind: BufferKind::Shared,
            element: ElementType::scalar(own_scalar(kernel, buffer)),
            extents: extents.iter().copied().chain(copies).map(Expr::Int).collect(),
            layout: Layout::Aos,
            layout_fixed: true,
            cache: None,
            ..data
        });
        Self { buffer, op, own, extents, count }
    }

    fn identity(&self, emit: &mut Emit<'_>) -> Value {
        let scalar = own_scalar(emit.kernel, self.buffer);
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

    /// Lets the loop's atomics combine into the block's copy, or the lane's; so many subscripts in front are the same for all of
    /// the block's.
    pub fn redirect(&self, kernel: &mut Kernel, body: Block, (around, copy): (usize, Option<Value>)) {
        let mut atomics = Vec::new();
        kernel.walk(body, &mut |_, inst| {
            if matches!(kernel.insts[inst].payload, Payload::Atomic { buffer, .. } if buffer == self.buffer) {
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
            let scalar = emit.kernel.buffers[self.buffer].element.as_scalar().unwrap_or(Scalar::U32);
            emit.if_then(changed, |emit| {
                let value = match scalar.is_narrow() {
                    true => emit.value(Opcode::Cast, Payload::Cast(scalar), &[value]),
                    false => value,
                };
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
    // The first axis that has several places has what is left of the number.
    let first = extents.iter().position(|extent| *extent != 1).unwrap_or(extents.len());
    let mut indices = Vec::with_capacity(extents.len());
    let mut rest = place;
    for (at, extent) in extents.iter().enumerate().rev() {
        indices.push(match at.cmp(&first) {
            Ordering::Less => emit.int(0),
            Ordering::Equal => rest,
            Ordering::Greater => emit.rem_by(rest, *extent),
        });
        if at > first {
            rest = emit.div_by(rest, *extent);
        }
    }
    indices.reverse();
    indices
}

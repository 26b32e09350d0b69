//! What goes where: a loop that fills an array, and the place that reads it.

use crate::analysis::Affine;
use crate::data::Scalar;
use crate::ir::Parents;
use crate::ir::clone::ValueMap;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{InstData, Kernel, Payload};
use crate::ir::op::{Constant, Effect, Opcode};
use crate::manifest::{BinaryOp, Expr};
use cranelift_entity::EntitySet;

/// What accesses a local array.
#[derive(Clone, Default)]
pub struct Accesses {
    pub stores: Vec<Inst>,
    pub loads: Vec<Inst>,
    pub others: bool,
}

/// A loop that fills an array, and where that is read.
pub struct Plan {
    pub buffer: Buffer,
    pub producer: Inst,
    /// The block of the loop.
    pub outside: Block,
    pub of_another_launch: bool,
    /// Whether something else reads the array.
    pub stays: bool,
    pub stores: Vec<Inst>,
    /// The block of all that is read.
    pub inside: Block,
    pub reads: Vec<Read>,
    /// The index of the loop for each parameter of the producer's.
    pub indices: ValueMap,
}

/// A load of what a loop has stored.
pub struct Read {
    pub load: Inst,
    pub loaded: Value,
    pub stored: Value,
    /// As which it lies in the array.
    pub scalar: Scalar,
}

/// Whether the schedule says nothing about an array, nor about an axis of the loop that fills it and that has another name
/// where it is read.
pub fn is_unscheduled(kernel: &Kernel, producer: Inst, loops: &[Inst], buffer: Buffer) -> bool {
    let named = |axis: &str| loops.iter().any(|inst| names(kernel, *inst).any(|name| name == axis));
    let free = names(kernel, producer).all(|name| named(name) || !kernel.schedule.speaks_of(name));
    free && !kernel.schedule.speaks_of(&kernel.buffers[buffer].name)
}

/// Whether a loop writes every element of the array, each in an iteration of its own, and nothing else.
pub fn fills(kernel: &Kernel, producer: Inst, buffer: Buffer, stores: &[Inst], written: &[Value]) -> bool {
    let data = &kernel.insts[producer];
    let [body] = data.regions[..] else { return false };
    if data.opcode != Opcode::Forall {
        return false;
    }
    let (mut plain, mut inside) = (true, EntitySet::<Value>::new());
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let effect = data.opcode.info().effect;
        // A check of an element that nobody reads would not be made.
        plain &= !effect.is_observable() || stores.contains(&inst);
        inside.extend(data.results.iter().copied());
    });
    let params = &kernel.blocks[body].params;
    let (bounds, extents) = (kernel.loop_bounds(producer), &kernel.buffers[buffer].extents);
    let whole = params.iter().zip(bounds).all(|(param, (low, high))| {
        let mut places = written.iter().zip(extents).filter(|(value, _)| *value == param);
        let (Some((_, extent)), None) = (places.next(), places.next()) else { return false };
        kernel.constant_of(low) == Some(Constant::Int(Scalar::I64, 0))
            && kernel.symbolic(high).is_some_and(|high| is_extent(extent, &high))
    });
    plain && whole && written.iter().all(|value| params.contains(value) || !inside.contains(*value))
}

/// Whether an array of so many elements ends where a range from 0 to `high` does: that may end before it begins.
pub fn is_extent(extent: &Expr, high: &Expr) -> bool {
    extent == high || *extent == Expr::binary(BinaryOp::Max, high.clone(), Expr::Int(0))
}

/// Whether instructions stand in one block and access the same element.
pub fn stand_together(kernel: &Kernel, parents: &Parents, insts: &[Inst]) -> bool {
    let place = |inst: &Inst| (parents.block_of[*inst], kernel.subscripts(&kernel.insts[*inst]));
    insts.windows(2).all(|pair| place(&pair[0]) == place(&pair[1]))
}

/// What each load reads; `None` where its leaf is not stored once.
pub fn reads(kernel: &Kernel, buffer: Buffer, stores: &[Inst], loads: &[Inst]) -> Option<Vec<Read>> {
    let read = |load: &Inst| {
        let payload = &kernel.insts[*load].payload;
        let Payload::Access { leaf, .. } = payload else { return None };
        let mut same = stores.iter().filter(|store| kernel.insts[**store].payload == *payload);
        let (Some(store), None) = (same.next(), same.next()) else { return None };
        let stored = *kernel.insts[*store].arguments.last()?;
        let scalar = kernel.buffers[buffer].element.leaves[*leaf as usize].scalar;
        Some(Read { load: *load, loaded: kernel.result_of(*load)?, stored, scalar })
    };
    loads.iter().map(read).collect()
}

/// The `forall` and `reduce` loops around a load, up to a block; `None` where it does not stand in something of that block, or in a
/// loop of another kind.
pub fn loops_around(kernel: &Kernel, parents: &Parents, block: Block, load: Inst) -> Option<Vec<Inst>> {
    let mut loops = Vec::new();
    for inst in parents.enclosing(load) {
        match kernel.insts[inst].opcode {
            Opcode::Forall | Opcode::Reduce => loops.push(inst),
            Opcode::If => {}
            _ => return None,
        }
        if parents.block_of[inst].expand() == Some(block) {
            return Some(loops);
        }
    }
    None
}

/// Whether the elements that a loop makes stay an array, from where an instruction reads them: up to each of them
/// something is added up, which `scan` shares among them where it stands in a loop itself, and the instruction stands
/// under a condition.
pub fn is_shared(kernel: &Kernel, parents: &Parents, body: Block, load: Inst) -> bool {
    let is_conditional =
        parents.enclosing(load).next().is_some_and(|around| kernel.insts[around].opcode == Opcode::If);
    let params = &kernel.blocks[body].params;
    let mut affine = Affine::new(kernel);
    is_conditional
        && kernel.blocks[body].insts.iter().any(|inst| {
            let data = &kernel.insts[*inst];
            data.opcode == Opcode::Reduce
                && params.iter().any(|index| affine.any_depends(&data.arguments, *index))
        })
}

/// The buffers that a block, or what is inside, reads.
pub fn loaded_in(kernel: &Kernel, block: Block) -> Vec<Buffer> {
    let mut read = Vec::new();
    kernel.walk(block, &mut |_, inst| {
        let data = &kernel.insts[inst];
        read.extend(accessed(data).filter(|_| data.opcode.info().effect == Effect::Read));
    });
    read
}

/// For each parameter of the producer, what stands at its place where the array is read: indices of all the loops around,
/// each of them once. The other subscripts must be equal.
pub fn indices(
    kernel: &Kernel,
    body: Block,
    written: &[Value],
    read: &[Value],
    loops: &[Inst],
) -> Option<ValueMap> {
    let mut open: Vec<Value> = loops
        .iter()
        .flat_map(|inst| &kernel.blocks[kernel.insts[*inst].regions[0]].params)
        .copied()
        .collect();
    let mut map = ValueMap::default();
    for (written, read) in written.iter().zip(read) {
        if kernel.blocks[body].params.contains(written) {
            open.swap_remove(open.iter().position(|index| index == read)?);
            map.insert(*written, *read);
        } else if written != read {
            return None;
        }
    }
    open.is_empty().then_some(map)
}

/// The names of a loop's axes.
pub fn names(kernel: &Kernel, inst: Inst) -> impl Iterator<Item = &str> {
    kernel.insts[inst].payload.axes().iter().map(|axis| kernel.axes[*axis].name.as_str())
}

/// The buffer that an instruction accesses.
pub fn accessed(data: &InstData) -> Option<Buffer> {
    match data.payload {
        Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } => Some(buffer),
        _ => None,
    }
}

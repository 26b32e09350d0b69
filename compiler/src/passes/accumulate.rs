//! `s[i] += sum(…)` for a team of threads: the old value is read, combined with a reduction's result and written back,
//! which one thread must do alone. As an atomic it is one thread's.

use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Combiner, Opcode};

/// A load, an operation and a store that together combine a reduction's result into memory.
pub struct Accumulation {
    pub buffer: Buffer,
    pub leaf: u32,
    combiner: Combiner,
    load: Inst,
    operation: Inst,
    store: Inst,
    /// The reduction's result.
    value: Value,
}

/// Types of which an atomic does what the three do.
pub fn has_atomics(kernel: &Kernel, buffer: Buffer) -> bool {
    use Scalar::{F32, F64, I32, I64, U32, U64};
    matches!(kernel.buffers[buffer].element.as_scalar(), Some(F32 | F64 | I32 | U32 | I64 | U64))
}

/// Those of a block. Nothing else in it touches the place, or uses the values between.
pub fn accumulations(kernel: &Kernel, block: Block) -> Vec<Accumulation> {
    let insts = kernel.blocks[block].insts.iter();
    let found: Vec<Accumulation> = insts.filter_map(|store| accumulation(kernel, block, *store)).collect();
    if found.is_empty() {
        return found;
    }
    let uses = kernel.use_counts();
    let once = |inst: Inst| kernel.result_of(inst).is_some_and(|value| uses[value] == 1);
    let alone = |known: &Accumulation| {
        let mut accesses = 0;
        kernel.walk(block, &mut |_, inst| {
            if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } =
                kernel.insts[inst].payload
            {
                accesses += usize::from(buffer == known.buffer);
            }
        });
        accesses == 2
    };
    found.into_iter().filter(|known| once(known.load) && once(known.operation) && alone(known)).collect()
}

fn accumulation(kernel: &Kernel, block: Block, store: Inst) -> Option<Accumulation> {
    let data = &kernel.insts[store];
    let Payload::Access { buffer, leaf } = data.payload else { return None };
    if data.opcode != Opcode::Store || !has_atomics(kernel, buffer) {
        return None;
    }
    let here =
        |value: Value| kernel.defining_inst(value).filter(|inst| kernel.blocks[block].insts.contains(inst));
    let (combined, subscripts) = data.arguments.split_last()?;
    let operation = here(*combined)?;
    let [left, right] = kernel.insts[operation].arguments.first_chunk::<2>()?;
    let combiner =
        Combiner::ALL.into_iter().find(|known| known.opcode() == Some(kernel.insts[operation].opcode))?;
    [(*left, *right), (*right, *left)].into_iter().find_map(|(old, value)| {
        let load = here(old)?;
        let from = &kernel.insts[load];
        let same = from.opcode == Opcode::Load
            && from.payload == (Payload::Access { buffer, leaf })
            && from.arguments.as_slice() == subscripts;
        let reduced = here(value).is_some_and(|inst| kernel.insts[inst].opcode == Opcode::Reduce);
        (same && reduced).then_some(Accumulation { buffer, leaf, combiner, load, operation, store, value })
    })
}

/// Makes atomics of a block's accumulations.
pub fn into_atomics(kernel: &mut Kernel, block: Block) {
    for known in accumulations(kernel, block) {
        let Accumulation { buffer, leaf, combiner, load, operation, store, value } = known;
        let mut arguments = kernel.insts[store].arguments.to_vec();
        if let Some(last) = arguments.last_mut() {
            *last = value;
        }
        kernel.rewrite_inst(
            store,
            Opcode::Atomic,
            Payload::Atomic { buffer, leaf, op: combiner },
            &arguments,
        );
        kernel.blocks[block].insts.retain(|inst| *inst != load && *inst != operation);
    }
}

//! Shared memory that values of a block go through: one array for each type, as long as the longest exchange needs.

use crate::data::{ElementType, Scalar};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Value};
use crate::ir::kernel::{BufferData, BufferKind, Kernel, Payload, Short};
use crate::ir::op::Opcode;
use crate::manifest::{Expr, Layout};
use crate::mutants::mutant;
use rustc_hash::FxHashMap;

#[derive(Default)]
pub struct Exchange {
    arrays: FxHashMap<Scalar, (Buffer, i64)>,
}

impl Exchange {
    /// An array of so many elements at least, for a thread to write to: a barrier stands before it where threads may still
    /// read what was exchanged before.
    pub fn begin(&mut self, emit: &mut Emit<'_>, scalar: Scalar, elements: i64, in_loop: bool) -> Buffer {
        let known = self.arrays.get(&scalar).copied();
        let again = known.is_some() || in_loop;
        if mutant!("lower_tiles: shared memory is written while others read", again, false) {
            emit.barrier();
        }
        let (buffer, length) = known.unwrap_or_else(|| {
            let name = format!("exchange_{}", scalar.name());
            let buffer = emit.kernel.buffers.push(BufferData {
                name,
                kind: BufferKind::Shared,
                element: ElementType::scalar(scalar),
                extents: Vec::new(),
                layout: Layout::Aos,
                layout_fixed: false,
                cache: None,
                runs_on: false,
            });
            (buffer, 0)
        });
        let length = length.max(elements);
        emit.kernel.buffers[buffer].extents = vec![Expr::Int(length)];
        self.arrays.insert(scalar, (buffer, length));
        buffer
    }
}

/// Stores neighbours in shared memory, from an element on.
pub fn store(emit: &mut Emit<'_>, buffer: Buffer, subscripts: &[Value], values: &[Value]) {
    let opcode = if values.len() > 1 { Opcode::StoreVector } else { Opcode::Store };
    let mut arguments = Short::from_slice(subscripts);
    arguments.extend_from_slice(values);
    emit.bare_inst(opcode, Payload::Access { buffer, leaf: 0 }, arguments);
}

/// Loads so many neighbours from shared memory.
pub fn load(emit: &mut Emit<'_>, buffer: Buffer, place: Value, count: usize) -> Vec<Value> {
    if count == 1 {
        return vec![emit.load(buffer, 0, &[place])];
    }
    let scalar = emit.kernel.buffers[buffer].element.leaves[0].scalar;
    let inst =
        emit.bare_inst(Opcode::LoadVector, Payload::Access { buffer, leaf: 0 }, Short::from_slice(&[place]));
    emit.kernel.add_results(inst, scalar.widened(), count as u16).to_vec()
}

/// Of converted values that are only stored, the one scalar type in memory that they are stored as; `None` of others.
pub fn stored_as(kernel: &Kernel, body: Block) -> FxHashMap<Value, Option<Scalar>> {
    let mut stored: FxHashMap<Value, Option<Scalar>> = FxHashMap::default();
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let value = match data.opcode {
            Opcode::Store => data.arguments.len().checked_sub(1),
            Opcode::StoreIf => data.arguments.len().checked_sub(2),
            _ => None,
        };
        for (at, argument) in data.arguments.iter().enumerate() {
            let scalar = match data.payload {
                Payload::Access { buffer, leaf } if Some(at) == value => {
                    Some(kernel.buffers[buffer].element.leaves[leaf as usize].scalar)
                }
                _ => None,
            };
            let known = *stored.entry(*argument).or_insert(scalar);
            if known != scalar {
                stored.insert(*argument, None);
            }
        }
    });
    stored
}

//! Stores, atomics and checks of tiles.

use super::Lowering;
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::{InstData, Payload};
use crate::ir::op::Opcode;
use crate::mutants::mutant;

impl Lowering<'_> {
    /// An op that writes, once for each register of its operands, by one of the threads that hold the same.
    pub(super) fn write(&mut self, emit: &mut Emit<'_>, data: &InstData) {
        let tile = self.whole(emit.kernel, &data.arguments);
        let shape = self.registers.shape(self.tiling, tile);
        let first = self.coordinates.is_first(emit, &self.replicas(tile));
        let first = mutant!("lower_tiles: all that hold the same write", first, None);
        if data.opcode == Opcode::StoreIf {
            return self.store_if(emit, data, &shape.own, first);
        }
        for register in &shape.own {
            let operands = self.operands(&data.arguments, *register);
            let (opcode, payload) = (data.opcode, data.payload.clone());
            match (first, &data.payload) {
                (Some(first), Payload::Access { buffer, leaf }) if opcode == Opcode::Store => {
                    let [subscripts @ .., value] = &operands[..] else { continue };
                    emit.store_if(first, (*buffer, *leaf), subscripts, *value);
                }
                (Some(first), _) => emit.if_then(first, |emit| {
                    emit.inst(opcode, payload, &operands);
                }),
                (None, _) => {
                    emit.inst(opcode, payload, &operands);
                }
            }
        }
    }

    /// Masked stores. Neighbouring registers that one mask is for are stored in one branch, where they can be a vector.
    fn store_if(&mut self, emit: &mut Emit<'_>, data: &InstData, own: &[u64], first: Option<Value>) {
        let Payload::Access { buffer, leaf } = data.payload else { return };
        let operands: Vec<Vec<Value>> =
            own.iter().map(|register| self.operands(&data.arguments, *register)).collect();
        for group in operands.chunk_by(|left, right| left.last() == right.last()) {
            let Some(mask) = group[0].last().copied() else { continue };
            let mask = first.map_or(mask, |first| emit.binary(Opcode::And, mask, first));
            let store = |emit: &mut Emit<'_>, mask: Option<Value>, operands: &[Value]| {
                let [subscripts @ .., value, _] = operands else { return };
                match mask {
                    Some(mask) => emit.store_if(mask, (buffer, leaf), subscripts, *value),
                    None => emit.store(buffer, leaf, subscripts, *value),
                }
            };
            match group {
                [only] => store(emit, Some(mask), only),
                _ => emit.if_then(mask, |emit| group.iter().for_each(|operands| store(emit, None, operands))),
            }
        }
    }
}

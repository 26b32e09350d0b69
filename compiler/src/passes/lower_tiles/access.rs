//! Stores, atomics and checks of tiles.

use super::Lowering;
use crate::ir::emit::Emit;
use crate::ir::kernel::{InstData, Payload, Tile};
use crate::ir::op::Opcode;
use crate::mutants::mutant;

impl Lowering<'_> {
    /// An op that writes, once for each register of its operands, by one of the threads that hold the same.
    pub(super) fn write(&mut self, emit: &mut Emit<'_>, data: &InstData) {
        let tile = emit.kernel.whole_tile(data.arguments.iter()).unwrap_or(Tile::SCALAR);
        let shape = self.registers.shape(self.tiling, tile);
        let first = self.coordinates.is_first(emit, &self.replicas(tile));
        let first = mutant!("lower_tiles: all that hold the same write", first, None);
        for register in &shape.own {
            let operands = self.operands(&data.arguments, *register);
            let (opcode, payload) = (data.opcode, data.payload.clone());
            match (first, &data.payload) {
                (Some(first), Payload::Access { buffer, leaf }) if opcode == Opcode::Store => {
                    let [subscripts @ .., value] = &operands[..] else { continue };
                    emit.store_if(first, (*buffer, *leaf), subscripts, *value);
                }
                (Some(first), Payload::Access { buffer, leaf }) if opcode == Opcode::StoreIf => {
                    let [subscripts @ .., value, mask] = &operands[..] else { continue };
                    let both = emit.binary(Opcode::And, *mask, first);
                    emit.store_if(both, (*buffer, *leaf), subscripts, *value);
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
}

//! Stores, atomics, checks and copies of tiles.

use super::Lowering;
use crate::analysis::MOST_VECTOR_RESULTS;
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Value};
use crate::ir::kernel::{BufferKind, InstData, Payload, Tile};
use crate::ir::op::{Constant, Opcode};
use crate::mutants::mutant;

impl Lowering<'_> {
    /// An op that writes, once for each register of its operands, by one of the threads that hold the same.
    pub(super) fn write(&mut self, emit: &mut Emit<'_>, data: &InstData) {
        let tile = emit.kernel.whole_tile(data.arguments.iter()).unwrap_or(Tile::SCALAR);
        let shape = self.registers.shape(self.tiling, tile);
        let first = self.coordinates.is_first(emit, &self.replicas(tile));
        let first = mutant!("lower_tiles: all that hold the same write", first, None);
        let registers: Vec<Vec<Value>> =
            shape.own.iter().map(|register| self.operands(&data.arguments, *register)).collect();
        if let (Opcode::Store | Opcode::StoreIf, Payload::Access { buffer, leaf }) =
            (data.opcode, &data.payload)
            && emit.kernel.buffers[*buffer].kind != BufferKind::Shared
        {
            return store(emit, (*buffer, *leaf), data.opcode, (&registers, first));
        }
        let write = |emit: &mut Emit<'_>| {
            for operands in &registers {
                emit.inst(data.opcode, data.payload.clone(), operands);
            }
        };
        match first {
            Some(first) => emit.if_then(first, write),
            None => write(emit),
        }
    }
}

/// Stores that have a branch of their own, however many others there are.
const MANY: usize = 8;

/// Places, values and conditions of a `store_each`.
type Each = Vec<(Value, Value, Value)>;

/// Stores to global memory, of one element for each register; the operands of `store_if` end with a condition.
fn store(
    emit: &mut Emit<'_>,
    place: (Buffer, u32),
    opcode: Opcode,
    (registers, first): (&[Vec<Value>], Option<Value>),
) {
    let mut stores: Vec<(&[Value], Value, Option<Value>)> = Vec::with_capacity(registers.len());
    // Neighbouring registers may have one mask.
    let mut last: Option<(Value, Value)> = None;
    for operands in registers {
        let (operands, mask) = match (opcode, &operands[..]) {
            (Opcode::StoreIf, [operands @ .., mask]) => (operands, Some(*mask)),
            (_, operands) => (operands, None),
        };
        let [subscripts @ .., value] = operands else { continue };
        let condition = match (mask, first) {
            (Some(mask), Some(first)) => {
                let known = last.filter(|(known, _)| *known == mask).map(|(_, both)| both);
                let both = known.unwrap_or_else(|| emit.binary(Opcode::And, mask, first));
                last = Some((mask, both));
                Some(both)
            }
            (mask, first) => mask.or(first),
        };
        stores.push((subscripts, *value, condition));
    }
    // Those that one condition is for are stored in one branch, where they can be a vector. Without conditions, and where each is
    // for many, they are vectors however many they are.
    let mut conditions: Vec<Option<Value>> = Vec::new();
    for (_, _, condition) in &stores {
        if !conditions.contains(condition) {
            conditions.push(*condition);
        }
    }
    if stores.len() <= MOST_VECTOR_RESULTS || conditions.len() * MANY <= stores.len() {
        for condition in conditions {
            let group: Vec<_> = stores.iter().filter(|store| store.2 == condition).collect();
            let all = |emit: &mut Emit<'_>| {
                group
                    .iter()
                    .for_each(|(subscripts, value, _)| emit.store(place.0, place.1, subscripts, *value));
            };
            match &group[..] {
                [(subscripts, value, Some(condition))] => {
                    emit.store_if(*condition, place, subscripts, *value);
                }
                [(_, _, Some(condition)), ..] => emit.if_then(*condition, all),
                _ => all(emit),
            }
        }
        return;
    }
    // Those that differ in the last subscript alone are one op, which no pass makes vectors of.
    let mut groups: Vec<(&[Value], Each)> = Vec::new();
    for (subscripts, value, condition) in stores {
        let Some((last, shared)) = subscripts.split_last() else { continue };
        let condition = condition.unwrap_or_else(|| emit.constant(Constant::Bool(true)));
        let one = (*last, value, condition);
        match groups.iter_mut().find(|(known, _)| *known == shared) {
            Some((_, group)) => group.push(one),
            None => groups.push((shared, vec![one])),
        }
    }
    for (shared, each) in groups {
        emit.store_each(place, shared, &each);
    }
}

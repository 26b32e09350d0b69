//! From one layout to another.

use super::coordinates::thread_replicas;
use super::registers::Shape;
use super::{Lowering, shared};
use crate::analysis::banks;
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::{Kernel, Payload};
use crate::layout::{Conversion, Costs, Staged, ValueLayout};
use crate::mutants::mutant;

/// What a way costs on every GPU, in issue slots of a warp. A shuffle by a lane's number is no op of the IR: what is not a
/// renaming goes through shared memory.
fn costs(scalar: Scalar) -> Costs {
    // There is no vector of bools.
    let vector_bits = if scalar == Scalar::Bool { scalar.size() * 8 } else { 128 };
    Costs { shuffle: 2, select: 1, wavefront: 1, barrier: 10, vector_bits, banks: banks() }
}

impl Lowering<'_> {
    pub(super) fn convert(&mut self, emit: &mut Emit<'_>, result: Value, operand: Value) {
        let (from, to) = (emit.kernel.tile(operand), emit.kernel.tile(result));
        let shape = self.registers.shape(self.tiling, to);
        let (Some(before), Some(after)) = (self.tiling.layout(from), self.tiling.layout(to)) else {
            // A scalar, which all elements are.
            let values = shape.own.iter().map(|_| self.registers.get(operand, 0)).collect();
            return self.registers.set(result, shape, values);
        };
        // Along axes that are new, elements are repeated: they lie as those without these axes.
        let fresh = self.tiling.names(to.axes.without(from.axes));
        let after = fresh.iter().try_fold(after.clone(), |layout, axis| layout.slice(axis));
        let Ok(after) = after else { return };
        let scalar = self.stored_as(emit.kernel, result, operand);
        let bits = scalar.size() * 8;
        let costs = costs(scalar);
        let values = match before.convert(&after, bits, &costs) {
            Ok(Some(Conversion::Nothing)) => {
                shape.own.iter().map(|register| self.registers.get(operand, *register)).collect()
            }
            Ok(Some(Conversion::Registers(names))) => shape
                .own
                .iter()
                .map(|register| self.registers.get(operand, names[*register as usize]))
                .collect(),
            Ok(Some(Conversion::Shared(staged))) => {
                self.through_shared(emit, (operand, scalar), (before, &after), (&staged, &shape))
            }
            // Shuffles.
            _ => match before.exchange(&after, bits, &costs) {
                Ok(staged) => {
                    self.through_shared(emit, (operand, scalar), (before, &after), (&staged, &shape))
                }
                Err(_) => return,
            },
        };
        self.registers.set(result, shape, values);
    }

    /// The type in which shared memory holds what is converted: a narrow one where the value comes from memory of that type,
    /// or goes there and nowhere else.
    fn stored_as(&self, kernel: &Kernel, result: Value, operand: Value) -> Scalar {
        let wide = kernel.value_type(operand);
        let loaded = kernel.definition_data(operand).filter(|data| data.opcode.is_load());
        let loaded = loaded.and_then(|data| match data.payload {
            Payload::Access { buffer, leaf } => {
                Some(kernel.buffers[buffer].element.leaves[leaf as usize].scalar)
            }
            _ => None,
        });
        let stored = self.stored.get(&result).copied().flatten();
        let narrower = [loaded, stored].into_iter().flatten().filter(|scalar| scalar.widened() == wide);
        narrower.min_by_key(|scalar| scalar.size()).unwrap_or(wide)
    }

    /// Stores in the one layout, a barrier, loads in the other one.
    fn through_shared(
        &mut self,
        emit: &mut Emit<'_>,
        (operand, scalar): (Value, Scalar),
        (before, after): (&ValueLayout, &ValueLayout),
        (staged, shape): (&Staged, &Shape),
    ) -> Vec<Value> {
        let bits = scalar.size() * 8;
        let elements = staged.memory.span().div_ceil(bits) as i64;
        let buffer = self.exchange.begin(emit, scalar, elements, self.loops > 0);
        let firsts = |vectors: &[Vec<u64>]| -> Vec<u64> { vectors.iter().map(|vector| vector[0]).collect() };
        let stores = &staged.stores.registers;
        let places = self.coordinates.offsets(emit, (before, &staged.memory), bits, &firsts(stores));
        let first = self.coordinates.is_first(emit, &thread_replicas(before));
        let write = |emit: &mut Emit<'_>| {
            for (place, vector) in places.iter().zip(stores) {
                let values: Vec<Value> =
                    vector.iter().map(|register| self.registers.get(operand, *register)).collect();
                shared::store(emit, buffer, &[*place], &values);
            }
        };
        match first {
            Some(first) => emit.if_then(first, write),
            None => write(emit),
        }
        if mutant!("lower_tiles: nobody waits for what comes through shared memory", true, false) {
            emit.barrier();
        }
        let loads = &staged.loads.registers;
        let places = self.coordinates.offsets(emit, (after, &staged.memory), bits, &firsts(loads));
        let mut loaded: Vec<(u64, Value)> = Vec::new();
        for (place, vector) in places.into_iter().zip(loads) {
            let values = shared::load(emit, buffer, place, vector.len());
            loaded.extend(vector.iter().copied().zip(values));
        }
        // By the registers of the layout without its new axes, of which those of the result are some.
        let sliced = Shape::new(after);
        let value = |register: &u64| {
            let own = sliced.own[sliced.place(*register)];
            loaded.iter().find(|(known, _)| *known == own).map_or(loaded[0].1, |(_, value)| *value)
        };
        shape.own.iter().map(value).collect()
    }
}

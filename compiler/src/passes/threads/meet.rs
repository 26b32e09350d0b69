//! How the threads of a team meet: each one's part of a reduction becomes the result of all.

use super::team::Team;
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Value};
use crate::ir::kernel::{BufferData, BufferKind, Kernel, Payload};
use crate::ir::op::{Combiner, Opcode};
use crate::manifest::Expr;

impl Team {
    /// Every thread's partial result becomes the result of all.
    pub(super) fn meet(
        &mut self,
        emit: &mut Emit<'_>,
        (combiner, in_order): (Combiner, bool),
        own: &[Value],
    ) -> Vec<Value> {
        if self.size == 1 {
            return own.to_vec();
        }
        let lanes = self.size.min(32);
        let mut values = self.shuffled(emit, (combiner, in_order), own.to_vec(), lanes);
        let warps = self.size / 32;
        if warps <= 1 {
            return values;
        }
        let lane = emit.rem_by(self.own, 32);
        let warp = emit.div_by(self.own, 32);
        let mut buffers = Vec::with_capacity(values.len());
        for value in &values {
            buffers.push(shared_row(emit.kernel, emit.kernel.value_type(*value), warps));
        }
        let zero = emit.int(0);
        let first = emit.binary(Opcode::Eq, lane, zero);
        emit.if_then(first, |emit| {
            for (buffer, value) in buffers.iter().zip(&values) {
                emit.store(*buffer, 0, &[warp], *value);
            }
        });
        emit.barrier();
        let place = emit.rem_by(lane, warps);
        values = buffers.iter().map(|buffer| emit.load(*buffer, 0, &[place])).collect();
        if self.looped && !self.alternating {
            emit.barrier();
        }
        self.shuffled(emit, (combiner, in_order), values, warps)
    }

    /// Butterfly over `lanes` neighbours. Sums of two lanes are the same in either order, to the bit; what a user's combiner
    /// makes need not be, so the lower lane's part comes first in both, where more than the first thread uses it. The same is
    /// done where threads decide by positions, which are the same for all, so that it can be seen.
    fn shuffled(
        &self,
        emit: &mut Emit<'_>,
        (combiner, in_order): (Combiner, bool),
        mut values: Vec<Value>,
        lanes: i64,
    ) -> Vec<Value> {
        let mut mask = lanes / 2;
        while mask > 0 {
            let payload = Payload::Lanes(mask as u8);
            let mut others: Vec<Value> = values
                .iter()
                .map(|value| emit.value(Opcode::ShuffleXor, payload.clone(), &[*value]))
                .collect();
            if in_order {
                let is_lower = emit.is_lower(self.own, mask);
                emit.in_order(is_lower, &mut values, &mut others);
            }
            values = emit.combine(combiner, &values, &others);
            mask /= 2;
        }
        values
    }
}

fn shared_row(kernel: &mut Kernel, scalar: Scalar, extent: i64) -> Buffer {
    kernel.buffers.push(BufferData::temporary("partial", BufferKind::Shared, scalar, vec![Expr::Int(extent)]))
}

//! Whether the lanes of a warp may have different values.

use crate::ir::Owners;
use crate::ir::entities::{Block, Value};
use crate::ir::kernel::{BufferKind, Definition, Kernel, Payload};
use crate::ir::op::Opcode;
use cranelift_entity::EntitySet;

/// `tid >> 5` is the same for all lanes of a warp.
const LANE_BITS: i128 = 5;

/// Whether some of these values of the launch whose root is `body` may differ from lane to lane: whether they are computed from
/// the number of the thread, from private memory, or from what atomics gave.
pub(super) fn vary(kernel: &Kernel, body: Block, values: &[Value]) -> bool {
    let mut owners: Option<Owners> = None;
    let mut seen = EntitySet::new();
    let mut open = values.to_vec();
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        let inst = match kernel.values[value].definition {
            Definition::Result(inst, _) => inst,
            Definition::Param(block, position) => {
                let owners = owners.get_or_insert_with(|| kernel.parents_in(body).owner_of);
                let Some(owner) = owners[block].expand() else { continue };
                let data = &kernel.insts[owner];
                if data.opcode == Opcode::For && position == 0 {
                    // Its place in the range; what the loop carries comes after that.
                    open.extend(&data.arguments[..3]);
                    continue;
                }
                owner
            }
        };
        let data = &kernel.insts[inst];
        match (data.opcode, &data.payload) {
            (Opcode::ThreadIndex, _) | (_, Payload::Atomic { .. }) => return true,
            (_, Payload::Access { buffer, .. }) if kernel.buffers[*buffer].kind == BufferKind::Private => {
                return true;
            }
            (Opcode::Shr, _) if is_warp(kernel, &data.arguments) => {}
            _ => {
                open.extend(&data.arguments);
                data.regions.iter().for_each(|region| open.extend(kernel.yields(*region)));
            }
        }
    }
    false
}

/// Whether a thread's number is shifted so that the warp's is left.
fn is_warp(kernel: &Kernel, operands: &[Value]) -> bool {
    let thread = |value| {
        kernel.defining_inst(value).is_some_and(|inst| kernel.insts[inst].opcode == Opcode::ThreadIndex)
    };
    matches!(operands, [value, by] if thread(*value) && kernel.int_of(*by).is_some_and(|by| by >= LANE_BITS))
}

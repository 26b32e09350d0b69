//! Arrays of an iteration's own that lie in scratch memory: which way round.

use crate::ir::entities::{Block, Buffer, Inst, Launch};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;

/// The scratch arrays that each iteration of a launch has a part of its own of: their last subscripts are the loop's indices.
pub fn own_arrays(kernel: &Kernel, launch: Launch, body: Block) -> Vec<Buffer> {
    let params = &kernel.blocks[body].params;
    let mut found: Vec<(Buffer, bool)> = Vec::new();
    let mut look = |inst: Inst, inside: bool| {
        let data = &kernel.insts[inst];
        let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = data.payload else { return };
        let of = &kernel.buffers[buffer];
        let rank = of.extents.len();
        let subscripts = &data.arguments[..rank];
        let is_own = inside
            && matches!(data.opcode, Opcode::Load | Opcode::Store)
            && of.kind == BufferKind::Scratch
            && rank > params.len()
            && subscripts[rank - params.len()..] == params[..];
        match found.iter_mut().find(|(known, _)| *known == buffer) {
            Some((_, known)) => *known &= is_own,
            None => found.push((buffer, is_own)),
        }
    };
    for other in kernel.bodies() {
        kernel.walk(other, &mut |_, inst| look(inst, other == kernel.launches[launch].body));
    }
    found.into_iter().filter(|(_, is_own)| *is_own).map(|(buffer, _)| buffer).collect()
}

/// Lets the rows of such arrays lie side by side, and no longer those of neighbouring iterations, of which `count` axes are:
/// threads share a row.
pub fn rows_last(kernel: &mut Kernel, arrays: &[Buffer], count: usize) {
    for buffer in arrays {
        kernel.buffers[*buffer].extents.rotate_right(count);
    }
    let mut accesses = Vec::new();
    kernel.walk_all(&mut |_, inst| match kernel.insts[inst].payload {
        Payload::Access { buffer, .. } if arrays.contains(&buffer) => accesses.push((inst, buffer)),
        _ => {}
    });
    for (inst, buffer) in accesses {
        let rank = kernel.buffers[buffer].extents.len();
        kernel.insts[inst].arguments[..rank].rotate_right(count);
    }
}

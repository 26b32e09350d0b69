//! Arrays of an iteration's own that lie in scratch memory: how they come there, and which way round.

use crate::analysis::{Uses, block_count};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::manifest::Expr;

/// The scratch arrays that each iteration of a launch has a part of its own of: their last subscripts are the loop's indices.
/// Copies of the launch, for other sizes, have their parts in the same manner.
pub fn own_arrays(kernel: &Kernel, launch: Launch, body: Block) -> Vec<Buffer> {
    let mut found: Vec<(Buffer, bool)> = Vec::new();
    let mut look = |inst: Inst, params: &[Value]| {
        let data = &kernel.insts[inst];
        let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = data.payload else { return };
        let of = &kernel.buffers[buffer];
        let rank = of.extents.len();
        let subscripts = &data.arguments[..rank];
        let is_own = matches!(data.opcode, Opcode::Load | Opcode::Store)
            && of.kind == BufferKind::Scratch
            && !params.is_empty()
            && rank > params.len()
            && subscripts[rank - params.len()..] == *params;
        match found.iter_mut().find(|(known, _)| *known == buffer) {
            Some((_, known)) => *known &= is_own,
            None => found.push((buffer, is_own)),
        }
    };
    for (other, data) in &kernel.launches {
        let of_loop = || kernel.only_loop(other).map(|forall| kernel.insts[forall].regions[0]);
        let body = if other == launch { Some(body) } else { of_loop() };
        let params = body.map_or(&[][..], |body| &kernel.blocks[body].params);
        kernel.walk(data.body, &mut |_, inst| look(inst, params));
    }
    found.into_iter().filter(|(_, is_own)| *is_own).map(|(buffer, _)| buffer).collect()
}

/// Lets arrays that each thread has for itself lie in scratch memory, where each iteration of a loop has a part: behind their own
/// axes those of the loop, of which the host knows the iterations.
pub fn into_scratch(kernel: &mut Kernel, forall: Inst, private: &[Buffer]) {
    let (body, span) = (kernel.insts[forall].regions[0], kernel.insts[forall].span);
    let indices = kernel.blocks[body].params.to_vec();
    let bounds = kernel.loop_bounds(forall);
    // A range may end before it begins.
    let count = |(low, high): &(Value, Value)| {
        let extent = kernel.symbolic_extent(*low, *high).unwrap_or(Expr::Int(0));
        block_count(kernel, &extent, 1)
    };
    let extents: Vec<Expr> = bounds.iter().map(count).collect();
    for buffer in private.iter().copied() {
        let data = &mut kernel.buffers[buffer];
        data.kind = BufferKind::Scratch;
        let rank = data.extents.len();
        data.extents.extend(extents.iter().cloned());
        let code = std::mem::take(&mut kernel.blocks[body].insts);
        let mut emit = Emit::new(kernel, body, span);
        let places: Vec<Value> =
            indices.iter().zip(&bounds).map(|(index, (low, _))| emit.sub(*index, *low)).collect();
        kernel.blocks[body].insts.extend(code);
        let uses = Uses::of(kernel, body, buffer);
        for inst in uses.loads.into_iter().chain(uses.stores) {
            let arguments = &mut kernel.insts[inst].arguments;
            let (own, rest) = arguments.split_at(rank);
            *arguments = [own, &places, rest].concat().into();
        }
    }
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

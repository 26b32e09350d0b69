//! Arrays of an iteration's own that lie in scratch memory: how they come there, and which way round.

use crate::analysis::{Uses, block_count};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::manifest::Expr;
use cranelift_entity::EntitySet;

/// The scratch arrays that each iteration of a launch has a part of its own of: their last subscripts are the loop's indices.
/// Copies of the launch, for other sizes, write and read their parts in the same manner.
pub fn own_arrays(kernel: &Kernel, launch: Launch, body: Block) -> Vec<Buffer> {
    let mut found: Vec<Buffer> = Vec::new();
    let mut others: EntitySet<Buffer> = EntitySet::new();
    for root in &kernel.past {
        others.extend(accessed(kernel, *root, &[]).into_iter().map(|(buffer, ..)| buffer));
    }
    for (other, data) in &kernel.launches {
        let of_loop = || kernel.only_loop(other).map(|forall| kernel.insts[forall].regions[0]);
        let body = if other == launch { Some(body) } else { of_loop() };
        let params = body.map_or(&[][..], |body| &kernel.blocks[body].params);
        for (buffer, is_own, does_both) in accessed(kernel, data.body, params) {
            if !is_own || other != launch && !does_both {
                others.insert(buffer);
            } else if other == launch {
                found.push(buffer);
            }
        }
    }
    found.retain(|buffer| !others.contains(*buffer));
    found
}

/// The arrays that a launch accesses, whether each iteration of a loop with these indices accesses a part of its own alone, and
/// whether it writes it and reads it.
fn accessed(kernel: &Kernel, root: Block, params: &[Value]) -> Vec<(Buffer, bool, bool)> {
    // With whether it is written, and read.
    let mut found: Vec<(Buffer, bool, [bool; 2])> = Vec::new();
    kernel.walk(root, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = data.payload else { return };
        let of = &kernel.buffers[buffer];
        let rank = of.extents.len();
        let how = [Opcode::Store, Opcode::Load].map(|opcode| data.opcode == opcode);
        let is_own = how.contains(&true)
            && of.kind == BufferKind::Scratch
            && !params.is_empty()
            && rank > params.len()
            && data.arguments[rank - params.len()..rank] == *params;
        match found.iter_mut().find(|(known, ..)| *known == buffer) {
            Some((_, known, both)) => {
                *known &= is_own;
                *both = [both[0] | how[0], both[1] | how[1]];
            }
            None => found.push((buffer, is_own, how)),
        }
    });
    found.into_iter().map(|(buffer, is_own, both)| (buffer, is_own, both == [true; 2])).collect()
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

/// Lets arrays that each thread has for itself lie in scratch memory, and their rows side by side, with those of all other arrays
/// that iterations of a launch's loop have parts of.
pub fn rows_into_scratch(kernel: &mut Kernel, launch: Launch, forall: Inst, private: Vec<Buffer>) {
    into_scratch(kernel, forall, &private);
    let body = kernel.insts[forall].regions[0];
    let mut own = own_arrays(kernel, launch, body);
    own.extend(private.into_iter().filter(|buffer| !own.contains(buffer)).collect::<Vec<_>>());
    rows_last(kernel, &own, kernel.blocks[body].params.len());
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

//! Launches that copy arrays.

use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BlockData, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::manifest::Expr;

/// From where to where, and which leaf, at which of the loop's indices: one for each axis of both arrays.
pub struct Copied {
    pub from: Buffer,
    pub to: Buffer,
    pub leaf: u32,
    pub places: Vec<usize>,
}

/// A launch with a loop between these bounds, whose axes are called as those of `forall`, that copies an element of each. It is named
/// after `like`, with a suffix, and relies on what that does; the plan does not know it yet.
pub fn copying(
    kernel: &mut Kernel,
    (like, forall): (Launch, Inst),
    bounds: &[(Expr, Expr)],
    suffix: &str,
    copies: &[Copied],
) -> Launch {
    let span = kernel.insts[forall].span;
    let root = kernel.blocks.push(BlockData::default());
    let inner = kernel.blocks.push(BlockData::default());
    let mut emit = Emit::new(kernel, root, span);
    let ends = bounds.iter().flat_map(|(low, high)| [low, high]);
    let ends: Vec<Value> = ends.map(|end| emit.expression(end)).collect();
    let payload = kernel.insts[forall].payload.clone();
    let payload = kernel.clone_payload(payload);
    let forall = kernel.make_inst(Opcode::Forall, payload, &ends, span);
    kernel.insts[forall].regions.push(inner);
    kernel.blocks[root].insts.push(forall);
    let indices: Vec<Value> = bounds.iter().map(|_| kernel.add_param(inner, Scalar::I64)).collect();
    let mut emit = Emit::new(kernel, inner, span);
    for Copied { from, to, leaf, places } in copies {
        let places: Vec<Value> = places.iter().map(|at| indices[*at]).collect();
        let value = emit.value(Opcode::Load, Payload::Access { buffer: *from, leaf: *leaf }, &places);
        let operands = [places.as_slice(), &[value]].concat();
        emit.inst(Opcode::Store, Payload::Access { buffer: *to, leaf: *leaf }, &operands);
    }
    emit.inst(Opcode::Yield, Payload::None, &[]);
    let name = kernel.launches[like].name.clone();
    kernel.add_launch(&name, suffix, root, like)
}

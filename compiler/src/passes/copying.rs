//! Launches that copy arrays.

use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Inst, Launch, Value};
use crate::ir::kernel::{AxisData, BlockData, BufferData, BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::manifest::{Expr, Layout};
use crate::source::Span;

/// From where to where, and which leaf, at which of the loop's indices: one for each axis of either array.
pub struct Copied {
    pub from: Buffer,
    pub to: Buffer,
    pub leaf: u32,
    pub places: [Vec<usize>; 2],
}

/// The axes of a copying loop: their names, their bounds, and where the text has what they are for.
pub struct Axes {
    pub names: Vec<String>,
    pub bounds: Vec<(Expr, Expr)>,
    pub span: Span,
}

impl Axes {
    /// Axes between these bounds that are called as those of a loop.
    pub fn like(kernel: &Kernel, forall: Inst, bounds: Vec<(Expr, Expr)>) -> Self {
        let data = &kernel.insts[forall];
        let names = data.payload.axes().iter().map(|axis| kernel.axes[*axis].name.clone());
        Axes { names: names.collect(), bounds, span: data.span }
    }
}

/// Scratch memory for a copy of an array, with these extents.
pub fn scratch_like(kernel: &mut Kernel, array: Buffer, extents: Vec<Expr>) -> Buffer {
    let BufferData { name, element, .. } = kernel.buffers[array].clone();
    kernel.buffers.push(BufferData {
        name,
        kind: BufferKind::Scratch,
        layout_fixed: element.leaves.len() == 1,
        element,
        extents,
        layout: Layout::Aos,
        cache: None,
        runs_on: false,
    })
}

/// A launch with a loop over these axes that copies an element of each. It is named after `like`, with a suffix, and relies on what
/// that does; the plan does not know it yet.
pub fn copying(kernel: &mut Kernel, like: Launch, axes: Axes, suffix: &str, copies: &[Copied]) -> Launch {
    looping(kernel, like, axes, suffix, |emit, indices| {
        for Copied { from, to, leaf, places } in copies {
            let [source, target] =
                places.each_ref().map(|places| places.iter().map(|at| indices[*at]).collect::<Vec<_>>());
            let value = emit.value(Opcode::Load, Payload::Access { buffer: *from, leaf: *leaf }, &source);
            let operands = [target.as_slice(), &[value]].concat();
            emit.inst(Opcode::Store, Payload::Access { buffer: *to, leaf: *leaf }, &operands);
        }
    })
}

/// The same with another body, which gets the indices.
pub fn looping(
    kernel: &mut Kernel,
    like: Launch,
    axes: Axes,
    suffix: &str,
    body: impl FnOnce(&mut Emit<'_>, &[Value]),
) -> Launch {
    let Axes { names, bounds, span } = axes;
    let root = kernel.blocks.push(BlockData::default());
    let inner = kernel.blocks.push(BlockData::default());
    let mut emit = Emit::new(kernel, root, span);
    let ends = bounds.iter().flat_map(|(low, high)| [low, high]);
    let ends: Vec<Value> = ends.map(|end| emit.expression(end)).collect();
    let axes = names.into_iter().map(|name| kernel.axes.push(AxisData::new(name, Vec::new()))).collect();
    let forall = kernel.make_inst(Opcode::Forall, Payload::Loop { axes }, &ends, span);
    kernel.insts[forall].regions.push(inner);
    kernel.blocks[root].insts.push(forall);
    let indices: Vec<Value> = bounds.iter().map(|_| kernel.add_param(inner, Scalar::I64)).collect();
    let mut emit = Emit::new(kernel, inner, span);
    body(&mut emit, &indices);
    emit.inst(Opcode::Yield, Payload::None, &[]);
    let name = kernel.launches[like].name.clone();
    kernel.add_launch(&name, suffix, root, like)
}

//! Loops in one another from one parallel loop over the axes of both.

use crate::ir::entities::{Block, Inst};
use crate::ir::kernel::{BlockData, Definition, Kernel, Payload};
use crate::ir::op::Opcode;

/// Makes a parallel loop over some axes of another one, in which that one stands with the axes that are left. The new loop
/// stands nowhere yet; its body comes with it. The axes keep their order.
pub fn split_axes(kernel: &mut Kernel, forall: Inst, goes_outside: impl Fn(usize) -> bool) -> (Inst, Block) {
    let data = kernel.insts[forall].clone();
    let inner = data.regions[0];
    let outer = kernel.blocks.push(BlockData::default());
    let params = std::mem::take(&mut kernel.blocks[inner].params);
    let mut parts = [(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
    for (at, param) in params.into_iter().enumerate() {
        let outside = goes_outside(at);
        let block = if outside { outer } else { inner };
        let position = kernel.blocks[block].params.len() as u16;
        kernel.values[param].definition = Definition::Param(block, position);
        kernel.blocks[block].params.push(param);
        let (axes, bounds) = &mut parts[usize::from(!outside)];
        axes.push(data.payload.axes()[at]);
        bounds.extend_from_slice(&data.arguments[2 * at..2 * at + 2]);
    }
    let [(outer_axes, outer_bounds), (inner_axes, inner_bounds)] = parts;
    kernel.insts[forall].payload = Payload::Loop { axes: inner_axes.into() };
    kernel.insts[forall].arguments = inner_bounds.into();
    let payload = Payload::Loop { axes: outer_axes.into() };
    let around = kernel.make_inst(Opcode::Forall, payload, &outer_bounds, data.span);
    kernel.insts[around].regions.push(outer);
    let end = kernel.make_inst(Opcode::Yield, Payload::None, &[], data.span);
    kernel.blocks[outer].insts = vec![forall, end];
    (around, outer)
}

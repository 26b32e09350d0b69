//! A reduction in whose terms are loops.

use super::launch::Along;
use crate::ir::entities::{Block, Inst, Launch};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;

/// A reduction with loops in its terms, and what stands around it.
pub struct Nest {
    /// The blocks around its terms from the outside in.
    pub chain: Vec<Level>,
    /// The axes of the parallel loops around it.
    pub around: Vec<Along>,
    pub reduce: Inst,
    /// The axes that it reduces.
    pub own: Vec<Along>,
    pub region: Block,
}

/// A block around terms.
#[derive(Clone, Copy)]
pub struct Level {
    pub block: Block,
    /// Of its instructions the one that holds the terms.
    pub holds: Inst,
    /// How many axes of parallel loops are around it.
    pub axes: usize,
}

/// The parallel loop of a launch, where it has one alone.
pub fn only_forall(kernel: &Kernel, launch: Launch) -> Option<Inst> {
    let root = kernel.launches[launch].body;
    let is_forall = |inst: &Inst| kernel.insts[*inst].opcode == Opcode::Forall;
    let mut foralls = kernel.blocks[root].insts.iter().copied().filter(is_forall);
    let first = foralls.next()?;
    foralls.next().is_none().then_some(first)
}

/// The loops of a block and of its branches, without those inside them.
pub fn loops_of(kernel: &Kernel, block: Block, found: &mut Vec<Inst>) {
    for inst in &kernel.blocks[block].insts {
        match kernel.insts[*inst].opcode {
            _ if is_loop(kernel, *inst) => found.push(*inst),
            Opcode::If => {
                kernel.insts[*inst].regions.iter().for_each(|region| loops_of(kernel, *region, found))
            }
            _ => {}
        }
    }
}

/// Whether an instruction is a loop.
pub fn is_loop(kernel: &Kernel, inst: Inst) -> bool {
    kernel.insts[inst].opcode.is_loop()
}

/// Whether loops stand in an instruction's regions.
pub fn holds_loops(kernel: &Kernel, inst: Inst) -> bool {
    let mut found = false;
    for region in &kernel.insts[inst].regions {
        kernel.walk(*region, &mut |_, inside| found |= is_loop(kernel, inside));
    }
    found
}

//! What the instructions of a body cost beside each other, and how often an iteration comes to them.

use crate::analysis::trip_count;
use crate::ir::entities::{Block, Inst};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;

/// Instructions of a function or a quotient, and of a power.
pub const SLOW: u64 = 16;
const POWER: u64 = 96;
/// The same of a conversion between floats and integers of 64 bits, of which 16 are done in a cycle (CUDA programming guide,
/// "Arithmetic Instructions").
const CONVERSION: u64 = 8;
/// Instructions of a load, with its address.
const LOAD: u64 = 4;

/// The instructions of a body, and how often an iteration comes to them.
pub fn weighted(kernel: &Kernel, body: Block) -> Vec<(Inst, u64)> {
    let mut insts = Vec::new();
    collect(kernel, body, 1, &mut insts);
    insts
}

fn collect(kernel: &Kernel, block: Block, times: u64, insts: &mut Vec<(Inst, u64)>) {
    for inst in &kernel.blocks[block].insts {
        insts.push((*inst, times));
        let is_loop = kernel.insts[*inst].opcode.is_loop();
        let times = if is_loop { times.saturating_mul(trip_count(kernel, *inst)) } else { times };
        kernel.insts[*inst].regions.iter().for_each(|region| collect(kernel, *region, times, insts));
    }
}

/// What an instruction costs beside an addition.
pub fn work(kernel: &Kernel, inst: Inst) -> u64 {
    let data = &kernel.insts[inst];
    match data.opcode {
        Opcode::Const | Opcode::Symbol | Opcode::Yield => 0,
        Opcode::Pow => POWER,
        Opcode::Div | Opcode::Rem => SLOW,
        Opcode::Cast => {
            let types = [data.arguments[0], data.results[0]].map(|value| kernel.value_type(value));
            let is_conversion = types[0].is_integer() != types[1].is_integer();
            if is_conversion && types.iter().any(|scalar| scalar.size() > 4) { CONVERSION } else { 1 }
        }
        opcode if opcode.math().is_some() => SLOW,
        opcode if opcode.is_load() => LOAD,
        _ => 1,
    }
}

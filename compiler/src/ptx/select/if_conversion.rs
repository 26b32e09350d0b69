//! If-conversion: branches that only load become predicated loads. What stands after one need not wait for it, and many of
//! them are in flight at once.
//!
//! ```text
//! v5: f32 = if v3 {                              mov.f32           %u, 0f00000000;
//!     v4: f32 = load buf0[v2]          →         @%p ld.global.nc.f32  %u, [%u_at];
//!     yield v4
//! } else { v1: f32 = const 0.0; yield v1 }
//! ```

use super::SelectError;
use super::selector::{Selector, bits_type};
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::op::{Constant, Opcode};
use crate::mutants::mutant;

/// More instructions than this are worth a branch around them.
const MAX_INSTS: usize = 24;

impl Selector<'_> {
    /// Selects an `if` without a branch, where that is possible; whether it was.
    pub fn if_converted(&mut self, inst: Inst) -> Result<bool, SelectError> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let [then, otherwise] = data.regions[..] else { return Ok(false) };
        if data.results.is_empty()
            || self.load_guard.is_some()
            || !self.loads_only(then)
            || !self.literals_only(otherwise)
        {
            return Ok(false);
        }
        let test = self.register(data.arguments[0]);
        self.load_guard = Some(test);
        let yields = self.block(then);
        self.load_guard = None;
        let (yields, others) = (yields?, self.block(otherwise)?);
        for (at, result) in data.results.iter().enumerate() {
            // A load that does not take place gives 0.
            let zero = self.is_zero(kernel.yields(otherwise)[at]);
            let zero = mutant!("select: every load that does not take place gives 0", zero, true);
            let loaded = self.is_load(kernel.yields(then)[at]) && zero;
            let operand = if loaded {
                yields[at]
            } else {
                self.selp(bits_type(self.scalar(*result)), test, yields[at], others[at]).into()
            };
            self.maps.values[*result] = Some(operand);
        }
        Ok(true)
    }

    fn is_load(&self, value: Value) -> bool {
        let data = self.kernel.definition_data(value);
        data.is_some_and(|data| matches!(data.opcode, Opcode::Load | Opcode::LoadVector))
    }

    /// Whether a value is 0, of which all bits are.
    fn is_zero(&self, value: Value) -> bool {
        match self.kernel.constant_of(value) {
            Some(Constant::Int(_, value)) => value == 0,
            Some(Constant::F32(bits)) => bits == 0,
            Some(Constant::F64(bits)) => bits == 0,
            _ => false,
        }
    }

    /// Few instructions, at least one of them a load and the others cheap; every result of them a number.
    fn loads_only(&self, block: Block) -> bool {
        use Opcode::*;
        let kernel = self.kernel;
        let insts = &kernel.blocks[block].insts;
        let opcode = |inst: &Inst| kernel.insts[*inst].opcode;
        let numbers = kernel.yields(block).iter().all(|value| kernel.value_type(*value).size() >= 4);
        insts.len() <= MAX_INSTS
            && numbers
            && insts.iter().any(|inst| matches!(opcode(inst), Load | LoadVector))
            && insts.iter().all(|inst| {
                matches!(
                    opcode(inst),
                    Load | LoadVector
                        | Add
                        | Sub
                        | Mul
                        | Shl
                        | Shr
                        | And
                        | Or
                        | Const
                        | Symbol
                        | Cast
                        | Yield
                )
            })
    }

    fn literals_only(&self, block: Block) -> bool {
        let mut insts = self.kernel.blocks[block].insts.iter().map(|inst| self.kernel.insts[*inst].opcode);
        insts.all(|opcode| matches!(opcode, Opcode::Const | Opcode::Symbol | Opcode::Yield))
    }
}

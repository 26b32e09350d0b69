//! If-conversion: branches that only load become predicated loads. What stands after one need not wait for it, and many of
//! them are in flight at once.
//!
//! ```text
//! v5: f32 = if v3 {                              mov.f32           %u, 0f00000000;
//!     v4: f32 = load buf0[v2]          →         @%p ld.global.nc.f32  %u, [%u_at];
//!     yield v4
//! } else { v1: f32 = const 0.0; yield v1 }
//! ```
//!
//! So does the second part of `k < n && a[k] < q`, which is asked where the first one holds: one condition, and one branch of
//! a loop that goes on while it holds.

use super::super::instruction::LogicBinaryOp;
use super::super::types::Type;
use super::SelectError;
use super::selector::{Selector, bits_type};
use crate::analysis::is_predicated;
use crate::data::Scalar;
use crate::ir::entities::{Inst, Value};
use crate::ir::op::Constant;
use crate::mutants::mutant;

impl Selector<'_> {
    /// Selects an `if` without a branch, where that is possible; whether it was.
    pub fn if_converted(&mut self, inst: Inst) -> Result<bool, SelectError> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let [then, otherwise] = data.regions[..] else { return Ok(false) };
        if self.load_guard.is_some() || !is_predicated(kernel, inst) {
            return Ok(false);
        }
        let test = self.register(data.arguments[0]);
        self.load_guard = Some(test);
        let yields = self.block(then);
        self.load_guard = None;
        let (yields, others) = (yields?, self.block(otherwise)?);
        for (at, result) in data.results.iter().enumerate() {
            if self.scalar(*result) == Scalar::Bool {
                let both = mutant!("select: of `&&` the second part counts alone", true, false);
                let condition = match both {
                    true => self.logic(LogicBinaryOp::And, Type::Pred, test.into(), yields[at]).into(),
                    false => yields[at],
                };
                self.maps.values[*result] = Some(condition);
                continue;
            }
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
        data.is_some_and(|data| data.opcode.is_load())
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
}

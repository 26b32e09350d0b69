//! Outer products: one instruction a pair of row and column.

use super::super::instruction::*;
use super::super::operand::{Operand, Reg};
use super::SelectError;
use super::selector::{Selector, signed_type};
use crate::ir::entities::{Inst, Value};
use crate::ir::op::Opcode;

impl Selector<'_> {
    /// Goes over the pairs to and fro, so that neighbours in time share an operand.
    pub fn outer(&mut self, inst: Inst) -> Result<(), SelectError> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let Some((rows, columns, sums)) = data.outer_operands() else {
            return Err(self.error(format!("{inst} is no outer product")));
        };
        let scalar = self.scalar(rows[0]);
        let ty = signed_type(scalar);
        let rows: Vec<Operand> = rows.iter().map(|value| self.operand(*value)).collect();
        let columns: Vec<Operand> = columns.iter().map(|value| self.operand(*value)).collect();
        let pair = |selector: &mut Self, a: Operand, b: Operand, sum: Value, result: Value| {
            let c = selector.operand(sum);
            if data.opcode == Opcode::OuterFma {
                let dst = selector.define(result);
                selector.builder.emit(Fma { ty, dst, a, b, c, ..Default::default() });
                return;
            }
            let product: Reg = selector.float_binary(Opcode::Mul, scalar, a, b);
            let sum = selector.float_binary(Opcode::Add, scalar, c, product.into());
            selector.bind(result, sum.into());
        };
        for (at, row) in rows.into_iter().enumerate() {
            let first = at * columns.len();
            let mut place = |column: usize| {
                pair(self, row, columns[column], sums[first + column], data.results[first + column]);
            };
            if at % 2 == 0 {
                (0..columns.len()).for_each(&mut place)
            } else {
                (0..columns.len()).rev().for_each(&mut place)
            }
        }
        Ok(())
    }
}

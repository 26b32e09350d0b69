//! The parts of a condition of which all have to hold.

use crate::ir::entities::Value;
use crate::ir::kernel::Kernel;
use crate::ir::op::{Constant, Opcode};

/// What has to hold where a condition does: the operands of its `and`s, and what it asks first where the rest is not computed for
/// nothing (`if a { b } else { false }`). A condition that is made of no others is its only part.
pub fn conjuncts(kernel: &Kernel, condition: Value) -> Vec<Value> {
    let (mut open, mut found) = (vec![condition], Vec::new());
    while let Some(part) = open.pop() {
        match kernel.definition_data(part) {
            Some(data) if data.opcode == Opcode::And => open.extend(data.arguments.iter().rev()),
            Some(data) if data.opcode == Opcode::If && data.regions.len() == 2 => {
                let is_false = |value: &Value| kernel.constant_of(*value) == Some(Constant::Bool(false));
                if kernel.yields(data.regions[1]).iter().all(is_false) {
                    open.push(data.arguments[0]);
                }
            }
            _ => found.push(part),
        }
    }
    found
}

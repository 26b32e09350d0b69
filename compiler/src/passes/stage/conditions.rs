//! Conditions on sizes that the device tests.

use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::op::{Constant, Opcode};
use crate::manifest::{BinaryOp, Expr};

/// Emits a condition over integer symbols, to be tested on the device.
pub fn truth(emit: &mut Emit<'_>, condition: &Expr) -> Value {
    let Expr::Binary(op, left, right) = condition else {
        let holds = matches!(condition, Expr::Bool(true));
        return emit.constant(Constant::Bool(holds));
    };
    let opcode = match op {
        BinaryOp::And => {
            let (left, right) = (truth(emit, left), truth(emit, right));
            return emit.binary(Opcode::And, left, right);
        }
        BinaryOp::Equal => Opcode::Eq,
        BinaryOp::GreaterEqual => Opcode::Ge,
        BinaryOp::LessEqual => Opcode::Le,
        _ => panic!("{condition:?} is no condition on sizes"),
    };
    let (left, right) = (emit.expression(left), emit.expression(right));
    emit.binary(opcode, left, right)
}

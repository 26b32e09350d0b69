//! Conditions on sizes that the host tests before a launch.

use crate::analysis::{GRID_LIMITS, upper_bound};
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::op::{Constant, Opcode};
use crate::manifest::{BinaryOp, Expr};

/// Whether every one of some conditions holds; those that are sure are left out.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    all: Vec<Expr>,
    /// One of them never holds.
    impossible: bool,
}

impl Conditions {
    pub fn add(&mut self, condition: Expr) {
        if !self.all.contains(&condition) {
            self.all.push(condition);
        }
    }

    pub fn at_least(&mut self, value: &Expr, least: i64) {
        match value {
            Expr::Int(value) => self.impossible |= *value < least,
            value => self.add(Expr::binary(BinaryOp::GreaterEqual, value.clone(), Expr::Int(least))),
        }
    }

    /// That the hardware has so many blocks.
    pub fn fits_grid(&mut self, grid: &[Expr; 3]) {
        for (count, limit) in grid.iter().zip(GRID_LIMITS) {
            if upper_bound(count).is_none_or(|most| most > i128::from(limit)) {
                self.add(Expr::binary(BinaryOp::LessEqual, count.clone(), Expr::Int(limit)));
            }
        }
    }

    pub fn extend(&mut self, others: impl IntoIterator<Item = Expr>) {
        others.into_iter().for_each(|condition| self.add(condition));
    }

    /// One expression; `None` where it cannot hold.
    pub fn expression(&self) -> Option<Expr> {
        if self.impossible {
            return None;
        }
        let all = self.all.iter().cloned();
        let joined = all.reduce(|left, right| Expr::binary(BinaryOp::And, left, right));
        Some(joined.unwrap_or(Expr::Bool(true)))
    }
}

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

//! Expressions that the host evaluates: extents, facts, bounds of kernel-level loops.

use super::{KernelLocal, Lowerer};
use crate::check::typed::{BinaryOp, Builtin, CompareOp, Expr, ExprKind, Type};
use crate::data::Scalar;
use crate::manifest::{self, UnaryOp};
use cranelift_entity::EntityRef;

impl Lowerer<'_> {
    /// `None` where the expression reads memory or uses an operation that manifests do not have.
    pub fn host_expression(&self, expr: &Expr) -> Option<manifest::Expr> {
        use manifest::Expr as Host;
        Some(match &expr.kind {
            ExprKind::Bool(value) => Host::Bool(*value),
            ExprKind::Int(value) => Host::Int(i64::try_from(*value).ok()?),
            ExprKind::Float(value) => Host::Float(*value),
            ExprKind::Dim(dim) => Host::Symbol(self.dims[*dim]?.index()),
            ExprKind::Param(param) => match self.params[*param].as_slice() {
                [symbol] => Host::Symbol(symbol.index()),
                _ => return None,
            },
            ExprKind::Index(index) => Host::Symbol(self.counters[*index]?.index()),
            ExprKind::Local(local) => {
                let known = self.kernel_locals.iter().rev().find(|(name, _)| name == local)?;
                match known.1 {
                    KernelLocal::Recompute(value) => self.host_expression(value)?,
                    KernelLocal::Stored(_) => return None,
                }
            }
            ExprKind::Negate(operand) => Host::Unary(UnaryOp::Negate, self.host_expression(operand)?.into()),
            ExprKind::Not(operand) if operand.ty == Type::BOOL => {
                Host::Unary(UnaryOp::Not, self.host_expression(operand)?.into())
            }
            ExprKind::Binary { op, left, right } => {
                let op = match op {
                    BinaryOp::Add => manifest::BinaryOp::Add,
                    BinaryOp::Sub => manifest::BinaryOp::Sub,
                    BinaryOp::Mul => manifest::BinaryOp::Mul,
                    BinaryOp::Div => manifest::BinaryOp::Div,
                    BinaryOp::Rem => manifest::BinaryOp::Rem,
                    _ => return None,
                };
                Host::binary(op, self.host_expression(left)?, self.host_expression(right)?)
            }
            ExprKind::Compare { op, left, right } => {
                let op = match op {
                    CompareOp::Equal => manifest::BinaryOp::Equal,
                    CompareOp::NotEqual => manifest::BinaryOp::NotEqual,
                    CompareOp::Less => manifest::BinaryOp::Less,
                    CompareOp::LessEqual => manifest::BinaryOp::LessEqual,
                    CompareOp::Greater => manifest::BinaryOp::Greater,
                    CompareOp::GreaterEqual => manifest::BinaryOp::GreaterEqual,
                };
                Host::binary(op, self.host_expression(left)?, self.host_expression(right)?)
            }
            ExprKind::Logical { and, left, right } => {
                let op = if *and { manifest::BinaryOp::And } else { manifest::BinaryOp::Or };
                Host::binary(op, self.host_expression(left)?, self.host_expression(right)?)
            }
            // Integers are mathematical on the host: a cast that keeps the value needs nothing.
            ExprKind::Cast { operand, to } if keeps_value(operand.ty.as_scalar()?, *to) => {
                self.host_expression(operand)?
            }
            ExprKind::Call { builtin: builtin @ (Builtin::Min | Builtin::Max), arguments } => {
                let op = match builtin {
                    Builtin::Min => manifest::BinaryOp::Min,
                    _ => manifest::BinaryOp::Max,
                };
                Host::binary(op, self.host_expression(&arguments[0])?, self.host_expression(&arguments[1])?)
            }
            _ => return None,
        })
    }
}

/// Whether every value of one integer type is a value of the other.
fn keeps_value(from: Scalar, to: Scalar) -> bool {
    from == to
        || from.is_integer()
            && to.is_integer()
            && match (from.is_signed_integer(), to.is_signed_integer()) {
                (true, true) | (false, false) => from.size() <= to.size(),
                (false, true) => from.size() < to.size(),
                (true, false) => false,
            }
}

//! Loads that lie inside of their array whatever stands around them: each subscript is a literal, made of indices, what the
//! conditions of branches around the load itself keep between 0 and the extent, or a quotient of one of these by a literal.
//! They may be done where the source does not get to them.

use super::conjuncts::conjuncts;
use super::polynomial::polynomial_of;
use super::ranges::Ranges;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};

/// The least value of a subscript, and what it stays below.
pub type Bounds = (Expr, Expr);

/// Those of an index that runs from a literal to what sizes say.
pub fn bounds_of_index(kernel: &Kernel, (low, high): (Value, Value)) -> Option<Bounds> {
    Some((Expr::Int(i64::try_from(kernel.int_of(low)?).ok()?), kernel.symbolic(high)?))
}

/// Whether a load is inside wherever its indices are; `bounds` has those of a subscript, where they are known, and
/// `conditions` hold where the load is done.
pub fn is_always_inside(
    kernel: &Kernel,
    load: Inst,
    bounds: &dyn Fn(Value) -> Option<Bounds>,
    conditions: &[Value],
) -> bool {
    let data = &kernel.insts[load];
    let Payload::Access { buffer, .. } = data.payload else { return false };
    let extents = &kernel.buffers[buffer].extents;
    let subscripts = kernel.subscripts(data);
    // What is behind them says the element of a fixed array, which is a literal.
    subscripts.len() >= extents.len()
        && subscripts.iter().zip(extents).all(|(subscript, extent)| {
            // A quotient is below an extent where the dividend is below as many times that.
            let (subscript, extent) = match divided(kernel, *subscript) {
                Some((dividend, divisor)) => {
                    (dividend, Expr::binary(BinaryOp::Mul, extent.clone(), Expr::Int(divisor)))
                }
                None => (*subscript, extent.clone()),
            };
            let (subscript, extent) = (&subscript, &extent);
            let literal = kernel.int_of(*subscript).and_then(|at| i64::try_from(at).ok());
            let literal = literal.and_then(|at| Some((Expr::Int(at), Expr::Int(at.checked_add(1)?))));
            let known: Vec<Bounds> = literal.into_iter().chain(bounds(*subscript)).collect();
            let starts = known.iter().any(|(low, _)| matches!(low, Expr::Int(low) if *low >= 0));
            let ends = known.iter().any(|(_, high)| is_at_most(high, extent));
            let holds = |is_meant: &dyn Fn(Value) -> bool| {
                conditions.iter().any(|condition| conjuncts(kernel, *condition).into_iter().any(is_meant))
            };
            let starts = starts || holds(&|part| is_from_zero(kernel, part, *subscript));
            let ends = ends || holds(&|part| is_below(kernel, part, *subscript, extent));
            if starts && ends {
                return true;
            }
            let range = Ranges::new(kernel).of(kernel, *subscript);
            let stays_below = matches!(extent, Expr::Int(extent) if range.high < i128::from(*extent));
            (starts || range.low >= 0) && (ends || stays_below)
        })
}

/// Dividend and divisor of a quotient by a literal, where the quotient is not below 0 if the dividend is not.
fn divided(kernel: &Kernel, value: Value) -> Option<(Value, i64)> {
    let data = kernel.definition_data(value)?;
    let literal = kernel.int_of(*data.arguments.get(1)?)?;
    let divisor = match data.opcode {
        Opcode::Div => i64::try_from(literal).ok(),
        Opcode::Shr => 1i64.checked_shl(u32::try_from(literal).ok()?),
        _ => None,
    };
    divisor.filter(|divisor| *divisor > 0).map(|divisor| (data.arguments[0], divisor))
}

/// Whether a comparison says that a value is not below 0.
fn is_from_zero(kernel: &Kernel, comparison: Value, value: Value) -> bool {
    let Some(data) = kernel.definition_data(comparison) else { return false };
    data.opcode == Opcode::Ge
        && data.arguments[0] == value
        && kernel.int_of(data.arguments[1]).is_some_and(|least| least >= 0)
}

/// Whether a comparison says that a value is below an extent.
fn is_below(kernel: &Kernel, comparison: Value, value: Value, extent: &Expr) -> bool {
    let Some(data) = kernel.definition_data(comparison) else { return false };
    data.opcode == Opcode::Lt
        && data.arguments[0] == value
        && kernel.symbolic(data.arguments[1]).is_some_and(|high| is_at_most(&high, extent))
}

/// Whether one end is never above an extent, which is never below 0.
fn is_at_most(high: &Expr, extent: &Expr) -> bool {
    // What is below the one of two is below the larger one.
    if let Expr::Binary(BinaryOp::Max, left, right) = extent
        && **right == Expr::Int(0)
        && is_at_most(high, left)
    {
        return true;
    }
    let (Some(high), Some(extent)) = (polynomial_of(high), polynomial_of(extent)) else {
        return high == extent;
    };
    let left = extent.subtract(&high).and_then(|left| left.as_constant());
    left.is_some_and(|left| left >= 0)
}

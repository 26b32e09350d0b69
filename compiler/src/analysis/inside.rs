//! Loads that lie inside of their array whatever stands around them: each subscript is an index of a loop, or a literal,
//! between 0 and the extent. They may be done where the source does not get to them.

use super::polynomial::polynomial_of;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::manifest::{BinaryOp, Expr};

/// The low end of an index, and what it stays below.
pub type Bounds = (Expr, Expr);

/// Whether a load is inside wherever its indices are; `bounds` has those of an index, where they are known.
pub fn is_always_inside(kernel: &Kernel, load: Inst, bounds: &dyn Fn(Value) -> Option<Bounds>) -> bool {
    let data = &kernel.insts[load];
    let Payload::Access { buffer, .. } = data.payload else { return false };
    let extents = &kernel.buffers[buffer].extents;
    let subscripts = kernel.subscripts(data);
    // What is behind them says the element of a fixed array, which is a literal.
    subscripts.len() >= extents.len()
        && subscripts.iter().zip(extents).all(|(subscript, extent)| {
            let known = match kernel.int_of(*subscript).map(i64::try_from) {
                Some(Ok(at)) => Some((Expr::Int(at), Expr::Int(at + 1))),
                _ => bounds(*subscript),
            };
            known.is_some_and(|(low, high)| {
                matches!(low, Expr::Int(low) if low >= 0) && is_at_most(&high, extent)
            })
        })
}

/// Whether one end is never above an extent, which is never below 0.
fn is_at_most(high: &Expr, extent: &Expr) -> bool {
    if high == extent || *extent == Expr::binary(BinaryOp::Max, high.clone(), Expr::Int(0)) {
        return true;
    }
    let (Some(high), Some(extent)) = (polynomial_of(high), polynomial_of(extent)) else { return false };
    let left = extent.subtract(&high).and_then(|left| left.as_constant());
    left.is_some_and(|left| left >= 0)
}

//! Grids: how many blocks an axis needs, and whether the hardware has that many.

use crate::ir::entities::Symbol;
use crate::ir::kernel::Kernel;
use crate::manifest::{BinaryOp, Expr, SymbolKind};
use cranelift_entity::EntityRef;

/// Hardware limits of the grid, the same on every target.
pub const GRID_LIMITS: [i64; 3] = [0x7fff_ffff, 65535, 65535];

/// The largest value that a launch lets a dimension have: every larger one is refused by name. With it, a grid
/// whose blocks hold at least 32 elements of one dimension cannot overflow its x axis.
pub const DIMENSION_LIMIT: i64 = 1 << 36;

/// Whether a grid axis may need more blocks than the hardware has.
pub fn may_exceed(kernel: &Kernel, axis: usize, count: &Expr) -> bool {
    bound(count, &|symbol| kernel_bound(kernel, symbol))
        .is_none_or(|most| most > i128::from(GRID_LIMITS[axis]))
}

fn kernel_bound(kernel: &Kernel, symbol: usize) -> Option<(i128, i128)> {
    match kernel.symbols.get(Symbol::new(symbol))?.kind {
        SymbolKind::Dim { .. } => Some((0, i128::from(DIMENSION_LIMIT))),
        _ => None,
    }
}

/// The largest value that an expression without symbols can take, where that is known.
pub fn upper_bound(expr: &Expr) -> Option<i128> {
    bound(expr, &|_| None)
}

/// The largest value that an expression can take, where that is known.
fn bound(expr: &Expr, symbol: &impl Fn(usize) -> Option<(i128, i128)>) -> Option<i128> {
    interval(expr, symbol).map(|(_, most)| most)
}

fn interval(expr: &Expr, symbol: &impl Fn(usize) -> Option<(i128, i128)>) -> Option<(i128, i128)> {
    Some(match expr {
        Expr::Int(value) => (i128::from(*value), i128::from(*value)),
        Expr::Symbol(index) => symbol(*index)?,
        Expr::Binary(op, left, right) => {
            let (a, b) = (interval(left, symbol), interval(right, symbol));
            match op {
                BinaryOp::Min => match (a, b) {
                    (Some((a, b)), Some((c, d))) => (a.min(c), b.min(d)),
                    (Some((_, most)), None) | (None, Some((_, most))) => (i128::from(i64::MIN), most),
                    (None, None) => return None,
                },
                BinaryOp::Add => (a?.0.checked_add(b?.0)?, a?.1.checked_add(b?.1)?),
                BinaryOp::Sub => (a?.0.checked_sub(b?.1)?, a?.1.checked_sub(b?.0)?),
                BinaryOp::Max => (a?.0.max(b?.0), a?.1.max(b?.1)),
                BinaryOp::Mul if a?.0 >= 0 && b?.0 >= 0 => (a?.0.checked_mul(b?.0)?, a?.1.checked_mul(b?.1)?),
                BinaryOp::CeilDiv | BinaryOp::Div if b?.0 >= 1 => (a?.0.min(0), a?.1.max(0) / b?.0 + 1),
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// Blocks for an extent of which each takes `inner`: at least 0, whatever the extent's sign.
pub fn block_count(kernel: &Kernel, extent: &Expr, inner: i64) -> Expr {
    let inner = inner.max(1);
    // An empty range has no blocks, whatever its ends.
    let extent = match extent {
        Expr::Int(value) => {
            let value = (*value).max(0);
            return Expr::Int(value / inner + i64::from(value % inner != 0));
        }
        extent if kernel.never_negative(extent) => extent.clone(),
        other => Expr::binary(BinaryOp::Max, other.clone(), Expr::Int(0)),
    };
    if inner == 1 { extent } else { Expr::binary(BinaryOp::CeilDiv, extent, Expr::Int(inner)) }
}

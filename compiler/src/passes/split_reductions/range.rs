//! The range of a reduction, of which every iteration of the loops around may have a part.

use crate::analysis::Affine;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};

/// A range that the host knows.
pub struct Range {
    /// All iterations around begin and end alike.
    pub is_one: bool,
    /// The least beginning of all iterations.
    pub first: Expr,
    pub extent: Expr,
    /// How long the part is of the iteration that has the longest one: at most `extent`.
    pub longest: Expr,
}

/// The range of a reduction over one axis, or the one that holds those of all iterations of the loops around: of their indices,
/// each with its bounds, its ends are made by sums, minima and maxima.
pub fn range(kernel: &Kernel, reduce: Inst, around: &[(Value, (Value, Value))]) -> Option<Range> {
    let (low, high) = *kernel.loop_bounds(reduce).first()?;
    if let Some(extent) = kernel.symbolic_extent(low, high) {
        return Some(Range { is_one: true, first: kernel.symbolic(low)?, longest: extent.clone(), extent });
    }
    let (first, _) = ends(kernel, low, around)?;
    let (_, last) = ends(kernel, high, around)?;
    let extent = minus(last, first.clone());
    let longest = longest(kernel, low, high).map_or_else(|| extent.clone(), Expr::Int);
    Some(Range { is_one: false, first, extent, longest })
}

/// How long a range is at most, of ends that lie so many apart wherever it stands: 101 of `max(i - 100, 0)..=i`.
fn longest(kernel: &Kernel, low: Value, high: Value) -> Option<i64> {
    let mut affine = Affine::new(kernel);
    let (lows, highs) = (operands(kernel, low, Opcode::Max), operands(kernel, high, Opcode::Min));
    let pairs = lows.iter().flat_map(|low| highs.iter().map(move |high| (*low, *high)));
    let lengths = pairs.filter_map(|(low, high)| {
        let (low, high) = (affine.form(low), affine.form(high));
        i64::try_from(high.subtract(&low)?.as_constant()?).ok()
    });
    lengths.min()
}

/// What a value is the least or the greatest of.
fn operands(kernel: &Kernel, value: Value, opcode: Opcode) -> Vec<Value> {
    let (mut open, mut found) = (vec![value], Vec::new());
    while let Some(value) = open.pop() {
        match kernel.definition_data(value) {
            Some(data) if data.opcode == opcode => open.extend(data.arguments.iter().rev()),
            _ => found.push(value),
        }
    }
    found
}

/// The least and the greatest number that a value may be.
fn ends(kernel: &Kernel, value: Value, around: &[(Value, (Value, Value))]) -> Option<(Expr, Expr)> {
    if let Some(expr) = kernel.symbolic(value) {
        return Some((expr.clone(), expr));
    }
    if let Some((_, (low, high))) = around.iter().find(|(index, _)| *index == value) {
        return Some((kernel.symbolic(*low)?, minus(kernel.symbolic(*high)?, Expr::Int(1))));
    }
    let data = kernel.definition_data(value)?;
    let op = match data.opcode {
        Opcode::Add => BinaryOp::Add,
        Opcode::Sub => BinaryOp::Sub,
        Opcode::Min => BinaryOp::Min,
        Opcode::Max => BinaryOp::Max,
        _ => return None,
    };
    let (left, right) = (ends(kernel, data.arguments[0], around)?, ends(kernel, data.arguments[1], around)?);
    let right = if op == BinaryOp::Sub { (right.1, right.0) } else { right };
    let both = |left: Expr, right: Expr| match op {
        BinaryOp::Sub => minus(left, right),
        _ if left == right && op != BinaryOp::Add => left,
        _ => Expr::binary(op, left, right),
    };
    Some((both(left.0, right.0), both(left.1, right.1)))
}

fn minus(left: Expr, right: Expr) -> Expr {
    if right == Expr::Int(0) { left } else { Expr::binary(BinaryOp::Sub, left, right) }
}

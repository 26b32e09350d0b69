//! The steps of a block: all that the host knows of, those of its piece, or those of the range that the block computes.

use super::extents::{Plan, Shape, ceil_div, mul};
use super::found::Found;
use super::grid::split;
use super::range::OfRow;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;

/// The first step of a block, and the one behind its last.
pub fn range_of_steps(
    emit: &mut Emit<'_>,
    found: &Found,
    plan: &Plan,
    (bases, ends): ([Value; 2], [Value; 2]),
    map: &mut ValueMap,
) -> [Value; 2] {
    let shape = &plan.shape;
    match &found.range {
        None => {
            let all = Found::extent(&found.of_steps());
            let steps = emit.expression(&all);
            let Some(count) = &plan.pieces else { return [emit.int(0), steps] };
            // Whole chunks, so that vectors lie in one piece.
            let chunks = Expr::binary(BinaryOp::CeilDiv, ceil_div(all, shape.depth), count.clone());
            let of_piece = emit.expression(&mul(chunks, Expr::Int(shape.depth)));
            let piece = mapped(map, found.axes[0].index);
            let piece = mutant!("tile contraction: all pieces are the first", piece, emit.int(0));
            let low = emit.mul(piece, of_piece);
            let high = emit.add(low, of_piece);
            let high = mutant!(
                "tile contraction: the last piece has steps that there are not",
                emit.min(high, steps),
                high
            );
            [low, high]
        }
        Some(range) => match range.row {
            None => range.write(emit, found.body, map),
            Some(row) => {
                let mut map = longest_row(emit, found, shape, (row, bases, ends), map);
                range.write(emit, found.body, &mut map)
            }
        },
    }
}

/// The map with the index of that row, or column, of a block that has the longest range of steps.
fn longest_row(
    emit: &mut Emit<'_>,
    found: &Found,
    shape: &Shape,
    (row, bases, ends): (OfRow, [Value; 2], [Value; 2]),
    map: &ValueMap,
) -> ValueMap {
    let side = usize::from(found.of_row(1).is_some());
    let behind = emit.add_int(bases[side], shape.tile[side]);
    let behind = emit.min(behind, ends[side]);
    let last = emit.add_int(behind, -1);
    let [first, last] = mutant!(
        "tile contraction: a block has the range of its shortest row",
        [bases[side], last],
        [last, bases[side]]
    );
    let mut map = map.clone();
    split(emit, &found.of_side(side), if row.is_last { last } else { first }, &mut map);
    map
}

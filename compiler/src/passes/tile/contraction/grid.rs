//! Which tile a block has: the grid, the order of tiles in it, and the indices of axes that are one.

use super::extents::{Shape, Sizes};
use super::found::Found;
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::Payload;
use crate::ir::op::Opcode;
use crate::manifest::Expr;
use crate::passes::numbers::divided;
use crate::passes::tile::found::LoopAxis;

/// Rows of tiles that blocks take before they go on to the next columns: what they read stays in the cache.
const GROUP: i64 = 8;

/// The grid.
pub fn grid(found: &Found, shape: &Shape) -> [Expr; 3] {
    [Sizes::of(found).blocks(shape), Expr::Int(1), Expr::Int(1)]
}

/// The first row and the first column of a block. Indices of batches are put into the map.
pub fn bases(
    emit: &mut Emit<'_>,
    found: &Found,
    sizes: &Sizes,
    shape: &Shape,
    map: &mut ValueMap,
) -> [Value; 2] {
    let mut number = emit.value(Opcode::BlockIndex, Payload::Grid(0), &[]);
    emit.name(number, "block");
    let [rows, columns] = [0, 1].map(|side| emit.expression(&sizes.tiles(shape, side)));
    if !found.batch.is_empty() {
        let tiles = emit.mul(rows, columns);
        let (batch, rest) = divided(emit, number, tiles);
        number = rest;
        let axes: Vec<&LoopAxis> = found.batch.iter().map(|at| &found.axes[*at]).collect();
        split(emit, &axes, batch, map);
    }
    // Groups of rows of tiles, the last one of as many as are left; in each down its rows first.
    let of_group = emit.mul_int(columns, GROUP);
    let (group, place) = divided(emit, number, of_group);
    let first = emit.mul_int(group, GROUP);
    let left = emit.sub(rows, first);
    let group_rows = emit.int(GROUP);
    let height = emit.min(left, group_rows);
    let (column, row) = divided(emit, place, height);
    let row = emit.add(first, row);
    [emit.mul_int(row, shape.tile[0]), emit.mul_int(column, shape.tile[1])]
}

/// Splits a number into the indices of axes, the last one fastest.
pub fn split(emit: &mut Emit<'_>, axes: &[&LoopAxis], number: Value, map: &mut ValueMap) {
    let mut rest = number;
    for (at, axis) in axes.iter().enumerate().rev() {
        let place = if at == 0 {
            rest
        } else {
            let extent = emit.expression(&axis.extent);
            let (quotient, place) = divided(emit, rest, extent);
            rest = quotient;
            place
        };
        let low = emit.expression(&axis.low);
        let index = emit.add(low, place);
        emit.name(index, &axis.name);
        map.insert(axis.index, index);
    }
}

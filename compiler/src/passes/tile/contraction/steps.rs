//! The steps of a block: all that the host knows of, or those of the range that the block computes.

use super::extents::Shape;
use super::found::Found;
use super::grid::split;
use super::range::OfRow;
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::mutants::mutant;

/// The first step of a block, and the one behind its last.
pub fn range_of_steps(
    emit: &mut Emit<'_>,
    found: &Found,
    shape: &Shape,
    (bases, ends): ([Value; 2], [Value; 2]),
    map: &mut ValueMap,
) -> [Value; 2] {
    match &found.range {
        None => {
            let steps = emit.expression(&Found::extent(&found.of_steps()));
            [emit.int(0), steps]
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

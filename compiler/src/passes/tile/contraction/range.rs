//! Steps whose range memory says, or indices of batches: it is the same for all of a block, which computes it at its start.
//!
//! ```text
//! forall e in experts { dw[e, i, j] = sum(p in start[e]..start[e + 1]: x[p, i] * dy[p, j]) }
//! ```
//!
//! An axis with which a bound moves is a batch, whatever the factors are. Where that is the only axis of rows (`0..=i`), or of
//! columns, and moves one bound, always one way, the block has the range of its longest row, whose steps are all that the others
//! have; a factor of rows goes through registers and is zero outside of the row's own range. The host knows no more of a range than
//! arrays say along which the steps go.

use super::axes::OF_AXIS;
use crate::analysis::contraction::{AxisBits, Contraction, Moves, Range};
use crate::analysis::{Affine, code, written_buffers};
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use crate::passes::tile::found::{LoopAxis, buffer_of};
use crate::passes::tile::program::Writer;
use cranelift_entity::EntitySet;

/// The range of the steps of a block.
#[derive(Clone, Debug)]
pub struct BlockRange {
    low: Value,
    high: Value,
    /// The instructions that compute it.
    pub needed: EntitySet<Inst>,
    /// The axes of the loop with which each end moves.
    moves: [AxisBits; 2],
    /// The axis of rows, or of columns, with which one end moves.
    pub row: Option<OfRow>,
}

/// An end that moves with the axis of rows, or of columns: always one way.
#[derive(Clone, Copy, Debug)]
pub struct OfRow {
    /// The number of the axis.
    pub axis: usize,
    /// Whether it is the high end, and not the low one.
    pub is_high: bool,
    /// Whether the last row has the longest range, and not the first one.
    pub is_last: bool,
}

impl BlockRange {
    /// The range of a sum in a loop whose range the host cannot compute.
    ///
    /// # Errors
    /// Where something stands against it.
    pub fn find(kernel: &Kernel, forall: Inst, one: &Contraction) -> Result<Self, &'static str> {
        let [(low, high)] = kernel.loop_bounds(one.reduce)[..] else {
            return Err("the sum goes along several axes, and the host cannot compute the bounds of one");
        };
        if !one.axes.iter().any(|axis| axis.is_reduced && axis.range != Range::Host) {
            return Err("the host cannot compute the bounds of the sum");
        }
        let mut moves = Moves::new(kernel, &[forall], one.reduce);
        let moves = [moves.of(low), moves.of(high)];
        let mut needed = EntitySet::new();
        for bound in [low, high] {
            code(kernel, bound, &mut |inst, _| {
                needed.insert(inst);
            });
        }
        let written = written_buffers(kernel, kernel.insts[forall].regions[0]);
        let mut reads = needed.iter().filter_map(|inst| buffer_of(kernel, inst));
        if reads.any(|buffer| written.contains(buffer)) || !moves.iter().all(|end| end.is_pure()) {
            return Err("what says the bounds of the sum is written");
        }
        Ok(Self { low, high, needed, moves, row: None })
    }

    /// Takes the axes with which the range moves from the rows and from the columns: they are batches. Where no other one is left,
    /// a block has the range of that of its rows whose range is the longest.
    ///
    /// # Errors
    /// Where there is none.
    pub fn take_batches(
        &mut self,
        kernel: &Kernel,
        axes: &[LoopAxis],
        outer: &mut [Vec<usize>; 2],
    ) -> Result<Vec<usize>, &'static str> {
        let mut batches = Vec::new();
        for side in outer {
            let (moving, still): (Vec<usize>, Vec<usize>) = side.iter().partition(|at| self.moves_with(**at));
            if !still.is_empty() {
                batches.extend(moving);
                *side = still;
                continue;
            }
            let row = match moving[..] {
                [at] if self.row.is_none() => self.of_row(kernel, at, axes[at].index),
                _ => None,
            };
            self.row = Some(row.ok_or("the steps of no row are all that others have")?);
        }
        Ok(batches)
    }

    /// How the range moves with an axis, if one end does, always one way.
    fn of_row(&self, kernel: &Kernel, axis: usize, index: Value) -> Option<OfRow> {
        let mut affine = Affine::new(kernel);
        let low = slope(kernel, &mut affine, (self.low, index), SLOPE_DEPTH)?;
        let high = slope(kernel, &mut affine, (self.high, index), SLOPE_DEPTH)?;
        // Rows that there are not load nothing.
        let mut moves = |inst: Inst| affine.any_depends(&kernel.insts[inst].arguments, index);
        if self.needed.iter().any(|inst| kernel.insts[inst].opcode.is_load() && moves(inst)) {
            return None;
        }
        match (low, high) {
            (0, 1 | -1) => Some(OfRow { axis, is_high: true, is_last: high > 0 }),
            (1 | -1, 0) => Some(OfRow { axis, is_high: false, is_last: low < 0 }),
            _ => None,
        }
    }

    /// Whether an end moves with an axis of the loop.
    fn moves_with(&self, axis: usize) -> bool {
        self.moves.iter().any(|end| end.contains(axis))
    }

    /// The axis of the steps: its index is the step, and its extent is about how many there are. `None` where no array says.
    pub fn steps(&self, kernel: &Kernel, reduce: Inst, axes: &[LoopAxis]) -> Option<LoopAxis> {
        let region = kernel.insts[reduce].regions[0];
        let index = kernel.blocks[region].params[0];
        let axis = *kernel.insts[reduce].payload.axes().first()?;
        let extent = self.mean(kernel, reduce, axes)?;
        Some(LoopAxis { name: kernel.axes[axis].name.clone(), index, low: Expr::Int(0), extent })
    }

    /// About how many steps there are: batches whose ranges lie behind one another share an axis of an array, and of one whose
    /// range begins or ends where all do half of an axis is taken.
    fn mean(&self, kernel: &Kernel, reduce: Inst, axes: &[LoopAxis]) -> Option<Expr> {
        let region = kernel.insts[reduce].regions[0];
        let index = kernel.blocks[region].params[0];
        let mut affine = Affine::new(kernel);
        let at_least_one = |expr: Expr| Expr::binary(BinaryOp::Max, expr, Expr::Int(1));
        let mut found = None;
        kernel.walk(region, &mut |_, inst| {
            let data = &kernel.insts[inst];
            let Some(buffer) = buffer_of(kernel, inst) else { return };
            let subscripts = kernel.subscripts(data);
            let along = subscripts.iter().position(|value| affine.depends(*value, index));
            let Some(along) = along.filter(|_| found.is_none() && data.opcode.is_load()) else { return };
            let Some(extent) = kernel.buffers[buffer].extents.get(along).cloned() else { return };
            let mut is_apart =
                |axis: &LoopAxis| subscripts.iter().any(|value| affine.depends(*value, axis.index));
            let moving = axes.iter().enumerate().filter(|(at, _)| self.moves_with(*at));
            let sharing = moving.filter(|(_, axis)| !is_apart(axis)).map(|(_, axis)| axis.extent.clone());
            let times = |left, right| Expr::binary(BinaryOp::Mul, left, right);
            let parts = sharing.reduce(times).filter(|_| self.moves.iter().all(|end| end.count() > 0));
            let parts = parts.map_or(Expr::Int(2), at_least_one);
            found = Some(at_least_one(Expr::binary(BinaryOp::Div, extent, parts)));
        });
        found
    }

    /// Writes what computes the range, in the loop's body, for the indices in the map: its ends. What stands for the values of that
    /// is put there, too.
    pub fn write(&self, emit: &mut Emit<'_>, body: Block, map: &mut ValueMap) -> [Value; 2] {
        let mut writer = Writer {
            emit,
            map: std::mem::take(map),
            masks: vec![None; 3],
            of_axis: OF_AXIS.to_vec(),
            only: Some(&self.needed),
            walked: None,
        };
        writer.block(body, None);
        *map = writer.map;
        [self.low, self.high].map(|end| mapped(map, end))
    }
}

/// Values that are looked through for which way one goes.
const SLOPE_DEPTH: u32 = 8;

/// Which way a value goes along an index: 1 up, -1 down, 0 nowhere; `None` where that is not always the same.
fn slope(
    kernel: &Kernel,
    affine: &mut Affine<'_>,
    (value, index): (Value, Value),
    depth: u32,
) -> Option<i64> {
    if !affine.depends(value, index) {
        return Some(0);
    }
    let by = affine.coefficient(value, index).and_then(|by| by.as_wrapped());
    if let Some(by) = by.filter(|by| *by != 0) {
        return Some(by.signum());
    }
    let data = kernel.definition_data(value)?;
    let (Opcode::Min | Opcode::Max, [left, right]) = (data.opcode, &data.arguments[..]) else { return None };
    let depth = depth.checked_sub(1)?;
    let sides = [left, right].map(|side| slope(kernel, affine, (*side, index), depth));
    let (left, right) = (sides[0]?, sides[1]?);
    (left * right >= 0).then_some((left + right).signum())
}

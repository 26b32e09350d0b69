//! Factors become coordinates: which iterations of a distributed loop a thread runs.
//!
//! The grid's x axis walks the last axis that has a grid factor, y the one before it, z all earlier ones as one
//! mixed-radix number, which is taken apart in 32 bits where sizes allow it. Within a block, threads are numbered by warps (of the axes' warp factors, later axes
//! faster), then lanes. A loop over a grid axis stands wherever its block count may be beyond the hardware's
//! limit, so that every extent is covered.

use crate::analysis::{block_count, may_exceed};
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{Factor, Kernel, Level, Payload};
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};

/// One axis of the loop that is spread over the machine.
pub struct Spread {
    pub name: String,
    pub low: Value,
    pub high: Value,
    pub extent: Option<Expr>,
    pub factors: Vec<Factor>,
}

impl Spread {
    /// The axes of a loop; sizes are those of the present factors.
    pub fn of(kernel: &Kernel, inst: Inst) -> Vec<Self> {
        let (Payload::Loop { axes } | Payload::Reduce { axes, .. }) = &kernel.insts[inst].payload else {
            return Vec::new();
        };
        let bounds = kernel.loop_bounds(inst);
        axes.iter()
            .zip(bounds)
            .map(|(axis, (low, high))| {
                let extent = match (kernel.symbolic(low), kernel.symbolic(high)) {
                    (Some(Expr::Int(0)), Some(to)) => Some(to),
                    (Some(Expr::Int(from)), Some(Expr::Int(to))) => Some(Expr::Int(to.saturating_sub(from))),
                    (Some(from), Some(to)) => Some(Expr::binary(BinaryOp::Sub, to, from)),
                    _ => None,
                };
                let data = &kernel.axes[*axis];
                Self { name: data.name.clone(), low, high, extent, factors: data.factors.clone() }
            })
            .collect()
    }

    /// The product of the sizes of the factors after this one.
    fn inner(&self, at: usize) -> i64 {
        self.factors[at + 1..].iter().map(size).product()
    }

    pub fn level_size(&self, level: Level) -> i64 {
        self.factors.iter().filter(|factor| factor.level == level).map(size).product()
    }

    /// Whether the product of the factors may reach past the end of the axis.
    pub fn needs_guard(&self) -> bool {
        let fixed: i64 = self.factors.iter().map(size).product();
        let open_ended = self.factors.iter().any(|factor| factor.size.is_none());
        match &self.extent {
            Some(Expr::Int(extent)) if *extent > 0 => {
                if open_ended {
                    extent % fixed != 0
                } else {
                    *extent != fixed
                }
            }
            _ => !(open_ended && fixed == 1),
        }
    }

    /// What each iteration that one thread runs adds to its first index: all combinations of the sized serial and
    /// vector factors.
    pub fn offsets(&self) -> Vec<i64> {
        let mut offsets = vec![0];
        for (at, factor) in self.factors.iter().enumerate() {
            if let (Level::Serial | Level::Vector, Some(size)) = (factor.level, factor.size) {
                let stride = self.inner(at);
                offsets = offsets
                    .iter()
                    .flat_map(|offset| (0..size as i64).map(move |step| offset + step * stride))
                    .collect();
            }
        }
        offsets
    }
}

fn size(factor: &Factor) -> i64 {
    factor.size.unwrap_or(1) as i64
}

/// Blocks in x, y and z.
pub fn grid_counts(kernel: &Kernel, axes: &[Spread]) -> Option<[Expr; 3]> {
    let mut counts = Vec::new();
    for axis in axes {
        let Some(at) = axis.factors.iter().position(|factor| factor.level == Level::Grid) else { continue };
        counts.push(match axis.factors[at].size {
            Some(size) => Expr::Int(size as i64),
            None => block_count(kernel, axis.extent.as_ref()?, axis.inner(at)),
        });
    }
    let mut grid = [Expr::Int(1), Expr::Int(1), Expr::Int(1)];
    if let Some(last) = counts.pop() {
        grid[0] = last;
    }
    if let Some(last) = counts.pop() {
        grid[1] = last;
    }
    let rest = counts.into_iter().reduce(|product, count| Expr::binary(BinaryOp::Mul, product, count));
    grid[2] = rest.unwrap_or(Expr::Int(1));
    Some(grid)
}

/// The axes that the grid walks.
fn on_grid(axes: &[Spread]) -> Vec<usize> {
    (0..axes.len()).filter(|at| axes[*at].factors.iter().any(|f| f.level == Level::Grid)).collect()
}

/// The blocks of several axes that z walks, which each thread takes apart; `None` where it need not.
pub fn mixed<'g>(axes: &[Spread], grid: &'g [Expr; 3]) -> Option<&'g Expr> {
    (on_grid(axes).len() > 3).then_some(&grid[2])
}

/// The grid of a launch: its blocks in x, y and z, and whether z is taken apart in 32 bits.
pub struct Grid<'g> {
    pub counts: &'g [Expr; 3],
    pub narrow: bool,
}

/// Emits this thread's block coordinate of each axis (0 for an axis without a grid factor), inside loops where the
/// grid may be too small, and calls `body` with them.
pub fn with_blocks(
    emit: &mut Emit<'_>,
    axes: &[Spread],
    grid: &Grid<'_>,
    body: &mut dyn FnMut(&mut Emit<'_>, &[Value]),
) {
    let spread = on_grid(axes);
    hardware_axis(emit, axes, grid, &spread, spread.len().min(3), &mut Vec::new(), body);
}

fn hardware_axis(
    emit: &mut Emit<'_>,
    axes: &[Spread],
    grid: &Grid<'_>,
    spread: &[usize],
    left: usize,
    found: &mut Vec<Value>,
    body: &mut dyn FnMut(&mut Emit<'_>, &[Value]),
) {
    let Some(axis) = left.checked_sub(1) else {
        let blocks = block_coordinates(emit, axes, (spread, grid.narrow), found);
        body(emit, &blocks);
        return;
    };
    let payload = Payload::Grid(axis as u8);
    let index = emit.value(Opcode::BlockIndex, payload.clone(), &[]);
    if !may_exceed(emit.kernel, axis, &grid.counts[axis]) {
        emit.name(index, ["block", "block_y", "block_z"][axis]);
        found.push(index);
        hardware_axis(emit, axes, grid, spread, axis, found, body);
        found.pop();
        return;
    }
    let high = emit.expression(&grid.counts[axis]);
    let step = emit.value(Opcode::GridSize, payload, &[]);
    let name = ["block", "block_y", "block_z"][axis];
    emit.for_loop(name, (index, high, step), &[], |emit, index, _| {
        found.push(index);
        hardware_axis(emit, axes, grid, spread, axis, found, body);
        found.pop();
        Vec::new()
    });
}

/// Takes z apart, last axis fastest.
fn block_coordinates(
    emit: &mut Emit<'_>,
    axes: &[Spread],
    (spread, narrow): (&[usize], bool),
    found: &[Value],
) -> Vec<Value> {
    let zero = emit.int(0);
    let mut blocks = vec![zero; axes.len()];
    // z, y, x.
    let mut found = found.iter().copied();
    let leading = spread.len().saturating_sub(2);
    if leading > 0
        && let Some(mut rest) = found.next()
    {
        for (position, at) in spread[..leading].iter().enumerate().rev() {
            if position == 0 {
                blocks[*at] = rest;
                break;
            }
            let axis = &axes[*at];
            let grid = axis.factors.iter().position(|f| f.level == Level::Grid).unwrap_or(0);
            let count = match (axis.factors[grid].size, &axis.extent) {
                (None, Some(extent)) => block_count(emit.kernel, extent, axis.inner(grid)),
                (size, _) => Expr::Int(size.unwrap_or(1) as i64),
            };
            let count = emit.expression(&count);
            (rest, blocks[*at]) = taken_apart(emit, rest, count, narrow);
        }
    }
    for (at, block) in spread[leading..].iter().zip(found) {
        blocks[*at] = block;
    }
    blocks
}

/// The quotient and the remainder of blocks by how many an axis has.
fn taken_apart(emit: &mut Emit<'_>, blocks: Value, count: Value, narrow: bool) -> (Value, Value) {
    if !narrow {
        let remainder = emit.binary(Opcode::Rem, blocks, count);
        return (emit.binary(Opcode::Div, blocks, count), remainder);
    }
    let cast = |emit: &mut Emit<'_>, to, value| emit.value(Opcode::Cast, Payload::Cast(to), &[value]);
    let (blocks, count) = (cast(emit, Scalar::U32, blocks), cast(emit, Scalar::U32, count));
    let quotient = emit.binary(Opcode::Div, blocks, count);
    let remainder = emit.binary(Opcode::Rem, blocks, count);
    (cast(emit, Scalar::I64, quotient), cast(emit, Scalar::I64, remainder))
}

/// The threads of a block, shared among axes: warps first, then lanes, later axes faster.
pub struct Threads {
    warp: Value,
    lane: Value,
    tid: Value,
    warps: Vec<i64>,
    lanes: Vec<i64>,
}

impl Threads {
    /// `axes`: all that share the block's threads, in order.
    pub fn new(emit: &mut Emit<'_>, axes: &[Spread]) -> Self {
        let warps: Vec<i64> = axes.iter().map(|axis| axis.level_size(Level::Warp)).collect();
        let lanes: Vec<i64> = axes.iter().map(|axis| axis.level_size(Level::Lane)).collect();
        let lane_count: i64 = lanes.iter().product();
        let warp_count: i64 = warps.iter().product();
        if lane_count * warp_count == 1 {
            let zero = emit.int(0);
            return Self { warp: zero, lane: zero, tid: zero, warps, lanes };
        }
        let tid = emit.value(Opcode::ThreadIndex, Payload::None, &[]);
        emit.name(tid, "tid");
        let lane = if warp_count == 1 { tid } else { emit.rem_by(tid, lane_count) };
        let warp = emit.div_by(tid, lane_count);
        Self { warp, lane, tid, warps, lanes }
    }

    /// The sum of coordinate times stride over the warp and lane factors of an axis.
    pub fn part(&self, emit: &mut Emit<'_>, axis: &Spread, at: usize) -> Value {
        let mut sum = emit.int(0);
        // One axis that has all warps and lanes, next to each other, takes the thread number as it is.
        let alone =
            (0..self.warps.len()).all(|other| other == at || self.warps[other] * self.lanes[other] == 1);
        let pair = axis
            .factors
            .windows(2)
            .position(|pair| (pair[0].level, pair[1].level) == (Level::Warp, Level::Lane));
        if let (true, Some(pair)) = (alone, pair) {
            return emit.mul_int(self.tid, axis.inner(pair + 1));
        }
        for (place, factor) in axis.factors.iter().enumerate() {
            let (from, sizes) = match factor.level {
                Level::Warp => (self.warp, &self.warps),
                Level::Lane => (self.lane, &self.lanes),
                _ => continue,
            };
            let later: i64 = sizes[at + 1..].iter().product();
            let outer: i64 = sizes[..at].iter().product();
            let mut coordinate = emit.div_by(from, later);
            if outer > 1 {
                coordinate = emit.rem_by(coordinate, sizes[at]);
            }
            let scaled = emit.mul_int(coordinate, axis.inner(place));
            sum = emit.add(sum, scaled);
        }
        sum
    }
}

/// The stride of the grid factor of an axis: how many iterations one block takes.
pub fn block_stride(axis: &Spread) -> i64 {
    axis.factors.iter().position(|factor| factor.level == Level::Grid).map_or(0, |at| axis.inner(at))
}

/// The stride of an open serial factor, if the axis has one.
pub fn open_serial(axis: &Spread) -> Option<i64> {
    let first = axis.factors.first()?;
    (first.level == Level::Serial && first.size.is_none()).then(|| axis.inner(0))
}

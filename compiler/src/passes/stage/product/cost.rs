//! What a product costs with tiles of a shape, about: closed formulas over its sizes, by which the cheapest shape is taken.
//!
//! ```text
//! each block a tile of its own            steps * (tiles of a multiprocessor * step + alone) + LAUNCH
//! tiles shared among all (share.rs)       steps * tiles / multiprocessors * step + TWO_LAUNCHES
//!                                         + parts * results of a part / multiprocessors / KEPT
//! ```
//!
//! In cycles of a multiprocessor (`analysis/rates.rs`).

use super::shape::Shape;
use super::share::LEAST_CHUNKS;
use crate::analysis::rates::{FUSED, KEPT, LAUNCH, TWO_LAUNCHES};
use crate::manifest::{BinaryOp, Expr};

/// What a step of the reduced axis takes for one tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cycles {
    /// Where a multiprocessor has all the blocks that it can have.
    pub step: i64,
    /// In addition, once, where nothing hides what a step waits for.
    pub alone: i64,
}

impl Cycles {
    /// So many times as many.
    pub fn times(self, factor: i64) -> Self {
        Self { step: self.step * factor, alone: self.alone * factor }
    }
}

/// What a launch costs.
#[derive(Clone, Debug)]
pub struct Cost {
    /// Each block has a tile of its own.
    whole: Expr,
    /// Tiles are shared.
    shared: Expr,
    /// Blocks that all multiprocessors have at a time.
    pub blocks: i64,
    /// Tiles of the last wave, if it is not full.
    pub rest: Expr,
}

fn add(left: Expr, right: Expr) -> Expr {
    Expr::binary(BinaryOp::Add, left, right)
}

fn mul(left: Expr, right: i64) -> Expr {
    if right == 1 { left } else { Expr::binary(BinaryOp::Mul, left, Expr::Int(right)) }
}

fn ceil_div(left: Expr, right: i64) -> Expr {
    Expr::binary(BinaryOp::CeilDiv, left, Expr::Int(right))
}

fn min(left: Expr, right: Expr) -> Expr {
    Expr::binary(BinaryOp::Min, left, right)
}

/// The cost of so many tiles, or results, with so many steps each.
fn whole(tiles: &Expr, steps: &Expr, cycles: Cycles, multiprocessors: i64) -> Expr {
    let of_step = mul(ceil_div(tiles.clone(), multiprocessors), cycles.step);
    let of_step = if cycles.alone == 0 { of_step } else { add(of_step, Expr::Int(cycles.alone)) };
    add(Expr::binary(BinaryOp::Mul, steps.clone(), of_step), Expr::Int(LAUNCH))
}

impl Cost {
    /// Of so many tiles of a shape with so many chunks each.
    pub fn new(tiles: &Expr, chunks: &Expr, shape: &Shape, multiprocessors: i64) -> Self {
        let steps = mul(chunks.clone(), shape.depth);
        let whole = whole(tiles, &steps, shape.cycles, multiprocessors);
        let blocks = multiprocessors * i64::from(shape.resident);
        let rest = Expr::binary(BinaryOp::Rem, tiles.clone(), Expr::Int(blocks));
        let work = Expr::binary(BinaryOp::Mul, tiles.clone(), chunks.clone());
        // One more part for each tile in which a block begins that has the end of another one.
        let parts = add(min(ceil_div(work.clone(), LEAST_CHUNKS), Expr::Int(blocks)), rest.clone());
        let results = shape.tile[0] * shape.tile[1];
        let kept = ceil_div(mul(parts, results), multiprocessors * KEPT);
        let computed = ceil_div(mul(work, shape.depth * shape.cycles.step), multiprocessors);
        Self { whole, shared: add(add(computed, kept), Expr::Int(TWO_LAUNCHES)), blocks, rest }
    }

    /// The better way.
    pub fn least(&self) -> Expr {
        min(self.whole.clone(), self.shared.clone())
    }

    /// Whether sharing is the better way: 1 or 0.
    pub fn sharing_pays(&self) -> Expr {
        let saved = Expr::binary(BinaryOp::Sub, self.whole.clone(), self.shared.clone());
        min(Expr::binary(BinaryOp::Max, saved, Expr::Int(0)), Expr::Int(1))
    }
}

/// One result a thread, for 128 threads, with both operands from the first cache; and what a step waits for them.
const PLAIN: Cycles = Cycles { step: 16, alone: 100 };

/// The cost of so many results without tiles.
pub fn plain(results: &Expr, steps: &Expr, multiprocessors: i64) -> Expr {
    whole(&ceil_div(results.clone(), FUSED), steps, PLAIN, multiprocessors)
}

/// A team of lanes a result, both of whose operands come from the second cache in whole sectors: about 32 bytes a cycle.
const TEAMS: Cycles = Cycles { step: 1, alone: 1 };

/// Results that have a step in a cycle.
const TEAMS_RESULTS: i64 = 4;

/// The cost of so many results without tiles, where the operands lie along the reduced axis.
pub fn teams(results: &Expr, steps: &Expr, multiprocessors: i64) -> Expr {
    whole(&ceil_div(results.clone(), TEAMS_RESULTS), steps, TEAMS, multiprocessors)
}

//! Loops whose iterations walk one axis several times become programs that hold what they find there.
//!
//! ```text
//! forall axis0 "i" (v0) {
//!     v2: f32 = reduce [max] axis1 "k" (v1) { … load buf0[v1, v0] … }
//!     v4: f32 = reduce [add] axis2 "k" (v3) { … load buf0[v3, v0] … }
//!     forall axis3 "k" (v5) { … store buf1[v5, v0], … load buf0[v5, v0] … }
//! }
//! →
//! launch … tiled grid [ceildiv(sym1, 128), 1, 1] axes [i: 32, i_4: 4, k: 64] {
//!     x = load_if buf0[index k, first of the block + index i], inside
//!     peak = reduce_along [max] k: x, inside of k
//!     …
//! ```
//!
//! Memory is read once: lanes go along the axis of the loop along which neighbours lie in memory, and a thread holds some
//! elements of its column in registers, its warps the others. The axis that is walked has as many elements as there are at most in
//! its class of sizes; what is more than it has is masked.
//!
//! Needs loops and reductions over one range of one axis, of which two at least read the same elements; accesses that run along
//! another axis; no loop inside these, no atomics; and an array of the iteration's own only where each is accessed at one place,
//! which is a tile then. Where the walked axis is too long for registers, or runs through memory itself, other passes share it
//! (`split_reductions`).

mod found;

use super::blocks::{Blocks, vector};
use super::directives::record;
use super::program::{self, Walked};
use super::ways::THREADS;
use crate::analysis::{Answer, Conditions, ask, bucket};
use crate::ir::entities::Launch;
use crate::ir::kernel::Kernel;
use crate::ir::schedule::Directive;
use crate::manifest::{BinaryOp, Expr};
use crate::passes::special::specialize;
use found::Columns;
use rustc_hash::FxHashMap;

/// Lanes of a warp.
const LANES: i64 = 32;
/// Warps of a block.
const WARPS: i64 = THREADS as i64 / LANES;
/// 32-bit registers that a thread has at most for what it holds: half as many as where a multiprocessor has two blocks.
const HELD: i64 = 64;
/// Elements of the longest columns that are held, where each is one of these registers.
pub const LONGEST: i64 = HELD * WARPS;
/// So many are enough to keep memory busy: from there on more warps share a column.
const ENOUGH: i64 = 32;
/// The least class of extents of the walked axis; the others are doubled.
const SHORTEST: i64 = 8;

/// Makes a launch a program that holds what its iterations walk; whether it did.
pub fn tile(kernel: &mut Kernel, launch: Launch) -> bool {
    let columns = match Columns::find(kernel, launch) {
        Ok(Some(columns)) => columns,
        Ok(None) => return false,
        Err(refused) => {
            let name = kernel.launches[launch].name.clone();
            let text = format!("`{}` is read again in each loop: {}", refused.array, refused.reason);
            kernel.schedule.remark_against(&name, text);
            return false;
        }
    };
    if is_said(kernel, &columns) {
        return false;
    }
    let Some(blocks) = blocks(kernel, launch, &columns) else { return false };
    let walked = columns.walked();
    let extent = &columns.found.axes[walked].extent;
    let held = Expr::binary(BinaryOp::LessEqual, extent.clone(), Expr::Int(blocks.tiles[walked]));
    // An empty column reads nothing: with one element at least, what is the same for all of them may be read.
    let conditions = Conditions::new().needs(held).needs_at_least(extent, 1).fits_grid(&program::grid(
        kernel,
        &columns.found,
        &blocks,
    ));
    let order = columns.order();
    let special = specialize(kernel, launch, &conditions, "held", |kernel, launch| {
        // The launch may be a copy of the one that was looked at.
        let Ok(Some(columns)) = Columns::find(kernel, launch) else { return false };
        let axis = columns.walked();
        let index = columns.found.axes[axis].index;
        let walked = Walked {
            axis,
            index,
            same: columns.same,
            own: columns.own,
            held: FxHashMap::default(),
            is_inside: false,
        };
        program::write(kernel, launch, &columns.found, (&blocks, &order), Some(walked));
        true
    });
    let Some(special) = special else { return false };
    record(kernel, special.of(launch), &columns.found, &blocks, "columns are held in registers");
    true
}

/// Whether the schedule says something of one of the axes, of another number of threads, or of what is in shared memory.
fn is_said(kernel: &Kernel, columns: &Columns) -> bool {
    let of_loops = columns.loops.iter().flat_map(|inst| kernel.insts[*inst].payload.axes());
    let names: Vec<&str> = of_loops
        .map(|axis| kernel.axes[*axis].name.as_str())
        .chain(columns.found.axes.iter().map(|axis| axis.name.as_str()))
        .collect();
    kernel.schedule.directives.iter().any(|known| match &known.directive {
        Directive::Block(threads) => u64::from(*threads) != THREADS,
        Directive::Order(order) => order.iter().all(|name| names.contains(&name.as_str())),
        Directive::Stage { array, .. } => columns.found.accesses_array(kernel, array),
        Directive::Atomic { .. } | Directive::FastMath | Directive::Tf32 => false,
        Directive::Layout { .. } | Directive::Cache { .. } => false,
        other => other.subject().is_some_and(|axis| names.contains(&axis)),
    })
}

/// What a block computes; `None` where columns do not fit into registers, or are too few for lanes.
fn blocks(kernel: &mut Kernel, launch: Launch, columns: &Columns) -> Option<Blocks> {
    let found = &columns.found;
    let (walked, lanes) = (columns.walked(), columns.lanes);
    let longest = LONGEST / columns.words;
    let classes: Vec<i64> = std::iter::successors(Some(SHORTEST), |class| Some(class * 2))
        .take_while(|class| *class <= longest)
        .collect();
    let edges: Vec<i64> = classes.iter().map(|class| class + 1).collect();
    let all = *classes.get(bucket(kernel, launch, &found.axes[walked].extent, &edges))?;
    let (along, mut vectors) = (found.axes[lanes].extent.clone(), 1);
    let has = |kernel: &mut Kernel, columns: i64| {
        ask(kernel, launch, &Conditions::new().prefers_at_least(&along, columns)) == Answer::Yes
    };
    if !has(kernel, LANES) {
        return None;
    }
    let words = all * columns.words;
    let fits = |vectors: i64| words * vectors <= HELD * WARPS;
    if fits(2) && has(kernel, 2 * LANES) {
        vectors = vector(kernel, launch, found, lanes, 2 * LANES);
        while !fits(vectors) {
            vectors /= 2;
        }
    }
    // Warps that share a column; the others have columns of their own.
    let enough = |warps: &i64| words * vectors <= ENOUGH * warps;
    let mut sharing = [1, 2, 4].into_iter().find(enough).unwrap_or(WARPS);
    if !has(kernel, LANES * vectors * (WARPS / sharing)) {
        sharing = WARPS;
    }
    let mut tiles = vec![1; found.axes.len()];
    let mut widths = tiles.clone();
    (tiles[lanes], widths[lanes]) = (LANES * vectors * (WARPS / sharing), vectors);
    tiles[walked] = all;
    Some(Blocks { tiles, vectors: widths, whole: Some(walked) })
}

//! From loops to tiles, and from tiles without layouts to tiles with layouts.
//!
//! - `found.rs`: what the loop of a launch looks like, and what stands against tiles.
//! - `blocks.rs`: how large the tiles of a block are.
//! - `program.rs`: writes the program of a block, without layouts.
//! - `ways.rs`: layouts made of whole digits, and what accesses cost under them.
//! - `layouts.rs`: the pass `layouts`, which gives each value its layout.
//! - `columns/`: loops whose iterations walk an axis several times, and hold what they find there.
//! - `contraction/`: products whose factors a matrix instruction takes, with layouts.

mod blocks;
mod columns;
mod contraction;
mod directives;
mod found;
mod layouts;
mod program;
mod ways;

use super::contiguous::WORD_BYTES;
use super::pass::{Changed, Pass, PassContext};
use super::special::specialize;
use crate::analysis::{Answer, Conditions, ask};
use crate::ir::entities::Launch;
use crate::ir::kernel::{Kernel, Phase, Phases};
use blocks::Blocks;
pub use columns::LONGEST as LONGEST_COLUMN;
pub use contraction::{ConcatenateProducts, PackOperands};
use directives::{is_said, record};
use found::Found;
pub use layouts::Layouts;

/// A loop that works element by element, and whose accesses run along different axes, becomes the program of a block over
/// tiles.
///
/// ```text
/// forall axis0 "j" = 0..sym1, axis1 "i" = 0..sym0 (v0 "j": i64, v1 "i": i64) {
///     v2: f32 = load buf0[v1, v0]
///     store buf1[v0, v1], v2
/// }
/// →
/// launch … tiled grid [ceildiv(sym1, 64) * ceildiv(sym0, 64), 1, 1] axes [j: 64, i: 64] {
///     j = first of the block + index j, and i likewise; inside = j < sym1 and i < sym0
///     x = load_if buf0[i, j], inside
///     store_if buf1[j, i], x, inside
/// ```
///
/// A tile has whole lines of memory on each side (`blocks.rs`): of an axis that is shorter than a line it has all, and as much of
/// those behind it in memory as make a line. Extents are powers of two; what is more than the axis has is masked. Where sizes
/// allow vectors, the elements of one are an axis of their own, of which no mask depends. Branches become masks and selects;
/// checks hold outside.
///
/// Fires where layouts, conversions included, cost less than lanes along one axis (`ways.rs`), in sectors and wavefronts. Needs a loop
/// without others, reductions, atomics and private arrays in it, axes whose bounds the host can compute, and no directive
/// about its axes, another number of threads, or its arrays in shared memory. An array that is written and accessed several
/// times must be accessed at the same subscripts everywhere, so that each iteration touches its own elements. What stands against
/// tiles is a remark of the schedule, where accesses run along different axes.
///
/// Products whose factors a matrix instruction takes become programs around it (`contraction/`). Loops whose iterations walk an
/// axis several times hold what they find there (`columns/`).
pub struct TilePass;

/// How much more narrow elements must cost without tiles: each is an access of its own to shared memory, and where a lane has
/// all of a short axis, the cache brings the rest (H100, u8, 16,000,000 x 3: 65 us without tiles, 101 with).
const NARROW_GAIN: u64 = 3;
/// How much more a layout along one axis must cost than tiles that move nothing and have less than a line of each row: pieces of
/// many rows at once are more to memory than their sectors (H200, f32, 768 x 256 x 256 in place by factors of rows and of columns:
/// 162 us as tiles of 16 x 16 x 16, 91 without).
const PIECES_GAIN: u64 = 2;
/// Bytes of a line of memory.
const LINE: u64 = 128;
/// Iterations along an axis that fill a row of a staged tile.
const STAGED: i64 = 32;

impl Pass for TilePass {
    fn name(&self) -> &str {
        "tile"
    }

    fn reason(&self) -> &str {
        "makes tiles of products for matrix instructions, and of loops whose accesses run along different axes"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn runs_after(&self) -> &[&str] {
        &["soa", "collapse"]
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let target = &context.target;
        let fits = target.warp_size == 32 && u64::from(target.max_threads) >= ways::THREADS;
        if !fits {
            return Changed::No;
        }
        contraction::look_for_tf32(kernel);
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            if kernel.launches[launch].phase == Phase::Abstract {
                changed |= contraction::tile(kernel, launch, target)
                    || columns::tile(kernel, launch)
                    || tile(kernel, launch);
            }
        }
        changed.into()
    }
}

/// Makes a launch a tile program where that costs less; whether it did.
fn tile(kernel: &mut Kernel, launch: Launch) -> bool {
    let found = match Found::find(kernel, launch) {
        Ok(Some(found)) => found,
        Ok(None) => return false,
        Err(refused) => {
            remark(kernel, launch, &refused.array, &refused.reason);
            return false;
        }
    };
    if is_said(kernel, &found) || is_staged(kernel, launch, &found) {
        return false;
    }
    let said = kernel.schedule.block().map(u64::from);
    let threads = |blocks: &Blocks| {
        let threads = ways::threads(blocks.elements());
        said.is_none_or(|said| said == threads).then_some(threads)
    };
    // Nothing is asked of sizes where no sizes would make it pay.
    let supposed = Blocks::supposed(kernel, &found);
    let suits =
        |blocks: &Blocks| threads(blocks).is_some_and(|threads| pays(&found, blocks, threads, |_| false));
    if supposed.is_some_and(|blocks| !suits(&blocks)) {
        return false;
    }
    let Some(blocks) = Blocks::new(kernel, launch, &found) else {
        let array = found.far(kernel).unwrap_or_default();
        remark(kernel, launch, &array, "a block has no room for rows along so many axes");
        return false;
    };
    let is_long = |axis: usize| {
        let long = Conditions::new().prefers_at_least(&found.axes[axis].extent, ways::LANES as i64);
        ask(kernel, launch, &long) == Answer::Yes
    };
    if !threads(&blocks).is_some_and(|threads| pays(&found, &blocks, threads, is_long)) {
        return false;
    }
    let order = order(&found);
    let conditions = Conditions::new().fits_grid(&program::grid(kernel, &found, &blocks));
    let special = specialize(kernel, launch, &conditions, "tiled", |kernel, launch| {
        // The launch may be a copy of the one that was looked at.
        let Ok(Some(found)) = Found::find(kernel, launch) else { return false };
        program::write(kernel, launch, &found, (&blocks, &order), None);
        true
    });
    let Some(special) = special else { return false };
    record(kernel, special.of(launch), &found, &blocks, "whole lines of memory on each side");
    true
}

/// Whether the pass `stage` does better: elements of one or two bytes, and accesses that each run along a long axis. Through
/// shared memory it brings tiles of them whose rows may begin anywhere; layouts of tiles have one element an access there.
/// (H100, u8, 16384²: 194 us staged, 341 as tiles; bf16, 8191 × 8193: 111 and 136; f32 and f64 the same.)
fn is_staged(kernel: &mut Kernel, launch: Launch, found: &Found) -> bool {
    if !is_narrow(found) {
        return false;
    }
    let first: Option<Vec<usize>> = found.accesses.iter().map(|seen| seen.run.first().copied()).collect();
    let Some(first) = first else { return false };
    let long = first.into_iter().fold(Conditions::new(), |conditions, axis| {
        conditions.prefers_at_least(&found.axes[axis].extent, STAGED)
    });
    ask(kernel, launch, &long) == Answer::Yes
}

/// Whether all accesses are of narrow elements.
fn is_narrow(found: &Found) -> bool {
    found.accesses.iter().all(|seen| seen.bytes < WORD_BYTES)
}

/// Says why accesses of a launch stay as they are.
fn remark(kernel: &mut Kernel, launch: Launch, array: &str, reason: &str) {
    let name = kernel.launches[launch].name.clone();
    let text = format!("neighbouring threads access elements of `{array}` that lie far apart: {reason}");
    kernel.schedule.remark_against(&name, text);
}

/// Whether layouts of tiles cost less than lanes along one axis of the loop, which is what there is without tiles; `is_long` says of
/// an axis whether it has iterations for all lanes.
fn pays(found: &Found, blocks: &Blocks, threads: u64, mut is_long: impl FnMut(usize) -> bool) -> bool {
    let parts = blocks.axes();
    let axis = |(at, by, extent): &(usize, i64, u64)| ways::Axis {
        name: format!("{at}_{by}"),
        extent: *extent,
        is_vector: *by == 1 && blocks.vectors[*at] > 1,
    };
    let axes: Vec<ways::Axis> = parts.iter().map(axis).collect();
    let places: Vec<(usize, i64)> = parts.iter().map(|(at, by, _)| (*at, *by)).collect();
    let accesses = found.over(&places);
    let Some(assigned) = ways::assign(&axes, &accesses, threads) else { return false };
    let mut along = |one: usize| {
        let has = ways::iterations(one, &axes, &places);
        if has >= ways::LANES || !is_long(one) {
            return ways::along_one(one, &axes, &places, &accesses, threads);
        }
        // As many tiles along it as have iterations for all lanes.
        let tiles = ways::LANES / has;
        let (mut axes, mut places) = (axes.clone(), places.clone());
        axes.push(ways::Axis { name: format!("{one}"), extent: tiles, is_vector: false });
        places.push((one, has as i64));
        let cost = ways::along_one(one, &axes, &places, &found.over(&places), threads);
        cost / tiles
    };
    let one = (0..found.axes.len()).map(&mut along).min().unwrap_or(u64::MAX);
    let converts = assigned.own.iter().any(Option::is_some);
    let has_pieces = || accesses.iter().any(|access| access.is_whole() && access.run(&axes) < LINE);
    match is_narrow(found) {
        // Without conversions they gain nothing.
        true => assigned.cost.saturating_mul(NARROW_GAIN) < one.min(assigned.plain),
        false if !converts && has_pieces() => assigned.cost.saturating_mul(PIECES_GAIN) < one,
        false => assigned.cost < one,
    }
}

/// The order in which blocks follow each other: along what the first store runs along, then along the other axes, the last
/// ones first.
fn order(found: &Found) -> Vec<usize> {
    let store = found.accesses.iter().find(|seen| seen.stores);
    let mut order: Vec<usize> = store.map(|seen| seen.run.clone()).unwrap_or_default();
    for at in (0..found.axes.len()).rev() {
        if !order.contains(&at) {
            order.push(at);
        }
    }
    order
}

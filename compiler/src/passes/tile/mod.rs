//! From loops to tiles, and from tiles without layouts to tiles with layouts.
//!
//! - `found.rs`: what the loop of a launch looks like, and what stands against tiles.
//! - `blocks.rs`: how large the tiles of a block are.
//! - `program.rs`: writes the program of a block, without layouts.
//! - `ways.rs`: layouts made of whole digits, and what accesses cost under them.
//! - `layouts.rs`: the pass `layouts`, which gives each value its layout.

mod blocks;
mod found;
mod layouts;
mod program;
mod ways;

use super::pass::{Changed, Pass, PassContext};
use super::special::specialize;
use crate::analysis::Conditions;
use crate::ir::entities::Launch;
use crate::ir::kernel::{Kernel, Phase, Phases};
use blocks::Blocks;
use found::{Found, Refused};
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
/// Fires where layouts with conversions cost less than the best without (`ways.rs`), in sectors and wavefronts. Needs a loop
/// without others, reductions, atomics and private arrays in it, axes whose bounds the host can compute, and no directive
/// about axes, blocks or stages. An array that is written and accessed several times must be accessed at the same subscripts
/// everywhere, so that each iteration touches its own elements. What stands against tiles is a remark of the schedule, where
/// accesses run along different axes.
pub struct TilePass;

impl Pass for TilePass {
    fn name(&self) -> &str {
        "tile"
    }

    fn reason(&self) -> &str {
        "makes tiles of loops whose accesses run along different axes"
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
        if kernel.schedule.says_how() || !fits {
            return Changed::No;
        }
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            if kernel.launches[launch].phase == Phase::Abstract {
                changed |= tile(kernel, launch);
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
            remark(kernel, launch, &refused);
            return false;
        }
    };
    let Some(blocks) = Blocks::new(kernel, launch, &found) else { return false };
    if !pays(&found, &blocks) {
        return false;
    }
    let order = order(&found);
    let conditions = Conditions::new().fits_grid(&program::grid(kernel, &found, &blocks));
    specialize(kernel, launch, &conditions, "tiled", |kernel, launch| {
        program::write(kernel, launch, &blocks, &order)
    })
    .is_some()
}

/// Says why accesses of a launch stay as they are.
fn remark(kernel: &mut Kernel, launch: Launch, refused: &Refused) {
    let name = kernel.launches[launch].name.clone();
    let text = format!(
        "neighbouring threads access elements of `{}` that lie far apart: {}",
        refused.array, refused.reason
    );
    kernel.schedule.remark(&name, text);
}

/// Whether layouts with conversions cost less than the best without.
fn pays(found: &Found, blocks: &Blocks) -> bool {
    let parts = blocks.axes();
    let axis = |(at, by, extent): &(usize, i64, u64)| ways::Axis {
        name: format!("{at}_{by}"),
        extent: *extent,
        is_vector: *by == 1 && blocks.vectors[*at] > 1,
    };
    let axes: Vec<ways::Axis> = parts.iter().map(axis).collect();
    let places: Vec<(usize, i64)> = parts.iter().map(|(at, by, _)| (*at, *by)).collect();
    let elements = axes.iter().map(|axis| axis.extent).product();
    let assigned = ways::assign(&axes, &found.over(&places), ways::threads(elements));
    assigned.is_some_and(|assigned| assigned.cost < assigned.plain)
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

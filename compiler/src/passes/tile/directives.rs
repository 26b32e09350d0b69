//! What a schedule says of the axes of a tile program, and what is recorded there of the tiles that a launch got.

use super::blocks::Blocks;
use super::found::Found;
use super::ways;
use crate::ir::entities::Launch;
use crate::ir::kernel::Kernel;
use crate::ir::schedule::Directive;

/// Whether the schedule says something of the loop's axes, or of what goes through shared memory.
pub(super) fn is_said(kernel: &Kernel, found: &Found) -> bool {
    let is_axis = |name: &String| found.axes.iter().any(|axis| axis.name == *name);
    kernel.schedule.directives.iter().any(|known| match &known.directive {
        Directive::Order(names) => names.iter().all(is_axis),
        Directive::Tile { axis, .. }
        | Directive::PerThread { axis, .. }
        | Directive::Vectorize { axis, .. }
        | Directive::Warps { axis, .. } => is_axis(axis),
        Directive::Stage { array, .. } => found.accesses_array(kernel, array),
        _ => false,
    })
}

/// Records what a launch does. Directives that say the same would make another program of it, so none is proposed.
pub(super) fn record(kernel: &mut Kernel, launch: Launch, found: &Found, blocks: &Blocks, reason: &str) {
    let threads = ways::threads(blocks.elements());
    let name = kernel.launches[launch].name.clone();
    let schedule = &mut kernel.schedule;
    schedule.done(|known| matches!(known, Directive::Block(_)));
    schedule.noted(&name, Directive::Block(threads as u32), "so many share the elements of a tile");
    for (axis, (tile, vector)) in found.axes.iter().zip(blocks.tiles.iter().zip(&blocks.vectors)) {
        let axis = axis.name.clone();
        schedule.noted(&name, Directive::Tile { axis: axis.clone(), size: *tile as u32 }, reason);
        schedule.noted(&name, Directive::PerThread { axis: axis.clone(), count: 1 }, "by the layouts");
        let width = *vector as u32;
        schedule.noted(&name, Directive::Vectorize { axis, width }, "neighbours that one access brings");
    }
    let names = found.axes.iter().map(|axis| axis.name.clone()).collect();
    schedule.noted(&name, Directive::Order(names), "lanes go by the layouts");
}

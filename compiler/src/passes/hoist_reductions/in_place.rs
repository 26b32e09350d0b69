//! Rows, and few columns, whose sum is combined with an element that is changed in place.
//!
//! ```text
//! forall axis0 "i" (v0) {                                           before
//!     v1: f32 = load buf0[v0]
//!     v2: f32 = reduce [add] axis1 "j" (v3) { … load buf1[v0, v3] … }
//!     store buf0[v0], …                                             of v1 and v2
//! }
//!
//! forall axis0 "i" (v0) { v2: f32 = reduce … store buf2[v0], v2 }    after
//! forall axis0 "i" (v0) { v1: f32 = load buf0[v0]; v2: f32 = load buf2[v0]; store buf0[v0], … }
//! ```
//!
//! The threads that share a row would read the element that one of them writes. In launches of their own, the row has a team, and
//! the element one thread. Moving averages of optimisers and of norms are like that. So are columns of which there are too few to
//! fill the machine: alone they are cut into pieces.

use super::columns::fills;
use super::need::Need;
use super::nest::{loops_of, only_forall};
use super::products::LEAST_STEPS;
use crate::analysis::contraction::contractions;
use crate::analysis::{Affine, Answer, Conditions, Stride, Uses, accesses, ask, written_buffers, written_by};
use crate::ir::entities::{Block, Buffer, Inst, Launch};
use crate::ir::kernel::{BufferKind, Kernel};
use crate::ir::op::Opcode;
use crate::passes::accumulate::accumulations;
use crate::passes::pass::TargetFacts;
use cranelift_entity::EntitySet;

/// The reduction of rows in such a launch, and the loop.
pub fn find(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> Option<(Inst, Need)> {
    let root = kernel.launches[launch].body;
    let forall = only_forall(kernel, launch)?;
    let body = kernel.insts[forall].regions[0];
    let mut loops = Vec::new();
    loops_of(kernel, body, &mut loops);
    let [reduce] = loops[..] else { return None };
    if !kernel.blocks[body].insts.contains(&reduce) || kernel.insts[reduce].opcode != Opcode::Reduce {
        return None;
    }
    let are_rows = walks_rows(kernel, body, reduce);
    if !are_rows && fills(kernel, launch, forall, reduce, target) != Some(false) {
        return None;
    }
    // A product's results are threads' own.
    if contractions(kernel, launch).iter().any(|one| one.reduce == reduce && one.has_reuse()) {
        return None;
    }
    let written = written_buffers(kernel, root);
    let combined: Vec<Buffer> = accumulations(kernel, body).iter().map(|known| known.buffer).collect();
    let in_place = |buffer: &Buffer| {
        kernel.buffers[*buffer].kind != BufferKind::Private
            && !combined.contains(buffer)
            && !Uses::of(kernel, body, *buffer).loads.is_empty()
    };
    if !written.iter().any(|buffer| in_place(&buffer)) {
        return None;
    }
    // What an iteration writes later, no iteration has written when the launch before reads it.
    let before = kernel.blocks[body].insts.iter().take_while(|inst| **inst != reduce);
    let mut written = EntitySet::new();
    written.extend(combined.iter().copied());
    before.for_each(|inst| written.extend(written_by(kernel, *inst).iter()));
    let parents = kernel.parents_in(root);
    let need = Need::of(kernel, &parents, body, reduce, &written)?;
    if need.axes.contains(&false) || !need.values_outside_are_pure(kernel, forall) {
        return None;
    }
    let (low, high) = *kernel.loop_bounds(reduce).last()?;
    let row = kernel.symbolic_extent(low, high)?;
    let conditions = Conditions::new().prefers_at_least(&row, LEAST_STEPS);
    (ask(kernel, launch, &conditions) == Answer::Yes).then_some((forall, need))
}

/// Whether neighbours along the last axis of a reduction lie side by side in memory, in a row of each iteration.
fn walks_rows(kernel: &Kernel, body: Block, reduce: Inst) -> bool {
    let region = kernel.insts[reduce].regions[0];
    let count = kernel.insts[reduce].payload.axes().len();
    let Some(index) = kernel.blocks[region].params[..count].last() else { return false };
    let mut affine = Affine::new(kernel);
    accesses(kernel, region).iter().any(|access| {
        let buffer = &kernel.buffers[access.buffer];
        let mut is_own = kernel.blocks[body].params.iter();
        affine.stride(access.inst, *index) == Stride::Bytes(buffer.element.size as i64)
            && is_own.any(|outer| affine.stride(access.inst, *outer) != Stride::Bytes(0))
    })
}

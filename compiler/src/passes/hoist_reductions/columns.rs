//! Reductions along columns, or over several names, of a loop that has other loops beside them.
//!
//! ```text
//! forall axis0 "c" (v0) {                                         before
//!     v1: f32 = reduce [add] axis1 "r" (v2) { … load buf0[v2, v0] … }
//!     v3: f32 = reduce [add] axis2 "r" (v4) { … load buf0[v4, v0] … v1 … }
//!     store buf1[v0], v3
//! }
//!
//! forall axis0 "c" (v0) { … reduce … store buf2[v0] … }            after
//! forall axis0 "c" (v0) { v1: f32 = load buf2[v0]; … reduce … store buf1[v0], … }
//! ```
//!
//! Neighbouring iterations read neighbouring elements, so each is a thread's, and there are too few of them to fill the
//! machine. Alone in its loop a reduction is cut into pieces (`split_reductions`), one over several names along the first
//! of them (`rfactor`); what is left after the last one is a parallel loop over all axes.

use super::need::Need;
use super::nest::is_loop;
use crate::analysis::{Affine, written_buffers};
use crate::data::Scalar;
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::Opcode;
use crate::passes::fill::columns_fill;
use crate::passes::pass::TargetFacts;

/// The first reduction of a launch that gets a launch of its own, and the loop in which it stands.
pub fn find(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> Option<(Inst, Need)> {
    let root = kernel.launches[launch].body;
    let is_forall = |inst: &&Inst| kernel.insts[**inst].opcode == Opcode::Forall;
    let forall = *kernel.blocks[root].insts.iter().find(is_forall)?;
    let body = kernel.insts[forall].regions[0];
    let loops: Vec<Inst> =
        kernel.blocks[body].insts.iter().copied().filter(|inst| is_loop(kernel, *inst)).collect();
    let reduce = *loops.iter().find(|inst| kernel.insts[**inst].opcode == Opcode::Reduce)?;
    let several = kernel.loop_bounds(reduce).len() > 1;
    if loops.len() < 2 || !(several || is_column(kernel, reduce, &kernel.blocks[body].params)) {
        return None;
    }
    let written = written_buffers(kernel, root);
    let parents = kernel.parents_in(root);
    let need = Need::of(kernel, &parents, body, reduce, &written)?;
    let bools = kernel.insts[reduce].results.iter().any(|value| kernel.value_type(*value) == Scalar::Bool);
    let alone = need.insts.iter().filter(|inst| is_loop(kernel, **inst)).count() == 1;
    if bools || !alone || need.axes.contains(&false) || !need.values_outside_are_pure(kernel, forall) {
        return None;
    }
    let (extent, columns) = (kernel.symbolic_iterations(reduce)?, kernel.symbolic_iterations(forall)?);
    (!columns_fill(kernel, launch, &columns, &extent, target)).then_some((forall, need))
}

/// Whether what a reduction reads lies along an index of the loop around it, and not along its own ones.
fn is_column(kernel: &Kernel, reduce: Inst, around: &[Value]) -> bool {
    let region = kernel.insts[reduce].regions[0];
    let own = &kernel.blocks[region].params;
    let mut affine = Affine::new(kernel);
    let (mut across, mut along) = (false, false);
    kernel.walk(region, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let Payload::Access { buffer, .. } = data.payload else { return };
        let Some(last) = kernel.buffers[buffer].extents.len().checked_sub(1) else { return };
        let mut moves = |indices: &[Value], at: usize| {
            indices.iter().any(|index| affine.depends(data.arguments[at], *index))
        };
        along |= moves(own, last);
        across |= moves(around, last) && (0..last).any(|at| moves(own, at));
    });
    across && !along
}

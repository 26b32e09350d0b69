//! Reductions along columns, over several names, or along few long rows, of a loop that has other loops beside them.
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
//! machine; or each is a row that a team takes, and they are few and long. Alone in its loop a reduction is cut into pieces
//! (`split_reductions`), one over several names along the first of them (`rfactor`). A parallel loop behind the last one
//! is one over all axes before (`cut.rs`).

use super::need::Need;
use super::nest::is_loop;
use crate::analysis::{Affine, Answer, ask, written_buffers};
use crate::data::Scalar;
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::passes::fill::{columns_fill, few_alike, rows_fill};
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
    if loops.len() < 2 {
        return None;
    }
    let written = written_buffers(kernel, root);
    let parents = kernel.parents_in(root);
    let need = Need::of(kernel, &parents, body, reduce, &written)?;
    let bools = kernel.insts[reduce].results.iter().any(|value| kernel.value_type(*value) == Scalar::Bool);
    if bools
        || !need.is_alone(kernel)
        || need.axes.contains(&false)
        || !need.values_outside_are_pure(kernel, forall)
    {
        return None;
    }
    (fills(kernel, launch, forall, reduce, target) == Some(false)).then_some((forall, need))
}

/// Whether there are so many iterations of a loop that one in it needs no other parallelism, or the inner one is so short that nothing
/// else pays; `None` where what it reads lies neither along the iterations nor along its own indices, nor is the same for all
/// iterations.
pub fn fills(
    kernel: &mut Kernel,
    launch: Launch,
    forall: Inst,
    inner: Inst,
    target: &TargetFacts,
) -> Option<bool> {
    let lies = lies(kernel, forall, inner);
    let is_reduce = kernel.insts[inner].opcode == Opcode::Reduce;
    let several = is_reduce && kernel.loop_bounds(inner).len() > 1;
    let are_columns = match lies {
        // Factors of a product lie both ways.
        Lies { across: true, along: true, .. } if is_reduce => several,
        Lies { across, .. } => across || several,
    };
    let are_alike = is_reduce && !several && lies.are_alike();
    if !are_columns && !are_alike && (!lies.along || is_reduce && lies.across) {
        return None;
    }
    let (extent, iterations) = (kernel.symbolic_iterations(inner)?, kernel.symbolic_iterations(forall)?);
    if are_alike {
        return Some(ask(kernel, launch, &few_alike(&iterations, &extent, target)) != Answer::Yes);
    }
    Some(match are_columns {
        true => columns_fill(kernel, launch, &iterations, &extent, target),
        false => rows_fill(kernel, launch, &iterations, &extent, target),
    })
}

/// Whether a loop walks along rows of the loop around it.
pub fn walks_rows(kernel: &Kernel, forall: Inst, inner: Inst) -> bool {
    matches!(lies(kernel, forall, inner), Lies { across: false, along: true, .. })
}

/// Whether some of what a loop accesses lies along its own indices, and some along those of the loop around it.
pub fn turns(kernel: &Kernel, forall: Inst, inner: Inst) -> bool {
    matches!(lies(kernel, forall, inner), Lies { across: true, along: true, .. })
}

/// How memory lies that a loop accesses.
struct Lies {
    /// Along an index of the loop around it, which reads other rows with its own ones.
    across: bool,
    /// Along its own indices, in rows of the loop around it.
    along: bool,
    /// Some moves with its own indices, and is the same for all iterations around it.
    shared: bool,
}

impl Lies {
    /// Whether all iterations around read the same elements.
    fn are_alike(&self) -> bool {
        self.shared && !self.across && !self.along
    }
}

fn lies(kernel: &Kernel, forall: Inst, inner: Inst) -> Lies {
    let body = kernel.insts[forall].regions[0];
    let around = kernel.blocks[body].params.as_slice();
    let written = written_buffers(kernel, body);
    let region = kernel.insts[inner].regions[0];
    let own = &kernel.blocks[region].params;
    let mut affine = Affine::new(kernel);
    let (mut across, mut along, mut shared) = (false, false, false);
    kernel.walk(region, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let Payload::Access { buffer, .. } = data.payload else { return };
        let Some(last) = kernel.buffers[buffer].extents.len().checked_sub(1) else { return };
        // How an array of an iteration's own lies is decided afterwards.
        let is_own = written.contains(buffer)
            && kernel.buffers[buffer].kind == BufferKind::Scratch
            && last >= around.len()
            && data.arguments[last + 1 - around.len()..=last] == *around;
        if is_own {
            return;
        }
        let mut moves = |indices: &[Value], at: usize| {
            indices.iter().any(|index| affine.depends(data.arguments[at], *index))
        };
        along |= moves(own, last) && (0..=last).any(|at| moves(around, at));
        across |= moves(around, last) && (0..last).any(|at| moves(own, at));
        shared |= (0..=last).any(|at| moves(own, at)) && !(0..=last).any(|at| moves(around, at));
    });
    Lies { across, along, shared }
}

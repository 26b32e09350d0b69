//! `unroll_interleaved`: what lies interleaved in memory is done by one iteration.
//!
//! ```text
//! forall axis0 "i" = 0..v0, axis1 "c" = 0..3 (v1, v2) {                                before
//!     v3: u8 = load buf0[v1, v2]; v4: f32 = load buf1[v2]; …; store buf2[v1, v2], v5
//! }
//!
//! forall axis0 "i" = 0..v0 (v1) { v3: u8 = load buf0[v1, 0]; …; store buf2[v1, 2], v9 }  after
//! ```
//!
//! The channels of a pixel and the coordinates of a point lie so, as an axis of two to eight at the end of an array. With
//! lanes along it a thread has one element, and where there are three, each fourth lane none. As straight code they are
//! what structs are: a thread takes several pixels, whose channels are whole vectors of memory, and what the channels
//! share is computed and loaded once. It is unroll-and-jam of that axis.
//!
//! # Preconditions
//!
//! The loop is alone in its launch, its body straight code. One of its axes beside others has two to eight iterations by
//! literals, from 0 on, and is the last subscript of an array that has no more than eight there. All arrays go on along one
//! other axis, which has a warp's iterations. What is left fills the machine. The schedule says nothing of the axis. Where it
//! has a power of two of them, elements are less than a word, and lie as planes nowhere: lanes, vectors and tiles suit it else.
//!
//! # Limits
//!
//! Where all arrays lie side by side along that axis and the one before it, `merge_axes` has made one of both. Where
//! memory is accessed in several orders, `tile` turns it. Loops with sums in them keep their axes: passes after this one
//! choose who shares what they load.

use super::contiguous::WORD_BYTES;
use super::iterations::straight_code;
use super::pass::{Changed, Pass, PassContext};
use super::split_axes::split_axes;
use super::straight::code_of;
use crate::analysis::{Affine, Answer, Conditions, ask};
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload, Phase, Phases};
use crate::ir::op::Effect;
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use std::collections::BTreeSet;

/// Elements that lie interleaved, at most: each is a copy of the code.
const MOST: i64 = 8;
/// Lanes that take what lies behind, at least.
const LANES: i64 = 32;
/// Instructions of all of them, at most.
const MOST_CODE: usize = 512;

/// The pass.
pub struct UnrollInterleaved;

impl Pass for UnrollInterleaved {
    fn name(&self) -> &str {
        "unroll_interleaved"
    }

    fn reason(&self) -> &str {
        "does the channels of a pixel in one iteration, where they lie side by side"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            let Some(found) = Found::of(kernel, launch) else { continue };
            if fills(kernel, launch, &found, context.target.threads_at_once()) {
                unroll(kernel, launch, &found);
                changed = true;
            }
        }
        changed.into()
    }
}

/// A loop with an axis along which elements lie interleaved.
struct Found {
    forall: Inst,
    /// The place of the axis.
    at: usize,
    count: i64,
    /// The place of the axis along which the arrays go on.
    next: usize,
}

impl Found {
    fn of(kernel: &Kernel, launch: Launch) -> Option<Self> {
        if kernel.launches[launch].phase != Phase::Abstract {
            return None;
        }
        let forall = kernel.only_loop(launch)?;
        let body = kernel.insts[forall].regions[0];
        let code = code_of(kernel, body, &[Effect::Read, Effect::Record, Effect::Write])?;
        let params = &kernel.blocks[body].params;
        let mut found = (0..params.len()).filter_map(|at| {
            let count = few(kernel, forall, at)?;
            let next = neighbour(kernel, forall, (params[at], count))?;
            (code * count as usize <= MOST_CODE).then_some(Self { forall, at, count, next })
        });
        found.next()
    }
}

/// How many iterations a short axis has.
fn few(kernel: &Kernel, forall: Inst, at: usize) -> Option<i64> {
    let (low, high) = kernel.loop_bounds(forall).get(at).copied()?;
    let axis = kernel.insts[forall].payload.axes()[at];
    let count = i64::try_from(kernel.int_of(high)?).ok()?;
    let is_free = kernel.int_of(low) == Some(0) && !kernel.schedule.speaks_of(&kernel.axes[axis].name);
    (is_free && (2..=MOST).contains(&count)).then_some(count)
}

/// The axis along which the array goes on whose last subscript an index is, of several that with the most axes; `None` where
/// there is no such array, or what moves along that axis lies in another order as well, or lanes along both leave no lane empty.
fn neighbour(kernel: &Kernel, forall: Inst, (own, count): (Value, i64)) -> Option<usize> {
    let body = kernel.insts[forall].regions[0];
    let params = &kernel.blocks[body].params;
    let mut affine = Affine::new(kernel);
    // With how many axes an array moves, and which.
    let mut found: Option<(usize, usize)> = None;
    let mut turned = BTreeSet::new();
    // Bytes of the widest element that lies interleaved, and whether the index is another subscript as well.
    let (mut bytes, mut is_planar) = (0, false);
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let Payload::Access { buffer, .. } = data.payload else { return };
        let array = &kernel.buffers[buffer];
        if !matches!(array.kind, BufferKind::Argument { .. } | BufferKind::Scratch) {
            return;
        }
        let [outer @ .., last] = kernel.subscripts(data) else { return };
        let is_short = matches!(array.extents.last(), Some(Expr::Int(extent)) if *extent <= MOST);
        let others = || (0..params.len()).filter(|at| params[*at] != own);
        if *last == own && is_short {
            let axes = others().filter(|at| affine.any_depends(outer, params[*at])).count();
            let next = outer.last().and_then(|next| others().rev().find(|at| affine.depends(*next, params[*at])));
            found = found.max(next.map(|next| (axes, next)));
            bytes = bytes.max(array.element.size);
        } else if *last != own {
            is_planar |= affine.any_depends(outer, own);
            let along: Vec<usize> = others().filter(|at| affine.depends(*last, params[*at])).collect();
            let behind = others().filter(|at| affine.any_depends(outer, params[*at]) && !along.is_empty());
            turned.extend(behind.filter(|at| !along.contains(at)));
        }
    });
    let (_, next) = found?;
    let fills_lanes = (count as u64).is_power_of_two() && (bytes >= WORD_BYTES || is_planar);
    (!turned.contains(&next) && !fills_lanes).then_some(next)
}

/// Whether what is left has so many iterations at least, and a warp's along the arrays.
fn fills(kernel: &mut Kernel, launch: Launch, found: &Found, least: i64) -> bool {
    let bounds = kernel.loop_bounds(found.forall);
    let extents: Option<Vec<Expr>> = bounds.iter().map(|(low, high)| kernel.symbolic_extent(*low, *high)).collect();
    let Some(extents) = extents else { return false };
    let left = extents.iter().enumerate().filter(|(at, _)| *at != found.at).map(|(_, extent)| extent.clone());
    let Some(all) = left.reduce(|left, right| Expr::binary(BinaryOp::Mul, left, right)) else { return false };
    let conditions = Conditions::new().prefers_at_least(&extents[found.next], LANES);
    ask(kernel, launch, &conditions.prefers_at_least(&all, least)) == Answer::Yes
}

/// Makes an iteration do all elements along the axis.
fn unroll(kernel: &mut Kernel, launch: Launch, found: &Found) {
    let axis = kernel.axes[kernel.insts[found.forall].payload.axes()[found.at]].name.clone();
    let root = kernel.launches[launch].body;
    let (around, body) = split_axes(kernel, found.forall, |other| other != found.at);
    let places = kernel.blocks[root].insts.iter_mut().filter(|inst| **inst == found.forall);
    places.for_each(|inst| *inst = around);
    let end = kernel.blocks[body].insts.split_off(1);
    kernel.blocks[body].insts.clear();
    let most = mutant!("unroll_interleaved: the last element is left out", found.count, found.count - 1);
    let place = |at| vec![mutant!("unroll_interleaved: all elements are the first", at, 0)];
    straight_code(kernel, body, found.forall, &(0..most).map(place).collect::<Vec<_>>());
    kernel.blocks[body].insts.extend(end);
    let text = format!("an iteration does all {} elements along `{axis}`, which lie side by side", found.count);
    let name = kernel.launches[launch].name.clone();
    kernel.schedule.remark(&name, text);
    kernel.schedule.remade.push(axis);
}

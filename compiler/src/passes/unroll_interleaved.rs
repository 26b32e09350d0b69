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
use super::jam::{few, fills, jam};
use super::pass::{Changed, Pass, PassContext};
use super::straight::code_of;
use crate::analysis::Affine;
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload, Phase, Phases};
use crate::ir::op::Effect;
use crate::manifest::Expr;
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
            let least = context.target.threads_at_once();
            if fills(kernel, launch, (found.forall, Some(found.at)), least, &[(found.next, LANES)]) {
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
            let count = few(kernel, forall, at, MOST)?;
            let next = neighbour(kernel, forall, (params[at], count))?;
            (code * count as usize <= MOST_CODE).then_some(Self { forall, at, count, next })
        });
        found.next()
    }
}

/// The axis along which the arrays go on whose last subscript an index is, of several those with the most axes; `None` where
/// there is no such array, or what moves along that axis lies in another order as well, or lanes along both leave no lane empty.
fn neighbour(kernel: &Kernel, forall: Inst, (own, count): (Value, i64)) -> Option<usize> {
    let body = kernel.insts[forall].regions[0];
    let params = &kernel.blocks[body].params;
    let mut affine = Affine::new(kernel);
    // Of each such array with how many axes it moves, and along which it goes on.
    let mut found: Vec<(usize, usize)> = Vec::new();
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
            let next =
                outer.last().and_then(|next| others().rev().find(|at| affine.depends(*next, params[*at])));
            found.extend(next.map(|next| (axes, next)));
            bytes = bytes.max(array.element.size);
        } else if *last != own {
            is_planar |= affine.any_depends(outer, own);
            let along: Vec<usize> = others().filter(|at| affine.depends(*last, params[*at])).collect();
            let behind = others().filter(|at| affine.any_depends(outer, params[*at]) && !along.is_empty());
            turned.extend(behind.filter(|at| !along.contains(at)));
        }
    });
    let (most, next) = found.iter().copied().max()?;
    let is_turned =
        turned.contains(&next) || found.iter().any(|(axes, other)| *axes == most && *other != next);
    let fills_lanes = (count as u64).is_power_of_two() && (bytes >= WORD_BYTES || is_planar);
    (!is_turned && !fills_lanes).then_some(next)
}

/// Makes an iteration do all elements along the axis.
fn unroll(kernel: &mut Kernel, launch: Launch, found: &Found) {
    let most = mutant!("unroll_interleaved: the last element is left out", found.count, found.count - 1);
    let place = |at| vec![mutant!("unroll_interleaved: all elements are the first", at, 0)];
    let first = mutant!("unroll_interleaved: the first element is left out", 0, 1);
    let places: Vec<_> = (first..most).map(place).collect();
    let (_, axis) = jam(kernel, launch, (found.forall, found.at), &places);
    let text =
        format!("an iteration does all {} elements along `{axis}`, which lie side by side", found.count);
    let name = kernel.launches[launch].name.clone();
    kernel.schedule.remark(&name, text);
}

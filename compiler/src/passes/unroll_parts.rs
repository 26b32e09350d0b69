//! `unroll_parts`: a parallel loop whose code asks in which half its index lies does both halves in one iteration.
//!
//! ```text
//! forall axis0 "e" = 0..128 (v2) {                                     before
//!     v3: bool = lt v2, 64
//!     v6: f32 = if v3 { v4: f32 = load buf0[v2 + 64]; yield v4 } else { v5: f32 = load buf0[v2 - 64]; yield v5 }
//!     store buf1[v2], v6
//! }
//!
//! forall axis0 "e" = 0..64 (v2) {                                      after
//!     v6: f32 = load buf0[v2 + 64]
//!     store buf1[v2], v6
//!     v7: f32 = load buf0[v2]
//!     store buf1[v2 + 64], v7
//! }
//! ```
//!
//! The halves of a rotary embedding, the nibbles of a byte and the parts of a concatenation are written so. An iteration of
//! what is left loads once what its parts share, no branch is left of the question, and neighbours are the same for all
//! threads of a vector. It is index set splitting, jammed: the parts stay one loop.
//!
//! # Preconditions
//!
//! The loop is alone in its launch, and one of its axes goes from 0 to 2, 3 or 4 times the length of a part. The index is
//! compared with a multiple of that length; comparisons with anything else stay. The body is values, loads, stores,
//! checks, and branches of such. The schedule says nothing of the axis.
//!
//! # Limits
//!
//! Reductions stay as they are, and so do parts shorter than [`SHORTEST`]: these are words of one thread anyway.

use super::fold::Fold;
use super::insert::{before, emitted};
use super::pass::{Changed, Pass, PassContext};
use super::straight::code_of;
use crate::analysis::{Polynomial, polynomial_of};
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Phase, Phases};
use crate::ir::op::{Constant, Effect, Opcode};
use crate::mutants::mutant;

/// Parts of an axis, at most: each is a copy of the code.
const MOST: i64 = 4;
/// Elements of a part, at least: 16 bytes of the narrowest ones are one access of a thread.
const SHORTEST: i128 = 16;
/// Instructions of all parts, at most.
const MOST_CODE: usize = 512;

/// The pass.
pub struct UnrollParts;

impl Pass for UnrollParts {
    fn name(&self) -> &str {
        "unroll_parts"
    }

    fn reason(&self) -> &str {
        "does in one iteration what code tells apart by the half of an axis"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            // Parts of other axes, and of these parts.
            while let Some(found) = Found::of(kernel, launch)
                && found.unroll(kernel).is_some()
            {
                let (name, count) = (kernel.launches[launch].name.clone(), found.count);
                let axis = kernel.axes[kernel.insts[found.forall].payload.axes()[found.at]].name.clone();
                let text = format!(
                    "an iteration over `{axis}` does what is done in each of {count} parts of the axis"
                );
                kernel.schedule.remark(&name, text);
                kernel.schedule.remade.push(axis);
                // Comparisons that are literals now.
                Fold.run(kernel, context);
                changed = true;
            }
        }
        changed.into()
    }
}

/// An axis of a launch's loop, and its parts.
struct Found {
    root: Block,
    forall: Inst,
    at: usize,
    /// Iterations of a part.
    length: Polynomial,
    count: i64,
}

impl Found {
    fn of(kernel: &Kernel, launch: Launch) -> Option<Self> {
        if kernel.launches[launch].phase != Phase::Abstract {
            return None;
        }
        let root = kernel.launches[launch].body;
        let forall = kernel.only_loop(launch)?;
        let body = kernel.insts[forall].regions[0];
        let code = code_of(kernel, body, &[Effect::Read, Effect::Record, Effect::Write])?;
        let bounds = kernel.loop_bounds(forall);
        bounds.iter().enumerate().find_map(|(at, (low, high))| {
            let axis = kernel.insts[forall].payload.axes()[at];
            if kernel.int_of(*low) != Some(0) || kernel.schedule.speaks_of(&kernel.axes[axis].name) {
                return None;
            }
            let extent = polynomial_of(&kernel.symbolic(*high)?)?;
            let index = kernel.blocks[body].params[at];
            let mut found: Option<Self> = None;
            for boundary in boundaries(kernel, body, index) {
                for length in [extent.subtract(&boundary)?, boundary] {
                    let parts = |count: &i64| length.scale((*count).into()).as_ref() == Some(&extent);
                    let Some(count) = (2..=MOST).find(parts) else { continue };
                    let is_long = length.as_constant().is_none_or(|length| length >= SHORTEST);
                    let fits = code * count as usize <= MOST_CODE;
                    if is_long && fits && found.as_ref().is_none_or(|known| known.count < count) {
                        found = Some(Self { root, forall, at, length, count });
                    }
                }
            }
            found
        })
    }

    /// Makes an iteration do all parts.
    fn unroll(&self, kernel: &mut Kernel) -> Option<()> {
        let length = before(kernel, self.root, self.forall, |emit| emitted(emit, &self.length))??;
        let body = kernel.insts[self.forall].regions[0];
        let index = kernel.blocks[body].params[self.at];
        let span = kernel.insts[self.forall].span;
        let end = kernel.blocks[body].insts.pop();
        let own = kernel.blocks[body].insts.clone();
        let mut places = vec![index];
        for part in 1..mutant!("unroll_parts: the last part is left out", self.count, self.count - 1) {
            let mut emit = Emit::new(kernel, body, span);
            let start = emit.mul_int(length, mutant!("unroll_parts: all parts are the second", part, 1));
            let place = emit.add(index, start);
            let mut map = ValueMap::default();
            map.insert(index, place);
            for inst in &own {
                kernel.clone_inst(*inst, body, &mut map);
            }
            places.push(mapped(&map, index));
        }
        kernel.blocks[body].insts.extend(end);
        for (part, place) in places.into_iter().enumerate() {
            self.decide(kernel, body, place, part as i128);
        }
        kernel.insts[self.forall].arguments[2 * self.at + 1] = length;
        Some(())
    }

    /// Answers what a part's code asks of its index.
    fn decide(&self, kernel: &mut Kernel, body: Block, place: Value, part: i128) {
        let mut known = Vec::new();
        kernel.walk(body, &mut |_, inst| {
            let Some((boundary, is_below)) = comparison(kernel, inst, place) else { return };
            let starts = |at: &i128| self.length.scale(*at).as_ref() == Some(&boundary);
            let Some(first) = (0..=i128::from(self.count)).find(starts) else { return };
            let lies_below = part < first;
            known.push((inst, mutant!("unroll_parts: below and above", lies_below == is_below, lies_below)));
        });
        for (inst, value) in known {
            kernel.rewrite_to_constant(inst, Constant::Bool(value));
        }
    }
}

/// What an index is compared with in a block.
fn boundaries(kernel: &Kernel, body: Block, index: Value) -> Vec<Polynomial> {
    let mut found = Vec::new();
    kernel.walk(body, &mut |_, inst| found.extend(comparison(kernel, inst, index).map(|known| known.0)));
    found
}

/// The first index on the other side of what a comparison asks an index for, and whether it holds below.
fn comparison(kernel: &Kernel, inst: Inst, index: Value) -> Option<(Polynomial, bool)> {
    let data = &kernel.insts[inst];
    let [left, right] = data.arguments[..] else { return None };
    let (other, is_turned) = match (left == index, right == index) {
        (true, false) => (right, false),
        (false, true) => (left, true),
        _ => return None,
    };
    // As `index op other`.
    let (is_below, next) = match (data.opcode, is_turned) {
        (Opcode::Lt, false) | (Opcode::Gt, true) => (true, 0),
        (Opcode::Le, false) | (Opcode::Ge, true) => (true, 1),
        (Opcode::Gt, false) | (Opcode::Lt, true) => (false, 1),
        (Opcode::Ge, false) | (Opcode::Le, true) => (false, 0),
        _ => return None,
    };
    Some((polynomial_of(&kernel.symbolic(other)?)?.add_constant(next)?, is_below))
}

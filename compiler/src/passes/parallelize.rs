//! `parallelize`: loops that run in order become parallel ones where no iteration touches what another one writes.
//!
//! ```text
//! for axis0 "k" = v0..v1 step v2 (v3 "k": i64) { v4 = …; store buf0[v5, v3], v4 }     before
//! forall axis0 "k" = v0..v1 (v3 "k": i64) { v4 = …; store buf0[v5, v3], v4 }          after
//! ```
//!
//! Which of them somebody writes says nothing of the order then, and threads can share them. Loops that carry values are
//! another matter: `reduce` and `rfactor` are for these.
//!
//! # Preconditions
//!
//! The loop stands in a parallel loop, in others that are made parallel, or in sequential loops and branches in these; it
//! carries nothing, its step is 1, and it is no literal number of iterations less than a warp, which are straight code in a
//! thread. It writes by plain stores alone. Of each array that it writes, all accesses in it have a subscript
//! `a * index + b + c`, where `a` is a literal, `b` the same in all iterations and for all these accesses, and `c` stays
//! within fewer than `a` numbers. The schedule says nothing of the axis.

use super::pass::{Changed, Pass, PassContext};
use crate::algebra::Interval;
use crate::analysis::{Affine, Atom, Polynomial, Ranges, written_by};
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload, Phase, Phases};
use crate::ir::op::{Effect, Opcode};
use crate::mutants::mutant;
use cranelift_entity::EntitySet;

/// The pass.
pub struct Parallelize;

/// Lanes of a warp.
const WARP: i128 = 32;

impl Pass for Parallelize {
    fn name(&self) -> &str {
        "parallelize"
    }

    fn reason(&self) -> &str {
        "makes loops parallel of which no iteration touches what another one writes"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            changed |= block(kernel, kernel.launches[launch].body, false);
        }
        changed.into()
    }
}

/// Makes loops of a block parallel, and those in its parallel loops; whether there were any. `within`: a parallel loop is
/// around it, whose threads go through sequential loops and branches alike.
fn block(kernel: &mut Kernel, of: Block, within: bool) -> bool {
    let mut changed = false;
    for inst in kernel.blocks[of].insts.clone() {
        if kernel.insts[inst].opcode == Opcode::For && is_parallel(kernel, inst) {
            let data = &mut kernel.insts[inst];
            data.opcode = Opcode::Forall;
            data.arguments.truncate(2);
            changed = true;
        }
        let opcode = kernel.insts[inst].opcode;
        let is_control = within && matches!(opcode, Opcode::For | Opcode::While | Opcode::If);
        if opcode == Opcode::Forall || is_control {
            for region in kernel.insts[inst].regions.clone() {
                changed |= block(kernel, region, true);
            }
        }
    }
    changed
}

/// Whether no iteration of a sequential loop touches what another one writes, so that it may be parallel.
pub(super) fn is_parallel(kernel: &Kernel, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    let [low, high, step] = data.arguments[..] else { return false };
    let is_short = match (kernel.int_of(low), kernel.int_of(high)) {
        (Some(low), Some(high)) => high - low < WARP,
        _ => false,
    };
    let name = &kernel.axes[data.payload.axes()[0]].name;
    if is_short || kernel.int_of(step) != Some(1) || kernel.schedule.speaks_of(name) {
        return false;
    }
    let body = data.regions[0];
    let mut are_plain = true;
    let mut inside = EntitySet::new();
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        are_plain &= match data.opcode.info().effect {
            Effect::Write => data.opcode == Opcode::Store,
            effect => effect != Effect::Collective,
        };
        inside.extend(data.results.iter().copied());
        for region in &data.regions {
            inside.extend(kernel.blocks[*region].params.iter().copied());
        }
    });
    let written: Vec<Buffer> = written_by(kernel, inst).iter().collect();
    let index = kernel.blocks[body].params[0];
    are_plain
        && !written.is_empty()
        && written.into_iter().all(|buffer| is_apart(kernel, body, index, &inside, buffer))
}

/// Whether each iteration of a loop has elements of its own of a buffer. `inside`: the values that are computed in the loop.
fn is_apart(kernel: &Kernel, body: Block, index: Value, inside: &EntitySet<Value>, buffer: Buffer) -> bool {
    let mut accesses = Vec::new();
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let counts = mutant!("parallelize: what is read is no matter", true, !data.opcode.is_load());
        if counts && matches!(data.payload, Payload::Access { buffer: other, .. } if other == buffer) {
            accesses.push(inst);
        }
    });
    let rank = kernel.buffers[buffer].extents.len();
    (0..rank).any(|at| {
        is_apart_by(kernel, index, inside, accesses.iter().map(|inst| kernel.insts[*inst].arguments[at]))
    })
}

/// Whether a subscript of all accesses to an array differs from iteration to iteration.
fn is_apart_by(
    kernel: &Kernel,
    index: Value,
    inside: &EntitySet<Value>,
    subscripts: impl Iterator<Item = Value>,
) -> bool {
    let (mut affine, mut ranges) = (Affine::new(kernel), Ranges::new(kernel));
    let mut first: Option<(i128, Polynomial)> = None;
    let mut within: Option<Interval> = None;
    for subscript in subscripts {
        let form = affine.form(subscript);
        let (mut factor, mut same) = (0, Polynomial::constant(0));
        let mut own = Interval::new(0, 0);
        for (monomial, count) in form.terms() {
            let is_inside = |atom: &Atom| matches!(atom, Atom::Value(value) if inside.contains(*value));
            match monomial.atoms() {
                [Atom::Value(value)] if *value == index => factor = *count,
                atoms if atoms.contains(&Atom::Value(index)) => return false,
                [Atom::Value(value)] if inside.contains(*value) => {
                    let range = ranges.of(kernel, *value).multiply(Interval::new(*count, *count));
                    own = own.add(range);
                }
                atoms if atoms.iter().any(is_inside) => return false,
                atoms => {
                    let term = atoms.iter().try_fold(Polynomial::constant(*count), |product, atom| {
                        product.multiply(&Polynomial::atom(*atom))
                    });
                    let Some(sum) = term.and_then(|term| same.add(&term)) else { return false };
                    same = sum;
                }
            }
        }
        // What differs by a literal lies within a range.
        let (rest, constant) = same.split_constant();
        own = own.add(Interval::new(constant.into(), constant.into()));
        match &first {
            None => first = Some((factor, rest)),
            Some(known) if *known == (factor, rest) => {}
            Some(_) => return false,
        }
        let hull = |within: Interval| Interval::new(within.low.min(own.low), within.high.max(own.high));
        within = Some(within.map_or(own, hull));
    }
    let (Some((factor, _)), Some(within)) = (first, within) else { return false };
    let width = within.high.saturating_sub(within.low);
    let width = mutant!("parallelize: places within an iteration are one", width, 0);
    let least = mutant!("parallelize: the index need not be in the subscript", 1, 0);
    factor.abs() >= least
        && width < factor.abs().max(mutant!("parallelize: a neighbour's place is an own one", 1, 2))
}

//! `rebase_reductions`: a reduction's index counts what its terms are at, not how far that is from somewhere.
//!
//! ```text
//! v9: f32 = reduce [add] axis1 "d" = v4..v5 (v7 "d": i64) {                    v5 is v3 + 1          before
//!     v8: i64 = sub v3, v7
//!     v10: f32 = load buf0[v8]
//!     yield v10
//! }
//!
//! v9: f32 = reduce [add] axis1 "d" = v4..v5 (v7: i64) { v10: f32 = load buf0[v7]; yield v10 }        after
//! ```
//!
//! `sum(d in 0..=j: x[j - d])` is then what `sum(k in 0..=j: x[k])` is, a prefix sum; so is a suffix that is counted from `j` on, a row
//! of a sparse matrix that is counted from its start on, and what runs backwards over an axis.
//!
//! # Preconditions
//!
//! A reduction over one axis uses its index only in sums `base + d`, or only in differences `base - d`,
//! whose `base` the terms do not change; with the bounds there is less to write down afterwards, counted in terms of sums. New bounds do
//! not wrap around.
//!
//! # Limits
//!
//! A window (`x[i + d]`, `d` in 0..5) stays one: its bounds are literals. So do uses of the index by itself (`w[d] * x[i - d]`).

use super::insert::{before, emitted};
use super::pass::{Changed, Pass, PassContext};
use super::sweep::sweep;
use crate::analysis::{Affine, Atom, Polynomial, Ranges, never_wraps};
use crate::data::Scalar;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use cranelift_entity::EntitySet;

/// The pass.
pub struct RebaseReductions;

impl Pass for RebaseReductions {
    fn name(&self) -> &str {
        "rebase_reductions"
    }

    fn reason(&self) -> &str {
        "lets indices of reductions count what their terms are at"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            if kernel.launches[launch].phase != Phase::Abstract {
                continue;
            }
            for block in kernel.blocks_in(kernel.launches[launch].body) {
                for inst in kernel.blocks[block].insts.clone() {
                    let found = Found::of(kernel, launch, block, inst);
                    changed |= found.is_some_and(|found| found.rebase(kernel));
                }
            }
        }
        if changed {
            // Without the old bounds.
            sweep(kernel);
        }
        changed.into()
    }
}

/// A reduction whose index may be another one.
struct Found {
    block: Block,
    reduce: Inst,
    /// The sums that the index is used in, each with what it is beyond the new index.
    uses: Vec<(Inst, i128)>,
    low: Polynomial,
    high: Polynomial,
}

impl Found {
    fn of(kernel: &Kernel, launch: Launch, block: Block, reduce: Inst) -> Option<Self> {
        let Payload::Reduce { .. } = &kernel.insts[reduce].payload else { return None };
        let region = kernel.insts[reduce].regions[0];
        let [index] = kernel.blocks[region].params[..] else { return None };
        let mut inside = EntitySet::<Value>::new();
        let mut users = Vec::new();
        for block in kernel.blocks_in(region) {
            inside.extend(kernel.blocks[block].params.iter().copied());
            for inst in &kernel.blocks[block].insts {
                let data = &kernel.insts[*inst];
                inside.extend(data.results.iter().copied());
                users.extend(data.arguments.contains(&index).then_some(*inst));
            }
        }
        let mut affine = Affine::new(kernel);
        let mut rebased: Option<(i128, Polynomial)> = None;
        let mut uses = Vec::new();
        for user in users {
            let result = kernel.result_of(user).filter(|_| is_sum(kernel, user))?;
            let (factor, rest) = affine.form(result).split(Atom::Value(index))?;
            let factor = factor.as_constant().filter(|factor| factor.abs() == 1)?;
            let is_outside = |atom: Atom| !matches!(atom, Atom::Value(value) if inside.contains(value));
            if !rest.atoms().into_iter().all(is_outside) {
                return None;
            }
            let (sign, base) = rebased.get_or_insert_with(|| (factor, rest.clone()));
            let is_alike =
                mutant!("rebase_reductions: what runs backwards does as well", *sign == factor, true);
            let beyond = rest.subtract(base)?.as_constant().filter(|_| is_alike)?;
            uses.push((user, beyond));
        }
        let (sign, base) = rebased.as_ref()?;
        let [low, high] = <[Value; 2]>::from(*kernel.loop_bounds(reduce).first()?);
        let [low, high] = [low, high].map(|end| (*affine.form(end)).clone());
        let before = size(&low) + size(&high) + size(base);
        let (low, high) = match *sign {
            1 => (base.add(&low)?, base.add(&high)?),
            _ => {
                let one = mutant!(
                    "rebase_reductions: the ends of what runs backwards are those of what does not",
                    1,
                    0
                );
                (base.subtract(&high)?.add_constant(one)?, base.subtract(&low)?.add_constant(one)?)
            }
        };
        let is_simpler = size(&low) + size(&high) < before;
        let mut ranges = Ranges::in_launch(kernel, launch);
        let fits = is_simpler && [&low, &high].iter().all(|end| never_wraps(kernel, &mut ranges, end));
        fits.then_some(Self { block, reduce, uses, low, high })
    }

    /// Gives the index its new meaning; whether the bounds could be said.
    fn rebase(self, kernel: &mut Kernel) -> bool {
        let ends = before(kernel, self.block, self.reduce, |emit| {
            Some([emitted(emit, &self.low)?, emitted(emit, &self.high)?])
        });
        let Some(ends) = ends.flatten() else { return false };
        kernel.insts[self.reduce].arguments[..2].copy_from_slice(&ends);
        let region = kernel.insts[self.reduce].regions[0];
        let index = kernel.blocks[region].params[0];
        // It is no longer what the source calls so.
        kernel.values[index].name = None;
        for (user, beyond) in self.uses {
            let parents = kernel.parents();
            let Some(block) = parents.block_of[user].expand() else { continue };
            let beyond = mutant!("rebase_reductions: all sums are the first one", beyond as i64, 0);
            let sum = match beyond {
                0 => Some(index),
                _ => before(kernel, block, user, |emit| {
                    let beyond = emit.int(beyond);
                    emit.add(index, beyond)
                }),
            };
            if let (Some(old), Some(sum)) = (kernel.result_of(user), sum) {
                kernel.replace_uses(old, sum);
                kernel.blocks[block].insts.retain(|inst| *inst != user);
            }
        }
        true
    }
}

/// Whether an instruction adds integers, or takes one from another.
fn is_sum(kernel: &Kernel, inst: Inst) -> bool {
    let data = &kernel.insts[inst];
    let is_sum = matches!(data.opcode, Opcode::Add | Opcode::Sub);
    is_sum && data.arguments.first().is_some_and(|value| kernel.value_type(*value) == Scalar::I64)
}

/// How many terms a sum has.
fn size(form: &Polynomial) -> usize {
    form.terms().len()
}

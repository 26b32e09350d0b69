//! `hoist_checks`: a reduction over a range that memory decides tests the range once, not each subscript.
//!
//! ```text
//!                                                            v30: bool = …         (v1..v2 is empty, or lies in 0..v3)
//!                                                            check site0: v30, v31, v3
//! v9 = reduce [add] axis1 "p" = v1..v2 (v5) {                v32: i64 = max v1, 0
//!     v6: bool = …              (0 <= v5 < v3)        →      v33: i64 = min v2, v3
//!     check site0: v6, v5, v3                                v9 = reduce [add] axis1 "p" = v32..v33 (v5) {
//!     v7 = if v6 { load buf0[v5] } else { 0.0 }                  v7 = load buf0[v5]
//!     yield v7                                                   yield v7
//! }                                                          }
//! ```
//!
//! The rows of a sparse matrix (`sum(p in start[r]..start[r + 1]: value[p] * x[column[p]])`) are the case. What is left of
//! the range lies inside the arrays, so that the loop is no longer than they are, and need not ask in each turn whether to
//! end on a check that failed.
//!
//! # Preconditions
//!
//! The check stands in the loop's own block, so that every iteration makes it, and its index is the loop's, or a literal
//! more or less. Memory decides the range: where a check fails such a loop ends, and what it gives is of no meaning. Other
//! loops go on with zeros for what is outside (`docs/language.md`), and stay.

use super::pass::{Changed, Pass, PassContext};
use crate::analysis::{Affine, Atom, Endless};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{Kernel, Payload, Phase, Phases, Short};
use crate::ir::op::{Constant, Opcode};
use crate::manifest::Expr;
use crate::mutants::mutant;

pub struct HoistChecks;

/// The largest number that is added to an index: no sum of it and of a loop's end wraps around.
const MOST_BESIDE: i64 = 1 << 31;

impl Pass for HoistChecks {
    fn name(&self) -> &str {
        "hoist_checks"
    }

    fn reason(&self) -> &str {
        "checks a range that memory decides once instead of each subscript in it"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        if kernel.sites.is_empty() {
            return Changed::No;
        }
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            for block in kernel.blocks_in(kernel.launches[launch].body) {
                for inst in kernel.blocks[block].insts.clone() {
                    let checks = checks(kernel, inst);
                    changed |= !checks.is_empty();
                    hoist(kernel, block, inst, &checks);
                }
            }
        }
        changed.into()
    }
}

/// A check that every iteration of a loop makes, of its index and a number beside it.
struct Hoisted {
    check: Inst,
    holds: Inst,
    beside: i64,
    extent: Expr,
}

/// The checks of a reduction that can be made before it.
fn checks(kernel: &Kernel, inst: Inst) -> Vec<Hoisted> {
    let data = &kernel.insts[inst];
    let (Opcode::Reduce, Payload::Reduce { axes, .. }) = (data.opcode, &data.payload) else {
        return Vec::new();
    };
    let region = data.regions[0];
    let insts = &kernel.blocks[region].insts;
    if axes.len() != 1 || !insts.iter().any(|inst| kernel.insts[*inst].opcode == Opcode::Check) {
        return Vec::new();
    }
    let (low, high) = kernel.loop_bounds(inst)[0];
    let mut endless = Endless::new(kernel);
    if !endless.is_of_memory(low) && !endless.is_of_memory(high) {
        return Vec::new();
    }
    let index = kernel.blocks[region].params[0];
    let mut affine = Affine::new(kernel);
    insts.iter().filter_map(|check| hoisted(kernel, &mut affine, region, *check, index)).collect()
}

fn hoisted(
    kernel: &Kernel,
    affine: &mut Affine,
    region: Block,
    check: Inst,
    index: Value,
) -> Option<Hoisted> {
    let data = &kernel.insts[check];
    let (Opcode::Check, [holds, subscript, extent]) = (data.opcode, &data.arguments[..]) else { return None };
    // What an assertion reports beside its condition are index names.
    if matches!(data.payload, Payload::Site(site) if kernel.sites[site].assertion.is_some()) {
        return None;
    }
    let (factor, beside) = affine.form(*subscript).split(Atom::Value(index))?;
    let beside = i64::try_from(beside.as_constant()?).ok().filter(|beside| beside.abs() <= MOST_BESIDE)?;
    if factor.as_constant() != Some(1) {
        return None;
    }
    let holds = kernel.defining_inst(*holds)?;
    // What else uses the condition stands in the loop as well.
    let inside = kernel.blocks[region].insts.contains(&holds);
    let tested = is_test(kernel, holds, *subscript, *extent);
    (inside && tested).then_some(Hoisted { check, holds, beside, extent: kernel.symbolic(*extent)? })
}

/// Whether a condition says that a subscript lies in `0..extent`, and no more.
fn is_test(kernel: &Kernel, condition: Inst, subscript: Value, extent: Value) -> bool {
    let data = &kernel.insts[condition];
    let compares = |value: Value, opcode: Opcode| {
        let data = kernel.definition_data(value);
        data.filter(|data| data.opcode == opcode && data.arguments[0] == subscript)
            .map(|data| data.arguments[1])
    };
    let below = |value: Value| compares(value, Opcode::Lt) == Some(extent);
    // That it is not negative may be known.
    let (Opcode::And, [above, other]) = (data.opcode, &data.arguments[..]) else {
        return below(data.results[0]);
    };
    let from_zero = compares(*above, Opcode::Ge).is_some_and(|low| kernel.int_of(low) == Some(0));
    from_zero && below(*other)
}

/// Makes the checks in front of a loop, which then has what is left of its range.
fn hoist(kernel: &mut Kernel, block: Block, inst: Inst, checks: &[Hoisted]) {
    if checks.is_empty() {
        return;
    }
    let Some(at) = kernel.blocks[block].insts.iter().position(|known| *known == inst) else { return };
    let after = kernel.blocks[block].insts.split_off(at);
    let span = kernel.insts[inst].span;
    let (given_low, given_high) = kernel.loop_bounds(inst)[0];
    let (mut low, mut high) = (given_low, given_high);
    let mut emit = Emit::sharing(kernel, block, span);
    for (at, Hoisted { check, holds, beside, extent }) in checks.iter().enumerate() {
        let cut = checks[..at].iter().any(|before| (before.beside, &before.extent) == (*beside, extent));
        let data = emit.kernel.insts[*check].clone();
        emit.at(data.span, |emit| {
            let zero = emit.int(0);
            let extent = emit.expression(extent);
            let beside = &mutant!("hoist_checks: nothing is beside the index", *beside, 0);
            let first = emit.add_int(given_low, *beside);
            let end = emit.add_int(given_high, *beside);
            let empty = emit.binary(Opcode::Ge, given_low, given_high);
            let above = emit.binary(Opcode::Ge, first, zero);
            let below = emit.binary(Opcode::Le, end, extent);
            let inside = emit.binary(Opcode::And, above, below);
            let either = emit.binary(Opcode::Or, inside, empty);
            let all = mutant!("hoist_checks: an empty range is tested", either, inside);
            // The first subscript that lies outside: the first of all, or the first one behind the array.
            let behind = emit.binary(Opcode::Max, first, extent);
            let outside = emit.select(above, behind, first);
            emit.bare_inst(Opcode::Check, data.payload.clone(), Short::from_slice(&[all, outside, extent]));
            if cut {
                return;
            }
            let least = emit.int(-beside);
            let most =
                emit.add_int(extent, mutant!("hoist_checks: the last one is cut off", -beside, -beside - 1));
            low = emit.binary(Opcode::Max, low, least);
            high = emit.binary(Opcode::Min, high, most);
        });
        emit.kernel.rewrite_to_constant(*holds, Constant::Bool(true));
    }
    let region = kernel.insts[inst].regions[0];
    kernel.blocks[region].insts.retain(|known| checks.iter().all(|hoisted| hoisted.check != *known));
    kernel.insts[inst].arguments[0] = low;
    kernel.insts[inst].arguments[1] = high;
    kernel.blocks[block].insts.extend(after);
}

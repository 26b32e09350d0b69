//! `recognize_reductions`: a loop that runs in order becomes a reduction where its order makes no difference.
//!
//! ```text
//! v9: i32 = for axis0 "j" = v0..v1 step v2 carry [v3] (v4 "j": i64, v5 "s": i32) {                          before
//!     v6: i32 = load buf0[v8, v4]
//!     v7: i32 = add v5, v6
//!     yield v7
//! }
//!
//! v10: i32 = reduce [add] axis0 "j" = v0..v1 (v4 "j": i64) { v6: i32 = load buf0[v8, v4]; yield v6 }        after
//! v9: i32 = add v3, v10
//! ```
//!
//! `var s = 0 for j in n { s += x[i, j] }` is then what `sum(j: x[i, j])` is, and threads, warps and blocks share it. Compilers
//! call it reduction recognition.
//!
//! - `carried.rs`: what a loop carries, as contributions to combinations. - `search.rs`: a loop that looks for the best element.
//! - `elements.rs`: elements of small local arrays are values before.
//!
//! # What counts as a reduction
//!
//! Each carried value goes on as itself with contributions combined into it, by one combiner: `+ * min max & | ^`. Differences of
//! integers are sums. A condition that no carried value decides may leave contributions out, and what is stored narrow in between
//! is narrow at the end: `max` of what is rounded, sums that wrap around. What a contribution is without the carried value it is
//! with the combiner's identity in its place. The value before the loop is one more contribution.
//!
//! `if x > most { most = x; at = j }` is a reduction, too: to the first of the largest elements.
//!
//! # Preconditions
//!
//! All combinations of the loop are *exact in any order*: those of integers and `bool`, and `min` and `max` of floats, which order
//! -0 below +0 and keep a NaN. Sums and products of floats in a loop keep their order (`docs/floats.md`). Nothing else in the loop
//! depends on what it carries; it writes no memory; its step is 1; the schedule does not unroll it.
//!
//! # Limits
//!
//! A directive says of such a loop how to unroll it, and then it stays one; what is chosen for the reduction is told, and cannot be
//! said. Of a loop with one value that is no contribution, all of them stay. A loop that `break` may end is a `while`, and stays one.

mod carried;
mod elements;
mod search;

use super::insert::before;
use super::pass::{Changed, Pass, PassContext};
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{InstData, Kernel, Payload, Phase, Phases, Short};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use carried::{Carried, Refused};

/// The pass.
pub struct RecognizeReductions;

impl Pass for RecognizeReductions {
    fn name(&self) -> &str {
        "recognize_reductions"
    }

    fn reason(&self) -> &str {
        "makes reductions of loops whose combinations are exact in any order"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            changed |= elements::into_values(kernel, launch);
            changed |= loops(kernel, launch);
        }
        changed.into()
    }
}

/// Makes reductions of the loops of a launch; whether there were any.
fn loops(kernel: &mut Kernel, launch: Launch) -> bool {
    let mut changed = false;
    // Inner loops first: of a loop in a loop the inner one is a contribution then.
    for block in kernel.blocks_in(kernel.launches[launch].body).into_iter().rev() {
        for inst in kernel.blocks[block].insts.clone() {
            changed |= kernel.insts[inst].opcode == Opcode::For && recognize(kernel, launch, block, inst);
        }
    }
    changed
}

/// Makes a reduction of a loop of a block, or says why not; whether it did.
fn recognize(kernel: &mut Kernel, launch: Launch, block: Block, inst: Inst) -> bool {
    let axis = kernel.insts[inst].payload.axes()[0];
    let loop_name = kernel.axes[axis].name.clone();
    let found = carried::carried(kernel, launch, inst);
    let name = kernel.launches[launch].name.clone();
    if let Err(Refused::Looks(_)) = &found
        && let Some(search) = search::search(kernel, inst)
    {
        let text = format!("loop `{loop_name}` is a reduction: it looks for the best of its elements");
        kernel.schedule.remark(&name, text);
        kernel.schedule.in_order.push(loop_name);
        search.write(kernel, block, inst);
        return true;
    }
    let text = match &found {
        Ok(_) => format!("loop `{loop_name}` is a reduction: what it combines is exact in any order"),
        // Loops over what they write are `parallelize`'s.
        Err(Refused::CarriesNothing) => return false,
        Err(refused) => format!("loop `{loop_name}` keeps its order: {refused}"),
    };
    kernel.schedule.remark(&name, text);
    let Ok(carried) = found else { return false };
    kernel.schedule.in_order.push(loop_name);
    reduce(kernel, block, inst, &carried);
    true
}

/// Puts a reduction in the place of a loop.
fn reduce(kernel: &mut Kernel, block: Block, inst: Inst, carried: &[Carried]) {
    let InstData { arguments, payload, results, regions, span, .. } = kernel.insts[inst].clone();
    let Payload::Loop { axes } = payload else { return };
    let body = regions[0];
    for one in carried {
        without(kernel, body, one);
    }
    kernel.blocks[body].params.truncate(1);
    let combiners = carried.iter().map(|one| one.combiner).collect();
    kernel.insts[inst].regions.clear();
    let reduction = kernel.insts.push(InstData {
        opcode: Opcode::Reduce,
        payload: Payload::Reduce { axes, combiners },
        arguments: Short::from_slice(&arguments[..2]),
        results: Short::new(),
        regions,
        span,
    });
    let totals = kernel.add_results_like(reduction, &results);
    let initial = &arguments[3..];
    let combined = before(kernel, block, inst, |emit| {
        emit.kernel.blocks[block].insts.push(reduction);
        let mut combined = Vec::new();
        for ((one, initial), total) in carried.iter().zip(initial).zip(totals) {
            let with = emit.combine(one.combiner, &[*initial], &[total])[0];
            let with = mutant!("recognize_reductions: the value before the loop is lost", with, total);
            combined.push(match one.narrow {
                Some(narrow) => emit.value(Opcode::Cast, Payload::Cast(narrow), &[with]),
                None => with,
            });
        }
        combined
    });
    kernel.blocks[block].insts.retain(|other| *other != inst);
    for (result, combined) in results.iter().zip(combined.into_iter().flatten()) {
        kernel.replace_uses(*result, combined);
        kernel.values[combined].name = kernel.values[*result].name.take();
    }
}

/// Leaves contributions alone in a body: what they would be combined with first is nothing, or the identity.
fn without(kernel: &mut Kernel, body: Block, one: &Carried) {
    for cast in &one.idle {
        let (from, to) = (kernel.insts[*cast].results[0], kernel.insts[*cast].arguments[0]);
        kernel.replace_uses(from, to);
    }
    let mut found = Vec::new();
    kernel.walk(body, &mut |block, inst| {
        if kernel.insts[inst].arguments.contains(&one.param) {
            found.push((block, inst));
        }
    });
    let mut identity: Option<Value> = None;
    for (block, inst) in found {
        let data = &kernel.insts[inst];
        match (data.opcode, data.arguments.as_slice()) {
            (Opcode::Sub, [_, other]) => {
                let other = *other;
                let opcode = mutant!("recognize_reductions: a difference is a sum", Opcode::Neg, Opcode::Not);
                kernel.rewrite_inst(inst, opcode, Payload::None, &[other]);
            }
            (opcode, [left, right]) if one.combiner.opcode() == Some(opcode) => {
                let other = if *left == one.param { *right } else { *left };
                let result = data.results[0];
                kernel.replace_uses(result, other);
                kernel.blocks[block].insts.retain(|other| *other != inst);
            }
            _ => {
                let first = kernel.blocks[body].insts[0];
                let scalar = kernel.value_type(one.param);
                let identity = *identity.get_or_insert_with(|| {
                    let made = before(kernel, body, first, |emit| emit.identity(one.combiner, scalar)[0]);
                    made.unwrap_or(one.param)
                });
                for argument in &mut kernel.insts[inst].arguments {
                    if *argument == one.param {
                        *argument = identity;
                    }
                }
            }
        }
    }
}

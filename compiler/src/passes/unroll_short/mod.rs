//! `unroll_short`: reductions and loops of few iterations, and loops over local arrays, as straight code.
//!
//! ```text
//! v9: f32 = reduce [max] axis3 "p" = 0..2, axis4 "q" = 0..2 { … x[2 * i + p, 2 * j + q] … }     before
//! v9: f32 = max(max(x[2 * i, 2 * j], x[2 * i, 2 * j + 1]), …)                                   after
//! ```
//!
//! A window or a filter that is written as a reduction over one name or several becomes what it is written out: the passes
//! that give a thread several elements look at loops without others inside, and see which of them read the same. The order
//! in which iterations are combined stays as it was, so that results are the same to the bit.
//!
//! Long reductions that fill an array of few elements walk once, with a sum for each, where their terms load the same.
//!
//! Loops whose rounds subscript a local array by their index keep it in memory. As straight code every subscript is a
//! number, and `scalarize` makes registers of the array: a sorting network, a transform of eight, a cell of a lattice.
//! Elements of constant arrays at such subscripts become literals too.
//!
//! # Preconditions
//!
//! Of loops: the array has at most 64 scalars; all of its subscripts, and the bounds of the loops that they are of, are
//! numbers once these loops are straight code; that is at most 2048 instructions; the schedule says nothing of the
//! loops' names but `unroll`. Of reductions, and of loops that write nothing: up to 32 iterations, counted by literals,
//! which one thread runs, and no more than 512 different instructions of them; no loops in it. The schedule says nothing
//! of its names. Reductions that threads share, and products in shared memory, have been taken away before.

mod arrays;
mod reductions;

use super::iterations::{places, straight_code};
use super::pass::{Changed, Pass, PassContext};
use super::unroll_and_jam::Found;
use crate::ir::entities::{Block, Inst, Launch};
use crate::ir::kernel::{Kernel, Phase, Phases};
use crate::mutants::mutant;
use reductions::ranges;
use rustc_hash::FxHashSet;

pub struct UnrollShort;

impl Pass for UnrollShort {
    fn name(&self) -> &str {
        "unroll_short"
    }

    fn reason(&self) -> &str {
        "makes straight code of short reductions and loops, and of loops that keep local arrays in memory"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Mapped])
    }

    fn runs_after(&self) -> &[&str] {
        &["map"]
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            // Those inside others first.
            let blocks = match kernel.launches[launch].grid {
                None => kernel.blocks_in(kernel.launches[launch].body),
                Some(_) => Vec::new(),
            };
            let mut is_straight = false;
            for block in blocks.iter().rev() {
                while jam_inside(kernel, launch, *block) {
                    is_straight = true;
                }
            }
            is_straight |= unroll_loops(kernel, launch);
            for block in blocks.into_iter().rev() {
                is_straight |= unroll_block(kernel, launch, block);
            }
            if is_straight {
                known_elements(kernel, launch, context);
            }
            changed |= is_straight;
        }
        changed.into()
    }
}

/// Makes one reduction of the results of a loop in a block that read the same, where the reduction is too long for straight code.
fn jam_inside(kernel: &mut Kernel, launch: Launch, block: Block) -> bool {
    let insts = kernel.blocks[block].insts.clone();
    let Some((names, found)) = insts.into_iter().find_map(|inst| {
        let found = Found::inside(kernel, block, inst)?;
        ranges(kernel, found.reduce).is_none().then(|| (names(kernel, inst), found))
    }) else {
        return false;
    };
    found.jam(kernel);
    let text = format!("results along {} are added up side by side: they read the same", names.join(" and "));
    remark(kernel, launch, text);
    true
}

/// Elements of constant arrays are literals where their subscripts have become such: passes that follow look at them.
fn known_elements(kernel: &mut Kernel, launch: Launch, context: &PassContext) {
    let mut known = Vec::new();
    kernel.walk(kernel.launches[launch].body, &mut |_, inst| {
        known.extend(kernel.known_element(inst, &context.constants).map(|element| (inst, element)));
    });
    for (inst, element) in known {
        kernel.rewrite_to_constant(inst, element);
    }
}

/// Makes straight code of the loops that keep local arrays in memory; whether there were any. Loops around others go
/// first: bounds of those inside are numbers then.
fn unroll_loops(kernel: &mut Kernel, launch: Launch) -> bool {
    let body = kernel.launches[launch].body;
    let mut changed = false;
    loop {
        let wanted = arrays::loops(kernel, body);
        if wanted.is_empty() || !unroll_wanted(kernel, launch, body, &wanted) {
            return changed;
        }
        changed = true;
    }
}

/// Those of some loops in a block and its regions whose bounds are numbers, but none inside of another one.
fn unroll_wanted(kernel: &mut Kernel, launch: Launch, block: Block, wanted: &FxHashSet<Inst>) -> bool {
    let mut changed = false;
    for inst in std::mem::take(&mut kernel.blocks[block].insts) {
        let rounds = if wanted.contains(&inst) { arrays::indices(kernel, inst) } else { None };
        if let Some(rounds) = rounds {
            let names = names(kernel, inst);
            for axis in kernel.insts[inst].payload.axes().to_vec() {
                let name = kernel.axes[axis].name.clone();
                if kernel.schedule.unroll(&name) == Some(None) {
                    kernel.schedule.take_unroll(&name);
                }
            }
            let text =
                format!("the rounds over {} are straight code: local arrays are registers", names.join(", "));
            remark(kernel, launch, text);
            straight_code(kernel, block, inst, &rounds);
            changed = true;
            continue;
        }
        for region in kernel.insts[inst].regions.clone() {
            changed |= unroll_wanted(kernel, launch, region, wanted);
        }
        kernel.blocks[block].insts.push(inst);
    }
    changed
}

fn unroll_block(kernel: &mut Kernel, launch: Launch, block: Block) -> bool {
    if !kernel.blocks[block].insts.iter().any(|inst| ranges(kernel, *inst).is_some()) {
        return false;
    }
    for inst in std::mem::take(&mut kernel.blocks[block].insts) {
        let Some(ranges) = ranges(kernel, inst) else {
            kernel.blocks[block].insts.push(inst);
            continue;
        };
        let names = names(kernel, inst).join(" and ");
        remark(kernel, launch, format!("the few iterations over {names} are straight code"));
        straight_code(
            kernel,
            block,
            inst,
            &places(ranges.into_iter().map(|range| {
                let low = mutant!("unroll_short: all ranges begin at 0", range.start, 0);
                let high = mutant!("unroll_short: the last iteration is left out", range.end, range.end - 1);
                low..high
            })),
        );
    }
    true
}

/// The names of a loop's axes, for people.
fn names(kernel: &Kernel, inst: Inst) -> Vec<String> {
    let axes = kernel.insts[inst].payload.axes();
    axes.iter().map(|axis| format!("`{}`", kernel.axes[*axis].name)).collect()
}

fn remark(kernel: &mut Kernel, launch: Launch, text: String) {
    let name = kernel.launches[launch].name.clone();
    kernel.schedule.remark(&name, text);
}

//! `sink_loops`: a loop of the plan moves into the launch that it runs.
//!
//! ```text
//! launch launch0 { v0 = symbol sym1; v1 = load buf0[v0]; v2 = add v1, v1; store buf1[v0], v2 }       before
//! plan { repeat sym1 = 0..sym0 step 1 { launch0 } }
//!
//! launch launch0 { for axis0 "i" = v3..v4 step v5 (v0 "i": i64) { v1 = load buf0[v0]; …; store buf1[v0], v2; yield } }   after
//! plan { launch0 }
//! ```
//!
//! `for i in 0..n { y[i] = 2.0 * x[i] }` at kernel level is one launch then, not one for each turn; `parallelize` makes the loop
//! parallel, and `recognize_reductions` makes reductions of values that turns hand on and that have no order.
//!
//! # Preconditions
//!
//! The loop counts in steps of 1, between bounds that the plan would not refuse as too far away. Either all that it runs is code
//! that one thread runs: it runs all turns then, and what they hand on in scalars of the kernel stays in registers, where no
//! branch touches these. Or it runs one launch of one parallel loop of which no turn touches what another one writes
//! (`parallelize.rs`). Nothing is checked or printed, and no array's extent says the counter.

use super::fuse_launches::nest::Nest;
use super::insert::unbound_loop;
use super::parallelize::is_parallel;
use super::pass::{Changed, Pass, PassContext};
use super::sweep::sweep;
use crate::analysis::{Ranges, is_quiet, lies_within, polynomial_of};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Symbol, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload, Phase, Phases, Step};
use crate::ir::op::Opcode;
use crate::manifest::Expr;
use crate::mutants::mutant;
use cranelift_entity::EntityRef;
use std::collections::BTreeMap;

/// The pass.
pub struct SinkLoops;

/// Sums of a few sizes lie within; parameters of 64 bits, of which nothing is known, need not.
const FAR: i128 = 1 << 52;

impl Pass for SinkLoops {
    fn name(&self) -> &str {
        "sink_loops"
    }

    fn reason(&self) -> &str {
        "moves loops of the plan into the launches that they run"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let plan = kernel.plan.clone();
        let mut changed = false;
        kernel.plan = sunk(kernel, plan, &mut changed);
        if changed {
            kernel.settle_plan(&[]);
            // Counters that are indices now.
            sweep(kernel);
        }
        changed.into()
    }
}

/// The steps with the loops in launches that can be there, innermost first.
fn sunk(kernel: &mut Kernel, steps: Vec<Step>, changed: &mut bool) -> Vec<Step> {
    let mut new = Vec::with_capacity(steps.len());
    for step in steps {
        new.push(match step {
            Step::Launch(launch) => Step::Launch(launch),
            Step::Repeat { symbol, low, high, step, body } => {
                let body = sunk(kernel, body, changed);
                let is_near = [&low, &high].iter().all(|end| is_near(kernel, end));
                let turn = Turn::of(kernel, symbol, &body).filter(|_| step == Expr::Int(1) && is_near);
                match turn.and_then(|turn| turn.sink(kernel, (&low, &high))) {
                    Some(launch) => {
                        *changed = true;
                        Step::Launch(launch)
                    }
                    None => Step::Repeat { symbol, low, high, step, body },
                }
            }
            Step::Branch { condition, then, otherwise } => {
                let then = sunk(kernel, then, changed);
                Step::Branch { condition, then, otherwise: sunk(kernel, otherwise, changed) }
            }
            Step::While { condition, test, body } => {
                let test = sunk(kernel, test, changed);
                Step::While { condition, test, body: sunk(kernel, body, changed) }
            }
        });
    }
    new
}

/// What a loop of the plan runs in a turn.
struct Turn {
    counter: Symbol,
    launches: Vec<Launch>,
    /// One launch of a parallel loop; else code that one thread runs.
    is_parallel: bool,
}

impl Turn {
    fn of(kernel: &Kernel, counter: Symbol, body: &[Step]) -> Option<Turn> {
        let launch = |step: &Step| if let Step::Launch(launch) = step { Some(*launch) } else { None };
        let launches: Vec<Launch> = body.iter().map(launch).collect::<Option<_>>()?;
        let says = |expr: &Expr| {
            let mut says = false;
            expr.each_symbol(&mut |symbol| says |= symbol == counter.index());
            says
        };
        if launches.is_empty() || kernel.buffers.values().any(|buffer| buffer.extents.iter().any(says)) {
            return None;
        }
        let mut is_parallel = false;
        for launch in &launches {
            let data = &kernel.launches[*launch];
            is_parallel |= Nest::of(kernel, *launch)?.forall.is_some();
            if data.phase != Phase::Abstract || !is_quiet(kernel, data.body) {
                return None;
            }
        }
        (!is_parallel || launches.len() == 1).then_some(Turn { counter, launches, is_parallel })
    }

    /// Moves the loop into the first launch, if that is right.
    fn sink(self, kernel: &mut Kernel, ends: (&Expr, &Expr)) -> Option<Launch> {
        let first = self.launches[0];
        if !self.is_parallel {
            self.wrap(kernel, ends);
            return Some(first);
        }
        let before = kernel.clone();
        let inst = self.wrap(kernel, ends);
        if !mutant!("sink_loops: turns need not be apart", is_parallel(kernel, inst), true) {
            *kernel = before;
            return None;
        }
        let data = &mut kernel.insts[inst];
        data.opcode = Opcode::Forall;
        data.arguments.truncate(2);
        Some(first)
    }

    /// Puts what the launches do, one after the other, into a loop in the first one.
    fn wrap(&self, kernel: &mut Kernel, (low, high): (&Expr, &Expr)) -> Inst {
        let root = kernel.launches[self.launches[0]].body;
        let mut insts = Vec::new();
        for launch in &self.launches {
            let body = kernel.launches[*launch].body;
            insts.append(&mut kernel.blocks[body].insts);
        }
        let cells = if self.is_parallel { Vec::new() } else { cells(kernel, &insts) };
        let span = insts.first().map(|inst| kernel.insts[*inst].span).unwrap_or_default();
        let name = kernel.symbols[self.counter].name.clone();
        let mut emit = Emit::new(kernel, root, span);
        let ends = [emit.expression(low), emit.expression(high), emit.int(1)];
        let before: Vec<Value> = cells.iter().map(|cell| emit.load(*cell, 0, &[])).collect();
        let mut region = root;
        let after = emit.for_loop(&name, (ends[0], ends[1], ends[2]), &before, |emit, index, carried| {
            region = emit.block;
            emit.kernel.blocks[region].insts.append(&mut insts);
            count_by(emit.kernel, region, self.counter, index);
            keep(emit.kernel, region, &cells, carried)
        });
        for (cell, value) in cells.iter().zip(after) {
            emit.store(*cell, 0, &[], value);
        }
        unbound_loop(kernel, region).expect("the loop")
    }
}

/// Whether a bound is nowhere so far from 0 that the plan would refuse to count to it.
fn is_near(kernel: &Kernel, end: &Expr) -> bool {
    let form = polynomial_of(end);
    form.is_some_and(|form| lies_within(kernel, &mut Ranges::new(kernel), &form, FAR))
}

/// The index of a loop stands for the counter of the plan's.
fn count_by(kernel: &mut Kernel, region: Block, counter: Symbol, index: Value) {
    let mut counts = Vec::new();
    kernel.walk(region, &mut |_, inst| {
        let is_counter = matches!(kernel.insts[inst].payload, Payload::Symbol(symbol) if symbol == counter);
        counts.extend(is_counter.then(|| kernel.result_of(inst)).flatten());
    });
    counts.into_iter().for_each(|count| kernel.replace_uses(count, index));
}

/// Scalars of the kernel that instructions of a block load and store, and nothing inside of them does.
fn cells(kernel: &Kernel, insts: &[Inst]) -> Vec<Buffer> {
    let mut found: BTreeMap<Buffer, bool> = BTreeMap::new();
    for inst in insts {
        let mut look = |inst: Inst, is_inside: bool| {
            let data = &kernel.insts[inst];
            if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = data.payload {
                let is_inside =
                    mutant!("sink_loops: a branch may touch what is in a register", is_inside, false);
                let plain = matches!(data.opcode, Opcode::Load | Opcode::Store) && !is_inside;
                *found.entry(buffer).or_insert(true) &= plain;
            }
        };
        look(*inst, false);
        for region in &kernel.insts[*inst].regions {
            kernel.walk(*region, &mut |_, inst| look(inst, true));
        }
    }
    let is_cell = |buffer: &Buffer| {
        let data = &kernel.buffers[*buffer];
        let is_scalar = data.extents.is_empty() && data.element.leaves.len() == 1;
        let leaf = &data.element.leaves[0];
        data.kind == BufferKind::Scratch && is_scalar && leaf.extents.is_empty() && !leaf.scalar.is_narrow()
    };
    found.into_iter().filter(|(_, plain)| *plain).map(|(buffer, _)| buffer).filter(is_cell).collect()
}

/// Scalars stay in registers within a block; what they are at its end.
fn keep(kernel: &mut Kernel, region: Block, cells: &[Buffer], carried: &[Value]) -> Vec<Value> {
    let mut current = carried.to_vec();
    let insts = std::mem::take(&mut kernel.blocks[region].insts);
    let mut kept = Vec::with_capacity(insts.len());
    for inst in insts {
        let data = &kernel.insts[inst];
        let cell = match data.payload {
            Payload::Access { buffer, .. } => cells.iter().position(|cell| *cell == buffer),
            _ => None,
        };
        match (cell, data.opcode) {
            (Some(at), Opcode::Store) => {
                let value = data.arguments[0];
                current[at] =
                    mutant!("sink_loops: what a turn hands on is what there was", value, current[at]);
            }
            (Some(at), _) => {
                if let Some(loaded) = kernel.result_of(inst) {
                    kernel.replace_uses(loaded, current[at]);
                }
            }
            _ => kept.push(inst),
        }
    }
    kernel.blocks[region].insts = kept;
    current
}

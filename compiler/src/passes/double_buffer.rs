//! `double_buffer`: a loop of the plan that computes an array anew and copies it back writes two arrays in turns instead.
//!
//! ```text
//! repeat s = 0 .. n {                                                                before
//!     launch0                    buf1[i, j] = …                     of what lies around buf0[i, j]
//!     launch1                    buf0[i, j] = buf1[i, j]
//! }
//!
//! repeat s = 0 .. n {                                                                after
//!     if s % 2 == 0 { launch0 }            buf1[i, j] = …           of buf0
//!     else { launch2 }                     buf0[i, j] = …           of buf1: launch0 with the two arrays swapped
//! }
//! if n % 2 == 1 { launch1 }
//! ```
//!
//! Time steps that are written in place move half as many bytes then. Also called ping-pong buffers.
//!
//! # Preconditions
//!
//! The copy takes elements of a scratch array, each to one place of the other array, apart by literals (`u[i + 1, j + 1] =
//! next[i, j]`). The steps before it use the scratch array alone: one launch stores each of its elements before any other
//! reads it, and nothing after the copy does. Where the copy leaves something of the other array out, nothing else in the loop
//! writes that, so it is the same in all turns: it is copied to the scratch array, which becomes as large, once before, and
//! elements that are not copied are no longer computed. The loop goes up by a literal step.
//!
//! # Limits
//!
//! Loops that end by a condition of data have no number by which to take turns: they keep the copy.

use super::copying::{Axes, Copied, copying};
use super::fuse_launches::nest::Nest;
use super::pass::{Changed, Pass, PassContext};
use crate::analysis::Uses;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Symbol, Value};
use crate::ir::kernel::{BufferKind, Kernel, Payload, Phase, Phases, Step};
use crate::ir::op::{Effect, Opcode};
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use cranelift_entity::EntityRef;

pub struct DoubleBuffer;

impl Pass for DoubleBuffer {
    fn name(&self) -> &str {
        "double_buffer"
    }

    fn reason(&self) -> &str {
        "writes two arrays in turns, where a loop would copy one back"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        // The kernel keeps its plan meanwhile: who reads what is asked of it.
        let mut plan = kernel.plan.clone();
        let changed = within(kernel, &mut plan);
        if changed {
            kernel.plan = plan;
            kernel.settle_plan(&[]);
        }
        changed.into()
    }
}

fn within(kernel: &mut Kernel, steps: &mut Vec<Step>) -> bool {
    let mut changed = false;
    for mut step in std::mem::take(steps) {
        for part in step.parts_mut() {
            changed |= within(kernel, part);
        }
        let taken = match &step {
            Step::Repeat { symbol, low, high, step, body } => {
                let turns = Turns { symbol: *symbol, low, high, step };
                take_turns(kernel, &turns, body)
            }
            _ => None,
        };
        match (taken, step) {
            (Some([before, inside, after]), Step::Repeat { symbol, low, high, step, .. }) => {
                steps.extend(before);
                steps.push(Step::Repeat { symbol, low, high, step, body: inside });
                steps.extend(after);
                changed = true;
            }
            (_, step) => steps.push(step),
        }
    }
    changed
}

/// A loop of the plan.
struct Turns<'s> {
    symbol: Symbol,
    low: &'s Expr,
    high: &'s Expr,
    step: &'s Expr,
}

impl Turns<'_> {
    /// The number of turns before this one, and of all; `None` where the step is no literal that goes up.
    fn numbers(&self) -> Option<[Expr; 2]> {
        let Expr::Int(step @ 1..) = *self.step else { return None };
        let (low, step) = (self.low, Expr::Int(step));
        let from_low = |expr: Expr| match low {
            Expr::Int(0) => expr,
            _ => Expr::binary(BinaryOp::Sub, expr, low.clone()),
        };
        let one = step == Expr::Int(1);
        let by_step = |op, expr| if one { expr } else { Expr::binary(op, expr, step.clone()) };
        let before = by_step(BinaryOp::Div, from_low(Expr::Symbol(self.symbol.index())));
        let all = Expr::binary(BinaryOp::Max, from_low(self.high.clone()), Expr::Int(0));
        Some([before, by_step(BinaryOp::CeilDiv, all)])
    }
}

/// A launch of a loop's body that copies scratch arrays back.
struct Copies {
    /// Which step it is.
    at: usize,
    launch: Launch,
    pairs: Vec<Pair>,
}

/// A part of `scratch` goes to `array`.
#[derive(Clone, PartialEq)]
struct Pair {
    array: Buffer,
    scratch: Buffer,
    /// How far from where it lies, on each axis.
    shift: Vec<i64>,
    /// From where to where on each axis of `scratch`.
    part: Vec<(Expr, Expr)>,
}

impl Pair {
    /// Whether all of `scratch` goes.
    fn is_whole(&self, kernel: &Kernel) -> bool {
        let extents = &kernel.buffers[self.scratch].extents;
        self.part.iter().zip(extents).all(|((low, high), extent)| *low == Expr::Int(0) && high == extent)
    }

    /// Whether all of `array` is written, where it lies in `scratch`.
    fn covers(&self, kernel: &Kernel) -> bool {
        let [array, scratch] = [self.array, self.scratch].map(|buffer| &kernel.buffers[buffer].extents);
        self.is_whole(kernel) && array == scratch && self.shift.iter().all(|by| *by == 0)
    }
}

/// What runs before the loop, in it, and after it.
fn take_turns(kernel: &mut Kernel, turns: &Turns, body: &[Step]) -> Option<[Vec<Step>; 3]> {
    let [before, all] = turns.numbers()?;
    let mut copies = Vec::new();
    for (at, step) in body.iter().enumerate() {
        let Step::Launch(launch) = step else { continue };
        let Some(pairs) = copied(kernel, *launch) else { continue };
        if pairs.iter().all(|pair| is_alone(kernel, body, at, pair)) {
            copies.push(Copies { at, launch: *launch, pairs });
        }
    }
    if copies.is_empty() || !are_apart(&copies) {
        return None;
    }
    let pairs = copies.iter().flat_map(|copy| copy.pairs.iter().map(|pair| (copy.launch, pair.clone())));
    let partial: Vec<(Launch, Pair)> = pairs.filter(|(_, pair)| !pair.covers(kernel)).collect();
    for (_, pair) in &partial {
        leave_out(kernel, body, pair);
        enlarge(kernel, pair);
    }
    let mut around = Vec::new();
    for (copy, pair) in mutant!("double_buffer: what the copy leaves out stays behind", &partial[..], &[]) {
        around.push(Step::Launch(whole_copy(kernel, pair, *copy)));
    }
    // In each turn the arrays of a copy change their parts where it stood.
    let swapped_where = |kernel: &mut Kernel, swapped: &dyn Fn(usize, &Copies) -> bool| {
        let mut steps = Vec::new();
        for (at, step) in body.iter().enumerate() {
            if copies.iter().any(|copy| copy.at == at) {
                continue;
            }
            let swaps = copies.iter().filter(|copy| swapped(at, copy)).flat_map(|copy| &copy.pairs);
            let swaps: Vec<[Buffer; 2]> = swaps.map(|pair| [pair.array, pair.scratch]).collect();
            steps.push(with_swapped(kernel, step, &swaps));
        }
        steps
    };
    let odd = swapped_where(kernel, &|at, copy| at < copy.at);
    let even = swapped_where(kernel, &|at, copy| at > copy.at);
    let is_odd = |number: Expr, odd: i64| {
        let rest = Expr::binary(BinaryOp::Rem, number, Expr::Int(2));
        Expr::binary(BinaryOp::Equal, rest, Expr::Int(odd))
    };
    let inside = vec![Step::Branch { condition: is_odd(before, 0), then: even, otherwise: odd }];
    for copy in &copies {
        let name = kernel.launches[copy.launch].name.clone();
        kernel.schedule.remark(
            &name,
            "the steps before write two arrays in turns: it runs after an odd number of them".into(),
        );
    }
    let back = copies.iter().map(|copy| Step::Launch(copy.launch)).collect();
    let last = mutant!(
        "double_buffer: after an even number of turns",
        is_odd(all.clone(), 1),
        is_odd(all.clone(), 0)
    );
    let after = vec![Step::Branch { condition: last, then: back, otherwise: Vec::new() }];
    let several = Expr::binary(BinaryOp::Greater, all, Expr::Int(1));
    let first = match around.is_empty() {
        true => Vec::new(),
        false => vec![Step::Branch { condition: several, then: around, otherwise: Vec::new() }],
    };
    Some([first, inside, after])
}

/// Whether no two copies have to do with one array.
fn are_apart(copies: &[Copies]) -> bool {
    let all: Vec<Buffer> =
        copies.iter().flat_map(|copy| &copy.pairs).flat_map(|pair| [pair.array, pair.scratch]).collect();
    (0..all.len()).all(|at| !all[at + 1..].contains(&all[at]))
}

/// The pairs of a launch that does nothing but copy scratch arrays.
fn copied(kernel: &Kernel, launch: Launch) -> Option<Vec<Pair>> {
    let (nest, _) = one_loop(kernel, launch)?;
    let mut pairs: Vec<(Pair, Vec<u32>)> = Vec::new();
    for inst in &kernel.blocks[nest.body].insts {
        let data = &kernel.insts[*inst];
        match (data.opcode, &data.payload) {
            (Opcode::Store, Payload::Access { buffer, leaf }) => {
                let source = kernel.definition_data(*data.arguments.last()?)?;
                let Payload::Access { buffer: scratch, leaf: from } = source.payload else { return None };
                if source.opcode != Opcode::Load || from != *leaf || scratch == *buffer {
                    return None;
                }
                let [to, from] = [data, source].map(|data| kernel.subscripts(data));
                let part = part(&nest, from)?;
                let apart = to.iter().zip(from).map(|(to, from)| shifted(kernel, *to, *from));
                let shift = apart.collect::<Option<Vec<i64>>>().filter(|shift| shift.len() == to.len())?;
                let pair = Pair { array: *buffer, scratch, shift, part };
                match pairs.iter_mut().find(|(known, _)| known.array == *buffer || known.scratch == scratch) {
                    Some((known, leaves)) if *known == pair && !leaves.contains(leaf) => leaves.push(*leaf),
                    Some(_) => return None,
                    None => pairs.push((pair, vec![*leaf])),
                }
            }
            (Opcode::Load | Opcode::Yield, _) => {}
            (opcode, _) if opcode.info().effect == Effect::Pure && data.regions.is_empty() => {}
            _ => return None,
        }
    }
    let fits = |(pair, leaves): &(Pair, Vec<u32>)| {
        let [array, scratch] = [pair.array, pair.scratch].map(|buffer| &kernel.buffers[buffer]);
        let is_written = matches!(array.kind, BufferKind::Argument { .. } | BufferKind::Scratch);
        // What a launch refuses for its extents, it is to refuse after.
        let fits = pair.covers(kernel) || scratch.extents.iter().all(|extent| kernel.never_negative(extent));
        scratch.kind == BufferKind::Scratch
            && is_written
            && fits
            && array.extents.len() == scratch.extents.len()
            && leaves.len() == array.element.leaves.len()
            && array.element == scratch.element
    };
    let all = !pairs.is_empty() && pairs.iter().all(fits);
    all.then(|| pairs.into_iter().map(|(pair, _)| pair).collect())
}

/// The literal by which a subscript lies off an index.
fn shifted(kernel: &Kernel, subscript: Value, index: Value) -> Option<i64> {
    if subscript == index {
        return Some(0);
    }
    let data = kernel.definition_data(subscript)?;
    let (Opcode::Add, [left, right]) = (data.opcode, data.arguments.as_slice()) else { return None };
    let by = if *left == index { *right } else { *left };
    let rest = if *left == index { *left } else { *right };
    (rest == index).then(|| i64::try_from(kernel.int_of(by)?).ok()).flatten()
}

/// A launch that is one parallel loop, and what is the same for all iterations; the loop.
fn one_loop(kernel: &Kernel, launch: Launch) -> Option<(Nest, Inst)> {
    let nest = Nest::under_conditions(kernel, launch)?;
    let forall = nest.forall?;
    Some((nest, forall))
}

/// The bounds of subscripts that are all indices of a loop, in any order.
fn part(nest: &Nest, subscripts: &[Value]) -> Option<Vec<(Expr, Expr)>> {
    let all =
        subscripts.len() == nest.params.len() && nest.params.iter().all(|index| subscripts.contains(index));
    let at = |value: &Value| nest.params.iter().position(|index| index == value);
    let bounds = || subscripts.iter().map(|value| Some(nest.bounds[at(value)?].clone())).collect();
    if all { bounds() } else { None }
}

/// What a launch does with a buffer.
fn uses(kernel: &Kernel, launch: Launch, buffer: Buffer) -> Uses {
    Uses::of(kernel, kernel.launches[launch].body, buffer)
}

/// Whether the copy is all that writes its array in the loop, or all of it, and the scratch array is the own one of the steps
/// before it.
fn is_alone(kernel: &Kernel, body: &[Step], at: usize, pair: &Pair) -> bool {
    let of_step = |(at, step): (usize, &Step)| step.launches().into_iter().map(move |launch| (at, launch));
    let inside: Vec<(usize, Launch)> = body.iter().enumerate().flat_map(of_step).collect();
    let is_inside = |body: &Block| inside.iter().any(|(_, launch)| kernel.launches[*launch].body == *body);
    let mut outside = kernel.bodies().filter(|body| !is_inside(body));
    let read_by_plan = [pair.scratch, pair.array].into_iter().any(|buffer| kernel.is_read_by_plan(buffer));
    if outside.any(|body| Uses::of(kernel, body, pair.scratch).any()) || read_by_plan {
        return false;
    }
    let mut written = false;
    for (step, launch) in inside.into_iter().filter(|(step, _)| *step != at) {
        let writes = uses(kernel, launch, pair.array).writes();
        // What the copy leaves out would be another thing in each of the two.
        let outside = writes && !pair.covers(kernel);
        if mutant!("double_buffer: another step writes the array", outside, writes && pair.covers(kernel)) {
            return false;
        }
        let uses = uses(kernel, launch, pair.scratch);
        if !uses.any() {
            continue;
        }
        let late = step > at;
        let is_first = matches!(body[step], Step::Launch(_)) && !written && uses.loads.is_empty();
        let is_first =
            is_first && stores_all(kernel, launch, pair, &uses) && leaves_out(kernel, launch, pair);
        // Where a part is copied, the rest is no longer computed.
        let reads = written && !uses.writes() && pair.is_whole(kernel);
        if late || !(is_first || reads) {
            return false;
        }
        written = true;
    }
    written
}

/// Whether a launch stores each element of a pair's scratch array.
fn stores_all(kernel: &Kernel, launch: Launch, pair: &Pair, uses: &Uses) -> bool {
    let Some((nest, _)) = one_loop(kernel, launch) else { return false };
    let buffer = &kernel.buffers[pair.scratch];
    let whole: Vec<(Expr, Expr)> =
        buffer.extents.iter().map(|extent| (Expr::Int(0), extent.clone())).collect();
    let mut leaves = Vec::new();
    let each = uses.stores.iter().all(|store| {
        let data = &kernel.insts[*store];
        if let Payload::Access { leaf, .. } = data.payload {
            leaves.push(leaf);
        }
        let in_each = kernel.blocks[nest.body].insts.contains(store);
        in_each && part(&nest, kernel.subscripts(data)).is_some_and(|part| part == whole)
    });
    leaves.sort_unstable();
    leaves.dedup();
    !uses.others && each && leaves.len() == buffer.element.leaves.len()
}

/// Whether the launch that writes a scratch array can leave out what is not copied.
fn leaves_out(kernel: &Kernel, launch: Launch, pair: &Pair) -> bool {
    let mut only = true;
    kernel.walk(kernel.launches[launch].body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let of_it = matches!(data.payload, Payload::Access { buffer, .. } if buffer == pair.scratch);
        only &= of_it || !data.opcode.info().effect.shows();
    });
    only || pair.is_whole(kernel)
}

/// Computes of a scratch array what is copied alone.
fn leave_out(kernel: &mut Kernel, body: &[Step], pair: &Pair) {
    if pair.is_whole(kernel) {
        return;
    }
    for launch in body.iter().flat_map(Step::launches) {
        let Some(store) = uses(kernel, launch, pair.scratch).stores.first().copied() else { continue };
        let Some((nest, forall)) = one_loop(kernel, launch) else { continue };
        let subscripts = kernel.subscripts(&kernel.insts[store]).to_vec();
        let root = kernel.launches[launch].body;
        let span = kernel.insts[forall].span;
        kernel.blocks[root].insts.retain(|inst| *inst != forall);
        let mut emit = Emit::new(kernel, root, span);
        let mut bounds = Vec::new();
        for index in &nest.params {
            let at = subscripts.iter().position(|value| value == index).unwrap_or_default();
            let (low, high) = &pair.part[at];
            bounds.extend([emit.expression(low), emit.expression(high)]);
        }
        kernel.insts[forall].arguments = bounds.into();
        kernel.blocks[root].insts.push(forall);
    }
}

/// Gives a pair's scratch array the extents of the other array, its elements at the places that they are copied to.
fn enlarge(kernel: &mut Kernel, pair: &Pair) {
    kernel.buffers[pair.scratch].extents = kernel.buffers[pair.array].extents.clone();
    let roots: Vec<Block> = kernel.launches.values().map(|launch| launch.body).collect();
    for root in roots {
        for block in kernel.blocks_in(root) {
            let of_it = |inst: &Inst, kernel: &Kernel| matches!(kernel.insts[*inst].payload, Payload::Access { buffer, .. } if buffer == pair.scratch);
            if !kernel.blocks[block].insts.iter().any(|inst| of_it(inst, kernel)) {
                continue;
            }
            for inst in std::mem::take(&mut kernel.blocks[block].insts) {
                if of_it(&inst, kernel) {
                    let span = kernel.insts[inst].span;
                    for (at, by) in pair.shift.iter().enumerate() {
                        let subscript = kernel.insts[inst].arguments[at];
                        let place = Emit::new(kernel, block, span).add_int(subscript, *by);
                        kernel.insts[inst].arguments[at] = place;
                    }
                }
                kernel.blocks[block].insts.push(inst);
            }
        }
    }
}

/// A launch that copies a pair's whole array to its scratch array, which is as large.
fn whole_copy(kernel: &mut Kernel, pair: &Pair, like: Launch) -> Launch {
    let (_, forall) = one_loop(kernel, like).expect("a copy is one loop");
    let array = &kernel.buffers[pair.array];
    let bounds: Vec<(Expr, Expr)> =
        array.extents.iter().map(|extent| (Expr::Int(0), extent.clone())).collect();
    let leaves = 0..array.element.leaves.len() as u32;
    let places: Vec<usize> = (0..bounds.len()).collect();
    let copied =
        |leaf| Copied { from: pair.array, to: pair.scratch, leaf, places: [places.clone(), places.clone()] };
    let copies: Vec<Copied> = leaves.map(copied).collect();
    let axes = Axes::like(kernel, forall, bounds);
    copying(kernel, like, axes, "first", &copies)
}

/// A copy of a step in which the arrays of each of these pairs stand for each other.
fn with_swapped(kernel: &mut Kernel, step: &Step, swaps: &[[Buffer; 2]]) -> Step {
    match step {
        Step::Launch(launch) if swaps.is_empty() => Step::Launch(*launch),
        Step::Launch(launch) => {
            let copy = kernel.clone_launch(*launch, "swapped");
            let other = |buffer: Buffer| {
                let of = swaps.iter().find(|pair| pair.contains(&buffer));
                of.map_or(buffer, |[array, scratch]| if buffer == *array { *scratch } else { *array })
            };
            let mut found = Vec::new();
            kernel.walk(kernel.launches[copy].body, &mut |_, inst| found.push(inst));
            for inst in found {
                if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } =
                    &mut kernel.insts[inst].payload
                {
                    *buffer = other(*buffer);
                }
            }
            Step::Launch(copy)
        }
        step => {
            let mut copy = step.clone();
            for step in copy.parts_mut().into_iter().flatten() {
                *step = with_swapped(kernel, step, swaps);
            }
            copy
        }
    }
}

//! `reuse`: gives a thread several elements along an axis whose neighbours read the same elements.
//!
//! ```text
//! v[z, y, x] = u[z - 1, y, x] + u[z + 1, y, x] + u[z, y - 1, x] + u[z, y + 1, x]
//!
//! forall "z" = … [grid:*], "y" = … [grid:*], "x" = … [grid:*, warp:8, lane:32]              before
//! forall "z" = … [grid:*, serial:8], "y" = … [grid:*, warp:2], "x" = … [grid:*, lane:32]    after
//! ```
//!
//! What one iteration reads at `z + 1` the next reads at `z`: side by side in one thread (`threads`) they load it once
//! (`guards`, `cse`), and it stays in a register. Along a second such axis the warps of a block stand, so that the
//! block's rows are read once from the second-level cache and then from the first. Block and thread indices thereby
//! cover compact pieces of the range, of which the surface is small.
//!
//! So does a thread whose neighbours along an outer axis compute the same, most of what they do, or walk the same window
//! (`work.rs`): there loops inside are reductions of one thread, through ranges that are the same along the axis.
//!
//! # Preconditions
//!
//! A spread loop of two or more axes without loops inside, where neighbours read the same; loads from buffers that the launch
//! does not write, equal but for constants in one subscript, which moves with the axis and no other. Subscripts that are clamped
//! to their axis, or wrap around at its end, count as what they are away from the edges. Not where the schedule says another
//! `block`, or something of the loop's axes.

mod work;

use super::distinct::distinct;
use super::pass::{Changed, Pass, PassContext, TargetFacts};
use crate::analysis::written_buffers;
use crate::analysis::{Affine, Atom, Polynomial};
use crate::ir::entities::{Axis, Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Definition, Factor, Kernel, Level, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use crate::ir::schedule::Directive;
use std::rc::Rc;

pub struct Reuse;

/// What a loop gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Tile {
    /// The axis of which a thread has several elements, and how many.
    axis: usize,
    elements: u64,
    /// Warps of a block. Small blocks end and start more evenly.
    warps: u64,
    /// The axis along which the warps of a block stand, where it is not the last one.
    rows: Option<usize>,
    /// Whether the body is long: perhaps what reductions have become, which `map` would copy as they were.
    is_long: bool,
}

/// The most instructions of a short body, the elements that a thread then gets, and the warps of a block. 7 points of f32 on an
/// H200: 3737 GB/s with 8 elements and 2 warps, 3701 with 4 warps, 3564 with 4 elements, 3255 with 12.
const SHORT: (usize, u64, u64) = (120, 8, 2);
/// The same of a longer one, by its different instructions: it keeps the registers busy by itself.
const LONG: (usize, u64, u64) = (240, 4, 4);
/// Results of a thread at most, with vectors of four, where rows wrap around or are clamped: what is at the edges is computed
/// beside them. (H200, f32: a wave's one 227 us without, 189 with; three of shallow water 120 and 186.)
const EDGED_RESULTS: usize = 2;
/// A shorter axis, if its length is known, stays.
const MIN_EXTENT: i128 = 64;

impl Pass for Reuse {
    fn name(&self) -> &str {
        "reuse"
    }

    fn reason(&self) -> &str {
        "gives a thread several elements along an axis whose neighbours read the same elements"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Mapped])
    }

    fn runs_after(&self) -> &[&str] {
        &["map"]
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        if context.target.warp_size != 32 || context.target.max_threads < 256 {
            return Changed::No;
        }
        let said = kernel.schedule.block();
        let fits = |tile: &Tile| said.is_none_or(|threads| u64::from(threads) == tile.warps * 32);
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            let Some(forall) = spread_loop(kernel, launch) else { continue };
            changed |= match plan(kernel, forall) {
                Some(tile) => fits(&tile) && apply(kernel, launch, forall, tile),
                None => share_work(kernel, launch, forall, &context.target),
            };
        }
        changed.into()
    }
}

/// The launch's spread loop, if it has two axes or more.
fn spread_loop(kernel: &Kernel, launch: Launch) -> Option<Inst> {
    if kernel.launches[launch].grid.is_some() {
        return None;
    }
    let body = kernel.launches[launch].body;
    let forall = *kernel.blocks[body].insts.iter().find(|inst| {
        let Payload::Loop { axes } = &kernel.insts[**inst].payload else { return false };
        kernel.insts[**inst].opcode == Opcode::Forall && axes.len() > 1
    })?;
    (!holds(kernel, forall, |opcode| opcode == Opcode::Atomic)).then_some(forall)
}

/// Whether an instruction of such a kind stands in a loop.
fn holds(kernel: &Kernel, forall: Inst, is_wanted: fn(Opcode) -> bool) -> bool {
    let mut found = false;
    kernel
        .walk(kernel.insts[forall].regions[0], &mut |_, inst| found |= is_wanted(kernel.insts[inst].opcode));
    found
}

/// Loads that differ in constants alone.
struct Family {
    buffer: Buffer,
    leaf: u32,
    /// The subscripts without their constants.
    subscripts: Vec<Polynomial>,
    /// The constants of each different load.
    offsets: Vec<Vec<i64>>,
}

/// The loads of a body, and whether some are of rows that wrap around or are clamped.
struct Families {
    found: Vec<Family>,
    are_edged: bool,
}

fn families(kernel: &Kernel, body: Block) -> Families {
    let written = written_buffers(kernel, body);
    let mut affine = Affine::new(kernel);
    let mut families: Vec<Family> = Vec::new();
    let mut are_edged = false;
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let Payload::Access { buffer, leaf } = data.payload else { return };
        let global = matches!(kernel.buffers[buffer].kind, BufferKind::Argument { .. } | BufferKind::Scratch);
        if data.opcode != Opcode::Load || !global || written.contains(buffer) {
            return;
        }
        let forms: Vec<Rc<Polynomial>> =
            data.arguments.iter().map(|value| inside(kernel, &mut affine, *value)).collect();
        are_edged |= forms.iter().zip(&data.arguments).any(|(form, value)| *form != affine.form(*value));
        let (subscripts, offsets): (Vec<Polynomial>, Vec<i64>) =
            forms.iter().map(|form| form.split_constant()).unzip();
        let known = families
            .iter_mut()
            .find(|family| (family.buffer, family.leaf) == (buffer, leaf) && family.subscripts == subscripts);
        match known {
            Some(family) if family.offsets.contains(&offsets) => {}
            Some(family) => family.offsets.push(offsets),
            None => families.push(Family { buffer, leaf, subscripts, offsets: vec![offsets] }),
        }
    });
    Families { found: families, are_edged }
}

/// A subscript as it is away from the edges of its axis: `clamp(i + 1, 0, n - 1)` and `(i + n + 1) % n` are `i + 1` there.
fn inside(kernel: &Kernel, affine: &mut Affine<'_>, value: Value) -> Rc<Polynomial> {
    let form = affine.form(value);
    let Some(data) = kernel.definition_data(value) else { return form };
    if data.opcode == Opcode::Cast && kernel.value_type(data.arguments[0]).is_integer() {
        // What is narrower for the division's sake.
        return inside(kernel, affine, data.arguments[0]);
    }
    let [left, right] = data.arguments[..] else { return form };
    match data.opcode {
        Opcode::Rem => {
            let (whole, period) = (inside(kernel, affine, left), inside(kernel, affine, right));
            // Turns more than there have to be.
            let less = whole.subtract(&period);
            less.filter(|less| less.atoms().len() < whole.atoms().len()).map_or(whole, Rc::new)
        }
        Opcode::Min | Opcode::Max => {
            let moving = [left, right].map(|side| inside(kernel, affine, side));
            let is_known = |form: &Polynomial| {
                form.atoms()
                    .iter()
                    .all(|atom| !matches!(atom, Atom::Value(value) if is_param(kernel, *value)))
            };
            match [is_known(&moving[0]), is_known(&moving[1])] {
                [false, true] => moving[0].clone(),
                [true, false] => moving[1].clone(),
                _ => form,
            }
        }
        _ => form,
    }
}

/// Whether a value is a loop's index.
fn is_param(kernel: &Kernel, value: Value) -> bool {
    matches!(kernel.values[value].definition, Definition::Param(..))
}

impl Family {
    /// The subscript that moves with an index, one for one, and that no other does.
    fn place(&self, index: Value) -> Option<usize> {
        let atom = Atom::Value(index);
        let mut moving = (0..self.subscripts.len()).filter(|at| self.subscripts[*at].contains(atom));
        let place = moving.next().filter(|_| moving.next().is_none())?;
        let step = self.subscripts[place].split(atom)?.0.as_wrapped()?;
        (step.abs() == 1).then_some(place)
    }

    /// How many of its loads another iteration along the index repeats.
    fn repeated(&self, index: Value) -> usize {
        let Some(place) = self.place(index) else { return 0 };
        let mut rest: Vec<Vec<i64>> = self.offsets.clone();
        rest.iter_mut().for_each(|offsets| offsets[place] = 0);
        rest.sort_unstable();
        rest.dedup();
        self.offsets.len() - rest.len()
    }
}

fn plan(kernel: &Kernel, forall: Inst) -> Option<Tile> {
    if holds(kernel, forall, Opcode::is_loop) {
        return None;
    }
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return None };
    let last = last_open(kernel, axes)?;
    // How many neighbours along the last axis a thread has is `per_thread`'s to read.
    let (outer, inner) = axes.split_at(last);
    let said = |axis: &Axis| {
        let (name, schedule) = (&kernel.axes[*axis].name, &kernel.schedule);
        schedule.tile(name).is_some() || schedule.warps(name).is_some()
    };
    let per_thread = |axis: &Axis| kernel.schedule.per_thread(&kernel.axes[*axis].name).is_some();
    if inner.iter().any(said) || outer.iter().any(|axis| said(axis) || per_thread(axis)) {
        return None;
    }
    let body = kernel.insts[forall].regions[0];
    let mut size = 0;
    kernel.walk(body, &mut |_, _| size += 1);
    let is_long = size > SHORT.0;
    let (_, elements, warps) = match is_long {
        false => SHORT,
        true => Some(LONG).filter(|(most, ..)| distinct(kernel, body) <= *most)?,
    };
    let Families { found: families, are_edged } = families(kernel, body);
    let (elements, warps) = if are_edged { (LONG.1, LONG.2) } else { (elements, warps) };
    if are_edged && stores(kernel, body) > EDGED_RESULTS {
        return None;
    }
    let bounds = kernel.loop_bounds(forall);
    let repeated = |at: usize| -> usize {
        let long = kernel
            .int_of(bounds[at].0)
            .zip(kernel.int_of(bounds[at].1))
            .is_none_or(|(low, high)| high - low >= MIN_EXTENT);
        let index = kernel.blocks[body].params[at];
        if long && is_open(kernel, axes[at]) {
            families.iter().map(|family| family.repeated(index)).sum()
        } else {
            0
        }
    };
    let counts: Vec<usize> = (0..last).map(repeated).collect();
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    let is_most = |count: &usize| *count == most;
    // The edges of planes are far apart.
    let axis = match are_edged {
        true => counts.iter().rposition(is_most)?,
        false => counts.iter().position(is_most)?,
    };
    let rows = (0..last).rev().find(|at| *at != axis && counts[*at] > 0);
    // Where edges are tested, warps along a second axis would each test other ones.
    let rows = rows.filter(|_| !are_edged);
    Some(Tile { axis, elements, warps, rows, is_long })
}

/// How many results an iteration stores.
fn stores(kernel: &Kernel, body: Block) -> usize {
    let mut count = 0;
    kernel.walk(body, &mut |_, inst| count += usize::from(kernel.insts[inst].opcode == Opcode::Store));
    count
}

/// Gives a thread several elements along an outer axis along which neighbours compute the same, or where a thread that moves one
/// vector has more to do to find its place; whether it did.
fn share_work(kernel: &mut Kernel, launch: Launch, forall: Inst, target: &TargetFacts) -> bool {
    let axes = kernel.insts[forall].payload.axes().to_vec();
    let Some((_, outer)) = axes.split_last() else { return false };
    let is_said = axes.iter().any(|axis| {
        let (name, schedule) = (&kernel.axes[*axis].name, &kernel.schedule);
        schedule.tile(name).is_some() || schedule.warps(name).is_some() || schedule.per_thread(name).is_some()
    });
    let body = kernel.insts[forall].regions[0];
    if is_said || distinct(kernel, body) > LONG.0 {
        return false;
    }
    let is_alone = |axis: &Axis| kernel.axes[*axis].factors == [Factor { level: Level::Grid, size: None }];
    let open: Vec<usize> = (0..outer.len()).filter(|at| is_alone(&axes[*at])).collect();
    let Some(found) = work::shared(kernel, launch, (forall, &open), target) else { return false };
    let axis = axes[found.axis];
    kernel.axes[axis].factors.push(Factor { level: Level::Serial, size: Some(work::ELEMENTS) });
    let (launch, name) = (kernel.launches[launch].name.clone(), kernel.axes[axis].name.clone());
    // In a body that was made straight code `map` would find other factors.
    kernel.schedule.leave_unsaid(&launch);
    let reason = format!("neighbours along `{name}` {}", found.why);
    kernel.schedule.chose(&launch, Directive::PerThread { axis: name, count: work::ELEMENTS as u32 }, reason);
    true
}

/// The last axis that the grid has, of two at least: those behind it are short, and the lanes' alone.
fn last_open(kernel: &Kernel, axes: &[Axis]) -> Option<usize> {
    let is_short = |axis: &Axis| kernel.axes[*axis].factors.iter().all(|factor| factor.level == Level::Lane);
    axes.iter().rposition(|axis| !is_short(axis)).filter(|at| *at > 0)
}

/// Whether the grid takes what threads leave of an axis, of which each has one iteration.
fn is_open(kernel: &Kernel, axis: Axis) -> bool {
    let open = Factor { level: Level::Grid, size: None };
    kernel.axes[axis].factors.split_first().is_some_and(|(first, rest)| {
        *first == open && rest.iter().all(|factor| matches!(factor.level, Level::Warp | Level::Lane))
    })
}

fn apply(kernel: &mut Kernel, launch: Launch, forall: Inst, tile: Tile) -> bool {
    let Payload::Loop { axes } = kernel.insts[forall].payload.clone() else { return false };
    let Some(last) = last_open(kernel, &axes) else { return false };
    let (axes, short) = axes.split_at(last + 1);
    let taken = short.iter().flat_map(|axis| &kernel.axes[*axis].factors).filter_map(|factor| factor.size);
    let taken: u64 = taken.product();
    if !axes.iter().all(|axis| is_open(kernel, *axis)) || taken > 32 {
        return false;
    }
    let last = axes[last];
    let open = Factor { level: Level::Grid, size: None };
    let lanes = Factor { level: Level::Lane, size: Some(32 / taken) };
    let warps = Factor { level: Level::Warp, size: Some(tile.warps) };
    let mut give = |axis: Axis, factors: Vec<Factor>| kernel.axes[axis].factors = factors;
    axes.iter().for_each(|axis| give(*axis, vec![open]));
    give(axes[tile.axis], vec![open, Factor { level: Level::Serial, size: Some(tile.elements) }]);
    match tile.rows {
        Some(rows) => {
            give(axes[rows], vec![open, warps]);
            give(last, vec![open, lanes]);
        }
        None => give(last, vec![open, warps, lanes]),
    }
    kernel.launches[launch].threads = Some(tile.warps as u32 * 32);
    let launch = kernel.launches[launch].name.clone();
    let name = |axis: Axis| kernel.axes[axis].name.clone();
    let (axis, rows) = (name(axes[tile.axis]), name(tile.rows.map_or(last, |rows| axes[rows])));
    let (block, count) = (tile.warps as u32 * 32, tile.elements as u32);
    if tile.is_long || !short.is_empty() {
        kernel.schedule.leave_unsaid(&launch);
    }
    let reason = "small blocks end and start more evenly";
    kernel.schedule.chose(&launch, Directive::Block(block), reason);
    let reason = format!("neighbours along `{axis}` read the same elements");
    kernel.schedule.chose(&launch, Directive::PerThread { axis, count }, reason);
    if tile.rows.is_some() {
        let reason = format!("neighbours along `{rows}` read the same elements");
        kernel.schedule.chose(&launch, Directive::Warps { axis: rows, count: tile.warps as u32 }, reason);
    }
    true
}

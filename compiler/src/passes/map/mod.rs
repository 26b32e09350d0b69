//! `map`: binds every axis to levels of the machine.
//!
//! ```text
//! forall axis0 "i" = v0..v1, axis1 "j" = v0..v2 {                               before
//! forall axis0 "i" = v0..v1 [grid:*], axis1 "j" = v0..v2 [grid:*, warp:8, lane:32] {    after
//! ```
//!
//! The one outer `forall` of a launch is spread over the grid; all loops inside become `[serial:*]`. Which axis
//! gets the lanes is computed (`choice.rs`): the one along which the accesses of a warp touch the fewest
//! 32-byte sectors, each access weighted by how often it runs. It becomes the loop's last axis. An `order` hint
//! overrides the choice, a `block` hint the 256 threads (rounded up to whole warps above 32); `tile` with
//! `per_thread`, or `warps`, say how many threads stand along each axis (`requested.rs`).
//!
//! A short axis along which results are narrow and lie side by side, but not what they are made of, is one thread's, and no axis
//! of the loop any more (`words.rs`).
//!
//! An axis shorter than a warp shares the lanes with the axis before it; one shorter than a block shares the
//! warps. How long the last axis of a loop is, sizes are asked (`short.rs`): here where the body has no loops, and by
//! `per_thread` of those that no other pass has taken. Where both axes are reused (a matrix product: one operand does not depend on `i`, the other not on
//! `j`), warps go to the other axis, so that a block reads fewer different elements.
//!
//! # Limits
//!
//! - An axis whose bounds only the device knows is walked by a grid-stride loop: `[serial:*, grid:1024, …]`.
//! - A launch without an outer `forall`, with several, with one inside another loop, or with writes beside it
//!   runs on one thread: nothing orders the threads of different blocks within a launch.

mod choice;
mod requested;
mod short;
mod words;

use super::pass::{Changed, Pass, PassContext};
use super::promote::MOST_SCALARS;
use crate::analysis::{blocks_by_registers, written_buffers};
use crate::ir::entities::{Block, Buffer, Inst, Launch};
use crate::ir::kernel::{BufferKind, Factor, Kernel, Level, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use crate::ir::schedule::{Directive, Refusal, RefusalKind, SAID};
use choice::{Choice, Costs, hinted_order, order};
use cranelift_entity::EntitySet;
pub(super) use requested::copies_fit;
use requested::{Requested, is_staged_product, names, requested};
pub(super) use short::share_threads;

pub struct Map;

impl Pass for Map {
    fn name(&self) -> &str {
        "map"
    }

    fn reason(&self) -> &str {
        "binds axes to grid, warps and lanes: lanes go where a warp touches the fewest sectors"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn leaves(&self) -> Option<Phase> {
        Some(Phase::Mapped)
    }

    fn runs_after(&self) -> &[&str] {
        &["soa", "collapse"]
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        for axis in kernel.axes.values_mut() {
            axis.factors = vec![Factor { level: Level::Serial, size: None }];
        }
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            // One that came from tiles has its threads.
            if kernel.launches[launch].phase != Phase::Abstract {
                continue;
            }
            let threads = match outer_forall(kernel, launch) {
                Some(forall) => {
                    let forall = words::of_one_thread(kernel, launch, forall);
                    spread(kernel, launch, forall, context)
                }
                None => 1,
            };
            kernel.launches[launch].threads = Some(threads);
        }
        (!kernel.launches.is_empty()).into()
    }
}

/// Words of a thread's own arrays from which on the assembler is told to leave room for several blocks, and the registers that a
/// thread gets then: it would take more, and a multiprocessor hold eight warps (32 equations of three coefficients a thread on
/// an H200: 469 us by 145 registers, 271 by 128).
const MANY_WORDS: i64 = 48;
const OF_THREAD: u64 = 128;

/// Spreads a `forall` over the grid; the threads of a block.
fn spread(kernel: &mut Kernel, launch: Launch, forall: Inst, context: &PassContext) -> u32 {
    let wanted = kernel.schedule.block().unwrap_or_else(|| short::block(kernel, forall, &context.target));
    let warp = context.target.warp_size;
    let limit = context.target.max_threads;
    let whole =
        if wanted <= warp { wanted.max(1) } else { wanted.div_ceil(warp).saturating_mul(warp).min(limit) };
    let several = !is_staged_product(kernel, forall) && copies_fit(kernel, forall);
    let requested = if several { requested(kernel, forall, &context.target) } else { None };
    let tiled = matches!(requested, Some(Requested::Threads(_)));
    let costs = Costs::new(kernel, launch, forall);
    let order = order(kernel, forall, &costs, &context.target);
    let along = match requested {
        None => short::threads_along(kernel, launch, (forall, &order), whole),
        Some(_) => [None; 2],
    };
    let choice = Choice::new(kernel, (&costs, order, along), whole, requested.as_ref(), &context.target);
    follow_order(kernel, forall);
    kernel.reorder_axes(forall, &choice.order);
    let bounds = kernel.loop_bounds(forall);
    let host: Vec<bool> = bounds
        .iter()
        .map(|(low, high)| kernel.symbolic(*low).is_some() && kernel.symbolic(*high).is_some())
        .collect();
    let Payload::Loop { axes } = kernel.insts[forall].payload.clone() else { return 1 };
    for (at, axis) in axes.into_iter().enumerate() {
        let mut factors = Vec::with_capacity(4);
        // Iterations of one thread; along the last axis they are for `per_thread`, which knows of vectors.
        let name = kernel.axes[axis].name.clone();
        let serial =
            kernel.schedule.per_thread(&name).filter(|_| at + 1 < host.len() && several).unwrap_or(1);
        let inside = u128::from(choice.warps[at]) * u128::from(choice.lanes[at]) * u128::from(serial);
        let extent =
            kernel.int_of(bounds[at].1).zip(kernel.int_of(bounds[at].0)).map(|(high, low)| high - low);
        if inside > 1 && extent.is_some_and(|extent| extent <= inside as i128) {
            // The threads of one block cover it.
        } else if host[at] {
            factors.push(Factor { level: Level::Grid, size: None });
        } else {
            factors.push(Factor { level: Level::Serial, size: None });
            if at + 1 == host.len() {
                let blocks = u64::from(context.target.resident_blocks);
                factors.push(Factor { level: Level::Grid, size: Some(blocks) });
            }
        }
        if serial > 1 {
            kernel.schedule.done(|known| matches!(known, Directive::PerThread { axis, .. } if *axis == name));
        }
        let parts =
            [(Level::Serial, serial), (Level::Warp, choice.warps[at]), (Level::Lane, choice.lanes[at])];
        for (level, size) in parts {
            if size > 1 {
                factors.push(Factor { level, size: Some(u64::from(size)) });
            }
        }
        kernel.axes[axis].factors = factors;
    }
    let threads = choice.warps.iter().product::<u32>() * choice.lanes.iter().product::<u32>();
    record(kernel, launch, forall, threads, tiled);
    if own_words(kernel, forall) >= MANY_WORDS {
        kernel.launches[launch].resident = Some(blocks_by_registers(u64::from(threads), OF_THREAD));
    }
    threads
}

/// 32-bit registers that a thread takes for arrays of its own that are small enough for registers.
fn own_words(kernel: &Kernel, forall: Inst) -> i64 {
    let written = written_buffers(kernel, kernel.insts[forall].regions[0]);
    let words = |buffer: Buffer| {
        let data = &kernel.buffers[buffer];
        let elements = data.literal_elements().filter(|elements| *elements <= MOST_SCALARS);
        let words: u64 = data.element.leaves.iter().map(|leaf| leaf.scalar.size().div_ceil(4)).sum();
        elements.filter(|_| data.kind == BufferKind::Private).map_or(0, |elements| elements * words as i64)
    };
    written.iter().map(words).sum()
}

/// Says which `order` directives the loop follows, and why it does not follow others.
fn follow_order(kernel: &mut Kernel, forall: Inst) {
    let names = names(kernel, forall);
    let has_all = |known: &Directive| matches!(known, Directive::Order(order) if order.iter().all(|name| names.contains(name)));
    if hinted_order(kernel, forall).is_some() {
        kernel.schedule.done(has_all);
    } else if !names.iter().any(|name| kernel.schedule.factored.contains(name)) {
        let refusal = Refusal::new(
            RefusalKind::DoesNotFit,
            "no loop that is spread over the grid has all of these names",
            "name parallel indices of one statement or `forall`",
        );
        kernel.schedule.refuse(|known| matches!(known, Directive::Order(_)), &refusal);
    }
}

/// Records what was chosen, as directives.
fn record(kernel: &mut Kernel, launch: Launch, forall: Inst, threads: u32, tiled: bool) {
    let launch = kernel.launches[launch].name.clone();
    let names = names(kernel, forall);
    let schedule = &mut kernel.schedule;
    let said = schedule.block().is_some();
    schedule.done(|known| matches!(known, Directive::Block(_)));
    let reason = match (said, tiled) {
        (true, _) => SAID,
        (false, true) => "follows from the tile",
        (false, false) => "several blocks of this size fill a multiprocessor",
    };
    schedule.chose(&launch, Directive::Block(threads), reason);
    for name in &names {
        let reason = SAID;
        if let Some(size) = schedule.tile(name).filter(|_| tiled) {
            schedule.chose(&launch, Directive::Tile { axis: name.clone(), size }, reason);
        }
        let count = schedule.per_thread(name).unwrap_or(1);
        schedule.chose(&launch, Directive::PerThread { axis: name.clone(), count }, reason);
        if let Some(count) = schedule.warps(name) {
            schedule.chose(&launch, Directive::Warps { axis: name.clone(), count }, reason);
        }
    }
    if let Some(last) = names.last().filter(|_| names.len() > 1) {
        let reason =
            format!("lanes along `{last}`: by estimate, the fewest sectors (`krn profile` counts them)");
        let reason = if schedule.has_order() { SAID.to_string() } else { reason };
        if names.iter().any(|name| schedule.factored.contains(name)) {
            schedule.noted(&launch, Directive::Order(names), reason);
        } else {
            schedule.chose(&launch, Directive::Order(names), reason);
        }
    }
}

/// The `forall` that can be spread over the grid: the only one of the launch outside loops, with no effects
/// beside it.
fn outer_forall(kernel: &Kernel, launch: Launch) -> Option<Inst> {
    let body = kernel.launches[launch].body;
    let mut outside = Outside { kernel, foralls: Vec::new(), effects: false, read: EntitySet::new() };
    outside.block(body, false);
    let [forall] = outside.foralls[..] else { return None };
    let mut written_here = false;
    kernel.walk(body, &mut |_, inst| {
        let data = &kernel.insts[inst];
        if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = data.payload {
            written_here |= data.opcode != Opcode::Load && outside.read.contains(buffer);
        }
    });
    (!outside.effects && !written_here).then_some(forall)
}

/// What a launch has outside its outer loops.
struct Outside<'k> {
    kernel: &'k Kernel,
    foralls: Vec<Inst>,
    effects: bool,
    read: EntitySet<Buffer>,
}

impl Outside<'_> {
    fn block(&mut self, block: Block, in_loop: bool) {
        for inst in &self.kernel.blocks[block].insts {
            let data = &self.kernel.insts[*inst];
            // A check may run in every thread: it fails in all of them or in none.
            self.effects |= data.opcode.info().effect.shows();
            if let Payload::Access { buffer, .. } = data.payload {
                self.read.insert(buffer);
            }
            let looping = match data.opcode {
                Opcode::Forall if !in_loop => {
                    self.foralls.push(*inst);
                    continue;
                }
                Opcode::Forall => {
                    // Its iterations would have to be spread anew each time round.
                    self.effects = true;
                    continue;
                }
                Opcode::Reduce | Opcode::For | Opcode::While => true,
                _ => in_loop,
            };
            for region in &data.regions {
                self.block(*region, looping);
            }
        }
    }
}

//! `per_thread`: gives a thread several elements of a plain loop.
//!
//! ```text
//! forall axis0 "i" = v0..v1 [grid:*, warp:8, lane:32]                          before
//! forall axis0 "i" = v0..v1 [grid:*, serial:2, warp:8, lane:32, vector:4]      after
//! ```
//!
//! `vector` are neighbours, which one access can bring: as many as make 16 bytes of the widest array that is stored
//! contiguously, or of the narrowest one where that is wider. `serial` are a block apart, so that more loads are under way at
//! once where one thread's vector is too little to keep memory busy. Where neighbours would not lie at multiples of the
//! vector's size, they are serial too: a vector of scalars would spread a warp's request over more sectors.
//!
//! # Sizes
//!
//! Rows of a two-dimensional array start at multiples of the vector's size only if the row's length is one. Where that
//! does not hold, a thread gets its elements one by one.
//!
//! # Preconditions
//!
//! The loop's body has no loops, or short ones along rows (`plain.rs`); its last axis has the lanes and starts at 0 or
//! at a multiple of the vector. Where the schedule says `per_thread` of the last axis, the body may have loops, and
//! the extent may be small; `vectorize` says how many neighbours at most. The other axes' `per_thread` is carried out
//! by `map`.
//!
//! A loop whose body has one reduction that is too long for straight code gives a thread several elements where at least half of
//! what it loads is the same for all of these; and neighbours where what its reductions load is narrower than a word
//! (`walked.rs`).

mod plain;
pub(super) mod walked;

use super::contiguous::{
    Contiguous, VECTOR_BYTES, WORD_BYTES, Walk, contiguous, count_aligned, has_windows, is_aligned,
    per_vector,
};
use super::distinct::distinct;
use super::hoist_reductions::holds_loops;
use super::map::{copies_fit, share_threads};
use super::pass::{Changed, Pass, PassContext, TargetFacts};
use super::special::{Special, specialize};
use crate::analysis::{Affine, Conditions, Multiples, bucket, factors, written_by};
use crate::ir::entities::{Block, Inst, Launch};
use crate::ir::kernel::{Factor, Kernel, Level, Payload, Phase, Phases};
use crate::ir::op::{Effect, Opcode};
use crate::ir::schedule::{Directive, Refusal, RefusalKind, SAID};
use crate::manifest::{BinaryOp, Expr};
use plain::{LIGHT, MAX_BODY, has_neighbours, is_plain, threads_of_row};

pub struct PerThread;

/// Bytes that a thread should have under way: where an access brings a vector, and where one brings a scalar.
const VECTORS_IN_FLIGHT: u64 = 16;
const SCALARS_IN_FLIGHT: u64 = 32;
/// Bytes of a thread that no other thread moves, at least, where it has little else to do: a block of 128 takes as long as the next
/// one takes to start (H200, products of a column and a row: 82 us with 16 bytes a thread, 60 with 32).
const BYTES_OF_A_START: u64 = 32;
/// Neighbours of a vector, at most: bytes.
const MOST_NEIGHBOURS: u64 = VECTOR_BYTES;
/// Iterations of a thread, along all axes, where each of its accesses is a scalar.
const SCALARS: u64 = 4;
/// A body of more loads has enough of them under way by itself, where each brings a scalar.
const MANY_LOADS: usize = 32;
/// Loops of fewer iterations are not worth it.
const MIN_EXTENT: i128 = 4096;

impl Pass for PerThread {
    fn name(&self) -> &str {
        "per_thread"
    }

    fn reason(&self) -> &str {
        "gives a thread neighbouring elements, which one wide access brings, and enough of them"
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
            changed |= spread(kernel, launch, &context.target);
        }
        changed.into()
    }
}

/// What a launch's loop gets.
struct Plan {
    vector: u64,
    serial: u64,
    /// What must hold for the vector to be aligned: of several the first one that does, with most accesses aligned. Nothing must
    /// where there are none.
    conditions: Vec<Expr>,
    /// Of loads of windows, which vectors bring together, the serial iterations where the vector is not aligned.
    of_scalars: Option<u64>,
}

impl Plan {
    fn new(vector: u64, serial: u64) -> Self {
        Self { vector, serial, conditions: Vec::new(), of_scalars: None }
    }
}

/// What the schedule says of the last axis.
#[derive(Clone, Copy, Default)]
struct Said {
    /// Iterations of one thread.
    count: Option<u64>,
    /// Neighbours of one access.
    vector: Option<u64>,
}

fn spread(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> bool {
    let Some(forall) = spread_loop(kernel, launch) else { return false };
    let Some(name) = last_name(kernel, forall) else { return false };
    let several = copies_fit(kernel, forall);
    let mut said = Said {
        count: kernel.schedule.per_thread(&name).filter(|_| several).map(u64::from),
        vector: kernel.schedule.vectorize(&name).map(u64::from),
    };
    let tiled = kernel.schedule.is_tiled(&kernel.launches[launch].name, &name);
    if tiled {
        // A tile leaves nothing to choose: it is one thread's iterations times the threads.
        said.count = said.count.or(Some(1));
    }
    let may_walk = several && !tiled && has_neighbours(kernel, forall);
    let plain = is_plain(kernel, forall) || may_walk && walked::brings_words(kernel, launch, forall, target);
    if !plain && said.count.is_none() && said.vector.is_none() {
        if may_walk && walked::is_worth(kernel, launch, forall, target) {
            let (plan, is_smaller) = fitted(kernel, launch, forall, Plan::new(1, walked::ELEMENTS));
            record_walked(kernel, launch, &name, plan.serial);
            give(kernel, forall, 1, plan.serial);
            return is_smaller || plan.serial > 1;
        }
        let shared = share_threads(kernel, launch, forall, target);
        record(kernel, launch, &name, &Plan::new(1, 1), false);
        return shared;
    }
    let planned = if plain { plan(kernel, launch, forall, said, MOST_NEIGHBOURS) } else { None };
    // Elements that walk loops are for the vectors' sake.
    let has_loops = holds_loops(kernel, forall);
    let planned = planned.filter(|plan| plan.vector > 1 || !has_loops || said.count.is_some());
    let (planned, is_smaller) = match planned {
        Some(plan) if said.count.is_none() => {
            let (plan, is_smaller) = fitted(kernel, launch, forall, plan);
            (Some(plan), is_smaller)
        }
        planned => (planned, false),
    };
    let planned = planned.filter(|plan| said.count.is_some() || plan.vector * plan.serial > 1);
    let planned = planned.or_else(|| {
        // Nothing that would gain by it: only what the schedule says.
        let count = said.count?;
        let vector = said.vector.unwrap_or(1).min(count);
        (count > 1).then_some(Plan::new(vector, count / vector))
    });
    kernel.schedule.done(|known| match known {
        Directive::PerThread { axis, .. } => *axis == name && planned.is_some() | (said.count == Some(1)),
        Directive::Vectorize { axis, .. } => {
            *axis == name && planned.as_ref().map_or(1, |plan| plan.vector) == said.vector.unwrap_or(0)
        }
        _ => false,
    });
    if said.vector.is_some() {
        let refusal = Refusal::new(
            RefusalKind::DoesNotFit,
            format!(
                "no accesses of a thread along `{name}` are so many neighbours at a multiple of their size"
            ),
            format!("write `vectorize {name}: 1`, or leave it out"),
        );
        let of_axis = |known: &Directive| matches!(known, Directive::Vectorize { axis, .. } if *axis == name);
        kernel.schedule.refuse(of_axis, &refusal);
    }
    let Some(plan) = planned else {
        record(kernel, launch, &name, &Plan::new(1, 1), false);
        return is_smaller;
    };
    let own = said.count.is_some() || said.vector.is_some();
    let fixed = Fixed { own, tiled };
    let before = (kernel.launches.len(), factors_of(kernel));
    match plan.conditions.as_slice() {
        [] => {
            carry_out(kernel, launch, forall, (&name, &plan), fixed);
        }
        _ if give_aligned(kernel, launch, &name, &plan, fixed) => {}
        _ => {
            // Narrow elements come by half as many neighbours before they come one by one, and so do the rows of a thread that has
            // several (H200, a stencil in rows of 230: 82 us one by one, 60 by two).
            let fewer = plan.vector / 2;
            let least = if elsewhere(kernel, forall) > 1 { 2 } else { WORD_BYTES };
            let narrow = plan.vector > least && fewer >= least && said.count.is_none();
            let planned = if narrow { self::plan(kernel, launch, forall, said, fewer) } else { None };
            let planned = planned.filter(|plan| plan.vector > 1);
            match planned {
                Some(plan) if plan.conditions.is_empty() => {
                    carry_out(kernel, launch, forall, (&name, &plan), fixed);
                }
                Some(plan) if give_aligned(kernel, launch, &name, &plan, fixed) => {}
                _ => {
                    // Scalars take an instruction each: enough of them are under way sooner.
                    let serial = plan.of_scalars.unwrap_or_else(|| {
                        let elsewhere = fewer_elsewhere(kernel, forall);
                        let body = kernel.insts[forall].regions[0];
                        let of_code = 2 * MAX_BODY / distinct(kernel, body).max(1);
                        let is_alone =
                            has_loops || loads(kernel, body) > MANY_LOADS || is_branch(kernel, body);
                        let of_code = if is_alone { 1 } else { of_code };
                        let most = (SCALARS / elsewhere).min(1 << of_code.max(1).ilog2());
                        (plan.serial * plan.vector).min(most.max(1))
                    });
                    record(kernel, launch, &name, &Plan::new(1, serial), own);
                    give(kernel, forall, 1, serial);
                }
            }
        }
    }
    is_smaller || before != (kernel.launches.len(), factors_of(kernel))
}

/// The factors of all axes.
fn factors_of(kernel: &Kernel) -> Vec<Vec<Factor>> {
    kernel.axes.values().map(|axis| axis.factors.clone()).collect()
}

/// What the schedule has said of a loop already.
#[derive(Clone, Copy)]
struct Fixed {
    /// How many elements a thread has, or an access brings.
    own: bool,
    /// How large a block is.
    tiled: bool,
}

/// Gives a loop what was planned for its axis of this name, and a smaller block, where a thread has several elements.
fn carry_out(
    kernel: &mut Kernel,
    launch: Launch,
    forall: Inst,
    (name, plan): (&str, &Plan),
    Fixed { own, tiled }: Fixed,
) {
    record(kernel, launch, name, plan, own);
    let is_light = distinct(kernel, kernel.insts[forall].regions[0]) <= LIGHT;
    let is_small = plan.serial > 1 || plan.vector > 1 && is_light;
    if is_small && !tiled && smaller_block(kernel, launch, forall) {
        let reason = "each thread has several loads under way: smaller blocks end more evenly";
        let name = kernel.launches[launch].name.clone();
        kernel.schedule.chose(&name, Directive::Block(128), reason);
    }
    give(kernel, forall, plan.vector, plan.serial);
}

/// Carries a plan out where its conditions hold; whether they do for all sizes.
fn give_aligned(kernel: &mut Kernel, launch: Launch, name: &str, plan: &Plan, fixed: Fixed) -> bool {
    plan.conditions.iter().any(|condition| {
        let conditions = Conditions::new().needs(condition.clone());
        let special = specialize(kernel, launch, &conditions, "aligned", |kernel, launch| {
            if let Some(forall) = spread_loop(kernel, launch) {
                carry_out(kernel, launch, forall, (name, plan), fixed);
            }
            true
        });
        special == Some(Special::Always)
    })
}

/// A plan by which the iterations of a block lie within a row, if there are rows: of those that do not, a block tests each.
/// Blocks for rows of half their length become smaller; whether they did.
fn fitted(kernel: &mut Kernel, launch: Launch, forall: Inst, plan: Plan) -> (Plan, bool) {
    if kernel.insts[forall].payload.axes().len() < 2 {
        return (plan, false);
    }
    let threads = threads_of_row(kernel, forall);
    let Some((low, high)) = kernel.loop_bounds(forall).last().copied() else { return (plan, false) };
    let Some(extent) = kernel.symbolic_extent(low, high) else { return (plan, false) };
    let chunk = (threads * plan.vector) as i64;
    let counts = (1..=plan.serial.ilog2()).map(|power| chunk << power);
    let edges: Vec<i64> = [chunk / 2 + 1].into_iter().chain(counts).collect();
    let fits = bucket(kernel, launch, &extent, &edges);
    let is_smaller = fits == 0 && smaller_block(kernel, launch, forall);
    if is_smaller {
        let name = kernel.launches[launch].name.clone();
        kernel.schedule.chose(&name, Directive::Block(128), "rows are no longer than its iterations");
    }
    (Plan { serial: plan.serial.min(1 << fits.saturating_sub(1)), ..plan }, is_smaller)
}

/// Leaves a thread of scalar accesses few iterations along the axes but the last (7 points of f32, rows of 639 on an
/// H200: 3175 GB/s with 2 planes, 2196 with 8). Returns how many there are. As along the last axis, what the schedule
/// says counts for the vectors.
fn fewer_elsewhere(kernel: &mut Kernel, forall: Inst) -> u64 {
    let Payload::Loop { axes } = kernel.insts[forall].payload.clone() else { return 1 };
    let mut count = 1;
    for axis in &axes[..axes.len().saturating_sub(1)] {
        // Where the grid takes what is left, and nothing else.
        let open = kernel.axes[*axis].factors.contains(&Factor { level: Level::Grid, size: None });
        for factor in kernel.axes[*axis].factors.iter_mut().filter(|_| open) {
            if let Factor { level: Level::Serial, size: Some(size) } = factor {
                *size = (*size).min(SCALARS / 2);
                count *= *size;
            }
        }
    }
    count
}

/// Whether all that a body loads and stores stands under an `if`: it waits for the condition, and the next element for that
/// (H200, every other spin of a lattice: 286 us with four elements, 224 with one).
fn is_branch(kernel: &Kernel, body: Block) -> bool {
    let insts = &kernel.blocks[body].insts;
    let effect = |inst: &Inst| kernel.insts[*inst].opcode.info().effect;
    !insts.iter().any(|inst| matches!(effect(inst), Effect::Read | Effect::Write))
        && insts
            .iter()
            .any(|inst| kernel.insts[*inst].opcode == Opcode::If && !written_by(kernel, *inst).is_empty())
}

/// How many loads a body has.
fn loads(kernel: &Kernel, body: Block) -> usize {
    let mut count = 0;
    kernel.walk(body, &mut |_, inst| count += usize::from(kernel.insts[inst].opcode.is_load()));
    count
}

/// Records a plan as directives.
fn record(kernel: &mut Kernel, launch: Launch, name: &str, plan: &Plan, own: bool) {
    let launch = kernel.launches[launch].name.clone();
    let said = SAID.to_string();
    let width = match (own, plan.vector) {
        (true, _) => said.clone(),
        (false, 1) => "neighbours do not lie at multiples of a vector".to_string(),
        (false, vector) => format!("one access brings {vector} neighbours"),
    };
    let bytes = if plan.vector > 1 { VECTORS_IN_FLIGHT } else { SCALARS_IN_FLIGHT };
    let count = if own { said } else { format!("{bytes} bytes of a thread are under way") };
    let axis = name.to_string();
    kernel.schedule.chose(&launch, Directive::Vectorize { axis, width: plan.vector as u32 }, width);
    let (axis, total) = (name.to_string(), (plan.vector * plan.serial) as u32);
    kernel.schedule.chose(&launch, Directive::PerThread { axis, count: total }, count);
}

/// The same of elements whose thread walks what neighbours walk as well.
fn record_walked(kernel: &mut Kernel, launch: Launch, name: &str, serial: u64) {
    let launch = kernel.launches[launch].name.clone();
    let reason = "what a thread walks is the same for neighbours: it is loaded once".to_string();
    let (axis, count) = (name.to_string(), serial as u32);
    kernel.schedule.chose(&launch, Directive::PerThread { axis, count }, reason);
}

/// The name of a loop's last axis.
fn last_name(kernel: &Kernel, forall: Inst) -> Option<String> {
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return None };
    axes.last().map(|axis| kernel.axes[*axis].name.clone())
}

/// The launch's distributed loop, if its last axis has the lanes and one element a thread.
fn spread_loop(kernel: &Kernel, launch: Launch) -> Option<Inst> {
    let body = kernel.launches[launch].body;
    kernel.blocks[body].insts.iter().copied().find(|inst| {
        let Payload::Loop { axes } = &kernel.insts[*inst].payload else { return false };
        let last = axes.last().map(|axis| &kernel.axes[*axis].factors);
        kernel.insts[*inst].opcode == Opcode::Forall
            && last.is_some_and(|factors| {
                factors.iter().any(|factor| factor.level == Level::Lane)
                    && factors.iter().all(|f| f.level.is_parallel() || f.size.is_none())
            })
    })
}

/// Halves a block of 256 threads: where each has several loads under way, smaller blocks end and start more evenly
/// (a copy on an H200: 4217 GB/s with 128 threads, 4098 with 256).
fn smaller_block(kernel: &mut Kernel, launch: Launch, forall: Inst) -> bool {
    if kernel.schedule.block().is_some() || kernel.launches[launch].threads != Some(256) {
        return false;
    }
    // What clears and adds up a block's copy of an array counts on its threads.
    let root = &kernel.blocks[kernel.launches[launch].body].insts;
    if root.iter().any(|inst| kernel.insts[*inst].opcode == Opcode::ThreadIndex) {
        return false;
    }
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return false };
    if axes.iter().any(|axis| kernel.schedule.warps(&kernel.axes[*axis].name).is_some()) {
        return false;
    }
    let Some(axis) = axes.last().copied() else { return false };
    let warps = Factor { level: Level::Warp, size: Some(8) };
    let Some(factor) = kernel.axes[axis].factors.iter_mut().find(|factor| **factor == warps) else {
        return false;
    };
    factor.size = Some(4);
    kernel.launches[launch].threads = Some(128);
    true
}

/// Appends and inserts the factors of the last axis.
fn give(kernel: &mut Kernel, forall: Inst, vector: u64, serial: u64) {
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return };
    let Some(axis) = axes.last().copied() else { return };
    let factors = &mut kernel.axes[axis].factors;
    // Behind what walks the range: the grid, or a loop of the thread itself.
    let walks = |factor: &Factor| factor.level == Level::Grid || factor.size.is_none();
    let inside = factors.iter().rposition(walks).map_or(0, |at| at + 1);
    if serial > 1 {
        factors.insert(inside, Factor { level: Level::Serial, size: Some(serial) });
    }
    if vector > 1 {
        factors.push(Factor { level: Level::Vector, size: Some(vector) });
    }
}

/// How many iterations along its last axis are worth several a thread: more than there are threads, and many of a loop that has
/// no other axes.
fn least_extent(kernel: &Kernel, forall: Inst) -> i128 {
    let Payload::Loop { axes } = &kernel.insts[forall].payload else { return MIN_EXTENT };
    let [.., last] = axes.as_slice() else { return MIN_EXTENT };
    let sizes = kernel.axes[*last].factors.iter().filter(|factor| factor.level.is_parallel());
    let threads: u64 = sizes.filter_map(|factor| factor.size).product();
    if axes.len() == 1 { MIN_EXTENT } else { i128::from(threads) + 1 }
}

/// The plan for vectors of at most so many neighbours.
fn plan(kernel: &Kernel, launch: Launch, forall: Inst, said: Said, most: u64) -> Option<Plan> {
    let (low, high) = *kernel.loop_bounds(forall).last()?;
    if let (Some(low), Some(high)) = (kernel.int_of(low), kernel.int_of(high))
        && said.count.is_none()
        && high - low < least_extent(kernel, forall)
    {
        return None;
    }
    let body = kernel.insts[forall].regions[0];
    let param = *kernel.blocks[body].params.last()?;
    let Contiguous { found, spread, combines, is_odd, rows } = contiguous(kernel, body, param);
    // The first of a thread's neighbours lies a multiple of the vector behind the axis' beginning.
    let of_low =
        if kernel.int_of(low) == Some(0) { u64::MAX } else { Multiples::new(kernel, launch).of(kernel, low) };
    let multiples = || {
        let mut multiples = Multiples::new(kernel, launch);
        multiples.suppose(param, of_low);
        multiples
    };
    if most < MOST_NEIGHBOURS && (is_odd || spread > 0) {
        return None;
    }
    let narrowest = found.iter().map(|access| access.step).min()?;
    // A wider store would be several, each of which leaves gaps between neighbouring threads.
    let stored = found.iter().filter(|access| !access.loads).map(|access| access.step).max();
    let widest = match said.vector {
        Some(_) => narrowest,
        None if combines => VECTOR_BYTES,
        None => stored.unwrap_or(0).max(narrowest),
    };
    let loaded = found.iter().filter(|access| access.loads).map(|access| access.step).max().unwrap_or(1);
    let is_mixed = loaded >= WORD_BYTES * narrowest || elsewhere(kernel, forall) > 1;
    let suits = if is_mixed { suits(kernel, body, loaded) } else { most };
    let vector = per_vector(widest).clamp(1, most).min(suits);
    let vector = vector.min(said.vector.unwrap_or(16)).min(said.count.unwrap_or(16));
    let own = if is_odd || spread > 0 { BYTES_OF_A_START } else { own_bytes(kernel, forall, &found) };
    // Several scalars to an iteration that no access can bring at once: enough of them one by one.
    let waits = is_branch(kernel, body);
    let flight = |vector: u64| {
        if vector == 1 && waits && said.count.is_none() {
            return 1;
        }
        let bytes: u64 = found.iter().filter(|access| access.loads).map(|access| access.step * vector).sum();
        let wanted = if vector > 1 { VECTORS_IN_FLIGHT } else { SCALARS_IN_FLIGHT };
        let most = wanted.checked_div(bytes).map_or(1, |count| count.clamp(1, 4));
        let is_short = (2..=WORD_BYTES).contains(&vector);
        let starts = if is_short { BYTES_OF_A_START / (own * vector).max(1) } else { 1 };
        // A power of two, which is what a schedule may say.
        let automatic = 1 << most.max(starts.clamp(1, 2)).ilog2();
        said.count.map_or(automatic, |count| (count / vector).max(1))
    };
    if vector == 1 {
        let serial = flight(1);
        return (serial > 1).then_some(Plan::new(vector, serial));
    }
    let mut plain = multiples();
    let aligned = |multiples: &mut Multiples| {
        // Pixels of three bytes come in words of several, or byte by byte, which neighbouring threads spread over many sectors.
        let mut odd = found.iter().filter(|access| !access.step.is_power_of_two());
        let fits = odd.all(|access| is_aligned(kernel, multiples, access, vector));
        if fits { count_aligned(kernel, multiples, (&found, &rows), vector) } else { 0 }
    };
    let without = aligned(&mut plain);
    let pays =
        |aligned: usize| 2 * aligned > found.len() + spread || (spread == 0 && 2 * aligned == found.len());
    // Would it help if the rows' lengths were multiples: of all arrays, or of some?
    let mut sizes = row_sizes(kernel, &found);
    sizes.retain(|size| plain.of_expression(size) < vector);
    let all = sizes.as_slice();
    let mut choices: Vec<(usize, &[Expr])> = Vec::new();
    for some in [all].into_iter().chain(all.chunks(1).filter(|_| all.len() > 1)) {
        let mut supposed = multiples();
        for size in some {
            supposed.suppose_size(size, vector);
        }
        let with = aligned(&mut supposed);
        if with > without && pays(with) {
            choices.push((with, some));
        }
    }
    choices.sort_by_key(|(with, _)| std::cmp::Reverse(*with));
    if !choices.is_empty() {
        let all_hold = |(_, sizes): (usize, &[Expr])| {
            let conditions = sizes.iter().map(|size| {
                let rest = Expr::binary(BinaryOp::Rem, size.clone(), Expr::Int(vector as i64));
                Expr::binary(BinaryOp::Equal, rest, Expr::Int(0))
            });
            conditions.reduce(|a, b| Expr::binary(BinaryOp::And, a, b))
        };
        let conditions = choices.into_iter().filter_map(all_hold).collect();
        let of_scalars = has_windows(&found, vector).then(|| flight(1).max(2));
        return Some(Plan { conditions, of_scalars, ..Plan::new(vector, flight(vector)) });
    }
    if 2 * without >= found.len() {
        return Some(Plan::new(vector, flight(vector)));
    }
    let serial = said.count.unwrap_or_else(|| if waits { 1 } else { flight(1).max(2) });
    Some(Plan::new(1, serial))
}

/// Bytes that an iteration of a light body moves and no other one does, those of a thread's along other axes taken together; enough
/// where it combines elements, or only clears them, which there are few of.
fn own_bytes(kernel: &Kernel, forall: Inst, found: &[Walk]) -> u64 {
    let body = kernel.insts[forall].regions[0];
    let mut combines = false;
    kernel.walk(body, &mut |_, inst| combines |= kernel.insts[inst].opcode == Opcode::Atomic);
    if combines || loads(kernel, body) == 0 || distinct(kernel, body) > LIGHT {
        return BYTES_OF_A_START;
    }
    let (params, mut affine) = (&kernel.blocks[body].params, Affine::new(kernel));
    let mut is_own = |access: &&Walk| {
        let arguments = &kernel.insts[access.inst].arguments;
        params.iter().all(|param| affine.any_depends(arguments, *param))
    };
    let bytes: u64 = found.iter().filter(&mut is_own).map(|access| access.step).sum();
    bytes * elsewhere(kernel, forall)
}

/// How many elements a thread has along the other axes.
fn elsewhere(kernel: &Kernel, forall: Inst) -> u64 {
    let axes = kernel.insts[forall].payload.axes();
    let factors = axes[..axes.len().saturating_sub(1)].iter().flat_map(|axis| &kernel.axes[*axis].factors);
    factors.filter(|factor| factor.level == Level::Serial).filter_map(|factor| factor.size).product()
}

/// How many neighbours suit a thread, where it loads words for bytes, or has several elements along other axes: four at least,
/// more where these are few instructions, and no more than four vectors of what is loaded. (H200, 8 bits to an element of the
/// result: `f64 > limit` 128 us with 16, 103 with 8; boxes that overlap, two ways, 241 and 182 us with 16, 155 and 106 with 4;
/// a byte of each `f32` 58.6 with 16, 61.6 with 4.)
fn suits(kernel: &Kernel, body: Block, loaded: u64) -> u64 {
    let by_bytes = (4 * VECTOR_BYTES / loaded).max(1);
    let by_code = (MAX_BODY / distinct(kernel, body).max(1)) as u64;
    let most = by_bytes.min(by_code).max(1);
    (1 << most.ilog2()).max(WORD_BYTES)
}

/// The innermost extents of the accessed buffers that are no literals, in the order of their symbols; an outermost one is none.
fn row_sizes(kernel: &Kernel, found: &[Walk]) -> Vec<Expr> {
    let mut sizes: Vec<(Vec<usize>, Expr)> = Vec::new();
    for access in found {
        let Payload::Access { buffer, .. } = kernel.insts[access.inst].payload else { continue };
        // The innermost extent that is no literal is enough: it is a factor of every outer stride.
        let extents = kernel.buffers[buffer].extents.iter().skip(1);
        let Some(size) = extents.rev().find(|extent| !matches!(extent, Expr::Int(_))) else { continue };
        let factors = factors(size).unwrap_or_default();
        if sizes.iter().all(|known| *known != (factors.clone(), size.clone())) {
            sizes.push((factors, size.clone()));
        }
    }
    sizes.sort_by(|(left, _), (right, _)| left.cmp(right));
    sizes.into_iter().map(|(_, size)| size).collect()
}

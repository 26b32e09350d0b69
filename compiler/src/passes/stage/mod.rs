//! `stage`: tiles in shared memory, for loops in which the threads of a block read the same elements, or read along
//! the wrong axis.
//!
//! ```text
//! plan { launch0 }                                              before
//! plan { branch … and … { launch1 } { launch0 } }               after
//! ```
//!
//! Two forms of loop are recognised, by how their accesses move with their indices:
//!
//! - **transposed** (`transpose.rs`): a load has its neighbours along another axis than the stores. A tile is read
//!   along the load's axis, and written along the stores'. That is for schedules that say something of blocks and axes, and
//!   for narrow elements along long axes; `tile` has made tiles of other such loops.
//! - **product** (`product.rs`): a reduction some of whose loads do not move with one axis, and others not with
//!   another. Tiles of both are brought to shared memory, and each thread computes a block of results in registers.
//!   Where it has several axes of a class, as a convolution has, `flatten.rs` makes them one; several reductions over one
//!   range `join.rs` makes one of several values.
//!
//! Every staged launch is a copy beside the original, under a condition on the sizes; where none holds the original
//! runs. A variant for sizes that are multiples of a vector's length reads and writes 16 bytes at a time.
//!
//! # Preconditions and limits
//!
//! Staged are pure loads from buffers that the launch does not write, whose subscripts are computed from loop
//! indices; those of a product may be guarded by conditions on such. A body with atomics, bounds checks, private arrays or
//! other loops stays as it is. So does every launch of a kernel whose schedule says `order`, or a `block` of another size,
//! unless it says `stage` too; a loop whose axes have `warps`, and a product whose axes have a `tile` or `per_thread`, which
//! the plain loop carries out, again unless it says `stage`.

mod canonical;
mod code;
mod conditions;
mod copier;
mod flatten;
mod join;
mod pattern;
mod product;
mod tile;
mod transpose;

use super::numbers::divided;
use super::pass::{Changed, Pass, PassContext, TargetFacts};
use crate::analysis::{Answer, Conditions, ask, block_count};
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Launch, Value};
use crate::ir::kernel::{BlockData, Kernel, Payload, Phase, Phases, Step};
use crate::ir::op::Opcode;
use crate::ir::schedule::{Directive, Refusal, RefusalKind};
use crate::manifest::{BinaryOp, Expr};
use canonical::Sum;
use pattern::{LoopAxis, Pattern};
use product::Product;
use transpose::Transpose;

/// The pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stage {
    /// A shape of a product's tiles that is taken wherever it can be, by its name, in the place of the cheapest: so that
    /// tests see it at sizes that the emulator can afford.
    pub shape: Option<&'static str>,
}

/// Threads of a block that transposes.
const THREADS: i64 = 256;

impl Pass for Stage {
    fn name(&self) -> &str {
        "stage"
    }

    fn reason(&self) -> &str {
        "brings tiles through shared memory where threads read the same elements, or along the wrong axis"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Mapped])
    }

    fn runs_after(&self) -> &[&str] {
        &["map"]
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let schedule = &kernel.schedule;
        let other_block = schedule.block().is_some_and(|threads| i64::from(threads) != THREADS);
        let bound = (other_block || schedule.has_order()) && !schedule.stages();
        if bound || context.target.warp_size != 32 || i64::from(context.target.max_threads) < THREADS {
            return Changed::No;
        }
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            if kernel.launches[launch].grid.is_some() {
                continue;
            }
            changed |= stage(kernel, launch, &context.target, self.shape);
        }
        changed.into()
    }
}

/// Bytes of shared memory that a block has without asking for more.
const SHARED_BYTES: i64 = 48 * 1024;

/// Where a staged body goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// In the place of the launch's own.
    Here,
    /// Into a launch of its own, which the plan does not know yet.
    Copy,
}

/// One way to stage a launch.
enum Way {
    Transpose(Box<Transpose>, Vec<(Directive, String)>),
    Product(Box<Product>),
}

impl Way {
    fn conditions(&self) -> &Conditions {
        match self {
            Self::Transpose(plan, _) => &plan.conditions,
            Self::Product(plan) => &plan.conditions,
        }
    }

    /// The staged launch, and one that follows where its condition holds.
    fn generate(
        &self,
        kernel: &mut Kernel,
        launch: Launch,
        place: Place,
    ) -> (Launch, Option<(Expr, Launch)>) {
        match self {
            Self::Transpose(plan, choices) => {
                let staged = plan.generate(kernel, launch, place);
                record(kernel, staged, choices.clone());
                (staged, None)
            }
            Self::Product(plan) => {
                let arrays = plan.arrays(kernel);
                let (insts, values) = plan.room();
                kernel.reserve(insts, values);
                let (staged, sums) = plan.generate(kernel, launch, place);
                record(kernel, staged, arrays);
                (staged, sums)
            }
        }
    }
}

/// Stages a launch: with one reduction where it has several, in its canonical form, if it is a contraction, with one axis a
/// class where it has several, or as it stands; whether that is possible.
fn stage(kernel: &mut Kernel, launch: Launch, target: &TargetFacts, shape: Option<&str>) -> bool {
    let Some(position) = pattern::spread_loop(kernel, launch) else { return false };
    let own = kernel.launches[launch].body;
    let joined = join::joined(kernel, launch, position);
    for base in joined.into_iter().chain([own]) {
        kernel.launches[launch].body = base;
        // Equal instructions in front of the loop are one in a body of several reductions.
        let Some(position) = pattern::spread_loop(kernel, launch) else { continue };
        let canonical = canonical::canonical(kernel, launch, position);
        let canonical = canonical.map(|canonical| (canonical.body, canonical.sum));
        for (body, sum) in canonical.into_iter().chain([(base, Sum::default())]) {
            kernel.launches[launch].body = body;
            let flat = flatten::flattened(kernel, launch, position, sum);
            for (body, needed, sum) in flat.into_iter().chain([(body, Conditions::new(), sum)]) {
                kernel.launches[launch].body = body;
                let staged = in_best_way(kernel, launch, (&needed, sum), target, shape);
                if staged == Some(Place::Here) {
                    return true;
                }
                kernel.launches[launch].body = own;
                if staged.is_some() {
                    return true;
                }
            }
        }
    }
    kernel.launches[launch].body = own;
    false
}

/// Stages a launch in the best way that the sizes allow: in its place, or in copies; `None` where none does.
fn in_best_way(
    kernel: &mut Kernel,
    launch: Launch,
    (needed, sum): (&Conditions, Sum),
    target: &TargetFacts,
    shape: Option<&str>,
) -> Option<Place> {
    let mut done = None;
    for way in ways(kernel, launch, target, (shape, sum)) {
        let condition = match ask(kernel, launch, &needed.clone().and(way.conditions())) {
            Answer::No => continue,
            Answer::Yes => None,
            Answer::InPlan(condition) => Some(condition),
        };
        let place = if condition.is_some() { Place::Copy } else { Place::Here };
        done = Some(place);
        let (staged, sums) = way.generate(kernel, launch, place);
        if let Some(condition) = condition {
            if let Some((_, sums)) = sums {
                kernel.launches[sums].assume.push(condition.clone());
            }
            kernel.prefer(condition, staged, launch);
        }
        if let Some((condition, sums)) = sums {
            let sums = Step::Branch { condition, then: vec![Step::Launch(sums)], otherwise: Vec::new() };
            kernel.replace_step(staged, &[Step::Launch(staged), sums]);
        }
        if place == Place::Here || kernel.specialization.is_general() {
            break;
        }
    }
    done
}

/// The ways to stage a launch, the best first.
fn ways(
    kernel: &mut Kernel,
    launch: Launch,
    target: &TargetFacts,
    (shape, sum): (Option<&str>, Sum),
) -> Vec<Way> {
    let found = |kernel| Pattern::find(kernel, launch).filter(|pattern| !pattern.has_warps());
    // What `tile` has left.
    if let Some(plans) = found(kernel).filter(|_| !sum.is_ordered).and_then(Transpose::plans) {
        let plans = plans.unwrap_or_else(|misfit| {
            let staged = |known: &Directive| matches!(known, Directive::Stage { array, .. } if misfit.arrays.contains(array));
            kernel.schedule.refuse(staged, &misfit.refusal);
            Vec::new()
        });
        let with_choices = |plan: Transpose| {
            let choices = plan.choices(kernel);
            fits(kernel, plan.bytes(), &choices).then_some(Way::Transpose(Box::new(plan), choices))
        };
        return plans.into_iter().filter_map(with_choices).collect();
    }
    let plans = found(kernel).map_or(Ok(Vec::new()), |pattern| Product::plans(pattern, target, (shape, sum)));
    let plans = plans.unwrap_or_else(|refused| {
        let (wanted, refusal) = *refused;
        kernel.schedule.refuse(|known| wanted.is_read(known), &refusal);
        Vec::new()
    });
    plans.into_iter().map(|plan| Way::Product(Box::new(plan))).collect()
}

/// Whether a block has so much shared memory; if not, the directives that led to it are refused.
fn fits(kernel: &mut Kernel, bytes: i64, choices: &[(Directive, String)]) -> bool {
    if bytes <= SHARED_BYTES {
        return true;
    }
    let refusal = Refusal::new(
        RefusalKind::TooMuchSharedMemory,
        format!("its tiles have {bytes} bytes, and a block has {SHARED_BYTES}"),
        "make the tile smaller",
    );
    let about = |known: &Directive| choices.iter().any(|(chosen, _)| chosen.same_subject(known));
    kernel.schedule.refuse(about, &refusal);
    false
}

/// Records what a staged launch does.
fn record(kernel: &mut Kernel, launch: Launch, choices: Vec<(Directive, String)>) {
    let name = kernel.launches[launch].name.clone();
    for (directive, reason) in choices {
        kernel.schedule.done(|known| known.same_subject(&directive) && is_as_said(known, &directive));
        let refusal = Refusal::new(
            RefusalKind::DoesNotFit,
            format!("the launch that stages it has `{directive}`"),
            "leave out what it says beside the name; transpositions have any `pad`, or `swizzle`, and one tile; products \
             1 to 4 (`depth`) tiles, and pads of whole vectors of 16 bytes",
        );
        kernel.schedule.refuse(|known| known.same_subject(&directive), &refusal);
        kernel.schedule.chose(&name, directive, reason);
    }
}

/// Whether what was done is what the schedule says, as far as it says anything.
fn is_as_said(said: &Directive, done: &Directive) -> bool {
    match (said, done) {
        (
            Directive::Stage { place: said_place, depth: said_depth, .. },
            Directive::Stage { place, depth, .. },
        ) => {
            said_place.is_none_or(|said| Some(said) == *place)
                && said_depth.is_none_or(|said| said == depth.unwrap_or(1))
        }
        (said, done) => said == done,
    }
}

/// How the axes of a loop are spread over the blocks of a grid: two are tiled, each block has one iteration of the
/// others (grid z, the last one fastest). Where blocks that run at the same time shall read the same lines, the grid's
/// x axis walks over a group of tiles of the y axis only, its y axis over the tiles of the x axis, and its z axis over
/// the groups too.
#[derive(Clone, Debug)]
struct Blocks {
    x: (LoopAxis, i64),
    y: (LoopAxis, i64),
    others: Vec<LoopAxis>,
    /// Tiles of the y axis in a group; 1 for no groups.
    group: i64,
}

impl Blocks {
    fn new(pattern: &Pattern<'_>, x: (usize, i64), y: (usize, i64), group: i64) -> Self {
        let others = (0..pattern.axes.len()).filter(|at| *at != x.0 && *at != y.0);
        let others = others.map(|at| pattern.axes[at].clone()).collect();
        Self { x: (pattern.axes[x.0].clone(), x.1), y: (pattern.axes[y.0].clone(), y.1), others, group }
    }

    fn grid(&self, kernel: &Kernel) -> [Expr; 3] {
        let [x, y] = self.sides(kernel);
        let others = self.others.iter().map(|axis| block_count(kernel, &axis.extent, 1));
        if self.group == 1 {
            return [x, y, others.reduce(times).unwrap_or(Expr::Int(1))];
        }
        // At least 1, so that nothing is divided by 0 for empty arrays.
        let some = Expr::binary(BinaryOp::Max, y.clone(), Expr::Int(1));
        let group = Expr::binary(BinaryOp::Min, some, Expr::Int(self.group));
        let groups = Expr::binary(BinaryOp::CeilDiv, y, group.clone());
        [group, x, others.fold(groups, times)]
    }

    /// How many tiles there are.
    fn tiles(&self, kernel: &Kernel) -> Expr {
        let [x, y] = self.sides(kernel);
        let others = self.others.iter().map(|axis| block_count(kernel, &axis.extent, 1));
        others.fold(times(y, x), times)
    }

    /// Tiles along x and y.
    fn sides(&self, kernel: &Kernel) -> [Expr; 2] {
        [&self.x, &self.y].map(|(axis, size)| block_count(kernel, &axis.extent, *size))
    }

    /// Emits the first iteration of the block's tile along x and y; the other indices go into the map. The last group
    /// may have blocks whose tile begins beyond the y axis.
    fn start(&self, emit: &mut Emit<'_>, map: &mut ValueMap) -> (Value, Value) {
        let payloads = [0, 1, 2].map(Payload::Grid);
        let [first, second, rest] = payloads.map(|payload| emit.value(Opcode::BlockIndex, payload, &[]));
        for (value, name) in [(first, "block"), (second, "block_y"), (rest, "block_z")] {
            emit.name(value, name);
        }
        let rest = self.place_others(emit, map, rest);
        let (column, row) = if self.group == 1 {
            (first, second)
        } else {
            let group = emit.value(Opcode::GridSize, Payload::Grid(0), &[]);
            let before = emit.mul(rest, group);
            (second, emit.add(before, first))
        };
        self.iterations(emit, column, row)
    }

    /// The same for a tile by its number, of [`tiles`](Self::tiles): group by group, as the blocks of a grid go.
    fn start_of(&self, emit: &mut Emit<'_>, map: &mut ValueMap, tile: Value) -> (Value, Value) {
        let sides = self.sides(emit.kernel);
        let [columns, rows] = sides.map(|count| emit.expression(&count));
        let mut number = tile;
        if !self.others.is_empty() {
            let of_one = emit.mul(rows, columns);
            let (rest, place) = divided(emit, tile, of_one);
            number = place;
            self.place_others(emit, map, rest);
        }
        let of_group = emit.mul_int(columns, self.group);
        let (group, within) = divided(emit, number, of_group);
        let before = emit.mul_int(group, self.group);
        let left = emit.sub(rows, before);
        let (one, all) = (emit.int(1), emit.int(self.group));
        let height = emit.min(left, all);
        // It is; so that it can be seen.
        let height = emit.binary(Opcode::Max, height, one);
        let (column, row) = divided(emit, within, height);
        let row = emit.add(before, row);
        self.iterations(emit, column, row)
    }

    /// The iterations of the axes that are not tiled; what is left of the number that says them.
    fn place_others(&self, emit: &mut Emit<'_>, map: &mut ValueMap, mut number: Value) -> Value {
        for axis in self.others.iter().rev() {
            let count = emit.expression(&axis.extent);
            let (rest, place) = divided(emit, number, count);
            number = rest;
            let low = emit.expression(&axis.low);
            let index = emit.add(low, place);
            map.insert(axis.index, index);
        }
        number
    }

    /// The first iteration along x and y of the tile in a column and a row of tiles.
    fn iterations(&self, emit: &mut Emit<'_>, column: Value, row: Value) -> (Value, Value) {
        let start = |emit: &mut Emit<'_>, tile: Value, (axis, size): &(LoopAxis, i64)| {
            let offset = emit.mul_int(tile, *size);
            let low = emit.expression(&axis.low);
            emit.add(low, offset)
        };
        (start(emit, column, &self.x), start(emit, row, &self.y))
    }
}

fn times(left: Expr, right: Expr) -> Expr {
    Expr::binary(BinaryOp::Mul, left, right)
}

/// A launch in which `generate` appends what stands in the place of the spread loop, which is at a position of the body.
fn staged(
    kernel: &mut Kernel,
    launch: Launch,
    place: Place,
    (position, suffix): (usize, &str),
    (grid, threads): ([Expr; 3], i64),
    generate: impl FnOnce(&mut Emit<'_>, ValueMap),
) -> Launch {
    let source = kernel.launches[launch].body;
    let body = kernel.blocks.push(BlockData::default());
    let insts = kernel.blocks[source].insts.clone();
    let mut map = ValueMap::default();
    for inst in &insts[..position] {
        kernel.clone_inst(*inst, body, &mut map);
    }
    let span = kernel.insts[insts[position]].span;
    generate(&mut Emit::sharing(kernel, body, span), map.clone());
    for inst in &insts[position + 1..] {
        kernel.clone_inst(*inst, body, &mut map);
    }
    let staged = match place {
        Place::Here => {
            kernel.rename_launch(launch, suffix);
            launch
        }
        Place::Copy => kernel.clone_launch(launch, suffix),
    };
    let data = &mut kernel.launches[staged];
    (data.body, data.threads, data.grid) = (body, Some(threads as u32), Some(grid));
    staged
}

/// The high end of an axis, and what stands for it in a launch.
fn high(emit: &mut Emit<'_>, axis: &LoopAxis) -> Value {
    let (low, extent) = (emit.expression(&axis.low), emit.expression(&axis.extent));
    emit.add(low, extent)
}

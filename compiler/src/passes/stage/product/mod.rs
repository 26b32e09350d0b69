//! Reductions over products: some loads move with one axis of the result, the others with another.
//!
//! ```text
//! c[i, j] = sum(p: a[i, p] * b[p, j])
//! ```
//!
//! A block computes a tile of results. Along the reduced axis it goes in chunks, of each of which its threads bring
//! one tile of every load to shared memory; each thread then combines all pairs of its rows and columns in registers.
//!
//! | file | what |
//! |---|---|
//! | `shape.rs` | the parameters: sizes of tiles, and how threads share them |
//! | `cost.rs` | what a launch with tiles of a shape costs: the cheapest is taken |
//! | `wanted.rs` | what a schedule says of them |
//! | `source.rs` | the operands, as they stand in the source |
//! | `found.rs` | what a product looks like there |
//! | `addends.rs` | what a term adds to its sum |
//! | `neutral.rs` | what stands for steps in front of the axis |
//! | `operand.rs` | the tiles of one load, and what must hold for vectors |
//! | `masks.rs` | which steps have terms, where masks say so |
//! | `chunks.rs` | the loop over the chunks |
//! | `shallow.rs` | the same where shared memory holds one or two of them |
//! | `transfer.rs` | how a chunk comes to shared memory |
//! | `combine.rs` | one step: from shared memory to registers, and into the sums |
//! | `results.rs` | what the body does with the results |
//! | `staging.rs` | what all plans of a shape have, with vectors and without |
//! | `share.rs` | the tiles that do not fill a wave, shared among all multiprocessors |
//!
//! At the edges of the result large tiles are moved back to lie inside; each result is stored by one block only. In small
//! ones rows and columns past the end are copies of the last one, and their results are not stored.
//!
//! Where rows are multiples of vectors, tiles are copied by vectors. Of small tiles one launch does either, by a branch
//! around the copies and one around the stores. Large ones have a launch for each: a branch among their
//! multiplications would keep the assembler from mixing them with the copies.

mod addends;
mod chunks;
mod combine;
mod cost;
mod found;
mod masks;
mod neutral;
mod operand;
mod results;
mod shallow;
mod shape;
mod share;
mod source;
mod staging;
mod transfer;
mod wanted;

use super::canonical::Sum;
use super::conditions;
use super::pattern::{LoopAxis, Pattern};
use super::{Blocks, Place, high, staged};
use crate::analysis::{Conditions, MOST_VECTOR_RESULTS};
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{Factor, Kernel, Level, Payload};
use crate::ir::op::{Combiner, Opcode};
use crate::ir::placement::{Spread, factors};
use crate::ir::schedule::{Directive, Refusal};
use crate::manifest::{BinaryOp, Expr};
use crate::passes::TargetFacts;
use addends::Addend;
use cost::Cost;
use cranelift_entity::EntitySet;
use found::Found;
use neutral::Fill;
use operand::{Operand, Staged};
use shape::{MOST_SUMS, Shape, shapes};
use share::{Part, Share};
use staging::Staging;
use wanted::Wanted;

/// About how many instructions bring tiles to shared memory, beside those that each result takes.
const COPYING: usize = 600;

/// Tiles along the rows that blocks take before they go on to the next columns: what they read stays in the cache.
const GROUP: i64 = 8;

/// Blocks that share tiles, at most.
const MOST_SHARING: i64 = 1 << 16;

fn is_large(shape: &Shape) -> bool {
    shape.results() > MOST_VECTOR_RESULTS
}

/// Whether a launch takes vectors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Vectors {
    Always,
    Never,
    /// Where the launch finds that it can.
    Tested,
}

/// One way to stage a launch.
pub struct Product {
    pub conditions: Conditions,
    position: usize,
    body: Block,
    reduce: Inst,
    combiners: Vec<Combiner>,
    /// The reduced axis: its index, low end and extent.
    inner: LoopAxis,
    blocks: Blocks,
    shape: Shape,
    /// Of the loads that move with the rows (y), then with the columns (x).
    operands: [Vec<Operand>; 2],
    /// Whether vectors are taken, or may be.
    vectors: bool,
    /// What the launch tests for that; `None` where it is known.
    aligned: Option<Expr>,
    /// What a term and its masks are computed with, operands left out.
    steps: Vec<Inst>,
    /// What is combined, one for each value of the reduction, by its parts, and the conditions without which nothing is.
    terms: Vec<Value>,
    addends: Vec<Vec<Addend>>,
    masks: Vec<Value>,
    /// What results begin with, unless it adds nothing.
    start: Option<Value>,
    /// Whether a step is an outer product, and no more.
    outer: bool,
    /// What shared memory holds for steps in front of the axis; where nothing is neutral, these are left out.
    fill: Option<Fill>,
    /// Loop indices that the steps use.
    indices: EntitySet<Value>,
    /// Neighbours that a store takes at once, and the stores that do.
    group: i64,
    vector_stores: EntitySet<Inst>,
    /// What says the sizes, where the schedule said some of them.
    sizes: Vec<Directive>,
    /// How the last tiles are shared among the blocks, if they are.
    share: Option<Share>,
}

impl Product {
    /// The variants of a launch of this form, the best first; first of all that of a shape whose name is given, whatever it
    /// costs.
    ///
    /// # Errors
    /// Where the schedule says sizes that cannot be: which directives, and why.
    pub fn plans(
        mut pattern: Pattern<'_>,
        target: &TargetFacts,
        (first, sum): (Option<&str>, Sum),
    ) -> Result<Vec<Self>, Box<(Wanted, Refusal)>> {
        let Some(found) = Found::new(&mut pattern, sum) else { return Ok(Vec::new()) };
        let mut shapes = shapes(&pattern, &found.loads, found.terms.len());
        let stages = wanted::stages(&pattern, &found);
        for shape in &mut shapes {
            shape.stages = stages.unwrap_or(shape.stages);
            shape.values = found.terms.len() as i64;
            shape.resident = (shape.resident / shape.values as u32).max(1);
        }
        let registers = |term: &Value| pattern.kernel.value_type(*term).size().div_ceil(4) as usize;
        let registers: usize = found.terms.iter().map(registers).sum();
        shapes.retain(|shape| shape.results() * registers <= MOST_SUMS);
        let wanted = Wanted::new(&pattern, &found);
        if wanted.is_none() && pattern.is_shaped() {
            return Ok(Vec::new());
        }
        let mut sizes = Vec::new();
        if let Some(wanted) = wanted {
            let Some(shape) = wanted.shape(&shapes) else { return Ok(Vec::new()) };
            if let Some(refusal) = wanted.limit(&mut pattern, &found, &shape, target) {
                return Err(Box::new((wanted, refusal)));
            }
            sizes = wanted.directives(&shape);
            shapes = vec![shape];
        }
        // What is added up in its order is not cut.
        let whole = sum.is_ordered
            || !sizes.is_empty()
            || pattern.kernel.schedule.split(&found.inner_name(&pattern)).is_some();
        let mut stagings = Vec::new();
        for shape in &shapes {
            stagings.extend(Staging::new(&mut pattern, &found, shape, target));
        }
        // Code for all sizes, and what branches of the plan choose, has few launches.
        let is_general = pattern.kernel.specialization.is_general();
        if is_general {
            // Where others are better is asked first: what is taken for all the rest ends the questions.
            stagings.sort_by_key(|staging| staging.shape.is_common() && !staging.shape.inside);
        }
        let costs: Vec<Cost> = stagings.iter().map(|staging| staging.cost(pattern.kernel, target)).collect();
        let several = is_general || costs.iter().any(|cost| pattern.kernel.names_counter(&cost.least()));
        // Parts of all values lie in one array.
        let mut types = found.terms.iter().map(|term| pattern.kernel.value_type(*term));
        let one = types.next();
        let never = whole || several || types.any(|other| Some(other) != one);
        let mut plans = Vec::new();
        for (at, staging) in stagings.iter().enumerate() {
            let shape = &staging.shape;
            // Of code for all sizes it is known where another shape is better, so that it is not taken for those.
            let asked = is_general && !shape.is_common();
            if several && !shape.is_common() && !asked {
                continue;
            }
            let named = first.is_some_and(|first| first == shape.name);
            let others = stagings.iter().zip(&costs).skip(at + 1);
            let others = others.filter(|(other, _)| !several || is_general || other.shape.is_common());
            let others = others.map(|(_, cost)| cost.least());
            let others = others.chain([staging.without(pattern.kernel, target)]);
            let chosen = named || !sizes.is_empty();
            // What fails for all shapes is asked first, and all others in one condition, so that there are few answers: not
            // dearer than those that follow, as those before were.
            let others = others.reduce(|left, right| Expr::binary(BinaryOp::Min, left, right));
            let mut cheapest = staging.usual(pattern.kernel).fold(Conditions::new(), Conditions::prefers);
            if let Some(other) = others.filter(|_| !chosen) {
                let least = Expr::binary(BinaryOp::LessEqual, costs[at].least(), other);
                cheapest =
                    if asked { cheapest.needs(least) } else { cheapest.prefers(staging.is_best(least)) };
            }
            let shared = Share::new(staging.blocks.tiles(pattern.kernel), &staging.inner, shape, &costs[at]);
            let shared = Some(shared).filter(|_| !never);
            let ways: &[Vectors] =
                if is_large(shape) { &[Vectors::Always, Vectors::Never] } else { &[Vectors::Tested] };
            let either = !shape.inside || shared.is_none();
            let shares: Vec<Option<Share>> =
                shared.into_iter().map(Some).chain(either.then_some(None)).collect();
            let of_shape = shares.iter().flat_map(|share| ways.iter().map(move |way| (*way, share)));
            let of_shape =
                of_shape.filter_map(|way| Self::plan(&pattern, &found, staging, cheapest.clone(), way));
            let of_shape = of_shape.map(|plan| Self { sizes: sizes.clone(), start: sum.start, ..plan });
            let place = if named { 0 } else { plans.len() };
            plans.splice(place..place, of_shape.collect::<Vec<_>>());
        }
        Ok(plans)
    }

    fn plan(
        pattern: &Pattern<'_>,
        found: &Found,
        staging: &Staging,
        mut conditions: Conditions,
        (vectors, share): (Vectors, &Option<Share>),
    ) -> Option<Self> {
        let kernel = pattern.kernel;
        let Staging { shape, blocks, inner, needed, any, .. } = staging;
        if shape.inside {
            conditions = staging.fills().into_iter().fold(conditions, Conditions::needs);
        }
        if let Some(share) = share {
            conditions = conditions.needs(share.fits());
        }
        // With large tiles the plan finds out how many are shared, if any.
        if let Some(share) = share.as_ref().filter(|_| !shape.inside) {
            conditions = conditions.prefers(share.any());
        }
        conditions = staging.usual(kernel).fold(conditions, Conditions::expects);
        let all = needed.iter().cloned().reduce(|left, right| Expr::binary(BinaryOp::And, left, right));
        let aligned = match vectors {
            Vectors::Always if !any => return None,
            Vectors::Always => {
                conditions = needed.iter().cloned().fold(conditions, Conditions::needs);
                None
            }
            Vectors::Never => None,
            Vectors::Tested => Some(all.unwrap_or(Expr::Bool(true))).filter(|_| *any),
        };
        if conditions.are_impossible() {
            return None;
        }
        Some(Self {
            conditions,
            position: pattern.position,
            body: pattern.body,
            reduce: staging.reduce,
            combiners: staging.combiners.clone(),
            inner: inner.clone(),
            blocks: blocks.clone(),
            shape: shape.clone(),
            operands: staging.operands.clone(),
            vectors: vectors == Vectors::Always || aligned.is_some(),
            aligned,
            steps: found.steps.clone(),
            terms: found.terms.clone(),
            addends: found.addends.clone(),
            masks: found.masks.clone(),
            start: None,
            outer: found.is_outer(kernel, &staging.combiners),
            fill: staging.fill,
            indices: found.indices.clone(),
            group: staging.group,
            vector_stores: staging.vector_stores.clone(),
            sizes: Vec::new(),
            share: share.clone(),
        })
    }

    /// What is staged, and how large the tiles are where the schedule says it, as directives with reasons.
    pub fn arrays(&self, kernel: &Kernel) -> Vec<(Directive, String)> {
        let depth = Some(self.shape.stages as u32);
        let sized = |size: &Directive| (size.clone(), "follows from the tile".to_string());
        let mut stages: Vec<(Directive, String)> = self.sizes.iter().map(sized).collect();
        for operand in self.operands.iter().flatten() {
            let array = operand.scalar.array(kernel);
            let place = operand.scalar.placement();
            let same =
                |other: &Operand| other.scalar.array(kernel) != array || other.scalar.placement() == place;
            // Of an array with several tiles a directive says what is the same for all.
            let place = self.operands.iter().flatten().all(same).then_some(place);
            let directive = Directive::Stage { array, place, depth };
            if !stages.iter().any(|(known, _)| known.same_subject(&directive)) {
                stages.push((directive, "many threads read the same elements".to_string()));
            }
        }
        stages
    }

    /// Whether some tiles are copied in the background.
    fn has_background(&self) -> bool {
        self.operands.iter().flatten().any(|operand| operand.walk.is_some())
    }

    /// Whether some tiles are copied through registers.
    fn has_registers(&self) -> bool {
        self.operands.iter().flatten().any(|operand| operand.walk.is_none())
    }

    /// How many instructions and values the staged launch has, about.
    pub fn room(&self) -> (usize, usize) {
        // Each result is combined once a step, and stored.
        let results = self.shape.sums();
        let bodies = if self.shape.unroll == self.shape.depth { 1 } else { 2 };
        let combined = bodies * self.shape.unroll as usize + 1;
        // All results of a step at once, where an outer product makes them.
        let steps = if self.outer { 0 } else { combined * (self.steps.len() + 1) };
        let partial = if self.share.is_some() { 3 } else { 0 };
        let insts = results * (steps + 8 + partial) + COPYING;
        (insts, insts + results * combined)
    }

    /// The staged launch, and one that adds up what its blocks did of shared tiles, with the condition that there are any.
    pub fn generate(
        &self,
        kernel: &mut Kernel,
        launch: Launch,
        place: Place,
    ) -> (Launch, Option<(Expr, Launch)>) {
        let tiles = self.blocks.tiles(kernel);
        let grid = self.share.as_ref().map_or([tiles, Expr::Int(1), Expr::Int(1)], Share::grid);
        let block = (grid, self.shape.threads());
        let kind = if self.vectors && self.aligned.is_none() { "_vector" } else { "" };
        let suffix = format!("{}{kind}", self.shape.name);
        let share = self
            .share
            .as_ref()
            .map(|share| (share, share.allocate(kernel, (self.reduce, self.shape.values))));
        // First: what is staged in place is not there afterwards.
        let sums = share.map(|(share, parts)| {
            let (suffix, block) = (format!("{}_sums", self.shape.name), share.block_of_sums());
            let generate = |emit: &mut Emit<'_>, map| self.add_up(emit, map, (share, parts));
            let sums = staged(kernel, launch, Place::Copy, (self.position, &suffix), block, generate);
            kernel.launches[sums].assume.push(share.any());
            let name = kernel.launches[sums].name.clone();
            let factors = share.factors_of_sums();
            self.spreads(&name, factors).into_iter().for_each(|spread| kernel.schedule.spread(spread));
            (share.any(), sums)
        });
        let code = |emit: &mut Emit<'_>, map| self.code(emit, map, share);
        let staged = staged(kernel, launch, place, (self.position, &suffix), block, code);
        let name = kernel.launches[staged].name.clone();
        let steps = factors(Level::Serial, &[(Level::Serial, self.shape.depth)]);
        let mut spreads = self.spreads(&name, [0, 1].map(|side| self.shape.factors(side)));
        spreads.push(self.inner.spread(&name, steps));
        spreads.into_iter().for_each(|spread| kernel.schedule.spread(spread));
        if self.share.is_some() {
            let (reduced, known) = (&self.inner.name, "tiles that do not fill a wave are shared");
            let text =
                format!("{known} among all multiprocessors: `split {reduced}: 1` keeps each in one block");
            kernel.schedule.remark(&name, text);
        }
        (staged, sums)
    }

    /// How the axes of the result lie on the machine; those of rows and columns by `factors`.
    fn spreads(&self, launch: &str, [rows, columns]: [Vec<Factor>; 2]) -> Vec<Spread> {
        let mut spreads = vec![self.blocks.y.0.spread(launch, rows), self.blocks.x.0.spread(launch, columns)];
        let one_a_block = |axis: &LoopAxis| axis.spread(launch, factors(Level::Grid, &[]));
        spreads.extend(self.blocks.others.iter().map(one_a_block));
        spreads
    }

    fn code(&self, emit: &mut Emit<'_>, mut map: ValueMap, share: Option<(&Share, Buffer)>) {
        match share {
            Some((share, parts)) => share.each(emit, |emit, tile, part| {
                let (x, y) = self.blocks.start_of(emit, &mut map, tile);
                let ends = self.ends(emit);
                self.tile(emit, map, ([y, x], ends), Some((part, parts)));
            }),
            None => {
                let tile = emit.value(Opcode::BlockIndex, Payload::Grid(0), &[]);
                emit.name(tile, "block");
                let (x, y) = self.blocks.start_of(emit, &mut map, tile);
                let ends = self.ends(emit);
                self.tile(emit, map, ([y, x], ends), None);
            }
        }
    }

    /// Behind the last row and column.
    fn ends(&self, emit: &mut Emit<'_>) -> [Value; 2] {
        [&self.blocks.y.0, &self.blocks.x.0].map(|axis| high(emit, axis))
    }

    /// The first row and column of a tile: where tiles fit, the last one is moved back to lie inside.
    fn starts(&self, emit: &mut Emit<'_>, own: [Value; 2], ends: [Value; 2]) -> [Value; 2] {
        if !self.shape.inside {
            return own;
        }
        [0, 1].map(|side| {
            let last = emit.add_int(ends[side], -self.shape.tile[side]);
            emit.min(own[side], last)
        })
    }

    /// The tile, or a part of its chunks, whose first row and column that are the block's own are given, and the ends of the
    /// axes.
    fn tile(
        &self,
        emit: &mut Emit<'_>,
        map: ValueMap,
        (own, ends): ([Value; 2], [Value; 2]),
        part: Option<(Part, Buffer)>,
    ) {
        let thread = emit.value(Opcode::ThreadIndex, Payload::None, &[]);
        emit.name(thread, "tid");
        let low = emit.expression(&self.inner.low);
        let places = self.shape.places(emit, thread);
        let operands = [0, 1].map(|side| {
            let operands = self.operands[side].iter();
            operands.map(|operand| operand.stage(emit, self.shape.stages, thread)).collect::<Vec<_>>()
        });
        let starts = self.starts(emit, own, ends);
        let aligned = match &self.aligned {
            None | Some(Expr::Bool(true)) => None,
            Some(condition) => Some(conditions::truth(emit, condition)),
        };
        let (part, parts) = part.unzip();
        let block = BlockCode { plan: self, operands, own, starts, ends, places, low, aligned, part, map };
        let span = emit.kernel.insts[self.reduce].span;
        let sums = emit.at(span, |emit| block.reduce(emit));
        match (&block.part, parts) {
            (Some(part), Some(parts)) => {
                emit.if_else(
                    part.whole,
                    |emit| {
                        block.finish(emit, &sums);
                        Vec::new()
                    },
                    |emit| {
                        block.keep(emit, (parts, part.slot), &sums);
                        Vec::new()
                    },
                );
                // Before shared memory takes chunks of the next tile.
                block.wait(emit, 0);
            }
            _ => block.finish(emit, &sums),
        }
    }
}

/// The code of one block.
struct BlockCode<'p> {
    plan: &'p Product,
    /// As the plan's operands.
    operands: [Vec<Staged>; 2],
    /// The first row and column whose results the block stores.
    own: [Value; 2],
    /// The first row and column of its tile: where tiles fit, the last one is moved back to lie inside.
    starts: [Value; 2],
    ends: [Value; 2],
    /// This thread's first row and column within the block.
    places: [Value; 2],
    low: Value,
    /// Whether vectors may be taken; `None` where that is known.
    aligned: Option<Value>,
    /// Which of the tile's chunks the block takes; `None` for all.
    part: Option<Part>,
    map: ValueMap,
}

impl BlockCode<'_> {
    /// Emits code with vectors and without, as the argument says; where the launch need not test, one of the two.
    fn either(
        &self,
        emit: &mut Emit<'_>,
        mut code: impl FnMut(&mut Emit<'_>, bool) -> Vec<Value>,
    ) -> Vec<Value> {
        // One closure for both regions.
        let code = std::cell::RefCell::new(&mut code);
        match self.aligned {
            None => (code.borrow_mut())(emit, self.plan.vectors),
            Some(aligned) => emit.if_else(
                aligned,
                |emit| (code.borrow_mut())(emit, true),
                |emit| (code.borrow_mut())(emit, false),
            ),
        }
    }

    /// The iteration that one of the thread's rows or columns is.
    fn index(&self, emit: &mut Emit<'_>, side: usize, at: i64) -> Value {
        let first = emit.add(self.starts[side], self.places[side]);
        emit.add_int(first, self.plan.shape.offset(side, at))
    }
}

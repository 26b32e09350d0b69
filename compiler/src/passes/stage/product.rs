//! Reductions over products: some loads move with one axis of the result, the others with another.
//!
//! ```text
//! c[i, j] = sum(p: a[i, p] * b[p, j])
//! ```
//!
//! A block computes a tile of results. Along the reduced axis it goes in chunks, of each of which its threads bring
//! one tile of every load to shared memory; each thread then combines all pairs of its rows and columns in registers.
//! While it does, the next chunk's elements are on their way from global memory to registers, and go to the other
//! half of the shared memory afterwards: one barrier a chunk.
//!
//! The last chunk that is brought is always a whole one: it ends where the axis ends, and only the part of it that no
//! chunk before had is combined. At the edges of the result large tiles are moved back to lie inside, and store only
//! what no other block does; in small ones rows and columns past the end are copies of the last one, and their results
//! are not stored.

use super::code::{copy_group, copy_inst, load_vector};
use super::conditions::Conditions;
use super::pattern::Pattern;
use super::shape::{LANES, PIECE, Shape, shapes};
use super::tile::{Copier, Side, Tile};
use super::{Blocks, high, variant};
use crate::data::Scalar;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Combiner, Opcode};
use crate::ir::schedule::Directive;
use crate::manifest::{BinaryOp, Expr};
use cranelift_entity::EntitySet;

/// Bytes of a row that neighbouring threads bring: a line, so that a thread's places differ in few rows.
const PIECE_BYTES: i64 = 128;

/// Tiles along the rows that blocks take before they go on to the next columns: what they read stays in the cache.
const GROUP: i64 = 8;

/// One way to stage a launch.
pub struct Product {
    pub condition: Expr,
    suffix: String,
    position: usize,
    body: Block,
    reduce: Inst,
    combiner: Combiner,
    /// The reduced axis: its index, low end and extent.
    inner: super::pattern::LoopAxis,
    blocks: Blocks,
    shape: Shape,
    /// Of the loads that move with the rows (y), then with the columns (x).
    tiles: [Vec<Tile>; 2],
    /// What the contribution is computed with, loads left out.
    steps: Vec<Inst>,
    contribution: Value,
    /// Loop indices that the steps use.
    indices: EntitySet<Value>,
    /// Neighbours that a store takes at once, and the stores that do.
    group: i64,
    vector_stores: EntitySet<Inst>,
}

/// What is found in a launch of this form, before sizes are chosen.
struct Found {
    /// Positions of the axes of rows and columns.
    axes: [usize; 2],
    loads: [Vec<Inst>; 2],
    steps: Vec<Inst>,
    indices: EntitySet<Value>,
}

impl Product {
    /// The variants of a launch of this form, the best first.
    pub fn plans(mut pattern: Pattern<'_>, least_blocks: Option<i64>) -> Option<Vec<Self>> {
        let found = Found::new(&mut pattern)?;
        let mut plans = Vec::new();
        for shape in shapes(&pattern, &found.loads, least_blocks) {
            for vectors in [true, false] {
                plans.extend(Self::plan(&mut pattern, &found, &shape, vectors));
            }
        }
        Some(plans)
    }

    fn plan(pattern: &mut Pattern<'_>, found: &Found, shape: &Shape, vectors: bool) -> Option<Self> {
        let kernel = pattern.kernel;
        let reduce = pattern.reduce.as_ref()?;
        let (inst, inner) = (reduce.inst, reduce.axis.clone());
        let contribution = *kernel.yields(reduce.body).first()?;
        let Payload::Reduce { combiners, .. } = &kernel.insts[inst].payload else { return None };
        let [rows, columns] = found.axes;
        let blocks = Blocks::new(pattern, (columns, shape.columns()), (rows, shape.rows()), GROUP);
        let outer = [blocks.y.0.clone(), blocks.x.0.clone()];

        let mut conditions = Conditions::default();
        let mut any = false;
        let mut tiles = [Vec::new(), Vec::new()];
        for (at, loads) in found.loads.iter().enumerate() {
            let side = Side { index: outer[at].index, size: [shape.rows(), shape.columns()][at] };
            let deep = Side { index: inner.index, size: shape.depth };
            for load in loads {
                let straight = pattern.cost(*load, side.index) <= pattern.cost(*load, deep.index);
                let (sides, fast) =
                    if straight { ((side, deep), &outer[at]) } else { ((deep, side), &inner) };
                let wanted = (16 / pattern.width(*load) as i64).min(4);
                let mut tile =
                    Tile::new(kernel, *load, sides, if vectors { wanted } else { 1 }, straight, PIECE_BYTES)?;
                if tile.lanes > 1 {
                    match pattern.vector_condition(*load, fast, tile.lanes as u64) {
                        Some(needed) => {
                            any = true;
                            conditions.extend(needed);
                        }
                        None => tile = Tile::new(kernel, *load, sides, 1, straight, PIECE_BYTES)?,
                    }
                }
                tile.pad(PIECE, |_| 0);
                tiles[at].push(tile);
            }
        }
        let top = &kernel.blocks[pattern.body].insts;
        let stores: Vec<Inst> =
            top.iter().copied().filter(|inst| kernel.insts[*inst].opcode == Opcode::Store).collect();
        let widest = stores.iter().map(|store| pattern.width(*store)).max()?;
        let mut group = if vectors { (16 / widest as i64).min(PIECE) } else { 1 };
        let mut vector_stores = EntitySet::new();
        for store in stores.iter().filter(|_| group > 1) {
            if let Some(needed) = pattern.vector_condition(*store, &outer[1], group as u64) {
                conditions.extend(needed);
                vector_stores.insert(*store);
            }
        }
        if vector_stores.is_empty() {
            group = 1;
        }
        if vectors && !any && group == 1 {
            return None;
        }
        let grid = blocks.grid(kernel);
        conditions.at_least(&inner.extent, shape.depth);
        for (axis, least) in outer.iter().zip(shape.least) {
            conditions.at_least(&axis.extent, least);
        }
        if shape.least_blocks > 1 {
            let blocks = grid.iter().cloned().reduce(|all, count| Expr::binary(BinaryOp::Mul, all, count))?;
            conditions.at_least(&blocks, shape.least_blocks);
        }
        conditions.fits_grid(&grid);
        Some(Self {
            condition: conditions.expression()?,
            suffix: format!("{}{}", shape.name, if vectors { "_vector" } else { "" }),
            position: pattern.position,
            body: pattern.body,
            reduce: inst,
            combiner: combiners[0],
            inner,
            blocks,
            shape: shape.clone(),
            tiles,
            steps: found.steps.clone(),
            contribution,
            indices: found.indices.clone(),
            group,
            vector_stores,
        })
    }

    /// What is staged, as directives with reasons.
    pub fn arrays(&self, kernel: &Kernel) -> Vec<(Directive, String)> {
        let stage = |tile: &Tile| {
            let (place, depth) = (Some(tile.placement()), Some(2));
            (
                Directive::Stage { array: tile.array(kernel), place, depth },
                "many threads read the same elements",
            )
        };
        let mut stages: Vec<(Directive, String)> = Vec::new();
        for (directive, reason) in self.tiles.iter().flatten().map(stage) {
            if !stages.iter().any(|(known, _)| known.same_subject(&directive)) {
                stages.push((directive, reason.to_string()));
            }
        }
        stages
    }

    /// The staged launch.
    pub fn generate(&self, kernel: &mut Kernel, launch: Launch) -> Launch {
        let grid = self.blocks.grid(kernel);
        variant(kernel, launch, self.position, &self.suffix, grid, |emit, map| self.code(emit, map))
    }

    fn code(&self, emit: &mut Emit<'_>, mut map: ValueMap) {
        let (x, y) = self.blocks.start(emit, &mut map);
        let ends = [&self.blocks.y.0, &self.blocks.x.0].map(|axis| high(emit, axis));
        let some = emit.binary(Opcode::Lt, y, ends[0]);
        emit.if_then(some, |emit| {
            let thread = emit.value(Opcode::ThreadIndex, Payload::None, &[]);
            emit.name(thread, "tid");
            let low = emit.expression(&self.inner.low);
            let (row, column) = self.shape.places(emit, thread);
            let copiers = [0, 1].map(|at| {
                let copiers = self.tiles[at].iter().map(|tile| Copier::new(emit, tile.clone(), 2, thread));
                copiers.collect::<Vec<_>>()
            });
            let own = [y, x];
            let sizes = [self.shape.rows(), self.shape.columns()];
            let starts = if self.shape.fits() {
                [0, 1].map(|at| {
                    let last = emit.add_int(ends[at], -sizes[at]);
                    emit.min(own[at], last)
                })
            } else {
                own
            };
            let block = BlockCode { plan: self, copiers, own, starts, ends, places: [row, column], low, map };
            let sums = block.reduce(emit);
            block.finish(emit, &sums);
        });
    }
}

/// The code of one block.
struct BlockCode<'p> {
    plan: &'p Product,
    /// As the plan's tiles.
    copiers: [Vec<Copier>; 2],
    /// The first row and column whose results the block stores.
    own: [Value; 2],
    /// The first row and column of its tile: where tiles fit, the last one is moved back to lie inside.
    starts: [Value; 2],
    ends: [Value; 2],
    /// This thread's first row and column within the block.
    places: [Value; 2],
    low: Value,
    map: ValueMap,
}

/// Values of one tile after the other, in the order of the copiers.
type Parts = Vec<Vec<Vec<Value>>>;

/// What a thread needs of the tiles for one step: of each tile, one scalar a row or column.
type Fragments = [Vec<Vec<Value>>; 2];

impl BlockCode<'_> {
    /// The loop over the chunks. It is pipelined three times over: elements are loaded to registers two chunks ahead,
    /// stored to shared memory one chunk ahead, and read from there one step ahead. The loads stand in the middle of
    /// one round and the stores of what they gave in the middle of the next, so that they cannot come together.
    fn reduce(&self, emit: &mut Emit<'_>) -> Vec<Value> {
        let (plan, shape) = (self.plan, &self.plan.shape);
        let extent = emit.expression(&plan.inner.extent);
        let depth = emit.int(shape.depth);
        let (zero, one) = (emit.int(0), emit.int(1));
        let chunks = emit.div_by(extent, shape.depth);
        let whole = emit.mul_int(chunks, shape.depth);
        let last = emit.sub(extent, depth);
        let first = self.load(emit, zero);
        self.store(emit, zero, &first);
        let second = emit.min(depth, last);
        let second = self.load(emit, second);
        emit.barrier();
        let fragments = self.fragments(emit, zero, zero);
        let scalar = emit.kernel.value_type(emit.kernel.insts[plan.reduce].results[0]);
        let identity = emit.identity(plan.combiner, scalar)[0];
        let sums = vec![identity; (shape.thread_rows() * shape.thread_columns()) as usize];

        let parts_like = second.clone();
        let fragments_like = fragments.clone();
        let initial = [vec![zero], flat(&second), flat_pair(&fragments), sums.clone()].concat();
        let done = emit.for_loop("chunk", (zero, whole, depth), &initial, |emit, chunk, carried| {
            let copy = carried[0];
            let mut rest = carried[1..].iter().copied();
            let mut parts = refilled(&parts_like, &mut rest);
            let mut fragments = [0, 1].map(|side| refilled_once(&fragments_like[side], &mut rest));
            let mut sums: Vec<Value> = rest.collect();
            let other = emit.sub(one, copy);
            let start = emit.add(self.low, chunk);
            for step in 0..shape.depth {
                if step == shape.depth / 2 {
                    self.store(emit, other, &parts);
                    let next = emit.add_int(chunk, 2 * shape.depth);
                    let next = emit.min(next, last);
                    parts = self.load(emit, next);
                }
                // Once the last step's fragments are read, nothing is wanted of this chunk's memory any more.
                let next = if step + 1 == shape.depth {
                    emit.barrier();
                    self.fragments(emit, other, zero)
                } else {
                    let next = emit.int(step + 1);
                    self.fragments(emit, copy, next)
                };
                let place = emit.int(step);
                sums = self.combine(emit, &fragments, start, place, &sums);
                fragments = next;
            }
            [vec![other], flat(&parts), flat_pair(&fragments), sums].concat()
        });
        // The last chunk that was brought ends at the end: what is new in it.
        let rest = emit.sub(extent, whole);
        let begin = emit.sub(depth, rest);
        let start = emit.add(self.low, last);
        let copy = done[0];
        let sums = &done[done.len() - sums.len()..];
        emit.for_loop("rest", (begin, depth, one), sums, |emit, step, sums| {
            let fragments = self.fragments(emit, copy, step);
            self.combine(emit, &fragments, start, step, sums)
        })
    }

    /// Reads what the thread needs of every tile in one step.
    fn fragments(&self, emit: &mut Emit<'_>, copy: Value, step: Value) -> Fragments {
        [0, 1].map(|side| {
            let of = |copier| self.fragment(emit, copier, side, copy, step);
            self.copiers[side].iter().map(of).collect()
        })
    }

    /// Brings the chunk that begins so far from the low end to registers.
    fn load(&self, emit: &mut Emit<'_>, offset: Value) -> Parts {
        let start = emit.add(self.low, offset);
        let mut values = Vec::new();
        for (at, copiers) in self.copiers.iter().enumerate() {
            for copier in copiers {
                let lanes = copier.tile.lanes;
                let lanes = if copier.tile.straight { lanes } else { 1 };
                let last = (!self.plan.shape.fits()).then(|| emit.add_int(self.ends[at], -lanes));
                let parts = if copier.tile.straight {
                    copier.load(emit, &self.map, (self.starts[at], start), (last, None))
                } else {
                    copier.load(emit, &self.map, (start, self.starts[at]), (None, last))
                };
                values.push(parts);
            }
        }
        values
    }

    /// Puts it into one of the two copies.
    fn store(&self, emit: &mut Emit<'_>, copy: Value, values: &Parts) {
        for (copier, values) in self.copiers.iter().flatten().zip(values) {
            copier.store(emit, copy, values);
        }
    }

    /// Combines one step of a chunk that begins at `start` into the thread's results.
    fn combine(
        &self,
        emit: &mut Emit<'_>,
        fragments: &Fragments,
        start: Value,
        step: Value,
        sums: &[Value],
    ) -> Vec<Value> {
        let plan = self.plan;
        let mut map = self.map.clone();
        if plan.indices.contains(plan.inner.index) {
            let index = emit.add(start, step);
            map.insert(plan.inner.index, index);
        }
        let (rows, columns) = (plan.shape.thread_rows() as usize, plan.shape.thread_columns() as usize);
        let mut sums = sums.to_vec();
        for row in 0..rows {
            self.choose(emit, &mut map, &fragments[0], 0, row);
            for place in 0..columns {
                // To and fro: neighbours in time share an operand.
                let column = if row % 2 == 0 { place } else { columns - 1 - place };
                self.choose(emit, &mut map, &fragments[1], 1, column);
                for inst in &plan.steps {
                    copy_inst(emit, *inst, &mut map);
                }
                let contribution = mapped(&map, plan.contribution);
                let sum = &mut sums[row * columns + column];
                *sum = emit.combine(plan.combiner, &[*sum], &[contribution])[0];
            }
        }
        sums
    }

    /// Lets the loads of one side, and its index, stand for one of the thread's rows or columns.
    fn choose(
        &self,
        emit: &mut Emit<'_>,
        map: &mut ValueMap,
        fragments: &[Vec<Value>],
        side: usize,
        at: usize,
    ) {
        for (copier, values) in self.copiers[side].iter().zip(fragments) {
            map.insert(emit.kernel.insts[copier.tile.load].results[0], values[at]);
        }
        let axis = if side == 0 { &self.plan.blocks.y.0 } else { &self.plan.blocks.x.0 };
        if self.plan.indices.contains(axis.index) {
            let index = self.index(emit, side, at as i64);
            map.insert(axis.index, index);
        }
    }

    /// The iteration that one of the thread's rows or columns is.
    fn index(&self, emit: &mut Emit<'_>, side: usize, at: i64) -> Value {
        let first = emit.add(self.starts[side], self.places[side]);
        emit.add_int(first, at / PIECE * LANES[side] * PIECE + at % PIECE)
    }

    /// What the thread needs of a tile in one step: one scalar a row or column.
    fn fragment(
        &self,
        emit: &mut Emit<'_>,
        copier: &Copier,
        side: usize,
        copy: Value,
        step: Value,
    ) -> Vec<Value> {
        let tile = &copier.tile;
        let lanes = (16 / tile.scalar.size() as i64).min(PIECE);
        let line = emit.mul_int(step, tile.pitch);
        let base = emit.add(self.places[side], line);
        let count = [self.plan.shape.thread_rows(), self.plan.shape.thread_columns()][side];
        let mut values = Vec::new();
        for at in (0..count).step_by(lanes as usize) {
            let place = emit.add_int(base, at / PIECE * LANES[side] * PIECE + at % PIECE);
            let payload = Payload::Access { buffer: copier.buffer, leaf: 0 };
            values.extend(load_vector(emit, payload, &[copy, place], tile.scalar, lanes as u64));
        }
        values
    }

    /// Whether the block has so many results from an index on to store.
    fn inside(&self, emit: &mut Emit<'_>, side: usize, index: Value, count: i64) -> Value {
        if self.plan.shape.fits() {
            return emit.binary(Opcode::Ge, index, self.own[side]);
        }
        let last = emit.add_int(index, count - 1);
        emit.binary(Opcode::Lt, last, self.ends[side])
    }

    /// What the body does with the results, for those inside.
    fn finish(&self, emit: &mut Emit<'_>, sums: &[Value]) {
        let plan = self.plan;
        let (rows, columns) = (plan.shape.thread_rows(), plan.shape.thread_columns());
        let result = emit.kernel.insts[plan.reduce].results[0];
        let mut skip = EntitySet::new();
        skip.insert(plan.reduce);
        let insts = emit.kernel.blocks[plan.body].insts.clone();
        for row in 0..rows {
            let y = self.index(emit, 0, row);
            let inside = self.inside(emit, 0, y, 1);
            emit.if_then(inside, |emit| {
                for column in (0..columns).step_by(plan.group as usize) {
                    let x = self.index(emit, 1, column);
                    let inside = self.inside(emit, 1, x, plan.group);
                    emit.if_then(inside, |emit| {
                        let mut maps = Vec::new();
                        for lane in 0..plan.group {
                            let mut map = self.map.clone();
                            map.insert(plan.blocks.y.0.index, y);
                            let x = emit.add_int(x, lane);
                            map.insert(plan.blocks.x.0.index, x);
                            map.insert(result, sums[(row * columns + column + lane) as usize]);
                            maps.push(map);
                        }
                        copy_group(emit, &insts, &mut maps, &skip, &plan.vector_stores);
                    });
                }
            });
        }
    }
}

fn flat(parts: &[Vec<Vec<Value>>]) -> Vec<Value> {
    parts.iter().flatten().flatten().copied().collect()
}

fn flat_pair(fragments: &Fragments) -> Vec<Value> {
    fragments.iter().flatten().flatten().copied().collect()
}

/// The same structure with other values.
fn refilled(like: &Parts, values: &mut impl Iterator<Item = Value>) -> Parts {
    like.iter().map(|parts| refilled_once(parts, values)).collect()
}

fn refilled_once(like: &[Vec<Value>], values: &mut impl Iterator<Item = Value>) -> Vec<Vec<Value>> {
    like.iter().map(|part| values.by_ref().take(part.len()).collect()).collect()
}

impl Found {
    fn new(pattern: &mut Pattern<'_>) -> Option<Self> {
        let kernel = pattern.kernel;
        let body = pattern.reduce.as_ref()?.body;
        let inner = pattern.reduce.as_ref()?.axis.index;
        let insts = kernel.blocks[body].insts.clone();
        let mut loads = Vec::new();
        let mut steps = Vec::new();
        let contribution = *kernel.yields(body).first()?;
        let (needed, indices) = contribution_parts(kernel, contribution)?;
        for inst in insts {
            match kernel.insts[inst].opcode {
                Opcode::Load => {
                    let depends = pattern.depends(&kernel.insts[inst].arguments)?;
                    if pattern.is_written(inst)
                        || !depends.contains(inner)
                        || pattern.scalar(inst) == Scalar::Bool
                    {
                        return None;
                    }
                    loads.push((inst, depends));
                }
                Opcode::Yield => {}
                _ if needed.contains(inst) => steps.push(inst),
                _ => {}
            }
        }
        // What is computed in front of the reduction is computed anew, but not loaded.
        let before = kernel.blocks[pattern.body].insts.iter().copied().filter(|inst| needed.contains(*inst));
        let before: Vec<Inst> = before.collect();
        if before.iter().any(|inst| kernel.insts[*inst].opcode == Opcode::Load) {
            return None;
        }
        let steps: Vec<Inst> = before.into_iter().chain(steps).collect();
        let columns = columns_axis(pattern)?;
        let column = pattern.index(columns);
        let rows = (0..pattern.axes.len()).rev().find(|axis| {
            let row = pattern.axes[*axis].index;
            let sides = |row: Value| loads.iter().map(move |(_, on)| (on.contains(row), on.contains(column)));
            *axis != columns
                && sides(row).all(|(row, column)| row != column)
                && sides(row).any(|(row, _)| row)
                && sides(row).any(|(_, column)| column)
        })?;
        let row = pattern.index(rows);
        let of =
            |index: Value| loads.iter().filter(|(_, on)| on.contains(index)).map(|(inst, _)| *inst).collect();
        Some(Self { axes: [rows, columns], loads: [of(row), of(column)], steps, indices })
    }
}

/// The instructions that a value is computed with up to loads, and the loop indices that it uses beside them. `None`
/// where something else than pure instructions and loads comes in.
fn contribution_parts(kernel: &Kernel, value: Value) -> Option<(EntitySet<Inst>, EntitySet<Value>)> {
    let (mut insts, mut indices) = (EntitySet::new(), EntitySet::new());
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        let Some(inst) = kernel.defining_inst(value) else {
            indices.insert(value);
            continue;
        };
        let data = &kernel.insts[inst];
        if data.opcode == Opcode::Load || !insts.insert(inst) {
            insts.insert(inst);
            continue;
        }
        if data.opcode.info().effect != crate::ir::op::Effect::Pure {
            return None;
        }
        open.extend(&data.arguments);
    }
    Some((insts, indices))
}

/// The axis along which the stores' neighbours lie side by side.
fn columns_axis(pattern: &mut Pattern<'_>) -> Option<usize> {
    let stores = pattern.stores();
    (0..pattern.axes.len()).find(|axis| {
        let index = pattern.index(*axis);
        !stores.is_empty() && stores.iter().all(|store| pattern.cost(*store, index) <= 16)
    })
}

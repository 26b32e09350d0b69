//! Loops that read along one axis and write along another.
//!
//! A block takes a tile of both axes: its threads load it with neighbours along the load's axis, wait for each
//! other, and run the body with neighbours along the stores' axis, reading the tile where the source reads memory. At
//! the edges of the arrays, threads beyond the end load the last element again, so that all of them reach the barrier.

use super::code::copy_group;
use super::copier::Copier;
use super::pattern::{LoopAxis, Pattern, SCATTERED};
use super::tile::{Side, Tile};
use super::{Blocks, Place, THREADS, high, staged as staged_launch};
use crate::analysis::{Conditions, wavefronts};
use crate::data::Scalar;
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Level, Payload};
use crate::ir::op::Opcode;
use crate::ir::placement::{Spread, factors};
use crate::ir::schedule::{Directive, Placement, Refusal, RefusalKind, SAID};
use cranelift_entity::EntitySet;

/// One way to stage a launch.
pub struct Transpose {
    pub conditions: Conditions,
    suffix: &'static str,
    position: usize,
    body: Block,
    blocks: Blocks,
    /// Iterations of a tile along the stores' axis and along the loads'.
    edges: [i64; 2],
    /// The names of those axes.
    names: [String; 2],
    /// Scalars that a thread stores at once; 1 or more.
    lanes: i64,
    /// Threads side by side along the stores' axis.
    across: i64,
    tiles: Vec<Tile>,
    vector_stores: EntitySet<Inst>,
}

/// Bytes of a row that neighbouring threads bring or store, before they go to the next one: two lines.
const LINES: i64 = 256;

/// Bodies longer than this are not copied once an element.
const MAX_BODY: usize = 64;

/// Iterations of a tile along the stores' axis and along the loads', by the bytes of the widest scalar that is staged.
/// A row is at least a line, so that no sector is brought twice; where rows begin anywhere in a line, longer rows of
/// the result make fewer lines that two blocks write.
fn edges(bytes: u64, vectors: bool) -> [i64; 2] {
    match (bytes, vectors) {
        (1, _) => [128, 128],
        (_, true) => [64, 64],
        (_, false) => [128, 32],
    }
}

/// What is found in a launch of this form, before sizes are chosen.
struct Found {
    /// Positions of the axes that the stores and the loads lie along.
    axes: [usize; 2],
    loads: Vec<Inst>,
    /// At the top of the body.
    stores: Vec<Inst>,
}

/// Arrays of which no tile can be staged, and why.
pub struct Misfit {
    pub arrays: Vec<String>,
    pub refusal: Refusal,
}

impl Transpose {
    /// The variants of a launch of this form, the best first; `None` where it has another form.
    ///
    /// # Errors
    /// Where the schedule says a tile that cannot be.
    pub fn plans(mut pattern: Pattern<'_>) -> Option<Result<Vec<Self>, Misfit>> {
        let kernel = pattern.kernel;
        let body = &kernel.blocks[pattern.body].insts;
        if pattern.axes.len() < 2 || pattern.reduce.is_some() || body.len() > MAX_BODY {
            return None;
        }
        let stores = pattern.stores();
        let along = (0..pattern.axes.len()).find(|axis| {
            let index = pattern.index(*axis);
            !stores.is_empty() && stores.iter().all(|store| pattern.cost(*store, index) < SCATTERED / 2)
        })?;
        let (loads, across) = staged(&mut pattern, along)?;
        let stores = stores.into_iter().filter(|store| body.contains(store)).collect();
        let found = Found { axes: [along, across], loads, stores };
        let plans: Vec<Self> = [true, false]
            .into_iter()
            .filter_map(|vectors| Self::plan(&mut pattern, &found, vectors))
            .collect();
        if plans.is_empty() {
            return misfit(&pattern, &found).map(Err);
        }
        Some(Ok(plans))
    }

    fn plan(pattern: &mut Pattern<'_>, found: &Found, vectors: bool) -> Option<Self> {
        let kernel = pattern.kernel;
        let width = found.loads.iter().map(|load| pattern.width(*load)).max()?;
        let [along, across] = found.axes;
        let names = [along, across].map(|axis| pattern.axes[axis].name.clone());
        let mut edges = edges(width, vectors);
        for (edge, name) in edges.iter_mut().zip(&names) {
            *edge = kernel.schedule.tile(name).map_or(*edge, i64::from);
        }
        let blocks = Blocks::new(pattern, (along, edges[0]), (across, edges[1]), 1);
        let mut conditions = Conditions::new();
        for (axis, edge) in [&blocks.x.0, &blocks.y.0].into_iter().zip(edges) {
            conditions = conditions.prefers_at_least(&axis.extent, edge.min(64) / 2);
        }
        conditions = conditions.fits_grid(&blocks.grid(kernel));

        // As many scalars as every store that can take vectors can take at once.
        let lanes = found.stores.iter().map(|store| vector_lanes(pattern, *store)).min().unwrap_or(1);
        let mut lanes = lanes.min(edges[0]);
        let mut vector_stores = EntitySet::new();
        for store in found.stores.iter().filter(|_| vectors && lanes > 1) {
            if let Some(needed) = pattern.vector_condition(*store, &blocks.x.0, lanes as u64) {
                conditions = needed.into_iter().fold(conditions, Conditions::needs);
                vector_stores.insert(*store);
            }
        }
        if vector_stores.is_empty() {
            lanes = 1;
        }
        let store_across = store_across(pattern, &found.stores, edges, lanes);
        if store_across * lanes > edges[0] || THREADS / store_across > edges[1] {
            // Too few iterations for the threads.
            return None;
        }
        let mut tiles = Vec::new();
        for load in &found.loads {
            let sides = [across, along].map(|axis| pattern.index(axis));
            let sides = (Side { index: sides[0], size: edges[1] }, Side { index: sides[1], size: edges[0] });
            let wanted = vector_lanes(pattern, *load);
            let mut load_lanes = 1;
            if vectors
                && wanted > 1
                && let Some(needed) = pattern.vector_condition(*load, &blocks.y.0, wanted as u64)
            {
                conditions = needed.into_iter().fold(conditions, Conditions::needs);
                load_lanes = wanted;
            }
            let tile = Tile::new((*load, pattern.scalar(*load)), sides, (load_lanes, THREADS), true, LINES)?;
            tiles.push(match kernel.schedule.stage(&tile.array(kernel)) {
                Some((Some(Placement::Pad(pad)), _)) => tile.with_pad(i64::from(pad)),
                Some((Some(Placement::Swizzle), _)) => tile.swizzled(),
                _ => padded(tile, lanes, store_across),
            });
        }
        if vectors && lanes == 1 && tiles.iter().all(|tile| tile.lanes == 1) {
            return None;
        }
        Some(Self {
            conditions,
            suffix: if vectors { "tiled_vector" } else { "tiled" },
            position: pattern.position,
            body: pattern.body,
            blocks,
            edges,
            names,
            lanes,
            across: store_across,
            tiles,
            vector_stores,
        })
    }

    /// Bytes of shared memory.
    pub fn bytes(&self) -> i64 {
        self.tiles.iter().map(|tile| tile.elements() * tile.scalar.size() as i64).sum()
    }

    /// What the plan does, as directives with reasons.
    pub fn choices(&self, kernel: &Kernel) -> Vec<(Directive, String)> {
        let said = |said: bool, reason: &str| if said { SAID.to_string() } else { reason.to_string() };
        let mut choices = Vec::new();
        for (name, edge) in self.names.iter().zip(self.edges) {
            let reason =
                said(kernel.schedule.tile(name).is_some(), "rows of a tile are whole lines of memory");
            choices.push((Directive::Tile { axis: name.clone(), size: edge as u32 }, reason));
        }
        for tile in &self.tiles {
            let array = tile.array(kernel);
            let asked = kernel.schedule.stage(&array);
            let reason = said(asked.is_some(), "read along one axis and written along another");
            let place = Some(tile.placement());
            choices.push((Directive::Stage { array, place, depth: None }, reason));
        }
        choices
    }

    /// The staged launch.
    pub fn generate(&self, kernel: &mut Kernel, launch: Launch, place: Place) -> Launch {
        let grid = self.blocks.grid(kernel);
        let block = (grid, THREADS);
        let code = |emit: &mut Emit<'_>, map| self.code(emit, map);
        let staged = staged_launch(kernel, launch, place, (self.position, self.suffix), block, code);
        let name = kernel.launches[staged].name.clone();
        self.spreads(&name).into_iter().for_each(|spread| kernel.schedule.spread(spread));
        staged
    }

    /// How the axes lie on the machine, while results are stored.
    fn spreads(&self, launch: &str) -> Vec<Spread> {
        let spread = |axis: &LoopAxis, factors| axis.spread(launch, factors);
        let (columns, rows) = (self.across * self.lanes, THREADS / self.across);
        let x = [
            (Level::Serial, self.edges[0] / columns),
            (Level::Lane, self.across),
            (Level::Vector, self.lanes),
        ];
        let lanes = 32 / self.across;
        let y = [(Level::Serial, self.edges[1] / rows), (Level::Warp, rows / lanes), (Level::Lane, lanes)];
        let mut spreads = vec![
            spread(&self.blocks.y.0, factors(Level::Grid, &y)),
            spread(&self.blocks.x.0, factors(Level::Grid, &x)),
        ];
        spreads.extend(self.blocks.others.iter().map(|axis| spread(axis, factors(Level::Grid, &[]))));
        spreads
    }

    fn code(&self, emit: &mut Emit<'_>, mut map: ValueMap) {
        let (x, y) = self.blocks.start(emit, &mut map);
        let ends = [&self.blocks.x.0, &self.blocks.y.0].map(|axis| high(emit, axis));
        let some = emit.binary(Opcode::Lt, y, ends[1]);
        emit.if_then(some, |emit| self.block(emit, &map, [x, y], ends));
    }

    /// The code of a block whose tile begins at a place within.
    fn block(&self, emit: &mut Emit<'_>, map: &ValueMap, [x, y]: [Value; 2], ends: [Value; 2]) {
        let thread = emit.value(Opcode::ThreadIndex, Payload::None, &[]);
        emit.name(thread, "tid");
        let zero = emit.int(0);
        let mut copiers = Vec::new();
        for tile in &self.tiles {
            let buffer = tile.allocate(emit.kernel, 1);
            let copier = Copier::new(emit, tile.clone(), buffer, thread);
            let last = (emit.add_int(ends[1], -tile.lanes), emit.add_int(ends[0], -1));
            let values = copier.load(emit, map, (y, x), (Some(last.0), Some(last.1)));
            copiers.push((copier, values));
        }
        for (copier, values) in &copiers {
            copier.store(emit, zero, values);
        }
        emit.barrier();

        let column = emit.rem_by(thread, self.across);
        let column = emit.mul_int(column, self.lanes);
        let row = emit.div_by(thread, self.across);
        let reader =
            Reader { plan: self, map, column, row, x: emit.add(x, column), y: emit.add(y, row), copiers };
        let whole = [emit.add_int(x, self.edges[0]), emit.add_int(y, self.edges[1])];
        let inside = [0, 1].map(|at| emit.binary(Opcode::Le, whole[at], ends[at]));
        let inside = emit.binary(Opcode::And, inside[0], inside[1]);
        emit.if_else(
            inside,
            |emit| {
                self.parts().into_iter().for_each(|part| reader.part(emit, part));
                Vec::new()
            },
            |emit| {
                for part in self.parts() {
                    let last =
                        [emit.add_int(reader.x, part.0 + self.lanes - 1), emit.add_int(reader.y, part.1)];
                    let inside = [0, 1].map(|at| emit.binary(Opcode::Lt, last[at], ends[at]));
                    let inside = emit.binary(Opcode::And, inside[0], inside[1]);
                    emit.if_then(inside, |emit| reader.part(emit, part));
                }
                Vec::new()
            },
        );
    }

    /// What one thread writes, as offsets along x and y.
    fn parts(&self) -> Vec<(i64, i64)> {
        let (columns, rows) = (self.across * self.lanes, THREADS / self.across);
        let x = |y| (0..self.edges[0]).step_by(columns as usize).map(move |x| (x, y));
        (0..self.edges[1]).step_by(rows as usize).flat_map(x).collect()
    }
}

/// The second half of a block's work.
struct Reader<'p> {
    plan: &'p Transpose,
    map: &'p ValueMap,
    /// This thread's place in the tile.
    column: Value,
    row: Value,
    /// And in the loop.
    x: Value,
    y: Value,
    copiers: Vec<(Copier, Vec<Vec<Value>>)>,
}

impl Reader<'_> {
    /// Runs the body for one part.
    fn part(&self, emit: &mut Emit<'_>, (x, y): (i64, i64)) {
        let plan = self.plan;
        let row = emit.add_int(self.y, y);
        let mut skip = EntitySet::new();
        let mut maps = Vec::new();
        for lane in 0..plan.lanes {
            let mut map = self.map.clone();
            let index = emit.add_int(self.x, x + lane);
            map.insert(plan.blocks.x.0.index, index);
            map.insert(plan.blocks.y.0.index, row);
            maps.push(map);
        }
        for (copier, _) in &self.copiers {
            let tile = &copier.tile;
            let span = std::mem::replace(&mut emit.span, emit.kernel.insts[tile.load].span);
            let line = emit.mul_int(self.column, tile.pitch);
            let base = emit.add(line, self.row);
            let zero = emit.int(0);
            for (lane, map) in maps.iter_mut().enumerate() {
                let place = if tile.swizzle.is_some() {
                    let fast = emit.add_int(self.row, y);
                    let slow = emit.add_int(self.column, x + lane as i64);
                    tile.emit_place(emit, fast, slow)
                } else {
                    emit.add_int(base, tile.place(y, x + lane as i64))
                };
                let value = emit.load(copier.buffer, 0, &[zero, place]);
                map.insert(emit.kernel.insts[tile.load].results[0], value);
            }
            emit.span = span;
            skip.insert(tile.load);
        }
        let insts = emit.kernel.blocks[plan.body].insts.clone();
        copy_group(emit, &insts, &mut maps, &skip, &plan.vector_stores);
    }
}

/// The loads at the top of the body that step through memory along the stores' axis, but lie dense along another; and
/// that axis, the same for all.
fn staged(pattern: &mut Pattern<'_>, along: usize) -> Option<(Vec<Inst>, usize)> {
    let (mut loads, mut other) = (Vec::new(), None);
    for inst in pattern.kernel.blocks[pattern.body].insts.clone() {
        if pattern.kernel.insts[inst].opcode != Opcode::Load || pattern.is_written(inst) {
            continue;
        }
        let subscripts = pattern.kernel.insts[inst].arguments.clone();
        let Some(depends) = pattern.depends(&subscripts) else { continue };
        let index = pattern.index(along);
        if !depends.contains(index) || pattern.cost(inst, index) < SCATTERED {
            continue;
        }
        let dense = (0..pattern.axes.len()).find(|axis| {
            let index = pattern.index(*axis);
            *axis != along && depends.contains(index) && pattern.cost(inst, index) <= SCATTERED / 2
        });
        if dense.is_some() && (other.is_none() || other == dense) {
            other = dense;
            loads.push(inst);
        }
    }
    other.map(|axis| (loads, axis))
}

/// Why no launch stages the arrays that the schedule wants staged, where that is for the tile that it says.
fn misfit(pattern: &Pattern<'_>, found: &Found) -> Option<Misfit> {
    let schedule = &pattern.kernel.schedule;
    let names = found.axes.map(|axis| pattern.axes[axis].name.clone());
    let said = names.iter().filter_map(|axis| Some(format!("{axis}: {}", schedule.tile(axis)?)));
    let tile = said.reduce(|all, next| format!("{all}, {next}"))?;
    let arrays: Vec<String> = found.loads.iter().filter_map(|load| pattern.array(*load)).collect();
    let reason = format!("the {THREADS} threads of a block cannot share its elements with `tile {tile}`");
    Some(Misfit { arrays, refusal: Refusal::new(RefusalKind::DoesNotFit, reason, "make the tile larger") })
}

/// Scalars in 16 bytes, as far as an access can take as many.
fn vector_lanes(pattern: &Pattern<'_>, access: Inst) -> i64 {
    if pattern.scalar(access) == Scalar::Bool { 1 } else { (16 / pattern.width(access) as i64).min(8) }
}

/// Threads side by side for one store.
fn store_across(pattern: &Pattern<'_>, stores: &[Inst], [x, y]: [i64; 2], lanes: i64) -> i64 {
    let width = stores.iter().map(|store| pattern.width(*store)).max().unwrap_or(4) as i64;
    (LINES / (width * lanes)).clamp(1, x / lanes).max(THREADS / y).min(32)
}

/// The tile with the pitch at which copying it and reading it along the other side are cheapest.
fn padded(mut tile: Tile, lanes: i64, across: i64) -> Tile {
    tile.pad(1, |tile| {
        let bytes = tile.scalar.size();
        let address = |lane: i64| {
            let (column, row) = (lane % across * lanes, lane / across);
            tile.place(row, column) as u64 * bytes
        };
        let addresses: Vec<u64> = (0..32).map(address).collect();
        wavefronts(&addresses, bytes) * lanes as u32
    });
    tile
}

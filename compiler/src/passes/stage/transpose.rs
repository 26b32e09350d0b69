//! Loops that read along one axis and write along another.
//!
//! A block takes a tile of both axes: its threads load it with neighbours along the load's axis, wait for each
//! other, and run the body with neighbours along the stores' axis, reading the tile where the source reads memory. At
//! the edges of the arrays, threads beyond the end load the last element again, so that all of them reach the barrier.

use super::code::copy_group;
use super::conditions::Conditions;
use super::pattern::{Pattern, SCATTERED};
use super::tile::{Copier, Side, Tile};
use super::{Blocks, THREADS, high, variant};
use crate::analysis::wavefronts;
use crate::data::Scalar;
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::Opcode;
use crate::manifest::Expr;
use cranelift_entity::EntitySet;

/// One way to stage a launch.
pub struct Transpose {
    pub condition: Expr,
    suffix: &'static str,
    position: usize,
    body: Block,
    blocks: Blocks,
    edge: i64,
    /// Scalars that a thread stores at once; 1 or more.
    lanes: i64,
    /// Threads side by side along the stores' axis.
    across: i64,
    tiles: Vec<Tile>,
    vector_stores: EntitySet<Inst>,
}

/// Bodies longer than this are not copied once an element.
const MAX_BODY: usize = 64;

/// Iterations of a tile along both axes, by the bytes of the widest scalar that is staged: a row is at least a line.
fn edge(bytes: u64) -> i64 {
    if bytes == 1 { 128 } else { 64 }
}

impl Transpose {
    /// The variants of a launch of this form, the best first.
    pub fn plans(mut pattern: Pattern<'_>) -> Option<Vec<Self>> {
        let kernel = pattern.kernel;
        if pattern.axes.len() < 2
            || pattern.reduce.is_some()
            || kernel.blocks[pattern.body].insts.len() > MAX_BODY
        {
            return None;
        }
        let stores = pattern.stores();
        let axes = pattern.axes.len();
        let along = (0..axes).find(|axis| {
            let index = pattern.index(*axis);
            !stores.is_empty() && stores.iter().all(|store| pattern.cost(*store, index) < SCATTERED / 2)
        })?;
        let (loads, across) = staged(&mut pattern, along)?;
        let width = loads.iter().map(|load| pattern.width(*load)).max()?;
        let edge = edge(width);
        let blocks = Blocks::new(&pattern, (along, edge), (across, edge));
        let sides = [across, along].map(|axis| Side { index: pattern.index(axis), size: edge });

        // As many scalars as every store that can take vectors can take at once.
        let (mut conditions, mut vector_stores) = (Conditions::default(), EntitySet::new());
        let top: Vec<Inst> = stores
            .iter()
            .copied()
            .filter(|store| kernel.blocks[pattern.body].insts.contains(store))
            .collect();
        let mut lanes = top.iter().map(|store| vector_lanes(&pattern, *store)).min().unwrap_or(1);
        for store in &top {
            match pattern.vector_condition(*store, &blocks.x.0, lanes as u64) {
                Some(needed) if lanes > 1 => {
                    conditions.extend(needed);
                    vector_stores.insert(*store);
                }
                _ => {}
            }
        }
        if vector_stores.is_empty() {
            lanes = 1;
        }
        let mut tiles = Vec::new();
        for load in &loads {
            let wanted = vector_lanes(&pattern, *load);
            let needed = pattern.vector_condition(*load, &blocks.y.0, wanted as u64).filter(|_| wanted > 1);
            let load_lanes = if needed.is_some() { wanted } else { 1 };
            conditions.extend(needed.unwrap_or_default());
            tiles.push(Tile::new(kernel, *load, (sides[0], sides[1]), load_lanes, THREADS, true)?);
        }
        let mut sizes = Conditions::default();
        for axis in [&blocks.x.0, &blocks.y.0] {
            sizes.at_least(&axis.extent, edge / 2);
        }
        sizes.fits_grid(&blocks.grid(kernel));

        let vectors = lanes > 1 || tiles.iter().any(|tile| tile.lanes > 1);
        let plain =
            tiles.iter().map(|tile| Tile::new(kernel, tile.load, (sides[0], sides[1]), 1, THREADS, true));
        let plain: Vec<Tile> = plain.collect::<Option<_>>()?;
        let make = |suffix, conditions: Conditions, lanes, tiles: Vec<Tile>, vector_stores| {
            let across = store_across(&pattern, &top, edge, lanes);
            let tiles = tiles.into_iter().map(|tile| padded(tile, lanes, across)).collect();
            Some(Self {
                condition: conditions.expression()?,
                suffix,
                position: pattern.position,
                body: pattern.body,
                blocks: blocks.clone(),
                edge,
                lanes,
                across,
                tiles,
                vector_stores,
            })
        };
        let mut plans = Vec::new();
        if vectors {
            let mut both = sizes.clone();
            both.extend(conditions.expression().filter(|all| *all != Expr::Bool(true)));
            plans.extend(make("tiled_vector", both, lanes, tiles, vector_stores));
        }
        plans.extend(make("tiled", sizes, 1, plain, EntitySet::new()));
        Some(plans)
    }

    /// The staged launch.
    pub fn generate(&self, kernel: &mut Kernel, launch: Launch) -> Launch {
        let grid = self.blocks.grid(kernel);
        variant(kernel, launch, self.position, self.suffix, grid, |emit, map| self.code(emit, map))
    }

    fn code(&self, emit: &mut Emit<'_>, mut map: ValueMap) {
        let (x, y) = self.blocks.start(emit, &mut map);
        let thread = emit.value(Opcode::ThreadIndex, Payload::None, &[]);
        emit.name(thread, "tid");
        let ends = [&self.blocks.x.0, &self.blocks.y.0].map(|axis| high(emit, axis));
        let zero = emit.int(0);
        let mut copiers = Vec::new();
        for tile in &self.tiles {
            let copier = Copier::new(emit, tile.clone(), 1, thread);
            let last = (emit.add_int(ends[1], -tile.lanes), emit.add_int(ends[0], -1));
            let values = copier.load(emit, &map, (y, x), (Some(last.0), Some(last.1)));
            copiers.push((copier, values));
        }
        for (copier, values) in &copiers {
            copier.store(emit, zero, values);
        }
        emit.barrier();

        let column = emit.rem_by(thread, self.across);
        let column = emit.mul_int(column, self.lanes);
        let row = emit.div_by(thread, self.across);
        let reader = Reader {
            plan: self,
            map: &map,
            column,
            row,
            x: emit.add(x, column),
            y: emit.add(y, row),
            copiers,
        };
        let whole = [x, y].map(|start| emit.add_int(start, self.edge));
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
        let x = |y| (0..self.edge).step_by(columns as usize).map(move |x| (x, y));
        (0..self.edge).step_by(rows as usize).flat_map(x).collect()
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
            let line = emit.mul_int(self.column, tile.pitch);
            let base = emit.add(line, self.row);
            let zero = emit.int(0);
            for (lane, map) in maps.iter_mut().enumerate() {
                let place = emit.add_int(base, tile.place(y, x + lane as i64));
                let value = emit.load(copier.buffer, 0, &[zero, place]);
                map.insert(emit.kernel.insts[tile.load].results[0], value);
            }
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

/// Scalars in 16 bytes, as far as an access can take as many.
fn vector_lanes(pattern: &Pattern<'_>, access: Inst) -> i64 {
    if pattern.scalar(access) == Scalar::Bool { 1 } else { (16 / pattern.width(access) as i64).min(8) }
}

/// Threads side by side for one store: they cover a line of the widest one.
fn store_across(pattern: &Pattern<'_>, stores: &[Inst], edge: i64, lanes: i64) -> i64 {
    let width = stores.iter().map(|store| pattern.width(*store)).max().unwrap_or(4) as i64;
    (128 / (width * lanes)).clamp(1, edge / lanes).max(THREADS / edge).min(32)
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

//! Writes the program of a block: each iteration of the loop's body is an element of tiles.

use super::blocks::Blocks;
use super::found::Found;
use crate::analysis::block_count;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Buffer, Inst, Launch, Value};
use crate::ir::kernel::{
    AxisSet, BlockData, InstData, Kernel, Payload, Phase, Short, Tile, TileAxis, Tiling,
};
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use crate::passes::numbers::divided;
use cranelift_entity::EntitySet;
use rustc_hash::{FxHashMap, FxHashSet};

/// The grid: one block after the other along x.
pub fn grid(kernel: &Kernel, found: &Found, blocks: &Blocks) -> [Expr; 3] {
    let counts = (0..found.axes.len()).map(|at| count(kernel, found, blocks, at));
    let times = |left, right| Expr::binary(BinaryOp::Mul, left, right);
    let count = counts.filter(|count| *count != Expr::Int(1)).reduce(times);
    [count.unwrap_or(Expr::Int(1)), Expr::Int(1), Expr::Int(1)]
}

/// Blocks along an axis.
fn count(kernel: &Kernel, found: &Found, blocks: &Blocks, at: usize) -> Expr {
    match blocks.whole == Some(at) {
        true => Expr::Int(1),
        false => block_count(kernel, &found.axes[at].extent, blocks.tiles[at]),
    }
}

/// A body of a launch that has all of the present one but a loop, with what stands for its values.
pub fn around(kernel: &mut Kernel, launch: Launch, forall: Inst) -> (Block, ValueMap) {
    let root = kernel.launches[launch].body;
    let body = kernel.blocks.push(BlockData::default());
    let mut map = ValueMap::default();
    for inst in kernel.blocks[root].insts.clone() {
        if inst != forall && kernel.insts[inst].opcode != Opcode::Yield {
            kernel.clone_inst(inst, body, &mut map);
        }
    }
    (body, map)
}

/// Makes a launch the program of one block, element by element, but for what is walked.
pub fn write(
    kernel: &mut Kernel,
    launch: Launch,
    found: &Found,
    (blocks, order): (&Blocks, &[usize]),
    walked: Option<Walked>,
) {
    let (body, map) = around(kernel, launch, found.forall);
    let grid = grid(kernel, found, blocks);
    let axes = axes(found, blocks);
    let span = kernel.insts[found.forall].span;
    let mut emit = Emit::sharing(kernel, body, span);
    let bases = bases(&mut emit, found, blocks, order);
    let masks = vec![None; found.axes.len()];
    let mut writer = Writer { emit: &mut emit, map, masks, of_axis: Vec::new(), only: None, walked };
    writer.coordinates(found, blocks, &bases);
    writer.block(found.body, None);
    let data = &mut kernel.launches[launch];
    (data.body, data.grid, data.threads) = (body, Some(grid), None);
    data.phase = Phase::Tiled;
    data.tiling = Some(Box::new(Tiling { axes, layouts: Vec::new() }));
}

/// The axes that the tiles have, under names of their own.
fn axes(found: &Found, blocks: &Blocks) -> Vec<TileAxis> {
    let mut axes: Vec<TileAxis> = Vec::new();
    for (at, by, extent) in blocks.axes() {
        let stem = &found.axes[at].name;
        let vector = blocks.vectors[at];
        let stem = if vector > 1 && by == 1 { format!("{stem}_{vector}") } else { stem.clone() };
        let plain = |text: &str| text.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
        let stem = if plain(&stem) && !stem.is_empty() && stem != "_" { stem } else { format!("axis{at}") };
        let names = (1..).map(|number| if number == 1 { stem.clone() } else { format!("{stem}_{number}th") });
        let name = names.into_iter().find(|name| axes.iter().all(|axis| axis.name != *name));
        axes.push(TileAxis { name: name.unwrap_or_default(), extent });
    }
    axes
}

/// The first iteration of the block along each axis. Blocks that follow each other do so along the axes in this order.
fn bases(emit: &mut Emit<'_>, found: &Found, blocks: &Blocks, order: &[usize]) -> Vec<Value> {
    let count = |emit: &Emit<'_>, at: usize| count(emit.kernel, found, blocks, at);
    let several: Vec<usize> = order.iter().copied().filter(|at| count(emit, *at) != Expr::Int(1)).collect();
    let mut number = emit.value(Opcode::BlockIndex, Payload::Grid(0), &[]);
    emit.name(number, "block");
    let mut bases: Vec<Value> = found.axes.iter().map(|axis| emit.expression(&axis.low)).collect();
    for (position, at) in several.iter().enumerate() {
        let place = if position + 1 == several.len() {
            number
        } else {
            let count = count(emit, *at);
            let count = emit.expression(&count);
            let (rest, place) = divided(emit, number, count);
            number = rest;
            place
        };
        let offset = emit.mul_int(place, blocks.tiles[*at]);
        bases[*at] = emit.add(bases[*at], offset);
    }
    bases
}

/// Writes a loop's body as tiles.
pub struct Writer<'e, 'k> {
    pub emit: &'e mut Emit<'k>,
    /// What stands for the values of the loop's body. What stands for all results of an instruction is there already.
    pub map: ValueMap,
    /// Of each axis of the loop: which elements lie inside; `None` where all do.
    pub masks: Vec<Option<Value>>,
    /// Which axis of the loop an axis of tiles belongs to.
    pub of_axis: Vec<usize>,
    /// The instructions that are written; `None` where all are.
    pub only: Option<&'e EntitySet<Inst>>,
    /// The axis that loops and reductions in the body go along, if there are any.
    pub walked: Option<Walked>,
}

/// An axis of the tiles that loops and reductions of the body go along, each of them all of it.
pub struct Walked {
    /// The axis, as one of the loop's.
    pub axis: usize,
    /// Its index, in one of them.
    pub index: Value,
    /// Loads that find what an earlier one has brought.
    pub same: FxHashMap<Inst, Inst>,
    /// Arrays of the iterations' own, which are tiles.
    pub own: FxHashSet<Buffer>,
    /// What was written to them last.
    pub held: FxHashMap<(Buffer, u32), Value>,
    /// Whether what is written stands in one of the loops.
    pub is_inside: bool,
}

impl Writer<'_, '_> {
    /// The coordinates along all axes, and the masks.
    fn coordinates(&mut self, found: &Found, blocks: &Blocks, bases: &[Value]) {
        let axes = blocks.axes();
        self.of_axis = axes.iter().map(|(at, ..)| *at).collect();
        let emit = &mut *self.emit;
        for (at, axis) in found.axes.iter().enumerate() {
            let mut coordinate = bases[at];
            let mut mask = None;
            let (tile, vector) = (blocks.tiles[at], blocks.vectors[at]);
            let is_whole = matches!(axis.extent, Expr::Int(extent) if extent % tile == 0);
            for (number, (_, by, _)) in axes.iter().enumerate().filter(|(_, (of, ..))| *of == at) {
                if *by == 1 && vector > 1 {
                    // All of a vector is inside, or nothing.
                    mask = Some(coordinate);
                }
                let index = emit.value(Opcode::Index, Payload::Index(number as u8), &[]);
                let index = emit.mul_int(index, *by);
                coordinate = emit.add(coordinate, index);
            }
            if !is_whole && tile > 1 {
                let (low, extent) = (emit.expression(&axis.low), emit.expression(&axis.extent));
                let high = emit.add(low, extent);
                let tested = mask.unwrap_or(coordinate);
                let less = mutant!("tile: one more than lies inside", Opcode::Lt, Opcode::Le);
                self.masks[at] = Some(emit.binary(less, tested, high));
            }
            emit.name(coordinate, &axis.name);
            self.map.insert(axis.index, coordinate);
        }
    }

    /// Both conditions, as far as there are any.
    pub fn both(&mut self, left: Option<Value>, right: Option<Value>) -> Option<Value> {
        match (left, right) {
            (Some(left), Some(right)) => Some(self.emit.binary(Opcode::And, left, right)),
            (left, right) => left.or(right),
        }
    }

    /// Which elements of these axes lie inside, and where a condition holds.
    fn mask(&mut self, axes: AxisSet, guard: Option<Value>) -> Option<Value> {
        let own = guard.map_or(AxisSet::EMPTY, |guard| self.emit.kernel.tile(guard).axes);
        let mut of_loop: Vec<usize> = axes.union(own).iter().map(|axis| self.of_axis[axis]).collect();
        of_loop.sort_unstable();
        of_loop.dedup();
        let mut mask = None;
        for at in of_loop {
            mask = self.both(mask, self.masks[at]);
        }
        self.both(mask, guard)
    }

    /// The axes that what is written now has.
    fn within(&self) -> AxisSet {
        let outside = self.walked.as_ref().filter(|walked| !walked.is_inside).map(|walked| walked.axis);
        (0..self.of_axis.len()).filter(|at| Some(self.of_axis[*at]) != outside).collect()
    }

    /// All masks.
    fn inside(&mut self, guard: Option<Value>) -> Option<Value> {
        self.mask(self.within(), guard)
    }

    /// The axes of values.
    fn axes(&self, values: &[Value]) -> AxisSet {
        values.iter().fold(AxisSet::EMPTY, |axes, value| axes.union(self.emit.kernel.tile(*value).axes))
    }

    /// Gives one of the operands all axes of the others, and these, so that it says where elements are.
    fn widen(&mut self, operands: &mut [Value], which: usize, axes: AxisSet) {
        let all = self.axes(operands).union(axes);
        if operands.iter().any(|value| self.emit.kernel.tile(*value).axes == all) {
            return;
        }
        let wide = self.emit.value(Opcode::Convert, Payload::None, &[operands[which]]);
        self.emit.kernel.values[wide].tile = Tile { axes: all, layout: None };
        operands[which] = wide;
    }

    /// Writes what a block does where a condition holds; what it yields.
    pub fn block(&mut self, block: Block, guard: Option<Value>) -> Vec<Value> {
        let mut yields = Vec::new();
        for inst in self.emit.kernel.blocks[block].insts.clone() {
            let data = &self.emit.kernel.insts[inst];
            let is_yield = data.opcode == Opcode::Yield;
            let is_there =
                !data.results.is_empty() && data.results.iter().all(|value| self.map.contains_key(value));
            let is_wanted = is_yield || self.only.is_none_or(|only| only.contains(inst));
            if is_there || !is_wanted {
                continue;
            }
            let operands: Vec<Value> = self.emit.kernel.insts[inst]
                .arguments
                .iter()
                .map(|value| mapped(&self.map, *value))
                .collect();
            self.emit.span = self.emit.kernel.insts[inst].span;
            if self.emit.kernel.insts[inst].opcode == Opcode::Yield {
                yields = operands;
            } else {
                self.inst(inst, operands, guard);
            }
        }
        yields
    }

    /// A loop or a reduction along the walked axis: its iterations are elements.
    fn walk(&mut self, data: &InstData, guard: Option<Value>) {
        let Some(walked) = &mut self.walked else { return };
        walked.is_inside = true;
        let axis = walked.axis;
        let coordinate = mapped(&self.map, walked.index);
        let region = data.regions[0];
        self.map.insert(self.emit.kernel.blocks[region].params[0], coordinate);
        let mut operands = self.block(region, guard);
        self.walked.iter_mut().for_each(|walked| walked.is_inside = false);
        let Payload::Reduce { combiners, .. } = &data.payload else { return };
        let mask = self.both(mutant!("tile: iterations past the end count", self.masks[axis], None), guard);
        operands.extend(mask);
        let along: AxisSet = (0..self.of_axis.len()).filter(|at| self.of_axis[*at] == axis).collect();
        self.widen(&mut operands, 0, along);
        let axes = self.axes(&operands).without(along);
        let payload = Payload::Along { axes: along, combiners: combiners.clone() };
        let inst = self.emit.bare_inst(Opcode::ReduceAlong, payload, Short::from_slice(&operands));
        for old in &data.results {
            let value = self.emit.kernel.clone_result(*old, inst);
            self.emit.kernel.values[value].tile = Tile { axes, layout: None };
            self.map.insert(*old, value);
        }
    }

    /// What a load finds that was brought before, or written by the iteration itself.
    fn held(&self, inst: Inst, data: &InstData) -> Option<Value> {
        let walked = self.walked.as_ref()?;
        let of_own = || match data.payload {
            Payload::Access { buffer, leaf } => walked.held.get(&(buffer, leaf)).copied(),
            _ => None,
        };
        let earlier = walked.same.get(&inst).and_then(|earlier| {
            let value = self.emit.kernel.insts[*earlier].results.first()?;
            self.map.get(value).copied()
        });
        earlier.or_else(of_own)
    }

    /// Whether a store is to an iteration's own array, which is a tile then.
    fn holds(&mut self, data: &InstData, mut value: Value) -> bool {
        let (Some(walked), Payload::Access { buffer, leaf }) = (&mut self.walked, &data.payload) else {
            return false;
        };
        let is_own = walked.own.contains(buffer);
        if is_own {
            let scalar = self.emit.kernel.buffers[*buffer].element.leaves[*leaf as usize].scalar;
            if scalar.is_narrow() {
                // As it would lie in memory.
                value = self.emit.value(Opcode::Cast, Payload::Cast(scalar), &[value]);
            }
            walked.held.insert((*buffer, *leaf), value);
        }
        is_own
    }

    fn inst(&mut self, inst: Inst, mut operands: Vec<Value>, guard: Option<Value>) {
        let data = self.emit.kernel.insts[inst].clone();
        let result = match data.opcode {
            Opcode::Reduce | Opcode::Forall => {
                self.walk(&data, guard);
                return;
            }
            Opcode::Load if self.held(inst, &data).is_some() => self.held(inst, &data),
            Opcode::Store if self.holds(&data, operands[operands.len() - 1]) => None,
            Opcode::If => {
                let condition = operands[0];
                let then = self.both(guard, Some(condition));
                let then = self.block(data.regions[0], then);
                let not = self.emit.value(Opcode::Not, Payload::None, &[condition]);
                let otherwise = mutant!("tile: the other side of a branch is masked alike", not, condition);
                let otherwise = self.both(guard, Some(otherwise));
                let otherwise = self.block(data.regions[1], otherwise);
                for ((result, then), otherwise) in data.results.iter().zip(then).zip(otherwise) {
                    let value = self.emit.select(condition, then, otherwise);
                    self.map.insert(*result, value);
                }
                return;
            }
            Opcode::Load | Opcode::LoadIf => {
                let own = (data.opcode == Opcode::LoadIf).then(|| operands.pop()).flatten();
                let guard = self.both(guard, own);
                let mask = self.mask(self.axes(&operands), guard);
                let opcode = if mask.is_some() { Opcode::LoadIf } else { Opcode::Load };
                operands.extend(mask);
                Some(self.emit.value(opcode, data.payload, &operands))
            }
            Opcode::Store | Opcode::StoreIf => {
                let own = (data.opcode == Opcode::StoreIf).then(|| operands.pop()).flatten();
                let guard = self.both(guard, own);
                let mask = self.inside(guard);
                let value = operands.len() - 1;
                let opcode = if mask.is_some() { Opcode::StoreIf } else { Opcode::Store };
                operands.extend(mask);
                self.widen(&mut operands, value, AxisSet::EMPTY);
                self.emit.inst(opcode, data.payload, &operands)
            }
            Opcode::Check => {
                let mask = self.mask(self.axes(&operands), guard);
                if let Some(mask) = mask {
                    let outside = self.emit.value(Opcode::Not, Payload::None, &[mask]);
                    operands[0] = self.emit.binary(Opcode::Or, operands[0], outside);
                }
                self.widen(&mut operands, 0, AxisSet::EMPTY);
                self.emit.inst(Opcode::Check, data.payload, &operands)
            }
            opcode => self.emit.inst(opcode, data.payload, &operands),
        };
        if let (Some(old), Some(new)) = (data.results.first(), result) {
            if let Some(name) = self.emit.kernel.values[*old].name.clone() {
                self.emit.name(new, &name);
            }
            self.map.insert(*old, new);
        }
    }
}

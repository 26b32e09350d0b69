//! `layouts`: says of each tile which register of which thread holds which element.

use super::found::{buffer_of, scalar_of, stand_in};
use super::ways::{self, Assignment};
use crate::analysis::Affine;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{
    AxisSet, BlockData, InstData, Kernel, Payload, Phases, Regions, Short, Tile, TileAxis,
};
use crate::ir::op::{Effect, Opcode};
use crate::layout::ValueLayout;
use crate::mutants::mutant;
use crate::passes::pass::{Changed, Pass, PassContext};
use rustc_hash::{FxHashMap, FxHashSet};

/// Values without layouts get them.
///
/// ```text
/// launch … tiled grid […] axes [j: 64, i: 64] {
///     x: f32 {j, i} = load_if buf0[i, j], inside
///     store_if buf1[j, i], x, inside
/// →
/// launch … tiled threads 256 grid […] axes [j: 64, i: 64] layouts ["j = …, i = … · lane:32", "i = …, j = … · lane:32", …] {
///     x: f32 {j, i} layout1 = load_if buf0[i, j], inside        coordinates and masks computed for layout1
///     y: f32 {j, i} layout0 = convert x
///     store_if buf1[j, i], y, inside                            and for layout0
/// ```
///
/// What is computed element by element has one layout. An access that costs more in it than in its own, with a conversion on
/// top, has its own (`ways.rs`). Coordinates, and what follows from them alone, are computed in each layout rather than
/// converted. Loads whose subscripts follow from coordinates come first, so that all are under way before anything waits; what lacks
/// an axis, as a gain, is near, and comes where it is used.
///
/// Takes straight programs, with reductions and without control. Others are left open, and say their layouts themselves.
pub struct Layouts;

impl Pass for Layouts {
    fn name(&self) -> &str {
        "layouts"
    }

    fn reason(&self) -> &str {
        "gives tiles their layouts: neighbouring lanes access neighbours, conversions stand between"
    }

    fn needs(&self) -> Phases {
        Phases::TILED
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            if !kernel.launches[launch].is_placed() {
                changed |= place(kernel, launch).is_some();
            }
        }
        changed.into()
    }
}

/// Gives the tiles of a launch their layouts; `None` where it is no straight program.
fn place(kernel: &mut Kernel, launch: Launch) -> Option<()> {
    let tiling = kernel.launches[launch].tiling.clone()?;
    let body = kernel.launches[launch].body;
    let insts = kernel.blocks[body].insts.clone();
    let is_straight = |inst: &Inst| {
        let data = &kernel.insts[*inst];
        let is_collective = data.opcode.info().effect == Effect::Collective;
        let is_taken = !is_collective || data.opcode == Opcode::ReduceAlong;
        data.regions.is_empty() && is_taken && data.opcode != Opcode::Atomic
    };
    if tiling.axes.is_empty() || !insts.iter().all(is_straight) {
        return None;
    }
    let (axes, accesses) = accesses(kernel, &tiling.axes, &insts);
    let threads = ways::threads(axes.iter().map(|axis| axis.extent).product());
    let shapes: Vec<ways::Access> = accesses.iter().map(|(_, access)| access.clone()).collect();
    let Assignment { main, own, .. } = ways::assign(&axes, &shapes, threads)?;
    let mut layouts = vec![main.layout(&axes, threads)?];
    let mut homes = FxHashMap::default();
    for ((inst, _), way) in accesses.iter().zip(own) {
        let Some(way) = way else { continue };
        let layout = way.layout(&axes, threads)?;
        let known = layouts.iter().position(|known| *known == layout);
        homes.insert(*inst, known.unwrap_or(layouts.len()));
        if known.is_none() {
            layouts.push(layout);
        }
    }
    let name = kernel.launches[launch].name.clone();
    for text in texts(kernel, &layouts, &accesses, &homes) {
        kernel.schedule.remark(&name, text);
    }
    let fresh = kernel.blocks.push(BlockData::default());
    let written = written(kernel, &insts);
    let mut placing = Placing {
        kernel,
        body: fresh,
        axes: &tiling.axes,
        layouts,
        homes,
        table: Vec::new(),
        values: FxHashMap::default(),
    };
    for inst in &insts {
        let data = &placing.kernel.insts[*inst];
        let is_early = data.opcode.is_load()
            && placing.is_whole(*inst)
            && !mutant!(
                "layouts: a load comes before a store of its array",
                buffer_of(placing.kernel, *inst).is_some_and(|buffer| written.contains(&buffer)),
                false
            )
            && placing.follows_from_coordinates(&data.arguments.clone());
        if is_early {
            placing.access(*inst);
        }
    }
    for inst in &insts {
        let is_pure = placing.kernel.insts[*inst].opcode.info().effect == Effect::Pure;
        if !is_pure {
            placing.access(*inst);
        }
    }
    let table = placing.table;
    let data = &mut kernel.launches[launch];
    (data.body, data.threads) = (fresh, Some(threads as u32));
    if let Some(tiling) = &mut data.tiling {
        tiling.layouts = table;
    }
    Some(())
}

/// Arrays that a program writes.
fn written(kernel: &Kernel, insts: &[Inst]) -> FxHashSet<crate::ir::entities::Buffer> {
    let writes = insts.iter().filter(|inst| kernel.insts[**inst].opcode.info().effect == Effect::Write);
    writes.filter_map(|inst| buffer_of(kernel, *inst)).collect()
}

/// The accesses of a program, and its axes: one whose elements lie within the widest access, and on which no mask depends, is
/// a vector.
fn accesses(
    kernel: &Kernel,
    axes: &[TileAxis],
    insts: &[Inst],
) -> (Vec<ways::Axis>, Vec<(Inst, ways::Access)>) {
    let is_access = |inst: &&Inst| matches!(kernel.insts[**inst].payload, Payload::Access { .. });
    let all: Vec<Inst> = insts.iter().filter(is_access).copied().collect();
    let mut masked = AxisSet::EMPTY;
    for inst in &all {
        let data = &kernel.insts[*inst];
        if matches!(data.opcode, Opcode::LoadIf | Opcode::StoreIf)
            && let Some(mask) = data.arguments.last()
        {
            masked = masked.union(kernel.tile(*mask).axes);
        }
    }
    let indices: Vec<(usize, Value)> = insts
        .iter()
        .filter_map(|inst| match kernel.insts[*inst].payload {
            Payload::Index(axis) => Some((usize::from(axis), kernel.insts[*inst].results[0])),
            _ => None,
        })
        .collect();
    let written = written(kernel, insts);
    let mut affine = Affine::new(kernel);
    let mut found = Vec::new();
    for inst in all.iter().copied() {
        let data = &kernel.insts[inst];
        let mut steps = vec![0i64; axes.len()];
        for (axis, index) in &indices {
            let step = match affine.step(inst, *index) {
                Some(Some(step)) => step.as_wrapped().unwrap_or_else(|| stand_in(&step)),
                _ => i64::MAX >> 24,
            };
            steps[*axis] = steps[*axis].saturating_add(step);
        }
        let stores = !data.opcode.is_load();
        let conditional = matches!(data.opcode, Opcode::LoadIf | Opcode::StoreIf);
        let mask = data.arguments.last().filter(|_| conditional);
        let places: Vec<Value> = kernel.subscripts(data).iter().chain(mask).copied().collect();
        let buffer = buffer_of(kernel, inst);
        let several = all.iter().filter(|other| buffer_of(kernel, **other) == buffer).count() > 1;
        let in_place = several && buffer.is_some_and(|buffer| written.contains(&buffer));
        let is_movable = !in_place && follows_from_coordinates(kernel, &places);
        let bytes = scalar_of(kernel, inst).size();
        found.push((inst, ways::Access { steps, bytes, stores, is_movable }));
    }
    let axis = |(at, axis): (usize, &TileAxis)| ways::Axis {
        name: axis.name.clone(),
        extent: axis.extent,
        is_vector: !masked.contains(at)
            && found.iter().any(|(_, access)| {
                access.steps[at] == access.bytes as i64 && axis.extent * access.bytes <= ways::VECTOR
            }),
    };
    (axes.iter().enumerate().map(axis).collect(), found)
}

/// Whether values are computed from coordinates, sizes and numbers of blocks, without memory.
fn follows_from_coordinates(kernel: &Kernel, values: &[Value]) -> bool {
    let mut seen = FxHashSet::default();
    let mut open = values.to_vec();
    while let Some(value) = open.pop() {
        let Some(data) = kernel.definition_data(value) else { return false };
        if data.opcode.info().effect != Effect::Pure {
            return false;
        }
        if seen.insert(value) {
            open.extend(&data.arguments);
        }
    }
    true
}

/// What is said of the layouts: which there are, and which arrays are accessed in another one than the first.
fn texts(
    kernel: &Kernel,
    layouts: &[ValueLayout],
    accesses: &[(Inst, ways::Access)],
    homes: &FxHashMap<Inst, usize>,
) -> Vec<String> {
    let mut texts = vec![format!("tiles lie as {}", layouts[0])];
    for (number, layout) in layouts.iter().enumerate().skip(1) {
        let of = accesses.iter().filter(|(inst, _)| homes.get(inst) == Some(&number));
        let mut names: Vec<String> = of
            .filter_map(|(inst, _)| Some(format!("`{}`", kernel.buffers[buffer_of(kernel, *inst)?].name)))
            .collect();
        names.dedup();
        texts.push(format!("{} through shared memory, as {layout}", names.join(", ")));
    }
    texts
}

/// A program on its way to layouts.
struct Placing<'k> {
    kernel: &'k mut Kernel,
    body: Block,
    axes: &'k [TileAxis],
    /// Of whole tiles: the main one first.
    layouts: Vec<ValueLayout>,
    /// Accesses that have another layout than the main one.
    homes: FxHashMap<Inst, usize>,
    /// The layouts that tiles have, of all sets of axes.
    table: Vec<ValueLayout>,
    /// What stands for a value in a layout.
    values: FxHashMap<(Value, usize), Value>,
}

impl Placing<'_> {
    /// Whether an access goes along all axes.
    fn is_whole(&self, inst: Inst) -> bool {
        let tile = self.kernel.whole_tile(self.kernel.insts[inst].arguments.iter());
        tile.is_some_and(|tile| (0..self.axes.len()).all(|axis| tile.axes.contains(axis)))
    }

    fn follows_from_coordinates(&self, values: &[Value]) -> bool {
        follows_from_coordinates(self.kernel, values)
    }

    /// The shape of a tile with some axes in a layout.
    fn tile(&mut self, axes: AxisSet, layout: usize) -> Tile {
        if axes.is_empty() {
            return Tile::SCALAR;
        }
        let lacking = self.axes.iter().enumerate().filter(|(at, _)| !axes.contains(*at));
        let of = mutant!("layouts: a value without some axes lies as others", layout, 0);
        let whole = self.layouts[of].clone();
        let sliced = lacking.fold(whole, |layout, (_, axis)| layout.slice(&axis.name).unwrap_or(layout));
        let known = self.table.iter().position(|known| *known == sliced);
        let number = known.unwrap_or_else(|| {
            self.table.push(sliced);
            self.table.len() - 1
        });
        Tile { axes, layout: Some(number as u16) }
    }

    /// Appends a copy of an instruction on other operands. Its results, with axes as before, stand in a layout for the
    /// instruction's.
    fn copy(&mut self, inst: Inst, operands: &[Value], layout: usize) {
        let InstData { opcode, payload, results, span, .. } = self.kernel.insts[inst].clone();
        let arguments = Short::from_slice(operands);
        let data =
            InstData { opcode, payload, arguments, results: Short::new(), regions: Regions::new(), span };
        let copy = self.kernel.insts.push(data);
        self.kernel.blocks[self.body].insts.push(copy);
        for old in results {
            let value = self.kernel.clone_result(old, copy);
            let axes = self.kernel.tile(old).axes;
            self.kernel.values[value].tile = self.tile(axes, layout);
            // What is the same for the whole block has no layout.
            self.values.insert((old, if axes.is_empty() { 0 } else { layout }), value);
        }
    }

    /// A value in a layout.
    fn value(&mut self, value: Value, layout: usize) -> Value {
        let is_scalar = self.kernel.tile(value).axes.is_empty();
        let layout = if is_scalar { 0 } else { layout };
        if let Some(known) = self.values.get(&(value, layout)) {
            return *known;
        }
        let Some(inst) = self.kernel.defining_inst(value) else { return value };
        let is_pure = self.kernel.insts[inst].opcode.info().effect == Effect::Pure;
        let home = if is_pure { 0 } else { self.homes.get(&inst).copied().unwrap_or(0) };
        if is_pure && (layout == 0 || self.follows_from_coordinates(&[value])) {
            let operands = self.operands(inst, layout);
            self.copy(inst, &operands, layout);
        } else if is_scalar {
            // Loads of what is the same for the whole block stand where they stood.
            self.access(inst);
        } else {
            let from = self.value(value, home);
            let converted = self.convert(value, from, layout);
            self.values.insert((value, layout), converted);
        }
        self.values[&(value, layout)]
    }

    fn operands(&mut self, inst: Inst, layout: usize) -> Vec<Value> {
        let arguments = self.kernel.insts[inst].arguments.clone();
        arguments.iter().map(|value| self.value(*value, layout)).collect()
    }

    fn convert(&mut self, like: Value, from: Value, layout: usize) -> Value {
        let span =
            self.kernel.defining_inst(like).map_or(self.kernel.span, |inst| self.kernel.insts[inst].span);
        let inst = self.kernel.make_inst(Opcode::Convert, Payload::None, &[from], span);
        self.kernel.blocks[self.body].insts.push(inst);
        let result = self.kernel.insts[inst].results[0];
        let tile = self.tile(self.kernel.tile(like).axes, layout);
        self.kernel.values[result].tile = tile;
        self.kernel.values[result].name = self.kernel.values[like].name.clone();
        mutant!("layouts: an access in a layout of its own is not converted", result, from)
    }

    /// Appends an access, or a check, in its layout, unless it stands there already.
    fn access(&mut self, inst: Inst) {
        let home = self.homes.get(&inst).copied().unwrap_or(0);
        let result = self.kernel.insts[inst].results.first().copied();
        // What is the same for the whole block has no layout.
        let at = |this: &Self, value: Value| if this.kernel.tile(value).axes.is_empty() { 0 } else { home };
        if result.is_some_and(|value| self.values.contains_key(&(value, at(self, value)))) {
            return;
        }
        let operands = self.operands(inst, home);
        self.copy(inst, &operands, home);
    }
}

//! What holds of tiles: in launches of phase `tiled`, and that there are none in others. Runs on kernels whose structure and
//! types hold.

use super::Verifier;
use crate::atoms::Fit;
use crate::data::Scalar;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Atom, AxisSet, BufferKind, FactorType, LaunchData, Payload, Phase, Tile, Tiling};
use crate::ir::op::{Effect, Opcode};
use crate::ir::typing::result_axes;
use crate::layout::{Dimension, ValueLayout};

/// The largest tile, in elements.
const MOST_ELEMENTS: u64 = 1 << 20;

impl Verifier<'_> {
    /// The rules of a launch's tiles.
    pub(super) fn tiles(&mut self, launch: &LaunchData, place: &str) {
        match (&launch.tiling, launch.phase) {
            (Some(tiling), Phase::Tiled) => {
                self.tiling(tiling, launch, place);
                if self.errors.is_empty() {
                    self.tile_block(launch.body, (launch, tiling));
                }
            }
            (None, Phase::Tiled) => {
                self.report(|| place.to_string(), "a launch of phase `tiled` declares the axes of its tiles");
            }
            (Some(_), _) => self.report(|| place.to_string(), "axes of tiles are for the phase `tiled`"),
            (None, _) => self.scalars(launch.body),
        }
    }

    /// What the launch declares.
    fn tiling(&mut self, tiling: &Tiling, launch: &LaunchData, place: &str) {
        for (at, axis) in tiling.axes.iter().enumerate() {
            if tiling.axes[..at].iter().any(|other| other.name == axis.name) {
                self.report(|| place.to_string(), format!("two axes of tiles are called `{}`", axis.name));
            }
            if axis.extent == 0 || axis.extent > MOST_ELEMENTS {
                let message =
                    format!("`{}` has {} elements: not 1 to {MOST_ELEMENTS}", axis.name, axis.extent);
                self.report(|| place.to_string(), message);
            }
        }
        let Some(threads) = launch.threads.map(u64::from) else {
            if !tiling.layouts.is_empty() {
                self.report(|| place.to_string(), "a launch whose tiles have layouts says its threads");
            }
            return;
        };
        if tiling.layouts.is_empty() {
            self.report(|| place.to_string(), "threads are for launches whose tiles have layouts");
        }
        for layout in &tiling.layouts {
            let [lanes, warps, blocks] =
                [Dimension::Lane, Dimension::Warp, Dimension::Cluster].map(|of| layout.extent(of));
            if lanes != 32 || lanes * warps != threads || blocks != 1 {
                let message =
                    format!("{warps} warps of {lanes} lanes are not the launch's {threads} threads");
                self.report(|| format!("`{layout}`"), message);
            }
            for (name, extent) in layout.axes() {
                if tiling.axis(name).is_none_or(|axis| tiling.axes[axis].extent != extent) {
                    let message = format!("the launch has no axis `{name}` of {extent} elements");
                    self.report(|| format!("`{layout}`"), message);
                }
            }
        }
    }

    /// That all values of a block, and in it, are scalars.
    fn scalars(&mut self, block: Block) {
        let kernel = self.kernel;
        let mut found = Vec::new();
        kernel.walk(block, &mut |_, inst| {
            let data = &kernel.insts[inst];
            let params = data.regions.iter().flat_map(|region| &kernel.blocks[*region].params);
            let is_tile =
                |value: &Value| kernel.tile(*value) != Tile::SCALAR || kernel.value_type(*value).is_narrow();
            if data.results.iter().chain(params).any(is_tile) {
                found.push(inst);
            }
        });
        let message = "a tile, or a value of a storage type, outside of phase `tiled`";
        found.into_iter().for_each(|inst| self.fail(inst, message));
    }

    fn tile_block(&mut self, block: Block, launch: (&LaunchData, &Tiling)) {
        let kernel = self.kernel;
        for inst in &kernel.blocks[block].insts {
            self.tile_inst(*inst, launch);
            for region in &kernel.insts[*inst].regions {
                for param in &kernel.blocks[*region].params {
                    self.tile_value(*inst, *param, launch);
                }
                self.tile_block(*region, launch);
            }
        }
    }

    /// That the axes of a value are the launch's, and that it has a layout of just these where the launch is placed.
    fn tile_value(&mut self, inst: Inst, value: Value, (launch, tiling): (&LaunchData, &Tiling)) {
        let tile = self.kernel.tile(value);
        if tile.axes.iter().any(|axis| axis >= tiling.axes.len()) {
            self.fail(inst, format!("`{value}` has an axis that the launch does not declare"));
            return;
        }
        if tiling.elements(tile.axes) > MOST_ELEMENTS {
            self.fail(inst, format!("`{value}` has more than {MOST_ELEMENTS} elements"));
        }
        let scalar = self.kernel.value_type(value);
        if tile.axes.is_empty() {
            if scalar.is_narrow() && scalar != Scalar::Bool {
                self.fail(inst, format!("`{value}` is a scalar of a storage type, which only tiles have"));
            }
            if tile.layout.is_some() {
                self.fail(inst, format!("`{value}` is a scalar, which has no layout"));
            }
            return;
        }
        match (tile.layout, tiling.layout(tile)) {
            (None, _) if !launch.is_placed() => {}
            (None, _) => self.fail(inst, format!("`{value}` has no layout, as other tiles have")),
            (Some(number), None) => {
                self.fail(inst, format!("`layout{number}` is not declared"));
            }
            (Some(_), Some(layout)) => {
                let named: AxisSet = layout.axes().iter().filter_map(|(name, _)| tiling.axis(name)).collect();
                if scalar.is_narrow() && scalar != Scalar::Bool && !has_whole_words(layout, scalar) {
                    let message = format!(
                        "`{value}` has parts of words: its registers are no multiple of {}, or some hold the same",
                        4 / scalar.size()
                    );
                    self.fail(inst, message);
                }
                if named != tile.axes {
                    let axes = tiling.names(named).join(", ");
                    self.fail(inst, format!("`{value}` has another layout's axes: that of {{{axes}}}"));
                }
            }
        }
    }

    fn tile_inst(&mut self, inst: Inst, launch: (&LaunchData, &Tiling)) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        for result in &data.results {
            self.tile_value(inst, *result, launch);
        }
        if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = data.payload
            && kernel.buffers[buffer].kind == BufferKind::Private
        {
            self.fail(inst, "an access of a thread's own memory in what a whole block does");
        }
        if let (Opcode::Address, Payload::Access { buffer, .. }) = (data.opcode, &data.payload)
            && self.writes(launch.0.body, *buffer)
        {
            self.fail(inst, "an address of what the launch writes: nothing says when it is read there");
        }
        match data.opcode {
            Opcode::If | Opcode::For | Opcode::While => self.control(inst, launch),
            Opcode::Yield => {}
            Opcode::ReduceAlong => self.along(inst, launch),
            Opcode::Contract => self.contraction(inst, launch),
            Opcode::Convert => self.at_least(inst, AxisSet::EMPTY),
            _ => {
                self.at_least(inst, AxisSet::EMPTY);
                self.one_layout(inst, launch);
            }
        }
    }

    /// Whether something in a block writes to a buffer.
    fn writes(&self, block: Block, buffer: Buffer) -> bool {
        let mut found = false;
        self.kernel.walk(block, &mut |_, inst| {
            let data = &self.kernel.insts[inst];
            if let Payload::Access { buffer: other, .. } | Payload::Atomic { buffer: other, .. } =
                data.payload
            {
                found |= other == buffer && data.opcode.info().effect == Effect::Write;
            }
        });
        found
    }

    /// That results have the axes of the operands, without some; they may have more.
    fn at_least(&mut self, inst: Inst, without: AxisSet) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let axes = result_axes(kernel, &data.payload, &data.arguments).without(without);
        for result in &data.results {
            if !kernel.tile(*result).axes.has_all(axes) {
                self.fail(inst, format!("`{result}` lacks an axis of the operands"));
            }
        }
    }

    /// That the operands and the results of an op lie alike: each has the layout of the one with all axes, without the axes
    /// that it lacks.
    fn one_layout(&mut self, inst: Inst, (launch, tiling): (&LaunchData, &Tiling)) {
        if !launch.is_placed() || !self.errors.is_empty() {
            return;
        }
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let values = data.results.iter().chain(&data.arguments);
        let Some(whole) = kernel.whole_tile(values.clone()) else {
            self.fail(inst, "no operand has all axes of the others: one says where elements are");
            return;
        };
        for value in values {
            let tile = kernel.tile(*value);
            if tile.layout != whole.layout && !lies_as(tiling, tile, whole) {
                self.fail(inst, format!("`{value}` does not lie as the other operands do"));
            }
        }
    }

    /// A reduction along axes that its operands have, of values that lie alike.
    fn along(&mut self, inst: Inst, (launch, tiling): (&LaunchData, &Tiling)) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let Payload::Along { axes, .. } = data.payload else { return };
        let all =
            data.arguments.iter().fold(AxisSet::EMPTY, |all, value| all.union(kernel.tile(*value).axes));
        if axes.is_empty() || !all.has_all(axes) {
            self.fail(inst, "its operands lack an axis that it is along");
            return;
        }
        for result in &data.results {
            if kernel.tile(*result).axes != all.without(axes) {
                self.fail(inst, format!("`{result}` has other axes than those that are left"));
            }
        }
        self.one_layout(inst, (launch, tiling));
        let whole = kernel.whole_tile(data.arguments.iter());
        if let Some(layout) = whole.and_then(|tile| tiling.layout(tile)) {
            for axis in axes.iter().map(|axis| &tiling.axes[axis].name) {
                if !meets_in_bits(layout, axis) {
                    self.fail(inst, format!("lanes of `{axis}` do not meet by shuffles: convert it first"));
                }
            }
        }
    }

    /// A contraction: along axes that both factors have, of factors whose other axes are the result's. Each thread has what
    /// its results need: of both factors all steps, and the rows and columns of its results.
    fn contraction(&mut self, inst: Inst, (launch, tiling): (&LaunchData, &Tiling)) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let (Payload::Contract { along, atom }, [left, right, sum]) = (&data.payload, &data.arguments[..])
        else {
            return;
        };
        let (along, result) = (*along, data.results[0]);
        let [left_tile, right_tile, sum_tile, whole] =
            [*left, *right, *sum, result].map(|value| kernel.tile(value));
        for (factor, tile) in [(left, left_tile), (right, right_tile)] {
            if !tile.axes.has_all(along) {
                self.fail(inst, format!("`{factor}` lacks an axis that it is along"));
                return;
            }
        }
        if whole.axes != left_tile.axes.union(right_tile.axes).without(along) {
            self.fail(inst, format!("`{result}` has other axes than those of the factors that are left"));
            return;
        }
        if !whole.axes.has_all(sum_tile.axes) {
            self.fail(inst, format!("`{sum}` has an axis that `{result}` lacks, which it becomes"));
            return;
        }
        let types = [left, right].map(|value| kernel.value_type(*value));
        let step = along.iter().next_back();
        if *atom != Atom::Fma {
            let steps = FactorType::of(*atom, types[0]).map_or(1, |factor| 8 * factor.per_word() as u64);
            if step.is_none_or(|step| !tiling.axes[step].extent.is_multiple_of(steps)) {
                self.fail(inst, format!("the last axis that it is along is no multiple of {steps} steps"));
                return;
            }
        }
        if !launch.is_placed() || !self.errors.is_empty() {
            return;
        }
        if let (true, Some(step)) = (*atom != Atom::Fma, step) {
            self.matrices(inst, (*atom, types), [left_tile, right_tile, whole], (along, step), tiling);
            return;
        }
        if sum_tile.layout != whole.layout && !lies_as(tiling, sum_tile, whole) {
            self.fail(inst, format!("`{sum}` does not lie as `{result}` does, which it becomes"));
        }
        for (factor, tile) in [(left, left_tile), (right, right_tile)] {
            let Some(layout) = tiling.layout(tile) else { continue };
            let in_registers = |axis: &str| {
                let digits = layout.digits(axis).unwrap_or_default();
                let mut sources = digits.iter().flat_map(|digit| &digit.sources);
                sources.all(|source| source.dimension == Dimension::Register)
            };
            if let Some(axis) = tiling.names(along).into_iter().find(|axis| !in_registers(axis)) {
                self.fail(
                    inst,
                    format!("threads share the steps of `{axis}` in `{factor}`: convert it first"),
                );
            } else if !holds_for(tiling, tile, along, whole) {
                let message = format!("`{factor}` does not lie as `{result}` does, without the other's axes");
                self.fail(inst, message);
            }
        }
    }

    /// A contraction of a matrix atom: its tiles are fragments times whole digits, and each warp has what its results need.
    fn matrices(
        &mut self,
        inst: Inst,
        (atom, [left, right]): (Atom, [Scalar; 2]),
        tiles: [Tile; 3],
        (along, step): (AxisSet, usize),
        tiling: &Tiling,
    ) {
        let [Some(rows), Some(columns), Some(sums)] = tiles.map(|tile| tiling.layout(tile)) else {
            self.fail(inst, "a factor or the result is a scalar: a matrix atom takes fragments");
            return;
        };
        let step = tiling.axes[step].name.as_str();
        let Some(fit) = Fit::find(atom, (left, right), [rows, columns, sums], step) else {
            let message = format!(
                "its tiles are no fragments of `mma.sync` on {left} and {right} along `{step}`: the lowest digits of their layouts are not those of its operands"
            );
            self.fail(inst, message);
            return;
        };
        let [rows, columns, sums] = &fit.outer;
        let [left, right, whole] = tiles;
        let (first, second) = if fit.swapped { (right, left) } else { (left, right) };
        for (outer, tile, name) in [(rows, first, "rows"), (columns, second, "columns")] {
            let in_registers = |axis: &str| {
                let digits = outer.digits(axis).unwrap_or_default();
                let mut sources = digits.iter().flat_map(|digit| &digit.sources);
                sources.all(|source| source.dimension == Dimension::Register)
            };
            if let Some(axis) = tiling.names(along).into_iter().find(|axis| !in_registers(axis)) {
                self.fail(inst, format!("warps share the steps of `{axis}` in the {name}"));
                return;
            }
            let without = |layout: &ValueLayout, axes: AxisSet| {
                let names = tiling.names(axes);
                names.into_iter().try_fold(layout.clone(), |layout, axis| layout.slice(axis)).ok()
            };
            let own = without(outer, along);
            let wanted = without(sums, whole.axes.without(tile.axes));
            if !own.zip(wanted).is_some_and(|(own, wanted)| own.packed() == wanted.packed()) {
                self.fail(inst, format!("a warp has other {name} than its results need"));
            }
        }
    }

    /// Control is the whole block's: conditions and bounds are scalars. What is carried has one shape, which initial values
    /// and yielded ones may lack axes of.
    fn control(&mut self, inst: Inst, (launch, tiling): (&LaunchData, &Tiling)) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let (scalars, carried) = match data.opcode {
            Opcode::If => data.arguments.split_at(1),
            Opcode::For => data.arguments.split_at(3),
            _ => data.arguments.split_at(0),
        };
        for scalar in scalars {
            if kernel.tile(*scalar) != Tile::SCALAR {
                self.fail(inst, format!("`{scalar}` decides for the whole block, so it is a scalar"));
            }
        }
        let mut flows: Vec<(Value, Value)> =
            carried.iter().copied().zip(data.results.iter().copied()).collect();
        for (at, region) in data.regions.iter().enumerate() {
            let yields = kernel.yields(*region);
            if data.opcode == Opcode::While && at == 0 {
                if let Some(condition) = yields.first()
                    && kernel.tile(*condition) != Tile::SCALAR
                {
                    self.fail(inst, format!("`{condition}` decides for the whole block, so it is a scalar"));
                }
            } else {
                flows.extend(yields.iter().copied().zip(data.results.iter().copied()));
            }
            let own = usize::from(data.opcode == Opcode::For);
            for (param, result) in kernel.blocks[*region].params.iter().skip(own).zip(&data.results) {
                if kernel.tile(*param) != kernel.tile(*result) {
                    self.fail(inst, format!("`{param}` and `{result}` are carried, so they have one shape"));
                }
            }
        }
        for (from, to) in flows {
            let (from_tile, to_tile) = (kernel.tile(from), kernel.tile(to));
            if !to_tile.axes.has_all(from_tile.axes) {
                self.fail(inst, format!("`{from}` has an axis that `{to}` lacks, which it becomes"));
            } else if launch.is_placed()
                && from_tile.layout != to_tile.layout
                && !lies_as(tiling, from_tile, to_tile)
            {
                self.fail(inst, format!("`{from}` does not lie as `{to}` does, which it becomes"));
            }
        }
    }
}

/// Whether the registers of a layout are words of elements of a type, each element once.
fn has_whole_words(layout: &ValueLayout, scalar: Scalar) -> bool {
    let repeats = layout.replicas().iter().any(|digit| digit.dimension == Dimension::Register);
    !repeats && layout.extent(Dimension::Register).is_multiple_of(4 / scalar.size())
}

/// Whether a tile has the layout of another one, without the axes that it lacks. A scalar is everywhere.
fn lies_as(tiling: &Tiling, tile: Tile, whole: Tile) -> bool {
    if tile.axes.is_empty() {
        return true;
    }
    let (Some(own), Some(layout)) = (tiling.layout(tile), tiling.layout(whole)) else { return false };
    let lacking = tiling.names(whole.axes.without(tile.axes));
    let sliced = lacking.iter().try_fold(layout.clone(), |layout, axis| layout.slice(axis));
    sliced.is_ok_and(|sliced| sliced == *own)
}

/// Whether each thread has of a factor, in the order of its registers, what its results need in each step.
fn holds_for(tiling: &Tiling, factor: Tile, along: AxisSet, whole: Tile) -> bool {
    let kept = factor.axes.without(along);
    let Some(own) = tiling.layout(factor).filter(|_| !kept.is_empty()) else { return true };
    let Some(results) = tiling.layout(whole) else { return false };
    let without = |layout: &ValueLayout, axes: AxisSet| {
        let names = tiling.names(axes);
        names.into_iter().try_fold(layout.clone(), |layout, axis| layout.slice(axis)).ok()
    };
    let (own, results) = (without(own, along), without(results, whole.axes.without(kept)));
    own.zip(results).is_some_and(|(own, results)| own.packed() == results.packed())
}

/// Whether all digits of lanes that an axis has are bits, and none of its digits is a xor: then lanes meet by shuffles, and
/// warps in shared memory.
fn meets_in_bits(layout: &ValueLayout, axis: &str) -> bool {
    layout.digits(axis).iter().flatten().all(|digit| match digit.sources[..] {
        [] => true,
        [source] if source.dimension == Dimension::Lane => {
            source.position.is_power_of_two() && digit.size.is_power_of_two()
        }
        [_] => true,
        _ => false,
    })
}

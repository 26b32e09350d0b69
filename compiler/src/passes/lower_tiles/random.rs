//! Random tile programs, placed: layouts of any digits, and values that go through them.

use crate::data::{ElementType, Scalar};
use crate::ir::Specialization;
use crate::ir::emit::Emit;
use crate::ir::entities::{Buffer, Value};
use crate::ir::kernel::{
    ArgumentData, Atom, AxisSet, BlockData, BufferData, BufferKind, Combiners, Kernel, LaunchData, Payload,
    Phase, Step, Tile, TileAxis, Tiling,
};
use crate::ir::op::{Combiner, Constant, Opcode};
use crate::layout::{Dimension, ValueLayout};
use crate::manifest::{Direction, Expr, Layout};
use crate::source::Span;

/// Decisions, one after the other; 0 when there are no more.
pub(super) struct Tape<'t>(pub(super) &'t [u8]);

impl Tape<'_> {
    pub(super) fn pick(&mut self, count: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first) % count
    }
}

/// A layout of the axes: the digits of lanes, warps and registers in any order, lanes in bits. What is left over of the lanes
/// and the warps moves nothing.
fn layout(tape: &mut Tape<'_>, axes: &[TileAxis], warps: u64) -> ValueLayout {
    let (mut lanes, mut left) = (5, warps);
    let mut digits: Vec<Vec<(Dimension, u64)>> = Vec::new();
    for axis in axes {
        let mut rest = axis.extent;
        let mut of_axis = Vec::new();
        while rest > 1 {
            let prime = (2..=rest).find(|prime| rest.is_multiple_of(*prime)).unwrap_or(rest);
            rest /= prime;
            let choice = tape.pick(3);
            of_axis.push(match choice {
                0 if prime == 2 && lanes > 0 => {
                    lanes -= 1;
                    (Dimension::Lane, 2)
                }
                1 if left.is_multiple_of(prime) => {
                    left /= prime;
                    (Dimension::Warp, prime)
                }
                _ => (Dimension::Register, prime),
            });
        }
        digits.push(of_axis);
    }
    let replicas = [(Dimension::Lane, 1 << lanes), (Dimension::Warp, left)];
    let mut all: Vec<(&str, &[(Dimension, u64)])> = vec![("_", &replicas)];
    all.extend(axes.iter().zip(&digits).map(|(axis, digits)| (axis.name.as_str(), &digits[..])));
    let text = ValueLayout::new(&all).expect("digits").to_string();
    // The text knows what `_` means.
    text.parse().unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// What a program is made with.
struct Maker<'t> {
    tape: Tape<'t>,
    tiling: Tiling,
    /// Values of type f32 and their tiles.
    floats: Vec<Value>,
    indices: Vec<(usize, Value)>,
}

impl Maker<'_> {
    /// The number of a layout, which is added where it is new.
    fn number(&mut self, layout: ValueLayout) -> u16 {
        let known = self.tiling.layouts.iter().position(|known| *known == layout);
        known.unwrap_or_else(|| {
            self.tiling.layouts.push(layout);
            self.tiling.layouts.len() - 1
        }) as u16
    }

    /// A tile of a layout without some axes.
    fn slice(&mut self, layout: &ValueLayout, axes: AxisSet) -> Tile {
        if axes.is_empty() {
            return Tile::SCALAR;
        }
        let all: AxisSet = (0..self.tiling.axes.len()).collect();
        let lacking =
            self.tiling.names(all.without(axes)).into_iter().map(str::to_string).collect::<Vec<_>>();
        let sliced = lacking.iter().fold(layout.clone(), |layout, axis| layout.slice(axis).unwrap_or(layout));
        Tile { axes, layout: Some(self.number(sliced)) }
    }
}

fn buffer(kernel: &mut Kernel, name: &str, extents: Vec<i64>, direction: Direction) -> Buffer {
    let position = kernel.arguments.len();
    let buffer = kernel.buffers.push(BufferData {
        name: name.to_string(),
        kind: BufferKind::Argument { position, direction },
        element: ElementType::scalar(Scalar::F32),
        extents: extents.into_iter().map(Expr::Int).collect(),
        layout: Layout::Aos,
        layout_fixed: false,
        cache: None,
        runs_on: false,
    });
    kernel.arguments.push(ArgumentData::array(buffer));
    buffer
}

/// How an axis takes part in a contraction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Along,
    Batch,
    Left,
    Right,
}

/// A contraction of two tiles of an array, added to a sum: its factors have layouts that go with a random one of the result.
fn contraction(
    maker: &mut Maker<'_>,
    emit: &mut Emit<'_>,
    (input, extents): (Buffer, &[i64]),
    (result, classes): (&ValueLayout, &[Class]),
    sum: Value,
) -> Value {
    let axes_of = |wanted: &[Class]| -> AxisSet {
        (0..classes.len()).filter(|axis| wanted.contains(&classes[*axis])).collect()
    };
    let along = axes_of(&[Class::Along]);
    let kept = axes_of(&[Class::Batch, Class::Left, Class::Right]);
    let mut operands = Vec::new();
    for own in [Class::Left, Class::Right] {
        let axes = axes_of(&[Class::Along, Class::Batch, own]);
        let names = |axes: AxisSet, maker: &Maker<'_>| -> Vec<String> {
            maker.tiling.names(axes).into_iter().map(str::to_string).collect()
        };
        let lacking = names(kept.without(axes), maker);
        let mut layout =
            lacking.iter().fold(result.clone(), |layout, axis| layout.slice(axis).unwrap_or(layout));
        if maker.tape.pick(2) == 1 {
            layout = layout.packed();
        }
        for axis in along.iter() {
            let TileAxis { name, extent } = &maker.tiling.axes[axis];
            let steps = ValueLayout::new(&[(name, &[(Dimension::Register, *extent)])]).expect("registers");
            layout = layout.product(&steps).expect("a small layout");
        }
        let tile = |maker: &mut Maker<'_>, some: AxisSet| {
            if some.is_empty() {
                return Tile::SCALAR;
            }
            let lacking = names(axes.without(some), maker);
            let sliced =
                lacking.iter().fold(layout.clone(), |layout, axis| layout.slice(axis).unwrap_or(layout));
            Tile { axes: some, layout: Some(maker.number(sliced)) }
        };
        let (mut subscripts, mut mask, mut covered) = (Vec::new(), None, AxisSet::EMPTY);
        for (axis, end) in extents.iter().enumerate() {
            if !axes.contains(axis) {
                subscripts.push(emit.int(0));
                continue;
            }
            let index = emit.value(Opcode::Index, Payload::Index(axis as u8), &[]);
            emit.kernel.values[index].tile = tile(maker, AxisSet::one(axis));
            let end = emit.int(*end);
            let inside = emit.binary(Opcode::Lt, index, end);
            covered = covered.union(AxisSet::one(axis));
            mask = Some(match mask {
                None => inside,
                Some(mask) => {
                    let both = emit.binary(Opcode::And, mask, inside);
                    emit.kernel.values[both].tile = tile(maker, covered);
                    both
                }
            });
            subscripts.push(index);
        }
        let opcode = if mask.is_some() { Opcode::LoadIf } else { Opcode::Load };
        subscripts.extend(mask);
        let factor = emit.value(opcode, Payload::Access { buffer: input, leaf: 0 }, &subscripts);
        emit.kernel.values[factor].tile = tile(maker, axes);
        operands.push(factor);
    }
    operands.push(sum);
    let sum = emit.value(Opcode::Contract, Payload::Contract { along, atom: Atom::Fma }, &operands);
    emit.kernel.values[sum].tile = if kept.is_empty() {
        Tile::SCALAR
    } else {
        Tile { axes: kept, layout: Some(maker.number(result.clone())) }
    };
    sum
}

/// A program of up to three axes: loads under masks, arithmetic, conversions, reductions, contractions, a loop, stores.
pub fn program(tape: &[u8]) -> Kernel {
    let mut tape = Tape(tape);
    let axes: Vec<TileAxis> = ["i", "j", "k"]
        .into_iter()
        .take(1 + tape.pick(3))
        .map(|name| TileAxis { name: name.to_string(), extent: [1, 2, 4, 6, 8, 3, 16, 12][tape.pick(8)] })
        .collect();
    let warps = [1, 2, 4, 6][tape.pick(4)];
    let layouts: Vec<ValueLayout> = (0..1 + tape.pick(3)).map(|_| layout(&mut tape, &axes, warps)).collect();
    let all: AxisSet = (0..axes.len()).collect();
    let mut kernel = Kernel::new("random", Span::default());
    let extents: Vec<i64> = axes.iter().map(|axis| axis.extent as i64).collect();
    let shorter: Vec<i64> = extents.iter().map(|extent| extent - extent / 3).collect();
    let input = buffer(&mut kernel, "x", shorter.clone(), Direction::In);
    let output = buffer(&mut kernel, "y", shorter.clone(), Direction::InOut);
    let sums = buffer(&mut kernel, "z", vec![4], Direction::InOut);
    let body = kernel.blocks.push(BlockData::default());
    let mut maker =
        Maker { tape, tiling: Tiling { axes, layouts: Vec::new() }, floats: Vec::new(), indices: Vec::new() };
    let mut emit = Emit::new(&mut kernel, body, Span::default());
    for (at, layout) in layouts.iter().enumerate() {
        // Subscripts, and which elements lie inside.
        let mut mask = None;
        let mut subscripts = Vec::new();
        for axis in all.iter() {
            let index = emit.value(Opcode::Index, Payload::Index(axis as u8), &[]);
            let tile = maker.slice(layout, AxisSet::one(axis));
            emit.kernel.values[index].tile = tile;
            let end = emit.int(shorter[axis]);
            let inside = emit.binary(Opcode::Lt, index, end);
            let axes = emit
                .kernel
                .tile(index)
                .axes
                .union(mask.map_or(AxisSet::EMPTY, |mask| emit.kernel.tile(mask).axes));
            mask = Some(match mask {
                Some(mask) => {
                    let both = emit.binary(Opcode::And, mask, inside);
                    let tile = maker.slice(layout, axes);
                    emit.kernel.values[both].tile = tile;
                    both
                }
                None => inside,
            });
            maker.indices.push((at, index));
            subscripts.push(index);
        }
        let mask = mask.expect("an axis");
        let whole = maker.slice(layout, all);
        let operands: Vec<Value> = subscripts.iter().copied().chain([mask]).collect();
        let loaded = emit.value(Opcode::LoadIf, Payload::Access { buffer: input, leaf: 0 }, &operands);
        emit.kernel.values[loaded].tile = whole;
        // A value of another layout comes over.
        let mut value = loaded;
        if let Some(before) = maker.floats.last().copied() {
            let over = emit.value(Opcode::Convert, Payload::None, &[before]);
            emit.kernel.values[over].tile = whole;
            value = emit.binary(Opcode::Add, value, over);
            emit.kernel.values[value].tile = whole;
        }
        if maker.tape.pick(2) == 1 {
            let classes: Vec<Class> = (0..shorter.len())
                .map(|_| [Class::Left, Class::Right, Class::Along, Class::Batch][maker.tape.pick(4)])
                .collect();
            let kept = maker.tiling.axes.iter().zip(&classes).filter(|(_, class)| **class != Class::Along);
            let kept: Vec<TileAxis> = kept.map(|(axis, _)| axis.clone()).collect();
            let result = self::layout(&mut maker.tape, &kept, warps);
            let mut sum = emit.constant(Constant::F32(1f32.to_bits()));
            for _ in 0..1 + maker.tape.pick(2) {
                sum = contraction(&mut maker, &mut emit, (input, &shorter), (&result, &classes), sum);
            }
            let over = emit.value(Opcode::Convert, Payload::None, &[sum]);
            emit.kernel.values[over].tile = whole;
            value = emit.binary(Opcode::Add, value, over);
            emit.kernel.values[value].tile = whole;
        }
        let along: AxisSet = all.iter().filter(|_| maker.tape.pick(2) == 1).collect();
        if !along.is_empty() {
            let combiner =
                [Combiner::Add, Combiner::Max, Combiner::Min, Combiner::ArgMax][maker.tape.pick(4)];
            let tile = maker.slice(layout, all.without(along));
            let mut operands = vec![value];
            if combiner.width() == 2 {
                operands.push(subscripts[along.iter().next().expect("an axis")]);
            }
            if maker.tape.pick(2) == 1 {
                operands.push(mask);
            }
            let combiners = Combiners::from_slice(&[combiner]);
            let inst = emit.bare_inst(
                Opcode::ReduceAlong,
                Payload::Along { axes: along, combiners },
                operands.into(),
            );
            let types = [Scalar::F32, Scalar::I64];
            for ty in types.into_iter().take(combiner.width()) {
                let result = emit.kernel.add_result(inst, ty);
                emit.kernel.values[result].tile = tile;
            }
            let reduced = emit.kernel.insts[inst].results[0];
            value = emit.binary(Opcode::Sub, value, reduced);
            emit.kernel.values[value].tile = whole;
            if tile.axes.is_empty() {
                let place = emit.int(at as i64);
                emit.store(sums, 0, &[place], reduced);
            }
        }
        if maker.tape.pick(2) == 1 {
            let [low, high, step] = [0, 3, 1].map(|value| emit.int(value));
            let results = emit.for_loop("t", (low, high, step), &[value], |emit, _, carried| {
                emit.kernel.values[carried[0]].tile = whole;
                let sum = emit.binary(Opcode::Add, carried[0], loaded);
                emit.kernel.values[sum].tile = whole;
                vec![sum]
            });
            value = results[0];
            // No loop of a block has factors.
            emit.kernel.axes.values_mut().for_each(|axis| axis.factors.clear());
        }
        maker.floats.push(value);
        emit.store_if(mask, (output, 0), &subscripts, value);
    }
    let launch = kernel.launches.push(LaunchData {
        name: "random".to_string(),
        phase: Phase::Tiled,
        body,
        threads: Some(32 * warps as u32),
        tiling: Some(Box::new(maker.tiling)),
        grid: Some([Expr::Int(1), Expr::Int(1), Expr::Int(1)]),
        assume: Vec::new(),
        resident: None,
        streams: Vec::new(),
    });
    kernel.plan.push(Step::Launch(launch));
    kernel.specialization = Specialization::default();
    kernel
}

//! Reductions along axes: in a thread, among the lanes of a warp, among warps.

use super::{Lowering, shared};
use crate::data::Scalar;
use crate::ir::emit::Emit;
use crate::ir::entities::Value;
use crate::ir::kernel::{AxisSet, InstData, Payload, Tile};
use crate::ir::op::{Combiner, Constant, Opcode};
use crate::layout::{Digit, Dimension};
use crate::mutants::mutant;

/// Contributions to all combiners: their parts, one after the other.
type Parts = Vec<Value>;

impl Lowering<'_> {
    pub(super) fn reduce_along(
        &mut self,
        emit: &mut Emit<'_>,
        data: &InstData,
        axes: AxisSet,
        combiners: &[Combiner],
    ) {
        let whole = emit.kernel.whole_tile(data.arguments.iter()).unwrap_or(Tile::SCALAR);
        let result = emit.kernel.tile(data.results[0]);
        let shape = self.registers.shape(self.tiling, result);
        let mut groups: Vec<Vec<Parts>> = vec![Vec::new(); shape.own.len()];
        for register in self.registers.shape(self.tiling, whole).own {
            let parts = self.contribution(emit, data, combiners, register);
            groups[shape.place(register)].push(parts);
        }
        let mut sums: Vec<Parts> =
            groups.into_iter().map(|group| self.pairwise(emit, combiners, group)).collect();
        let digits = self.digits_along(whole, axes);
        let of = |dimension: Dimension| digits.iter().copied().filter(move |it| it.dimension == dimension);
        for digit in of(Dimension::Lane) {
            let lowest = mutant!("lower_tiles: neighbours do not meet", 0, 1);
            for bit in lowest..digit.size.trailing_zeros() {
                let step = digit.position << bit;
                let mask = Payload::Lanes(step as u8);
                // Of what a user's combiner makes, the lower lane's part comes first in both lanes.
                let has_own = combiners.iter().any(|combiner| matches!(combiner, Combiner::Own(..)));
                let lower = has_own.then(|| {
                    let lane = self.coordinates.number(emit, Dimension::Lane);
                    emit.is_lower(lane, step as i64)
                });
                for sum in &mut sums {
                    let mut other: Parts = sum
                        .iter()
                        .map(|part| emit.value(Opcode::ShuffleXor, mask.clone(), &[*part]))
                        .collect();
                    if let Some(lower) = lower {
                        emit.in_order(lower, sum, &mut other);
                    }
                    *sum = combine(emit, combiners, sum, &other);
                }
            }
        }
        let warps: Vec<Digit> = of(Dimension::Warp).collect();
        if !warps.is_empty() {
            let lanes: Vec<Digit> = of(Dimension::Lane).collect();
            sums = self.among_warps(emit, combiners, sums, (whole, result), (&lanes, &warps));
        }
        for (at, value) in data.results.iter().enumerate() {
            let scalar = emit.kernel.value_type(*value);
            let scalars = sums.iter().map(|sum| {
                let was_number = scalar == Scalar::Bool && emit.kernel.value_type(sum[at]) != scalar;
                if was_number { truth(emit, sum[at]) } else { sum[at] }
            });
            let scalars = scalars.collect();
            self.registers.set(*value, shape.clone(), scalars);
        }
    }

    /// What a register contributes; the identity where the mask does not hold. Truth values are 1 and 0, which instructions
    /// combine as numbers; a user's combiner takes them as they are.
    fn contribution(
        &mut self,
        emit: &mut Emit<'_>,
        data: &InstData,
        combiners: &[Combiner],
        register: u64,
    ) -> Parts {
        let count = data.results.len();
        let mut parts = self.operands(&data.arguments[..count], register);
        let mask = data.arguments.get(count).map(|mask| self.registers.get(*mask, register));
        let mask = mutant!("lower_tiles: a mask is forgotten", mask, None);
        let mut at = 0;
        for combiner in combiners {
            let scalar = emit.kernel.value_type(parts[at]);
            if let Some(mask) = mask {
                let identity = emit.identity(*combiner, scalar);
                for (part, identity) in parts[at..].iter_mut().zip(identity) {
                    *part = emit.select(mask, *part, identity);
                }
            }
            if scalar == Scalar::Bool && !matches!(combiner, Combiner::Own(..)) {
                parts[at] = number(emit, parts[at]);
            }
            at += combiner.width();
        }
        parts
    }

    /// All of a group combined, neighbours first.
    fn pairwise(&self, emit: &mut Emit<'_>, combiners: &[Combiner], mut group: Vec<Parts>) -> Parts {
        while group.len() > 1 {
            let pairs = group.chunks(2);
            group = pairs
                .map(|pair| match pair {
                    [left, right] => combine(emit, combiners, left, right),
                    _ => pair[0].clone(),
                })
                .collect();
        }
        group.pop().unwrap_or_default()
    }

    /// The digits of threads that axes have, lanes and warps.
    fn digits_along(&self, tile: Tile, axes: AxisSet) -> Vec<Digit> {
        let Some(layout) = self.tiling.layout(tile) else { return Vec::new() };
        let digits = self.tiling.names(axes).into_iter().flat_map(|axis| layout.digits(axis)).flatten();
        let sources = digits.flat_map(|digit| digit.sources);
        sources.filter(|digit| digit.dimension != Dimension::Register).collect()
    }

    /// The sums of all warps in shared memory, combined in the order of the warps by every thread.
    fn among_warps(
        &mut self,
        emit: &mut Emit<'_>,
        combiners: &[Combiner],
        sums: Vec<Parts>,
        (whole, result): (Tile, Tile),
        (lanes, warps): (&[Digit], &[Digit]),
    ) -> Vec<Parts> {
        // Where a thread's sums lie: by the warp, then what the result has of the thread's number, so that lanes that have
        // different ones access neighbours.
        let held = self.digits_of_threads(result);
        let count: i64 = warps.iter().map(|digit| digit.size as i64).product();
        let groups: i64 = held.iter().map(|digit| digit.size as i64).product();
        let registers = sums.len() as i64;
        let own = self.coordinates.mixed(emit, &held);
        let warp = self.coordinates.mixed(emit, warps);
        let scalars: Vec<Scalar> = sums[0].iter().map(|part| emit.kernel.value_type(*part)).collect();
        let mut different = scalars.clone();
        different.sort_unstable_by_key(|scalar| scalar.name());
        different.dedup();
        // Arrays of one type each; parts of one type lie one behind the other.
        let mut places = Vec::new();
        for scalar in &different {
            let parts: Vec<usize> = (0..scalars.len()).filter(|part| scalars[*part] == *scalar).collect();
            let length = groups * registers * count * parts.len() as i64;
            let buffer = self.exchange.begin(emit, *scalar, length, self.loops > 0);
            places.push((buffer, parts));
        }
        // One of the threads that hold the same writes: lanes that have met, and replicas.
        let same = [lanes, &self.replicas(whole)].concat();
        let first = self.coordinates.is_first(emit, &same);
        // The first warp's place.
        let place =
            |register: usize, at: usize, parts: usize| (register * parts + at) as i64 * count * groups;
        let scaled = emit.mul_int(warp, groups);
        let written = emit.add(scaled, own);
        let write = |emit: &mut Emit<'_>| {
            for (buffer, parts) in &places {
                for (register, sum) in sums.iter().enumerate() {
                    for (at, part) in parts.iter().enumerate() {
                        let place = emit.add_int(written, place(register, at, parts.len()));
                        shared::store(emit, *buffer, &[place], &[sum[*part]]);
                    }
                }
            }
        };
        match first {
            Some(first) => emit.if_then(first, write),
            None => write(emit),
        }
        emit.barrier();
        // All parts of each warp's sums, which those of the thread itself stand for until they are loaded.
        let mut found: Vec<Vec<Parts>> = sums.iter().map(|sum| vec![sum.clone(); count as usize]).collect();
        for (buffer, parts) in &places {
            for (register, found) in found.iter_mut().enumerate() {
                for (at, part) in parts.iter().enumerate() {
                    for (warp, found) in found.iter_mut().enumerate() {
                        let warp = mutant!("lower_tiles: the first warp counts for all", warp, 0);
                        let place = place(register, at, parts.len()) + warp as i64 * groups;
                        let place = emit.add_int(own, place);
                        found[*part] = emit.load(*buffer, 0, &[place]);
                    }
                }
            }
        }
        found.into_iter().map(|group| self.pairwise(emit, combiners, group)).collect()
    }

    /// The digits of lanes and warps in which elements of a tile differ.
    fn digits_of_threads(&self, tile: Tile) -> Vec<Digit> {
        let Some(layout) = self.tiling.layout(tile) else { return Vec::new() };
        let axes = layout.axes();
        let digits = axes.iter().flat_map(|(axis, _)| layout.digits(axis)).flatten();
        let mut sources: Vec<Digit> =
            digits.flat_map(|digit| digit.sources).filter(|it| it.dimension != Dimension::Register).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }
}

/// Two contributions, combiner by combiner.
fn combine(emit: &mut Emit<'_>, combiners: &[Combiner], left: &Parts, right: &Parts) -> Parts {
    let mut at = 0;
    let mut parts = Parts::new();
    for combiner in combiners {
        let end = at + combiner.width();
        parts.extend(emit.combine(*combiner, &left[at..end], &right[at..end]));
        at = end;
    }
    parts
}

/// A truth value as 1 or 0.
fn number(emit: &mut Emit<'_>, value: Value) -> Value {
    let [one, zero] = [1, 0].map(|value| emit.constant(Constant::Int(Scalar::I32, value)));
    emit.select(value, one, zero)
}

/// A truth value of 1 or 0.
fn truth(emit: &mut Emit<'_>, value: Value) -> Value {
    let zero = emit.constant(Constant::Int(Scalar::I32, 0));
    emit.binary(Opcode::Ne, value, zero)
}

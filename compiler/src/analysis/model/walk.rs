//! One warp's way through a launch.
//!
//! Both sides of a branch whose condition is unknown are taken; of a long loop rounds evenly apart stand for all, or, where what
//! is carried from round to round does not grow evenly, the first ones.

use super::address::{extents, offsets};
use super::lanes::{LANES, Lanes, compute, literal};
use super::touched::Touched;
use super::{AccessCost, BranchCost, DivisionCost, LaunchCost, Request, Space};
use crate::analysis::{SECTOR_BYTES, UNKNOWN_TRIPS};
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{BufferKind, InstData, Kernel, Payload};
use crate::ir::op::{Constant, Effect, Opcode};
use crate::manifest;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

/// Rounds of a loop that are looked at, by how many loops are around it: all of the windows that filters have.
const ROUNDS: [u64; 4] = [8, 5, 5, 2];

/// Instructions that a division of integers of 32 bits takes, and of 64 bits.
const NARROW_DIVISION: f64 = 20.0;
const WIDE_DIVISION: f64 = 100.0;

/// Where a warp stands in the grid.
#[derive(Clone, Copy)]
struct Place {
    block: [u64; 3],
    blocks: [u64; 3],
    /// The first lane's number in its block.
    first_thread: u32,
}

/// The walks of one launch: what one of them computed is computed anew by the next before it asks for it.
pub(super) struct Walk<'k> {
    kernel: &'k Kernel,
    sizes: &'k [manifest::Value],
    place: Place,
    cost: &'k mut LaunchCost,
    /// Where the cost of an access stands.
    accesses: FxHashMap<(Inst, Buffer), usize>,
    /// The last request of each, which most of the others repeat some sectors farther on.
    last: Vec<Option<Touched>>,
    extents: PrimaryMap<Buffer, Option<Vec<i64>>>,
    values: SecondaryMap<Value, Lanes>,
    /// What addresses point into: loops carry them on.
    sources: SecondaryMap<Value, Option<(Buffer, u32)>>,
    /// Loops around what is looked at.
    depth: usize,
}

impl<'k> Walk<'k> {
    pub fn new(kernel: &'k Kernel, sizes: &'k [manifest::Value], cost: &'k mut LaunchCost) -> Self {
        let place = Place { block: [0; 3], blocks: cost.blocks, first_thread: 0 };
        let extents = kernel.buffers.values().map(|buffer| extents(buffer, sizes)).collect();
        let values = SecondaryMap::with_capacity(kernel.values.len());
        let (accesses, sources) = (FxHashMap::default(), SecondaryMap::with_capacity(kernel.values.len()));
        Self { kernel, sizes, place, cost, accesses, last: Vec::new(), extents, values, sources, depth: 0 }
    }

    /// Walks with a warp of a block.
    pub fn run(&mut self, body: Block, block: [u64; 3], first_thread: u32, mask: u32, weight: f64) {
        self.place = Place { block, first_thread, ..self.place };
        self.block(body, mask, weight);
    }

    fn get(&self, value: Value) -> Lanes {
        self.values[value].clone()
    }

    fn set(&mut self, value: Value, lanes: Lanes) {
        self.values[value] = lanes;
    }

    /// Runs a region; what it yields.
    fn block(&mut self, block: Block, mask: u32, weight: f64) -> Vec<Lanes> {
        let kernel = self.kernel;
        for inst in &kernel.blocks[block].insts {
            let data = &kernel.insts[*inst];
            if data.opcode == Opcode::Yield {
                return data.arguments.iter().map(|value| self.get(*value)).collect();
            }
            self.inst(*inst, mask, weight);
        }
        Vec::new()
    }

    fn inst(&mut self, inst: Inst, mask: u32, weight: f64) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        self.cost.instructions += weight * instructions(data);
        if matches!(data.opcode, Opcode::Outer | Opcode::OuterFma) {
            self.cost.independent += weight * instructions(data);
        }
        match data.opcode {
            Opcode::Div | Opcode::Rem => self.division(inst, weight),
            Opcode::Barrier => self.cost.barriers += weight,
            _ => {}
        }
        let results: SmallVec<[Lanes; 1]> = match (data.opcode, &data.payload) {
            (_, Payload::Constant(constant)) => smallvec![known(literal(*constant))],
            (_, Payload::Symbol(symbol)) => smallvec![match self.sizes.get(symbol.index()) {
                Some(manifest::Value::Int(value)) => known(i64::try_from(*value).ok()),
                Some(manifest::Value::Bool(value)) => Lanes::Same(i64::from(*value)),
                _ => Lanes::Unknown,
            }],
            (Opcode::BlockIndex, Payload::Grid(axis)) => {
                smallvec![Lanes::Same(self.place.block[usize::from(*axis)] as i64)]
            }
            (Opcode::GridSize, Payload::Grid(axis)) => {
                smallvec![Lanes::Same(self.place.blocks[usize::from(*axis)] as i64)]
            }
            (Opcode::ThreadIndex, _) => {
                let first = i64::from(self.place.first_thread);
                smallvec![Lanes::of(|lane| first + lane as i64)]
            }
            (Opcode::If, _) => self.branch(inst, mask, weight).into(),
            (Opcode::For | Opcode::Forall | Opcode::Reduce, _) => self.repeat(inst, mask, weight).into(),
            (Opcode::While, _) => self.unknown_rounds(inst, mask, weight).into(),
            (Opcode::Address, Payload::Access { buffer, leaf }) => {
                self.sources[data.results[0]] = Some((*buffer, *leaf));
                smallvec![
                    self.address(*buffer, *leaf, &data.arguments)
                        .map_or(Lanes::Unknown, |offsets| Lanes::of(|lane| offsets[lane])),
                ]
            }
            (Opcode::StoreEach, _) => {
                self.each(inst, mask, weight);
                SmallVec::new()
            }
            (_, Payload::Access { .. } | Payload::Atomic { .. }) => {
                let conditional = matches!(data.opcode, Opcode::StoreIf | Opcode::LoadIf);
                let condition = data.arguments.last().filter(|_| conditional);
                let mask = condition.map_or(mask, |condition| self.taking_part(*condition, mask, weight));
                self.access(inst, mask, weight);
                SmallVec::new()
            }
            (opcode, payload) if opcode.info().effect == Effect::Pure => {
                let operand = |value: &Value| (kernel.value_type(*value), self.get(*value));
                let operands: SmallVec<[_; 4]> = data.arguments.iter().map(operand).collect();
                if opcode == Opcode::Add {
                    self.sources[data.results[0]] =
                        data.arguments.iter().find_map(|value| self.sources[*value]);
                }
                smallvec![compute(opcode, payload, &operands)]
            }
            _ => SmallVec::new(),
        };
        let mut results = results.into_iter();
        for value in &data.results {
            self.set(*value, results.next().unwrap_or_default());
        }
    }

    /// Integers are divided by many instructions, unless a literal is known to divide by.
    fn division(&mut self, inst: Inst, weight: f64) {
        let data = &self.kernel.insts[inst];
        let scalar = self.kernel.value_type(data.results[0]);
        if !scalar.is_integer() || self.kernel.constant_of(data.arguments[1]).is_some() {
            return;
        }
        if scalar.size() < 8 {
            self.cost.instructions += weight * (NARROW_DIVISION - 1.0);
            return;
        }
        self.cost.instructions += weight * (WIDE_DIVISION - 1.0);
        match self.cost.divisions.iter_mut().find(|known| known.inst == inst) {
            Some(known) => known.runs += weight,
            None => self.cost.divisions.push(DivisionCost { inst, runs: weight }),
        }
    }

    fn address(&self, buffer: Buffer, leaf: u32, subscripts: &[Value]) -> Option<[i64; LANES]> {
        let subscripts = subscripts.get(..self.kernel.rank(buffer, leaf))?;
        let lanes = subscripts.iter().map(|value| &self.values[*value]);
        offsets(&self.kernel.buffers[buffer], leaf, lanes, self.extents[buffer].as_ref()?)
    }

    fn access(&mut self, inst: Inst, mask: u32, weight: f64) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let (Payload::Access { buffer, leaf } | Payload::Atomic { buffer, leaf, .. }) = data.payload else {
            return;
        };
        let scalar = kernel.buffers[buffer].element.leaves[leaf as usize].scalar.size();
        let mut width = scalar as u32 * kernel.width(data) as u32;
        if matches!(data.opcode, Opcode::CopyAsync | Opcode::CopyAsyncIf) {
            let bytes = kernel.copied_bytes(data);
            width = bytes.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(width);
            let condition = data.arguments.last().filter(|_| data.opcode == Opcode::CopyAsyncIf);
            let reads = condition.map_or(mask, |condition| self.taking_part(*condition, mask, weight));
            self.copied_from(inst, width, reads, weight);
        }
        let reads = data.opcode.is_load();
        let (atomic, writes) = (data.opcode == Opcode::Atomic, !reads);
        self.count(
            Accessed { inst, buffer, leaf, width, writes, atomic, subscripts: &data.arguments },
            mask,
            weight,
        );
    }

    /// The lanes for which a conditional access takes place: all of them where nobody knows. It counts as one in a branch.
    fn taking_part(&mut self, condition: Value, mask: u32, weight: f64) -> u32 {
        let known = self.get(condition).mask();
        self.cost.exact &= known.is_some();
        let stored = known.unwrap_or(u32::MAX) & mask;
        if stored != 0 {
            self.cost.instructions += weight;
        }
        stored
    }

    /// Several stores, each with a condition of its own.
    fn each(&mut self, inst: Inst, mask: u32, weight: f64) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let (Some(each), Payload::Access { buffer, leaf }) = (kernel.each_stored(data), &data.payload) else {
            return;
        };
        let (buffer, leaf) = (*buffer, *leaf);
        let width = kernel.buffers[buffer].element.leaves[leaf as usize].scalar.size() as u32;
        // The instruction itself has been counted once.
        self.cost.instructions += weight * (each.places.len() as f64 - 1.0);
        for (place, condition) in each.places.iter().zip(each.conditions) {
            let always = kernel.constant_of(*condition) == Some(Constant::Bool(true));
            let mask = if always { mask } else { self.taking_part(*condition, mask, weight) };
            let subscripts = [each.shared, &[*place]].concat();
            let (writes, atomic, subscripts) = (true, false, subscripts.as_slice());
            self.count(Accessed { inst, buffer, leaf, width, writes, atomic, subscripts }, mask, weight);
        }
    }

    /// The global side of a copy to shared memory.
    fn copied_from(&mut self, inst: Inst, width: u32, mask: u32, weight: f64) {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let Some(source) = data.arguments.get(kernel.subscripts(data).len()) else { return };
        let Some((buffer, leaf)) = self.sources[*source] else {
            self.cost.exact = false;
            return;
        };
        let offsets = self.get(*source).all();
        let direct = kernel.definition_data(*source).filter(|data| data.opcode == Opcode::Address);
        let subscripts = direct.map_or(&[][..], |address| &address.arguments);
        let (writes, atomic) = (false, false);
        self.request(
            Accessed { inst, buffer, leaf, width, writes, atomic, subscripts },
            offsets,
            mask,
            weight,
        );
    }

    fn count(&mut self, accessed: Accessed<'_>, mask: u32, weight: f64) {
        let offsets = self.address(accessed.buffer, accessed.leaf, accessed.subscripts);
        self.request(accessed, offsets, mask, weight);
    }

    /// Of an access whose lanes go to these places, in bytes from the start of the allocation.
    fn request(&mut self, accessed: Accessed<'_>, found: Option<[i64; LANES]>, mask: u32, weight: f64) {
        let Accessed { inst, buffer, leaf, width, writes, atomic, subscripts } = accessed;
        let space = match self.kernel.buffers[buffer].kind {
            BufferKind::Shared => Space::Shared,
            BufferKind::Private => Space::Local,
            // Served by a cache of its own.
            BufferKind::Constant(_) => return,
            _ => Space::Global,
        };
        if mask == 0 {
            return;
        }
        let subscripts = &subscripts[..subscripts.len().min(self.kernel.rank(buffer, leaf))];
        let are_known = subscripts.iter().all(|value| self.values[*value] != Lanes::Unknown);
        let at = *self.accesses.entry((inst, buffer)).or_insert_with(|| {
            self.cost.accesses.push(AccessCost {
                inst,
                buffer,
                leaf,
                space,
                writes,
                atomic,
                width,
                requests: 0.0,
                sectors: 0.0,
                bytes: 0.0,
                least_sectors: 0.0,
                wavefronts: 0.0,
                conflicts: 0.0,
                unknown: 0.0,
                sample: None,
                even: true,
            });
            self.cost.accesses.len() - 1
        });
        let cost = &mut self.cost.accesses[at];
        cost.requests += weight;
        let Some(offsets) = found.filter(|_| are_known) else {
            cost.unknown += weight;
            return;
        };
        self.last.resize(self.cost.accesses.len(), None);
        let touched = match self.last[at].take().filter(|last| last.is_like(&offsets, mask)) {
            Some(last) => last,
            None => Touched::new(offsets, mask, width, space, !writes),
        };
        let (sectors, bytes, turns) = (touched.sectors, touched.bytes, touched.turns);
        self.last[at] = Some(touched);
        let cost = &mut self.cost.accesses[at];
        let before = (cost.requests - cost.unknown - weight).max(0.0);
        let alike = |sum: f64, own: u32| (sum - before * f64::from(own)).abs() < 0.01 * (sum + 1.0);
        cost.even &=
            before == 0.0 || (alike(cost.sectors, sectors) && alike(cost.wavefronts, turns.wavefronts));
        cost.sectors += weight * f64::from(sectors);
        cost.bytes += weight * f64::from(bytes);
        cost.least_sectors += weight * f64::from(bytes.div_ceil(SECTOR_BYTES as u32));
        cost.wavefronts += weight * f64::from(turns.wavefronts);
        cost.conflicts += weight * f64::from(turns.conflicts);
        // A sample with many lanes explains more.
        if cost.sample.as_ref().is_none_or(|sample| sample.mask.count_ones() < mask.count_ones()) {
            let subscripts = subscripts.iter().filter_map(|value| self.values[*value].all()).collect();
            cost.sample = Some(Request { mask, offsets, subscripts });
        }
    }

    fn branch(&mut self, inst: Inst, mask: u32, weight: f64) -> Vec<Lanes> {
        let data = &self.kernel.insts[inst];
        let (yes, no) = (data.regions[0], data.regions[1]);
        let Some(condition) = self.get(data.arguments[0]).mask() else {
            self.cost.exact = false;
            let (yes, no) = (self.block(yes, mask, weight), self.block(no, mask, weight));
            return yes
                .iter()
                .zip(&no)
                .map(|(yes, no)| if yes == no { yes.clone() } else { Lanes::Unknown })
                .collect();
        };
        let (then, otherwise) = (mask & condition, mask & !condition);
        let before = self.cost.instructions;
        let yes = if then != 0 { self.block(yes, then, weight) } else { Vec::new() };
        let middle = self.cost.instructions;
        let no = if otherwise != 0 { self.block(no, otherwise, weight) } else { Vec::new() };
        let after = self.cost.instructions;
        let share = |lanes: u32| f64::from(lanes.count_ones()) / LANES as f64;
        let parts = then != 0 && otherwise != 0;
        let lost = (middle - before) * share(otherwise) + (after - middle) * share(then);
        // Lanes that wait for an empty side lose nothing by it.
        self.note(inst, weight, if parts { weight } else { 0.0 }, if parts { lost } else { 0.0 });
        if then == 0 {
            no
        } else if otherwise == 0 {
            yes
        } else {
            yes.iter().zip(&no).map(|(yes, no)| yes.merge(no, condition)).collect()
        }
    }

    fn note(&mut self, inst: Inst, runs: f64, divergent: f64, lost: f64) {
        match self.cost.branches.iter_mut().find(|known| known.inst == inst) {
            Some(known) => {
                known.runs += runs;
                known.divergent += divergent;
                known.lost += lost;
            }
            None => self.cost.branches.push(BranchCost { inst, runs, divergent, lost }),
        }
    }

    /// A loop whose number of rounds nobody can tell: one round stands for all.
    fn unknown_rounds(&mut self, inst: Inst, mask: u32, weight: f64) -> Vec<Lanes> {
        self.cost.exact = false;
        for region in &self.kernel.insts[inst].regions {
            for param in &self.kernel.blocks[*region].params {
                self.set(*param, Lanes::Unknown);
            }
            self.depth += 1;
            self.block(*region, mask, weight * UNKNOWN_TRIPS as f64);
            self.depth -= 1;
        }
        Vec::new()
    }

    fn repeat(&mut self, inst: Inst, mask: u32, weight: f64) -> Vec<Lanes> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        let bounds = kernel.loop_bounds(inst);
        let (step, initial) = match data.opcode {
            Opcode::For => (self.get(data.arguments[2]), &data.arguments[3..]),
            _ => (Lanes::Same(1), &[][..]),
        };
        let params = &kernel.blocks[data.regions[0]].params[bounds.len()..];
        for ((value, param), result) in initial.iter().zip(params).zip(&data.results) {
            self.sources[*param] = self.sources[*value];
            self.sources[*result] = self.sources[*value];
        }
        let initial = initial.iter().map(|value| self.get(*value)).collect();
        // Rounds of each axis in each lane.
        let mut axes = Vec::with_capacity(bounds.len());
        for (low, high) in bounds {
            let (low, high) = (self.get(low), self.get(high));
            let extent = high.zip(&low, |high, low| high.saturating_sub(low).max(0));
            let rounds =
                extent.zip(&step, |extent, step| (extent as u64).div_ceil(step.max(1) as u64) as i64);
            match rounds.all() {
                Some(rounds) => axes.push((low, rounds)),
                None => return self.unknown_rounds(inst, mask, weight),
            }
        }
        self.rounds(inst, &axes, &step, initial, mask, weight)
    }

    fn rounds(
        &mut self,
        inst: Inst,
        axes: &[(Lanes, [i64; LANES])],
        step: &Lanes,
        initial: Vec<Lanes>,
        mask: u32,
        weight: f64,
    ) -> Vec<Lanes> {
        let data = &self.kernel.insts[inst];
        let body = data.regions[0];
        let of_lane =
            |lane: usize| axes.iter().map(|(_, rounds)| rounds[lane]).fold(1i64, i64::saturating_mul);
        let totals: [i64; LANES] = std::array::from_fn(of_lane);
        let active = || (0..LANES).filter(|lane| mask >> lane & 1 == 1);
        let most = active().map(|lane| totals[lane]).max().unwrap_or(0) as u64;
        let parts = active().any(|lane| totals[lane] as u64 != most);
        let limit = ROUNDS[self.depth.min(ROUNDS.len() - 1)];
        let looked = most.min(limit);
        let carries = initial.iter().any(|lanes| *lanes != Lanes::Unknown);
        let params = self.kernel.blocks[body].params.clone();
        let (mut carried, mut before, mut lost) = (initial.clone(), initial.clone(), 0.0);
        // How much what is carried grows in each round, where it grew alike in the first two.
        let mut growth: Option<Vec<Lanes>> = None;
        let after = |growth: &[Lanes], rounds: &dyn Fn(usize) -> i64| {
            let grown = |(start, by): (&Lanes, &Lanes)| match (start.all(), by.all()) {
                (Some(start), Some(by)) => {
                    Lanes::of(|lane| start[lane].wrapping_add(by[lane].wrapping_mul(rounds(lane))))
                }
                _ => Lanes::Unknown,
            };
            initial.iter().zip(growth).map(grown).collect::<Vec<_>>()
        };
        self.depth += 1;
        for at in 0..looked {
            let (round, share) = match &growth {
                _ if !carries => sampled(at, looked, most, looked / 4),
                Some(_) => sampled(at, looked, most, 2),
                // The first two tell whether it grows evenly, and stand for themselves.
                None if looked <= 2 => (at, most as f64 / looked as f64),
                None if at < 2 => (at, 1.0),
                None => (at, (most - 2) as f64 / (looked - 2) as f64),
            };
            if let Some(growth) = &growth {
                carried = after(growth, &|_| round as i64);
            }
            let share = weight * share;
            let running = active().filter(|lane| (totals[*lane] as u64) > round);
            let running = running.fold(0u32, |mask, lane| mask | 1 << lane);
            // The place of the round on each axis, the last one fastest.
            for (axis, (low, _)) in axes.iter().enumerate() {
                let index = Lanes::of(|lane| {
                    let later: i64 = axes[axis + 1..].iter().map(|(_, rounds)| rounds[lane].max(1)).product();
                    let own = round as i64 / later.max(1);
                    let own = if axis == 0 { own } else { own % axes[axis].1[lane].max(1) };
                    low.get(lane).unwrap_or(0).wrapping_add(own.wrapping_mul(step.get(lane).unwrap_or(1)))
                });
                self.set(params[axis], index);
            }
            for (param, lanes) in params[axes.len()..].iter().zip(&carried) {
                self.set(*param, lanes.clone());
            }
            let start = self.cost.instructions;
            let yielded = self.block(body, running, share);
            let waiting = f64::from((mask & !running).count_ones()) / LANES as f64;
            lost += (self.cost.instructions - start) * waiting;
            if !carried.is_empty() {
                let next = |(new, old): (&Lanes, &Lanes)| new.merge(old, running);
                let next = yielded.iter().zip(&carried).map(next).collect();
                let earlier = std::mem::replace(&mut before, std::mem::replace(&mut carried, next));
                if at == 1 && looked > 2 {
                    let grew = |new: &[Lanes], old: &[Lanes]| {
                        new.iter()
                            .zip(old)
                            .map(|(new, old)| new.zip(old, i64::wrapping_sub))
                            .collect::<Vec<_>>()
                    };
                    let now = grew(&carried, &before);
                    growth = (now == grew(&before, &earlier)).then_some(now);
                }
            }
        }
        self.depth -= 1;
        self.note(inst, weight, if parts { weight } else { 0.0 }, lost);
        if let Some(growth) = &growth {
            return after(growth, &|lane| totals[lane]);
        }
        if looked == most {
            return carried;
        }
        // What grew by the same in each round goes on so.
        let left = (most - looked) as i64;
        let last = |(new, old): (&Lanes, &Lanes)| new.zip(old, |new, old| new + (new - old) * left);
        carried.iter().zip(&before).map(last).collect()
    }
}

/// The round that is the sample of this number, and how many rounds it stands for. Where there are several samples, the first
/// ones and the last ones stand for themselves alone: a loop that reads ahead does less in the last ones, and edges lie in
/// both. The others stand in the middle of equal parts of what is between.
fn sampled(at: u64, samples: u64, rounds: u64, first: u64) -> (u64, f64) {
    if samples == rounds {
        return (at, 1.0);
    }
    let last = samples * 3 / 8;
    let (parts, between) = (samples - first - last, rounds - first - last);
    if at < first {
        return (at, 1.0);
    }
    if at >= first + parts {
        return (rounds - (samples - at), 1.0);
    }
    let middle = u128::from(2 * (at - first) + 1) * u128::from(between) / u128::from(2 * parts);
    (first + middle as u64, between as f64 / parts as f64)
}

struct Accessed<'a> {
    inst: Inst,
    buffer: Buffer,
    leaf: u32,
    width: u32,
    writes: bool,
    atomic: bool,
    subscripts: &'a [Value],
}

/// Instructions that the machine executes for one of ours.
fn instructions(data: &InstData) -> f64 {
    match data.opcode {
        Opcode::Const | Opcode::Symbol => 0.0,
        Opcode::OuterFma => data.results.len() as f64,
        Opcode::Outer => 2.0 * data.results.len() as f64,
        _ => 1.0,
    }
}

fn known(value: Option<i64>) -> Lanes {
    value.map_or(Lanes::Unknown, Lanes::Same)
}

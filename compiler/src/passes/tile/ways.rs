//! Ways to spread the elements of a block over its threads, and what accesses cost under each: sectors of global memory,
//! requests, and wavefronts of shared memory for what is converted, in integers.

use crate::analysis::SECTOR_BYTES;
use crate::layout::{Dimension, ValueLayout, sectors};
use std::collections::BTreeSet;

/// Threads of a block with elements enough for them.
pub const THREADS: u64 = 256;
/// Bytes of the widest access.
pub const VECTOR: u64 = 16;
/// Elements that a thread has at least.
const LEAST: u64 = 4;
/// Lanes of a warp.
pub const LANES: u64 = 32;
/// Bytes of a wavefront of shared memory.
const WAVEFRONT: u64 = 128;
/// What a sector costs beside a wavefront: a multiprocessor gets half as many bytes a cycle from the caches beyond its
/// own as from shared memory, and a sector is a quarter of a wavefront.
const OF_SECTOR: u64 = 2;
/// What waiting for the other warps costs one, in wavefronts.
const OF_BARRIER: u64 = 10;

/// An axis of a block's tiles. Its extent is a power of two.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    pub name: String,
    pub extent: u64,
    /// Whether its elements are one vector wherever they are neighbours in memory.
    pub is_vector: bool,
}

/// How an access moves with the axes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// Bytes an axis: 0 where it does not move with it. Sizes that are not known are taken to be large.
    pub steps: Vec<i64>,
    /// Bytes of an element.
    pub bytes: u64,
    pub stores: bool,
    /// Whether it may have a layout of its own: what it accesses follows from coordinates alone.
    pub is_movable: bool,
}

/// A layout made of whole digits: the axes from the fastest on, cut into registers, lanes and warps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    /// The least significant first: which dimension a digit of an axis is, and its size.
    digits: Vec<(usize, Dimension, u64)>,
}

/// What each access does, and what that costs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    /// The layout of all values that nothing else is said of.
    pub main: Way,
    /// That of an access, where it is another one.
    pub own: Vec<Option<Way>>,
    pub cost: u64,
    /// The least with one layout for all.
    pub plain: u64,
}

impl Access {
    /// Whether it moves with every axis.
    pub fn is_whole(&self) -> bool {
        self.steps.iter().all(|step| *step != 0)
    }

    /// Bytes that lie side by side in memory, of what a block accesses.
    pub fn run(&self, axes: &[Axis]) -> u64 {
        let mut parts: Vec<(u64, u64)> =
            self.steps.iter().zip(axes).map(|(step, axis)| (step.unsigned_abs(), axis.extent)).collect();
        parts.sort_unstable();
        parts.iter().fold(self.bytes, |run, (step, extent)| if *step == run { run * extent } else { run })
    }

    /// Elements that a block accesses.
    fn elements(&self, axes: &[Axis]) -> u64 {
        let moved = axes.iter().zip(&self.steps).filter(|(_, step)| **step != 0);
        moved.map(|(axis, _)| axis.extent).product()
    }
}

impl Way {
    /// Lanes along the axes in the order in which an access moves, the fastest first; a vector's elements are a thread's.
    /// What is left of the lanes goes to warps, what is left of these to registers.
    fn along(axes: &[Axis], access: &Access, warps: u64) -> Self {
        let mut order: Vec<usize> = (0..axes.len()).collect();
        // What it does not move with comes last; of equal steps the last axis first.
        let key = |at: &usize| {
            let step = access.steps[*at].unsigned_abs();
            (step == 0, step, usize::MAX - at)
        };
        order.sort_by_key(key);
        let mut digits = Vec::new();
        let mut rest: Vec<(usize, u64)> = order.iter().map(|at| (*at, axes[*at].extent)).collect();
        if let Some((at, extent)) = rest.first_mut()
            && axes[*at].is_vector
            && access.steps[*at].unsigned_abs() == access.bytes
        {
            digits.push((*at, Dimension::Register, *extent));
            *extent = 1;
        }
        for (dimension, count) in [(Dimension::Lane, LANES), (Dimension::Warp, warps)] {
            let mut left = count;
            for (at, extent) in &mut rest {
                let size = left.min(*extent);
                digits.push((*at, dimension, size));
                (*extent, left) = (*extent / size, left / size);
            }
        }
        digits.extend(rest.iter().map(|(at, extent)| (*at, Dimension::Register, *extent)));
        digits.retain(|(_, _, size)| *size > 1);
        Self { digits }
    }

    /// How far each digit of a dimension moves an access, with its size; the lowest first.
    fn moves(&self, axes: &[Axis], access: &Access, dimension: Dimension) -> Vec<(i64, u64)> {
        let mut positions = vec![1i64; axes.len()];
        let mut moves = Vec::new();
        for (at, of, size) in &self.digits {
            if *of == dimension {
                moves.push((access.steps[*at].saturating_mul(positions[*at]), *size));
            }
            positions[*at] *= *size as i64;
        }
        moves
    }

    /// What an access of all elements of a block costs, in wavefronts of shared memory.
    fn cost(&self, axes: &[Axis], access: &Access, warps: u64) -> u64 {
        let offsets = |moves: &[(i64, u64)]| {
            moves.iter().fold(vec![0i64], |offsets, (step, size)| {
                let moved = (0..*size as i64).flat_map(|at| offsets.iter().map(move |it| it + at * step));
                moved.collect()
            })
        };
        let mut registers = self.moves(axes, access, Dimension::Register);
        let lowest =
            self.digits.first().filter(|(at, of, _)| *of == Dimension::Register && axes[*at].is_vector);
        let vector = match lowest {
            Some((at, _, size)) if access.steps[*at].unsigned_abs() == access.bytes => {
                registers.remove(0);
                *size
            }
            _ => 1,
        };
        // What a thread has several times it brings once.
        let requests: BTreeSet<i64> = offsets(&registers).into_iter().collect();
        let lanes = offsets(&self.moves(axes, access, Dimension::Lane));
        let bits: Vec<i64> = lanes.iter().map(|offset| offset.saturating_mul(8)).collect();
        let found = sectors(&bits, vector * access.bytes * 8, SECTOR_BYTES);
        let requests = requests.len() as u64 * warps;
        if access.is_whole() {
            return requests * (OF_SECTOR * found + 1);
        }
        // What lacks an axis comes once, and is then in the multiprocessor's cache.
        let bytes = access.elements(axes) * access.bytes;
        requests * (found * SECTOR_BYTES).div_ceil(WAVEFRONT) + OF_SECTOR * bytes.div_ceil(SECTOR_BYTES)
    }

    /// The layout that it is.
    pub fn layout(&self, axes: &[Axis], threads: u64) -> Option<ValueLayout> {
        // Numbers of a dimension are made from its digits, in the order of the axes' text: the last axis lowest. So the
        // digits are given their places one by one.
        let mut layout: Option<ValueLayout> = None;
        for (at, dimension, size) in &self.digits {
            let digit = ValueLayout::new(&[(axes[*at].name.as_str(), &[(*dimension, *size)])]).ok()?;
            layout = Some(match layout {
                None => digit,
                Some(low) => low.product(&digit).ok()?,
            });
        }
        let mut layout = layout?;
        for (dimension, whole) in [(Dimension::Lane, LANES), (Dimension::Warp, threads / LANES)] {
            let times = whole / layout.extent(dimension);
            if times > 1 {
                layout = layout.replicated(dimension, times).ok()?;
            }
        }
        Some(layout)
    }
}

/// Wavefronts for what an access moves, to shared memory and back, and the barrier.
fn conversion(axes: &[Axis], access: &Access, warps: u64) -> u64 {
    2 * (access.elements(axes) * access.bytes).div_ceil(WAVEFRONT) + OF_BARRIER * warps
}

/// Threads of a block of so many elements.
pub fn threads(elements: u64) -> u64 {
    (elements / LEAST).next_power_of_two().clamp(LANES, THREADS)
}

/// The cheapest layouts of a block's values: one for all, and others for accesses that cost less with a conversion. Among
/// equal ones the layout of an access that comes early, and of stores before loads.
pub fn assign(axes: &[Axis], accesses: &[Access], threads: u64) -> Option<Assignment> {
    let warps = threads / LANES;
    let own: Vec<Way> = accesses.iter().map(|access| Way::along(axes, access, warps)).collect();
    let least: Vec<u64> =
        accesses.iter().zip(&own).map(|(access, way)| way.cost(axes, access, warps)).collect();
    let stores = (0..accesses.len()).filter(|at| accesses[*at].stores);
    let loads = (0..accesses.len()).filter(|at| !accesses[*at].stores);
    let mut best: Option<Assignment> = None;
    let mut plain = u64::MAX;
    for main in stores.chain(loads).map(|at| &own[at]) {
        let stays: Vec<u64> = accesses.iter().map(|access| main.cost(axes, access, warps)).collect();
        plain = plain.min(stays.iter().sum());
        let mut ways = Vec::with_capacity(accesses.len());
        let mut cost = 0;
        for (at, access) in accesses.iter().enumerate() {
            let moves = least[at] + conversion(axes, access, warps);
            let is_moved = access.is_movable && access.is_whole() && moves < stays[at];
            cost += if is_moved { moves } else { stays[at] };
            ways.push(is_moved.then(|| own[at].clone()));
        }
        if best.as_ref().is_none_or(|best| cost < best.cost) {
            best = Some(Assignment { main: main.clone(), own: ways, cost, plain: 0 });
        }
    }
    best.map(|best| Assignment { plain, ..best })
}

/// The least cost with all lanes along one axis of the loop, and elements of the others in other warps; `places` says of each axis
/// of the tiles which axis of the loop it is, and how many of its iterations its elements are apart. `u64::MAX` where that axis has
/// no iterations for all lanes.
pub fn along_one(
    one: usize,
    axes: &[Axis],
    places: &[(usize, i64)],
    accesses: &[Access],
    threads: u64,
) -> u64 {
    if iterations(one, axes, places) < LANES {
        return u64::MAX;
    }
    // What runs along this axis first, and along the others in the order of the loop.
    let step = |(at, by): &(usize, i64)| if *at == one { *by } else { i64::MAX - *at as i64 };
    let steps: Vec<i64> = places.iter().map(step).collect();
    // With its vectors, and without.
    let ways = [1, 0].map(|bytes| Access { steps: steps.clone(), bytes, stores: false, is_movable: false });
    let warps = threads / LANES;
    let cost = |way: Way| accesses.iter().map(|access| way.cost(axes, access, warps)).sum();
    ways.into_iter().map(|access| cost(Way::along(axes, &access, warps))).min().unwrap_or(u64::MAX)
}

/// How many iterations of an axis of the loop the tiles have.
pub fn iterations(one: usize, axes: &[Axis], places: &[(usize, i64)]) -> u64 {
    let parts = axes.iter().zip(places).filter(|(_, (at, _))| *at == one);
    parts.map(|(axis, _)| axis.extent).product()
}

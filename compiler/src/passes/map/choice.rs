//! Which axis gets the lanes, which the warps.

use crate::analysis::{
    Affine, MemoryAccess, SECTOR_BYTES, Stride, accesses, sectors_of_lanes, sectors_per_request, trip_count,
};
use crate::ir::Parents;
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::{BufferKind, Kernel};
use crate::ir::op::Opcode;
use crate::ir::schedule::Directive;
use crate::passes::pass::TargetFacts;
use crate::passes::per_thread::walked;

use super::requested::{Requested, names, shared};

/// Lanes and warps of each axis, in the order in which the axes shall stand.
pub struct Choice {
    /// Places in the present order.
    pub order: Vec<usize>,
    /// One an axis, in the new order.
    pub lanes: Vec<u32>,
    pub warps: Vec<u32>,
}

/// What one request costs where the addresses of neighbouring lanes have nothing to do with each other.
const SCATTERED: u64 = 32;

/// Bytes that stores go through the first cache by, and the sectors that one of them costs at least: pieces of 32 bytes, each in
/// another line, take twice as long as lines (H200, bf16 patches of 16 x 16 pixels of 3 bytes: 131 us with stores of a sector
/// each and loads of lines, 99 the other way about).
const LINE_BYTES: i64 = 128;
const SECTORS_OF_LINE: u64 = 2;

impl Choice {
    /// `along` is for how many threads at most there is use along the last axes, the very last one first, where that is known.
    /// `requested` are threads, or warps, along the axes in their present order.
    pub fn new(
        kernel: &Kernel,
        (costs, order, along): (&Costs, Vec<usize>, [Option<u64>; 2]),
        threads: u32,
        requested: Option<&Requested>,
        target: &TargetFacts,
    ) -> Self {
        let reused = reused_axis(kernel, costs, &order);
        let mut extents: Vec<Option<u64>> = order.iter().map(|at| costs.extents[*at]).collect();
        for (extent, along) in extents.iter_mut().rev().zip(along) {
            *extent = along.or(*extent);
        }
        let (mut lanes, mut warps) = threads_of(&extents, reused, threads, target.warp_size);
        let ordered = |counts: &Vec<u32>| order.iter().map(|at| counts[*at]).collect::<Vec<u32>>();
        match requested {
            Some(Requested::Threads(counts)) => {
                (lanes, warps) = shared(&ordered(counts), target.warp_size);
            }
            Some(Requested::Warps(counts)) => {
                // Every warp is whole.
                lanes = threads_of(&extents, reused, threads.max(target.warp_size), target.warp_size).0;
                warps = ordered(counts);
            }
            None => {}
        }
        Self { order, lanes, warps }
    }
}

/// The order in which a loop's axes shall stand: places in the present one.
pub fn order(kernel: &Kernel, forall: Inst, costs: &Costs, target: &TargetFacts) -> Vec<usize> {
    hinted_order(kernel, forall).unwrap_or_else(|| {
        let count = costs.extents.len();
        // The cheapest; among equals the last one, which in the source stands for neighbours in memory.
        let best = (0..count)
            .rev()
            .map(|at| (costs.of_axis(at, target.warp_size), at))
            .min_by_key(|(cost, _)| cost.0);
        let Some(((_, partner), last)) = best else { return Vec::new() };
        let outer = (0..count).filter(|at| *at != last && Some(*at) != partner);
        outer.chain(partner).chain([last]).collect()
    })
}

/// How the accesses of a loop's body move with its axes.
pub struct Costs {
    /// The constant extent of each axis, where it is one.
    extents: Vec<Option<u64>>,
    accesses: Vec<AccessCost>,
    /// Functions and quotients in loops that keep their order, in instructions, where elements of one thread along an axis share
    /// them, one an axis.
    shared: Vec<u64>,
}

struct AccessCost {
    access: MemoryAccess,
    /// One an axis.
    strides: Vec<Stride>,
    /// The sectors of 32 neighbours along each axis that it does not move evenly with, where its subscripts say them.
    irregular: Vec<Option<u64>>,
    /// Bytes of one scalar.
    width: u64,
    /// How often it is done for one iteration.
    weight: u64,
}

/// How often an access is done for one iteration of the loop around: a load is moved out of the loops whose iterations all
/// read the same.
fn weight(
    kernel: &Kernel,
    (parents, affine): (&Parents, &mut Affine<'_>),
    forall: Inst,
    access: &MemoryAccess,
) -> u64 {
    if access.writes {
        return access.weight;
    }
    let mut moves = |inner: Inst| {
        let params = kernel.insts[inner].regions.iter().flat_map(|region| &kernel.blocks[*region].params);
        params.into_iter().any(|param| affine.stride(access.inst, *param) != Stride::Bytes(0))
    };
    let is_loop = |inst: &Inst| {
        matches!(kernel.insts[*inst].opcode, Opcode::Forall | Opcode::Reduce | Opcode::For | Opcode::While)
    };
    let around = parents.enclosing(access.inst).take_while(|inst| *inst != forall).filter(is_loop);
    let trips = around.map(|inner| if moves(inner) { trip_count(kernel, inner) } else { 1 });
    trips.fold(1, u64::saturating_mul)
}

impl Costs {
    pub fn new(kernel: &Kernel, launch: Launch, forall: Inst) -> Self {
        let body = kernel.insts[forall].regions[0];
        let parents = kernel.parents_in(kernel.launches[launch].body);
        let mut affine = Affine::among(kernel, parents.owner_of.clone());
        let extents = kernel.loop_bounds(forall).into_iter().map(|(low, high)| {
            let ends = kernel.int_of(low).zip(kernel.int_of(high));
            ends.map(|(low, high)| u64::try_from((high - low).max(0)).unwrap_or(u64::MAX))
        });
        let extents = extents.collect();
        let accesses = accesses(kernel, body).into_iter().filter_map(|access| {
            let buffer = &kernel.buffers[access.buffer];
            let width = buffer.element.leaves[access.leaf as usize].scalar.size();
            let params = &kernel.blocks[body].params;
            let moves = |param: &Value| {
                let subscripts = kernel.subscripts(&kernel.insts[access.inst]);
                // Lanes begin somewhere else each, whatever their subscripts say.
                if affine.begins_by(subscripts, *param) {
                    return (Stride::Irregular, None);
                }
                let stride = affine.stride_at_begin(access.inst, *param);
                let of_lanes = || sectors_of_lanes(&affine, access.inst, *param, 32);
                (stride, (stride == Stride::Irregular).then(of_lanes).flatten())
            };
            let (strides, irregular): (Vec<Stride>, Vec<Option<u64>>) = params.iter().map(moves).unzip();
            let weight = weight(kernel, (&parents, &mut affine), forall, &access);
            (buffer.kind != BufferKind::Private).then_some(AccessCost {
                access,
                strides,
                irregular,
                width,
                weight,
            })
        });
        let accesses = accesses.collect();
        let params = &kernel.blocks[body].params;
        let shared = params.iter().map(|param| walked::shared_in_order(kernel, body, *param)).collect();
        Self { extents, accesses, shared }
    }

    /// Weighted sectors for 32 iterations with the lanes along an axis, less what its elements share, and the axis that shares the
    /// lanes, if this one is shorter than a warp.
    fn of_axis(&self, axis: usize, warp_size: u32) -> (i128, Option<usize>) {
        let (sectors, partner) = self.sectors_along(axis, warp_size);
        // A warp's instruction takes a quarter of the time of a sector that lies apart.
        let has_several = self.extents[axis].is_none_or(|extent| extent >= 2 * u64::from(warp_size));
        let shared = if has_several { self.shared[axis] } else { 0 };
        let saved = (shared - shared / walked::ELEMENTS) / 4;
        (i128::from(sectors) - i128::from(saved), partner)
    }

    fn sectors_along(&self, axis: usize, warp_size: u32) -> (u64, Option<usize>) {
        let lanes = capped_power_of_two(self.extents[axis].unwrap_or(u64::MAX), warp_size);
        let others = (0..self.extents.len()).rev().filter(|at| *at != axis && lanes < warp_size);
        let shared = others.map(|other| (self.of_lanes(axis, lanes, Some(other), warp_size), Some(other)));
        shared
            .min_by_key(|(cost, _)| *cost)
            .unwrap_or_else(|| (self.of_lanes(axis, warp_size, None, warp_size), None))
    }

    fn of_lanes(&self, axis: usize, lanes: u32, other: Option<usize>, warp_size: u32) -> u64 {
        let inner = self.extents[axis].unwrap_or(u64::MAX).clamp(1, u64::from(lanes));
        let outer = other
            .map_or(1, |other| self.extents[other].unwrap_or(u64::MAX).clamp(1, (warp_size / lanes).into()));
        let mut sum = 0u64;
        for AccessCost { access, strides, irregular, width, weight } in &self.accesses {
            let sectors = match (strides[axis], other.map_or(Stride::Bytes(0), |other| strides[other])) {
                (Stride::Bytes(inner_stride), Stride::Bytes(0)) => {
                    u64::from(sectors_per_request(inner_stride, *width, inner as u32, 0))
                }
                (Stride::Bytes(inner_stride), Stride::Bytes(outer_stride)) => {
                    let starts = (0..outer as i64)
                        .flat_map(|at| (0..inner as i64).map(move |lane| (at, lane)))
                        .map(|(at, lane)| {
                            at.wrapping_mul(outer_stride).wrapping_add(lane.wrapping_mul(inner_stride))
                        });
                    let sectors =
                        different(starts.clone().map(|start| start.div_euclid(SECTOR_BYTES as i64)));
                    let lines = different(starts.map(|start| start.div_euclid(LINE_BYTES)));
                    if access.writes { sectors.max(SECTORS_OF_LINE * lines) } else { sectors }
                }
                (Stride::Bytes(inner_stride), _) => {
                    outer * u64::from(sectors_per_request(inner_stride, *width, inner as u32, 0))
                }
                (_, Stride::Bytes(outer_stride)) if other.is_some() => {
                    inner * u64::from(sectors_per_request(outer_stride, *width, outer as u32, 0))
                }
                _ => outer * irregular[axis].unwrap_or(SCATTERED).min(inner),
            };
            // A partly filled warp costs as many requests as a full one, for fewer iterations.
            let filled = sectors * u64::from(warp_size) / (inner * outer);
            sum = sum.saturating_add(filled.saturating_mul(*weight));
        }
        sum
    }
}

/// The order that a directive gives, if the loop has all the axes that one names: those innermost, in its order.
pub fn hinted_order(kernel: &Kernel, forall: Inst) -> Option<Vec<usize>> {
    let names = names(kernel, forall);
    if names.iter().any(|name| kernel.schedule.factored.contains(name)) {
        return None;
    }
    let places = |hint: &[String]| {
        let mut order: Vec<usize> = Vec::with_capacity(names.len());
        for name in hint {
            order.push((0..names.len()).find(|at| names[*at] == *name && !order.contains(at))?);
        }
        Some(order)
    };
    let orders = kernel.schedule.directives.iter().filter_map(|known| match &known.directive {
        Directive::Order(hint) => places(hint),
        _ => None,
    });
    // The one that says most; of several, the first.
    let order = orders.rev().max_by_key(Vec::len)?;
    let rest = (0..names.len()).filter(|at| !order.contains(at));
    Some(rest.collect::<Vec<_>>().into_iter().chain(order.iter().copied()).collect())
}

/// The place in the new order of an axis that should have the warps, because both it and the last axis are
/// reused: some access in a loop does not move with it, and another one does not move with the last axis.
fn reused_axis(kernel: &Kernel, costs: &Costs, order: &[usize]) -> Option<usize> {
    let (last, outer) = order.split_last()?;
    let still = |axis: usize| {
        costs.accesses.iter().any(|AccessCost { access, strides, .. }| {
            let load = kernel.insts[access.inst].opcode == Opcode::Load;
            load && access.in_loop && strides[axis] == Stride::Bytes(0)
        })
    };
    if !still(*last) {
        return None;
    }
    (0..outer.len()).rev().find(|at| still(outer[*at]))
}

/// Shares the threads of a block among axes, the last one first.
fn threads_of(
    extents: &[Option<u64>],
    reused: Option<usize>,
    threads: u32,
    warp_size: u32,
) -> (Vec<u32>, Vec<u32>) {
    let count = extents.len();
    let (mut lanes, mut warps) = (vec![1; count], vec![1; count]);
    let all_lanes = threads.min(warp_size);
    let all_warps = (threads / warp_size).max(1);

    // An axis shorter than a warp leaves lanes to the axis before it.
    let mut left = all_lanes;
    for at in (0..count).rev() {
        let needed = capped_power_of_two(extents[at].unwrap_or(u64::MAX), left);
        lanes[at] = if at > 0 && left.is_multiple_of(needed) { needed } else { left };
        left /= lanes[at];
    }

    // Warps likewise, a power of two at a time, so that they can be shared; those that nobody takes the block does not have.
    let mut left = all_warps;
    let has_room =
        |at: &usize| extents[*at].is_none_or(|extent| extent >= u64::from(left) * u64::from(lanes[*at]));
    if let Some(reused) = reused.filter(has_room) {
        warps[reused] = left;
        return (lanes, warps);
    }
    for at in (0..count).rev() {
        let extent = extents[at].unwrap_or(u64::MAX);
        let needed = capped_power_of_two(extent.div_ceil(u64::from(lanes[at])), left);
        warps[at] = if left.is_multiple_of(needed) { needed } else { left };
        left /= warps[at];
    }
    (lanes, warps)
}

/// How many different numbers there are.
fn different(numbers: impl Iterator<Item = i64>) -> u64 {
    let mut numbers: Vec<i64> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len() as u64
}

/// The next power of two of at least 1, or the cap where that is less.
fn capped_power_of_two(value: u64, cap: u32) -> u32 {
    match value.max(1).checked_next_power_of_two() {
        Some(power) if power < u64::from(cap) => power as u32,
        _ => cap,
    }
}

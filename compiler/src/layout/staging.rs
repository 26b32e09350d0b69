//! Which layout shared memory has between two layouts of a value, so that neither stores nor loads conflict.
//!
//! Candidates are tried in a fixed order, plain ones first: rows in each order of the axes; rows whose chunks
//! are xored by the row; where all digits are bits, the layout whose segments are chosen so that no two lanes
//! of a phase differ by one (as in 'Linear Layouts', 2025); rows with a pad, for counted digits. Each is
//! measured by the question that a caller could ask as well; the one with the fewest wavefronts and requests
//! wins.

use super::digits::Dimension;
use super::gf2::{Span, intersection, right_inverse};
use super::linear::Linear;
use super::memory::{MemoryAxis, MemoryDigit, Pad};
use super::{Access, Banks, Error, MemoryLayout, Scope, Stride, ValueLayout, Vectors, Wavefronts};

/// What ways cost, in one unit: say, issue slots of a warp.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Costs {
    /// A shuffle of one register.
    pub shuffle: u64,
    /// A select between two registers, where the register depends on the lane.
    pub select: u64,
    /// A wavefront of shared memory.
    pub wavefront: u64,
    /// The barrier between stores and loads of shared memory, a warp.
    pub barrier: u64,
    /// The widest access of shared memory.
    pub vector_bits: u64,
    pub banks: Banks,
}

/// A conversion through shared memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Staged {
    pub memory: MemoryLayout,
    pub scope: Scope,
    pub stores: Vectors,
    pub loads: Vectors,
    /// Of all stores and all loads of the block. Where `count` is `least` there are no conflicts.
    pub wavefronts: [Wavefronts; 2],
}

impl Staged {
    /// Wavefronts that are there only because two words of one bank meet.
    pub fn conflicts(&self) -> u64 {
        self.wavefronts.iter().map(|it| it.count - it.least).sum()
    }
}

/// Axes whose orders are all tried. Of more, only the order of the text and its rotations.
const PERMUTED: usize = 4;

pub fn stage(
    from: &ValueLayout,
    to: &ValueLayout,
    element_bits: u64,
    scope: Scope,
    costs: &Costs,
) -> Result<Staged, Error> {
    let axes: Vec<(&str, u64)> = from.axes().into_iter().filter(|(_, extent)| *extent > 1).collect();
    let mut plain = Vec::new();
    for order in orders(axes.len()) {
        let order: Vec<_> = order.into_iter().map(|at| axes[at]).collect();
        plain.push(MemoryLayout::packed(&order, element_bits)?);
    }
    let elements: u64 = axes.iter().map(|axis| axis.1).product();
    let window = costs.banks.count * costs.banks.bank_bytes * 8;
    let widths: Vec<u64> = (0..=costs.vector_bits.max(1).ilog2())
        .rev()
        .map(|power| 1 << power)
        .filter(|width| *width >= element_bits && width % element_bits == 0)
        .collect();
    let mut candidates = plain.clone();
    for layout in &plain {
        candidates.extend(swizzled(layout, &widths, window, element_bits * elements));
    }
    for width in &widths {
        candidates.extend(segments(from, to, element_bits, width / element_bits, costs));
    }
    let without_pads = candidates.len();
    for layout in &plain {
        for width in &widths {
            let row = |every: u64| layout.padded(Pad { every, bits: *width }).ok();
            candidates.extend([window, window / 2, window * 2, window * 4].into_iter().filter_map(row));
            candidates.extend(pitched(layout, *width));
        }
    }
    // No way has fewer wavefronts than all banks at a time take, nor fewer requests than the widest vectors need.
    let registers = |layout: &ValueLayout| {
        let replicas = layout.replicas().into_iter().filter(|it| it.dimension == Dimension::Register);
        layout.extent(Dimension::Register) / replicas.map(|it| it.size).product::<u64>()
    };
    let requests =
        |layout: &ValueLayout| (registers(layout) * element_bits).div_ceil(costs.vector_bits.max(1));
    let least = (2 * (elements * element_bits).div_ceil(window.max(1)), requests(from) + requests(to));
    let sides = Linear::of(from).zip(Linear::of(to));
    let cost = |memory: &MemoryLayout| {
        let (from, to) = sides.as_ref()?;
        let [store, load] = [from, to].map(|side| {
            side.wavefronts_and_requests(memory, element_bits, (costs.vector_bits, &costs.banks))
        });
        let (store, load) = store.zip(load)?;
        Some((store.0 + load.0, store.1 + load.1))
    };
    let mut best: Option<((u64, u64), Staged)> = None;
    for (at, memory) in candidates.into_iter().enumerate() {
        // A pad is for what cannot be xored; it makes no vectors wider.
        if at >= without_pads && best.as_ref().is_some_and(|best| best.1.conflicts() == 0) {
            break;
        }
        if let Some((known, _)) = &best
            && cost(&memory).is_some_and(|cost| cost >= *known)
        {
            continue;
        }
        let [store, load] =
            [Access::new(from, &memory, element_bits)?, Access::new(to, &memory, element_bits)?];
        let [stores, loads] =
            [&store, &load].map(|access| access.vectors(costs.vector_bits, costs.vector_bits));
        let most = best.as_ref().map_or(u64::MAX, |best| best.0.0);
        let Some(store) = store.wavefronts_up_to(&stores, &costs.banks, most) else { continue };
        let Some(load) = load.wavefronts_up_to(&loads, &costs.banks, most - store.count) else { continue };
        let key = (store.count + load.count, (stores.registers.len() + loads.registers.len()) as u64);
        if best.as_ref().is_none_or(|(known, _)| key < *known) {
            best = Some((key, Staged { memory, scope, stores, loads, wavefronts: [store, load] }));
        }
        if key <= least {
            break;
        }
    }
    best.map(|(_, staged)| staged).ok_or_else(|| Error::TooLarge { number: "the tile".to_string() })
}

/// Orders of so many axes.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count > PERMUTED {
        return (0..count).map(|first| (0..count).map(|at| (first + at) % count).collect()).collect();
    }
    let mut orders = vec![Vec::new()];
    for axis in 0..count {
        let before = std::mem::take(&mut orders);
        for order in before {
            for at in (0..=order.len()).rev() {
                let mut order: Vec<usize> = order.clone();
                order.insert(at, axis);
                orders.push(order);
            }
        }
    }
    orders.sort();
    orders
}

/// Chunks of a row xored by bits above them, where those are bits.
fn swizzled(layout: &MemoryLayout, widths: &[u64], window: u64, bits: u64) -> Vec<MemoryLayout> {
    let mut layouts = Vec::new();
    for width in widths {
        let first = width.trailing_zeros();
        for count in 1..=(window / width).max(1).trailing_zeros() {
            for shift in count..=bits.ilog2().saturating_sub(first + count) {
                layouts.extend(layout.swizzled(first, count, shift).ok());
            }
        }
    }
    layouts
}

/// Rows with so many bits more, without a power of two: strides above the lowest axis grow.
fn pitched(layout: &MemoryLayout, gap: u64) -> Option<MemoryLayout> {
    let mut axes = layout.axes.clone();
    let is_low = |digit: &MemoryDigit, low: i64| digit.stride.number() == low;
    let low = axes.iter().flat_map(|axis| &axis.digits).map(|digit| digit.stride.number()).min()?;
    let row = axes.iter().flat_map(|axis| &axis.digits).find(|digit| is_low(digit, low))?;
    let row = low * row.size as i64;
    for digit in axes.iter_mut().flat_map(|axis: &mut MemoryAxis| &mut axis.digits) {
        if !is_low(digit, low) {
            digit.stride = Stride::Known(digit.stride.number() / row * (row + gap as i64));
        }
    }
    MemoryLayout::from_axes(axes, None).ok()
}

/// Layouts of bits: elements that both sides have in a thread lie side by side; the numbers of segments,
/// which have all banks once, are chosen outside of what the lanes of a phase move on either side.
fn segments(
    from: &ValueLayout,
    to: &ValueLayout,
    element_bits: u64,
    width: u64,
    costs: &Costs,
) -> Vec<MemoryLayout> {
    let found =
        [from, to].map(|it| Some((it.bit_vectors(Dimension::Register)?, it.bit_vectors(Dimension::Lane)?)));
    let [Some((own, lanes)), Some((other, other_lanes))] = found else { return Vec::new() };
    let both = intersection(&own, &other);
    let mut layouts = Vec::new();
    for vector in [both, own.clone(), other.clone()] {
        let vector: Vec<u128> =
            vector.into_iter().filter(|it| *it != 0).take(width.trailing_zeros() as usize).collect();
        // Lanes of a phase, on a side that moves the vector at once.
        let phase = |registers: &[u128], lanes: &[u128]| -> Vec<u128> {
            let span = Span::of(registers.iter().copied());
            let whole = vector.iter().all(|it| span.holds(*it));
            let bits = if whole { element_bits << vector.len() } else { element_bits };
            let phases = &costs.banks.phases;
            let fits = phases.iter().find(|(bytes, _)| bits <= bytes * 8).or(phases.last());
            let count = fits.map_or(0, |(_, lanes)| lanes.max(&1).ilog2() as usize);
            let vector = if whole { &vector[..] } else { &[] };
            vector.iter().chain(lanes.iter().take(count)).copied().collect()
        };
        let phases = [phase(&own, &lanes), phase(&other, &other_lanes)];
        layouts.extend(segmented(from, element_bits, &vector, phases, costs));
    }
    layouts
}

fn segmented(
    from: &ValueLayout,
    element_bits: u64,
    vector: &[u128],
    phases: [Vec<u128>; 2],
    costs: &Costs,
) -> Option<MemoryLayout> {
    let axes = from.axes();
    let bits: u32 = axes.iter().map(|(_, extent)| extent.trailing_zeros()).sum();
    let window = (costs.banks.count * costs.banks.bank_bytes * 8 / element_bits).max(1).ilog2();
    let [left, right] = phases;
    let (left_span, right_span) = (Span::of(left.iter().copied()), Span::of(right.iter().copied()));
    // Vectors outside of both: first those outside of the sum, then sums of one of each side that the other
    // lacks.
    let mut all = Span::of(left.iter().chain(&right).chain(vector).copied());
    let mut chosen: Vec<u128> = (0..bits).map(|bit| 1 << bit).filter(|unit| all.insert(*unit)).collect();
    let mut known = right_span.clone();
    let only_left: Vec<u128> = left.iter().copied().filter(|it| known.insert(*it)).collect();
    let mut known = left_span;
    let only_right: Vec<u128> = right.iter().copied().filter(|it| known.insert(*it)).collect();
    chosen.extend(only_left.iter().zip(&only_right).map(|(one, other)| one ^ other));
    chosen.truncate(bits.saturating_sub(window.max(vector.len() as u32)) as usize);
    let mut span = Span::of(vector.iter().chain(&chosen).copied());
    if span.dimension() < vector.len() + chosen.len() {
        return None;
    }
    // What is left of the space numbers the banks; lanes of the left side first, so that they lie side by
    // side.
    let units = (0..bits).map(|bit| 1u128 << bit);
    let banks: Vec<u128> =
        left.iter().chain(&right).copied().chain(units).filter(|it| span.insert(*it)).collect();
    let basis: Vec<u128> = vector.iter().chain(&banks).chain(&chosen).copied().collect();
    // Row r says which basis vectors have bit r; its inverse says which coordinates an element bit has.
    let row = |bit: u32| basis.iter().enumerate().fold(0u128, |row, (at, it)| row | (it >> bit & 1) << at);
    let rows: Vec<u128> = (0..bits).map(row).collect();
    let coordinates = right_inverse(&rows, basis.len())?;
    let image = |bit: u32| {
        let of = |(at, rows): (usize, &Option<u128>)| (rows.unwrap_or(0) >> bit & 1) << at;
        coordinates.iter().enumerate().fold(0u128, |image, it| image | of(it))
    };
    let mut below = 0;
    let mut memory = Vec::new();
    for (name, extent) in axes.iter().rev() {
        let digit = |bit: u32| {
            let xor = u64::try_from(image(below + bit)).ok()?.checked_mul(element_bits)?;
            Some(MemoryDigit { size: 2, stride: Stride::Known(0), xor })
        };
        let digits = (0..extent.trailing_zeros()).map(digit).collect::<Option<_>>()?;
        memory.push(MemoryAxis { name: name.to_string(), digits });
        below += extent.trailing_zeros();
    }
    memory.reverse();
    // Elements whose size is no power of two have no bits of offsets.
    let layout = element_bits.is_power_of_two().then_some(memory)?;
    MemoryLayout::from_axes(layout, None).ok()
}

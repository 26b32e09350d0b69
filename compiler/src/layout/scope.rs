//! Between which threads a conversion or a reduction moves data.

use super::digits::{Dimension, Factor, Number, Source};
use super::map::{align, columns, mask};
use super::{Error, MOST_PLACES, ValueLayout, gf2};
use std::collections::BTreeSet;

/// A set of threads that have to meet: each is a part of the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    /// No data leaves its thread.
    Thread,
    Warp,
    /// So many warps in a row, the first a multiple of their number; fewer than the block has.
    Team(u64),
    Block,
    Cluster,
}

impl Scope {
    /// The scope of so many warps in a row, of a block of `all`.
    fn of_warps(warps: u64, all: u64) -> Scope {
        match warps {
            1 => Scope::Warp,
            warps if warps < all => Scope::Team(warps),
            _ => Scope::Block,
        }
    }

    /// Whether places whose digit this is lie in one scope.
    fn holds(self, source: Source, size: u64) -> bool {
        // Registers of results come behind the dimensions. A source does not read them.
        let Some(dimension) = Dimension::ALL.get(source.input) else { return false };
        match self {
            Scope::Thread => *dimension == Dimension::Register,
            Scope::Warp => *dimension <= Dimension::Lane,
            Scope::Team(warps) if *dimension == Dimension::Warp => {
                warps.is_multiple_of(source.position * size)
            }
            Scope::Team(_) => *dimension <= Dimension::Lane,
            Scope::Block => *dimension <= Dimension::Warp,
            Scope::Cluster => true,
        }
    }

    /// What places of one scope have in common.
    fn key(self, place: &[u64]) -> [u64; 3] {
        let [lane, warp, cluster] = [1, 2, 3].map(|at| place[at]);
        match self {
            Scope::Thread => [lane, warp, cluster],
            Scope::Warp => [0, warp, cluster],
            Scope::Team(warps) => [0, warp / warps, cluster],
            Scope::Block => [0, 0, cluster],
            Scope::Cluster => [0; 3],
        }
    }
}

impl ValueLayout {
    /// The smallest scope that holds all threads among which elements of one line along an axis lie: where a
    /// reduction or a scan along it meets.
    ///
    /// # Errors
    /// Where there is no such axis.
    pub fn reduction_scope(&self, axis: &str) -> Result<Scope, Error> {
        let sliced = self.slice(axis)?;
        let (refined, _) = self.map().refined()?;
        let before: BTreeSet<_> = self.replicas().into_iter().map(|it| (it.dimension, it.position)).collect();
        let mut scope = Scope::Thread;
        // What moves along the axis alone is a replica once the axis is gone. Xors of several axes' digits
        // count as well: both elements of such a pair lie in a scope of all of their digits.
        let own = refined.iter().filter(|number| number.name == axis).flat_map(|number| &number.digits);
        let sources = own.flat_map(|digit| digit.sources.iter().map(|source| (*source, digit.size)));
        let gone = sliced.replicas().into_iter().filter(|it| !before.contains(&(it.dimension, it.position)));
        let gone = gone.map(|it| (Source { input: it.dimension as usize, position: it.position }, it.size));
        for (source, size) in sources.chain(gone) {
            scope = scope.max(self.scope_of(source, size));
        }
        Ok(scope)
    }

    fn scope_of(&self, source: Source, size: u64) -> Scope {
        match Dimension::ALL[source.input] {
            Dimension::Register => Scope::Thread,
            Dimension::Lane => Scope::Warp,
            Dimension::Warp => Scope::of_warps(source.position * size, self.extent(Dimension::Warp)),
            Dimension::Cluster => Scope::Cluster,
        }
    }

    /// The smallest scope in which each place finds what it holds in layout `to` somewhere in this layout.
    /// Past 2^16 places, where digits have no common refinement, it is the largest scope that there is.
    ///
    /// # Errors
    /// Where the layouts have other axes, extents or numbers of threads.
    pub fn conversion_scope(&self, to: &ValueLayout) -> Result<Scope, Error> {
        let to = self.alike(to)?;
        let warps = self.extent(Dimension::Warp);
        let (mut left, mut right) = (self.map().numbers().to_vec(), to.map().numbers().to_vec());
        // Registers of the two are told apart, as sources and results are anyway.
        let mut inputs = self.map().inputs().to_vec();
        inputs.push(("result".to_string(), to.extent(Dimension::Register)));
        let sources = right.iter_mut().flat_map(|it| &mut it.digits).flat_map(|it| &mut it.sources);
        sources.filter(|source| source.input == 0).for_each(|source| source.input = inputs.len() - 1);
        let aligned = align(&inputs, &mut left, &mut right);
        let mut scopes = vec![Scope::Thread, Scope::Warp];
        scopes.extend((2..warps).filter(|team| warps.is_multiple_of(*team)).map(Scope::Team));
        scopes.push(Scope::Block);
        let moves: Box<dyn Fn(Scope) -> bool> = match &aligned {
            Ok(cuts) => {
                let columns = columns(cuts);
                Box::new(move |scope| within(scope, &left, &right, &columns))
            }
            Err(_) => Box::new(|scope| self.within_by_counting(&to, scope).unwrap_or(false)),
        };
        let found = scopes.into_iter().find(|scope| moves(*scope)).unwrap_or(Scope::Cluster);
        // Of a block with one warp, the warp is all.
        let alone = self.extent(Dimension::Cluster) == 1 && found == Scope::Cluster;
        Ok(if alone { Scope::Block } else { found })
    }

    /// The other layout, with its axes in the order of this one's.
    pub(super) fn alike(&self, other: &ValueLayout) -> Result<ValueLayout, Error> {
        for dimension in [Dimension::Lane, Dimension::Warp, Dimension::Cluster] {
            let (found, expected) = (other.extent(dimension), self.extent(dimension));
            if found != expected {
                return Err(Error::Extent { number: dimension.name().to_string(), found, expected });
            }
        }
        let mut numbers: Vec<Number> = Vec::new();
        for (axis, expected) in self.axes() {
            let number = other.map().numbers().iter().find(|number| number.name == axis);
            let number = number.ok_or_else(|| Error::UnknownAxis { axis: axis.to_string() })?;
            if number.extent() != expected {
                return Err(Error::Extent { number: axis.to_string(), found: number.extent(), expected });
            }
            numbers.push(number.clone());
        }
        let more =
            other.axes().into_iter().find(|(axis, _)| numbers.iter().all(|number| number.name != *axis));
        match more {
            Some((axis, _)) => Err(Error::UnknownAxis { axis: axis.to_string() }),
            None => ValueLayout::from_numbers(other.extents(), numbers),
        }
    }

    /// Whether a scope is enough, from all places one by one; `None` past [`MOST_PLACES`]. The axes stand in
    /// one order.
    pub(super) fn within_by_counting(&self, to: &ValueLayout, scope: Scope) -> Option<bool> {
        let here: BTreeSet<_> = self
            .map()
            .enumerate()?
            .into_iter()
            .map(|(place, element)| (scope.key(&place), element))
            .collect();
        let there = to.map().enumerate()?;
        debug_assert!(there.len() as u64 <= MOST_PLACES);
        Some(there.into_iter().all(|(place, element)| here.contains(&(scope.key(&place), element))))
    }
}

/// Whether each place finds what it needs among the places of its scope: the digits of hardware that may
/// differ inside the scope can make up whatever the two layouts differ in.
fn within(scope: Scope, left: &[Number], right: &[Number], columns: &[Source]) -> bool {
    let digits = |numbers: &[Number]| -> Vec<Factor> {
        numbers.iter().flat_map(|number| number.digits.iter().cloned()).collect()
    };
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for (from, to) in digits(left).iter().zip(&digits(right)) {
        if from.size.is_power_of_two() {
            for bit in 0..from.size.trailing_zeros() {
                here.push(mask(columns, from, bit));
                there.push(mask(columns, to, bit));
            }
        } else if from.sources != to.sources && !from.sources.iter().all(|it| scope.holds(*it, from.size)) {
            return false;
        }
    }
    let column = |rows: &[u128], at: usize| {
        rows.iter().enumerate().fold(0u128, |column, (row, mask)| column | (mask >> at & 1) << row)
    };
    let free = |at: usize| scope.holds(columns[at], 2);
    let reach = gf2::Span::of((0..columns.len()).filter(|at| free(*at)).map(|at| column(&here, at)));
    (0..columns.len()).all(|at| {
        // A free digit of the source may be chosen; the others are those of the place that asks.
        let fixed = if free(at) { 0 } else { column(&here, at) };
        reach.holds(column(&there, at) ^ fixed)
    })
}

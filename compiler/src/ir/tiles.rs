//! Tiles: values that are arrays over axes of their launch, in phase `tiled`.
//!
//! A launch in that phase is the program of one block. It declares axes of known extents; a value has a set of them, and
//! an element for each of their combinations. A value without axes is one scalar, the same for the whole block. Operations
//! work element by element on the union of their operands' axes: an axis that an operand lacks is broadcast.
//!
//! A launch is *open* while its tiles have no layouts, and *placed* once each has one, which says what each register of
//! each lane of each warp holds (`layout/`).

use crate::layout::ValueLayout;

/// Axes that a launch has at most.
pub const MOST_AXES: usize = 16;

/// One axis of a launch's tiles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TileAxis {
    /// Unique in the launch: layouts name their axes by it.
    pub name: String,
    pub extent: u64,
}

/// What a launch in phase `tiled` declares.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tiling {
    pub axes: Vec<TileAxis>,
    /// Those that tiles have; none while the launch is open.
    pub layouts: Vec<ValueLayout>,
}

/// A set of a launch's axes, by their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct AxisSet(u16);

impl AxisSet {
    pub const EMPTY: AxisSet = AxisSet(0);

    /// The set of one axis, below [`MOST_AXES`].
    pub fn one(axis: usize) -> Self {
        debug_assert!(axis < MOST_AXES);
        Self(1 << (axis % MOST_AXES))
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn contains(self, axis: usize) -> bool {
        axis < MOST_AXES && self.0 >> axis & 1 == 1
    }

    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all axes of `other` are in it.
    pub fn has_all(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// The axes, ascending.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = usize> {
        (0..MOST_AXES).filter(move |axis| self.contains(*axis))
    }
}

impl FromIterator<usize> for AxisSet {
    fn from_iter<T: IntoIterator<Item = usize>>(axes: T) -> Self {
        axes.into_iter().fold(Self::EMPTY, |set, axis| set.union(Self::one(axis)))
    }
}

/// The shape of a value: its axes, and where its elements are. Of a scalar both are nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Tile {
    pub axes: AxisSet,
    /// One of [`Tiling::layouts`], by its number.
    pub layout: Option<u16>,
}

impl Tile {
    pub const SCALAR: Tile = Tile { axes: AxisSet::EMPTY, layout: None };
}

impl Tiling {
    /// The axis of a name.
    pub fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis.name == name)
    }

    /// How many elements a tile with these axes has.
    pub fn elements(&self, axes: AxisSet) -> u64 {
        let extents = axes.iter().filter_map(|axis| self.axes.get(axis));
        extents.fold(1, |all, axis| all.saturating_mul(axis.extent))
    }

    /// The names of the axes of a set.
    pub fn names(&self, axes: AxisSet) -> Vec<&str> {
        axes.iter().filter_map(|axis| self.axes.get(axis)).map(|axis| axis.name.as_str()).collect()
    }

    /// The layout of a tile, if it has one.
    pub fn layout(&self, tile: Tile) -> Option<&ValueLayout> {
        self.layouts.get(usize::from(tile.layout?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_axes() {
        let [i, j, p] = [0, 3, 15].map(AxisSet::one);
        let all: AxisSet = [0, 3, 15].into_iter().collect();
        assert_eq!(i.union(j).union(p), all);
        assert!(all.has_all(j) && !j.has_all(all) && all.has_all(AxisSet::EMPTY));
        assert_eq!(all.without(j), i.union(p));
        assert_eq!(all.intersection(j.union(AxisSet::one(2))), j);
        assert_eq!(all.iter().collect::<Vec<_>>(), [0, 3, 15]);
        assert!(!all.contains(16));
    }
}

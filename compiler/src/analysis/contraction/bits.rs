//! Sets of a contraction's axes.

/// A set of a contraction's axes, by their numbers; and whether memory comes in.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AxisBits(u64);

/// Axes that are told apart.
const MOST: usize = 32;
/// Memory is read.
pub const MEMORY: AxisBits = AxisBits(1 << 62);
/// Something that is neither pure nor a load.
pub const OTHER: AxisBits = AxisBits(1 << 63);

impl AxisBits {
    pub const NONE: AxisBits = AxisBits(0);

    pub fn one(axis: usize) -> Self {
        Self(if axis < MOST { 1 << axis } else { OTHER.0 })
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

    pub fn contains(self, axis: usize) -> bool {
        axis < MOST && self.0 >> axis & 1 == 1
    }

    /// Whether all axes of `other` are in it.
    pub fn has_all(self, other: Self) -> bool {
        other.without(self).axes() == Self::NONE
    }

    /// The axes alone.
    pub fn axes(self) -> Self {
        Self(self.0 & ((1 << MOST) - 1))
    }

    /// How many axes there are.
    pub fn count(self) -> u32 {
        self.axes().0.count_ones()
    }

    /// Whether memory is read.
    pub fn reads(self) -> bool {
        self.0 & MEMORY.0 != 0
    }

    /// Whether all of it is pure code and loads.
    pub fn is_pure(self) -> bool {
        self.0 & OTHER.0 == 0
    }
}

//! Extents that bind a dimension: a multiple of it and a constant.

use serde::{Deserialize, Serialize};

/// An extent is `factor * dimension + offset`: 1 and 0 where the dimension stands by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinearExtent {
    /// At least 1.
    pub factor: i64,
    pub offset: i64,
}

impl Default for LinearExtent {
    fn default() -> Self {
        LinearExtent { factor: 1, offset: 0 }
    }
}

impl LinearExtent {
    /// Whether the extent is the dimension.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// The dimension that an extent means, rounded down where there is none; 0 where it would be negative. The extent that
    /// follows from it is another one then, which is told.
    pub fn dimension(&self, extent: u64) -> i64 {
        let dimension =
            (i128::from(extent) - i128::from(self.offset)).div_euclid(i128::from(self.factor.max(1)));
        dimension.clamp(0, i128::from(i64::MAX)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_what_extents_mean() {
        let halo = LinearExtent { factor: 1, offset: 2 };
        assert_eq!([0, 2, 7].map(|extent| halo.dimension(extent)), [0, 0, 5]);
        let pairs = LinearExtent { factor: 2, offset: -1 };
        assert_eq!([0, 1, 2, 7].map(|extent| pairs.dimension(extent)), [0, 1, 1, 4]);
        assert_eq!(LinearExtent { factor: 1, offset: i64::MIN }.dimension(u64::MAX), i64::MAX);
        assert!(LinearExtent::default().is_plain() && !pairs.is_plain());
    }
}

//! Bounds on integers.

use crate::data::Scalar;

/// Inclusive bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    pub low: i128,
    pub high: i128,
}

/// Far outside of every integer type, far inside of `i128`: stands for infinity.
const HUGE: i128 = 1 << 120;

impl Interval {
    pub const ALL: Interval = Interval { low: -HUGE, high: HUGE };

    pub fn new(low: i128, high: i128) -> Self {
        Self { low, high }
    }

    /// All values of an integer type; everything for others.
    pub fn of(scalar: Scalar) -> Self {
        let bits = scalar.size() as u32 * 8;
        match scalar {
            Scalar::Bool => Self::new(0, 1),
            signed if signed.is_signed_integer() => Self::new(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            unsigned if unsigned.is_unsigned_integer() => Self::new(0, (1 << bits) - 1),
            _ => Self::ALL,
        }
    }

    /// This interval if it lies within the type, else the type: the value may have wrapped.
    pub fn within(self, scalar: Scalar) -> Self {
        let all = Self::of(scalar);
        if all.low <= self.low && self.high <= all.high { self } else { all }
    }

    /// What lies in both; where nothing does, `high` is below `low`.
    pub fn intersect(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    pub(super) fn clamp(self) -> Self {
        Self { low: self.low.clamp(-HUGE, HUGE), high: self.high.clamp(-HUGE, HUGE) }
    }

    /// No bound below, or none that is kept.
    pub fn is_open_below(self) -> bool {
        self.low <= -HUGE
    }

    /// No bound above, or none that is kept.
    pub fn is_open_above(self) -> bool {
        self.high >= HUGE
    }

    /// An open end stays open: it may be any distance away.
    // With its bounds clamped it is no sum of numbers, so it is no operator.
    #[allow(clippy::should_implement_trait)]
    pub fn add(self, other: Self) -> Self {
        let open_below = self.is_open_below() || other.is_open_below();
        let open_above = self.is_open_above() || other.is_open_above();
        let low = if open_below { -HUGE } else { self.low.saturating_add(other.low) };
        let high = if open_above { HUGE } else { self.high.saturating_add(other.high) };
        Self { low, high }.clamp()
    }

    /// Of quotients rounded toward zero, for a positive divisor.
    pub(super) fn divide(self, by: i128) -> Self {
        let low = if self.is_open_below() { -HUGE } else { self.low / by };
        let high = if self.is_open_above() { HUGE } else { self.high / by };
        Self { low, high }
    }

    pub fn multiply(self, other: Self) -> Self {
        let products = [
            self.low.saturating_mul(other.low),
            self.low.saturating_mul(other.high),
            self.high.saturating_mul(other.low),
            self.high.saturating_mul(other.high),
        ];
        let low = products.into_iter().fold(i128::MAX, i128::min);
        let high = products.into_iter().fold(i128::MIN, i128::max);
        Self { low, high }.clamp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_ends_absorb() {
        let far_below = Interval::new(-HUGE, 0);
        assert!(far_below.add(Interval::new(HUGE, HUGE)).is_open_below());
        assert!(far_below.divide(1 << 40).is_open_below());
        assert!(Interval::ALL.multiply(Interval::new(-1, 1)).is_open_above());
    }

    #[test]
    fn type_ranges() {
        assert_eq!(Interval::of(Scalar::U8), Interval::new(0, 255));
        assert_eq!(Interval::of(Scalar::I64), Interval::new(i64::MIN as i128, i64::MAX as i128));
        assert_eq!(Interval::of(Scalar::U64), Interval::new(0, u64::MAX as i128));
    }
}

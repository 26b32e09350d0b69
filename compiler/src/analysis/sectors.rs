//! What one request of a warp costs the memory system.

/// Bytes that global memory moves at least.
pub const SECTOR_BYTES: u64 = 32;

/// How many different 32-byte sectors the lanes of one request touch, where each reads `width` bytes and the
/// addresses of neighbouring lanes are `stride` bytes apart, the first at `offset` from a sector's start. The
/// width is at most 32 and at least 1.
pub fn sectors_per_request(stride: i64, width: u64, lanes: u32, offset: u64) -> u32 {
    // Going down touches what going up from the other end touches; sectors do not care about the direction.
    let (step, lanes) = (stride.unsigned_abs(), u64::from(lanes));
    if lanes == 0 {
        return 0;
    }
    let start = if stride < 0 {
        // The lowest address is the last lane's: its place within a sector.
        let down = (u128::from(step) * u128::from(lanes - 1)) % u128::from(SECTOR_BYTES);
        (offset % SECTOR_BYTES + SECTOR_BYTES - down as u64) % SECTOR_BYTES
    } else {
        offset % SECTOR_BYTES
    };
    let last =
        |lane: u64| (u128::from(start) + u128::from(step) * u128::from(lane) + u128::from(width) - 1) / 32;
    let first = |lane: u64| (u128::from(start) + u128::from(step) * u128::from(lane)) / 32;
    // Addresses go up, so a sector is new unless the lane before has touched it.
    let touched = |lane: u64| {
        let from = if lane == 0 { first(0) } else { first(lane).max(last(lane - 1) + 1) };
        (last(lane) + 1).saturating_sub(from)
    };
    (0..lanes).map(touched).sum::<u128>() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn known_patterns() {
        assert_eq!(sectors_per_request(4, 4, 32, 0), 4);
        assert_eq!(sectors_per_request(4, 4, 32, 4), 5);
        assert_eq!(sectors_per_request(0, 4, 32, 0), 1);
        assert_eq!(sectors_per_request(20, 4, 32, 0), 20);
        assert_eq!(sectors_per_request(-4, 4, 32, 28), 4);
        assert_eq!(sectors_per_request(4096, 8, 32, 0), 32);
        assert_eq!(sectors_per_request(i64::MIN, 16, 32, 24), 64);
    }

    proptest! {
        #[test]
        fn agrees_with_counting_bytes(stride in -200i64..200, width in 1u64..=32, lanes in 0u32..=32, offset in 0u64..64) {
            let mut touched = BTreeSet::new();
            for lane in 0..i64::from(lanes) {
                for byte in 0..width as i64 {
                    touched.insert((offset as i64 + stride * lane + byte).div_euclid(32));
                }
            }
            prop_assert_eq!(sectors_per_request(stride, width, lanes, offset) as usize, touched.len());
        }
    }
}

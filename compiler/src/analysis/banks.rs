//! What a warp's access to shared memory costs.
//!
//! Shared memory has 32 banks of 4 bytes; bank b holds the words b, b + 32, …. In one wavefront each bank serves one
//! word, to any number of lanes. Accesses of 8 bytes a lane are served half a warp at a time, those of 16 bytes a
//! quarter. How many wavefronts that makes says the layout room.

use crate::layout::{self, Banks};

/// Banks of shared memory.
pub const BANKS: u64 = 32;
/// Lanes of a warp.
const LANES: u64 = 32;

/// The banks of every GPU, as layouts are asked about them.
pub fn banks() -> Banks {
    Banks { count: BANKS, bank_bytes: 4, phases: vec![(4, LANES), (8, LANES / 2), (16, LANES / 4)] }
}

/// How many wavefronts an access takes in which lane i touches `width` bytes (1 to 16, aligned) from byte
/// `addresses[i]`.
pub fn wavefronts(addresses: &[u64], width: u64) -> u32 {
    let offsets: Vec<i64> = addresses.iter().map(|address| *address as i64 * 8).collect();
    layout::wavefronts(&offsets, width * 8, &banks()).count as u32
}

/// How many wavefronts an access of a warp takes at least in which each lane touches `width` bytes.
pub fn least_wavefronts(width: u64) -> u32 {
    let neighbours: Vec<u64> = (0..LANES).map(|lane| lane * width).collect();
    wavefronts(&neighbours, width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strided(stride: u64, width: u64) -> u32 {
        let addresses: Vec<u64> = (0..32).map(|lane| lane * stride).collect();
        wavefronts(&addresses, width)
    }

    #[test]
    fn known_patterns() {
        assert_eq!(strided(4, 4), 1);
        assert_eq!(strided(0, 4), 1);
        assert_eq!(strided(1, 1), 1);
        assert_eq!(strided(8, 4), 2);
        assert_eq!(strided(128, 4), 32);
        assert_eq!(strided(132, 4), 1);
        assert_eq!(strided(8, 8), 2);
        assert_eq!(strided(16, 16), 4);
        assert_eq!([4, 8, 16].map(|width| strided(width, width)), [4, 8, 16].map(least_wavefronts));
        assert_eq!(wavefronts(&[], 4), 0);
    }

    /// Serves lanes greedily: each round, a bank takes the first word that is asked of it and all who want that one.
    fn oracle(addresses: &[u64], width: u64) -> u32 {
        let lanes = if width <= 4 { 32 } else { 128 / width.next_power_of_two() as usize };
        let mut rounds = 0;
        for group in addresses.chunks(lanes) {
            let mut wanted: Vec<u64> = Vec::new();
            for address in group {
                for byte in *address..*address + width {
                    wanted.push(byte / 4);
                }
            }
            while !wanted.is_empty() {
                let mut served = [None; 32];
                wanted.retain(|word| {
                    let slot = &mut served[(word % 32) as usize];
                    *slot.get_or_insert(*word) != *word
                });
                rounds += 1;
            }
        }
        rounds
    }

    proptest! {
        #[test]
        fn agrees_with_serving_lane_by_lane(
            places in prop::collection::vec(0u64..600, 0..=32),
            shift in 0u32..=4,
        ) {
            let width = 1u64 << shift;
            let addresses: Vec<u64> = places.iter().map(|place| place * width).collect();
            prop_assert_eq!(wavefronts(&addresses, width), oracle(&addresses, width));
        }
    }
}

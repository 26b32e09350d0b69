//! What a warp's access to shared memory costs.
//!
//! Shared memory has 32 banks of 4 bytes; bank b holds the words b, b + 32, …. In one wavefront each bank serves one
//! word, to any number of lanes. Accesses of 8 bytes a lane are served half a warp at a time, those of 16 bytes a
//! quarter.

/// Banks of shared memory.
pub const BANKS: u64 = 32;

/// How many wavefronts an access takes in which lane i touches `width` bytes (1 to 16, aligned) from byte
/// `addresses[i]`.
pub fn wavefronts(addresses: &[u64], width: u64) -> u32 {
    addresses.chunks(together(width)).map(|lanes| group_wavefronts(lanes, width)).sum()
}

/// How many wavefronts an access of a warp takes at least in which each lane touches `width` bytes.
pub fn least_wavefronts(width: u64) -> u32 {
    32 / together(width) as u32
}

/// How many lanes are served at a time.
fn together(width: u64) -> usize {
    match width {
        0..=4 => 32,
        5..=8 => 16,
        _ => 8,
    }
}

/// Different words a bank, the worst bank.
fn group_wavefronts(addresses: &[u64], width: u64) -> u32 {
    let last = |address: u64| (address + width.max(1) - 1) / 4;
    let mut words: Vec<u64> = addresses.iter().flat_map(|address| address / 4..=last(*address)).collect();
    words.sort_unstable();
    words.dedup();
    let mut counts = [0u32; BANKS as usize];
    words.iter().for_each(|word| counts[(word % BANKS) as usize] += 1);
    counts.into_iter().max().unwrap_or(0)
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

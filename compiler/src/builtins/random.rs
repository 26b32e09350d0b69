//! Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011): the
//! counter-based generator behind `rand_u32`, `rand` and `rand_normal`.

const MULTIPLIER: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// The four output words of one counter under one key.
pub fn philox4x32(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..ROUNDS {
        if round > 0 {
            key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
        }
        let first = u64::from(MULTIPLIER[0]) * u64::from(counter[0]);
        let second = u64::from(MULTIPLIER[1]) * u64::from(counter[2]);
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
    }
    counter
}

/// The four words of counters 4·block to 4·block + 3: key (seed low, seed high), counter (block low, block high, 0, 0).
pub fn words(seed: u64, block: u64) -> [u32; 4] {
    philox4x32([block as u32, (block >> 32) as u32, 0, 0], [seed as u32, (seed >> 32) as u32])
}

/// `rand_u32`: the counter's word.
pub fn bits(seed: u64, counter: u64) -> u32 {
    words(seed, counter / 4)[(counter % 4) as usize]
}

/// `rand`: uniform in [0, 1), a multiple of 2^-24, hence exact in `f32`.
pub fn uniform(seed: u64, counter: u64) -> f32 {
    (bits(seed, counter) >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// `rand_normal`: Box–Muller, in f64; the radius comes second (errors of the angle scale with it). An even counter and the
/// odd one behind it have their radius and angle in common: theirs are the cosine and the sine, a quarter turn earlier.
pub fn normal(seed: u64, counter: u64) -> (f64, f64) {
    let words = words(seed, counter / 4);
    let pair = (counter % 4 / 2 * 2) as usize;
    let scale = 1.0 / 16_777_216.0;
    let radius = libm::sqrt(-2.0 * libm::log((f64::from(words[pair] >> 8) + 1.0) * scale));
    let quarters = if counter.is_multiple_of(2) { 0 } else { 3 };
    let turn = ((words[pair + 1] >> 8) + quarters * (1 << 22)) % (1 << 24);
    (radius * libm::cos(std::f64::consts::TAU * f64::from(turn) * scale), radius)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that come with the Random123 library.
    #[test]
    fn agrees_with_random123() {
        assert_eq!(philox4x32([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox4x32([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox4x32([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn key_and_counter_words_are_low_then_high() {
        assert_eq!(words(0x1_0000_0002, 0x3_0000_0004), philox4x32([4, 3, 0, 0], [2, 1]));
    }

    #[test]
    fn four_counters_share_a_block() {
        let block = words(9, 5);
        assert_eq!([20, 21, 22, 23].map(|counter| bits(9, counter)), block);
        let (cosine, radius) = normal(9, 22);
        let (sine, same) = normal(9, 23);
        assert_eq!(radius, same);
        assert!((cosine * cosine + sine * sine - radius * radius).abs() < 1e-12);
        assert!(
            sine.signum() == (std::f64::consts::TAU * f64::from(block[3] >> 8) / 16_777_216.0).sin().signum()
        );
    }

    #[test]
    fn uniform_and_normal_have_their_moments() {
        let count = 20_000;
        let uniform_mean = (0..count).map(|i| f64::from(uniform(7, i))).sum::<f64>() / count as f64;
        assert!((uniform_mean - 0.5).abs() < 0.01);
        let draws: Vec<f64> = (0..count).map(|i| normal(7, i).0).collect();
        let mean = draws.iter().sum::<f64>() / count as f64;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count as f64;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }
}

//! Shared memory's banks, exactly: 32 of four bytes each, one word a wavefront from every bank, a word to any number of lanes.
//!
//! Lanes that ask for eight bytes each are served by halves of a warp, for sixteen bytes by quarters. A load takes two
//! parts at once (the two halves of a warp; of sixteen bytes the two quarters of a half) where within them every lane
//! and its neighbour agree on the address, as neighbours of one distance, 1 or 2. A lane whose neighbour is switched off
//! agrees, where eight bytes are loaded; where it is sixteen, only neighbours at distance 1 do, and only if of all such
//! pairs the same side is switched on. Stores are never joined. The rule is documented nowhere: it was read from an H200
//! (`docs/counters.md`). The emulator counts by it.

/// Lanes of a warp.
const LANES: usize = 32;

const BANKS: usize = 32;
const WORD: u64 = 4;

/// What an access to shared memory takes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Banked {
    pub wavefronts: u32,
    /// Wavefronts more than without two words in one bank.
    pub conflicts: u32,
}

/// Of an access of `bytes` (1, 2, 4, 8 or 16) at addresses that are multiples of it, by the lanes in `mask`.
pub fn banked(addresses: &[u64; LANES], mask: u32, bytes: u32, is_load: bool) -> Banked {
    let mut banked = Banked::default();
    each_part(addresses, mask, bytes, is_load, &mut |lanes| {
        let wavefronts = turns(addresses, lanes, u64::from(bytes));
        banked.wavefronts += wavefronts;
        banked.conflicts += wavefronts - 1;
    });
    banked
}

/// What one wavefront brings, or takes: pieces of neighbouring banks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wavefront {
    /// Whether it is there because another word of one of its banks came before.
    pub conflict: bool,
    /// The first bank of each piece, its lanes as bits, and how many banks it spans.
    pub pieces: Vec<(u32, u32, u32)>,
}

/// The wavefronts of an access one by one, as [`banked`] counts them.
pub fn wavefronts(addresses: &[u64; LANES], mask: u32, bytes: u32, is_load: bool) -> Vec<Wavefront> {
    let mut wavefronts = Vec::new();
    let unit = u64::from(bytes).max(WORD);
    let (rows, banks) = (BANKS as u64 * WORD / unit, (unit / WORD) as u32);
    each_part(addresses, mask, bytes, is_load, &mut |lanes| {
        let mut places: Vec<(u64, u32)> = Vec::new();
        for lane in lanes_of(lanes) {
            let place = addresses[lane] / unit;
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, lanes)) => *lanes |= 1 << lane,
                None => places.push((place, 1 << lane)),
            }
        }
        places.sort_unstable();
        let mut part: Vec<Wavefront> = Vec::new();
        let mut turns = [0usize; BANKS];
        for (place, lanes) in places {
            let row = (place % rows) as usize;
            if turns[row] == part.len() {
                part.push(Wavefront { conflict: !part.is_empty(), pieces: Vec::new() });
            }
            part[turns[row]].pieces.push((row as u32 * banks, lanes, banks));
            turns[row] += 1;
        }
        wavefronts.extend(part);
    });
    wavefronts
}

/// Calls back for the lanes that are served together, part by part.
fn each_part(addresses: &[u64; LANES], mask: u32, bytes: u32, is_load: bool, each: &mut dyn FnMut(u32)) {
    let mut part = |lanes: u32| {
        if mask & lanes != 0 {
            each(mask & lanes);
        }
    };
    let joined = |lanes: u32| is_load && neighbours_agree(addresses, mask & lanes, bytes == 16);
    const HALVES: [u32; 2] = [0x0000_ffff, 0xffff_0000];
    match bytes {
        8 if joined(HALVES[0]) && joined(HALVES[1]) => part(u32::MAX),
        8 => HALVES.into_iter().for_each(part),
        16 => {
            for half in HALVES {
                if joined(half) {
                    part(half);
                } else {
                    part(half & 0x00ff_00ff);
                    part(half & 0xff00_ff00);
                }
            }
        }
        _ => part(u32::MAX),
    }
}

/// Whether all lanes agree with their neighbours at distance 1, or all at distance 2.
fn neighbours_agree(addresses: &[u64; LANES], mask: u32, strictly: bool) -> bool {
    const EVEN: u32 = 0x5555_5555;
    [1, 2].into_iter().any(|distance| {
        let mut alone = 0u32;
        for lane in lanes_of(mask) {
            let other = lane ^ distance;
            if mask >> other & 1 == 0 {
                alone |= 1 << lane;
            } else if addresses[lane] != addresses[other] {
                return false;
            }
        }
        let of_one_side = alone & EVEN == 0 || alone & !EVEN == 0;
        !strictly || alone == 0 || (distance == 1 && of_one_side)
    })
}

fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 == 1)
}

/// The most words that one bank has to give.
fn turns(addresses: &[u64; LANES], mask: u32, bytes: u64) -> u32 {
    // Vectors lie across several banks, all alike: so many bytes are one place, and there are fewer of these.
    let unit = bytes.max(WORD);
    let rows = BANKS as u64 * WORD / unit;
    let mut places = [0; LANES];
    let mut count = 0;
    for lane in lanes_of(mask) {
        places[count] = addresses[lane] / unit;
        count += 1;
    }
    let places = &mut places[..count];
    places.sort_unstable();
    let mut words = [0u32; BANKS];
    let mut last = None;
    for place in places {
        if last != Some(*place) {
            words[(*place % rows) as usize] += 1;
            last = Some(*place);
        }
    }
    words.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wavefronts(bytes: u32, is_load: bool, place: impl Fn(u64) -> u64) -> u32 {
        let addresses = std::array::from_fn(|lane| place(lane as u64) * u64::from(bytes));
        banked(&addresses, u32::MAX, bytes, is_load).wavefronts
    }

    #[test]
    fn a_stride_meets_its_bank_again() {
        for (stride, expected) in [(0, 1), (1, 1), (2, 2), (8, 8), (32, 32), (33, 1)] {
            assert_eq!(wavefronts(4, true, |lane| lane * stride), expected, "stride {stride}");
        }
    }

    #[test]
    fn wavefronts_one_by_one_are_as_many_as_are_counted() {
        for bytes in [1u32, 2, 4, 8, 16] {
            for stride in [0, 1, 2, 3, 8, 17, 32, 33] {
                for (mask, is_load) in [(u32::MAX, true), (u32::MAX, false), (0x0f0f_3001, true)] {
                    let addresses = std::array::from_fn(|lane| lane as u64 * stride * u64::from(bytes));
                    let counted = banked(&addresses, mask, bytes, is_load);
                    let found = super::wavefronts(&addresses, mask, bytes, is_load);
                    assert_eq!(found.len(), counted.wavefronts as usize, "{bytes} bytes, stride {stride}");
                    let conflicts = found.iter().filter(|wavefront| wavefront.conflict).count();
                    assert_eq!(conflicts, counted.conflicts as usize);
                    let lanes = found.iter().flat_map(|wavefront| &wavefront.pieces);
                    assert_eq!(lanes.fold(0, |all, piece| all | piece.1), mask);
                }
            }
        }
    }

    #[test]
    fn vectors_are_served_in_parts_and_loads_of_equal_neighbours_joined() {
        assert_eq!(wavefronts(8, true, |lane| lane), 2);
        assert_eq!(wavefronts(8, true, |lane| lane / 2), 1);
        assert_eq!(wavefronts(8, false, |lane| lane / 2), 2);
        assert_eq!(wavefronts(16, true, |lane| lane), 4);
        assert_eq!(wavefronts(16, true, |_| 0), 2);
        assert_eq!(wavefronts(16, false, |_| 0), 4);
    }
}

//! What a request of a warp touches: sectors, bytes, and turns of shared memory's banks.

use super::Space;
use super::lanes::LANES;
use crate::analysis::SECTOR_BYTES;
use crate::analysis::banked::{Banked, banked};
use smallvec::SmallVec;

/// What a request touches.
#[derive(Clone)]
pub(super) struct Touched {
    offsets: [i64; LANES],
    mask: u32,
    pub sectors: u32,
    /// Different ones.
    pub bytes: u32,
    /// Of shared memory.
    pub turns: Banked,
}

impl Touched {
    pub fn new(offsets: [i64; LANES], mask: u32, width: u32, space: Space, is_load: bool) -> Self {
        let (sectors, bytes) = match space {
            Space::Local => touched_locally(&offsets, mask, width),
            _ => touched(&offsets, mask, width),
        };
        let addresses = offsets.map(|offset| offset as u64);
        let turns = match space {
            Space::Shared => banked(&addresses, mask, width, is_load),
            _ => Banked::default(),
        };
        Self { offsets, mask, sectors, bytes, turns }
    }

    /// Whether the same lanes go to places a number of whole sectors farther on: that turns the banks, and changes no count.
    pub fn is_like(&self, offsets: &[i64; LANES], mask: u32) -> bool {
        let away = offsets[0].wrapping_sub(self.offsets[0]);
        let same = |(new, old): (&i64, &i64)| new.wrapping_sub(*old) == away;
        mask == self.mask && away % SECTOR_BYTES as i64 == 0 && offsets.iter().zip(&self.offsets).all(same)
    }
}

/// Local memory lies interleaved: of each word the lanes' own ones one after the other.
fn touched_locally(offsets: &[i64; LANES], mask: u32, width: u32) -> (u32, u32) {
    let lanes = || (0..LANES).filter(|lane| mask >> lane & 1 == 1);
    let words =
        |lane: usize| (0..i64::from(width.div_ceil(4))).map(move |at| offsets[lane].div_euclid(4) + at);
    let sector = |word: i64, lane: usize| (word * LANES as i64 + lane as i64) * 4 / SECTOR_BYTES as i64;
    let mut sectors: Vec<i64> =
        lanes().flat_map(|lane| words(lane).map(move |word| sector(word, lane))).collect();
    sectors.sort_unstable();
    sectors.dedup();
    (sectors.len() as u32, mask.count_ones() * width)
}

/// Different sectors, and different bytes, of accesses whose addresses are multiples of their width.
fn touched(offsets: &[i64; LANES], mask: u32, width: u32) -> (u32, u32) {
    let lanes = (0..LANES).filter(|lane| mask >> lane & 1 == 1);
    let mut places: SmallVec<[i64; LANES]> = lanes.map(|lane| offsets[lane]).collect();
    places.sort_unstable();
    places.dedup();
    let bytes = places.len() as u32 * width;
    places.dedup_by_key(|place| place.div_euclid(SECTOR_BYTES as i64));
    (places.len() as u32, bytes)
}

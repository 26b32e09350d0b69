//! Global and local memory as the caches see them: lines of 128 bytes in four sectors of 32 bytes each.

use crate::emulator::exec::lanes::{LANES, lanes_of};

/// Bytes of a sector, the piece in which memory moves.
pub const SECTOR: u64 = 32;
/// Bytes of a line.
pub const LINE: u64 = 128;

/// What the lanes of one access ask for together.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Touched {
    /// Different bytes.
    pub bytes: u32,
    pub sectors: u32,
    /// The most lanes that ask for the same bytes.
    pub sharers: u32,
    /// Lines, as the distance from the line of the first lane, with a bit for each sector that is wanted.
    pub lines: Vec<(i64, u8)>,
}

/// Of an access of `bytes` at addresses that are multiples of it, by the lanes in `mask`.
pub fn touched(addresses: &[u64; LANES], mask: u32, bytes: u32) -> Touched {
    let mut wanted: Vec<u64> = lanes_of(mask).map(|lane| addresses[lane]).collect();
    let Some(first) = wanted.first().copied() else { return Touched::default() };
    wanted.sort_unstable();
    let mut touched = Touched::default();
    let (mut last, mut sharers) = (None, 0);
    for address in wanted {
        if last == Some(address) {
            sharers += 1;
        } else {
            touched.bytes += bytes;
            sharers = 1;
            for part in (0..u64::from(bytes)).step_by(SECTOR as usize) {
                touched.want(address + part, first);
            }
        }
        touched.sharers = touched.sharers.max(sharers);
        last = Some(address);
    }
    touched.sectors = touched.lines.iter().map(|(_, sectors)| sectors.count_ones()).sum();
    touched
}

impl Touched {
    /// Addresses come in rising order.
    fn want(&mut self, address: u64, first: u64) {
        let line = (address / LINE).wrapping_sub(first / LINE) as i64;
        let sector = 1 << (address % LINE / SECTOR);
        match self.lines.last_mut() {
            Some((last, sectors)) if *last == line => *sectors |= sector,
            _ => self.lines.push((line, sector)),
        }
    }
}

/// Local memory lies interleaved: word after word, of each the lanes' own one after the other. `addresses` are within
/// each lane's own memory.
pub fn touched_locally(addresses: &[u64; LANES], mask: u32, bytes: u32) -> Touched {
    let mut sectors = Vec::new();
    for lane in lanes_of(mask) {
        for part in (0..u64::from(bytes)).step_by(4) {
            let word = (addresses[lane] + part) / 4;
            sectors.push((word * LANES as u64 + lane as u64) * 4 / SECTOR);
        }
    }
    sectors.sort_unstable();
    sectors.dedup();
    let (sectors, bytes) = (sectors.len() as u32, mask.count_ones() * bytes);
    Touched { bytes, sectors, sharers: 1, lines: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: u32, address: impl Fn(u64) -> u64) -> Touched {
        touched(&std::array::from_fn(|lane| address(lane as u64)), u32::MAX, bytes)
    }

    #[test]
    fn sectors_and_bytes_are_counted_once() {
        let aligned = of(4, |lane| 0x1000 + 4 * lane);
        assert_eq!((aligned.sectors, aligned.bytes, aligned.sharers), (4, 128, 1));
        assert_eq!(of(4, |lane| 0x1004 + 4 * lane).sectors, 5);
        let uniform = of(4, |_| 0x1040);
        assert_eq!((uniform.sectors, uniform.bytes, uniform.sharers), (1, 4, 32));
        assert_eq!(of(16, |lane| 16 * lane).sectors, 16);
        let strided = of(4, |lane| 0x1000 + 128 * (31 - lane));
        assert_eq!((strided.sectors, strided.lines.len(), strided.lines[0]), (32, 32, (-31, 1)));
    }

    #[test]
    fn local_memory_is_interleaved() {
        assert_eq!(touched_locally(&[8; LANES], u32::MAX, 4).sectors, 4);
        assert_eq!(touched_locally(&[8; LANES], u32::MAX, 8).sectors, 8);
        let apart = std::array::from_fn(|lane| 4 * lane as u64);
        assert_eq!(touched_locally(&apart, u32::MAX, 4).sectors, 32);
    }
}

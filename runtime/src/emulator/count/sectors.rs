//! Global and local memory as the caches see them: lines of 128 bytes in four sectors of 32 bytes each.

use crate::emulator::exec::lanes::{FULL, LANES, lanes_of};

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
    let mut touched = Touched::default();
    touched.look_at(addresses, mask, bytes);
    touched
}

impl Touched {
    /// Becomes what an access like that of [`touched`] asks for, in the memory that it has.
    pub fn look_at(&mut self, addresses: &[u64; LANES], mask: u32, bytes: u32) {
        // Most accesses rise from lane to lane; the others are sorted.
        let mut wanted = [0; LANES];
        let (mut count, mut rises) = (LANES, true);
        if mask == FULL {
            wanted = *addresses;
        } else {
            count = 0;
            for lane in lanes_of(mask) {
                wanted[count] = addresses[lane];
                count += 1;
            }
        }
        let wanted = &mut wanted[..count];
        let first = wanted.first().copied().unwrap_or_default();
        for pair in wanted.windows(2) {
            rises &= pair[0] <= pair[1];
        }
        if !rises {
            wanted.sort_unstable();
        }
        self.rising(wanted, first, u64::from(bytes));
    }

    /// Of addresses in rising order; lines are told from that of `first`.
    fn rising(&mut self, wanted: &[u64], first: u64, bytes: u64) {
        self.lines.clear();
        let (mut different, mut most, mut sharers) = (0, 0, 0);
        let mut last = None;
        for address in wanted.iter().copied() {
            if last == Some(address) {
                sharers += 1;
            } else {
                different += 1;
                most = most.max(sharers);
                sharers = 1;
                self.want(address, first);
                for part in (SECTOR..bytes).step_by(SECTOR as usize) {
                    self.want(address + part, first);
                }
            }
            last = Some(address);
        }
        self.bytes = different * bytes as u32;
        self.sharers = most.max(sharers);
        self.sectors = self.lines.iter().map(|(_, sectors)| sectors.count_ones()).sum();
    }

    /// Addresses come in rising order.
    #[inline(always)]
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
    fn in_which_order_lanes_ask_makes_no_difference() {
        let mut again = Touched::default();
        for (mask, step) in [(u32::MAX, 1), (u32::MAX, 7), (0x8421_fffe, 13), (0x0000_0010, 1), (0, 1)] {
            // Steps that have no divisor in common with the lanes mix them.
            let addresses = std::array::from_fn(|lane| 0x1000 + 16 * ((lane as u64 * step + 5) % 32 * 3 / 2));
            again.look_at(&addresses, mask, 16);
            let of_lanes = || lanes_of(mask).map(|lane| addresses[lane]);
            let sharers = |at| of_lanes().filter(|other| *other == at).count() as u32;
            let mut sectors: Vec<u64> = of_lanes().map(|at| at / SECTOR).collect();
            let mut different: Vec<u64> = of_lanes().collect();
            for all in [&mut sectors, &mut different] {
                all.sort_unstable();
                all.dedup();
            }
            let first = of_lanes().next().unwrap_or_default() / LINE;
            let of_lines = again.lines.iter().flat_map(|(line, bits)| {
                let line = first.wrapping_add(*line as u64) * (LINE / SECTOR);
                (0..4).filter(move |sector| bits >> sector & 1 == 1).map(move |sector| line + sector)
            });
            assert_eq!(of_lines.collect::<Vec<_>>(), sectors);
            assert_eq!(again.sectors as usize, sectors.len());
            assert_eq!(again.bytes as usize, 16 * different.len());
            assert_eq!(again.sharers, of_lanes().map(sharers).max().unwrap_or(0));
            assert_eq!(again, touched(&addresses, mask, 16));
        }
    }

    #[test]
    fn local_memory_is_interleaved() {
        assert_eq!(touched_locally(&[8; LANES], u32::MAX, 4).sectors, 4);
        assert_eq!(touched_locally(&[8; LANES], u32::MAX, 8).sectors, 8);
        let apart = std::array::from_fn(|lane| 4 * lane as u64);
        assert_eq!(touched_locally(&apart, u32::MAX, 4).sectors, 32);
    }
}

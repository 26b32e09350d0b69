//! How often a `red` of a warp asks for sectors of global memory. Lanes of a line go together as far as they can.
//!
//! Found out on an H200 by its counters, as it is documented nowhere: 30 launches that scatter permutations of 5,000 to
//! 1,000,003 numbers, and some 1,500 single requests, come out as here to the sector (docs/counters.md). Lanes are taken in
//! order. Each goes along with the first group of its line in which nobody is at its address, unless a lane that came
//! after the group began is at the same place of another line, and the two lines agree in two sums of address bits.

use super::sectors::{LINE, SECTOR};
use crate::emulator::exec::lanes::{LANES, lanes_of};

/// Bits of the address of a line, of which two lines are told by the sum without carry, or not at all.
const SUMS: [u64; 2] =
    [bits(&[7, 8, 9, 10, 12, 13, 15, 16, 17, 18, 20]), bits(&[8, 10, 11, 13, 14, 15, 17, 19, 21])];

const fn bits(places: &[u32]) -> u64 {
    let (mut mask, mut at) = (0, 0);
    while at < places.len() {
        mask |= 1 << places[at];
        at += 1;
    }
    mask
}

/// Lanes of one line that go together.
#[derive(Clone, Copy)]
struct Group {
    line: u64,
    /// Its first lane.
    began: usize,
    /// A bit for each byte of the line at which a lane's address is.
    places: u128,
    /// A bit for each sector.
    sectors: u8,
}

/// Sectors as often as they are asked for by the lanes in `mask`, each at one address.
pub fn turns(addresses: &[u64; LANES], mask: u32) -> u32 {
    let place = |address: u64| address % LINE;
    let sums = |line: u64| SUMS.map(|bits| ((line * LINE) & bits).count_ones() % 2);
    let mut groups: Vec<Group> = Vec::with_capacity(LANES);
    for lane in lanes_of(mask) {
        let address = addresses[lane];
        let line = address / LINE;
        let free = |group: &&mut Group| {
            let in_the_way = |other: usize| {
                (mask >> other) & 1 == 1
                    && place(addresses[other]) == place(address)
                    && addresses[other] / LINE != line
                    && sums(addresses[other] / LINE) == sums(line)
            };
            group.line == line
                && (group.places >> place(address)) & 1 == 0
                && !(group.began + 1..lane).any(in_the_way)
        };
        let bit = 1 << (place(address) / SECTOR);
        match groups.iter_mut().find(free) {
            Some(group) => {
                group.places |= 1 << place(address);
                group.sectors |= bit;
            }
            None => groups.push(Group { line, began: lane, places: 1 << place(address), sectors: bit }),
        }
    }
    groups.iter().map(|group| group.sectors.count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(index: impl Fn(u64) -> u64) -> u32 {
        turns(&std::array::from_fn(|lane| 0x7000_0000_0000 + 4 * index(lane as u64)), u32::MAX)
    }

    #[test]
    fn lanes_at_one_address_go_one_by_one_and_others_of_their_line_along_with_them() {
        assert_eq!([of(|lane| lane), of(|lane| lane % 16), of(|lane| lane * 4 / 5)], [4, 4, 8]);
        assert_eq!([of(|lane| lane * 8), of(|lane| lane.min(8)), of(|_| 3)], [32, 25, 32]);
    }

    #[test]
    fn a_lane_of_another_line_may_stand_in_between() {
        let three = |lanes: [u64; 3]| {
            turns(&std::array::from_fn(|lane| lanes.get(lane).copied().unwrap_or(0)), 0b111)
        };
        // Lanes 0 and 2 in one sector, lane 1 in another line.
        let pair = |between: u64| three([0, between, 4]);
        // Bits 7 and 9 are in the first sum alone, 11 and 14 in the second: lines that differ in two of one sum are alike.
        let alike = (1 << 7) + (1 << 9);
        assert_eq!([pair(alike + 4), pair((1 << 11) + (1 << 14) + 4), pair((1 << 22) + 4)], [3, 3, 3]);
        // Lines told apart by a sum; the place of the lane that is there already; another place.
        assert_eq!([pair((1 << 7) + 4), pair((1 << 14) + 4), pair(alike), pair(alike + 8)], [2; 4]);
        // What came before the group began is not in its way.
        assert_eq!(three([alike + 4, 0, 4]), 2);
    }
}

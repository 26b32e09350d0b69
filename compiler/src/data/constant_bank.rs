//! Constant memory, and which of a module's constant arrays lie there.

/// Bytes of constant memory that a module may declare.
pub const CONSTANT_BANK_BYTES: u64 = 64 * 1024;

/// Each array starts at a multiple of so many bytes.
const ALIGNMENT: u64 = 16;

/// Where a constant array lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConstantPlace {
    /// In constant memory; else in device memory.
    pub in_bank: bool,
    /// Bytes of constant memory that those before it left.
    pub left: u64,
}

/// The places of arrays of so many bytes, in the order of the file: each goes to constant memory where it still fits.
pub fn constant_places(sizes: impl IntoIterator<Item = u64>) -> Vec<ConstantPlace> {
    let mut end = 0u64;
    let place = |size: u64| {
        let left = CONSTANT_BANK_BYTES - end.next_multiple_of(ALIGNMENT);
        let in_bank = size <= left;
        if in_bank {
            end = end.next_multiple_of(ALIGNMENT) + size;
        }
        ConstantPlace { in_bank, left }
    };
    sizes.into_iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_makes_room_for_what_does() {
        let places = |sizes: &[u64]| {
            constant_places(sizes.iter().copied())
                .iter()
                .map(|place| (place.in_bank, place.left))
                .collect::<Vec<_>>()
        };
        assert_eq!(places(&[65536, 1]), [(true, 65536), (false, 0)]);
        assert_eq!(places(&[65537, 65536]), [(false, 65536), (true, 65536)]);
        assert_eq!(places(&[1, 65520, 1]), [(true, 65536), (true, 65520), (false, 0)]);
        assert_eq!(places(&[17, 65505, 65504, 0]), [(true, 65536), (false, 65504), (true, 65504), (true, 0)]);
    }
}

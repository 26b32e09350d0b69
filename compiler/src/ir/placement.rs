//! How a kernel lies on the machine, for people to look at: recorded by the passes that turn it into code, after which
//! nothing in the IR says it any more. No part of the text form, and nothing that a pass may rely on.

use super::axis::{Factor, Level};
use super::entities::Buffer;
use crate::manifest::Expr;

/// How an axis is spread over the machine in a launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Spread {
    /// The launch's name.
    pub launch: String,
    /// The axis' name in the source.
    pub axis: String,
    /// Iterations, over the kernel's symbols, where that is known.
    pub extent: Option<Expr>,
    /// Outermost first.
    pub factors: Vec<Factor>,
}

/// How a tile lies in its shared buffer, whose axes are the copy and the place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedTile {
    pub buffer: Buffer,
    /// Scalars of a row that hold anything.
    pub row: u64,
    /// Scalars from one row to the next: more than the row where it is padded.
    pub pitch: u64,
    /// The bits of a row's number with which the places in it are exchanged by exclusive or; 0 for none.
    pub swizzle: u64,
}

impl SharedTile {
    /// Where a scalar would lie without padding and without exchange: `place` counts scalars from the buffer's start.
    pub fn plain(&self, place: u64) -> u64 {
        let pitch = self.pitch.max(1);
        let (row, column) = (place / pitch, place % pitch);
        row * self.row + (column ^ (row & self.swizzle))
    }
}

/// The factors of an axis, outermost first, those of size 1 left out; the first one takes what is left of the extent.
pub fn factors(open: Level, sized: &[(Level, i64)]) -> Vec<Factor> {
    let mut factors = vec![Factor { level: open, size: None }];
    let sized = sized.iter().filter(|(_, size)| *size > 1);
    factors.extend(sized.map(|(level, size)| Factor { level: *level, size: Some(*size as u64) }));
    factors
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;

    #[test]
    fn places_without_padding_and_exchange() {
        let buffer = Buffer::new(0);
        let padded = SharedTile { buffer, row: 4, pitch: 5, swizzle: 0 };
        assert_eq!([0, 3, 5, 8, 10].map(|place| padded.plain(place)), [0, 3, 4, 7, 8]);
        let exchanged = SharedTile { buffer, row: 4, pitch: 4, swizzle: 3 };
        assert_eq!([4, 5, 6, 7].map(|place| exchanged.plain(place)), [5, 4, 7, 6]);
    }
}

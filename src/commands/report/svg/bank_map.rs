//! Where the elements of a tile lie in the banks: a row for each 128 bytes of shared memory, the tile's first column and
//! its padding marked.

use super::{picture, rect, text};
use maud::{Markup, html};

const LEFT: f64 = 38.0;
const BANK: f64 = 7.0;
const ROW: f64 = 7.0;
/// Bytes of all banks together.
const LINE: u64 = 128;
const WORD: u64 = 4;
/// Rows of 128 bytes that are drawn at most.
const MOST: u64 = 33;

/// A tile's shape in memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    pub rows: u64,
    /// What a row holds, and what it takes.
    pub row: u64,
    pub pitch: u64,
    pub element: u64,
    /// See [`SharedTile::swizzle`](krn_compiler::ir::placement::SharedTile::swizzle).
    pub swizzle: u64,
}

impl Shape {
    /// Without padding and exchange.
    pub fn plain(self) -> Self {
        Shape { pitch: self.row, swizzle: 0, ..self }
    }

    /// Where the first element of a row lies, in bytes from the tile's start.
    fn first_of(&self, row: u64) -> u64 {
        row * self.pitch + (row & self.swizzle) * self.element
    }

    fn drawn_lines(&self) -> u64 {
        (self.rows * self.pitch).div_ceil(LINE).clamp(1, MOST)
    }

    /// Of 32 rows (as many as a warp has lanes), the most whose first elements lie in one bank.
    pub fn degree(&self) -> u64 {
        let mut banks = [0u64; 32];
        for row in 0..self.rows.min(32) {
            banks[(self.first_of(row) % LINE / WORD) as usize] += 1;
        }
        banks.into_iter().max().unwrap_or(0)
    }
}

pub fn bank_map(shape: Shape, label: &str) -> Markup {
    let lines = shape.drawn_lines();
    let end = lines * LINE;
    let place = |byte: u64| (LEFT + (byte % LINE / WORD) as f64 * BANK, 14.0 + (byte / LINE) as f64 * ROW);
    let words = |from: u64, to: u64| (from / WORD * WORD..to.min(end)).step_by(WORD as usize);
    let mut met = [false; 32];
    let body = html! {
        @for bank in (0..32u64).step_by(8) {
            (text("axis", (LEFT + bank as f64 * BANK, 9.0), &bank.to_string()))
        }
        @for line in 0..lines {
            (rect("empty", (LEFT, 14.0 + line as f64 * ROW), (32.0 * BANK - 1.0, ROW - 1.0), ""))
            @if line % 4 == 0 {
                (text("address", (LEFT - 5.0, 20.0 + line as f64 * ROW), &(line * LINE).to_string()))
            }
        }
        @for row in 0..shape.rows {
            @for word in words(row * shape.pitch + shape.row, (row + 1) * shape.pitch) {
                (rect("wasted", place(word), (BANK - 1.0, ROW - 1.0), ""))
            }
        }
        @for row in (0..shape.rows).take_while(|row| shape.first_of(*row) < end) {
            @let byte = shape.first_of(row);
            @let bank = (byte % LINE / WORD) as usize;
            @let class = if std::mem::replace(&mut met[bank], true) { "conflict" } else { "used" };
            (rect(class, place(byte), (BANK - 1.0, ROW - 1.0), &format!("row {row} in bank {bank}")))
        }
    };
    let height = 14.0 + lines as f64 * ROW;
    picture("bank-map", label, ((LEFT + 32.0 * BANK) as u32, height as u32 + 1), body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_and_exchange_spread_a_column() {
        let plain = Shape { rows: 32, row: 128, pitch: 128, element: 4, swizzle: 0 };
        assert_eq!(plain.degree(), 32);
        assert_eq!(Shape { pitch: 132, ..plain }.degree(), 1);
        assert_eq!(Shape { swizzle: 31, ..plain }.degree(), 1);
        assert_eq!(Shape { pitch: 132, ..plain }.plain(), plain);
    }
}

//! The matrix instructions `mma.sync`: their shapes, fragments, and what a warp's instruction computes.

use super::FactorType;
use super::numerics::{self, Number};
use crate::data::Scalar;
use crate::layout::ValueLayout;
use std::sync::OnceLock;

/// Rows of the left factor and of the sums.
pub const ROWS: u64 = 16;
/// Columns of the right factor and of the sums.
pub const COLUMNS: u64 = 8;
/// Lanes of a warp.
pub const WARP: usize = 32;

/// One matrix instruction: `sums[m, n] += left[m, k] * right[k, n]`, of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MatrixAtom {
    pub left: FactorType,
    pub right: FactorType,
    /// Steps along `k`: 256 bits of a factor.
    pub steps: u64,
    /// The compute capability, times ten, from which on there is the instruction.
    pub capability: u32,
    /// Layouts of the left factor, of the right one and of the sums, over `m`, `n` and `k`.
    fragments: [&'static str; 3],
}

/// The layout of the sums, for all of them.
const SUMS: &str = "m = register:2@2 · lane:8@4, n = lane:4@1 · register:2@1";

const fn of_16_bits(factor: FactorType) -> MatrixAtom {
    MatrixAtom {
        left: factor,
        right: factor,
        steps: 16,
        capability: 80,
        fragments: [
            "m = register:2@2 · lane:8@4, k = register:2@4 · lane:4@1 · register:2@1",
            "k = register:2@2 · lane:4@1 · register:2@1, n = lane:8@4",
            SUMS,
        ],
    }
}

const fn of_8_bits(left: FactorType, right: FactorType) -> MatrixAtom {
    MatrixAtom {
        left,
        right,
        steps: 32,
        capability: 80,
        fragments: [
            "m = register:2@4 · lane:8@4, k = register:2@8 · lane:4@1 · register:4@1",
            "k = register:2@4 · lane:4@1 · register:4@1, n = lane:8@4",
            SUMS,
        ],
    }
}

/// All of them.
pub const MATRIX_ATOMS: &[MatrixAtom] = &[
    of_16_bits(FactorType::F16),
    of_16_bits(FactorType::Bf16),
    MatrixAtom {
        left: FactorType::Tf32,
        right: FactorType::Tf32,
        steps: 8,
        capability: 80,
        fragments: [
            "m = register:2@1 · lane:8@4, k = register:2@2 · lane:4@1",
            "k = register:2@1 · lane:4@1, n = lane:8@4",
            SUMS,
        ],
    },
    of_8_bits(FactorType::I8, FactorType::I8),
    of_8_bits(FactorType::I8, FactorType::U8),
    of_8_bits(FactorType::U8, FactorType::I8),
    of_8_bits(FactorType::U8, FactorType::U8),
];

/// The two coordinates of what a register of a lane holds, by register, then by lane.
type Places = Vec<[[usize; 2]; WARP]>;

impl MatrixAtom {
    /// The instruction for factors of these types.
    pub fn find(left: FactorType, right: FactorType) -> Option<&'static MatrixAtom> {
        MATRIX_ATOMS.iter().find(|atom| (atom.left, atom.right) == (left, right))
    }

    /// `m16n8k16`.
    pub fn shape(&self) -> String {
        format!("m{ROWS}n{COLUMNS}k{}", self.steps)
    }

    /// The type of the sums.
    pub fn sum(&self) -> Scalar {
        if self.left.is_float() { Scalar::F32 } else { Scalar::I32 }
    }

    /// Where the elements of the left factor, of the right one and of the sums lie.
    pub fn layouts(&self) -> [ValueLayout; 3] {
        // A test reads all of them.
        self.fragments.map(|text| text.parse().expect("a fragment is a layout"))
    }

    /// Words of a lane, of the left factor, of the right one and of the sums.
    pub const fn words(&self) -> [usize; 3] {
        [4, 2, 4]
    }

    /// Elements of the left factor, of the right one and of the sums, by what lane and register they lie in: as (m, k), (n, k)
    /// and (m, n).
    fn places(&self) -> &'static [Places; 3] {
        static KNOWN: [OnceLock<[Places; 3]>; MATRIX_ATOMS.len()] =
            [const { OnceLock::new() }; MATRIX_ATOMS.len()];
        let number = MATRIX_ATOMS.iter().position(|atom| atom == self).unwrap_or(0);
        KNOWN[number].get_or_init(|| {
            let axes = [["m", "k"], ["n", "k"], ["m", "n"]];
            let [left, right, sums] = self.layouts();
            [(left, axes[0]), (right, axes[1]), (sums, axes[2])].map(|(layout, axes)| places(&layout, axes))
        })
    }

    /// What the instruction computes: words of each register, by lane.
    pub fn run(&self, left: &[[u32; WARP]], right: &[[u32; WARP]], sums: &[[u32; WARP]]) -> [[u32; WARP]; 4] {
        let [left_places, right_places, sum_places] = self.places();
        let steps = self.steps as usize;
        let elements = |words: &[[u32; WARP]], places: &Places, factor: FactorType, rows: u64| {
            let mut matrix = vec![0; rows as usize * steps];
            for (register, lanes) in places.iter().enumerate() {
                for (lane, [row, step]) in lanes.iter().enumerate() {
                    matrix[row * steps + step] = element(words, register, lane, factor);
                }
            }
            matrix
        };
        let left = elements(left, left_places, self.left, ROWS);
        let right = elements(right, right_places, self.right, COLUMNS);
        let mut result = [[0; WARP]; 4];
        if self.left.is_float() {
            let decoded = |matrix: Vec<u32>, factor: FactorType| -> Vec<Number> {
                matrix.into_iter().map(|bits| Number::of(factor, bits)).collect()
            };
            let (left, right) = (decoded(left, self.left), decoded(right, self.right));
            for (register, lanes) in sum_places.iter().enumerate() {
                for (lane, [row, column]) in lanes.iter().enumerate() {
                    let rows = &left[row * steps..][..steps];
                    let columns = &right[column * steps..][..steps];
                    result[register][lane] = numerics::dot(rows, columns, sums[register][lane]);
                }
            }
        } else {
            for (register, lanes) in sum_places.iter().enumerate() {
                for (lane, [row, column]) in lanes.iter().enumerate() {
                    let products = (0..steps).map(|step| {
                        let left = integer(self.left, left[row * steps + step]);
                        left.wrapping_mul(integer(self.right, right[column * steps + step]))
                    });
                    let sum = products.fold(sums[register][lane] as i32, i32::wrapping_add);
                    result[register][lane] = sum as u32;
                }
            }
        }
        result
    }
}

/// Which elements of two axes the registers of each lane hold.
fn places(layout: &ValueLayout, axes: [&str; 2]) -> Places {
    let order: Vec<usize> = axes
        .iter()
        .map(|axis| layout.axes().iter().position(|(name, _)| name == axis).unwrap_or(0))
        .collect();
    let registers = layout.extent(crate::layout::Dimension::Register);
    let place = |register: u64, lane: usize| {
        let element = layout.apply([register, lane as u64, 0, 0]);
        [element[order[0]] as usize, element[order[1]] as usize]
    };
    (0..registers).map(|register| std::array::from_fn(|lane| place(register, lane))).collect()
}

/// The bits of one element of a lane's words.
fn element(words: &[[u32; WARP]], register: usize, lane: usize, factor: FactorType) -> u32 {
    let per_word = factor.per_word();
    let bits = 32 / per_word as u32;
    let word = words[register / per_word][lane];
    let shifted = word >> (bits * (register % per_word) as u32);
    if bits == 32 { shifted } else { shifted & ((1 << bits) - 1) }
}

fn integer(factor: FactorType, bits: u32) -> i32 {
    if factor == FactorType::I8 { i32::from(bits as u8 as i8) } else { bits as i32 }
}

//! Element types and host arrays: the one description of bytes that the checker, the reference evaluator,
//! the manifest and the runtime share. A leaf room: it imports nothing of the compiler.

mod arrangement;
mod constant_bank;
mod leaf_places;
mod linear_extent;
mod values;

pub use arrangement::{CacheMode, Layout, Placement};
pub use constant_bank::{CONSTANT_BANK_BYTES, ConstantPlace, constant_places};
pub use leaf_places::LeafPlaces;
pub use linear_extent::LinearExtent;
pub use values::Value;

use serde::{Deserialize, Serialize};
use std::fmt;

/// The scalar types of the language, as they are stored in memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scalar {
    /// One byte, 0 or 1.
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

impl Scalar {
    pub const ALL: [Scalar; 13] = [
        Scalar::Bool,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::U64,
        Scalar::F16,
        Scalar::BF16,
        Scalar::F32,
        Scalar::F64,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::U8 => "u8",
            Scalar::U16 => "u16",
            Scalar::U32 => "u32",
            Scalar::U64 => "u64",
            Scalar::F16 => "f16",
            Scalar::BF16 => "bf16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        }
    }

    pub fn from_name(name: &str) -> Option<Scalar> {
        Self::ALL.into_iter().find(|scalar| scalar.name() == name)
    }

    /// Size and alignment in bytes.
    #[inline]
    pub fn size(self) -> u64 {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::BF16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }

    #[inline]
    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64)
    }

    #[inline]
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != Scalar::Bool
    }

    pub fn is_signed_integer(self) -> bool {
        matches!(self, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64)
    }

    pub fn is_unsigned_integer(self) -> bool {
        self.is_integer() && !self.is_signed_integer()
    }

    /// The type in which values of this storage type are computed: narrow floats widen to `f32`, narrow
    /// integers to `i32` or `u32`, everything else is itself.
    #[inline]
    pub fn widened(self) -> Scalar {
        match self {
            Scalar::F16 | Scalar::BF16 => Scalar::F32,
            Scalar::I8 | Scalar::I16 => Scalar::I32,
            Scalar::U8 | Scalar::U16 => Scalar::U32,
            other => other,
        }
    }

    /// Whether reading widens and writing narrows.
    #[inline]
    pub fn is_narrow(self) -> bool {
        self.widened() != self
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The f16 nearest to a number, ties to even. Rounded once: a conversion by way of f32 would round twice.
pub fn f16_from_f64(value: f64) -> half::f16 {
    half::f16::from_f32(odd_f32(value))
}

/// The bf16 nearest to a number, ties to even, rounded once.
pub fn bf16_from_f64(value: f64) -> half::bf16 {
    half::bf16::from_f32(odd_f32(value))
}

/// The nearest number of 10 bits behind the point and the exponents of f32, ties away from zero: a `tf32`. What is not finite
/// stays what it is.
#[inline]
pub fn tf32_from_f32(value: f32) -> f32 {
    // A carry goes into the exponent, as it should.
    let rounded = f32::from_bits((value.to_bits().wrapping_add(1 << 12)) & !0x1fff);
    if value.is_finite() { rounded } else { value }
}

/// The f32 toward zero, with its last bit set where that lost anything ("round to odd"): what it is then rounded
/// to comes out as if the number itself had been rounded.
fn odd_f32(value: f64) -> f32 {
    let near = value as f32;
    if value.is_nan() || f64::from(near) == value {
        return near;
    }
    let away = f64::from(near).abs() > value.abs();
    // The neighbour toward zero of a float has the bit pattern just below.
    let bits = if away { near.to_bits() - 1 } else { near.to_bits() };
    f32::from_bits(bits | 1)
}

/// One scalar position of an element: a scalar element has one leaf with an empty path; a struct has one a
/// field (`pos.x`); a fixed array in a struct is one leaf with `extents` (its elements follow each other).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Leaf {
    /// Field names joined by `.`; empty for a scalar element.
    pub path: String,
    pub scalar: Scalar,
    /// Byte offset within the element in its C layout (array of structs).
    pub offset: u64,
    /// Extents of the fixed arrays around it, outermost first, with the byte stride of each
    /// (an array of structs strides by the struct); empty for a plain field.
    pub extents: Vec<u64>,
    pub strides: Vec<u64>,
}

impl Leaf {
    /// How many scalars this leaf holds in one element.
    pub fn count(&self) -> u64 {
        self.extents.iter().product()
    }

    /// Byte offsets within the element of its scalars, in row-major order of its fixed arrays.
    pub fn offsets(&self) -> Vec<u64> {
        strided_offsets(self.offset, &self.extents, &self.strides)
    }

    /// Byte offset within the element of the scalar at a row-major position of its fixed arrays.
    pub fn offset_of(&self, mut position: u64) -> u64 {
        let mut offset = self.offset;
        for (extent, stride) in self.extents.iter().zip(&self.strides).rev() {
            offset += position % extent * stride;
            position /= extent;
        }
        offset
    }
}

/// `first` plus every combination of indices into `extents`, times `strides` (bytes), in row-major order.
pub fn strided_offsets(first: u64, extents: &[u64], strides: &[u64]) -> Vec<u64> {
    extents.iter().zip(strides).fold(vec![first], |offsets, (extent, stride)| {
        offsets.iter().flat_map(|base| (0..*extent).map(move |at| base + at * stride)).collect()
    })
}

/// What an array holds: its leaves in declaration order, and the size of its C layout (natural alignment).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ElementType {
    /// `f32`, `Body`.
    pub name: String,
    pub leaves: Vec<Leaf>,
    pub size: u64,
    pub align: u64,
}

impl ElementType {
    pub fn scalar(scalar: Scalar) -> Self {
        Self {
            name: scalar.name().to_string(),
            leaves: vec![Leaf {
                path: String::new(),
                scalar,
                offset: 0,
                extents: Vec::new(),
                strides: Vec::new(),
            }],
            size: scalar.size(),
            align: scalar.size(),
        }
    }

    /// The scalar, if this is a plain scalar element.
    pub fn as_scalar(&self) -> Option<Scalar> {
        match self.leaves.as_slice() {
            [leaf] if leaf.path.is_empty() && leaf.extents.is_empty() => Some(leaf.scalar),
            _ => None,
        }
    }
}

/// An array on the host: row-major, elements in their C layout, little-endian.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostArray {
    pub element: ElementType,
    /// Empty for a rank-0 array (one element).
    pub shape: Vec<u64>,
    /// `element.size * product(shape)` bytes.
    pub bytes: Vec<u8>,
}

/// How many elements an array of this shape has; `None` beyond what a `u64` counts. One empty axis makes it empty, however
/// long the others are.
fn count(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent))
}

impl HostArray {
    /// All bytes zero. `None` where the size does not fit in memory's address range.
    pub fn zeros(element: ElementType, shape: Vec<u64>) -> Option<Self> {
        let count = count(&shape)?;
        let size = usize::try_from(count.checked_mul(element.size)?).ok()?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).ok()?;
        bytes.resize(size, 0);
        Some(Self { element, shape, bytes })
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        count(&self.shape).unwrap_or(u64::MAX)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_axis_makes_an_array_empty_however_long_the_others_are() {
        let zeros = |shape: &[u64]| HostArray::zeros(ElementType::scalar(Scalar::F32), shape.to_vec());
        let empty = zeros(&[1 << 40, 1 << 40, 0]).expect("nothing to keep");
        assert!(empty.is_empty() && empty.bytes.is_empty());
        assert!(zeros(&[1 << 40, 1 << 40]).is_none());
    }

    #[test]
    fn offsets_are_row_major() {
        let leaf = Leaf {
            path: "m".into(),
            scalar: Scalar::I16,
            offset: 4,
            extents: vec![2, 3],
            strides: vec![100, 10],
        };
        assert_eq!(leaf.offsets(), [4, 14, 24, 104, 114, 124]);
        let each: Vec<u64> = (0..leaf.count()).map(|position| leaf.offset_of(position)).collect();
        assert_eq!(each, leaf.offsets());
        assert_eq!(Leaf { extents: vec![], strides: vec![], ..leaf }.offsets(), [4]);
    }

    #[test]
    fn numbers_of_tf32_are_the_nearest_ties_away_from_zero() {
        let rounded = |bits: u32| tf32_from_f32(f32::from_bits(bits)).to_bits();
        for (from, to) in [
            (0x3f80_0fff, 0x3f80_0000),
            (0x3f80_1000, 0x3f80_2000),
            (0x3f80_3000, 0x3f80_4000),
            (0x3fff_f000, 0x4000_0000),
            (0x0000_0fff, 0),
            (0x0000_1000, 0x0000_2000),
            (0x007f_f000, 0x0080_0000),
            (0x7f7f_efff, 0x7f7f_e000),
            (0x7f7f_f000, 0x7f80_0000),
            (0x7f80_0000, 0x7f80_0000),
        ] {
            assert_eq!(rounded(from), to, "{from:#x}");
            assert_eq!(rounded(from | 1 << 31), to | 1 << 31, "-{from:#x}");
        }
        // The bits that make it one are those that are cut off; the others make a carry of all.
        assert!(
            [0x7f80_0001, 0x7fff_ffff, 0xffff_ffff]
                .map(f32::from_bits)
                .map(tf32_from_f32)
                .iter()
                .all(|it| it.is_nan())
        );
        for number in [1.0f32, -2047.0, 0.25, f32::from_bits(0x2000)] {
            assert_eq!(tf32_from_f32(number), number);
        }
    }

    #[test]
    fn halves_are_rounded_once() {
        // Just above a tie: by way of f32 it would become the tie, and go down.
        assert_eq!(f16_from_f64(2049.0 + 1e-9).to_f64(), 2050.0);
        assert_eq!(f16_from_f64(2049.0).to_f64(), 2048.0);
        assert_eq!(f16_from_f64(2049.0 - 1e-9).to_f64(), 2048.0);
        assert_eq!(bf16_from_f64(257.0 + 1e-9).to_f64(), 258.0);
        assert_eq!(bf16_from_f64(-257.0 - 1e-9).to_f64(), -258.0);
        assert_eq!(f16_from_f64(1e300).to_f64(), f64::INFINITY);
        assert_eq!(f16_from_f64(-65519.999).to_f64(), -65504.0);
        assert_eq!(f16_from_f64(2.980_232_238_769_531_2e-8).to_bits(), 0);
        assert_eq!(f16_from_f64(2.980_232_238_769_532e-8).to_bits(), 1);
        assert!(bf16_from_f64(f64::NAN).is_nan());
        assert_eq!(f16_from_f64(-0.0).to_bits(), 0x8000);
    }
}

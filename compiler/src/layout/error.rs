//! What can be wrong with a layout, or with its text.

use std::fmt;

/// Why there is no such layout. Numbers are counts of elements, except strides and spans, which are bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// The text is not that of a layout: what was found, and what should stand there.
    Text { found: String, expected: &'static str },
    /// An axis is defined twice.
    AxisTwice { axis: String },
    /// The layout has no such axis.
    UnknownAxis { axis: String },
    /// A digit of an axis, or of a hardware dimension, has no values.
    EmptyDigit { number: String },
    /// A number is cut at two places of which neither divides the other, so it has no common digits.
    NoCommonRadix { number: String, low: u64, high: u64 },
    /// Sizes do not multiply to the extent that somebody else says.
    Extent { number: String, found: u64, expected: u64 },
    /// A digit of the axis is made of hardware digits that make others already: not all elements are reached.
    Overlap { axis: String },
    /// Only bits can be xored. This digit has another size.
    XorOfCounted { number: String, size: u64 },
    /// A stride is no multiple of the span of the bits that are xored below it, and does not stay below it
    /// either.
    XorMeetsCarry { axis: String, stride: i64, span: u64 },
    /// Padding needs offsets that are known.
    PadOfDynamic,
    /// The bits that a swizzle reads are not bits of the offset on their own: sums carry into them.
    SwizzleOfCarry { bit: u32 },
    /// A number, or an offset, does not fit 40 bits of extent or 62 bits of offset.
    TooLarge { number: String },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Text { found, expected } => write!(f, "expected {expected}, found '{found}'"),
            Error::AxisTwice { axis } => write!(f, "axis {axis} is defined twice"),
            Error::UnknownAxis { axis } => write!(f, "there is no axis {axis}"),
            Error::EmptyDigit { number } => write!(f, "{number} has a digit of size 0"),
            Error::NoCommonRadix { number, low, high } => {
                write!(f, "{number} is cut at {low} and at {high}, which is no multiple of it")
            }
            Error::Extent { number, found, expected } => {
                write!(f, "{number} has {found} places, not {expected}")
            }
            Error::Overlap { axis } => {
                write!(f, "axis {axis} has a digit whose hardware digits make up others already")
            }
            Error::XorOfCounted { number, size } => {
                write!(f, "{number} xors a digit of size {size}, which is no power of two")
            }
            Error::XorMeetsCarry { axis, stride, span } => {
                write!(f, "axis {axis} adds {stride} bits, no multiple of the {span} bits that are xored")
            }
            Error::PadOfDynamic => write!(f, "a layout with dynamic strides cannot be padded"),
            Error::SwizzleOfCarry { bit } => write!(f, "bit {bit} of the offset is no bit of one axis"),
            Error::TooLarge { number } => write!(f, "{number} is too large"),
        }
    }
}

impl std::error::Error for Error {}

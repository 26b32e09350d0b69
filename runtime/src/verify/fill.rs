//! Input data from a seed: the same bytes on every machine.

use krn_compiler::data::{ElementType, HostArray, Scalar};

/// What an input array holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fill {
    /// Floats uniform in [-1, 1), signed integers in -8..8, unsigned ones in 0..16, booleans fair.
    Random,
    Zeros,
    /// The row-major position, converted to the type.
    Iota,
    /// Uniform in low..high (numbers of any type).
    Range { low: f64, high: f64 },
    /// Non-decreasing integers from `low` to `high`, both reached where there are two elements or more: row
    /// pointers of sparse matrices.
    Sorted { low: i64, high: i64 },
}

/// Why an array could not be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an array of `{element}` with shape {shape:?} does not fit in memory")]
pub struct FillError {
    pub element: String,
    pub shape: Vec<u64>,
}

/// SplitMix64: one well-mixed word a position (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
fn word(seed: u64, position: u64) -> u64 {
    let mut z = seed.wrapping_add(position.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number in [0, 1).
fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1u64 << 53) as f64
}

/// Makes an array. `name` and `seed` together pick the random numbers, so that two inputs differ.
///
/// # Errors
/// Where the array is too large for this machine's memory.
pub fn fill(
    name: &str,
    element: &ElementType,
    shape: &[u64],
    what: Fill,
    seed: u64,
) -> Result<HostArray, FillError> {
    let Some(mut array) = HostArray::zeros(element.clone(), shape.to_vec()) else {
        return Err(FillError { element: element.name.clone(), shape: shape.to_vec() });
    };
    if what == Fill::Zeros {
        return Ok(array);
    }
    let stream = name.bytes().fold(word(seed, 0), |state, byte| word(state, u64::from(byte)));
    let slots = slots(element);
    let count = array.len();
    for index in 0..count {
        for (number, (offset, scalar)) in slots.iter().enumerate() {
            let position = index * slots.len() as u64 + number as u64;
            let random = word(stream, position);
            let value = match what {
                Fill::Zeros => 0.0,
                Fill::Iota => index as f64,
                Fill::Range { low, high } => {
                    let value = low + unit(random) * (high - low);
                    if scalar.is_float() { value } else { value.floor() }
                }
                Fill::Random => match scalar {
                    Scalar::Bool => (random & 1) as f64,
                    scalar if scalar.is_float() => unit(random) * 2.0 - 1.0,
                    scalar if scalar.is_signed_integer() => (random % 16) as f64 - 8.0,
                    _ => (random % 16) as f64,
                },
                Fill::Sorted { low, high } => sorted(low, high, index, count, random),
            };
            let at = (index * element.size + offset) as usize;
            encode(*scalar, value, &mut array.bytes[at..]);
        }
    }
    Ok(array)
}

/// Evenly spaced with jitter, so that the order holds.
fn sorted(low: i64, high: i64, index: u64, count: u64, random: u64) -> f64 {
    if index == 0 || count < 2 {
        return low as f64;
    }
    if index + 1 == count {
        return high as f64;
    }
    let step = (high - low) as f64 / (count - 1) as f64;
    let value = low as f64 + step * (index as f64 + unit(random) - 0.5);
    value.floor().clamp(low as f64, high as f64)
}

/// Byte offset and type of every scalar of an element.
fn slots(element: &ElementType) -> Vec<(u64, Scalar)> {
    let mut slots = Vec::new();
    for leaf in &element.leaves {
        let mut offsets = vec![leaf.offset];
        for (extent, stride) in leaf.extents.iter().zip(&leaf.strides) {
            offsets = offsets.iter().flat_map(|base| (0..*extent).map(move |at| base + at * stride)).collect();
        }
        slots.extend(offsets.into_iter().map(|offset| (offset, leaf.scalar)));
    }
    slots
}

/// Writes a number as a scalar type: floats rounded, integers truncated and wrapped.
pub(crate) fn encode(scalar: Scalar, value: f64, bytes: &mut [u8]) {
    let integer = value as i128;
    match scalar {
        Scalar::Bool => bytes[0] = u8::from(value != 0.0),
        Scalar::F16 => bytes[..2].copy_from_slice(&half::f16::from_f64(value).to_le_bytes()),
        Scalar::BF16 => bytes[..2].copy_from_slice(&half::bf16::from_f64(value).to_le_bytes()),
        Scalar::F32 => bytes[..4].copy_from_slice(&(value as f32).to_le_bytes()),
        Scalar::F64 => bytes[..8].copy_from_slice(&value.to_le_bytes()),
        other => {
            let size = other.size() as usize;
            bytes[..size].copy_from_slice(&integer.to_le_bytes()[..size]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(what: Fill, count: u64) -> Vec<i32> {
        let array = fill("x", &ElementType::scalar(Scalar::I32), &[count], what, 7).expect("small");
        array.bytes.chunks(4).map(|b| i32::from_le_bytes(b.try_into().expect("4 bytes"))).collect()
    }

    #[test]
    fn fills_have_the_stated_ranges_and_depend_on_name_and_seed() {
        assert!(ints(Fill::Random, 1000).iter().all(|value| (-8..8).contains(value)));
        assert!(ints(Fill::Range { low: 3.0, high: 5.0 }, 1000).iter().all(|value| (3..5).contains(value)));
        assert_eq!(ints(Fill::Iota, 3), [0, 1, 2]);
        let sorted = ints(Fill::Sorted { low: 0, high: 100 }, 33);
        assert!(sorted.is_sorted() && sorted[0] == 0 && sorted[32] == 100);
        let element = ElementType::scalar(Scalar::F32);
        let make = |name: &str, seed| fill(name, &element, &[16], Fill::Random, seed).expect("small").bytes;
        assert_eq!(make("x", 1), make("x", 1));
        assert_ne!(make("x", 1), make("y", 1));
        assert_ne!(make("x", 1), make("x", 2));
    }
}

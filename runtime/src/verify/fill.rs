//! Input data from a seed: the same bytes on every machine.

use krn_compiler::data::{ElementType, HostArray, Scalar};
use rayon::prelude::*;

/// What an input array (or one field of its structs) holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fill {
    /// Floats uniform in [-1, 1), signed integers in -8..8, unsigned ones in 0..16, booleans fair.
    Random,
    Zeros,
    Ones,
    /// The row-major position, converted to the type.
    Iota,
    /// Uniform in low..high (numbers of any type; integers for integer types).
    Range {
        low: f64,
        high: f64,
    },
    /// Never falling, random between; the first element is `low`, the last one `high`: row starts of sparse matrices.
    /// Whole numbers for integer types.
    Ramp {
        low: f64,
        high: f64,
    },
    /// 0 to length - 1 in a random order.
    Permutation,
    /// Integers from low to high, high excluded, no two of them equal, in a random order.
    Distinct {
        low: i64,
        high: i64,
    },
    /// Goes round the list of the type's awkward values.
    Special,
}

/// What each field holds: those that are named, and all others.
#[derive(Clone, PartialEq, Debug)]
pub struct FillPlan {
    pub default: Fill,
    /// By leaf path (`pos.x`); a struct-typed field's path stands for all below it.
    pub fields: Vec<(String, Fill)>,
}

impl From<Fill> for FillPlan {
    fn from(default: Fill) -> Self {
        Self { default, fields: Vec::new() }
    }
}

impl FillPlan {
    /// Everything that some field may hold.
    pub fn fills(&self) -> impl Iterator<Item = Fill> {
        std::iter::once(self.default).chain(self.fields.iter().map(|(_, fill)| *fill))
    }

    /// What the field at a path holds.
    pub(super) fn of(&self, path: &str) -> Fill {
        let covers =
            |field: &str| path == field || path.strip_prefix(field).is_some_and(|rest| rest.starts_with('.'));
        self.fields.iter().rev().find(|(field, _)| covers(field)).map_or(self.default, |(_, fill)| *fill)
    }
}

/// Why an array could not be made.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum FillError {
    #[error("an array of `{element}` with shape {shape:?} does not fit in memory")]
    TooLarge { element: String, shape: Vec<u64> },
    #[error("numbers from {low} to {high} are asked for: they must rise, by at most 2^53")]
    NoRange { low: f64, high: f64 },
    #[error(
        "{count} different values from {low} to {high}, the end excluded, are asked for: there are not so many"
    )]
    TooFew { count: u64, low: i64, high: i64 },
}

/// How far the ends of a range may be apart: floats count that far one by one.
const RISE_LIMIT: f64 = (1u64 << 53) as f64;

/// That there are numbers to choose from.
pub(super) fn check(what: Fill) -> Result<(), FillError> {
    let (low, high) = match what {
        Fill::Range { low, high } | Fill::Ramp { low, high } => (low, high),
        _ => return Ok(()),
    };
    if (0.0..=RISE_LIMIT).contains(&(high - low)) { Ok(()) } else { Err(FillError::NoRange { low, high }) }
}

/// Elements that one thread fills at a time.
const PART: usize = 1 << 16;

/// SplitMix64: one well-mixed word a position (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014).
pub(super) fn word(seed: u64, position: u64) -> u64 {
    let mut z = seed.wrapping_add(position.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number in [0, 1).
fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1u64 << 53) as f64
}

/// A number in [low, high) that depends on name and seed only.
pub(crate) fn number_for(name: &str, seed: u64, low: f64, high: f64) -> f64 {
    let stream = name.bytes().fold(word(seed, 1), |state, byte| word(state, u64::from(byte)));
    low + unit(word(stream, 0)) * (high - low)
}

/// Makes an array. `name` and `seed` together pick the random numbers, so that two inputs differ.
///
/// # Errors
/// Where the array is too large for this machine's memory, or has elements and there is no number for them.
pub fn fill(
    name: &str,
    element: &ElementType,
    shape: &[u64],
    plan: &FillPlan,
    seed: u64,
) -> Result<HostArray, FillError> {
    let Some(mut array) = HostArray::zeros(element.clone(), shape.to_vec()) else {
        return Err(FillError::TooLarge { element: element.name.clone(), shape: shape.to_vec() });
    };
    let stream = name.bytes().fold(word(seed, 0), |state, byte| word(state, u64::from(byte)));
    let slots = slots(element);
    let count = array.len();
    for (number, (offset, scalar, path)) in slots.iter().enumerate() {
        let what = plan.of(path);
        if what == Fill::Zeros || count == 0 {
            continue;
        }
        check(what)?;
        let mut order = Vec::new();
        if matches!(what, Fill::Permutation | Fill::Distinct { .. }) {
            order = permutation(count, word(stream, number as u64));
        }
        let parts = match what {
            Fill::Distinct { low, high } => Some(Parts::of(*scalar, low, high, count)?),
            _ => None,
        };
        let specials = if what == Fill::Special { special_values(*scalar) } else { Vec::new() };
        let one = |index: u64, bytes: &mut [u8]| {
            let random = word(stream, index * slots.len() as u64 + number as u64);
            let value = match what {
                Fill::Zeros => 0.0,
                Fill::Ones => 1.0,
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
                Fill::Ramp { low, high } => {
                    let value = sorted(low, high, index, count, random);
                    if scalar.is_float() { value } else { value.floor() }
                }
                Fill::Permutation => order[index as usize] as f64,
                Fill::Distinct { .. } => {
                    let part = order[index as usize];
                    let value = parts.as_ref().map_or(0, |parts| parts.value(part, random));
                    let size = scalar.size() as usize;
                    bytes[..size].copy_from_slice(&value.to_le_bytes()[..size]);
                    return;
                }
                Fill::Special => {
                    let special = &specials[(index + number as u64) as usize % specials.len()];
                    bytes[..special.len()].copy_from_slice(special);
                    return;
                }
            };
            encode(*scalar, value, bytes);
        };
        // Each element's value depends on its position alone, so the parts can be filled side by side.
        array.bytes.par_chunks_mut(element.size as usize * PART).enumerate().for_each(|(part, bytes)| {
            for (at, bytes) in bytes.chunks_mut(element.size as usize).enumerate() {
                one((part * PART + at) as u64, &mut bytes[*offset as usize..]);
            }
        });
    }
    Ok(array)
}

/// A range cut into as many parts as there are elements: one value from each part.
struct Parts {
    low: i128,
    length: i128,
    count: i128,
}

impl Parts {
    /// Of the range's values that the type has.
    fn of(scalar: Scalar, low: i64, high: i64, count: u64) -> Result<Self, FillError> {
        let (least, most) = scalar_range(scalar);
        let (from, to) = (i128::from(low).max(least), i128::from(high).min(most + 1));
        let (length, count_wide) = ((to - from).max(0), i128::from(count));
        if length < count_wide {
            return Err(FillError::TooFew { count, low, high });
        }
        Ok(Self { low: from, length, count: count_wide })
    }

    fn value(&self, part: u64, random: u64) -> i128 {
        let start = |part: i128| self.low + self.length * part / self.count;
        let (from, to) = (start(part.into()), start(i128::from(part) + 1));
        from + i128::from(random) % (to - from)
    }
}

/// The least and the greatest value of an integer type.
pub(super) fn scalar_range(scalar: Scalar) -> (i128, i128) {
    let bits = scalar.size() as u32 * 8;
    if scalar.is_signed_integer() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    }
}

/// Fisher–Yates.
fn permutation(count: u64, seed: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    for at in (1..order.len()).rev() {
        let other = word(seed, at as u64) % (at as u64 + 1);
        order.swap(at, other as usize);
    }
    order
}

/// The awkward values of a type, as little-endian bytes.
fn special_values(scalar: Scalar) -> Vec<Vec<u8>> {
    let size = scalar.size() as usize;
    if scalar == Scalar::Bool {
        return vec![vec![0], vec![1]];
    }
    if scalar.is_float() {
        // Largest finite, least normal, least subnormal, in the type's own format.
        let (largest, normal, subnormal) = match scalar {
            Scalar::F16 => (65504.0, 6.103515625e-5, 5.960464477539063e-8),
            Scalar::BF16 => (3.3895313892515355e38, f64::from(f32::MIN_POSITIVE), 9.183549615799121e-41),
            Scalar::F32 => (f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE), f64::from(f32::from_bits(1))),
            _ => (f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1)),
        };
        let list = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            -2.5,
            3.0,
            1e3,
            -1e3,
            1e-3,
            100.25,
            largest,
            -largest,
            normal,
            subnormal,
            -subnormal,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        return list
            .iter()
            .map(|value| {
                let mut bytes = vec![0; size];
                encode(scalar, *value, &mut bytes);
                bytes
            })
            .collect();
    }
    let (least, most) = scalar_range(scalar);
    let list: Vec<i128> = if scalar.is_signed_integer() {
        vec![0, 1, -1, 2, -2, 7, -7, 31, 32, 33, least, least + 1, most, most - 1]
    } else {
        vec![0, 1, 2, 3, 7, 31, 32, 33, 64, most, most - 1, most / 2, most / 2 + 1]
    };
    list.iter().map(|value| value.to_le_bytes()[..size].to_vec()).collect()
}

/// Evenly spaced with jitter, so that the order holds.
fn sorted(low: f64, high: f64, index: u64, count: u64, random: u64) -> f64 {
    if index == 0 || count < 2 {
        return low;
    }
    if index + 1 == count {
        return high;
    }
    let step = (high - low) / (count - 1) as f64;
    let value = low + step * (index as f64 + unit(random) - 0.5);
    value.clamp(low, high)
}

/// Byte offset, type and path of every scalar of an element.
fn slots(element: &ElementType) -> Vec<(u64, Scalar, String)> {
    let mut slots = Vec::new();
    for leaf in &element.leaves {
        slots.extend(leaf.offsets().into_iter().map(|offset| (offset, leaf.scalar, leaf.path.clone())));
    }
    slots
}

/// Writes a number as a scalar type: floats rounded, integers truncated and wrapped.
pub(crate) fn encode(scalar: Scalar, value: f64, bytes: &mut [u8]) {
    let integer = value as i128;
    match scalar {
        Scalar::Bool => bytes[0] = u8::from(value != 0.0),
        Scalar::F16 => bytes[..2].copy_from_slice(&krn_compiler::data::f16_from_f64(value).to_le_bytes()),
        Scalar::BF16 => bytes[..2].copy_from_slice(&krn_compiler::data::bf16_from_f64(value).to_le_bytes()),
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
        let array = fill("x", &ElementType::scalar(Scalar::I32), &[count], &what.into(), 7).expect("small");
        array.bytes.chunks(4).map(|b| i32::from_le_bytes(b.try_into().expect("4 bytes"))).collect()
    }

    /// The first elements of a long array, filled in several parts, are those of a short one: only positions count.
    #[test]
    fn values_do_not_depend_on_the_parts() {
        let long = PART as u64 * 2 + 5;
        let iota = ints(Fill::Iota, long);
        assert!(iota.iter().enumerate().all(|(position, value)| *value == position as i32));
        let element = ElementType::scalar(Scalar::U16);
        let make = |count| fill("x", &element, &[count], &Fill::Random.into(), 3).expect("small").bytes;
        let (long, longer) = (make(long), make(long + PART as u64));
        assert_eq!(long, longer[..long.len()]);
    }

    #[test]
    fn fills_have_the_stated_ranges_and_depend_on_name_and_seed() {
        assert!(ints(Fill::Random, 1000).iter().all(|value| (-8..8).contains(value)));
        assert!(ints(Fill::Range { low: 3.0, high: 5.0 }, 1000).iter().all(|value| (3..5).contains(value)));
        assert_eq!(ints(Fill::Iota, 3), [0, 1, 2]);
        let mut distinct = ints(Fill::Distinct { low: -3, high: 1500 }, 1000);
        assert!(!distinct.is_sorted() && distinct.iter().all(|value| (-3..1500).contains(value)));
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 1000);
        let bytes = ElementType::scalar(Scalar::U8);
        let narrow = |count| fill("x", &bytes, &[count], &Fill::Distinct { low: -3, high: 1500 }.into(), 7);
        assert_eq!(narrow(257), Err(FillError::TooFew { count: 257, low: -3, high: 1500 }));
        let mut all = narrow(256).expect("as many as there are").bytes;
        all.sort_unstable();
        assert!(all.iter().enumerate().all(|(position, value)| position == usize::from(*value)));
        let ends = |low, high| {
            [Fill::Range { low, high }, Fill::Ramp { low, high }]
                .map(|what| fill("x", &bytes, &[3], &what.into(), 7).err())
        };
        for (low, high) in [(31.0, 3.0), (0.0, -1.0), (0.0, 2e16), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            assert!(ends(low, high).iter().all(|error| matches!(error, Some(FillError::NoRange { .. }))));
        }
        assert_eq!(ends(0.0, 0.0), [None, None]);
        let nothing = Fill::Ramp { low: 0.0, high: -1.0 };
        assert!(fill("x", &bytes, &[0], &nothing.into(), 7).is_ok(), "no number is needed");
        let sorted = ints(Fill::Ramp { low: 0.0, high: 100.0 }, 33);
        assert!(sorted.is_sorted() && sorted[0] == 0 && sorted[32] == 100);
        let fractions = Fill::Ramp { low: 0.25, high: 0.75 };
        let array = fill("x", &ElementType::scalar(Scalar::F32), &[33], &fractions.into(), 7).expect("small");
        let values: Vec<f32> =
            array.bytes.chunks(4).map(|b| f32::from_le_bytes(b.try_into().expect("4 bytes"))).collect();
        assert!(values.is_sorted() && values[0] == 0.25 && values[32] == 0.75 && values[16] != values[17]);
        let element = ElementType::scalar(Scalar::F32);
        let make =
            |name: &str, seed| fill(name, &element, &[16], &Fill::Random.into(), seed).expect("small").bytes;
        assert_eq!(make("x", 1), make("x", 1));
        assert_ne!(make("x", 1), make("y", 1));
        assert_ne!(make("x", 1), make("x", 2));
    }
}

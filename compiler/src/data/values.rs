//! Host arrays of plain Rust numbers: how a host program makes and reads them.

use super::{ElementType, HostArray, Scalar};

/// A Rust type that a scalar of the language is on the host.
pub trait Value: Copy {
    const SCALAR: Scalar;

    /// Appends its bytes, little-endian.
    fn append(self, bytes: &mut Vec<u8>);

    /// From exactly as many bytes as the scalar has.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! values {
    ($($ty:ty: $scalar:ident,)*) => {
        $(impl Value for $ty {
            const SCALAR: Scalar = Scalar::$scalar;

            fn append(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &[u8]) -> Self {
                let mut whole = [0; size_of::<$ty>()];
                whole.copy_from_slice(bytes);
                <$ty>::from_le_bytes(whole)
            }
        })*
    };
}

values! {
    i8: I8, i16: I16, i32: I32, i64: I64, u8: U8, u16: U16, u32: U32, u64: U64,
    half::f16: F16, half::bf16: BF16, f32: F32, f64: F64,
}

impl Value for bool {
    const SCALAR: Scalar = Scalar::Bool;

    fn append(self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self));
    }

    fn read(bytes: &[u8]) -> Self {
        bytes.iter().any(|byte| *byte != 0)
    }
}

impl HostArray {
    /// An array of these values, in row-major order. `None` if the shape holds another number of elements.
    pub fn from_values<T: Value>(shape: &[u64], values: &[T]) -> Option<Self> {
        let count = shape.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent))?;
        if count != values.len() as u64 {
            return None;
        }
        let mut bytes = Vec::with_capacity(values.len() * T::SCALAR.size() as usize);
        values.iter().for_each(|value| value.append(&mut bytes));
        Some(Self { element: ElementType::scalar(T::SCALAR), shape: shape.to_vec(), bytes })
    }

    /// One value: an array of rank 0, as scalar parameters take it.
    pub fn from_value<T: Value>(value: T) -> Self {
        let mut bytes = Vec::new();
        value.append(&mut bytes);
        Self { element: ElementType::scalar(T::SCALAR), shape: Vec::new(), bytes }
    }

    /// The values in row-major order. `None` if the elements are of another type.
    pub fn values<T: Value>(&self) -> Option<Vec<T>> {
        if self.element.as_scalar() != Some(T::SCALAR) {
            return None;
        }
        Some(self.bytes.chunks_exact(T::SCALAR.size() as usize).map(T::read).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_were() {
        let array = HostArray::from_values(&[2, 3], &[1.5f32, -0.0, f32::MAX, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!((array.len(), array.bytes.len()), (6, 24));
        assert_eq!(array.values::<f32>().unwrap()[2], f32::MAX);
        assert_eq!(array.values::<u32>(), None);
        let flags = HostArray::from_values(&[2], &[true, false]).unwrap();
        assert_eq!(flags.values::<bool>().unwrap(), [true, false]);
        let halves = HostArray::from_values(&[1], &[half::bf16::from_f32(0.5)]).unwrap();
        assert_eq!(halves.values::<half::bf16>().unwrap()[0].to_f32(), 0.5);
        assert_eq!(HostArray::from_value(-7i16).bytes, [0xf9, 0xff]);
    }

    #[test]
    fn a_shape_that_does_not_fit_is_refused() {
        assert_eq!(HostArray::from_values(&[2, 2], &[1u8]), None);
        assert_eq!(HostArray::from_values::<u8>(&[u64::MAX, 3], &[]), None);
        assert!(HostArray::from_values::<u8>(&[0, 5], &[]).is_some());
    }
}

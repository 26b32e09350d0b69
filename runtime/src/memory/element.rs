//! Rust types that are elements of arrays, and their bytes: to a device image and back.

use crate::error::{Error, Result};
use crate::memory::strided::{self, Image, Padding};
use krn_compiler::data::{ElementType, HostArray, Leaf, Scalar};
use krn_compiler::manifest;
use std::alloc::{Layout, alloc_zeroed};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// A Rust type that an array on a device can hold: every scalar of the language, and `#[repr(C)]` structs of them, for
/// which [`#[derive(KrnStruct)]`](crate::KrnStruct) writes this.
///
/// # Safety
/// [`element_type`](Self::element_type) describes the type as it lies in memory: `size` and `align` are those of the
/// type; every leaf's scalars lie inside it, at their offsets, aligned, and do not overlap; they are initialised in
/// every value of the type; any bits in them make a value of the type, but that a `bool` is 0 or 1. Bytes that no leaf
/// covers are padding: they are never read, and may come back as anything.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// Name, size and leaves, as the language sees the type.
    fn element_type() -> ElementType;

    /// Whether there are bytes that no leaf covers. Launches ask often: the answer should be a constant.
    fn has_padding() -> bool {
        !is_dense(&Self::element_type())
    }
}

macro_rules! scalars {
    ($($ty:ty: $scalar:ident,)*) => {
        $(
            // SAFETY: one scalar of the type's own size at offset 0, for which all bits are a value (`bool` apart).
            unsafe impl Element for $ty {
                fn element_type() -> ElementType {
                    ElementType::scalar(Scalar::$scalar)
                }

                fn has_padding() -> bool {
                    false
                }
            }
        )*
    };
}

scalars! {
    bool: Bool, i8: I8, i16: I16, i32: I32, i64: I64, u8: U8, u16: U16, u32: U32, u64: U64,
    half::f16: F16, half::bf16: BF16, f32: F32, f64: F64,
}

/// A Rust type that a field of such a struct can have: every [`Element`], and fixed arrays of fields.
///
/// # Safety
/// As for [`Element`], for the type that [`field`](Self::field) describes.
#[diagnostic::on_unimplemented(
    message = "structs of kernels have no fields of type `{Self}`",
    label = "a field is a number, a `bool`, a struct with `#[derive(KrnStruct)]`, or an array `[T; N]` of those"
)]
pub unsafe trait Field: Copy + Send + Sync + 'static {
    /// The type, and the fixed arrays around it.
    fn field() -> FieldType;

    /// Whether there are bytes in it that no scalar covers.
    fn has_padding_inside() -> bool;
}

/// What a field holds: elements of a type, in fixed arrays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FieldType {
    element: ElementType,
    /// Of the fixed arrays, outermost first, with the byte stride of each.
    extents: Vec<u64>,
    strides: Vec<u64>,
}

// SAFETY: it is the element and nothing else.
unsafe impl<T: Element> Field for T {
    fn field() -> FieldType {
        FieldType { element: T::element_type(), extents: Vec::new(), strides: Vec::new() }
    }

    fn has_padding_inside() -> bool {
        T::has_padding()
    }
}

// SAFETY: the elements of an array follow each other, a type's size apart.
unsafe impl<T: Field, const N: usize> Field for [T; N] {
    fn field() -> FieldType {
        let mut field = T::field();
        field.extents.insert(0, N as u64);
        field.strides.insert(0, size_of::<T>() as u64);
        field
    }

    fn has_padding_inside() -> bool {
        T::has_padding_inside()
    }
}

/// The type of a `#[repr(C)]` struct from its fields: name, offset and type of each. `#[derive(KrnStruct)]` calls it.
pub fn struct_type<T, const FIELDS: usize>(
    name: &str,
    fields: [(&str, usize, FieldType); FIELDS],
) -> ElementType {
    let mut leaves = Vec::with_capacity(FIELDS);
    for (field_name, offset, field) in fields {
        leaves.extend(field.element.leaves.into_iter().map(|leaf| Leaf {
            path: match leaf.path.as_str() {
                "" => field_name.to_string(),
                inner => format!("{field_name}.{inner}"),
            },
            scalar: leaf.scalar,
            offset: offset as u64 + leaf.offset,
            extents: field.extents.iter().chain(&leaf.extents).copied().collect(),
            strides: field.strides.iter().chain(&leaf.strides).copied().collect(),
        }));
    }
    ElementType { name: name.to_string(), leaves, size: size_of::<T>() as u64, align: align_of::<T>() as u64 }
}

/// Whether the two types have the same bytes; names do not matter.
pub(crate) fn same_type(left: &ElementType, right: &ElementType) -> bool {
    left.leaves == right.leaves && left.size == right.size && left.align == right.align
}

/// A number for a type in a layout, which types of other bytes or names do not share.
pub(crate) fn kind(element: &ElementType, layout: manifest::Layout) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&element.name, element.size, element.align, layout).hash(&mut hasher);
    for leaf in &element.leaves {
        (&leaf.path, leaf.scalar as u8, leaf.offset, &leaf.extents, &leaf.strides).hash(&mut hasher);
    }
    hasher.finish()
}

/// Whether a scalar covers every byte, so that an array's bytes may be read as they are.
pub(crate) fn is_dense(element: &ElementType) -> bool {
    element.leaves.iter().map(|leaf| leaf.count() * leaf.scalar.size()).sum::<u64>() == element.size
}

/// The bytes of values, in their C layout, with zeros for padding.
pub(crate) fn image_of<T: Element>(values: &[T]) -> Image<'_> {
    let start = values.as_ptr().cast::<u8>();
    if T::has_padding() {
        // SAFETY: so many values lie there, whose scalars are initialised.
        return unsafe { Image::padded(&T::element_type(), start, values.len()) };
    }
    // SAFETY: every byte belongs to a scalar, so all are initialised; they live as long as the values.
    Image::Dense(unsafe { std::slice::from_raw_parts(start, size_of_val(values)) })
}

/// The same, all in one. Borrowed where there is no padding.
pub(crate) fn bytes_of<T: Element>(values: &[T]) -> Cow<'_, [u8]> {
    image_of(values).whole()
}

/// The bytes of values, to write, where any bytes make values: there is no `bool` and no padding.
pub(crate) fn bytes_mut<T: Element>(values: &mut [T]) -> Option<&mut [u8]> {
    let element = T::element_type();
    if !is_dense(&element) || strided::has_bools(&element) {
        return None;
    }
    // SAFETY: all bytes are initialised, whatever is written makes values, and they live as long as the values.
    Some(unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) })
}

/// That every `bool` in these elements is 0 or 1.
///
/// # Errors
/// [`Error::InvalidBool`] at the first that is not.
pub(crate) fn check_bools(element: &ElementType, bytes: &[u8]) -> Result<()> {
    let count = bytes.len() / (element.size as usize).max(1);
    // SAFETY: so many elements fit into the bytes, and bytes are initialised.
    valid(unsafe { strided::find_bad_bool(element, bytes.as_ptr(), count) })
}

fn valid(bad: Option<(usize, u8)>) -> Result<()> {
    bad.map_or(Ok(()), |(index, byte)| Err(Error::InvalidBool { index: index as u64, byte }))
}

/// The same for values in memory that a device has written.
///
/// # Safety
/// So many elements of `T` start there, but that a `bool` may have any byte; nothing writes them meanwhile.
pub(crate) unsafe fn check_bools_at<T: Element>(start: *const T, count: usize) -> Result<()> {
    // SAFETY: the caller's promise.
    valid(unsafe { strided::find_bad_bool(&T::element_type(), start.cast(), count) })
}

/// Sets the bytes to zero that belong to no scalar.
///
/// # Safety
/// So many elements start there, and are the caller's own.
pub(crate) unsafe fn clear_padding<T: Element>(start: *mut T, count: usize) {
    if T::has_padding() {
        // SAFETY: the caller's promise.
        unsafe { Padding::of(&T::element_type()).clear(start.cast(), count) };
    }
}

/// Sets values from the one at that offset in bytes on.
///
/// # Errors
/// [`Error::InvalidBool`], and nothing is set.
pub(crate) fn set_values<T: Element>(values: &mut [T], offset: usize, bytes: &[u8]) -> Result<()> {
    let (first, count) = (offset / size_of::<T>().max(1), bytes.len() / size_of::<T>().max(1));
    let values = &mut values[first..first + count];
    // SAFETY: so many elements fit into the bytes, and bytes are initialised.
    let bad = unsafe { strided::find_bad_bool(&T::element_type(), bytes.as_ptr(), count) };
    valid(bad.map(|(index, byte)| (first + index, byte)))?;
    // SAFETY: there are so many values, and the bytes make values: every `bool` is 0 or 1.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), values.as_mut_ptr().cast(), count * size_of::<T>())
    };
    Ok(())
}

/// Values whose bytes `fill` writes, all of them, in their C layout.
///
/// # Errors
/// What `fill` says; [`Error::InvalidBool`]; [`Error::OutOfMemory`] where the host has not so much.
pub(crate) fn values_from<T: Element>(
    count: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<Vec<T>> {
    let out_of_memory = || {
        let asked = count as u64 * size_of::<T>() as u64;
        Error::OutOfMemory { what: "values on the host".to_string(), asked, free: None }
    };
    let layout = Layout::array::<MaybeUninit<T>>(count).map_err(|_| out_of_memory())?;
    if layout.size() == 0 {
        fill(&mut [])?;
        // SAFETY: values without bytes need none.
        return Ok(unsafe { Vec::from_raw_parts(NonNull::dangling().as_ptr(), count, count) });
    }
    // Zeros of the system's: large ones cost nothing until they are written.
    // SAFETY: not of size 0.
    let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(out_of_memory)?;
    // SAFETY: the allocation is one for so many values, none of which is there yet. It is freed where something fails.
    let mut values = unsafe { Vec::<MaybeUninit<T>>::from_raw_parts(start.as_ptr().cast(), 0, count) };
    // SAFETY: so many bytes lie there, all set.
    let image = unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), layout.size()) };
    fill(image)?;
    check_bools(&T::element_type(), image)?;
    let (start, capacity) = (values.as_mut_ptr().cast::<T>(), values.capacity());
    std::mem::forget(values);
    // SAFETY: all `count` elements are set, every `bool` is 0 or 1, and for everything else any bits are a value. The
    // allocation is that of `values`, which gave it up; `MaybeUninit<T>` has the layout of `T`.
    Ok(unsafe { Vec::from_raw_parts(start, count, capacity) })
}

/// A scalar or struct as an argument by value: [`Argument::Value`](crate::Argument::Value).
///
/// ```
/// assert_eq!(krn_runtime::value(1.5f32).bytes, [0, 0, 192, 63]);
/// ```
pub fn value<T: Element>(value: T) -> HostArray {
    HostArray { element: T::element_type(), shape: Vec::new(), bytes: bytes_of(&[value]).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, Selection};
    use crate::typed::{Array, ArrayOptions};

    #[derive(Clone, Copy, PartialEq, Debug)]
    #[repr(C)]
    struct Padded {
        on: bool,
        value: f32,
        pair: [u16; 2],
        last: u8,
    }

    // SAFETY: offsets by the compiler; the leaves are the fields.
    unsafe impl Element for Padded {
        fn element_type() -> ElementType {
            let leaf = |path: &str, scalar, offset: usize, extents: Vec<u64>, strides: Vec<u64>| Leaf {
                path: path.to_string(),
                scalar,
                offset: offset as u64,
                extents,
                strides,
            };
            use std::mem::offset_of;
            ElementType {
                name: "Padded".to_string(),
                leaves: vec![
                    leaf("on", Scalar::Bool, offset_of!(Padded, on), vec![], vec![]),
                    leaf("value", Scalar::F32, offset_of!(Padded, value), vec![], vec![]),
                    leaf("pair", Scalar::U16, offset_of!(Padded, pair), vec![2], vec![2]),
                    leaf("last", Scalar::U8, offset_of!(Padded, last), vec![], vec![]),
                ],
                size: size_of::<Padded>() as u64,
                align: align_of::<Padded>() as u64,
            }
        }
    }

    #[test]
    fn padding_is_zero_and_values_come_back() {
        let values = [
            Padded { on: true, value: 1.5, pair: [1, 2], last: 7 },
            Padded { on: false, value: -2.0, pair: [3, 4], last: 9 },
        ];
        let bytes = bytes_of(&values);
        assert_eq!(bytes.len(), 32);
        for element in bytes.chunks(16) {
            assert_eq!((&element[1..4], &element[13..16]), (&[0u8; 3][..], &[0u8; 3][..]));
        }
        let back = values_from::<Padded>(2, |image| {
            image.copy_from_slice(&bytes);
            Ok(())
        });
        assert_eq!(back.expect("good"), values);
    }

    #[test]
    fn large_arrays_go_and_come_piece_by_piece() {
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let count = 2 * strided::PIECE / size_of::<Padded>() + 5;
        let value =
            |index: usize| Padded { on: index.is_multiple_of(3), value: index as f32, pair: [1, 2], last: 7 };
        let values: Vec<Padded> = (0..count).map(value).collect();
        for layout in [manifest::Layout::Aos, manifest::Layout::Soa] {
            let array =
                ArrayOptions::new().layout(layout).from_slice(&device, [count], &values).expect("small");
            let mut back = vec![value(1); count];
            array.read_into(&mut back).expect("good");
            assert!(back == values && array.to_vec().expect("good") == values, "{layout:?}");
        }
        let array = Array::<Padded, 1>::from_slice(&device, [count], &values).expect("small");
        let place = array.dynamic().pointers().next().expect("one") + (count as u64 - 3) * 16;
        device.backend.copy_in(place, &[7]).expect("its memory");
        let mut back = vec![value(1); count];
        let wanted = count as u64 - 3;
        for read in [array.read_into(&mut back), array.to_vec().map(drop)] {
            assert!(
                matches!(read, Err(Error::InvalidBool { index, byte: 7 }) if index == wanted),
                "{read:?}"
            );
        }
    }

    #[test]
    fn padding_can_be_cleared_in_place() {
        let mut values = [Padded { on: true, value: 1.5, pair: [1, 2], last: 7 }; 3];
        let start = values.as_mut_ptr();
        // SAFETY: the array is this test's own; all of its bytes are set first, padding too, to what makes values.
        let bytes = unsafe {
            start.cast::<u8>().write_bytes(1, size_of_val(&values));
            clear_padding(start, 3);
            std::slice::from_raw_parts(start.cast::<u8>(), 48)
        };
        assert_eq!(bytes[16..32], [1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
    }

    #[test]
    fn a_bool_that_is_neither_is_an_error() {
        let read = |bytes: &[u8]| {
            values_from::<bool>(bytes.len(), |image| {
                image.copy_from_slice(bytes);
                Ok(())
            })
        };
        assert_eq!(read(&[0, 1, 1]).expect("good"), [false, true, true]);
        assert!(matches!(read(&[0, 1, 2]), Err(Error::InvalidBool { index: 2, byte: 2 })));
        let mut image = [0u8; 32];
        image[16] = 0xA5;
        let bad = values_from::<Padded>(2, |bytes| {
            bytes.copy_from_slice(&image);
            Ok(())
        });
        assert!(matches!(bad, Err(Error::InvalidBool { index: 1, byte: 0xA5 })));
    }

    #[test]
    fn dense_values_are_not_copied() {
        assert!(matches!(bytes_of(&[1.0f32, 2.0]), Cow::Borrowed([0, 0, 128, 63, 0, 0, 0, 64])));
        assert!(matches!(bytes_of::<f64>(&[]), Cow::Borrowed([])));
        assert_eq!(values_from::<f64>(0, |_| Ok(())).expect("nothing"), [0.0; 0]);
        let host = value(half::f16::from_f32(2.0));
        assert_eq!(host.values::<half::f16>().expect("f16")[0].to_f32(), 2.0);
    }
}

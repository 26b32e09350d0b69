//! NumPy `.npy` files to host arrays and back. Structs are structured arrays, matched field by field by name, so that
//! packed and aligned files both fit. NumPy itself has no bf16: two-byte raw data (`|V2`, as ml_dtypes writes it)
//! stands for it. Big-endian files are refused.

use krn_compiler::data::{ElementType, HostArray, Leaf, Scalar, strided_offsets};
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar, TypeStr};
use std::io::Cursor;

/// What is wrong with a file, in words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct NpyError(String);

impl NpyError {
    pub(crate) fn new(message: String) -> Self {
        Self(message)
    }
}

/// One scalar (or fixed array of scalars) of the file's elements.
struct FileLeaf {
    path: String,
    scalar: Option<Scalar>,
    spelled: String,
    offset: u64,
    extents: Vec<u64>,
    strides: Vec<u64>,
}

/// Reads a file's bytes as an array of the element type that is wanted.
///
/// # Errors
/// Anything but a whole `.npy` file of that element type.
pub fn read(bytes: &[u8], wanted: &ElementType) -> Result<HostArray, NpyError> {
    check_header(bytes)?;
    let mut cursor = Cursor::new(bytes);
    let header =
        NpyHeader::from_reader(&mut cursor).map_err(|error| NpyError(format!("not a .npy file: {error}")))?;
    let data = &bytes[cursor.position() as usize..];
    let mut leaves = Vec::new();
    let size = flatten(&header.dtype(), String::new(), 0, &mut leaves)?;
    let shape = header.shape().to_vec();
    let count = shape.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent));
    let total = count.and_then(|count| count.checked_mul(size));
    if total != Some(data.len() as u64) {
        return Err(NpyError(format!(
            "the file has {} bytes of data where its header (shape {shape:?}, {size} bytes an element) takes {}",
            data.len(),
            total.map_or("too many".to_string(), |total| total.to_string())
        )));
    }
    let mut array = HostArray::zeros(wanted.clone(), shape.clone())
        .ok_or_else(|| NpyError(format!("an array of shape {shape:?} does not fit in memory")))?;
    let fortran = header.order() == Order::Fortran && shape.len() > 1;
    for leaf in &wanted.leaves {
        let from = find(leaf, &leaves, wanted)?;
        copy_leaf(&mut array, leaf, data, from, size, fortran);
    }
    Ok(array)
}

/// An array of floats in another precision, each rounded to nearest even; `None` for other elements.
pub fn in_precision(array: &HostArray, to: Scalar) -> Option<HostArray> {
    let numbers: Vec<f64> = match array.element.as_scalar()? {
        Scalar::F16 => array.values::<half::f16>()?.into_iter().map(f64::from).collect(),
        Scalar::BF16 => array.values::<half::bf16>()?.into_iter().map(f64::from).collect(),
        Scalar::F32 => array.values::<f32>()?.into_iter().map(f64::from).collect(),
        Scalar::F64 => array.values::<f64>()?,
        _ => return None,
    };
    let shape = &array.shape;
    match to {
        Scalar::F16 => {
            let numbers: Vec<_> = numbers.into_iter().map(half::f16::from_f64).collect();
            HostArray::from_values(shape, &numbers)
        }
        Scalar::BF16 => {
            let numbers: Vec<_> = numbers.into_iter().map(half::bf16::from_f64).collect();
            HostArray::from_values(shape, &numbers)
        }
        Scalar::F32 => {
            let numbers: Vec<_> = numbers.into_iter().map(|number| number as f32).collect();
            HostArray::from_values(shape, &numbers)
        }
        Scalar::F64 => HostArray::from_values(shape, &numbers),
        _ => None,
    }
}

/// Bytes of a header at most, and brackets within brackets: thousands of fields take less.
const HEADER_LIMIT: usize = 1 << 20;
const HEADER_DEPTH: usize = 64;

/// Refuses a header that would overwhelm its parser: one that is too long or too deep, or whose shape has more elements
/// than a 64-bit number counts.
fn check_header(bytes: &[u8]) -> Result<(), NpyError> {
    let (start, length) = match (bytes.get(6), bytes.get(8..12)) {
        (Some(1), Some(&[a, b, ..])) => (10, usize::from(u16::from_le_bytes([a, b]))),
        (Some(_), Some(&[a, b, c, d])) => (12, u32::from_le_bytes([a, b, c, d]) as usize),
        // Too short: the parser says so.
        _ => return Ok(()),
    };
    if length > HEADER_LIMIT {
        return Err(NpyError(format!("not a .npy file: its header would have {length} bytes")));
    }
    let text = &bytes[start.min(bytes.len())..(start + length).min(bytes.len())];
    let mut depth = 0usize;
    for byte in text {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > HEADER_DEPTH {
            return Err(NpyError("not a .npy file: its header nests too deeply".to_string()));
        }
    }
    // Any parenthesised list is taken for a shape: those of fields are small numbers as well.
    for list in text.split(|byte| *byte == b'(').skip(1) {
        let list = list.split(|byte| *byte == b')').next().unwrap_or_default();
        let extents = list.split(|byte| *byte == b',').filter_map(|extent| {
            std::str::from_utf8(extent).ok()?.trim().trim_end_matches('L').parse::<u64>().ok()
        });
        if extents.into_iter().try_fold(1u64, u64::checked_mul).is_none() {
            return Err(NpyError("the file's header tells of more elements than any file has".to_string()));
        }
    }
    Ok(())
}

fn find<'a>(leaf: &Leaf, leaves: &'a [FileLeaf], wanted: &ElementType) -> Result<&'a FileLeaf, NpyError> {
    let named = leaves.iter().find(|known| known.path == leaf.path);
    let Some(known) = named else {
        let have: Vec<&str> = leaves.iter().map(|known| known.path.as_str()).collect();
        return Err(NpyError(match (leaf.path.as_str(), have.join(", ")) {
            ("", have) => format!("the file holds structs (fields {have}) where `{}` is wanted", wanted.name),
            (path, have) if have.is_empty() => {
                format!("the file holds plain numbers where structs with a field `{path}` are wanted")
            }
            (path, have) => format!("the file's structs have no field `{path}`; they have {have}"),
        }));
    };
    let field = if leaf.path.is_empty() { "the file".to_string() } else { format!("field `{}`", leaf.path) };
    if known.scalar != Some(leaf.scalar) {
        return Err(NpyError(format!("{field} holds `{}` where `{}` is wanted", known.spelled, leaf.scalar)));
    }
    if known.extents != leaf.extents {
        let (have, want) = (&known.extents, &leaf.extents);
        return Err(NpyError(format!("{field} has the sub-array shape {have:?} where {want:?} is wanted")));
    }
    Ok(known)
}

fn copy_leaf(array: &mut HostArray, leaf: &Leaf, data: &[u8], from: &FileLeaf, size: u64, fortran: bool) {
    let bytes = leaf.scalar.size() as usize;
    let to = leaf.offsets();
    let from = strided_offsets(from.offset, &from.extents, &from.strides);
    let element = array.element.size;
    for index in 0..array.len() {
        let source = if fortran { column_major(index, &array.shape) } else { index };
        for (to, from) in to.iter().zip(&from) {
            let to = (index * element + to) as usize;
            let from = (source * size + from) as usize;
            array.bytes[to..to + bytes].copy_from_slice(&data[from..from + bytes]);
        }
    }
}

/// The column-major position of the element at a row-major position.
fn column_major(mut index: u64, shape: &[u64]) -> u64 {
    let mut coordinates = vec![0; shape.len()];
    for (at, extent) in shape.iter().enumerate().rev() {
        coordinates[at] = index % extent;
        index /= extent;
    }
    coordinates.iter().zip(shape).rev().fold(0, |position, (at, extent)| position * extent + at)
}

/// Lists the leaves of a file's type; its size in bytes.
fn flatten(dtype: &DType, path: String, offset: u64, leaves: &mut Vec<FileLeaf>) -> Result<u64, NpyError> {
    match dtype {
        DType::Plain(text) => {
            let size = text.num_bytes().ok_or_else(|| NpyError(format!("`{text}` is not a number type")))?;
            if text.endianness() == Endianness::Big && size > 1 {
                return Err(NpyError(format!("`{text}` is big-endian; save it as little-endian (`<`)")));
            }
            let (extents, strides) = (Vec::new(), Vec::new());
            let leaf = FileLeaf {
                path,
                scalar: scalar_of(text),
                spelled: text.to_string(),
                offset,
                extents,
                strides,
            };
            leaves.push(leaf);
            Ok(size as u64)
        }
        DType::Array(extent, inner) => {
            let first = leaves.len();
            let size = flatten(inner, path, offset, leaves)?;
            for leaf in &mut leaves[first..] {
                leaf.extents.insert(0, *extent);
                leaf.strides.insert(0, size);
            }
            size.checked_mul(*extent).ok_or_else(too_large)
        }
        DType::Record(fields) => {
            let mut size = 0;
            for field in fields {
                let inner =
                    if path.is_empty() { field.name.clone() } else { format!("{path}.{}", field.name) };
                let before = leaves.len();
                let at = offset.checked_add(size).ok_or_else(too_large)?;
                size = flatten(&field.dtype, inner, at, leaves)?.checked_add(size).ok_or_else(too_large)?;
                if field.name.is_empty() {
                    // Padding.
                    leaves.truncate(before);
                }
            }
            Ok(size)
        }
    }
}

fn too_large() -> NpyError {
    NpyError("the file's element type is too large".to_string())
}

fn scalar_of(text: &TypeStr) -> Option<Scalar> {
    Some(match (text.type_char(), text.size_field()) {
        (TypeChar::Bool, 1) => Scalar::Bool,
        (TypeChar::Int, 1) => Scalar::I8,
        (TypeChar::Int, 2) => Scalar::I16,
        (TypeChar::Int, 4) => Scalar::I32,
        (TypeChar::Int, 8) => Scalar::I64,
        (TypeChar::Uint, 1) => Scalar::U8,
        (TypeChar::Uint, 2) => Scalar::U16,
        (TypeChar::Uint, 4) => Scalar::U32,
        (TypeChar::Uint, 8) => Scalar::U64,
        (TypeChar::Float, 2) => Scalar::F16,
        (TypeChar::Float, 4) => Scalar::F32,
        (TypeChar::Float, 8) => Scalar::F64,
        (TypeChar::RawData, 2) => Scalar::BF16,
        _ => return None,
    })
}

fn type_text(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "|b1",
        Scalar::I8 => "|i1",
        Scalar::I16 => "<i2",
        Scalar::I32 => "<i4",
        Scalar::I64 => "<i8",
        Scalar::U8 => "|u1",
        Scalar::U16 => "<u2",
        Scalar::U32 => "<u4",
        Scalar::U64 => "<u8",
        Scalar::F16 => "<f2",
        Scalar::BF16 => "|V2",
        Scalar::F32 => "<f4",
        Scalar::F64 => "<f8",
    }
}

/// The bytes of a `.npy` file. Structs keep their C layout: gaps are unnamed padding fields, and a nested struct's
/// fields are written flat, with dotted names.
pub fn write(array: &HostArray) -> Vec<u8> {
    let shape: Vec<String> = array.shape.iter().map(u64::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let mut header = format!(
        "{{'descr': {}, 'fortran_order': False, 'shape': ({}{comma}), }}",
        descr(&array.element),
        shape.join(", ")
    );
    // Magic, version and length take 10 bytes; the data starts at a multiple of 64.
    let padding = (64 - (10 + header.len() + 1) % 64) % 64;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let long = header.len() > usize::from(u16::MAX);
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend(if long { [2, 0] } else { [1, 0] });
    if long {
        bytes.extend((header.len() as u32).to_le_bytes());
    } else {
        bytes.extend((header.len() as u16).to_le_bytes());
    }
    bytes.extend(header.as_bytes());
    bytes.extend(&array.bytes);
    bytes
}

fn descr(element: &ElementType) -> String {
    if let Some(scalar) = element.as_scalar() {
        return format!("'{}'", type_text(scalar));
    }
    // Every scalar by itself, in memory order: fixed arrays of structs interleave their leaves.
    let mut scalars = Vec::new();
    for leaf in &element.leaves {
        let dense = leaf.extents.len() == 1 && leaf.strides[0] == leaf.scalar.size();
        if leaf.extents.is_empty() || dense {
            scalars.push((leaf.offset, leaf.path.clone(), leaf.scalar, leaf.extents.first().copied()));
            continue;
        }
        for (number, offset) in leaf.offsets().into_iter().enumerate() {
            scalars.push((offset, format!("{}.{number}", leaf.path), leaf.scalar, None));
        }
    }
    scalars.sort_by_key(|(offset, ..)| *offset);
    let mut fields = Vec::new();
    let mut end = 0;
    for (offset, name, scalar, count) in scalars {
        if offset > end {
            fields.push(format!("('', '|V{}')", offset - end));
        }
        let text = type_text(scalar);
        match count {
            None => fields.push(format!("('{name}', '{text}')")),
            Some(count) => fields.push(format!("('{name}', '{text}', ({count},))")),
        }
        end = offset + scalar.size() * count.unwrap_or(1);
    }
    if element.size > end {
        fields.push(format!("('', '|V{}')", element.size - end));
    }
    format!("[{}]", fields.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(path: &str, scalar: Scalar, offset: u64, extents: Vec<u64>) -> Leaf {
        let strides = extents.iter().map(|_| scalar.size()).collect();
        Leaf { path: path.into(), scalar, offset, extents, strides }
    }

    fn padded() -> ElementType {
        ElementType {
            name: "S".into(),
            leaves: vec![leaf("a", Scalar::U8, 0, vec![]), leaf("b", Scalar::F32, 4, vec![2])],
            size: 12,
            align: 4,
        }
    }

    fn counted(element: ElementType, shape: Vec<u64>) -> HostArray {
        let mut array = HostArray::zeros(element, shape).expect("small");
        for (at, byte) in array.bytes.iter_mut().enumerate() {
            *byte = at as u8;
        }
        array
    }

    #[test]
    fn every_scalar_type_comes_back() {
        for scalar in Scalar::ALL {
            for shape in [vec![], vec![0], vec![3], vec![2, 3]] {
                let array = counted(ElementType::scalar(scalar), shape);
                assert_eq!(read(&write(&array), &array.element), Ok(array));
            }
        }
    }

    #[test]
    fn structs_come_back_and_packed_files_fit() {
        let mut array = counted(padded(), vec![3]);
        for element in array.bytes.chunks_mut(12) {
            element[1..4].fill(0);
        }
        assert_eq!(read(&write(&array), &padded()), Ok(array.clone()));
        let packed = ElementType {
            name: "P".into(),
            leaves: vec![leaf("b", Scalar::F32, 0, vec![2]), leaf("a", Scalar::U8, 8, vec![])],
            size: 9,
            align: 1,
        };
        let mut file = HostArray::zeros(packed, vec![3]).expect("small");
        for index in 0..3 {
            file.bytes[index * 9..index * 9 + 8]
                .copy_from_slice(&array.bytes[index * 12 + 4..index * 12 + 12]);
            file.bytes[index * 9 + 8] = array.bytes[index * 12];
        }
        assert_eq!(read(&write(&file), &padded()), Ok(array));
    }

    #[test]
    fn column_major_files_are_turned_round() {
        let file = b"{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n";
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((file.len() as u16).to_le_bytes());
        bytes.extend(file);
        bytes.extend([0, 3, 1, 4, 2, 5]);
        let array = read(&bytes, &ElementType::scalar(Scalar::U8)).expect("a good file");
        assert_eq!(array.bytes, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn wrong_files_are_refused_in_words() {
        let floats = write(&counted(ElementType::scalar(Scalar::F32), vec![4]));
        let f64s = ElementType::scalar(Scalar::F64);
        let message =
            |bytes: &[u8], wanted: &ElementType| read(bytes, wanted).expect_err("refused").to_string();
        assert_eq!(message(&floats, &f64s), "the file holds `<f4` where `f64` is wanted");
        assert!(message(&floats, &padded()).contains("field `a`"));
        assert!(message(&floats[..floats.len() - 1], &ElementType::scalar(Scalar::F32)).contains("15 bytes"));
        assert!(message(b"hello", &f64s).starts_with("not a .npy file"));
        assert!(message(&[], &f64s).starts_with("not a .npy file"));
    }

    fn with_header(header: &str) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
        bytes.extend((header.len() as u32).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes
    }

    #[test]
    fn monstrous_headers_are_refused() {
        let element = ElementType::scalar(Scalar::F32);
        let rest = "'fortran_order': False, 'shape'";
        for header in [
            format!("{{'descr': '<f4', {rest}: (1099511627776, 1099511627776), }}\n"),
            format!("{{'descr': '<f4', {rest}: ({}1), }}\n", "9, ".repeat(1000)),
            format!("{{'descr': [('a', '<f4', (1099511627776, 1099511627776))], {rest}: (1,), }}\n"),
            format!(
                "{{'descr': [{}], {rest}: (1,), }}\n",
                "('a', '<f8', (1152921504606846976,)), ".repeat(3)
            ),
            format!("{{'descr': {}'<f4'{}, {rest}: (1,), }}\n", "[".repeat(50_000), "]".repeat(50_000)),
            format!("{{'descr': '<f4', {rest}: (1,), {}}}\n", "-".repeat(50_000)),
        ] {
            assert!(read(&with_header(&header), &element).is_err(), "{header:.80}");
        }
    }

    /// Whatever the bytes, there is an answer.
    #[test]
    fn damaged_files_never_panic() {
        const MARKS: &[u8] = b"0123456789()[]{},:'<>|fiuVbO-\n\xff";
        let good = [
            write(&counted(ElementType::scalar(Scalar::F32), vec![2, 3])),
            write(&counted(padded(), vec![3])),
        ];
        let mut state = 1u64;
        let mut next = |limit: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % limit
        };
        for round in 0..20_000 {
            let mut bytes = good[round % good.len()].clone();
            for _ in 0..1 + next(4) {
                let at = next(bytes.len());
                match next(3) {
                    0 => bytes[at] = MARKS[next(MARKS.len())],
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, MARKS[next(MARKS.len())]),
                }
            }
            for wanted in [ElementType::scalar(Scalar::F32), padded()] {
                if let Ok(array) = read(&bytes, &wanted) {
                    assert_eq!(array.bytes.len() as u64, array.len() * wanted.size);
                }
            }
        }
    }
}

//! Element types in the words of others: DLPack's codes, the type strings of NumPy's and CUDA's array interfaces.

use crate::dlpack::DataType;
use krn_compiler::data::{ElementType, Scalar};

const INT: u8 = 0;
const UINT: u8 = 1;
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;
const BOOL: u8 = 6;

/// What an array's elements are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Given {
    Scalar(Scalar),
    /// Structs of so many bytes.
    Struct(u64),
    Other,
}

/// DLPack's words for a scalar type.
pub fn data_type(scalar: Scalar) -> DataType {
    let code = match scalar {
        Scalar::Bool => BOOL,
        Scalar::BF16 => BFLOAT,
        scalar if scalar.is_float() => FLOAT,
        scalar if scalar.is_unsigned_integer() => UINT,
        _ => INT,
    };
    DataType { code, bits: scalar.size() as u8 * 8, lanes: 1 }
}

/// The scalar type of DLPack's words.
#[inline]
pub fn of_data_type(given: DataType) -> Given {
    let scalar = match (given.code, given.bits, given.lanes) {
        (FLOAT, 32, 1) => Scalar::F32,
        (FLOAT, 16, 1) => Scalar::F16,
        (BFLOAT, 16, 1) => Scalar::BF16,
        (FLOAT, 64, 1) => Scalar::F64,
        (INT, 32, 1) => Scalar::I32,
        (INT, 64, 1) => Scalar::I64,
        (INT, 16, 1) => Scalar::I16,
        (INT, 8, 1) => Scalar::I8,
        (UINT, 8, 1) => Scalar::U8,
        (UINT, 16, 1) => Scalar::U16,
        (UINT, 32, 1) => Scalar::U32,
        (UINT, 64, 1) => Scalar::U64,
        (BOOL, 8, 1) => Scalar::Bool,
        _ => return Given::Other,
    };
    Given::Scalar(scalar)
}

/// The type of a type string: `<f4`, `|b1`, `|V16`.
pub fn of_type_string(text: &str) -> Given {
    let Some((order, rest)) = text.split_at_checked(1) else { return Given::Other };
    let Some((kind, size)) = rest.split_at_checked(1) else { return Given::Other };
    let Ok(size) = size.parse::<u64>() else { return Given::Other };
    let native = if cfg!(target_endian = "little") { "<" } else { ">" };
    if size > 1 && kind != "V" && !["|", "=", native].contains(&order) {
        return Given::Other;
    }
    if kind == "V" {
        return Given::Struct(size);
    }
    let named = match kind {
        "b" if size == 1 => Some(Scalar::Bool),
        "i" => Scalar::from_name(&format!("i{}", size * 8)),
        "u" => Scalar::from_name(&format!("u{}", size * 8)),
        "f" => Scalar::from_name(&format!("f{}", size * 8)),
        _ => None,
    };
    named.map_or(Given::Other, Given::Scalar)
}

/// The scalar of which a struct has so many, one behind the other and nothing else; scalars themselves are no structs.
pub fn uniform(element: &ElementType) -> Option<(Scalar, u64)> {
    let scalar = element.leaves.first()?.scalar;
    let count: u64 = element.leaves.iter().map(|leaf| leaf.count()).sum();
    let dense =
        element.leaves.iter().all(|leaf| leaf.scalar == scalar) && count * scalar.size() == element.size;
    dense.then_some((scalar, count))
}

/// As the library NumPy, and those like it, call a scalar type.
pub fn library_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::I8 => "int8",
        Scalar::I16 => "int16",
        Scalar::I32 => "int32",
        Scalar::I64 => "int64",
        Scalar::U8 => "uint8",
        Scalar::U16 => "uint16",
        Scalar::U32 => "uint32",
        Scalar::U64 => "uint64",
        Scalar::F16 => "float16",
        Scalar::BF16 => "bfloat16",
        Scalar::F32 => "float32",
        Scalar::F64 => "float64",
    }
}

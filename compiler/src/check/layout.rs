//! The C layout of structs: natural alignment, fields in order, padding at the end.

use super::typed::{Program, StructField, Type};
use crate::data::{ElementType, Leaf};

/// Largest struct, in bytes, and in scalar positions.
const MAX_SIZE: u64 = 64 * 1024;
const MAX_LEAVES: usize = 1024;

/// The element type of a struct with these fields; says what is wrong where it is too large.
pub(super) fn element_of(
    program: &Program,
    name: &str,
    fields: &[StructField],
) -> Result<ElementType, String> {
    let mut leaves = Vec::new();
    let mut offset = 0;
    let mut align = 1;
    for field in fields {
        let (size, field_align) = size_align(program, &field.ty);
        align = align.max(field_align);
        offset = round_up(offset, field_align);
        if size > MAX_SIZE || offset + size > MAX_SIZE {
            return Err(format!("it is larger than {MAX_SIZE} bytes"));
        }
        if leaves.len() + leaf_count(program, &field.ty) > MAX_LEAVES {
            return Err(format!("it has more than {MAX_LEAVES} scalar fields"));
        }
        let at = Place { path: field.name.clone(), offset, extents: Vec::new(), strides: Vec::new() };
        append(program, &field.ty, at, &mut leaves);
        offset += size;
    }
    Ok(ElementType { name: name.to_string(), leaves, size: round_up(offset, align), align })
}

/// Size and alignment in bytes; the size saturates.
pub(super) fn size_align(program: &Program, ty: &Type) -> (u64, u64) {
    match ty {
        Type::Scalar(scalar) => (scalar.size(), scalar.size()),
        Type::Struct(id) => {
            let element = &program.structs[*id].element;
            (element.size, element.align)
        }
        Type::Array(inner, extent) => {
            let (size, align) = size_align(program, inner);
            (size.saturating_mul(*extent), align)
        }
    }
}

/// The byte offset of each field of a struct.
pub(super) fn field_offsets(program: &Program, fields: &[StructField]) -> Vec<u64> {
    let mut offset = 0;
    fields
        .iter()
        .map(|field| {
            let (size, align) = size_align(program, &field.ty);
            let at = round_up(offset, align);
            offset = at + size;
            at
        })
        .collect()
}

struct Place {
    path: String,
    offset: u64,
    extents: Vec<u64>,
    strides: Vec<u64>,
}

fn append(program: &Program, ty: &Type, mut at: Place, leaves: &mut Vec<Leaf>) {
    match ty {
        Type::Scalar(scalar) => leaves.push(Leaf {
            path: at.path,
            scalar: *scalar,
            offset: at.offset,
            extents: at.extents,
            strides: at.strides,
        }),
        Type::Array(inner, extent) => {
            at.extents.push(*extent);
            at.strides.push(size_align(program, inner).0);
            append(program, inner, at, leaves);
        }
        Type::Struct(id) => leaves.extend(program.structs[*id].element.leaves.iter().map(|leaf| Leaf {
            path: format!("{}.{}", at.path, leaf.path),
            scalar: leaf.scalar,
            offset: at.offset + leaf.offset,
            extents: at.extents.iter().chain(&leaf.extents).copied().collect(),
            strides: at.strides.iter().chain(&leaf.strides).copied().collect(),
        })),
    }
}

fn leaf_count(program: &Program, ty: &Type) -> usize {
    match ty {
        Type::Scalar(_) => 1,
        Type::Struct(id) => program.structs[*id].element.leaves.len(),
        Type::Array(inner, _) => leaf_count(program, inner),
    }
}

fn round_up(offset: u64, align: u64) -> u64 {
    offset.div_ceil(align) * align
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::typed::StructDef;
    use crate::data::Scalar;
    use crate::source::Span;

    fn field(name: &str, ty: Type) -> StructField {
        StructField { name: name.to_string(), ty, span: Span::default() }
    }

    #[test]
    fn nested_structs_and_fixed_arrays_follow_c() {
        let mut program = Program::default();
        let inner = [field("tag", Type::Scalar(Scalar::U8)), field("weight", Type::F32)];
        let element = element_of(&program, "Inner", &inner).unwrap();
        assert_eq!((element.size, element.align), (8, 4));
        let id = program.structs.push(StructDef {
            name: "Inner".to_string(),
            fields: inner.to_vec(),
            span: Span::default(),
            element,
        });
        let outer = [
            field("flag", Type::BOOL),
            field("parts", Type::Array(Box::new(Type::Struct(id)), 3)),
            field("scale", Type::F64),
            field("m", Type::Array(Box::new(Type::Array(Box::new(Type::Scalar(Scalar::F16)), 4)), 2)),
        ];
        let element = element_of(&program, "Outer", &outer).unwrap();
        let places: Vec<_> = element
            .leaves
            .iter()
            .map(|leaf| (leaf.path.as_str(), leaf.offset, leaf.extents.clone(), leaf.strides.clone()))
            .collect();
        assert_eq!(
            places,
            [
                ("flag", 0, vec![], vec![]),
                ("parts.tag", 4, vec![3], vec![8]),
                ("parts.weight", 8, vec![3], vec![8]),
                ("scale", 32, vec![], vec![]),
                ("m", 40, vec![2, 4], vec![8, 2]),
            ]
        );
        assert_eq!((element.size, element.align), (56, 8));
        assert_eq!(field_offsets(&program, &outer), [0, 4, 32, 40]);
    }
}

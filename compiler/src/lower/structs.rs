//! Struct types and their scalar leaves. A value of a struct type is the list of its scalars, in declaration
//! order, fixed arrays written out element by element.

use crate::check::typed::{Program, Type};
use crate::data::{ElementType, Leaf};

/// Where one scalar of a value lies in its element: which leaf, and where in the leaf's fixed arrays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub leaf: usize,
    pub indices: Vec<u64>,
}

impl Place {
    /// Row-major position within the leaf.
    pub fn position(&self, leaf: &Leaf) -> u64 {
        self.indices.iter().zip(&leaf.extents).fold(0, |position, (index, extent)| position * extent + index)
    }
}

/// Every scalar of a type, in the order of its values.
pub(super) fn places(program: &Program, ty: &Type) -> Vec<Place> {
    let mut list = Vec::new();
    visit(program, ty, 0, &mut Vec::new(), &mut list);
    list
}

fn visit(program: &Program, ty: &Type, leaf: usize, indices: &mut Vec<u64>, list: &mut Vec<Place>) {
    match ty {
        Type::Scalar(_) => list.push(Place { leaf, indices: indices.clone() }),
        Type::Struct(id) => {
            let mut leaf = leaf;
            for field in &program.structs[*id].fields {
                visit(program, &field.ty, leaf, indices, list);
                leaf += leaf_count(program, &field.ty);
            }
        }
        Type::Array(element, extent) => {
            for index in 0..*extent {
                indices.push(index);
                visit(program, element, leaf, indices, list);
                indices.pop();
            }
        }
    }
}

/// How many leaves a type has: fixed arrays do not multiply them.
pub(super) fn leaf_count(program: &Program, ty: &Type) -> usize {
    match ty {
        Type::Scalar(_) => 1,
        Type::Struct(id) => {
            program.structs[*id].fields.iter().map(|field| leaf_count(program, &field.ty)).sum()
        }
        Type::Array(element, _) => leaf_count(program, element),
    }
}

/// The leaves and the C layout of a type. A fixed array on its own has the leaves of its element.
pub(super) fn element_type(program: &Program, ty: &Type) -> ElementType {
    match ty {
        Type::Scalar(scalar) => ElementType::scalar(*scalar),
        Type::Struct(id) => program.structs[*id].element.clone(),
        Type::Array(element, extent) => {
            let mut inner = element_type(program, element);
            for leaf in &mut inner.leaves {
                leaf.extents.insert(0, *extent);
                leaf.strides.insert(0, inner.size);
            }
            inner.size *= extent;
            inner
        }
    }
}

/// Which fields come before the one named, as a count of leaves and of scalars.
pub(super) fn before_field(program: &Program, ty: &Type, field: usize) -> (usize, usize, Type) {
    let Type::Struct(id) = ty else { return (0, 0, ty.clone()) };
    let fields = &program.structs[*id].fields;
    let leaves = fields[..field].iter().map(|before| leaf_count(program, &before.ty)).sum();
    let scalars = fields[..field].iter().map(|before| program.scalar_count(&before.ty) as usize).sum();
    (leaves, scalars, fields[field].ty.clone())
}

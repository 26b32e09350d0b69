//! Questions about types that the proofs ask.

use super::vocabulary::Interval;
use crate::check::typed::*;

/// All values of an integer type; of anything else, everything.
pub fn integer_range(ty: &Type) -> Interval {
    ty.as_scalar().map_or(Interval::ALL, Interval::of)
}

/// The storage type of the part of a value of type `ty` that `path` leads to.
pub fn at_path(program: &Program, ty: &Type, path: &[Projection]) -> Option<Type> {
    let mut ty = ty.clone();
    for step in path {
        ty = match (step, ty) {
            (Projection::Field(position), Type::Struct(id)) => {
                program.structs[id].fields.get(*position)?.ty.clone()
            }
            (Projection::Element { .. }, Type::Array(element, _)) => *element,
            _ => return None,
        };
    }
    Some(ty)
}

/// One step from a struct value into one of its leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeafStep {
    Field(usize),
    /// Any element of a fixed array of this length.
    Elements(u64),
}

/// The paths to all scalars in a value of type `ty`.
pub fn leaves(program: &Program, ty: &Type) -> Vec<Vec<LeafStep>> {
    match ty {
        Type::Scalar(_) => vec![Vec::new()],
        Type::Array(element, length) => {
            let inner = leaves(program, element).into_iter();
            inner.map(|path| [vec![LeafStep::Elements(*length)], path].concat()).collect()
        }
        Type::Struct(id) => {
            let fields = program.structs[*id].fields.iter().enumerate();
            let of_field = |(position, field): (usize, &StructField)| {
                let inner = leaves(program, &field.ty).into_iter();
                inner.map(move |path| [vec![LeafStep::Field(position)], path].concat()).collect::<Vec<_>>()
            };
            fields.flat_map(of_field).collect()
        }
    }
}

/// What to call a struct value in a failure report.
pub fn describe(kernel: &Kernel, expression: &Expr) -> String {
    match &expression.kind {
        ExprKind::Local(local) => kernel.locals[*local].name.clone(),
        ExprKind::Param(param) => kernel.params[*param].name.clone(),
        ExprKind::Load { access, .. } => kernel.arrays[access.array].name.clone(),
        ExprKind::Project { base, .. } => describe(kernel, base),
        _ => String::from("value"),
    }
}

//! Which names in the shapes of parameters are dimensions.

use super::ast::{Expr, ExprKind, Ident, TypeExpr};

/// A name that an extent binds.
#[derive(Clone, Copy)]
pub struct BoundDimension<'a> {
    pub name: &'a Ident,
    /// The parameter, by its position, and its axis.
    pub param: usize,
    pub axis: usize,
    pub extent: &'a Expr,
}

/// The dimensions that parameters of these types bind: names that stand bare as an extent, and then those that are the
/// only one in an extent that means nothing yet. `is_free` says whether a name has no other meaning.
pub fn bound_dimensions<'a>(
    params: impl Iterator<Item = &'a TypeExpr> + Clone,
    is_free: &dyn Fn(&str) -> bool,
) -> Vec<BoundDimension<'a>> {
    let mut found: Vec<BoundDimension<'a>> = Vec::new();
    for bare in [true, false] {
        for (param, ty) in params.clone().enumerate() {
            for (axis, extent) in ty.extents.iter().flatten().enumerate() {
                let mut names = Vec::new();
                names_of(extent, &mut names);
                let is_known = |name: &Ident| found.iter().any(|known| known.name.name == name.name);
                names.retain(|name| is_free(&name.name) && !is_known(name));
                let [name, others @ ..] = names.as_slice() else { continue };
                let is_bare = matches!(extent.kind, ExprKind::Name(_));
                if is_bare == bare && others.iter().all(|other| other.name == name.name) {
                    found.push(BoundDimension { name, param, axis, extent });
                }
            }
        }
    }
    found
}

/// The names of an extent, those of functions aside.
fn names_of<'a>(extent: &'a Expr, names: &mut Vec<&'a Ident>) {
    match &extent.kind {
        ExprKind::Name(name) => names.push(name),
        ExprKind::Unary { operand, .. } | ExprKind::Cast { operand, .. } => names_of(operand, names),
        ExprKind::Binary { left, right, .. } => {
            names_of(left, names);
            names_of(right, names);
        }
        ExprKind::Call { arguments, .. } => arguments.iter().for_each(|argument| names_of(argument, names)),
        _ => {}
    }
}

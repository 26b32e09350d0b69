//! Types by name: what a type expression means, what a type is called, what its values widen to.

use super::items::{Checker, Global};
use super::typed::{Program, StructId, Type};
use crate::data::{ElementType, Scalar};
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::ast::{Ident, TypeExpr};

/// The type of a value read from storage of this type.
pub(super) fn widened(ty: &Type) -> Type {
    match ty {
        Type::Scalar(scalar) => Type::Scalar(scalar.widened()),
        other => other.clone(),
    }
}

/// The type as the user writes it.
pub(super) fn name(program: &Program, ty: &Type) -> String {
    let mut element = ty;
    let mut extents = Vec::new();
    while let Type::Array(inner, extent) = element {
        extents.push(extent.to_string());
        element = inner;
    }
    let element = match element {
        Type::Scalar(scalar) => scalar.name().to_string(),
        Type::Struct(id) => program.structs[*id].name.clone(),
        Type::Array(..) => unreachable!("the loop above strips arrays"),
    };
    if extents.is_empty() { element } else { format!("{element}[{}]", extents.join(", ")) }
}

/// The leaves and layout of an element of this type; `None` for a fixed array, which is no element.
pub(super) fn element(program: &Program, ty: &Type) -> Option<ElementType> {
    match ty {
        Type::Scalar(scalar) => Some(ElementType::scalar(*scalar)),
        Type::Struct(id) => Some(program.structs[*id].element.clone()),
        Type::Array(..) => None,
    }
}

/// Whether every scalar in it is a number (so that sums and products of it are defined).
pub(super) fn is_numeric(program: &Program, ty: &Type) -> bool {
    match ty {
        Type::Scalar(scalar) => *scalar != Scalar::Bool,
        Type::Struct(id) => {
            program.structs[*id].element.leaves.iter().all(|leaf| leaf.scalar != Scalar::Bool)
        }
        Type::Array(inner, _) => is_numeric(program, inner),
    }
}

/// What such floats are called: `f8`, `fp8_e4m3`, `float8_e5m2`, `e4m3`.
fn is_float_of_8_bits(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["f8", "fp8", "float8", "e4m3", "e5m2"].iter().any(|known| name.starts_with(known))
}

impl<'a> Checker<'a> {
    /// The scalar or struct of this name; reports an unknown one.
    pub fn named_type(&mut self, ident: &Ident) -> Option<Type> {
        if let Some(scalar) = Scalar::from_name(&ident.name) {
            return Some(Type::Scalar(scalar));
        }
        match self.globals.get(ident.name.as_str()) {
            Some(Global::Struct(id)) => Some(Type::Struct(*id)),
            Some(Global::Poisoned) => None,
            // Only reached where a constant needs a struct that is not laid out yet.
            Some(Global::Later(_)) if self.is_struct_item(ident) => None,
            Some(_) => {
                self.report(
                    Diagnostic::error(
                        codes::E0110,
                        ident.span,
                        format!("`{}` is not a type", ident.name),
                        "a type is wanted here",
                    )
                    .help("write a scalar type such as `f32`, or the name of a struct"),
                );
                None
            }
            None if self.may_be_unread(&ident.name) => None,
            None => {
                let mut names: Vec<&str> = Scalar::ALL.iter().map(|scalar| scalar.name()).collect();
                names.extend(self.global_names(|global| matches!(global, Global::Struct(_))));
                let unknown = Diagnostic::error(
                    codes::E0102,
                    ident.span,
                    format!("there is no type `{}`", ident.name),
                    "not a known type",
                );
                self.report(match is_float_of_8_bits(&ident.name) {
                    true => unknown.help(
                        "there are no floats of 8 bits: take the bytes as `u8`, and decode them in a `fn`, by shifts \
                         and `from_bits`",
                    ),
                    false => unknown.nearest_or(
                        &ident.name,
                        names,
                        "the scalar types are bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32 and f64",
                    ),
                });
                None
            }
        }
    }

    fn is_struct_item(&self, ident: &Ident) -> bool {
        self.file.items.iter().any(
            |item| matches!(item, crate::syntax::ast::Item::Struct(item) if item.name.name == ident.name),
        )
    }

    /// A scalar or struct type without brackets, where arrays cannot stand; `place` names that place.
    pub fn value_type(&mut self, ty: &TypeExpr, place: &str) -> Option<Type> {
        if ty.extents.is_some() {
            self.report(
                Diagnostic::error(
                    codes::E0218,
                    ty.span,
                    format!("{place} cannot be an array"),
                    "an array type stands here",
                )
                .help(format!(
                    "use a scalar or struct type: `{0}`; a local array has its axes by its name: `let t[i, j]: {0} = …`",
                    ty.name.name
                )),
            );
            return None;
        }
        self.named_type(&ty.name)
    }

    pub fn struct_of(&self, ty: &Type) -> Option<StructId> {
        match ty {
            Type::Struct(id) => Some(*id),
            _ => None,
        }
    }
}

//! `const` and `static` items: their values, worked out at compile time.

use super::elaborator::{Elaborator, Home};
use super::encode::encode;
use super::evaluate::{Value, evaluate};
use super::items::{Checker, ConstantValue, Global};
use super::typed::{Constant, Expr, Static, Type};
use super::{layout, types};
use crate::data::{CONSTANT_BANK_BYTES, Scalar, constant_places};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, ConstItem, Ident, Item, StaticItem, TypeExpr};

/// Largest constant or static, in bytes.
const MAX_BYTES: u64 = 1 << 26;

/// A constant's or static's type: element and extents.
struct Shape {
    ty: Type,
    extents: Vec<u64>,
}

impl<'a> Checker<'a> {
    /// Constants of scalar types without brackets: struct fields may need them.
    pub fn scalar_constants(&mut self) {
        self.constants_where(|item| {
            item.ty.extents.is_none() && Scalar::from_name(&item.ty.name.name).is_some()
        });
    }

    /// Arrays and structs.
    pub fn other_constants(&mut self) {
        self.constants_where(|item| {
            item.ty.extents.is_some() || Scalar::from_name(&item.ty.name.name).is_none()
        });
    }

    /// Tells of arrays that lie in device memory, because they do not fit into constant memory.
    pub fn constant_memory(&mut self) {
        let sizes: Vec<u64> =
            self.program.constants.values().map(|constant| constant.bytes.len() as u64).collect();
        let places = constant_places(sizes.iter().map(|size| (*size).max(1)));
        let named = self.program.constants.values().map(|constant| (constant.name.clone(), constant.span));
        let named: Vec<(String, Span)> = named.collect();
        for (((name, span), size), place) in named.into_iter().zip(sizes).zip(places) {
            if place.in_bank {
                continue;
            }
            let left = place.left;
            self.report(
                Diagnostic::warning(
                    codes::W0302,
                    span,
                    format!("`{name}` does not fit into constant memory: it will lie in device memory"),
                    format!("{size} bytes, but {left} are left of {CONSTANT_BANK_BYTES}"),
                )
                .help("put the arrays that need it first, or give this one to the kernel as an argument"),
            );
        }
    }

    fn constants_where(&mut self, filter: impl Fn(&ConstItem) -> bool) {
        let file = self.file;
        for item in &file.items {
            let Item::Const(item) = item else { continue };
            if !filter(item) || self.is_duplicate(&item.name) {
                continue;
            }
            let global = match self.constant_item(item) {
                Some(value) => {
                    self.constants.push(value);
                    Global::Constant(self.constants.len() - 1)
                }
                None => Global::Poisoned,
            };
            self.globals.insert(&item.name.name, global);
        }
    }

    fn constant_item(&mut self, item: &'a ConstItem) -> Option<ConstantValue> {
        let shape = self.item_shape(&item.ty)?;
        if shape.extents.is_empty() {
            let (literal, _) = self.constant_of_type(&item.name, &item.value, &shape.ty)?;
            return Some(ConstantValue::Value(literal));
        }
        let mut bytes = Vec::new();
        self.array_bytes(&item.name, &item.value, &shape.ty, &shape.extents, &mut bytes)?;
        let element = types::element(&self.program, &shape.ty)?;
        Some(ConstantValue::Array(self.program.constants.push(Constant {
            name: item.name.name.clone(),
            element,
            ty: shape.ty,
            extents: shape.extents,
            bytes,
            span: item.name.span,
        })))
    }

    pub fn statics(&mut self) {
        let file = self.file;
        for item in &file.items {
            let Item::Static(item) = item else { continue };
            if self.is_duplicate(&item.name) {
                continue;
            }
            let global = match self.static_item(item) {
                Some(value) => Global::Static(self.program.statics.push(value)),
                None => Global::Poisoned,
            };
            self.globals.insert(&item.name.name, global);
        }
    }

    fn static_item(&mut self, item: &'a StaticItem) -> Option<Static> {
        let shape = self.item_shape(&item.ty)?;
        let mut bytes = Vec::new();
        match &item.value {
            Some(value) => self.array_bytes(&item.name, value, &shape.ty, &shape.extents, &mut bytes)?,
            None => {
                let count: u64 = shape.extents.iter().product();
                bytes.resize((layout::size_align(&self.program, &shape.ty).0 * count) as usize, 0);
            }
        }
        let element = types::element(&self.program, &shape.ty)?;
        Some(Static {
            name: item.name.name.clone(),
            element,
            ty: shape.ty,
            extents: shape.extents,
            bytes,
            span: item.name.span,
        })
    }

    fn item_shape(&mut self, ty: &'a TypeExpr) -> Option<Shape> {
        let element = self.named_type(&ty.name)?;
        let extents: Option<Vec<u64>> =
            ty.extents.iter().flatten().map(|extent| self.fixed_extent(extent)).collect();
        let extents = extents?;
        let size = layout::size_align(&self.program, &element).0;
        let bytes = extents.iter().try_fold(size, |bytes, extent| bytes.checked_mul(*extent));
        if bytes.is_none_or(|bytes| bytes > MAX_BYTES) {
            self.report(
                Diagnostic::error(
                    codes::E0227,
                    ty.span,
                    "this constant is too large",
                    format!("more than {} MiB", MAX_BYTES >> 20),
                )
                .help("pass it to the kernel as an array parameter instead"),
            );
            return None;
        }
        Some(Shape { ty: element, extents })
    }

    /// Appends the bytes of a nested array literal of these extents.
    fn array_bytes(
        &mut self,
        name: &'a Ident,
        value: &'a ast::Expr,
        ty: &Type,
        extents: &[u64],
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let Some((extent, inner)) = extents.split_first() else {
            let (_, value) = self.constant_of_type(name, value, ty)?;
            encode(&self.program, &value, ty, out);
            return Some(());
        };
        let items = match &value.kind {
            ast::ExprKind::ArrayLiteral(items) => items,
            ast::ExprKind::Error => return None,
            _ => {
                self.report(
                    Diagnostic::error(
                        codes::E0220,
                        value.span,
                        format!("`{}` needs an array of {extent} elements here", name.name),
                        "this is not an array literal",
                    )
                    .help("write the elements in brackets: `[a, b, …]`"),
                );
                return None;
            }
        };
        if items.len() as u64 != *extent {
            self.report(
                Diagnostic::error(
                    codes::E0220,
                    value.span,
                    format!("`{}` needs {extent} elements here, but {} are written", name.name, items.len()),
                    format!("{} elements", items.len()),
                )
                .help(format!(
                    "write {extent} elements, or change the extent in the type to {}",
                    items.len()
                )),
            );
            return None;
        }
        let mut sound = Some(());
        for item in items {
            sound = self.array_bytes(name, item, ty, inner, out).and(sound);
        }
        sound
    }

    /// A constant value of a storage type: as an expression to copy (of the widened type), and as a value.
    pub fn constant_of_type(
        &mut self,
        name: &'a Ident,
        value: &'a ast::Expr,
        ty: &Type,
    ) -> Option<(Expr, Value)> {
        let mut elaborator = Elaborator::new(self, Home::Constant, name, value.span);
        let expr = elaborator.stored_expr(value, ty, "this constant")?;
        let expr = elaborator.narrowed(expr, super::elaborator::narrow_scalar(ty));
        let value = elaborator.constant_value(&expr)?;
        let literal = super::evaluate::literal(&value, &expr.ty);
        let literal = match literal {
            Some(kind) => Expr { kind, ..expr },
            None => expr,
        };
        Some((literal, value))
    }
}

impl<'c, 'a> Elaborator<'c, 'a> {
    /// The value of an expression that must be constant.
    pub fn constant_value(&mut self, expr: &Expr) -> Option<Value> {
        match evaluate(expr) {
            Some(value) => Some(value),
            None => self.refuse(
                Diagnostic::error(
                    codes::E0219,
                    expr.span,
                    "this must be known when the file is compiled",
                    "not a constant",
                )
                .help("use literals, other constants, operators and plain built-in functions of them"),
            ),
        }
    }
}

//! Places: array elements, variables, parameters and constants, and parts of them.

use super::super::elaborator::{Elaborator, local_value};
use super::super::items::{ConstantValue, Global};
use super::super::scope::Binding;
use super::super::spell::spell;
use super::super::typed::{Access, ArrayId, BoundsCheck, Expr, ExprKind, LocalId, Projection, Type};
use super::super::types;
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, Ident};

/// Where a place starts.
#[derive(Clone, Debug)]
pub enum Root {
    Local(LocalId),
    Element(Access),
    /// Something that can be read only.
    Value(Expr),
}

#[derive(Clone, Debug)]
pub struct Place {
    pub root: Root,
    pub path: Vec<Projection>,
    /// The storage type of what the place holds.
    pub ty: Type,
}

impl<'c, 'a> Elaborator<'c, 'a> {
    /// A name, an element, a field of one: works out subscripts, and reads nothing.
    pub fn place(&mut self, expr: &'a ast::Expr) -> Option<Place> {
        match &expr.kind {
            ast::ExprKind::Name(name) => self.named_place(name),
            ast::ExprKind::Index { base, subscripts } => self.element(base, subscripts, expr.span),
            ast::ExprKind::Field { base, field } => {
                let place = self.place(base)?;
                let Type::Struct(id) = place.ty else {
                    let found = self.type_name(&place.ty);
                    return self.refuse(
                        Diagnostic::error(
                            codes::E0231,
                            field.span,
                            format!("`{found}` has no fields"),
                            format!("`{}` is `{found}`", spell(base)),
                        )
                        .help("only structs have fields"),
                    );
                };
                let fields = &self.checker.program.structs[id].fields;
                let Some(at) = fields.iter().position(|known| known.name == field.name) else {
                    self.unknown_field(field, id);
                    return None;
                };
                let ty = fields[at].ty.clone();
                let mut place = place;
                place.path.push(Projection::Field(at));
                place.ty = ty;
                Some(place)
            }
            _ => {
                let value = self.expr(expr, None)?;
                let ty = value.ty.clone();
                Some(Place { root: Root::Value(value), path: Vec::new(), ty })
            }
        }
    }

    fn named_place(&mut self, name: &'a Ident) -> Option<Place> {
        if let Some(array) = self.array_named(name)? {
            return self.whole_array(array, name);
        }
        if let Some(Binding::Local { id, .. }) = self.scope.get(&name.name).map(|entry| entry.binding) {
            self.scope.read(&name.name);
            let ty = self.kernel.locals[id].ty.clone();
            return Some(Place { root: Root::Local(id), path: Vec::new(), ty });
        }
        let value = self.name(name, None)?;
        let ty = match value.kind {
            // A parameter keeps its storage type, so that its narrow fields are known as such.
            ExprKind::Param(id) => self.kernel.params[id].ty.clone(),
            _ => value.ty.clone(),
        };
        Some(Place { root: Root::Value(value), path: Vec::new(), ty })
    }

    /// The array that a name stands for, if it is one; `None` outside where it is poisoned.
    pub fn array_named(&mut self, name: &Ident) -> Option<Option<ArrayId>> {
        match self.scope.read(&name.name).map(|entry| entry.binding) {
            Some(Binding::Array { id, .. }) => return Some(Some(id)),
            Some(Binding::Poisoned) => {
                self.failed = true;
                return None;
            }
            Some(_) => return Some(None),
            None => {}
        }
        match self.checker.globals.get(name.name.as_str()).copied() {
            Some(Global::Constant(at)) => match self.checker.constants[at] {
                ConstantValue::Array(id) => Some(Some(self.constant_array(id))),
                ConstantValue::Value(_) => Some(None),
            },
            Some(Global::Static(id)) => {
                if self.refuse_static(name) {
                    return None;
                }
                Some(Some(self.static_array(id)))
            }
            _ => Some(None),
        }
    }

    /// An array without subscripts: right for rank 0 only.
    pub fn whole_array(&mut self, id: ArrayId, name: &Ident) -> Option<Place> {
        let array = &self.kernel.arrays[id];
        let rank = array.extents.len();
        if rank > 0 {
            let wanted: Vec<&str> = ["i", "j", "k", "l", "m"].into_iter().take(rank).collect();
            let help = format!("subscript it: `{}[{}]`", name.name, wanted.join(", "));
            let span = array.span;
            return self.refuse(
                Diagnostic::error(
                    codes::E0320,
                    name.span,
                    format!("`{}` is an array with {rank} axes and cannot be used whole", name.name),
                    "no subscripts",
                )
                .label(span, "declared here")
                .help(help),
            );
        }
        let access = Access { array: id, subscripts: Vec::new(), checks: Vec::new(), span: name.span };
        Some(Place { root: Root::Element(access), path: Vec::new(), ty: array.ty.clone() })
    }

    fn element(&mut self, base: &'a ast::Expr, subscripts: &'a [ast::Expr], span: Span) -> Option<Place> {
        if let ast::ExprKind::Name(name) = &base.kind {
            let array = self.array_named(name);
            let Some(array) = array else {
                self.subscripts(subscripts);
                return None;
            };
            if let Some(id) = array
                && !self.kernel.arrays[id].extents.is_empty()
            {
                let values = self.subscripts(subscripts);
                let array = &self.kernel.arrays[id];
                let rank = array.extents.len();
                if rank != subscripts.len() {
                    let declared = array.span;
                    return self.refuse(
                        Diagnostic::error(
                            codes::E0321,
                            span,
                            format!(
                                "`{}` has {rank} axes, but {} subscripts are given",
                                name.name,
                                subscripts.len()
                            ),
                            format!("{} subscripts", subscripts.len()),
                        )
                        .label(declared, "declared here")
                        .help(format!("give {rank} subscripts")),
                    );
                }
                let ty = array.ty.clone();
                let checks = vec![BoundsCheck::Proved; rank];
                let access = Access { array: id, subscripts: values?, checks, span };
                return Some(Place { root: Root::Element(access), path: Vec::new(), ty });
            }
        }
        let place = self.place(base);
        let values = self.subscripts(subscripts);
        let (mut place, values) = (place?, values?);
        for (index, subscript) in values.into_iter().zip(subscripts) {
            let Type::Array(inner, extent) = place.ty else {
                let found = self.type_name(&place.ty);
                return self.refuse(
                    Diagnostic::error(
                        codes::E0322,
                        base.span,
                        format!("`{}` is no array and cannot be subscripted", spell(base)),
                        format!("this is `{found}`"),
                    )
                    .help("subscript an array, or a fixed array in a struct"),
                );
            };
            if let ExprKind::Int(at) = index.kind
                && !(0..i128::from(extent)).contains(&at)
            {
                return self.refuse(
                    Diagnostic::error(
                        codes::E0323,
                        subscript.span,
                        format!("{at} is outside of `{}`, which has {extent} elements", spell(base)),
                        "outside",
                    )
                    .help(format!("subscripts run from 0 to {}", extent - 1)),
                );
            }
            place.path.push(Projection::Element { index, check: BoundsCheck::Proved });
            place.ty = *inner;
        }
        Some(place)
    }

    fn subscripts(&mut self, subscripts: &'a [ast::Expr]) -> Option<Vec<Expr>> {
        let values: Vec<Option<Expr>> =
            subscripts.iter().map(|subscript| self.index_expr(subscript)).collect();
        values.into_iter().collect()
    }

    /// The value that a place holds.
    pub fn read_place(&mut self, place: Place, span: Span) -> Option<Expr> {
        if let Type::Array(..) = place.ty {
            let found = self.type_name(&place.ty);
            return self.refuse(
                Diagnostic::error(
                    codes::E0221,
                    span,
                    format!("a fixed array `{found}` cannot be used whole"),
                    "arrays are not values",
                )
                .help("subscript it; whole ones can be assigned, and given to fields of struct literals"),
            );
        }
        Some(self.read_whole(place, span))
    }

    /// As [`Elaborator::read_place`], where a fixed array is welcome.
    pub fn read_whole(&mut self, place: Place, span: Span) -> Expr {
        let ty = types::widened(&place.ty);
        let path = place.path;
        match place.root {
            Root::Element(access) => self.make(ExprKind::Load { access, path, otherwise: None }, ty, span),
            Root::Local(id) if path.is_empty() => local_value(id, &ty, span),
            Root::Local(id) => {
                let base = Box::new(local_value(id, &self.kernel.locals[id].ty.clone(), span));
                self.make(ExprKind::Project { base, path }, ty, span)
            }
            Root::Value(value) if path.is_empty() => value,
            Root::Value(value) => self.make(ExprKind::Project { base: Box::new(value), path }, ty, span),
        }
    }

    /// `u[z - 1, y] else 0.0`
    pub fn guarded(&mut self, access: &'a ast::Expr, otherwise: &'a ast::Expr, span: Span) -> Option<Expr> {
        let place = self.place(access);
        let Some(mut place) = place else {
            self.expr(otherwise, None);
            return None;
        };
        let Root::Element(element) = &mut place.root else {
            self.expr(otherwise, None);
            return self.refuse(
                Diagnostic::error(
                    codes::E0018,
                    access.span,
                    "only an array element can be guarded by `else`",
                    "this is always there",
                )
                .help("use `if … { … } else { … }` to choose between values"),
            );
        };
        element.checks.fill(BoundsCheck::Guarded);
        for step in &mut place.path {
            if let Projection::Element { check, .. } = step {
                *check = BoundsCheck::Guarded;
            }
        }
        let value = self.read_place(place, span);
        let want = value.as_ref().map(|value| value.ty.clone());
        let other = match &want {
            Some(want) => self.expr_of(otherwise, want, "the value outside"),
            None => self.expr(otherwise, None),
        };
        let (mut value, other) = (value?, other?);
        if let ExprKind::Load { otherwise, .. } = &mut value.kind {
            *otherwise = Some(Box::new(other));
        }
        Some(value)
    }
}

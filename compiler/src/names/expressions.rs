//! Expressions: the names that they use, and their types, as far as these say which struct a field is of.

use super::Shape;
use super::resolve::{Resolver, shape_of};
use crate::syntax::ast::{Expr, ExprKind, Ident};

impl<'a> Resolver<'a> {
    pub(super) fn expression(&mut self, e: &'a Expr) -> Option<Shape> {
        match &e.kind {
            ExprKind::Int { suffix, .. } | ExprKind::Float { suffix, .. } => {
                suffix.as_ref().map(|suffix| Shape { element: suffix.name.clone(), rank: 0 })
            }
            ExprKind::Bool(_) => Some(Shape { element: "bool".to_string(), rank: 0 }),
            ExprKind::Error => None,
            ExprKind::Name(name) => {
                let at = self.name(name)?;
                self.names.symbols[at].shape.clone()
            }
            ExprKind::Unary { operand, .. } => self.expression(operand),
            ExprKind::Cast { operand, ty } => {
                self.expression(operand);
                self.ty(ty);
                shape_of(ty)
            }
            ExprKind::Binary { left, right, .. } => {
                let left = self.expression(left);
                self.expression(right).or(left)
            }
            ExprKind::Call { callee, arguments } => {
                let shapes: Vec<Option<Shape>> =
                    arguments.iter().map(|argument| self.expression(argument)).collect();
                match self.globals.get(callee.name.as_str()).copied() {
                    Some(at) => {
                        self.uses(callee.span, at);
                        self.names.symbols[at].shape.clone()
                    }
                    // Of built-in functions: what they take they give, by and large.
                    None => shapes.into_iter().last().flatten(),
                }
            }
            ExprKind::ArrayLiteral(parts) => {
                let mut shape = None;
                for part in parts {
                    shape = self.expression(part).or(shape);
                }
                shape.map(|shape| Shape { rank: shape.rank + 1, ..shape })
            }
            ExprKind::Reduce { op, word, axes, body } => {
                let own = self.globals.get(word.name.as_str()).copied().filter(|_| op.is_none());
                own.into_iter().for_each(|at| self.uses(word.span, at));
                let depth = self.scope.len();
                self.axes(axes, e.span);
                let shape = self.expression(body);
                self.scope.truncate(depth);
                shape
            }
            ExprKind::Index { base, subscripts } => {
                let shape = self.expression(base);
                subscripts.iter().for_each(|subscript| drop(self.expression(subscript)));
                shape.map(|shape| Shape { rank: shape.rank.saturating_sub(subscripts.len()), ..shape })
            }
            ExprKind::Ranged { name, range } => {
                let at = self.name(name);
                self.range(range);
                at.and_then(|at| self.names.symbols[at].shape.clone())
            }
            ExprKind::Guarded { access, otherwise } => {
                let shape = self.expression(access);
                self.expression(otherwise);
                shape
            }
            ExprKind::Field { base, field } => {
                let shape = self.expression(base);
                self.field(shape, field)
            }
            ExprKind::StructLiteral { name, fields } => {
                if let Some(at) = self.globals.get(name.name.as_str()).copied() {
                    self.uses(name.span, at);
                }
                let shape = Shape { element: name.name.clone(), rank: 0 };
                for (field, value) in fields {
                    self.field(Some(shape.clone()), field);
                    self.expression(value);
                }
                Some(shape)
            }
            ExprKind::If { condition, then, otherwise } => {
                self.expression(condition);
                let shape = self.block(then);
                self.block(otherwise).or(shape)
            }
            ExprKind::Block(block) => self.block(block),
        }
    }

    /// A field of a value of this type.
    pub(super) fn field(&mut self, of: Option<Shape>, field: &Ident) -> Option<Shape> {
        let of = of?;
        let owner = self.globals.get(of.element.as_str()).copied()?;
        let at = self.fields.get(&(owner, field.name.as_str())).copied()?;
        self.uses(field.span, at);
        self.names.symbols[at].shape.clone()
    }
}

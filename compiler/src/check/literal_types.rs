//! The types of variables, and of local arrays, that a literal starts: `var low = 0` is `i32` until it meets something of
//! another type; then the body is elaborated again, with the literal of that type. Each round settles at least one variable for good, so
//! there are no more rounds than such variables.

use super::elaborator::Elaborator;
use super::items::Checker;
use super::scope::Literals;
use super::typed::{ArrayId, Block, Builtin, Expr, ExprKind, LocalId, Type};
use crate::data::Scalar;
use crate::source::Span;
use crate::syntax::ast::{self, Ident};

impl<'a> Checker<'a> {
    /// What `elaborate` gives once no variable's type changes any more.
    pub fn settled<T>(
        &mut self,
        mut elaborate: impl FnMut(&mut Self, &mut Literals) -> Option<T>,
    ) -> Option<T> {
        let mut literals = Literals::default();
        loop {
            let (reports, inlined) = (self.diagnostics.len(), self.inlined);
            let result = elaborate(self, &mut literals);
            if !literals.changed {
                return result;
            }
            self.diagnostics.truncate(reports);
            self.inlined = inlined;
            literals = Literals { settled: literals.settled, ..Literals::default() };
        }
    }
}

impl<'c, 'a> Elaborator<'c, 'a> {
    /// The value that a name without a type starts with.
    pub fn literal_or_value(&mut self, name: &Ident, value: &'a ast::Expr) -> Option<Expr> {
        let settled = self.literals.settled.get(&name.span).copied().map(Type::Scalar);
        self.expr(value, settled.as_ref())
    }

    /// Takes note of a name whose literal may still become another type's.
    pub fn remember_literal(&mut self, id: LocalId, name: &Ident, value: &ast::Expr) {
        if !self.literals.settled.contains_key(&name.span) && self.is_flexible(value) {
            self.literals.open.insert(id, name.span);
        }
    }

    /// The same, of an array.
    pub fn remember_literal_array(&mut self, id: ArrayId, name: &Ident, value: &ast::Expr) {
        if !self.literals.settled.contains_key(&name.span) && self.is_flexible(value) {
            self.literals.open_arrays.insert(id, name.span);
        }
    }

    /// Where a variable is declared whose type is still its uses' to say.
    pub fn open_local(&self, local: LocalId) -> Option<Span> {
        self.literals.open.get(&local).copied()
    }

    /// The same, of an array.
    pub fn open_array(&self, array: ArrayId) -> Option<Span> {
        self.literals.open_arrays.get(&array).copied()
    }

    /// The same, of what is read.
    pub fn open_name(&self, read: &ExprKind) -> Option<Span> {
        match read {
            ExprKind::Local(local) => self.open_local(*local),
            ExprKind::Load { access, path, otherwise: None } if path.is_empty() => {
                self.open_array(access.array)
            }
            _ => None,
        }
    }

    /// Whether `value` becomes of type `ty` when variables that a literal starts take it. Then they do, and nothing is to be
    /// reported: the body is elaborated once more.
    pub fn settles(&mut self, value: &Expr, ty: &Type) -> bool {
        let Some(to) = ty.as_scalar().filter(|to| takes(&value.ty, *to)) else { return false };
        let mut found = Vec::new();
        if !self.open_locals(value, &mut found) || found.is_empty() {
            return false;
        }
        self.settle(found, to)
    }

    fn settle(&mut self, names: Vec<Span>, to: Scalar) -> bool {
        self.close(&names);
        for name in names {
            self.literals.settled.entry(name).or_insert(to);
        }
        self.literals.changed = true;
        true
    }

    /// The first use has decided about names.
    fn close(&mut self, names: &[Span]) {
        self.literals.open.retain(|_, name| !names.contains(name));
        self.literals.open_arrays.retain(|_, name| !names.contains(name));
    }

    /// The value of an assignment to what a literal starts, declared at `name`: it takes the value's type.
    pub fn value_for(&mut self, name: Span, value: &'a ast::Expr, ty: &Type) -> Option<Expr> {
        let found = self.expr(value, Some(ty))?;
        if let Some(to) = found.ty.as_scalar()
            && found.ty != *ty
            && takes(ty, to)
        {
            self.settle(vec![name], to);
            return self.poisoned();
        }
        if let Some(same) = found.ty.as_scalar()
            && found.ty == *ty
            && !self.open_locals(&found, &mut Vec::new())
        {
            // It has that type already, and keeps it.
            self.close(&[name]);
            self.literals.settled.entry(name).or_insert(same);
        }
        self.of_type(found, value, ty, "the value")
    }

    /// Whether the type of a value is decided by variables that are open and by literals alone; collects the variables.
    fn open_locals(&self, value: &Expr, found: &mut Vec<Span>) -> bool {
        let mut all = |values: &[&Expr]| values.iter().all(|value| self.open_locals(value, found));
        match &value.kind {
            ExprKind::Int(_) | ExprKind::Float(_) => true,
            ExprKind::Local(_) | ExprKind::Load { .. } => match self.open_name(&value.kind) {
                Some(name) => {
                    found.push(name);
                    true
                }
                None => false,
            },
            ExprKind::Negate(operand) => all(&[operand]),
            ExprKind::Binary { left, right, .. } => all(&[left, right]),
            ExprKind::Call { builtin: Builtin::Min | Builtin::Max | Builtin::Clamp, arguments } => {
                arguments.iter().all(|argument| self.open_locals(argument, found))
            }
            ExprKind::If { then, otherwise, .. } => match (&then.value, &otherwise.value) {
                (Some(then), Some(otherwise)) => all(&[then, otherwise]),
                _ => false,
            },
            ExprKind::Block(Block { value: Some(value), .. }) => all(&[value]),
            _ => false,
        }
    }
}

/// Whether a literal of type `from` may as well be of type `to`: an integer any number, a float any float.
fn takes(from: &Type, to: Scalar) -> bool {
    match from.as_scalar() {
        Some(from) if from.is_integer() => to != Scalar::Bool,
        Some(from) if from.is_float() => to.is_float(),
        _ => false,
    }
}

//! Running statements.

use super::error::EvalError;
use super::evaluator::{Evaluator, Run};
use super::value::{Number, Plain, Value};
use crate::check::typed::*;
use crate::source::Span;

impl<'a> Evaluator<'a> {
    pub(super) fn statements(&mut self, statements: &'a [Stmt]) -> Run<()> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    pub(super) fn statement(&mut self, statement: &'a Stmt) -> Run<()> {
        self.step()?;
        match &statement.kind {
            StmtKind::Let { local, value } => {
                let value = self.given(*local, value)?;
                self.locals[local.as_u32() as usize] = value;
                Ok(())
            }
            StmtKind::Assign { local, path, value } => self.assign(*local, path, value, statement.span),
            StmtKind::DefineArray { array, axes, value } => {
                // What an earlier iteration left open is over: the definition covers the array.
                self.memory[array.as_u32() as usize].clear_taint();
                self.each(axes, &mut |this| {
                    let value = this.value(value)?;
                    this.define(*array, axes, &value, statement.span)
                })?;
                Ok(())
            }
            StmtKind::Store { axes, access, path, combine, value } => {
                let uncertain =
                    self.each(axes, &mut |this| this.store_once(access, path, *combine, value))?;
                if uncertain {
                    self.taint_assigned(std::slice::from_ref(statement));
                }
                Ok(())
            }
            StmtKind::Forall { axes, body } => {
                let uncertain = self.each(axes, &mut |this| this.statements(&body.statements))?;
                if uncertain {
                    self.taint_assigned(&body.statements);
                }
                Ok(())
            }
            StmtKind::For { index, low, high, ends, step, goes_on, body } => {
                self.sequential(*index, [low, high, step], *ends, *goes_on, body, statement.span)
            }
            StmtKind::While { condition, body } => self.repeat(condition, body),
            StmtKind::If { condition, then, otherwise } => {
                let (holds, uncertain) = self.boolean(condition)?;
                let (taken, other) = if holds { (then, otherwise) } else { (otherwise, then) };
                self.uncertain_depth += u32::from(uncertain);
                self.statements(&taken.statements)?;
                self.uncertain_depth -= u32::from(uncertain);
                if uncertain {
                    self.taint_assigned(&other.statements);
                }
                Ok(())
            }
            StmtKind::Assert { condition, text, site } => self.assertion(condition, text, *site),
            // Of no meaning for results; the device alone tells values.
            StmtKind::Print { .. } => Ok(()),
        }
    }

    /// Stops where an assertion fails for certain: one that rounding decides may hold on the device.
    fn assertion(&mut self, condition: &'a Expr, text: &str, site: Option<SiteId>) -> Run<()> {
        let (holds, uncertain) = self.boolean(condition)?;
        if holds || uncertain || self.uncertain_depth > 0 {
            return Ok(());
        }
        let kernel = self.kernel;
        let known = site.and_then(|site| kernel.sites.get(site)?.assertion.as_ref());
        let value =
            |index: &IndexId| (kernel.indices[*index].name.clone(), self.indices[index.as_u32() as usize]);
        let indices = known.into_iter().flat_map(|known| &known.indices).map(value).collect();
        Err(Box::new(EvalError::AssertionFailed { text: text.to_string(), indices, span: condition.span }))
    }

    /// One iteration of a store's own axes.
    pub(super) fn store_once(
        &mut self,
        access: &'a Access,
        path: &'a [Projection],
        combine: Option<Combine>,
        value: &'a Expr,
    ) -> Run<()> {
        let value = self.value(value)?;
        self.store(access, path, combine.map(|combine| combine.op), &value)
    }

    /// Writes the element of a local array or a temporary at its axes' current values.
    fn define(&mut self, array: ArrayId, axes: &'a [Axis], value: &Value, span: Span) -> Run<()> {
        let mut element = 0u64;
        for (axis, declared) in axes.iter().enumerate() {
            let index = self.indices[declared.index.as_u32() as usize];
            let storage = &self.memory[array.as_u32() as usize];
            let Some(&extent) = storage.extents.get(axis) else {
                return self.malformed("a definition has more axes than its array", span);
            };
            if index < 0 || index as u64 >= extent {
                return Err(Box::new(EvalError::OutOfBounds {
                    array: self.kernel.arrays[array].name.clone(),
                    axis,
                    span,
                    index: index.into(),
                    extent,
                    proved: true,
                }));
            }
            element = element.wrapping_mul(extent).wrapping_add(index as u64);
        }
        self.write_element(array, element, value, span)
    }

    fn assign(&mut self, local: LocalId, path: &'a [Projection], value: &'a Expr, span: Span) -> Run<()> {
        let steps = self.path_steps(path)?;
        let mut value = if path.is_empty() { self.given(local, value)? } else { self.value(value)? };
        let kernel = self.kernel;
        let mut ty = &kernel.locals[local].ty;
        for projection in path {
            ty = match (ty, projection) {
                (Type::Struct(id), Projection::Field(field)) => {
                    match self.program.structs[*id].fields.get(*field) {
                        Some(field) => &field.ty,
                        None => return self.malformed("a struct has no such field", span),
                    }
                }
                (Type::Array(element, _), _) => element,
                _ => return self.malformed("a scalar has no parts", span),
            };
        }
        value = self.stored(value, ty, span)?;
        if self.uncertain_depth > 0 {
            value.taint();
        }
        let mut at = &mut self.locals[local.as_u32() as usize];
        for (position, (step, uncertain)) in steps.iter().enumerate() {
            if *uncertain {
                at.taint();
                value.taint();
            }
            let Value::Parts(parts) = at else { return self.malformed("a scalar has no parts", span) };
            let extent = parts.len() as u64;
            match usize::try_from(*step).ok().filter(|step| *step < parts.len()) {
                Some(step) => at = &mut parts[step],
                None => return self.part_outside(&path[position], *step, extent, span),
            }
        }
        *at = value;
        Ok(())
    }

    fn sequential(
        &mut self,
        index: IndexId,
        bounds: [&'a Expr; 3],
        ends: Ends,
        goes_on: Option<LocalId>,
        body: &'a Block,
        span: Span,
    ) -> Run<()> {
        let [(low, a), (high, b), (step, c)] =
            [self.integer(bounds[0])?, self.integer(bounds[1])?, self.integer(bounds[2])?];
        if step < 1 {
            return Err(Box::new(EvalError::BadStep { step, span }));
        }
        let mut uncertain = a || b || c;
        self.uncertain_depth += u32::from(uncertain);
        let mut next = Some(low).zip(ends.last(low, high));
        while let Some((at, last)) = next {
            self.step()?;
            self.indices[index.as_u32() as usize] = at;
            self.statements(&body.statements)?;
            next = at.checked_add(step).filter(|next| *next <= last).map(|next| (next, last));
            if let Some(local) = goes_on {
                // From the first uncertain `break` on, everything that the loop assigns is uncertain.
                let goes_on = self.locals[local.as_u32() as usize].number();
                if !uncertain && goes_on.is_some_and(Number::is_uncertain) {
                    uncertain = true;
                    self.uncertain_depth += 1;
                }
                next = next.filter(|_| goes_on.is_some_and(|number| number.value == Plain::Bool(true)));
            }
        }
        self.uncertain_depth -= u32::from(uncertain);
        if uncertain {
            self.taint_assigned(&body.statements);
        }
        Ok(())
    }

    /// A `while`: from the first uncertain condition on, everything that the loop assigns is uncertain.
    fn repeat(&mut self, condition: &'a Expr, body: &'a Block) -> Run<()> {
        let mut doubtful = false;
        loop {
            let (holds, uncertain) = self.boolean(condition)?;
            if uncertain && !doubtful {
                doubtful = true;
                self.uncertain_depth += 1;
            }
            if !holds {
                break;
            }
            self.statements(&body.statements)?;
        }
        if doubtful {
            self.uncertain_depth -= 1;
            self.taint_assigned(&body.statements);
        }
        Ok(())
    }
}

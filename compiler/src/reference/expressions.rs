//! Evaluating expressions.

use super::arithmetic::{binary, compare, negate, not};
use super::evaluator::{Evaluator, Run};
use super::value::{Number, Plain, Value};
use super::{builtins, convert::convert};
use crate::check::typed::*;
use crate::check::walk::{Node, walk_block};
use crate::data::Scalar;
use crate::source::Span;

impl<'a> Evaluator<'a> {
    /// A scalar expression.
    pub(super) fn number(&mut self, expr: &'a Expr) -> Run<Number> {
        self.step()?;
        let result = match &expr.kind {
            ExprKind::Bool(value) => Some(Number::exact(Plain::Bool(*value))),
            ExprKind::Int(value) => {
                expr.ty.as_scalar().and_then(|scalar| Plain::wrapped(*value, scalar)).map(Number::exact)
            }
            ExprKind::Float(value) => expr
                .ty
                .as_scalar()
                .and_then(|scalar| Plain::float(*value, self.evaluated(scalar)))
                .map(Number::exact),
            ExprKind::Local(local) => self.locals[local.as_u32() as usize].number(),
            ExprKind::Index(index) => Some(Number::exact(Plain::I64(self.indices[index.as_u32() as usize]))),
            ExprKind::Dim(dim) => Some(Number::exact(Plain::I64(self.dims[dim.as_u32() as usize]))),
            ExprKind::Param(param) => self.params[param.as_u32() as usize].number(),
            ExprKind::Negate(operand) => negate(self.number(operand)?),
            ExprKind::Not(operand) => not(self.number(operand)?),
            ExprKind::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), left, right }
                if self.model.rounding.is_some() && expr.ty.as_scalar().is_some_and(Scalar::is_float) =>
            {
                self.fused_sum(*op, left, right)?
            }
            ExprKind::Binary { op, left, right } => {
                let (left, right) = (self.number(left)?, self.number(right)?);
                binary(*op, left, right, &self.model)
            }
            ExprKind::Compare { op, left, right } => {
                let (left, right) = (self.number(left)?, self.number(right)?);
                let result = compare(*op, left, right);
                self.note_undecided(result, &[left, right]);
                result
            }
            ExprKind::Logical { and, left, right } => Some(self.logical(*and, left, right)?),
            ExprKind::Cast { operand, to } => {
                let operand = self.number(operand)?;
                let result = convert(operand, self.evaluated(*to));
                if !to.is_float() {
                    self.note_undecided(result, &[operand]);
                }
                result
            }
            ExprKind::Call { builtin: Builtin::Select, .. }
            | ExprKind::If { .. }
            | ExprKind::Block(_)
            | ExprKind::Project { .. } => self.value(expr)?.number(),
            ExprKind::Load { .. } => self.load_number(expr)?,
            ExprKind::Reduce { op, axes, body } => self.reduce(*op, axes, body)?.number(),
            ExprKind::Call { builtin, arguments } => {
                let mut numbers = [Number::exact(Plain::Bool(false)); 3];
                if arguments.len() > numbers.len() {
                    return self.malformed("a built-in has too many arguments", expr.span);
                }
                for (number, argument) in numbers.iter_mut().zip(arguments) {
                    *number = self.number(argument)?;
                }
                builtins::call(*builtin, &numbers[..arguments.len()], &self.model)
            }
            ExprKind::StructLiteral { .. } | ExprKind::ArrayLiteral(_) => None,
        };
        match result {
            Some(number) => Ok(number),
            None => self.malformed("an operation does not take operands of these types", expr.span),
        }
    }

    /// Takes note of an uncertain result of operands that are bounded.
    fn note_undecided(&mut self, result: Option<Number>, operands: &[Number]) {
        let bounded = operands.iter().all(|operand| !operand.is_uncertain());
        self.undecided |= bounded && result.is_some_and(Number::is_uncertain);
    }

    /// Any expression.
    pub(super) fn value(&mut self, expr: &'a Expr) -> Run<Value> {
        match &expr.kind {
            ExprKind::Local(local) => {
                self.step()?;
                Ok(self.locals[local.as_u32() as usize].clone())
            }
            ExprKind::Param(param) => {
                self.step()?;
                Ok(self.params[param.as_u32() as usize].clone())
            }
            ExprKind::Load { .. } => {
                self.step()?;
                self.load(expr)
            }
            ExprKind::Reduce { op, axes, body } => {
                self.step()?;
                self.reduce(*op, axes, body)
            }
            ExprKind::Block(block) => self.block_value(block, expr.span),
            ExprKind::If { condition, then, otherwise } => {
                let condition = self.boolean(condition)?;
                let (taken, other) = if condition.0 { (then, otherwise) } else { (otherwise, then) };
                if condition.1 {
                    self.open_choice(taken, other, expr.span)
                } else {
                    self.block_value(taken, expr.span)
                }
            }
            ExprKind::Call { builtin: Builtin::Select, arguments } => {
                let [condition, first, second] = arguments.as_slice() else {
                    return self.malformed("`select` takes three arguments", expr.span);
                };
                let (holds, uncertain) = self.boolean(condition)?;
                let (first, second) = (self.value(first)?, self.value(second)?);
                let (taken, other) = if holds { (first, second) } else { (second, first) };
                Ok(if uncertain { taken.or_else(Some(&other)) } else { taken })
            }
            ExprKind::StructLiteral { fields } => {
                let Type::Struct(id) = expr.ty else {
                    return self.malformed("a struct literal has no struct type", expr.span);
                };
                let program = self.program;
                let mut parts = Vec::with_capacity(fields.len());
                for (field, value) in program.structs[id].fields.iter().zip(fields) {
                    let value = self.value(value)?;
                    parts.push(self.stored(value, &field.ty, expr.span)?);
                }
                Ok(Value::Parts(parts.into()))
            }
            ExprKind::ArrayLiteral(elements) => {
                let parts: Run<Vec<Value>> = elements.iter().map(|element| self.value(element)).collect();
                Ok(Value::Parts(parts?.into()))
            }
            ExprKind::Project { base, path } => self.project(base, path, expr.span),
            _ => self.number(expr).map(Value::Number),
        }
    }

    /// The value of a block in value position, after its statements.
    pub(super) fn block_value(&mut self, block: &'a Block, span: Span) -> Run<Value> {
        self.statements(&block.statements)?;
        match &block.value {
            Some(value) => self.value(value),
            None => self.malformed("a block in value position has no value", span),
        }
    }

    /// A choice that the bounds leave open: the reference's own value, with a bound that admits the other.
    fn open_choice(&mut self, taken: &'a Block, other: &'a Block, span: Span) -> Run<Value> {
        self.uncertain_depth += 1;
        let value = self.block_value(taken, span);
        self.uncertain_depth -= 1;
        let value = value?;
        if !is_pure(other) {
            self.taint_assigned(&other.statements);
            return Ok(value.or_else(None));
        }
        // An error in the branch that the reference does not take is no error: its value is just unknown.
        let alternative = self.block_value(other, span).ok();
        Ok(value.or_else(alternative.as_ref()))
    }

    /// A bool, and whether it is uncertain.
    pub(super) fn boolean(&mut self, expr: &'a Expr) -> Run<(bool, bool)> {
        match self.number(expr)? {
            Number { value: Plain::Bool(value), error, .. } => Ok((value, error != 0.0)),
            _ => self.malformed("a condition is not a bool", expr.span),
        }
    }

    fn logical(&mut self, and: bool, left: &'a Expr, right: &'a Expr) -> Run<Number> {
        let (first, first_uncertain) = self.boolean(left)?;
        if first != and {
            // Decided by the first operand, unless that one is uncertain and the second does not decide too.
            if !first_uncertain {
                return Ok(Number::exact(Plain::Bool(first)));
            }
            let decided = matches!(self.boolean(right), Ok((second, false)) if second != and);
            return Ok(Number::exact(Plain::Bool(first)).uncertain_if(!decided));
        }
        let (second, second_uncertain) = self.boolean(right)?;
        let decided = second != and && !second_uncertain;
        let uncertain = !decided && (first_uncertain || second_uncertain);
        Ok(Number::exact(Plain::Bool(second)).uncertain_if(uncertain))
    }

    /// An i64 expression (a subscript, a bound), and whether it is uncertain. The common forms are short cuts.
    pub(super) fn integer(&mut self, expr: &'a Expr) -> Run<(i64, bool)> {
        match &expr.kind {
            ExprKind::Index(index) => {
                self.step()?;
                Ok((self.indices[index.as_u32() as usize], false))
            }
            ExprKind::Dim(dim) => {
                self.step()?;
                Ok((self.dims[dim.as_u32() as usize], false))
            }
            ExprKind::Int(value) if expr.ty == Type::I64 => {
                self.step()?;
                Ok((*value as i64, false))
            }
            ExprKind::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), left, right }
                if expr.ty == Type::I64 =>
            {
                self.step()?;
                let (a, a_uncertain) = self.integer(left)?;
                let (b, b_uncertain) = self.integer(right)?;
                let value = match op {
                    BinaryOp::Add => a.wrapping_add(b),
                    BinaryOp::Sub => a.wrapping_sub(b),
                    _ => a.wrapping_mul(b),
                };
                Ok((value, a_uncertain || b_uncertain))
            }
            _ => {
                let number = self.number(expr)?;
                match number.value.as_integer() {
                    Some(value) => Ok((value as i64, number.error != 0.0)),
                    None => self.malformed("a subscript or a bound is not an integer", expr.span),
                }
            }
        }
    }

    /// Part of a struct value; of a local without copying the rest.
    fn project(&mut self, base: &'a Expr, path: &'a [Projection], span: Span) -> Run<Value> {
        self.step()?;
        let steps = self.path_steps(path)?;
        let uncertain = steps.iter().any(|(_, uncertain)| *uncertain);
        let owned;
        let mut at = match &base.kind {
            ExprKind::Local(local) => &self.locals[local.as_u32() as usize],
            ExprKind::Param(param) => &self.params[param.as_u32() as usize],
            _ => {
                owned = self.value(base)?;
                &owned
            }
        };
        for ((step, _), projection) in steps.iter().zip(path) {
            let Value::Parts(parts) = at else {
                return self.malformed("a scalar has no parts", span);
            };
            let Some(part) = usize::try_from(*step).ok().and_then(|step| parts.get(step)) else {
                let extent = parts.len() as u64;
                return self.part_outside(projection, *step, extent, span);
            };
            at = part;
        }
        let mut value = at.clone();
        if uncertain {
            value.taint();
        }
        Ok(value)
    }

    /// A value as memory of type `ty` would keep it: narrow scalars rounded.
    pub(super) fn stored(&self, value: Value, ty: &Type, span: Span) -> Run<Value> {
        match (value, ty) {
            (value, Type::Scalar(scalar)) if !scalar.is_narrow() => Ok(value),
            (Value::Number(number), Type::Scalar(scalar)) => match convert(number, *scalar) {
                Some(number) => Ok(Value::Number(number)),
                None => self.malformed("a field does not take a value of this type", span),
            },
            (Value::Parts(parts), Type::Array(element, _)) => {
                let parts: Run<Vec<Value>> =
                    parts.into_vec().into_iter().map(|part| self.stored(part, element, span)).collect();
                Ok(Value::Parts(parts?.into()))
            }
            // A struct value is already rounded.
            (value, _) => Ok(value),
        }
    }

    /// The value of a type in which every scalar is `leaf` of its type.
    pub(super) fn filled(&self, ty: &Type, leaf: &mut dyn FnMut(Scalar) -> Number) -> Value {
        match ty {
            Type::Scalar(scalar) => Value::Number(leaf(*scalar)),
            Type::Struct(id) => {
                let fields = &self.program.structs[*id].fields;
                Value::Parts(fields.iter().map(|field| self.filled(&field.ty, leaf)).collect())
            }
            Type::Array(element, count) => {
                Value::Parts((0..*count).map(|_| self.filled(element, leaf)).collect())
            }
        }
    }
}

/// Whether evaluating the block changes nothing outside it.
fn is_pure(block: &Block) -> bool {
    let mut pure = true;
    walk_block(block, &mut |node| {
        if let Node::Stmt(statement) = node {
            pure &= matches!(statement.kind, StmtKind::Let { .. });
        }
    });
    pure
}

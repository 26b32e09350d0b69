//! Expressions: the values of their scalar leaves.

use super::assigned::is_pure_here;
use super::{Lowerer, structs};
use crate::check::typed::{BinaryOp, Block, BoundsCheck, CompareOp, Expr, ExprKind, Projection, Type};
use crate::data::Scalar;
use crate::ir::entities::Value;
use crate::ir::op::Opcode;
use crate::mutants::mutant;

impl<'a> Lowerer<'a> {
    /// The one value of a scalar expression.
    pub fn scalar(&mut self, expr: &'a Expr) -> Value {
        self.expression(expr)[0]
    }

    pub fn expression(&mut self, expr: &'a Expr) -> Vec<Value> {
        match &expr.kind {
            ExprKind::Bool(value) => vec![self.builder.constant_bool(*value)],
            ExprKind::Int(value) => {
                let scalar = expr.ty.as_scalar().unwrap_or(Scalar::I64).widened();
                vec![self.builder.constant_int(scalar, *value)]
            }
            ExprKind::Float(value) => vec![match expr.ty {
                Type::F64 => self.builder.constant_f64(*value),
                _ => self.builder.constant_f32(*value as f32),
            }],
            ExprKind::Local(local) => self.locals[*local].clone().unwrap_or_default(),
            ExprKind::Index(index) => self.indices[*index].into_iter().collect(),
            ExprKind::Dim(dim) => self.dims[*dim].into_iter().map(|s| self.builder.symbol(s)).collect(),
            ExprKind::Param(param) => {
                let symbols = self.params[*param].clone();
                symbols.into_iter().map(|symbol| self.builder.symbol(symbol)).collect()
            }
            ExprKind::Negate(operand) => {
                let value = self.scalar(operand);
                vec![self.builder.unary(Opcode::Neg, value)]
            }
            ExprKind::Not(operand) => {
                let value = self.scalar(operand);
                vec![self.builder.unary(Opcode::Not, value)]
            }
            ExprKind::Binary { op, left, right } => {
                let (left, right) = (self.scalar(left), self.scalar(right));
                let (left, right) =
                    mutant!("lower: operands in the other order", (left, right), (right, left));
                vec![self.builder.binary(binary(*op), left, right)]
            }
            ExprKind::Compare { op, left, right } => {
                let (left, right) = (self.scalar(left), self.scalar(right));
                vec![self.builder.compare(compare(*op), left, right)]
            }
            ExprKind::Logical { and, left, right } => vec![self.logical(*and, left, right)],
            ExprKind::Cast { operand, to } => {
                let value = self.scalar(operand);
                let unchanged = operand.ty == Type::Scalar(*to);
                vec![if unchanged { value } else { self.builder.cast(value, *to) }]
            }
            ExprKind::Call { builtin, arguments } => self.call(*builtin, arguments),
            ExprKind::If { condition, then, otherwise } => {
                let test = self.scalar(condition);
                let carried = self.assigned_in(&[then, otherwise], &[]);
                self.branch_values(
                    test,
                    &mut |lowerer| lowerer.block_value(then),
                    &mut |lowerer| lowerer.block_value(otherwise),
                    &carried,
                )
            }
            ExprKind::Block(block) => self.block_value(block),
            ExprKind::Load { access, path, otherwise } => {
                let outer = self.builder.set_span(expr.span);
                let values = self.load(access, path, otherwise.as_deref());
                self.builder.set_span(outer);
                values
            }
            ExprKind::Project { base, path } => {
                let values = self.expression(base);
                self.project(&base.ty, values, path)
            }
            ExprKind::StructLiteral { fields } => {
                let values: Vec<Value> = fields.iter().flat_map(|field| self.expression(field)).collect();
                self.rounded(&expr.ty, values)
            }
            ExprKind::ArrayLiteral(elements) => {
                elements.iter().flat_map(|element| self.expression(element)).collect()
            }
            ExprKind::Reduce { op, axes, body } => {
                let outer = self.builder.set_span(expr.span);
                let values = self.reduce(*op, axes, body);
                self.builder.set_span(outer);
                values
            }
        }
    }

    pub fn block_value(&mut self, block: &'a Block) -> Vec<Value> {
        self.statements(&block.statements);
        block.value.as_deref().map(|value| self.expression(value)).unwrap_or_default()
    }

    /// Lazy, unless the right side may as well be computed.
    fn logical(&mut self, and: bool, left: &'a Expr, right: &'a Expr) -> Value {
        let first = self.scalar(left);
        if is_pure_here(self.typed, right) {
            let second = self.scalar(right);
            return self.builder.binary(if and { Opcode::And } else { Opcode::Or }, first, second);
        }
        let carried = self.assigned_in(&[], &[right]);
        let mut evaluate = |lowerer: &mut Self| vec![lowerer.scalar(right)];
        let mut known = |lowerer: &mut Self| vec![lowerer.builder.constant_bool(!and)];
        let values = if and {
            self.branch_values(first, &mut evaluate, &mut known, &carried)
        } else {
            self.branch_values(first, &mut known, &mut evaluate, &carried)
        };
        values[0]
    }

    /// Narrow leaves of a struct value are held rounded.
    pub fn rounded(&mut self, ty: &Type, values: Vec<Value>) -> Vec<Value> {
        let storage = self.storage(ty);
        values
            .into_iter()
            .zip(storage)
            .map(|(value, scalar)| if scalar.is_narrow() { self.builder.cast(value, scalar) } else { value })
            .collect()
    }

    /// Part of a value. An element of a fixed array at a computed index is selected among all.
    fn project(&mut self, ty: &Type, values: Vec<Value>, path: &'a [Projection]) -> Vec<Value> {
        let Some((step, rest)) = path.split_first() else { return values };
        match step {
            Projection::Field(field) => {
                let (_, before, field_ty) = structs::before_field(self.program, ty, *field);
                let count = self.program.scalar_count(&field_ty) as usize;
                let part = values[before..before + count].to_vec();
                self.project(&field_ty, part, rest)
            }
            Projection::Element { index, check } => {
                let Type::Array(element, extent) = ty else { return values };
                let count = self.program.scalar_count(element) as usize;
                let index = self.element_index(index, *check, *extent);
                let mut picked = values[..count].to_vec();
                for number in 1..*extent as usize {
                    let here = self.builder.constant_index(number as i64);
                    let same = self.builder.compare(Opcode::Eq, index, here);
                    for (slot, value) in picked.iter_mut().zip(&values[number * count..]) {
                        *slot = self.builder.select(same, *value, *slot);
                    }
                }
                self.project(element, picked, rest)
            }
        }
    }

    fn element_index(&mut self, index: &'a Expr, check: BoundsCheck, extent: u64) -> Value {
        let index = self.scalar(index);
        if self.is_tested(check) {
            let extent = self.builder.constant_index(extent as i64);
            self.bounds_check(check, index, extent, &mut None);
        }
        index
    }

    /// A value with the part that `path` names replaced.
    pub fn replace_part(
        &mut self,
        ty: &Type,
        old: Vec<Value>,
        path: &'a [Projection],
        new: Vec<Value>,
    ) -> Vec<Value> {
        let Some((step, rest)) = path.split_first() else {
            return match ty {
                Type::Scalar(scalar) if scalar.is_narrow() => self.rounded(ty, new),
                _ => new,
            };
        };
        let mut result = old.clone();
        match step {
            Projection::Field(field) => {
                let (_, before, field_ty) = structs::before_field(self.program, ty, *field);
                let count = self.program.scalar_count(&field_ty) as usize;
                let part = self.replace_part(&field_ty, old[before..before + count].to_vec(), rest, new);
                result.splice(before..before + count, part);
            }
            Projection::Element { index, check } => {
                let Type::Array(element, extent) = ty else { return new };
                let count = self.program.scalar_count(element) as usize;
                let index = self.element_index(index, *check, *extent);
                for number in 0..*extent as usize {
                    let at = number * count;
                    let part = self.replace_part(element, old[at..at + count].to_vec(), rest, new.clone());
                    let here = self.builder.constant_index(number as i64);
                    let same = self.builder.compare(Opcode::Eq, index, here);
                    for (offset, value) in part.into_iter().enumerate() {
                        result[at + offset] = self.builder.select(same, value, old[at + offset]);
                    }
                }
            }
        }
        result
    }
}

fn binary(op: BinaryOp) -> Opcode {
    match op {
        BinaryOp::Add => Opcode::Add,
        BinaryOp::Sub => Opcode::Sub,
        BinaryOp::Mul => Opcode::Mul,
        BinaryOp::Div => Opcode::Div,
        BinaryOp::Rem => Opcode::Rem,
        BinaryOp::And => Opcode::And,
        BinaryOp::Or => Opcode::Or,
        BinaryOp::Xor => Opcode::Xor,
        BinaryOp::Shl => Opcode::Shl,
        BinaryOp::Shr => Opcode::Shr,
    }
}

fn compare(op: CompareOp) -> Opcode {
    match op {
        CompareOp::Equal => Opcode::Eq,
        CompareOp::NotEqual => Opcode::Ne,
        CompareOp::Less => Opcode::Lt,
        CompareOp::LessEqual => Opcode::Le,
        CompareOp::Greater => Opcode::Gt,
        CompareOp::GreaterEqual => Opcode::Ge,
    }
}

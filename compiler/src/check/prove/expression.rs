//! The walk over expressions: marks the accesses in them and works out what is known of their values.

use super::bounds::Outside;
use super::races::{Access as Touch, Touching};
use super::value::{Truth, Value};
use super::vocabulary::{DIMENSION_LIMIT, Function, Interval, Key, Operation, Poly, Source};
use super::walker::{LevelKind, Walker};
use super::{scan, types};
use crate::check::typed::*;
use crate::data::Scalar;
use crate::syntax::ast::ReduceOp;

impl Walker<'_> {
    /// The value of an integer expression.
    pub fn integer(&mut self, expression: &mut Expr) -> Poly {
        match self.expression(expression) {
            Value::Int(poly) => poly,
            _ => self.unknown(types::integer_range(&expression.ty)),
        }
    }

    pub fn condition(&mut self, expression: &mut Expr) -> Truth {
        self.expression(expression).truth()
    }

    pub fn expression(&mut self, expression: &mut Expr) -> Value {
        let scalar = expression.ty.as_scalar();
        let integer = scalar.filter(|scalar| scalar.is_integer());
        match &mut expression.kind {
            ExprKind::Bool(value) => Value::Bool(Truth::constant(*value)),
            ExprKind::Int(value) => Value::Int(Poly::constant(*value)),
            ExprKind::Float(_) => Value::Unknown,
            ExprKind::Local(local) => self.local(*local),
            ExprKind::Index(index) => match &self.indices[*index] {
                Some(poly) => Value::Int(poly.clone()),
                None => Value::Int(self.unknown(Interval::of(Scalar::I64))),
            },
            ExprKind::Dim(dim) => Value::Int(self.dimension(*dim)),
            ExprKind::Param(param) => {
                let (param, ty) = (*param, self.kernel.params[*param].ty.clone());
                self.parameter(param, &ty, &mut Vec::new())
            }
            ExprKind::Negate(operand) => match (self.expression(operand), integer) {
                (Value::Int(poly), Some(scalar)) => Value::Int(self.negate(scalar, &poly)),
                _ => Value::Unknown,
            },
            ExprKind::Not(operand) => match (self.expression(operand), integer) {
                (Value::Int(poly), Some(scalar)) => Value::Int(self.complement(scalar, &poly)),
                (Value::Bool(truth), _) => Value::Bool(truth.negated()),
                _ => Value::Unknown,
            },
            ExprKind::Binary { op, left, right } => {
                match (self.expression(left), self.expression(right), integer) {
                    (Value::Int(left), Value::Int(right), Some(scalar)) => {
                        Value::Int(self.binary(*op, scalar, &left, &right))
                    }
                    (Value::Bool(left), Value::Bool(right), _) => match op {
                        BinaryOp::And => Value::Bool(left.and(right)),
                        BinaryOp::Or => Value::Bool(left.or(right)),
                        _ => Value::Bool(Truth::default()),
                    },
                    _ => Value::Unknown,
                }
            }
            ExprKind::Compare { op, left, right } => match (self.expression(left), self.expression(right)) {
                (Value::Int(left), Value::Int(right)) => Value::Bool(self.compare(*op, &left, &right)),
                _ => Value::Bool(Truth::default()),
            },
            ExprKind::Logical { and, left, right } => {
                let first = self.condition(left);
                let known = if *and { first.yes.clone() } else { first.no.clone() };
                let second = self.scoped(|walker| {
                    walker.facts.assume_all(&known);
                    walker.condition(right)
                });
                Value::Bool(if *and { first.and(second) } else { first.or(second) })
            }
            ExprKind::Cast { operand, to } => {
                let value = self.expression(operand);
                match (value, to.is_integer()) {
                    (Value::Int(poly), true) => Value::Int(self.convert(&poly, *to)),
                    (Value::Bool(truth), true) => {
                        Value::Int(self.choose(&truth, &Poly::constant(1), &Poly::constant(0)))
                    }
                    (_, true) => Value::Int(self.unknown(Interval::of(*to))),
                    _ => Value::Unknown,
                }
            }
            ExprKind::Call { builtin, arguments } => {
                let builtin = *builtin;
                let values: Vec<Value> =
                    arguments.iter_mut().map(|argument| self.expression(argument)).collect();
                match (scalar, integer) {
                    (_, Some(scalar)) => Value::Int(self.integer_call(builtin, scalar, &values)),
                    (Some(Scalar::Bool), _) => Value::Bool(Truth::default()),
                    _ => Value::Unknown,
                }
            }
            ExprKind::If { condition, then, otherwise } => self.conditional(condition, then, otherwise),
            ExprKind::Block(block) => self.value_block(block),
            ExprKind::Load { .. } => self.load(expression),
            ExprKind::Project { base, path } => {
                let name = types::describe(self.kernel, base);
                let value = self.expression(base);
                let ty = base.ty.clone();
                let steps = self.path(&ty, path, &name, Outside::Checked);
                self.project(value, &expression.ty, steps)
            }
            ExprKind::StructLiteral { fields } => {
                let values = fields.iter_mut().map(|field| self.expression(field)).collect::<Vec<_>>();
                Value::Struct(self.rounded(&expression.ty, values))
            }
            ExprKind::ArrayLiteral(elements) => {
                elements.iter_mut().for_each(|element| drop(self.expression(element)));
                Value::Unknown
            }
            ExprKind::Reduce { op, axes, body } => {
                let op = *op;
                let ty = expression.ty.clone();
                match op {
                    Reducer::BuiltIn(op) => self.reduction(op, axes, body, integer),
                    Reducer::Own(_) => {
                        self.scoped(|walker| {
                            walker.enter_axes(axes, LevelKind::Reduction);
                            walker.expression(body);
                        });
                        self.unknown_value(&ty)
                    }
                }
            }
        }
    }

    /// A comparison, with what is known here: `a != b` says `a < b` where `a <= b` is known.
    fn compare(&mut self, op: CompareOp, left: &Poly, right: &Poly) -> Truth {
        let mut truth = Truth::compare(op, left, right);
        if matches!(op, CompareOp::Equal | CompareOp::NotEqual) {
            let strict = if self.facts.proves_at_most(left, right) {
                right.subtract(left)
            } else if self.facts.proves_at_most(right, left) {
                left.subtract(right)
            } else {
                None
            };
            if let Some(strict) = strict.and_then(|difference| difference.add_constant(-1)) {
                if op == CompareOp::Equal {
                    (truth.no, truth.no_exact) = (vec![strict], true);
                } else {
                    (truth.yes, truth.yes_exact) = (vec![strict], true);
                }
            }
        }
        truth
    }

    fn conditional(&mut self, condition: &mut Expr, then: &mut Block, otherwise: &mut Block) -> Value {
        let truth = self.condition(condition);
        let mut assigned = scan::assigned_locals(then);
        assigned.extend(scan::assigned_locals(otherwise));
        let before = self.save(&assigned);
        let first = self.scoped(|walker| {
            walker.facts.assume_all(&truth.yes);
            walker.value_block(then)
        });
        self.restore(&assigned, before);
        let second = self.scoped(|walker| {
            walker.facts.assume_all(&truth.no);
            walker.value_block(otherwise)
        });
        self.forget(&assigned);
        match (first, second) {
            (Value::Int(first), Value::Int(second)) => Value::Int(self.choose(&truth, &first, &second)),
            (Value::Bool(_), _) => Value::Bool(Truth::default()),
            _ => Value::Unknown,
        }
    }

    pub fn value_block(&mut self, block: &mut Block) -> Value {
        let outer = std::mem::replace(&mut self.in_expression, true);
        self.statements(&mut block.statements);
        self.in_expression = outer;
        block.value.as_mut().map_or(Value::Unknown, |value| self.expression(value))
    }

    fn dimension(&mut self, dim: DimId) -> Poly {
        let range = Interval::new(0, DIMENSION_LIMIT - 1);
        let atom = self.atoms().intern(Key::Source(Source::Dim(dim)), range);
        self.definitions.value(atom)
    }

    fn parameter(&mut self, param: ParamId, ty: &Type, path: &mut Vec<usize>) -> Value {
        match ty {
            Type::Scalar(Scalar::Bool) => Value::Bool(Truth::default()),
            Type::Scalar(scalar) if scalar.is_integer() => {
                let atom = self
                    .atoms()
                    .intern(Key::Source(Source::Param(param, path.clone())), Interval::of(*scalar));
                Value::Int(self.definitions.value(atom))
            }
            Type::Struct(id) => {
                let fields = &self.program.structs[*id].fields;
                let values = fields.iter().enumerate().map(|(position, field)| {
                    path.push(position);
                    let value = self.parameter(param, &field.ty, path);
                    path.pop();
                    value
                });
                Value::Struct(values.collect())
            }
            _ => Value::Unknown,
        }
    }

    /// The integer fields of a struct literal, wrapped into their types.
    fn rounded(&mut self, ty: &Type, values: Vec<Value>) -> Vec<Value> {
        let Type::Struct(id) = ty else { return values };
        let fields = &self.program.structs[*id].fields;
        let round = |(value, field): (Value, &StructField)| match (value, field.ty.as_scalar()) {
            (Value::Int(poly), Some(scalar)) => Value::Int(self.convert(&poly, scalar)),
            (value, _) => value,
        };
        values.into_iter().zip(fields).map(round).collect()
    }

    /// The part of a struct value that `steps` lead to, of type `ty`.
    fn project(&mut self, value: Value, ty: &Type, steps: Vec<Poly>) -> Value {
        let mut value = value;
        for (at, step) in steps.iter().enumerate() {
            value = match (value, step.as_constant()) {
                (Value::Struct(mut fields), Some(field)) if (field as usize) < fields.len() => {
                    fields.swap_remove(field as usize)
                }
                (Value::Opaque(number, mut arguments), _) => {
                    arguments.extend(steps[at..].iter().cloned());
                    return match ty.as_scalar() {
                        Some(scalar) if scalar.is_integer() => {
                            let range = Interval::of(scalar);
                            Value::Int(self.atoms().apply(Function::Unknown(number), arguments, range))
                        }
                        _ => self.unknown_value(ty),
                    };
                }
                _ => return self.unknown_value(ty),
            };
        }
        value
    }

    fn load(&mut self, expression: &mut Expr) -> Value {
        let ty = expression.ty.clone();
        let ExprKind::Load { access, path, otherwise } = &mut expression.kind else { return Value::Unknown };
        let outside = if otherwise.is_some() { Outside::Guarded } else { Outside::Checked };
        let mut place = self.access(access, outside);
        let element = self.kernel.arrays[access.array].ty.clone();
        let name = self.kernel.arrays[access.array].name.clone();
        place.extend(self.path(&element, path, &name, outside));
        self.touch(Touch {
            array: access.array,
            place: place.clone(),
            touching: Touching::Read,
            span: access.span,
        });
        self.coverage_of_read(access, &place);
        if let Some(otherwise) = otherwise {
            self.expression(otherwise);
            return self.unknown_value(&ty);
        }
        let stored = types::at_path(self.program, &element, path);
        match (self.kernel.arrays[access.array].role, stored.as_ref().and_then(Type::as_scalar)) {
            (ArrayRole::Input | ArrayRole::Constant(_), Some(scalar)) if scalar.is_integer() => {
                Value::Int(self.atoms().apply(
                    Function::Operation(Operation::Load(access.array)),
                    place,
                    Interval::of(scalar),
                ))
            }
            (_, Some(scalar)) if scalar.is_integer() => Value::Int(self.unknown(Interval::of(scalar))),
            _ => self.unknown_value(&ty),
        }
    }

    fn reduction(
        &mut self,
        op: ReduceOp,
        axes: &mut [Axis],
        body: &mut Expr,
        integer: Option<Scalar>,
    ) -> Value {
        let checks = self.checks();
        let ranges = self.scoped(|walker| {
            let depth = walker.nest.len();
            walker.enter_axes(axes, LevelKind::Reduction);
            let ranges: Vec<Vec<Poly>> =
                walker.nest[depth..].iter().map(|level| level.constraints.clone()).collect();
            let names: Vec<Option<Poly>> =
                walker.nest[depth..].iter().map(|level| level.atom.map(Poly::atom)).collect();
            walker.expression(body);
            ranges.into_iter().zip(names).collect::<Vec<_>>()
        });
        let Some(scalar) = integer else {
            return if matches!(op, ReduceOp::Any | ReduceOp::All) {
                Value::Bool(Truth::default())
            } else {
                Value::Unknown
            };
        };
        match op {
            ReduceOp::Count => Value::Int(self.unknown(Interval::new(0, i64::MAX as i128))),
            ReduceOp::ArgMin | ReduceOp::ArgMax => {
                // -1 over nothing; a single name may start below that.
                let start = match ranges.as_slice() {
                    [(constraints, Some(name))] => {
                        constraints.first().and_then(|after_low| name.subtract(after_low))
                    }
                    [_] => None,
                    _ => Some(Poly::constant(0)),
                };
                let least = start.map_or(i64::MIN as i128, |start| self.facts.range(&start).low.min(-1));
                let position = self.unknown(Interval::new(least, i64::MAX as i128));
                if let [(constraints, Some(name))] = ranges.as_slice()
                    && let [after_low, before_high] = constraints.as_slice()
                {
                    // The position is one of the range, where there is one.
                    let last = before_high.add(name);
                    let first = name.subtract(after_low);
                    if let (Some(first), Some(last)) = (first, last) {
                        // Terms whose checks fail are none.
                        let nonempty = self.checks() == checks && self.facts.proves_at_most(&first, &last);
                        if nonempty || last.add_constant(1).is_some_and(|high| self.facts.proves(&high)) {
                            last.subtract(&position).into_iter().for_each(|fact| self.facts.assume(fact));
                        }
                        if nonempty {
                            position.subtract(&first).into_iter().for_each(|fact| self.facts.assume(fact));
                        }
                    }
                }
                Value::Int(position)
            }
            _ => Value::Int(self.unknown(Interval::of(scalar))),
        }
    }
}

//! The walk over statements.

use super::bounds::Outside;
use super::races::{self, Access as Touch, Region, Touching};
use super::value::{Truth, Value};
use super::vocabulary::{Function, Interval, Poly};
use super::walker::{Guard, LevelKind, Walker};
use super::{scan, types};
use crate::check::typed::*;

/// How far from 0 a loop over launches may count.
const COUNTER_LIMIT: i128 = 1 << 48;

impl Walker<'_> {
    /// The kernel's body: each statement that iterates is a region of its own, with a barrier after it.
    pub fn statements(&mut self, list: &mut [Stmt]) {
        for one in list {
            let iterates = matches!(
                one.kind,
                StmtKind::Forall { .. } | StmtKind::Store { .. } | StmtKind::DefineArray { .. }
            );
            if self.region.is_none() && iterates {
                self.region = Some(Region::new(self.facts.mark(), scan::stored_arrays(one)));
                self.statement(one);
                if let Some(region) = self.region.take() {
                    let meetings = races::check(self, region);
                    races::mark_combines(one, &mut meetings.into_iter());
                }
            } else {
                self.statement(one);
            }
        }
    }

    pub fn statement(&mut self, statement: &mut Stmt) {
        match &mut statement.kind {
            StmtKind::Let { local, value } => {
                let (value, kept) = self.kept(|walker| walker.expression(value));
                self.declare(*local, if kept { value } else { Value::Unknown });
            }
            StmtKind::Assign { local, path, value } => {
                let (known, kept) = self.kept(|walker| walker.expression(value));
                let name = self.kernel.locals[*local].name.clone();
                let ty = self.kernel.locals[*local].ty.clone();
                let known = if path.is_empty() && kept {
                    known
                } else {
                    self.path(&ty, path, &name, Outside::Checked);
                    self.unknown_value(&ty)
                };
                self.assign(*local, known);
            }
            StmtKind::DefineArray { array, axes, value } => {
                self.declared[*array] = self.nest.len();
                self.scoped(|walker| {
                    walker.enter_axes(axes, LevelKind::Parallel);
                    walker.expression(value);
                });
            }
            StmtKind::Store { axes, access, path, combine, value } => {
                let in_expression = self.in_expression;
                self.scoped(|walker| {
                    walker.enter_axes(axes, LevelKind::Parallel);
                    walker.store(access, path, combine.as_ref(), value, in_expression);
                    if let (Some(combine), true) = (combine, in_expression) {
                        combine.may_meet = walker.is_shared(access.array);
                    }
                });
            }
            StmtKind::Forall { axes, body } => self.scoped(|walker| {
                // A `var` that an iteration changes is refused; what is declared inside is made anew.
                walker.enter_axes(axes, LevelKind::Parallel);
                walker.block(body);
            }),
            StmtKind::For { index, low, high, ends, step, goes_on, body } => {
                self.sequential(*index, (low, high, step), ends, goes_on.is_some(), body);
            }
            StmtKind::While { condition, body } => {
                let assigned = scan::assigned_locals(body);
                self.scoped(|walker| {
                    walker.enter_while();
                    walker.forget(&assigned);
                    let (truth, kept) = walker.kept(|walker| walker.condition(condition));
                    if kept {
                        walker.facts.assume_all(&truth.yes);
                    }
                    walker.block(body);
                });
                self.forget(&assigned);
            }
            StmtKind::If { condition, then, otherwise } => {
                let (truth, kept) = self.kept(|walker| walker.condition(condition));
                self.branches(&if kept { truth } else { Truth::default() }, then, otherwise);
            }
            StmtKind::Assert { condition, text, site } => {
                self.condition(condition);
                *site = Some(self.assertion_site(condition.span, text));
            }
            StmtKind::Print { operands, site } => {
                *site = Some(self.print_site(statement.span, operands));
            }
        }
    }

    /// A value that a statement keeps for those after it, and whether they may rely on what is known of it. At kernel
    /// level a launch of its own computes it; where a bounds check of that launch fails, those after it find memory
    /// that nobody wrote.
    fn kept<T>(&mut self, compute: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let checks = self.checks();
        let value = compute(self);
        (value, self.region.is_some() || self.checks() == checks)
    }

    pub fn block(&mut self, block: &mut Block) {
        for one in &mut block.statements {
            self.nested(one);
        }
        if let Some(value) = &mut block.value {
            self.expression(value);
        }
    }

    /// A statement of a block: at kernel level it may be a region of its own.
    fn nested(&mut self, one: &mut Stmt) {
        self.statements(std::slice::from_mut(one));
    }

    /// Whether iterations that may run at once share an array: not an array of an iteration's own, where it alone runs in it.
    fn is_shared(&self, array: ArrayId) -> bool {
        let inside = match self.kernel.arrays[array].role {
            ArrayRole::Private => &self.nest[self.declared[array]..],
            _ => &self.nest[..],
        };
        inside.iter().any(|level| level.kind == LevelKind::Parallel)
    }

    fn store(
        &mut self,
        access: &mut Access,
        path: &mut [Projection],
        combine: Option<&Combine>,
        value: &mut Expr,
        in_expression: bool,
    ) {
        let array = access.array;
        let mut place = self.access(access, Outside::Checked);
        let element = self.kernel.arrays[array].ty.clone();
        let name = self.kernel.arrays[array].name.clone();
        place.extend(self.path(&element, path, &name, Outside::Checked));
        self.expression(value);
        let touching = match combine {
            None => Touching::Write,
            Some(combine) => Touching::Combine(combine.op, !in_expression),
        };
        self.touch(Touch { array, place: place.clone(), touching, span: access.span });
        match combine {
            None => self.coverage_of_write(array, place),
            Some(combine) => self.coverage_of_combine(access, combine.op, &place),
        }
    }

    fn sequential(
        &mut self,
        index: IndexId,
        (low, high, step): (&mut Expr, &mut Expr, &mut Expr),
        ends: &mut Ends,
        may_stop: bool,
        body: &mut Block,
    ) {
        let from = self.integer(low);
        let to = self.end_of_range(high, *ends);
        let by = self.integer(step);
        ends.reach = self.reach(&from, &to, &by);
        let assigned = scan::assigned_locals(body);
        self.coverage.loops.push(self.facts.mark());
        let level = self.scoped(|walker| {
            match by.as_constant() {
                Some(by @ 2..) => walker.enter_steps(index, &from, &to, by),
                _ => walker.enter_range(LevelKind::Sequential, index, &from, &to),
            }
            if walker.region.is_none()
                && let Some(Value::Int(name)) = walker.indices[index].clone().map(Value::Int)
            {
                // The host runs it, and refuses to count further.
                for end in [
                    name.add_constant(COUNTER_LIMIT),
                    name.negate().and_then(|name| name.add_constant(COUNTER_LIMIT)),
                ] {
                    end.into_iter().for_each(|fact| walker.facts.assume(fact));
                }
            }
            if (may_stop || by.as_constant().is_none())
                && let Some(level) = walker.nest.last_mut()
            {
                level.exact = false;
            }
            walker.forget(&assigned);
            walker.block(body);
            walker.nest.last().cloned()
        });
        self.coverage.loops.pop();
        if let Some(level) = level {
            self.settle_reads(&level);
        }
        self.forget(&assigned);
    }

    fn branches(&mut self, truth: &Truth, then: &mut Block, otherwise: &mut Block) {
        let (names, number) = (self.names(), self.facts.atoms.unknown());
        let holds = self.facts.atoms.apply(Function::Condition(number), names, Interval::new(0, 1));
        let (is, is_not) = (holds.add_constant(-1).unwrap_or_default(), holds.negate().unwrap_or_default());
        let mut assigned = scan::assigned_locals(then);
        assigned.extend(scan::assigned_locals(otherwise));
        assigned.sort_unstable();
        assigned.dedup();
        let before = self.save(&assigned);
        let arms = [(then, &truth.yes, truth.yes_exact, is), (otherwise, &truth.no, truth.no_exact, is_not)];
        for (block, facts, exact, opaque) in arms {
            self.restore(&assigned, before.clone());
            self.scoped(|walker| {
                walker.facts.assume_all(facts);
                walker.facts.assume(opaque.clone());
                walker.guards.push(Guard { exact: exact.then(|| facts.clone()), opaque });
                walker.block(block);
            });
        }
        self.forget(&assigned);
    }

    /// Walks the steps of a path into a value of type `ty`, marks the fixed arrays' subscripts, and gives each
    /// step as a number: a field by its position, an element by its index.
    pub fn path(&mut self, ty: &Type, path: &mut [Projection], name: &str, outside: Outside) -> Vec<Poly> {
        let mut name = name.to_string();
        let mut steps = Vec::with_capacity(path.len());
        for at in 0..path.len() {
            let (before, rest) = path.split_at_mut(at);
            let outer = types::at_path(self.program, ty, before);
            match &mut rest[0] {
                Projection::Field(position) => {
                    steps.push(Poly::constant(*position as i128));
                    if let Some(Type::Struct(id)) = outer
                        && let Some(field) = self.program.structs[id].fields.get(*position)
                    {
                        name = format!("{name}.{}", field.name);
                    }
                }
                Projection::Element { index, check } => {
                    let subscript = self.integer(index);
                    let length = match outer {
                        Some(Type::Array(_, length)) => length,
                        _ => 0,
                    };
                    *check = self.element(&subscript, length, index, &name, outside);
                    steps.push(subscript);
                    name.push_str("[…]");
                }
            }
        }
        steps
    }
}

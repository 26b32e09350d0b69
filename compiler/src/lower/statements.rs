//! Statements within a launch.

use super::assigned::assigned;
use super::{Lowerer, structs};
use crate::check::typed::{Block, Expr, LocalId, Moment, Printed, Projection, SiteId, Stmt, StmtKind};
use crate::check::walk::walk_statement;
use crate::ir::entities::Value;
use crate::ir::op::Opcode;
use crate::mutants::mutant;

impl<'a> Lowerer<'a> {
    pub fn statements(&mut self, statements: &'a [Stmt]) {
        for stmt in statements {
            self.statement(stmt);
        }
    }

    pub fn statement(&mut self, stmt: &'a Stmt) {
        let outer = self.builder.set_span(stmt.span);
        match &stmt.kind {
            StmtKind::Let { local, value } => {
                let values = self.expression(value);
                self.name_local(*local, &values, Some((stmt, Moment::End)));
                self.locals[*local] = Some(values);
            }
            StmtKind::Assign { local, path, value } => {
                let next = self.assigned_value(*local, path, value);
                self.name_assigned(*local, &next, stmt);
                self.locals[*local] = Some(next);
            }
            StmtKind::DefineArray { array, axes, value } => self.define_array(*array, axes, value),
            StmtKind::Store { axes, access, path, combine, value } => {
                self.for_all(axes, &|visit| walk_statement(stmt, visit), |lowerer| {
                    lowerer.store(access, path, *combine, value);
                });
            }
            StmtKind::Forall { axes, body } => {
                self.for_all(axes, &|visit| walk_statement(stmt, visit), |lowerer| {
                    lowerer.statements(&body.statements);
                });
            }
            StmtKind::For { index, low, high, ends, step, goes_on: Some(goes_on), body } => {
                let carried = self.assigned_in(&[body], &[]);
                let (low, high, step) = (self.scalar(low), self.scalar(high), self.scalar(step));
                let range = self.counted(low, high, step, *ends);
                let mut initial = vec![range.low];
                initial.extend(self.current(&carried));
                let params = self.builder.begin_while(&initial);
                self.rebind(&carried, &params[1..], Some((stmt, Moment::Round)));
                let inside = self.builder.compare(Opcode::Lt, params[0], range.high);
                let goes_on = self.locals[*goes_on].as_ref().map_or(inside, |values| values[0]);
                let goes_on = mutant!("lower: `break` ends nothing", goes_on, inside);
                let test = self.builder.binary(Opcode::And, inside, goes_on);
                let params = self.builder.begin_while_body(test);
                self.builder.name(params[0], &self.typed.indices[*index].name);
                self.bind_index(*index, &range, params[0]);
                self.rebind(&carried, &params[1..], Some((stmt, Moment::Round)));
                self.statements(&body.statements);
                let mut next = vec![self.builder.binary(Opcode::Add, params[0], range.step)];
                next.extend(self.current(&carried));
                let results = self.builder.end_while(&next);
                self.rebind(&carried, &results[1..], Some((stmt, Moment::End)));
            }
            StmtKind::For { index, low, high, ends, step, goes_on: None, body } => {
                let carried = self.assigned_in(&[body], &[]);
                let initial = self.current(&carried);
                let (low, high, step) = (self.scalar(low), self.scalar(high), self.scalar(step));
                let step = mutant!("lower: a loop goes by steps of 1", step, self.builder.constant_index(1));
                let range = self.counted(low, high, step, *ends);
                let name = &self.typed.indices[*index].name;
                let (counter, params) =
                    self.builder.begin_for(name, range.low, range.high, range.step, &initial);
                self.bind_index(*index, &range, counter);
                self.rebind(&carried, &params, Some((stmt, Moment::Round)));
                self.statements(&body.statements);
                let next = self.current(&carried);
                let results = self.builder.end_for(&next);
                self.rebind(&carried, &results, Some((stmt, Moment::End)));
            }
            StmtKind::While { condition, body } => {
                let carried = self.assigned_in(&[body], &[condition]);
                let initial = self.current(&carried);
                let params = self.builder.begin_while(&initial);
                self.rebind(&carried, &params, Some((stmt, Moment::Round)));
                let test = self.scalar(condition);
                let params = self.builder.begin_while_body(test);
                self.rebind(&carried, &params, Some((stmt, Moment::Round)));
                self.statements(&body.statements);
                let next = self.current(&carried);
                let results = self.builder.end_while(&next);
                self.rebind(&carried, &results, Some((stmt, Moment::End)));
            }
            StmtKind::If { condition, then, otherwise } => {
                let test = self.scalar(condition);
                self.branch(stmt, test, then, otherwise);
            }
            StmtKind::Assert { condition, site, .. } => {
                // What the condition assigns counts also where nothing is checked.
                let holds = self.scalar(condition);
                let holds = mutant!(
                    "lower: an assertion fails where it holds",
                    holds,
                    self.builder.unary(Opcode::Not, holds)
                );
                if let Some(site) = site.filter(|_| !self.options.unchecked) {
                    self.assertion(site, holds);
                }
            }
            // Its operands change nothing, so that nothing is missing where it is left out.
            StmtKind::Print { operands, site } => {
                if let Some(site) = site.filter(|_| self.options.prints) {
                    self.print(site, operands);
                }
            }
        }
        self.builder.set_span(outer);
    }

    fn assertion(&mut self, site: SiteId, holds: Value) {
        let names = self.typed.sites[site].assertion.iter().flat_map(|known| &known.indices);
        let indices: Vec<Value> = names.filter_map(|index| self.indices[*index]).collect();
        self.builder.assertion(self.site(site), holds, &indices);
    }

    fn print(&mut self, site: SiteId, operands: &'a [Printed]) {
        let indices = self.typed.sites[site].print.iter().flat_map(|known| &known.indices);
        let mut numbers: Vec<Value> = indices.filter_map(|index| self.indices[*index]).collect();
        for operand in operands {
            let values = self.expression(&operand.value);
            // Leaf by leaf: of an array of structs all first fields, then all second ones.
            let places = structs::places(self.program, &operand.value.ty);
            let mut values: Vec<(usize, Value)> = places.iter().map(|place| place.leaf).zip(values).collect();
            values.sort_by_key(|(leaf, _)| *leaf);
            numbers.extend(values.into_iter().map(|(_, value)| value));
        }
        self.builder.print(self.site(site), &numbers);
    }

    /// An `if` statement: the names that either branch assigns come out of it.
    fn branch(&mut self, stmt: &Stmt, test: Value, then: &'a Block, otherwise: &'a Block) {
        let carried = self.assigned_in(&[then, otherwise], &[]);
        let before = self.current_lists(&carried);
        self.builder.begin_if(test);
        self.statements(&then.statements);
        let values = self.current(&carried);
        self.builder.begin_else(&values);
        mutant!(
            "lower: one side of an `if` goes on from what the other one assigned",
            self.restore(&carried, before),
            drop(before)
        );
        self.statements(&otherwise.statements);
        let values = self.current(&carried);
        let results = self.builder.end_if(&values);
        self.rebind(&carried, &results, Some((stmt, Moment::End)));
    }

    /// An `if` or a block in value position, lazily: its values, then the names that it assigns.
    pub fn branch_values(
        &mut self,
        test: Value,
        then: &mut dyn FnMut(&mut Self) -> Vec<Value>,
        otherwise: &mut dyn FnMut(&mut Self) -> Vec<Value>,
        carried: &[LocalId],
    ) -> Vec<Value> {
        let before = self.current_lists(carried);
        self.builder.begin_if(test);
        let mut values = then(self);
        let count = values.len();
        values.extend(self.current(carried));
        self.builder.begin_else(&values);
        self.restore(carried, before);
        let mut values = otherwise(self);
        values.extend(self.current(carried));
        let mut results = self.builder.end_if(&values);
        let tail = results.split_off(count);
        self.rebind(carried, &tail, None);
        results
    }

    /// The names from outside that are assigned in these regions.
    pub fn assigned_in(&self, blocks: &[&Block], expressions: &[&Expr]) -> Vec<LocalId> {
        let mut names = assigned(blocks, expressions);
        names.retain(|local| self.locals[*local].is_some());
        names
    }

    fn current_lists(&self, names: &[LocalId]) -> Vec<Option<Vec<Value>>> {
        names.iter().map(|local| self.locals[*local].clone()).collect()
    }

    fn restore(&mut self, names: &[LocalId], lists: Vec<Option<Vec<Value>>>) {
        for (local, list) in names.iter().zip(lists) {
            self.locals[*local] = list;
        }
    }

    fn current(&self, names: &[LocalId]) -> Vec<Value> {
        names.iter().flat_map(|local| self.locals[*local].clone().unwrap_or_default()).collect()
    }

    /// Gives names other values: those that a statement makes of them, where it is known which.
    fn rebind(&mut self, names: &[LocalId], values: &[Value], by: Option<(&Stmt, Moment)>) {
        let mut rest = values;
        for local in names {
            let count = self.locals[*local].as_ref().map_or(0, Vec::len);
            let (own, after) = rest.split_at(count);
            self.name_local(*local, own, by);
            self.locals[*local] = Some(own.to_vec());
            rest = after;
        }
    }

    /// The value of a name after an assignment to it or to part of it.
    pub fn assigned_value(&mut self, local: LocalId, path: &'a [Projection], value: &'a Expr) -> Vec<Value> {
        let ty = self.typed.locals[local].ty.clone();
        let new = self.expression(value);
        let old = self.locals[local].clone().unwrap_or_default();
        self.replace_part(&ty, old, path, new)
    }
}

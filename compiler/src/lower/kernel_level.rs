//! Statements at kernel level: each becomes a launch, or steps of the plan around launches.

use super::assigned::{is_pure, names, reduces};
use super::{KernelLocal, Lowerer, Storage, structs};
use crate::check::typed::{
    ArrayRole, Block, CombineOp, Expr, LocalId, Projection, ResultStart, Stmt, StmtKind, Type,
};
use crate::data::Scalar;
use crate::ir::entities::{Buffer, Value};
use crate::ir::int_range;
use crate::ir::kernel::{BufferData, BufferKind, Step, SymbolData};
use crate::manifest::{self, SymbolKind};
use crate::mutants::mutant;
use crate::source::Span;

impl<'a> Lowerer<'a> {
    /// Results that are not written everywhere, or only combined into, start from a constant.
    pub fn initialise_results(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (id, array) in &self.typed.arrays {
            let ArrayRole::Result(start) = array.role else { continue };
            let op = match start {
                ResultStart::Written => continue,
                ResultStart::Zero => None,
                ResultStart::Identity(op) => Some(op),
            };
            let Some(Storage::Plain(buffer)) = self.arrays[id].clone() else { continue };
            let launch = self.in_launch(array.span, |lowerer| {
                lowerer.builder.set_span(array.span);
                let zero = lowerer.builder.constant_index(0);
                let highs: Vec<Value> = array.extents.iter().map(|extent| lowerer.scalar(extent)).collect();
                let names: Vec<String> = (0..highs.len()).map(|axis| format!("i{axis}")).collect();
                let axes: Vec<(&str, Value, Value)> =
                    names.iter().zip(&highs).map(|(name, high)| (name.as_str(), zero, *high)).collect();
                let indices = if axes.is_empty() { Vec::new() } else { lowerer.builder.begin_forall(&axes) };
                lowerer.store_constant(buffer, &array.ty, op, &indices);
                if !axes.is_empty() {
                    lowerer.builder.end_forall();
                }
            });
            steps.push(launch);
        }
        steps
    }

    fn store_constant(&mut self, buffer: Buffer, ty: &Type, op: Option<CombineOp>, indices: &[Value]) {
        let element = structs::element_type(self.program, ty);
        for place in structs::places(self.program, ty) {
            let value = self.identity(op, element.leaves[place.leaf].scalar);
            let mut all = indices.to_vec();
            for index in &place.indices {
                all.push(self.builder.constant_index(*index as i64));
            }
            self.builder.store(buffer, place.leaf as u32, &all, value);
        }
    }

    /// In the storage type's own range, as a value of its widened type.
    fn identity(&mut self, op: Option<CombineOp>, scalar: Scalar) -> Value {
        // Of truths, where it is no integer.
        let (least, most) = int_range(scalar).unwrap_or((0, 1));
        let (int, float): (i128, f64) = match op {
            None | Some(CombineOp::Add | CombineOp::Or | CombineOp::Xor) => (0, 0.0),
            Some(CombineOp::Mul) => (1, 1.0),
            Some(CombineOp::Min) => (most, f64::INFINITY),
            Some(CombineOp::Max) => (least, f64::NEG_INFINITY),
            Some(CombineOp::And) => (if scalar.is_signed_integer() { -1 } else { most }, 0.0),
        };
        match scalar.widened() {
            Scalar::Bool => self.builder.constant_bool(int != 0),
            Scalar::F32 => self.builder.constant_f32(float as f32),
            Scalar::F64 => self.builder.constant_f64(float),
            wide => self.builder.constant_int(wide, int),
        }
    }

    pub fn kernel_block(&mut self, statements: &'a [Stmt]) -> Vec<Step> {
        let mut steps = Vec::new();
        for stmt in statements {
            self.kernel_statement(stmt, &mut steps);
        }
        steps
    }

    fn kernel_statement(&mut self, stmt: &'a Stmt, steps: &mut Vec<Step>) {
        if !self.options.prints && only_prints(stmt) {
            return;
        }
        match &stmt.kind {
            StmtKind::Let { local, value } => {
                let data = &self.typed.locals[*local];
                if !data.mutable && is_pure(self.typed, value) {
                    self.kernel_locals.push((*local, KernelLocal::Recompute(value)));
                    return;
                }
                let buffer = self.cell(&data.name, &data.ty);
                let launch = self.store_cell(stmt.span, buffer, &data.ty, value);
                steps.push(launch);
                self.kernel_locals.push((*local, KernelLocal::Stored(buffer)));
            }
            StmtKind::Assign { local, path, value } => {
                self.assign_cell(stmt.span, *local, path, value, steps);
            }
            StmtKind::For { index, low, high, step, body, .. } => {
                let symbol = self.builder.add_symbol(SymbolData {
                    name: self.typed.indices[*index].name.clone(),
                    kind: SymbolKind::Counter,
                    scalar: Scalar::I64,
                });
                let bounds = [low, high, step].map(|bound| self.bound(bound));
                self.counters[*index] = Some(symbol);
                let body = self.kernel_block(&body.statements);
                let [low, high, step] = bounds;
                steps.push(Step::Repeat { symbol, low, high, step, body });
            }
            StmtKind::If { condition, then, otherwise } => {
                self.kernel_if(stmt.span, condition, then, otherwise, steps);
            }
            StmtKind::While { condition, body } => self.kernel_while(stmt.span, condition, body, steps),
            StmtKind::DefineArray { .. }
            | StmtKind::Store { .. }
            | StmtKind::Forall { .. }
            | StmtKind::Assert { .. }
            | StmtKind::Print { .. } => {
                let launch = self.in_launch(stmt.span, |lowerer| lowerer.statement(stmt));
                steps.push(launch);
            }
        }
    }

    /// A condition that the host can evaluate picks steps; any other is stored first, and tested by each launch.
    fn kernel_if(
        &mut self,
        span: Span,
        condition: &'a Expr,
        then: &'a Block,
        otherwise: &'a Block,
        steps: &mut Vec<Step>,
    ) {
        if let Some(condition) = self.host_value(condition) {
            let then = self.kernel_block(&then.statements);
            let otherwise = self.kernel_block(&otherwise.statements);
            steps.push(Step::Branch { condition, then, otherwise });
            return;
        }
        let buffer = self.cell("condition", &Type::BOOL);
        let launch = self.store_cell(span, buffer, &Type::BOOL, condition);
        steps.push(launch);
        for (block, wanted) in [(then, true), (otherwise, false)] {
            self.conditions.push((buffer, wanted));
            let inner = self.kernel_block(&block.statements);
            steps.extend(inner);
            self.conditions.pop();
        }
    }

    /// The host reads the condition before each turn. Where an `if` around it does not hold, it is false from the start.
    fn kernel_while(&mut self, span: Span, condition: &'a Expr, body: &'a Block, steps: &mut Vec<Step>) {
        let buffer = self.cell("goes_on", &Type::BOOL);
        if !self.conditions.is_empty() {
            let conditions = std::mem::take(&mut self.conditions);
            steps.push(self.in_launch(span, |lowerer| {
                let never = lowerer.builder.constant_bool(false);
                lowerer.builder.store(buffer, 0, &[], never);
            }));
            self.conditions = conditions;
        }
        let known = self.kernel_locals.len();
        let test = vec![self.store_cell(condition.span, buffer, &Type::BOOL, condition)];
        let body = self.kernel_block(&body.statements);
        self.kernel_locals.truncate(known);
        let (test, body) =
            mutant!("lower: a `while` of launches asks behind its turns", (test, body), (body, test));
        steps.push(Step::While { condition: buffer, test, body });
    }

    /// A rank-0 scratch buffer.
    fn cell(&mut self, name: &str, ty: &Type) -> Buffer {
        let element = structs::element_type(self.program, ty);
        self.builder.add_buffer(BufferData {
            name: name.to_string(),
            kind: BufferKind::Scratch,
            element,
            extents: Vec::new(),
            layout: manifest::Layout::Aos,
            layout_fixed: true,
            cache: None,
            runs_on: false,
        })
    }

    fn store_cell(&mut self, span: Span, buffer: Buffer, ty: &Type, value: &'a Expr) -> Step {
        self.in_launch(span, |lowerer| {
            let values = lowerer.expression(value);
            lowerer.write_cell(buffer, ty, &values);
        })
    }

    fn write_cell(&mut self, buffer: Buffer, ty: &Type, values: &[Value]) {
        for (place, value) in structs::places(self.program, ty).into_iter().zip(values) {
            let indices: Vec<Value> =
                place.indices.iter().map(|index| self.builder.constant_index(*index as i64)).collect();
            self.builder.store(buffer, place.leaf as u32, &indices, *value);
        }
    }

    /// Where a reduction is part of a value that depends on the old one, it is computed first, by a launch that does not write
    /// what it reads: so many threads can share it.
    fn assign_cell(
        &mut self,
        span: Span,
        local: LocalId,
        path: &'a [Projection],
        value: &'a Expr,
        steps: &mut Vec<Step>,
    ) {
        let known = self.kernel_locals.iter().rev().find(|(name, _)| *name == local).cloned();
        let Some((_, KernelLocal::Stored(buffer))) = known else { return };
        let ty = &self.typed.locals[local].ty;
        let assign = |lowerer: &mut Self, buffer| {
            lowerer.in_launch(span, |lowerer| {
                let next = lowerer.assigned_value(local, path, value);
                lowerer.write_cell(buffer, ty, &next);
            })
        };
        if !(reduces(value) && (!path.is_empty() || names(value, local))) {
            return steps.push(assign(self, buffer));
        }
        let next = self.cell(&self.typed.locals[local].name, ty);
        steps.push(assign(self, next));
        steps.push(self.in_launch(span, |lowerer| {
            let values = lowerer.read_cell(next, local);
            lowerer.write_cell(buffer, ty, &values);
        }));
    }

    /// Runs `body` in a new launch, under the kernel-level conditions, with the kernel-level names in scope.
    pub fn in_launch(&mut self, span: Span, body: impl FnOnce(&mut Self)) -> Step {
        let name = self.typed.name.clone();
        self.builder.begin_launch(name);
        self.builder.set_span(span);
        self.locals.clear();
        self.indices.clear();
        self.around.clear();
        for (index, symbol) in self.counters.clone().iter() {
            if let Some(symbol) = symbol {
                let value = self.builder.symbol(*symbol);
                self.indices[index] = Some(value);
            }
        }
        let conditions = self.conditions.clone();
        for (buffer, wanted) in &conditions {
            let mut condition = self.builder.load(*buffer, 0, &[]);
            if !wanted {
                condition = self.builder.unary(crate::ir::op::Opcode::Not, condition);
            }
            self.builder.begin_if(condition);
        }
        let mut loaded = Vec::new();
        for (local, known) in self.kernel_locals.clone() {
            let values = match known {
                KernelLocal::Recompute(value) => self.expression(value),
                KernelLocal::Stored(buffer) => {
                    let values = self.read_cell(buffer, local);
                    loaded.extend_from_slice(&values);
                    values
                }
            };
            self.name_found(local, &values);
            self.locals[local] = Some(values);
        }
        self.builder.set_span(span);
        body(self);
        for _ in &conditions {
            self.builder.begin_else(&[]);
            self.builder.end_if(&[]);
        }
        let launch = self.builder.end_launch();
        // A debugger is shown what a launch could use.
        if self.numbers.is_none() {
            self.builder.forget_unused(launch, &loaded);
        }
        Step::Launch(launch)
    }

    fn read_cell(&mut self, buffer: Buffer, local: LocalId) -> Vec<Value> {
        let data = &self.typed.locals[local];
        structs::places(self.program, &data.ty)
            .into_iter()
            .map(|place| {
                let indices: Vec<Value> =
                    place.indices.iter().map(|index| self.builder.constant_index(*index as i64)).collect();
                let value = self.builder.load(buffer, place.leaf as u32, &indices);
                if self.numbers.is_none() {
                    self.builder.name(value, &data.name);
                }
                value
            })
            .collect()
    }
}

/// Whether a statement does nothing but print, so that no launch is needed where nobody asks for prints.
fn only_prints(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Print { .. } => true,
        StmtKind::Forall { body, .. } | StmtKind::For { body, .. } => {
            !body.statements.is_empty() && body.statements.iter().all(only_prints)
        }
        _ => false,
    }
}

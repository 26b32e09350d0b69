//! Inlining: a function's checked body is copied into its caller, its names renumbered.
//!
//! The call becomes a block: one `let` a value that is given, then the body. What a function declares (names, index
//! names, local arrays) is declared anew in the caller by each call. An array that is given takes the parameter's place,
//! and its extents those of the dimensions that the parameter binds.

use super::elaborator::Elaborator;
use super::expressions::MAX_NESTING;
use super::functions::{Formal, FunctionBody};
use super::polynomial::{difference, same_value};
use super::typed::{
    Access, Array, ArrayId, ArrayRole, Axis, Block, DimId, Expr, ExprKind, IndexId, LocalId, Printed,
    Projection, Reducer, Reduction, ReductionId, Stmt, StmtKind, Type,
};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use cranelift_entity::SecondaryMap;

/// Expression nodes in one kernel or function: more than any kernel in earnest, few enough to compile in no time.
const MAX_BODY: u64 = 100_000;

/// Expression nodes that inlining may make in one file.
const MAX_INLINED: u64 = 4_000_000;

/// What a call gives for a parameter.
pub(super) enum Argument {
    /// Of the parameter's widened type.
    Value(Expr),
    /// An array of the parameter's element type and rank, and where it is named.
    Array(ArrayId, Span),
}

/// Where the function's names went.
#[derive(Default)]
struct Renaming {
    dims: SecondaryMap<DimId, Option<Expr>>,
    locals: SecondaryMap<LocalId, Option<LocalId>>,
    indices: SecondaryMap<IndexId, Option<IndexId>>,
    arrays: SecondaryMap<ArrayId, Option<ArrayId>>,
    reductions: SecondaryMap<ReductionId, Option<ReductionId>>,
}

impl<'c, 'a> Elaborator<'c, 'a> {
    /// The value of a call with these arguments.
    pub fn inline(&mut self, at: usize, arguments: Vec<Argument>, result: Type, span: Span) -> Option<Expr> {
        let Some(body) = self.checker.functions[at].body.take() else { return self.poisoned() };
        let size = body.size + 1;
        let fits = self.size + size <= MAX_BODY && self.checker.inlined.saturating_add(size) <= MAX_INLINED;
        let nesting = self.nesting + body.nesting + 1;
        let value = if !fits || nesting > MAX_NESTING {
            let name = self.checker.functions[at].item.name.clone();
            let (code, message, label) = if fits {
                (codes::E0604, "calls are nested too deeply once functions are inlined", "one call too deep")
            } else {
                (codes::E0603, "too much code once functions are inlined", "one call too many")
            };
            self.refuse(
                Diagnostic::error(code, span, format!("{message}: `{}`", name.name), label)
                    .help("call functions from loops and statements instead of from each other"),
            )
        } else {
            self.checker.inlined += size;
            self.size += size;
            self.deepest = self.deepest.max(nesting);
            let mut renaming = Renaming::default();
            let mut given = Vec::new();
            let mut statements = Vec::with_capacity(arguments.len() + body.block.statements.len());
            for (id, local) in &body.tables.locals {
                renaming.locals[id] = Some(self.kernel.locals.push(local.clone()));
            }
            for (id, index) in &body.tables.indices {
                renaming.indices[id] = Some(self.kernel.indices.push(index.clone()));
            }
            for (id, reduction) in &body.tables.reductions {
                renaming.reductions[id] = self.own_reduction_of(reduction.item);
            }
            for (param, argument) in body.params.iter().zip(arguments) {
                match (param, argument) {
                    (Formal::Value(param), Argument::Value(value)) => {
                        if let Some(local) = renaming.locals[*param] {
                            statements.push(Stmt { span: value.span, kind: StmtKind::Let { local, value } });
                        }
                    }
                    (Formal::Array(param), Argument::Array(array, span)) => {
                        renaming.arrays[*param] = Some(array);
                        given.push((*param, array, span));
                    }
                    _ => {}
                }
            }
            for (id, dim) in &body.tables.dims {
                let array = renaming.arrays[dim.array].map(|array| &self.kernel.arrays[array]);
                renaming.dims[id] = array.and_then(|array| array.extents.get(dim.axis)).cloned();
            }
            for (id, array) in &body.tables.arrays {
                if renaming.arrays[id].is_some() {
                    continue;
                }
                renaming.arrays[id] = Some(match array.role {
                    ArrayRole::Constant(constant) => self.constant_array(constant),
                    ArrayRole::Static(variable) => self.static_array(variable),
                    _ => {
                        let extents = renaming.list(&array.extents);
                        self.kernel.arrays.push(Array { extents, ..array.clone() })
                    }
                });
            }
            self.shapes_fit(&body, &renaming, &given).map(|()| {
                let copied = renaming.block(&body.block);
                statements.extend(copied.statements);
                let block = Block { statements, value: copied.value };
                Expr { kind: ExprKind::Block(block), ty: result, span }
            })
        };
        self.checker.functions[at].body = Some(body);
        value
    }
}

impl<'c, 'a> Elaborator<'c, 'a> {
    /// The kernel's copy of a reduction of the file's own, made at its first use; `None` where that is mistaken.
    pub fn own_reduction_of(&mut self, item: usize) -> Option<ReductionId> {
        if let Some((known, _)) = self.kernel.reductions.iter().find(|(_, known)| known.item == item) {
            return Some(known);
        }
        let function = &self.checker.functions[item];
        let (Some(body), Some(signature)) = (function.body.clone(), function.signature.clone()) else {
            return self.poisoned();
        };
        let mut renaming = Renaming::default();
        for (id, local) in &body.tables.locals {
            renaming.locals[id] = Some(self.kernel.locals.push(local.clone()));
        }
        for (id, index) in &body.tables.indices {
            renaming.indices[id] = Some(self.kernel.indices.push(index.clone()));
        }
        let mut params = body.params.iter().filter_map(|param| match param {
            Formal::Value(local) => Some(renaming.local(*local)),
            Formal::Array(_) => None,
        });
        let (Some(first), Some(second), Some(identity)) = (params.next(), params.next(), body.identity)
        else {
            return self.poisoned();
        };
        let item_of = self.checker.functions[item].item;
        self.size += body.size;
        Some(self.kernel.reductions.push(Reduction {
            name: item_of.name.name.clone(),
            item,
            ty: signature.result,
            params: [first, second],
            body: renaming.block(&body.block),
            identity,
            span: item_of.span,
        }))
    }

    /// Whether the arrays that are given have the extents that the parameters say, for all sizes.
    fn shapes_fit(
        &mut self,
        body: &FunctionBody,
        renaming: &Renaming,
        given: &[(ArrayId, ArrayId, Span)],
    ) -> Option<()> {
        for (param, array, span) in given {
            let declared = &body.tables.arrays[*param];
            for axis in 0..declared.extents.len() {
                let wanted = renaming.expr(&declared.extents[axis]);
                let extent = &self.kernel.arrays[*array].extents[axis];
                if same_value(&wanted, extent, &self.equalities) {
                    continue;
                }
                let never = difference(&wanted, extent).is_some_and(|left| left.as_constant().is_some());
                let (wanted, extent) = (self.describe(&wanted), self.describe(extent));
                let help = match never {
                    true => "give an array of that shape".to_string(),
                    false => format!("if they are the same, say so: `where {wanted} == {extent}`"),
                };
                return self.refuse(
                    Diagnostic::error(
                        codes::E0325,
                        *span,
                        format!("axis {axis} of `{}` must have extent {wanted} here", declared.name),
                        format!("this array has {extent}"),
                    )
                    .label(declared.span, "declared here")
                    .help(help),
                );
            }
        }
        Some(())
    }
}

impl Renaming {
    fn local(&self, id: LocalId) -> LocalId {
        self.locals[id].unwrap_or(id)
    }

    fn index(&self, id: IndexId) -> IndexId {
        self.indices[id].unwrap_or(id)
    }

    fn array(&self, id: ArrayId) -> ArrayId {
        self.arrays[id].unwrap_or(id)
    }

    fn block(&self, block: &Block) -> Block {
        Block {
            statements: block.statements.iter().map(|stmt| self.stmt(stmt)).collect(),
            value: block.value.as_ref().map(|value| self.boxed(value)),
        }
    }

    fn axes(&self, axes: &[Axis]) -> Vec<Axis> {
        let one = |axis: &Axis| Axis {
            index: self.index(axis.index),
            low: self.expr(&axis.low),
            high: self.expr(&axis.high),
            ends: axis.ends,
        };
        axes.iter().map(one).collect()
    }

    fn path(&self, path: &[Projection]) -> Vec<Projection> {
        let one = |step: &Projection| match step {
            Projection::Field(field) => Projection::Field(*field),
            Projection::Element { index, check } => {
                Projection::Element { index: self.expr(index), check: *check }
            }
        };
        path.iter().map(one).collect()
    }

    fn access(&self, access: &Access) -> Access {
        Access {
            array: self.array(access.array),
            subscripts: self.list(&access.subscripts),
            checks: access.checks.clone(),
            span: access.span,
        }
    }

    fn list(&self, list: &[Expr]) -> Vec<Expr> {
        list.iter().map(|expr| self.expr(expr)).collect()
    }

    fn boxed(&self, expr: &Expr) -> Box<Expr> {
        Box::new(self.expr(expr))
    }

    fn stmt(&self, stmt: &Stmt) -> Stmt {
        let kind = match &stmt.kind {
            StmtKind::Let { local, value } => {
                StmtKind::Let { local: self.local(*local), value: self.expr(value) }
            }
            StmtKind::Assign { local, path, value } => {
                StmtKind::Assign { local: self.local(*local), path: self.path(path), value: self.expr(value) }
            }
            StmtKind::DefineArray { array, axes, value } => StmtKind::DefineArray {
                array: self.array(*array),
                axes: self.axes(axes),
                value: self.expr(value),
            },
            StmtKind::Store { axes, access, path, combine, value } => StmtKind::Store {
                axes: self.axes(axes),
                access: self.access(access),
                path: self.path(path),
                combine: *combine,
                value: self.expr(value),
            },
            StmtKind::Forall { axes, body } => {
                StmtKind::Forall { axes: self.axes(axes), body: self.block(body) }
            }
            StmtKind::For { index, low, high, ends, step, goes_on, body } => StmtKind::For {
                goes_on: goes_on.map(|local| self.local(local)),
                index: self.index(*index),
                low: self.expr(low),
                high: self.expr(high),
                ends: *ends,
                step: self.expr(step),
                body: self.block(body),
            },
            StmtKind::While { condition, body } => {
                StmtKind::While { condition: self.expr(condition), body: self.block(body) }
            }
            StmtKind::If { condition, then, otherwise } => StmtKind::If {
                condition: self.expr(condition),
                then: self.block(then),
                otherwise: self.block(otherwise),
            },
            StmtKind::Assert { condition, text, site } => {
                StmtKind::Assert { condition: self.expr(condition), text: text.clone(), site: *site }
            }
            StmtKind::Print { operands, site } => {
                let operand =
                    |one: &Printed| Printed { text: one.text.clone(), value: self.expr(&one.value) };
                StmtKind::Print { operands: operands.iter().map(operand).collect(), site: *site }
            }
        };
        Stmt { kind, span: stmt.span }
    }

    fn expr(&self, expr: &Expr) -> Expr {
        let kind = match &expr.kind {
            ExprKind::Bool(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Param(_) => {
                expr.kind.clone()
            }
            ExprKind::Dim(dim) => match &self.dims[*dim] {
                Some(extent) => extent.kind.clone(),
                None => expr.kind.clone(),
            },
            ExprKind::Local(local) => ExprKind::Local(self.local(*local)),
            ExprKind::Index(index) => ExprKind::Index(self.index(*index)),
            ExprKind::Negate(operand) => ExprKind::Negate(self.boxed(operand)),
            ExprKind::Not(operand) => ExprKind::Not(self.boxed(operand)),
            ExprKind::Binary { op, left, right } => {
                ExprKind::Binary { op: *op, left: self.boxed(left), right: self.boxed(right) }
            }
            ExprKind::Compare { op, left, right } => {
                ExprKind::Compare { op: *op, left: self.boxed(left), right: self.boxed(right) }
            }
            ExprKind::Logical { and, left, right } => {
                ExprKind::Logical { and: *and, left: self.boxed(left), right: self.boxed(right) }
            }
            ExprKind::Cast { operand, to } => ExprKind::Cast { operand: self.boxed(operand), to: *to },
            ExprKind::Call { builtin, arguments } => {
                ExprKind::Call { builtin: *builtin, arguments: self.list(arguments) }
            }
            ExprKind::If { condition, then, otherwise } => ExprKind::If {
                condition: self.boxed(condition),
                then: self.block(then),
                otherwise: self.block(otherwise),
            },
            ExprKind::Block(block) => ExprKind::Block(self.block(block)),
            ExprKind::Load { access, path, otherwise } => ExprKind::Load {
                access: self.access(access),
                path: self.path(path),
                otherwise: otherwise.as_ref().map(|value| self.boxed(value)),
            },
            ExprKind::Project { base, path } => {
                ExprKind::Project { base: self.boxed(base), path: self.path(path) }
            }
            ExprKind::StructLiteral { fields } => ExprKind::StructLiteral { fields: self.list(fields) },
            ExprKind::ArrayLiteral(items) => ExprKind::ArrayLiteral(self.list(items)),
            ExprKind::Reduce { op, axes, body } => {
                let op = match op {
                    Reducer::BuiltIn(_) => *op,
                    Reducer::Own(reduction) => {
                        Reducer::Own(self.reductions[*reduction].unwrap_or(*reduction))
                    }
                };
                ExprKind::Reduce { op, axes: self.axes(axes), body: self.boxed(body) }
            }
        };
        Expr { kind, ty: expr.ty.clone(), span: expr.span }
    }
}

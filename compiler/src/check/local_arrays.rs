//! `let e[c] = …`: local arrays of an iteration, and at kernel level temporaries of the whole grid.

use super::elaborator::Elaborator;
use super::items::duplicate;
use super::occurrences::Node;
use super::scope::Binding;
use super::typed::{ArrayRole, Axis, ExprKind, Stmt, StmtKind};
use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::syntax::ast::{self, AxisDecl, Ident, TypeExpr};

impl<'c, 'a> Elaborator<'c, 'a> {
    #[expect(clippy::too_many_arguments, reason = "the parts of one statement")]
    pub fn let_array(
        &mut self,
        mutable: bool,
        name: &'a Ident,
        decls: &'a [AxisDecl],
        ty: Option<&'a TypeExpr>,
        value: &'a ast::Expr,
        span: Span,
        out: &mut Vec<Stmt>,
    ) {
        let annotation = ty.map(|ty| self.checker.value_type(ty, "the element type of a local array"));
        let region = self.enter_value();
        self.refuse_repeated_axes(decls);
        let axes = self.axes(decls, &[Node::Expr(value)]);
        let storage = annotation.clone().flatten();
        let first = match &storage {
            Some(storage) => self.stored_expr(value, storage, "the element"),
            None => self.literal_or_value(name, value),
        };
        self.leave(region);
        let axes = axes.and_then(|axes| self.local_array_axes(axes));
        let fresh = self.may_shadow(name);
        if annotation.is_some() && storage.is_none() {
            self.failed = true;
        }
        let (Some(first), Some(axes), true) =
            (first, axes, fresh && (annotation.is_none() || storage.is_some()))
        else {
            // What was refused is not told again where it is used.
            self.bind(name, Binding::Poisoned);
            return;
        };
        let role = if self.at_kernel_level { ArrayRole::Temporary } else { ArrayRole::Private };
        let array = self.declare_array(name, role, storage.unwrap_or_else(|| first.ty.clone()));
        self.kernel.arrays[array].extents = axes.iter().map(|axis| axis.high.clone()).collect();
        self.bind(name, Binding::Array { id: array, mutable });
        if annotation.is_none() {
            self.remember_literal_array(array, name, value);
        }
        out.push(Stmt { kind: StmtKind::DefineArray { array, axes, value: first }, span });
    }

    pub fn refuse_repeated_axes(&mut self, decls: &[AxisDecl]) {
        for (at, decl) in decls.iter().enumerate() {
            if let Some(first) = decls[..at].iter().find(|first| first.name.name == decl.name.name) {
                self.report(duplicate(codes::E0106, "index", &decl.name, first.name.span));
            }
        }
    }

    /// Each axis starts at 0, and its extent is known before the kernel is launched.
    fn local_array_axes(&mut self, axes: Vec<Axis>) -> Option<Vec<Axis>> {
        let mut result = Vec::with_capacity(axes.len());
        for axis in axes {
            let name = &self.kernel.indices[axis.index];
            let (span, text) = (name.span, name.name.clone());
            if !matches!(axis.low.kind, ExprKind::Int(0)) {
                return self.refuse(
                    Diagnostic::error(
                        codes::E0310,
                        axis.low.span,
                        format!("the axis `{text}` of a local array must start at 0"),
                        "this is its first index",
                    )
                    .help(format!("write `{text} in 0..…` and shift the subscripts in the value")),
                );
            }
            let host_indices = std::mem::take(&mut self.host_indices);
            let high = self.host_expr(&axis.high, &[]);
            self.host_indices = host_indices;
            match high {
                Ok(high) => result.push(Axis { high, ..axis }),
                Err(culprit) if culprit.too_long => {
                    return self.refuse(culprit.too_long());
                }
                Err(culprit) => {
                    return self.refuse(
                        Diagnostic::error(
                            codes::E0312,
                            axis.high.span,
                            format!("the extent of the axis `{text}` must be known before the kernel runs"),
                            "this extent",
                        )
                        .label(culprit.span, "this differs from iteration to iteration")
                        .label(span, "the axis")
                        .help("give the array a fixed extent that is large enough, and use a part of it"),
                    );
                }
            }
        }
        Some(result)
    }
}

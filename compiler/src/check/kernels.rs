//! `kernel` items: parameters, dimensions, results, facts, body, schedules.

use super::elaborator::{Elaborator, Home, int64};
use super::items::{Checker, duplicate};
use super::polynomial::linear_extent;
use super::prove;
use super::scope::{Binding, Literals};
use super::typed::{Array, ArrayId, ArrayRole, Dim, DimId, Kernel, Param, ResultStart, SignatureItem, Type};
use super::types;
use crate::data::LinearExtent;
use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::source::Span;
use crate::syntax::ast::{self, ExprKind, Ident, Item, KernelItem, TypeExpr};
use crate::syntax::{BoundDimension, bound_dimensions};
use rustc_hash::FxHashMap;

impl<'a> Checker<'a> {
    pub fn kernels(&mut self) {
        let file = self.file;
        let schedules = self.schedules_by_kernel();
        self.program.levels = self.levels_of_file();
        for item in &file.items {
            let Item::Kernel(item) = item else { continue };
            if self.is_duplicate(&item.name) {
                continue;
            }
            let schedules = schedules.get(item.name.name.as_str()).map_or(&[][..], Vec::as_slice);
            if let Some(kernel) = self.kernel_item(item, schedules) {
                self.program.kernels.push(kernel);
            }
        }
    }

    fn kernel_item(&mut self, item: &'a KernelItem, schedules: &[&'a ast::ScheduleItem]) -> Option<Kernel> {
        let mut kernel = self.settled(|checker, literals| checker.elaborated(item, schedules, literals))?;
        let mut found = Diagnostics::new();
        prove::run(&mut kernel, &self.program, &mut found);
        let sound = !found.has_errors();
        self.diagnostics.extend(found);
        sound.then_some(kernel)
    }

    fn elaborated(
        &mut self,
        item: &'a KernelItem,
        schedules: &[&'a ast::ScheduleItem],
        literals: &mut Literals,
    ) -> Option<Kernel> {
        let mut elaborator = Elaborator::new(self, Home::Kernel, &item.name, item.span);
        elaborator.literals = std::mem::take(literals);
        let region = elaborator.enter();
        let arrays = elaborator.declare_signature(item);
        let open = elaborator.bind_dimensions(item.params.iter().map(|param| (&param.name, &param.ty)));
        elaborator.extents(arrays);
        elaborator.linear_extents(open);
        for fact in &item.facts {
            elaborator.fact(fact);
        }
        let body = elaborator.enter();
        let block = elaborator.statement_block(&item.body);
        elaborator.leave(body);
        elaborator.kernel.body = block.statements;
        // After the body, which may say how far the values reach.
        for fact in &item.facts {
            elaborator.injection(fact);
        }
        elaborator.schedules(item, schedules);
        elaborator.leave(region);
        elaborator.report_unexplained();
        *literals = std::mem::take(&mut elaborator.literals);
        (!elaborator.failed).then_some(elaborator.kernel)
    }
}

impl<'c, 'a> Elaborator<'c, 'a> {
    /// Parameters and results, with their extents still to come.
    fn declare_signature(&mut self, item: &'a KernelItem) -> Vec<(&'a Ident, &'a TypeExpr, Option<ArrayId>)> {
        let mut names: FxHashMap<&str, Span> = FxHashMap::default();
        let mut arrays = Vec::new();
        let params = item.params.iter().map(|param| (&param.name, &param.ty, param.inout.is_some(), false));
        let results = item.results.iter().map(|result| (&result.name, &result.ty, false, true));
        for (name, ty, inout, is_result) in params.chain(results) {
            if let Some(first) = names.insert(&name.name, name.span) {
                let what = if is_result { "result" } else { "parameter" };
                self.report(duplicate(codes::E0106, what, name, first));
                continue;
            }
            let Some(element_type) = self.checker.named_type(&ty.name) else {
                self.failed = true;
                self.bind(name, Binding::Poisoned);
                arrays.push((name, ty, None));
                continue;
            };
            let role = match (is_result, inout, ty.extents.is_some()) {
                (true, _, _) => ArrayRole::Result(ResultStart::Zero),
                (_, true, _) => ArrayRole::InOut,
                (_, _, true) => ArrayRole::Input,
                _ => {
                    let id = self.kernel.params.push(Param {
                        name: name.name.clone(),
                        ty: element_type,
                        span: name.span,
                    });
                    self.kernel.signature.push(SignatureItem::Param(id));
                    self.bind(name, Binding::Param(id));
                    continue;
                }
            };
            let id = self.declare_array(name, role, element_type);
            self.kernel.signature.push(SignatureItem::Array(id));
            self.bind(name, Binding::Array { id, mutable: role != ArrayRole::Input });
            arrays.push((name, ty, Some(id)));
        }
        // A result is written, not read: it counts as used.
        for result in &item.results {
            self.scope.read(&result.name.name);
        }
        arrays
    }

    pub fn declare_array(&mut self, name: &Ident, role: ArrayRole, ty: Type) -> ArrayId {
        let element = types::element(&self.checker.program, &ty)
            .unwrap_or_else(|| crate::data::ElementType::scalar(crate::data::Scalar::F32));
        self.kernel.arrays.push(Array {
            name: name.name.clone(),
            span: name.span,
            role,
            ty,
            element,
            extents: Vec::new(),
        })
    }

    /// What the shapes of parameters bind. Given back are the extents that are more than their dimension: they wait for
    /// [`Elaborator::linear_extents`].
    pub fn bind_dimensions(
        &mut self,
        params: impl Iterator<Item = (&'a Ident, &'a TypeExpr)> + Clone,
    ) -> Vec<(DimId, &'a ast::Expr)> {
        let bound = bound_dimensions(params.clone().map(|(_, ty)| ty), &|name| self.is_unbound(name));
        let mut open = Vec::new();
        for BoundDimension { name, param, axis, extent } in bound {
            let array = params.clone().nth(param).and_then(|(name, _)| self.scope.get(&name.name));
            let Some(Binding::Array { id, .. }) = array.map(|entry| entry.binding) else {
                self.bind(name, Binding::Poisoned);
                continue;
            };
            let (span, plain) = (name.span, LinearExtent::default());
            let dim =
                self.kernel.dims.push(Dim { name: name.name.clone(), span, array: id, axis, extent: plain });
            self.bind(name, Binding::Dim(dim));
            if !matches!(extent.kind, ExprKind::Name(_)) {
                open.push((dim, extent));
            }
        }
        open
    }

    /// What extents are of the dimensions that they bind, as [`Elaborator::bind_dimensions`] gave them.
    pub fn linear_extents(&mut self, open: Vec<(DimId, &'a ast::Expr)>) {
        for (id, extent) in open {
            if self.failed {
                return;
            }
            // Of the dimension, also where its size is fixed.
            let fixed = std::mem::replace(&mut self.fixes_sizes, false);
            let value = self.shape_extent(extent);
            self.fixes_sizes = fixed;
            let Some(value) = value else { continue };
            if let Some(linear) = linear_extent(&value, id) {
                self.kernel.dims[id].extent = linear;
                continue;
            }
            let (name, span) = (self.kernel.dims[id].name.clone(), self.kernel.dims[id].span);
            self.report(
                Diagnostic::error(
                    codes::E0115,
                    span,
                    format!("the extent does not say what `{name}` is"),
                    format!(
                        "an extent binds `{name}`, or a multiple of it plus a constant: `2 * {name} + 1`"
                    ),
                )
                .help(format!(
                    "let `{name}` stand by itself in the shape of some parameter, or pass it as a number"
                )),
            );
        }
    }

    pub fn extents(&mut self, arrays: Vec<(&'a Ident, &'a TypeExpr, Option<ArrayId>)>) {
        for (name, ty, id) in arrays {
            let extents: Vec<_> =
                ty.extents.iter().flatten().map(|extent| self.shape_extent(extent)).collect();
            let Some(id) = id else { continue };
            match extents.into_iter().collect::<Option<Vec<_>>>() {
                Some(extents) => self.kernel.arrays[id].extents = extents,
                None => {
                    // Its rank is known: uses of it are poisoned, not counted.
                    let rank = ty.extents.as_ref().map_or(0, Vec::len);
                    self.kernel.arrays[id].extents = vec![int64(0, name.span); rank];
                    self.scope.read(&name.name);
                    self.scope.bind(&name.name, Binding::Poisoned, name.span, 0);
                }
            }
        }
    }
}

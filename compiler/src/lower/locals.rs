//! Local arrays: in local memory where their extents are small constants; otherwise in scratch memory, one copy
//! an iteration of all loops around (`iterations.rs`). In scratch the loops' indices come last, so that neighbouring threads
//! touch neighbouring elements.

use super::host::Limit;
use super::{Lowerer, OpenLoop, OwnAxis, Storage};
use crate::check::typed::{ArrayId, ArrayRole, Axis, Expr};
use crate::check::walk::walk_expr;
use crate::diagnostic::{Diagnostic, codes};
use crate::ir::entities::Value;
use crate::ir::kernel::{BufferData, BufferKind};
use crate::ir::op::Opcode;
use crate::manifest;

/// The most bytes of one local array that are kept in local memory.
const LOCAL_MEMORY_BYTES: i128 = 4096;

impl<'a> Lowerer<'a> {
    pub fn define_array(&mut self, array: ArrayId, axes: &'a [Axis], value: &'a Expr) {
        if self.typed.arrays[array].role == ArrayRole::Private {
            self.declare_local(array);
        }
        self.for_all(axes, &|visit| walk_expr(value, visit), |lowerer| {
            let subscripts: Vec<Value> = axes.iter().filter_map(|axis| lowerer.indices[axis.index]).collect();
            let values = lowerer.expression(value);
            let ty = lowerer.typed.arrays[array].ty.clone();
            lowerer.store_leaves(array, &subscripts, 0, &[], &ty, &values, None);
        });
    }

    /// The launch checks an extent that may be negative or too large also where the array is no memory in the end.
    pub fn limit_extent(&mut self, array: &str, axis: usize, extent: &Expr, host: &manifest::Expr) {
        if self.builder.kernel().never_negative(host) {
            return;
        }
        let within = manifest::Expr::binary(
            manifest::BinaryOp::And,
            manifest::Expr::binary(manifest::BinaryOp::GreaterEqual, host.clone(), manifest::Expr::Int(0)),
            manifest::Expr::binary(manifest::BinaryOp::LessEqual, host.clone(), manifest::Expr::Int(1 << 36)),
        );
        let end = format!("is from 0 to 2^36, the extent of axis {axis} of `{array}`");
        self.declare_limits(vec![Limit { condition: within, span: extent.span, end }]);
    }

    fn declare_local(&mut self, id: ArrayId) {
        let array = &self.typed.arrays[id];
        let mut extents: Vec<manifest::Expr> = Vec::with_capacity(array.extents.len());
        for (axis, extent) in array.extents.iter().enumerate() {
            let host = self.extent(extent);
            self.limit_extent(&array.name, axis, extent, &host);
            extents.push(host);
        }
        let mut data = BufferData {
            name: array.name.clone(),
            kind: BufferKind::Private,
            element: array.element.clone(),
            extents,
            layout: manifest::Layout::Aos,
            layout_fixed: true,
            cache: None,
            runs_on: false,
        };
        if let Some(extents) = self.small_extents(id) {
            data.extents = extents.into_iter().map(manifest::Expr::Int).collect();
            let buffer = self.builder.add_buffer(data);
            self.arrays[id] = Some(Storage::Plain(buffer));
            return;
        }
        if self.around.iter().any(|open| matches!(open, OpenLoop::Forall { is_counted: false, .. })) {
            self.diagnostics.push(
                Diagnostic::error(
                    codes::E0602,
                    array.span,
                    format!("the size of `{}` is not known before the launch", array.name),
                    "needs one copy an iteration, and how many iterations there are only the device knows",
                )
                .help("give the array constant extents of at most 4096 bytes, or the `forall` a range over dimensions"),
            );
        }
        data.kind = BufferKind::Scratch;
        let mut copies = Vec::new();
        let counted = |open: &OpenLoop| match open {
            OpenLoop::Forall { own, .. } => own.clone(),
            OpenLoop::Ordered(_) => Vec::new(),
        };
        for OwnAxis { index, low, extent } in self.around.iter().flat_map(counted).collect::<Vec<_>>() {
            data.extents.push(extent);
            copies.push(self.builder.binary(Opcode::Sub, index, low));
        }
        let buffer = self.builder.add_buffer(data);
        self.arrays[id] = Some(Storage::Expanded(buffer, copies));
    }

    /// The extents of an array that is kept in local memory: small constants.
    pub fn small_extents(&self, id: ArrayId) -> Option<Vec<i64>> {
        let array = &self.typed.arrays[id];
        let literal = |extent| self.host_expression(extent)?.0.evaluate_int(&[]);
        let extents: Vec<i128> = array.extents.iter().map(literal).collect::<Option<_>>()?;
        let size = i128::from(array.element.size);
        let bytes = extents.iter().try_fold(size, |bytes, extent| bytes.checked_mul(*extent))?;
        let fits = (0..=LOCAL_MEMORY_BYTES).contains(&bytes);
        fits.then(|| extents.into_iter().map(i64::try_from).collect::<Result<_, _>>().ok())?
    }
}

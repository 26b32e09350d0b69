//! Reductions of the file's own: each that a kernel uses becomes a combiner of its table.

use super::Lowerer;
use crate::check::typed::{Expr, ExprKind, ReductionId};
use crate::data::Scalar;
use crate::ir::builder::KernelBuilder;
use crate::ir::entities::Value;
use crate::ir::kernel::CombinerData;
use crate::ir::op::{Combiner, Constant};
use std::sync::Arc;

impl<'a> Lowerer<'a> {
    pub fn own_combiner(&mut self, reduction: ReductionId) -> Combiner {
        if let Some(known) = self.combiners[reduction].expand() {
            return self.builder.kernel().own_combiner(known);
        }
        let typed = self.typed;
        let data = &typed.reductions[reduction];
        let types: Vec<_> = self.storage(&data.ty).iter().map(|scalar| scalar.widened()).collect();
        let mut identity = Vec::new();
        literals(&data.identity, &mut identity);
        let outer = std::mem::replace(&mut self.builder, KernelBuilder::new(data.name.clone(), data.span));
        self.builder.begin_launch(data.name.clone());
        for local in data.params {
            let name = &typed.locals[local].name;
            let values: Vec<Value> = types.iter().map(|ty| self.builder.root_param(*ty)).collect();
            values.iter().for_each(|value| self.builder.name(*value, name));
            self.locals[local] = Some(values);
        }
        let values = self.block_value(&data.body);
        let values = self.rounded(&data.ty, values);
        self.builder.end_code(&values);
        let code = std::mem::replace(&mut self.builder, outer).finish(Vec::new());
        let data = CombinerData { name: data.name.clone(), types, identity, code: Arc::new(code) };
        let own = self.builder.kernel_mut().combiners.push(data);
        self.combiners[reduction] = own.into();
        self.builder.kernel().own_combiner(own)
    }
}

/// The scalars of a value that is made of literals, in their wide types.
fn literals(value: &Expr, found: &mut Vec<Constant>) {
    let scalar = value.ty.as_scalar().map(Scalar::widened);
    match (&value.kind, scalar) {
        (ExprKind::Bool(value), _) => found.push(Constant::Bool(*value)),
        (ExprKind::Int(value), Some(scalar)) => found.push(Constant::Int(scalar, *value)),
        (ExprKind::Float(value), Some(Scalar::F64)) => found.push(Constant::F64(value.to_bits())),
        (ExprKind::Float(value), _) => found.push(Constant::F32((*value as f32).to_bits())),
        (ExprKind::StructLiteral { fields: parts } | ExprKind::ArrayLiteral(parts), _) => {
            parts.iter().for_each(|part| literals(part, found));
        }
        _ => {}
    }
}

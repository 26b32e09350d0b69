//! Loads and stores of array elements or parts of them; checks and guards.

use super::{Lowerer, Storage, structs};
use crate::check::typed::{Access, ArrayId, BoundsCheck, Combine, CombineOp, Expr, Projection, Type};
use crate::data::Scalar;
use crate::ir::entities::{Buffer, Value};
use crate::ir::op::{Combiner, Opcode};
use crate::mutants::mutant;

/// An access with everything but the memory operation done.
struct Resolved {
    subscripts: Vec<Value>,
    /// The first leaf of the part that is accessed.
    leaf: usize,
    /// Indices into the fixed arrays around it.
    sub: Vec<Value>,
    ty: Type,
    /// What must hold for a checked or guarded access to happen.
    inside: Option<Value>,
}

impl<'a> Lowerer<'a> {
    fn storage_of(&self, array: ArrayId) -> (Buffer, Vec<Value>) {
        match &self.arrays[array] {
            Some(Storage::Plain(buffer)) => (*buffer, Vec::new()),
            Some(Storage::Expanded(buffer, copies)) => (*buffer, copies.clone()),
            None => unreachable!("the checker lets no array be used before its definition"),
        }
    }

    /// Evaluates subscripts and path, and emits the checks.
    fn resolve(&mut self, access: &'a Access, path: &'a [Projection]) -> Resolved {
        let typed = self.typed;
        let array = &typed.arrays[access.array];
        let mut inside = None;
        let mut subscripts = Vec::with_capacity(access.subscripts.len());
        for (axis, (subscript, check)) in access.subscripts.iter().zip(&access.checks).enumerate() {
            let index = self.scalar(subscript);
            subscripts.push(index);
            if self.is_tested(*check) {
                let extent = self.scalar(&array.extents[axis]);
                self.bounds_check(*check, index, extent, &mut inside);
            }
        }
        let mut resolved = Resolved { subscripts, leaf: 0, sub: Vec::new(), ty: array.ty.clone(), inside };
        for step in path {
            match step {
                Projection::Field(field) => {
                    let (leaves, _, ty) = structs::before_field(self.program, &resolved.ty, *field);
                    resolved.leaf += leaves;
                    resolved.ty = ty;
                }
                Projection::Element { index, check } => {
                    let Type::Array(element, extent) = resolved.ty.clone() else { continue };
                    let index = self.scalar(index);
                    if self.is_tested(*check) {
                        let extent = self.builder.constant_index(extent as i64);
                        self.bounds_check(*check, index, extent, &mut resolved.inside);
                    }
                    resolved.sub.push(index);
                    resolved.ty = *element;
                }
            }
        }
        resolved
    }

    /// Whether the device compares a subscript with its extent.
    pub fn is_tested(&self, check: BoundsCheck) -> bool {
        match check {
            BoundsCheck::Proved => false,
            BoundsCheck::Runtime(_) => !self.options.unchecked,
            BoundsCheck::Guarded => true,
        }
    }

    /// Compares a subscript with its extent, records a failure where that is a mistake, and adds the condition to `inside`.
    pub fn bounds_check(
        &mut self,
        check: BoundsCheck,
        index: Value,
        extent: Value,
        inside: &mut Option<Value>,
    ) {
        let both = match check {
            BoundsCheck::Runtime(site) => self.builder.check(self.site(site), index, extent),
            _ => {
                let zero = self.builder.constant_index(0);
                let above = mutant!(
                    "lower: a guarded subscript may be negative",
                    self.builder.compare(Opcode::Ge, index, zero),
                    self.builder.constant_bool(true)
                );
                let less = mutant!("lower: a guarded subscript may be the extent", Opcode::Lt, Opcode::Le);
                let below = self.builder.compare(less, index, extent);
                self.builder.binary(Opcode::And, above, below)
            }
        };
        *inside = Some(match *inside {
            None => both,
            Some(before) => self.builder.binary(Opcode::And, before, both),
        });
    }

    pub fn load(
        &mut self,
        access: &'a Access,
        path: &'a [Projection],
        otherwise: Option<&'a Expr>,
    ) -> Vec<Value> {
        let resolved = self.resolve(access, path);
        let Some(inside) = resolved.inside else { return self.load_leaves(access.array, &resolved) };
        let carried = otherwise.map(|otherwise| self.assigned_in(&[], &[otherwise])).unwrap_or_default();
        self.branch_values(
            inside,
            &mut |lowerer| lowerer.load_leaves(access.array, &resolved),
            &mut |lowerer| match otherwise {
                Some(otherwise) => lowerer.expression(otherwise),
                None => lowerer.zeros(&resolved.ty),
            },
            &carried,
        )
    }

    /// What a load gives whose check fails: all bits 0.
    fn zeros(&mut self, ty: &Type) -> Vec<Value> {
        let storage = self.storage(ty);
        storage.into_iter().map(|scalar| self.zero(scalar)).collect()
    }

    fn zero(&mut self, scalar: Scalar) -> Value {
        match scalar.widened() {
            Scalar::Bool => self.builder.constant_bool(false),
            Scalar::F32 => self.builder.constant_f32(0.0),
            Scalar::F64 => self.builder.constant_f64(0.0),
            wide => self.builder.constant_int(wide, 0),
        }
    }

    fn load_leaves(&mut self, array: ArrayId, resolved: &Resolved) -> Vec<Value> {
        let (buffer, copies) = self.storage_of(array);
        structs::places(self.program, &resolved.ty)
            .into_iter()
            .map(|place| {
                let indices = self.indices_of(&resolved.subscripts, &copies, &resolved.sub, &place.indices);
                self.builder.load(buffer, (resolved.leaf + place.leaf) as u32, &indices)
            })
            .collect()
    }

    fn indices_of(
        &mut self,
        subscripts: &[Value],
        copies: &[Value],
        sub: &[Value],
        fixed: &[u64],
    ) -> Vec<Value> {
        let mut indices = [subscripts, copies, sub].concat();
        for index in fixed {
            indices.push(self.builder.constant_index(*index as i64));
        }
        indices
    }

    pub fn store(
        &mut self,
        access: &'a Access,
        path: &'a [Projection],
        combine: Option<Combine>,
        value: &'a Expr,
    ) {
        let values = self.expression(value);
        let resolved = self.resolve(access, path);
        let (array, leaf) = (access.array, resolved.leaf);
        if let Some(inside) = resolved.inside {
            self.builder.begin_if(inside);
        }
        self.store_leaves(array, &resolved.subscripts, leaf, &resolved.sub, &resolved.ty, &values, combine);
        if resolved.inside.is_some() {
            self.builder.begin_else(&[]);
            self.builder.end_if(&[]);
        }
    }

    /// Writes or combines every scalar of a value.
    #[allow(clippy::too_many_arguments)]
    pub fn store_leaves(
        &mut self,
        array: ArrayId,
        subscripts: &[Value],
        leaf: usize,
        sub: &[Value],
        ty: &Type,
        values: &[Value],
        combine: Option<Combine>,
    ) {
        let (buffer, copies) = self.storage_of(array);
        for (place, value) in structs::places(self.program, ty).into_iter().zip(values) {
            let indices = self.indices_of(subscripts, &copies, sub, &place.indices);
            let leaf = (leaf + place.leaf) as u32;
            match combine {
                None => self.builder.store(buffer, leaf, &indices, *value),
                Some(Combine { op, may_meet: true }) => {
                    self.builder.atomic(buffer, leaf, combiner(op), &indices, *value);
                }
                Some(Combine { op, may_meet: false }) => {
                    let old = self.builder.load(buffer, leaf, &indices);
                    let new = self.builder.binary(combining_op(op), old, *value);
                    self.builder.store(buffer, leaf, &indices, new);
                }
            }
        }
    }
}

fn combiner(op: CombineOp) -> Combiner {
    match op {
        CombineOp::Add => Combiner::Add,
        CombineOp::Mul => Combiner::Mul,
        CombineOp::Min => Combiner::Min,
        CombineOp::Max => Combiner::Max,
        CombineOp::And => Combiner::And,
        CombineOp::Or => Combiner::Or,
        CombineOp::Xor => Combiner::Xor,
    }
}

fn combining_op(op: CombineOp) -> Opcode {
    match op {
        CombineOp::Add => Opcode::Add,
        CombineOp::Mul => Opcode::Mul,
        CombineOp::Min => Opcode::Min,
        CombineOp::Max => Opcode::Max,
        CombineOp::And => Opcode::And,
        CombineOp::Or => Opcode::Or,
        CombineOp::Xor => Opcode::Xor,
    }
}

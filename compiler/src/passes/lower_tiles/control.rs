//! Branches and loops of a block: what they carry, register by register.

use super::Lowering;
use super::registers::Shape;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Value};
use crate::ir::kernel::InstData;
use std::cell::RefCell;

impl Lowering<'_> {
    /// The shapes of values, one by one.
    fn shapes(&mut self, emit: &Emit<'_>, values: &[Value]) -> Vec<Shape> {
        values.iter().map(|value| self.registers.shape_of(emit.kernel, self.tiling, *value)).collect()
    }

    /// The scalars of values that become values of these shapes, which may have more axes.
    fn flat(&self, values: &[Value], shapes: &[Shape]) -> Vec<Value> {
        let registers = values.iter().zip(shapes);
        registers
            .flat_map(|(value, shape)| shape.own.iter().map(|register| self.registers.get(*value, *register)))
            .collect()
    }

    /// Says that values of these shapes are these scalars.
    fn bind(&mut self, values: &[Value], shapes: &[Shape], mut scalars: &[Value]) {
        for (value, shape) in values.iter().zip(shapes) {
            let (own, rest) = scalars.split_at(shape.own.len());
            self.registers.set(*value, shape.clone(), own.to_vec());
            scalars = rest;
        }
    }

    /// A region: what it yields, as values of these shapes.
    fn region(&mut self, emit: &mut Emit<'_>, region: Block, shapes: &[Shape]) -> Vec<Value> {
        self.block(emit, region);
        let yields = emit.kernel.yields(region).to_vec();
        self.flat(&yields, shapes)
    }

    pub(super) fn branch(&mut self, emit: &mut Emit<'_>, data: &InstData) {
        let condition = self.registers.get(data.arguments[0], 0);
        let shapes = self.shapes(emit, &data.results);
        let [then, otherwise] = [0, 1].map(|at| data.regions[at]);
        let this = RefCell::new(&mut *self);
        let run = |emit: &mut Emit<'_>, region| this.borrow_mut().region(emit, region, &shapes);
        let results = emit.if_else(condition, |emit| run(emit, then), |emit| run(emit, otherwise));
        self.bind(&data.results, &shapes, &results);
    }

    pub(super) fn for_loop(&mut self, emit: &mut Emit<'_>, data: &InstData) {
        let bounds = [0, 1, 2].map(|at| self.registers.get(data.arguments[at], 0));
        let shapes = self.shapes(emit, &data.results);
        let initial = self.flat(&data.arguments[3..], &shapes);
        let name = data.payload.axes().first().map(|axis| emit.kernel.axes[*axis].name.clone());
        let region = data.regions[0];
        let params = emit.kernel.blocks[region].params.clone();
        self.loops += 1;
        let (low, high, step) = bounds.into();
        let results =
            emit.for_loop(&name.unwrap_or_default(), (low, high, step), &initial, |emit, index, carried| {
                let index_shape = self.shapes(emit, &params[..1]);
                self.bind(&params[..1], &index_shape, &[index]);
                self.bind(&params[1..], &shapes, carried);
                self.region(emit, region, &shapes)
            });
        self.loops -= 1;
        self.bind(&data.results, &shapes, &results);
    }

    pub(super) fn while_loop(&mut self, emit: &mut Emit<'_>, data: &InstData) {
        let shapes = self.shapes(emit, &data.results);
        let initial = self.flat(&data.arguments, &shapes);
        let [condition, body] = [0, 1].map(|at| data.regions[at]);
        let params = [condition, body].map(|region| emit.kernel.blocks[region].params.clone());
        self.loops += 1;
        let this = RefCell::new(&mut *self);
        let results = emit.while_loop(
            &initial,
            |emit, carried| {
                let mut this = this.borrow_mut();
                this.bind(&params[0], &shapes, carried);
                this.block(emit, condition);
                let holds = emit.kernel.yields(condition)[0];
                this.registers.get(holds, 0)
            },
            |emit, carried| {
                let mut this = this.borrow_mut();
                this.bind(&params[1], &shapes, carried);
                this.region(emit, body, &shapes)
            },
        );
        self.loops -= 1;
        self.bind(&data.results, &shapes, &results);
    }
}

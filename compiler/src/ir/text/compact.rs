//! Renumbering in the order of the text.

use crate::ir::entities::{Axis, Block, Inst, Value};
use crate::ir::kernel::{BlockData, Definition, InstData, Kernel, Payload, Regions, Short};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap};

impl Kernel {
    /// The same kernel without dead instructions, values, blocks and axes, and without what passes said of its schedule,
    /// the rest numbered in the order of the text: what parsing its text gives.
    pub fn compacted(&self) -> Kernel {
        let mut compactor = Compactor {
            old: self,
            values: SecondaryMap::new(),
            new: Kernel {
                blocks: PrimaryMap::new(),
                insts: PrimaryMap::new(),
                values: PrimaryMap::new(),
                axes: PrimaryMap::new(),
                ..self.clone()
            },
        };
        for launch in self.launches.keys() {
            let body = compactor.block(self.launches[launch].body, &mut |_, _| {});
            compactor.new.launches[launch].body = body;
        }
        for data in compactor.new.combiners.values_mut() {
            data.code = std::sync::Arc::new(data.code.compacted());
        }
        compactor.new.schedule.choices.clear();
        compactor.new.schedule.spreads.clear();
        compactor.new.schedule.tiles.clear();
        for scheduled in &mut compactor.new.schedule.directives {
            scheduled.outcome = Default::default();
        }
        compactor.new
    }
}

struct Compactor<'k> {
    old: &'k Kernel,
    new: Kernel,
    values: SecondaryMap<Value, PackedOption<Value>>,
}

impl Compactor<'_> {
    fn define(&mut self, old: Value, definition: Definition) -> Value {
        let mut data = self.old.values[old].clone();
        data.definition = definition;
        let new = self.new.values.push(data);
        self.values[old] = new.into();
        new
    }

    /// Copies a block; `enter` is told of it before what is inside.
    fn block(&mut self, old: Block, enter: &mut impl FnMut(&mut Self, Block)) -> Block {
        let source = self.old;
        let new = self.new.blocks.push(BlockData::default());
        enter(self, new);
        for (at, param) in source.blocks[old].params.iter().enumerate() {
            let param = self.define(*param, Definition::Param(new, at as u16));
            self.new.blocks[new].params.push(param);
        }
        for inst in &source.blocks[old].insts {
            self.inst(*inst, new);
        }
        new
    }

    fn inst(&mut self, old: Inst, block: Block) {
        let data = &self.old.insts[old];
        let mut payload = data.payload.clone();
        if let Payload::Loop { axes } | Payload::Reduce { axes, .. } = &mut payload {
            for axis in axes {
                *axis = self.axis(*axis);
            }
        }
        // A use whose definition does not come first is broken; it keeps its number for the verifier to find.
        let arguments =
            data.arguments.iter().map(|value| self.values[*value].expand().unwrap_or(*value)).collect();
        let new = self.new.insts.push(InstData {
            opcode: data.opcode,
            payload,
            arguments,
            results: Short::new(),
            regions: Regions::new(),
            span: data.span,
        });
        self.new.blocks[block].insts.push(new);
        for region in &data.regions {
            self.block(*region, &mut |compactor, block| compactor.new.insts[new].regions.push(block));
        }
        for (at, result) in data.results.iter().enumerate() {
            let result = self.define(*result, Definition::Result(new, at as u16));
            self.new.insts[new].results.push(result);
        }
    }

    fn axis(&mut self, old: Axis) -> Axis {
        self.new.axes.push(self.old.axes[old].clone())
    }
}

//! Kernels taken apart: each launch as a kernel of its own, so that several can be worked on at the same time.
//!
//! A part has the declarations of the whole (symbols, buffers, sites, facts, arguments), by the same numbers, and one
//! launch; the plan is what leads to it. Its instructions, values, blocks and axes are numbered anew, in the order of
//! their numbers in the whole: what a pass decides by comparing numbers, it decides alike.

mod part;

use super::entities::{Axis, Block, Inst, Value};
use super::kernel::{BlockData, Definition, Kernel, LaunchData, Module, Payload, ValueData};
use super::schedule::Schedule;
use cranelift_entity::{EntityRef, PrimaryMap};

/// A kernel in parts.
#[derive(Clone, Debug)]
pub struct Apart {
    /// All but the bodies ([`Kernel::declarations`]).
    pub declarations: Kernel,
    /// One for each launch, in their order ([`Kernel::part`]); none where nobody asks for bodies.
    pub parts: Vec<Kernel>,
}

/// A module whose kernels are in parts.
#[derive(Clone, Debug, Default)]
pub struct ModuleApart {
    /// All but the kernels.
    pub rest: Module,
    pub kernels: Vec<Apart>,
}

impl ModuleApart {
    /// The module with its kernels in one piece.
    pub fn join(&self) -> Module {
        Module { kernels: self.kernels.iter().map(Apart::join).collect(), ..self.rest.clone() }
    }
}

impl Apart {
    /// The kernel in one piece.
    pub fn join(&self) -> Kernel {
        let mut kernel = self.declarations.clone();
        for (launch, part) in self.declarations.launches.keys().zip(&self.parts) {
            let Some((_, data)) = part.launches.iter().next() else { continue };
            let shift = Shift {
                blocks: kernel.blocks.len(),
                insts: kernel.insts.len(),
                values: kernel.values.len(),
                axes: kernel.axes.len(),
            };
            shift.append(&mut kernel, part);
            let body = shift.block(data.body);
            kernel.launches[launch] = LaunchData { body, ..data.clone() };
        }
        kernel
    }
}

/// How far the numbers of a part are from those in the whole.
struct Shift {
    blocks: usize,
    insts: usize,
    values: usize,
    axes: usize,
}

impl Shift {
    fn block(&self, block: Block) -> Block {
        Block::new(block.index() + self.blocks)
    }

    fn inst(&self, inst: Inst) -> Inst {
        Inst::new(inst.index() + self.insts)
    }

    fn value(&self, value: Value) -> Value {
        Value::new(value.index() + self.values)
    }

    fn append(&self, kernel: &mut Kernel, part: &Kernel) {
        let axis = |axis: &mut Axis| *axis = Axis::new(axis.index() + self.axes);
        for data in part.blocks.values() {
            let params = data.params.iter().map(|value| self.value(*value)).collect();
            kernel
                .blocks
                .push(BlockData { params, insts: data.insts.iter().map(|inst| self.inst(*inst)).collect() });
        }
        for data in part.insts.values() {
            let mut data = data.clone();
            data.arguments.iter_mut().for_each(|value| *value = self.value(*value));
            data.results.iter_mut().for_each(|value| *value = self.value(*value));
            data.regions.iter_mut().for_each(|block| *block = self.block(*block));
            if let Payload::Loop { axes } | Payload::Reduce { axes, .. } = &mut data.payload {
                axes.iter_mut().for_each(axis);
            }
            kernel.insts.push(data);
        }
        for data in part.values.values() {
            let definition = match data.definition {
                Definition::Result(inst, at) => Definition::Result(self.inst(inst), at),
                Definition::Param(block, at) => Definition::Param(self.block(block), at),
            };
            kernel.values.push(ValueData { definition, ..data.clone() });
        }
        part.axes.values().for_each(|data| {
            kernel.axes.push(data.clone());
        });
    }
}

impl Kernel {
    /// The kernel without what its launches do.
    pub fn declarations(&self) -> Kernel {
        Kernel {
            launches: self.launches.clone(),
            plan: self.plan.clone(),
            schedule: self.schedule.clone(),
            ..self.shared_declarations()
        }
    }

    /// What all launches share: a kernel without launches and without a schedule.
    fn shared_declarations(&self) -> Kernel {
        Kernel {
            name: self.name.clone(),
            span: self.span,
            arguments: self.arguments.clone(),
            facts: self.facts.clone(),
            injections: self.injections.clone(),
            symbols: self.symbols.clone(),
            buffers: self.buffers.clone(),
            sites: self.sites.clone(),
            combiners: self.combiners.clone(),
            launches: PrimaryMap::new(),
            past: Vec::new(),
            plan: Vec::new(),
            axes: PrimaryMap::new(),
            blocks: PrimaryMap::new(),
            insts: PrimaryMap::new(),
            values: PrimaryMap::new(),
            specialization: self.specialization.clone(),
            schedule: Schedule::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::entities::Launch;
    use crate::ir::testing::generate;
    use crate::ir::text::{PrintOptions, print_kernel};
    use crate::ir::verify;
    use proptest::prelude::*;

    fn text(kernel: &Kernel) -> String {
        print_kernel(&kernel.compacted(), PrintOptions::default())
    }

    proptest! {
        #[test]
        fn what_is_taken_apart_and_joined_is_the_same(tape in prop::collection::vec(any::<u8>(), 0..600)) {
            let kernel = generate(&tape);
            let parts: Vec<Kernel> = kernel.launches.keys().map(|launch| kernel.part(launch)).collect();
            for (part, launch) in parts.iter().zip(kernel.launches.values()) {
                prop_assert_eq!(verify(part), Ok(()));
                prop_assert_eq!(&part.launches[Launch::new(0)].name, &launch.name);
            }
            let joined = Apart { declarations: kernel.declarations(), parts }.join();
            prop_assert_eq!(text(&joined), text(&kernel));
            prop_assert_eq!(joined.schedule, kernel.schedule);
        }
    }
}

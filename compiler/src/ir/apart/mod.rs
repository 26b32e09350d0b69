//! Kernels taken apart: each launch as a kernel of its own, so that several can be worked on at the same time.
//!
//! A part has the declarations of the whole (symbols, buffers, sites, facts, arguments), by the same numbers, and one
//! launch; the plan is what leads to it. Its instructions, values, blocks and axes are numbered anew, in the order of
//! their numbers in the whole: what a pass decides by comparing numbers, it decides alike.
//!
//! - `numbers.rs`: which entities a launch has, and their new numbers; `body.rs`: how they come to the part.

mod body;
mod numbers;

pub use body::LaunchBody;

use super::entities::{Axis, Block, Inst, Launch, Value};
use super::kernel::{BlockData, Definition, Kernel, LaunchData, Module, Payload, Step, ValueData};
use super::schedule::Schedule;
use cranelift_entity::{EntityRef, PrimaryMap};

/// A kernel in parts.
#[derive(Clone, Debug, Default)]
pub struct Apart {
    /// All but the bodies; none where the only part is the kernel itself.
    whole: Option<Kernel>,
    /// One for each launch, in their order.
    parts: Vec<Kernel>,
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
    /// A kernel of one launch, or of none.
    pub fn single(kernel: Kernel) -> Self {
        match kernel.launches.len() {
            1 => Self { whole: None, parts: vec![kernel] },
            _ => Self { whole: Some(kernel), parts: Vec::new() },
        }
    }

    /// A kernel without bodies ([`Kernel::declarations`]) and its parts ([`Kernel::part`]), one for each launch in their order,
    /// or none where nobody asks for bodies.
    pub fn several(declarations: Kernel, parts: Vec<Kernel>) -> Self {
        Self { whole: Some(declarations), parts }
    }

    /// Gives back what bodies take.
    pub fn forget_bodies(&mut self) {
        match self.whole {
            Some(_) => self.parts = Vec::new(),
            None => self.parts.iter_mut().for_each(Kernel::forget_body),
        }
    }

    /// The kernel, to be asked for all but bodies.
    pub fn declarations(&self) -> &Kernel {
        self.whole.as_ref().unwrap_or_else(|| &self.parts[0])
    }

    /// One kernel for each launch, in their order.
    pub fn parts(&self) -> &[Kernel] {
        &self.parts
    }

    /// The kernel in one piece.
    pub fn join(&self) -> Kernel {
        let Some(whole) = &self.whole else { return self.parts[0].clone() };
        let mut kernel = whole.clone();
        for (launch, part) in whole.launches.keys().zip(&self.parts) {
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
        self.outline(self.launches.clone(), self.plan.clone(), self.schedule.clone())
    }

    /// A kernel of the same name and arguments, without bodies.
    fn outline(
        &self,
        launches: PrimaryMap<Launch, LaunchData>,
        plan: Vec<Step>,
        schedule: Schedule,
    ) -> Kernel {
        Kernel {
            name: self.name.clone(),
            span: self.span,
            phase: self.phase,
            arguments: self.arguments.clone(),
            facts: self.facts.clone(),
            symbols: self.symbols.clone(),
            buffers: self.buffers.clone(),
            sites: self.sites.clone(),
            launches,
            plan,
            axes: PrimaryMap::new(),
            blocks: PrimaryMap::new(),
            insts: PrimaryMap::new(),
            values: PrimaryMap::new(),
            schedule,
        }
    }

    /// Gives back what the bodies take.
    pub fn forget_body(&mut self) {
        self.axes = PrimaryMap::new();
        self.blocks = PrimaryMap::new();
        self.insts = PrimaryMap::new();
        self.values = PrimaryMap::new();
    }

    /// A launch as a kernel of its own. The schedule keeps what is said, without what became of it.
    pub fn part(&self, launch: Launch) -> Kernel {
        self.part_of(launch, self.copied_body(launch))
    }

    /// As [`part`](Self::part), of a kernel that what the launch does was [taken out of](Self::take_bodies).
    pub fn part_of(&self, launch: Launch, body: LaunchBody) -> Kernel {
        let mut part = self.outline(
            PrimaryMap::with_capacity(1),
            leading_to(&self.plan, launch),
            Schedule { directives: self.schedule.directives.clone(), ..Schedule::default() },
        );
        part.launches.push(self.launches[launch].clone());
        part.set_body(body);
        part
    }
}

/// The steps of a plan that lead to a launch, which is the only one of its part: what it is repeated by, without what
/// it is chosen by.
fn leading_to(plan: &[Step], launch: Launch) -> Vec<Step> {
    for step in plan {
        let found = match step {
            Step::Launch(known) if *known == launch => vec![Step::Launch(Launch::new(0))],
            Step::Launch(_) => Vec::new(),
            Step::Repeat { symbol, low, high, step, body } => match leading_to(body, launch) {
                body if body.is_empty() => body,
                body => {
                    let (symbol, low, high, step) = (*symbol, low.clone(), high.clone(), step.clone());
                    vec![Step::Repeat { symbol, low, high, step, body }]
                }
            },
            Step::Branch { then, otherwise, .. } => match leading_to(then, launch) {
                found if found.is_empty() => leading_to(otherwise, launch),
                found => found,
            },
        };
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let joined = Apart::several(kernel.declarations(), parts).join();
            prop_assert_eq!(text(&joined), text(&kernel));
            prop_assert_eq!(joined.schedule, kernel.schedule);
        }

        #[test]
        fn what_is_moved_out_is_what_is_copied(tape in prop::collection::vec(any::<u8>(), 0..600)) {
            let generated = generate(&tape);
            for kernel in [generated.compacted(), generated] {
                let mut rest = kernel.clone();
                let Some(bodies) = rest.take_bodies() else {
                    prop_assert_eq!(rest, kernel);
                    continue;
                };
                prop_assert_eq!(&rest, &kernel.declarations());
                prop_assert_eq!(bodies.len(), kernel.launches.len());
                for (launch, body) in kernel.launches.keys().zip(bodies) {
                    prop_assert_eq!(rest.part_of(launch, body), kernel.part(launch));
                }
            }
        }
    }

    #[test]
    fn launches_that_lie_side_by_side_are_moved() {
        let text = "kernel \"k\" staged @0..0 {\n    launch launch0 \"k_1\" threads 32 grid [1, 1, 1] {\n        v0: i64 = const 1\n        v1: i64 = add v0, v0\n    }\n    launch launch1 \"k_2\" threads 32 grid [1, 1, 1] {\n        v2: i64 = const 1\n        v3: i64 = mul v2, v2\n        v4: i64 = mul v3, v2\n    }\n    plan { launch0 launch1 }\n}\n";
        let kernel = crate::ir::text::parse_kernel(text).unwrap_or_else(|error| panic!("{error}"));
        let mut rest = kernel.clone();
        let bodies = rest.take_bodies().unwrap_or_else(|| panic!("not moved"));
        for (launch, body) in kernel.launches.keys().zip(bodies) {
            assert_eq!(rest.part_of(launch, body), kernel.part(launch));
        }
        assert_eq!(rest, kernel.declarations());
        // Not in the order of the launches: an instruction of the first one after those of the second.
        let mut mixed = kernel.clone();
        let [first, _] = [0, 1].map(|at| mixed.launches[Launch::new(at)].body);
        let last = mixed.blocks[first].insts.pop().unwrap_or_else(|| panic!("it has two"));
        let copy = mixed.clone_inst(last, first, &mut Default::default());
        assert_eq!(mixed.blocks[first].insts.last(), Some(&copy));
        let mut rest = mixed.clone();
        let bodies = rest.take_bodies().unwrap_or_else(|| panic!("half of it is moved"));
        for (launch, body) in mixed.launches.keys().zip(bodies) {
            assert_eq!(rest.part_of(launch, body), mixed.part(launch));
        }
    }
}

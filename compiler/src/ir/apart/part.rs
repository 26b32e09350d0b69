//! One launch of a kernel as a kernel of its own.

use crate::ir::entities::{Axis, Block, Inst, Launch, Value};
use crate::ir::kernel::{BlockData, Definition, InstData, Kernel, LaunchData, Payload, Step, ValueData};
use crate::ir::schedule::Schedule;
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;
use std::hash::Hash;

impl Kernel {
    /// A launch as a kernel of its own. The schedule keeps what is said, without what became of it.
    pub fn part(&self, launch: Launch) -> Kernel {
        let data = &self.launches[launch];
        let numbers = Renumbering::new(self, data.body);
        let mut part = self.shared_declarations();
        part.plan = leading_to(&self.plan, launch);
        part.schedule = Schedule { directives: self.schedule.directives.clone(), ..Schedule::default() };
        part.launches.push(LaunchData { body: numbers.blocks.of(&data.body), ..data.clone() });
        part.blocks.extend(numbers.blocks.old.iter().map(|block| numbers.block(&self.blocks[*block])));
        part.insts.extend(numbers.insts.old.iter().map(|inst| numbers.inst(&self.insts[*inst])));
        part.values.extend(numbers.values.old.iter().map(|value| numbers.value(&self.values[*value])));
        part.axes.extend(numbers.axes.old.iter().map(|axis| self.axes[*axis].clone()));
        part
    }
}

/// The entities of one kind that a launch has.
struct Numbers<E> {
    /// In the order of their numbers in the whole.
    old: Vec<E>,
    /// Their numbers in the part.
    new: FxHashMap<E, E>,
}

impl<E: EntityRef + Ord + Hash> Numbers<E> {
    fn new(mut old: Vec<E>) -> Self {
        old.sort_unstable();
        let new = old.iter().enumerate().map(|(at, entity)| (*entity, E::new(at))).collect();
        Self { old, new }
    }

    /// The new number; of an entity that the launch has not, one that is not there either, for the verifier to find.
    fn of(&self, entity: &E) -> E {
        self.new.get(entity).copied().unwrap_or_else(|| E::new(self.old.len()))
    }

    fn all<L: FromIterator<E>>(&self, entities: &[E]) -> L {
        entities.iter().map(|entity| self.of(entity)).collect()
    }
}

/// The numbers of all that a part has.
struct Renumbering {
    blocks: Numbers<Block>,
    insts: Numbers<Inst>,
    values: Numbers<Value>,
    axes: Numbers<Axis>,
}

impl Renumbering {
    /// Of what a launch's body has.
    fn new(kernel: &Kernel, body: Block) -> Self {
        let (blocks, mut insts, mut values, mut axes) = (kernel.blocks_in(body), vec![], vec![], vec![]);
        for block in &blocks {
            values.extend(&kernel.blocks[*block].params);
            insts.extend(&kernel.blocks[*block].insts);
        }
        for inst in &insts {
            let data = &kernel.insts[*inst];
            values.extend(&data.results);
            if let Payload::Loop { axes: of } | Payload::Reduce { axes: of, .. } = &data.payload {
                axes.extend(of);
            }
        }
        Self {
            blocks: Numbers::new(blocks),
            insts: Numbers::new(insts),
            values: Numbers::new(values),
            axes: Numbers::new(axes),
        }
    }

    fn block(&self, data: &BlockData) -> BlockData {
        BlockData { params: self.values.all(&data.params), insts: self.insts.all(&data.insts) }
    }

    fn inst(&self, data: &InstData) -> InstData {
        let mut payload = data.payload.clone();
        if let Payload::Loop { axes } | Payload::Reduce { axes, .. } = &mut payload {
            *axes = self.axes.all(axes);
        }
        InstData {
            opcode: data.opcode,
            payload,
            arguments: self.values.all(&data.arguments),
            results: self.values.all(&data.results),
            regions: self.blocks.all(&data.regions),
            span: data.span,
        }
    }

    fn value(&self, data: &ValueData) -> ValueData {
        let definition = match data.definition {
            Definition::Result(inst, at) => Definition::Result(self.insts.of(&inst), at),
            Definition::Param(block, at) => Definition::Param(self.blocks.of(&block), at),
        };
        ValueData { definition, ..data.clone() }
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
            Step::While { test, body, .. } => match leading_to(test, launch) {
                found if found.is_empty() => leading_to(body, launch),
                found => found,
            },
        };
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

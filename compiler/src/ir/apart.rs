//! Kernels taken apart: each launch as a kernel of its own, so that several can be worked on at the same time.
//!
//! A part has the declarations of the whole (symbols, buffers, sites, facts, arguments), by the same numbers, and one
//! launch; the plan is what leads to it. Its instructions, values, blocks and axes are numbered anew, in the order of
//! their numbers in the whole: what a pass decides by comparing numbers, it decides alike.

use super::entities::{Axis, Block, Inst, Launch, Value};
use super::kernel::{
    BlockData, Definition, InstData, Kernel, LaunchData, Module, Payload, Regions, Short, Step, ValueData,
};
use super::schedule::Schedule;
use cranelift_entity::packed_option::ReservedValue;
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

/// How entities of the whole are numbered in a part.
trait Numbers {
    /// The new number; of an entity that the launch has not, one that is not there either, for the verifier to find.
    fn of<E: EntityRef>(&self, entity: E) -> E;
}

/// Entities of one kind of which the launch has all between the first and the last one.
#[derive(Clone, Copy)]
struct Dense {
    first: usize,
    count: usize,
}

/// Between which numbers the entities of one kind lie that a launch has.
#[derive(Clone, Copy)]
struct Extent {
    first: usize,
    end: usize,
    count: usize,
}

impl Extent {
    const EMPTY: Self = Self { first: usize::MAX, end: 0, count: 0 };

    #[inline(always)]
    fn add(&mut self, entity: impl EntityRef) {
        self.first = self.first.min(entity.index());
        self.end = self.end.max(entity.index() + 1);
        self.count += 1;
    }

    /// The entities, where they lie side by side.
    fn dense(self) -> Option<Dense> {
        let first = self.first.min(self.end);
        (self.end - first == self.count).then_some(Dense { first, count: self.count })
    }
}

impl Numbers for Dense {
    #[inline(always)]
    fn of<E: EntityRef>(&self, entity: E) -> E {
        E::new(entity.index().wrapping_sub(self.first).min(self.count))
    }
}

/// Any entities of one kind that a launch has.
enum Any {
    Dense(Dense),
    /// From the first one on, the new number and one, or 0.
    Table {
        first: usize,
        count: usize,
        new: Vec<u32>,
    },
    /// The few that there are of many in between, in order: what the launch costs does not depend on the others.
    Sparse(Vec<u32>),
}

/// A launch that has less than one in so many entities is looked up in a list.
const SPARSE: usize = 16;

impl Any {
    fn new<E: EntityRef>(entities: &[E]) -> Self {
        let mut extent = Extent::EMPTY;
        entities.iter().for_each(|entity| extent.add(*entity));
        if let Some(dense) = extent.dense() {
            return Self::Dense(dense);
        }
        let Extent { first, end, count } = extent;
        if (end - first) / SPARSE > count {
            let mut known: Vec<u32> = entities.iter().map(|entity| entity.index() as u32).collect();
            known.sort_unstable();
            return Self::Sparse(known);
        }
        let mut new = vec![0; end - first];
        entities.iter().for_each(|entity| new[entity.index() - first] = 1);
        let mut next = 0;
        for new in new.iter_mut().filter(|new| **new != 0) {
            next += 1;
            *new = next;
        }
        Self::Table { first, count, new }
    }

    /// The entities, in order.
    fn all<E: EntityRef>(&self) -> impl Iterator<Item = E> + '_ {
        let (first, end) = match self {
            Self::Dense(Dense { first, count }) => (*first, *count),
            Self::Table { first, new, .. } => (*first, new.len()),
            Self::Sparse(known) => (0, known.len()),
        };
        (0..end).filter_map(move |at| match self {
            Self::Table { new, .. } if new[at] == 0 => None,
            Self::Sparse(known) => Some(E::new(known[at] as usize)),
            _ => Some(E::new(first + at)),
        })
    }
}

impl Numbers for Any {
    #[inline]
    fn of<E: EntityRef>(&self, entity: E) -> E {
        let at = |first: usize| entity.index().wrapping_sub(first);
        E::new(match self {
            Self::Dense(dense) => return dense.of(entity),
            Self::Table { first, count, new } => {
                new.get(at(*first)).and_then(|new| new.checked_sub(1)).map_or(*count, |new| new as usize)
            }
            Self::Sparse(known) => known.binary_search(&(entity.index() as u32)).unwrap_or(known.len()),
        })
    }
}

/// The numbers of all that a part has.
struct Renumbering<B, I, V, A> {
    blocks: B,
    insts: I,
    values: V,
    axes: A,
}

impl<B: Numbers, I: Numbers, V: Numbers, A: Numbers> Renumbering<B, I, V, A> {
    /// A list of values in the new numbers.
    #[inline(always)]
    fn values(&self, values: &[Value]) -> Short<Value> {
        let mut few = [Value::reserved_value(); 4];
        if values.len() <= few.len() {
            few.iter_mut().zip(values).for_each(|(to, from)| *to = self.values.of(*from));
            return Short::from_buf_and_len(few, values.len());
        }
        let many: Vec<Value> = values.iter().map(|value| self.values.of(*value)).collect();
        many.into()
    }

    fn block(&self, data: &BlockData) -> BlockData {
        let insts = data.insts.iter().map(|inst| self.insts.of(*inst)).collect();
        BlockData { params: self.values(&data.params), insts }
    }

    #[inline(always)]
    fn inst(&self, data: &InstData) -> InstData {
        let mut payload = data.payload.clone();
        let mut regions = Regions::new();
        // Only loops have axes.
        if !data.regions.is_empty() {
            if let Payload::Loop { axes } | Payload::Reduce { axes, .. } = &mut payload {
                axes.iter_mut().for_each(|axis| *axis = self.axes.of(*axis));
            }
            regions.extend(data.regions.iter().map(|region| self.blocks.of(*region)));
        }
        InstData {
            opcode: data.opcode,
            payload,
            arguments: self.values(&data.arguments),
            results: self.values(&data.results),
            regions,
            span: data.span,
        }
    }

    #[inline(always)]
    fn value(&self, data: &ValueData) -> ValueData {
        let definition = match data.definition {
            Definition::Result(inst, at) => Definition::Result(self.insts.of(inst), at),
            Definition::Param(block, at) => Definition::Param(self.blocks.of(block), at),
        };
        ValueData { ty: data.ty, definition, name: data.name.clone() }
    }
}

/// What a launch has, measured without lists.
type Extents = Renumbering<Extent, Extent, Extent, Extent>;

impl Extents {
    const EMPTY: Self =
        Self { blocks: Extent::EMPTY, insts: Extent::EMPTY, values: Extent::EMPTY, axes: Extent::EMPTY };

    fn block(&mut self, kernel: &Kernel, block: Block) {
        let data = &kernel.blocks[block];
        self.blocks.add(block);
        data.params.iter().for_each(|param| self.values.add(*param));
        for inst in &data.insts {
            let data = &kernel.insts[*inst];
            self.insts.add(*inst);
            data.results.iter().for_each(|result| self.values.add(*result));
            if data.regions.is_empty() {
                continue;
            }
            if let Payload::Loop { axes } | Payload::Reduce { axes, .. } = &data.payload {
                axes.iter().for_each(|axis| self.axes.add(*axis));
            }
            data.regions.iter().for_each(|region| self.block(kernel, *region));
        }
    }

    /// The numbers, where everything lies side by side.
    fn dense(&self) -> Option<Renumbering<Dense, Dense, Dense, Dense>> {
        Some(Renumbering {
            blocks: self.blocks.dense()?,
            insts: self.insts.dense()?,
            values: self.values.dense()?,
            axes: self.axes.dense()?,
        })
    }
}

/// What a launch has of the arenas.
#[derive(Default)]
struct Found {
    blocks: Vec<Block>,
    insts: Vec<Inst>,
    values: Vec<Value>,
    axes: Vec<Axis>,
}

impl Found {
    fn block(&mut self, kernel: &Kernel, block: Block) {
        let data = &kernel.blocks[block];
        self.blocks.push(block);
        self.values.extend_from_slice(&data.params);
        self.insts.extend_from_slice(&data.insts);
        for inst in &data.insts {
            let data = &kernel.insts[*inst];
            match data.results[..] {
                [] => {}
                [result] => self.values.push(result),
                _ => self.values.extend_from_slice(&data.results),
            }
            if data.regions.is_empty() {
                continue;
            }
            if let Payload::Loop { axes } | Payload::Reduce { axes, .. } = &data.payload {
                self.axes.extend_from_slice(axes);
            }
            for region in &data.regions {
                self.block(kernel, *region);
            }
        }
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
        let body = self.launches[launch].body;
        let mut extents = Extents::EMPTY;
        extents.block(self, body);
        let mut part = self.outline(
            PrimaryMap::with_capacity(1),
            leading_to(&self.plan, launch),
            Schedule { directives: self.schedule.directives.clone(), ..Schedule::default() },
        );
        part.blocks = PrimaryMap::with_capacity(extents.blocks.count);
        part.axes = PrimaryMap::with_capacity(extents.axes.count);
        // Passes make some more.
        let and_half = |count: usize| count + count / 2;
        part.insts = PrimaryMap::with_capacity(and_half(extents.insts.count));
        part.values = PrimaryMap::with_capacity(and_half(extents.values.count));
        let body = match extents.dense() {
            // What a pass has made at once, of which nothing is looked up.
            Some(all) => {
                part.blocks.extend(of(&self.blocks, all.blocks).iter().map(|data| all.block(data)));
                part.insts.extend(of(&self.insts, all.insts).iter().map(|data| all.inst(data)));
                part.values.extend(of(&self.values, all.values).iter().map(|data| all.value(data)));
                part.axes.extend(of(&self.axes, all.axes).iter().cloned());
                all.blocks.of(body)
            }
            None => {
                let mut found = Found::default();
                found.block(self, body);
                let Found { blocks, insts, values, axes } = &found;
                let all = Renumbering {
                    blocks: Any::new(blocks),
                    insts: Any::new(insts),
                    values: Any::new(values),
                    axes: Any::new(axes),
                };
                part.blocks.extend(all.blocks.all().map(|block: Block| all.block(&self.blocks[block])));
                part.insts.extend(all.insts.all().map(|inst: Inst| all.inst(&self.insts[inst])));
                part.values.extend(all.values.all().map(|value: Value| all.value(&self.values[value])));
                part.axes.extend(all.axes.all().map(|axis: Axis| self.axes[axis].clone()));
                all.blocks.of(body)
            }
        };
        part.launches.push(LaunchData { body, ..self.launches[launch].clone() });
        part
    }
}

/// The data of entities that lie side by side.
fn of<E: EntityRef, T>(arena: &PrimaryMap<E, T>, entities: Dense) -> &[T] {
    &arena.as_values_slice()[entities.first..entities.first + entities.count]
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
    }

    #[test]
    fn entities_keep_their_order() {
        let numbers = Any::new(&[7, 3, 9].map(Value::new));
        assert_eq!([3, 7, 9].map(|at| numbers.of(Value::new(at)).index()), [0, 1, 2]);
        assert_eq!(numbers.all::<Value>().map(|value| value.index()).collect::<Vec<_>>(), [3, 7, 9]);
        // Not the launch's: past the end.
        assert_eq!([1, 4, 12].map(|at| numbers.of(Value::new(at)).index()), [3, 3, 3]);
        let sparse = Any::new(&[7000, 3, 900].map(Value::new));
        assert!(matches!(sparse, Any::Sparse(_)));
        assert_eq!([3, 900, 7000].map(|at| sparse.of(Value::new(at)).index()), [0, 1, 2]);
        assert_eq!(sparse.all::<Value>().map(|value| value.index()).collect::<Vec<_>>(), [3, 900, 7000]);
        assert_eq!([1, 901, 9000].map(|at| sparse.of(Value::new(at)).index()), [3, 3, 3]);
        let dense = Any::new(&[6, 5, 4].map(Value::new));
        assert_eq!([4, 5, 6, 7].map(|at| dense.of(Value::new(at)).index()), [0, 1, 2, 3]);
        assert_eq!(Any::new::<Value>(&[]).all::<Value>().count(), 0);
    }
}

//! What a launch does, on its way from its kernel to one of its own: moved where its entities lie side by side, as what a
//! pass has made at once does, else copied.

use super::numbers::{Any, Dense, Extents, Found, Numbers, Renumbering};
use crate::ir::entities::{Axis, Block, Inst, Launch, Value};
use crate::ir::kernel::{AxisData, BlockData, InstData, Kernel, Payload, ValueData};
use cranelift_entity::{EntityRef, PrimaryMap};

/// The entities of one launch.
pub struct LaunchBody {
    root: Block,
    blocks: PrimaryMap<Block, BlockData>,
    insts: PrimaryMap<Inst, InstData>,
    values: PrimaryMap<Value, ValueData>,
    axes: PrimaryMap<Axis, AxisData>,
    /// How they are still to be numbered.
    numbers: Option<DenseNumbers>,
}

type DenseNumbers = Renumbering<Dense, Dense, Dense, Dense>;

/// Room for so many entities, and for some that passes make.
fn and_half(count: usize) -> usize {
    count + count / 2
}

/// Whether each stretch of entities ends before the next one begins.
fn are_in_order(stretches: impl Iterator<Item = Dense>) -> bool {
    let mut end = 0;
    stretches.filter(|stretch| stretch.count > 0).all(|stretch| {
        let follows = stretch.first >= end;
        end = stretch.first + stretch.count;
        follows
    })
}

impl LaunchBody {
    /// Numbers the entities from 0 on, in their order.
    fn renumber(&mut self) {
        let Some(all) = self.numbers.take() else { return };
        self.root = all.blocks.of(self.root);
        for data in self.blocks.values_mut() {
            data.params.iter_mut().for_each(|value| *value = all.values.of(*value));
            data.insts.iter_mut().for_each(|inst| *inst = all.insts.of(*inst));
        }
        for data in self.insts.values_mut() {
            data.arguments.iter_mut().for_each(|value| *value = all.values.of(*value));
            data.results.iter_mut().for_each(|value| *value = all.values.of(*value));
            // Only loops have axes.
            if !data.regions.is_empty() {
                if let Payload::Loop { axes } | Payload::Reduce { axes, .. } = &mut data.payload {
                    axes.iter_mut().for_each(|axis| *axis = all.axes.of(*axis));
                }
                data.regions.iter_mut().for_each(|region| *region = all.blocks.of(*region));
            }
        }
        for data in self.values.values_mut() {
            data.definition = all.definition(data.definition);
        }
    }
}

/// Where to take entities from, one stretch after the other.
struct Stretches<T> {
    items: std::vec::IntoIter<T>,
    /// The number of the next one.
    next: usize,
}

impl<T> Stretches<T> {
    fn of<E: EntityRef>(arena: &mut PrimaryMap<E, T>) -> Self {
        Self { items: Vec::from(std::mem::take(arena)).into_iter(), next: 0 }
    }

    fn take<E: EntityRef>(&mut self, entities: Dense, room: usize) -> PrimaryMap<E, T> {
        if entities.count == 0 {
            return PrimaryMap::new();
        }
        self.items.by_ref().take(entities.first - self.next).for_each(drop);
        self.next = entities.first + entities.count;
        let mut taken = Vec::with_capacity(room);
        taken.extend(self.items.by_ref().take(entities.count));
        taken.into()
    }
}

impl Kernel {
    /// Moves out what the launches do, in their order, so that declarations stay; `None`, and nothing is changed, where most
    /// of it does not lie side by side launch by launch, and so could not be moved.
    pub fn take_bodies(&mut self) -> Option<Vec<LaunchBody>> {
        let numbers = |launch: &Launch| {
            let mut extents = Extents::EMPTY;
            extents.block(self, self.launches[*launch].body);
            extents.dense()
        };
        let launches: Vec<Launch> = self.launches.keys().collect();
        let numbers: Vec<Option<DenseNumbers>> = launches.iter().map(numbers).collect();
        let mut moved: Vec<(Launch, DenseNumbers)> =
            launches.iter().zip(&numbers).filter_map(|(launch, all)| Some((*launch, (*all)?))).collect();
        moved.sort_by_key(|(_, all)| all.insts.first);
        let each = || moved.iter().map(|(_, all)| all);
        let in_order = are_in_order(each().map(|all| all.blocks))
            && are_in_order(each().map(|all| all.insts))
            && are_in_order(each().map(|all| all.values))
            && are_in_order(each().map(|all| all.axes));
        if !in_order || each().map(|all| all.insts.count).sum::<usize>() * 2 < self.insts.len() {
            return None;
        }
        let copied = |(launch, all): (&Launch, &Option<DenseNumbers>)| match all {
            Some(_) => None,
            None => Some(self.copied_body(*launch)),
        };
        let mut bodies: Vec<Option<LaunchBody>> = launches.iter().zip(&numbers).map(copied).collect();
        let mut blocks = Stretches::of(&mut self.blocks);
        let mut insts = Stretches::of(&mut self.insts);
        let mut values = Stretches::of(&mut self.values);
        let mut axes = Stretches::of(&mut self.axes);
        for (launch, all) in moved {
            bodies[launch.index()] = Some(LaunchBody {
                root: self.launches[launch].body,
                blocks: blocks.take(all.blocks, all.blocks.count),
                insts: insts.take(all.insts, and_half(all.insts.count)),
                values: values.take(all.values, and_half(all.values.count)),
                axes: axes.take(all.axes, all.axes.count),
                numbers: Some(all),
            });
        }
        Some(bodies.into_iter().flatten().collect())
    }

    /// A copy of what a launch does.
    pub(super) fn copied_body(&self, launch: Launch) -> LaunchBody {
        let root = self.launches[launch].body;
        let mut found = Found::default();
        found.block(self, root);
        let Found { blocks, insts, values, axes } = &found;
        let all = Renumbering {
            blocks: Any::new(blocks),
            insts: Any::new(insts),
            values: Any::new(values),
            axes: Any::new(axes),
        };
        let mut body = LaunchBody {
            root: all.blocks.of(root),
            blocks: PrimaryMap::with_capacity(blocks.len()),
            insts: PrimaryMap::with_capacity(and_half(insts.len())),
            values: PrimaryMap::with_capacity(and_half(values.len())),
            axes: PrimaryMap::with_capacity(axes.len()),
            numbers: None,
        };
        body.blocks.extend(all.blocks.all().map(|block: Block| all.block(&self.blocks[block])));
        body.insts.extend(all.insts.all().map(|inst: Inst| all.inst(&self.insts[inst])));
        body.values.extend(all.values.all().map(|value: Value| all.value(&self.values[value])));
        body.axes.extend(all.axes.all().map(|axis: Axis| self.axes[axis].clone()));
        body
    }

    /// The launch of a kernel that has no other does this.
    pub(super) fn set_body(&mut self, mut body: LaunchBody) {
        body.renumber();
        let LaunchBody { root, blocks, insts, values, axes, .. } = body;
        self.launches.values_mut().for_each(|launch| launch.body = root);
        (self.blocks, self.insts, self.values, self.axes) = (blocks, insts, values, axes);
    }
}

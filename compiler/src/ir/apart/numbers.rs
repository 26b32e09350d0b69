//! Which entities a launch has, and how they are numbered in a kernel of its own: in the order of their numbers in the
//! whole.

use crate::ir::entities::{Axis, Block, Inst, Value};
use crate::ir::kernel::{BlockData, Definition, InstData, Kernel, Payload, Regions, Short, ValueData};
use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::ReservedValue;

/// How entities of the whole are numbered in a part.
pub(super) trait Numbers {
    /// The new number; of an entity that the launch has not, one that is not there either, for the verifier to find.
    fn of<E: EntityRef>(&self, entity: E) -> E;
}

/// Entities of one kind of which the launch has all between the first and the last one.
#[derive(Clone, Copy)]
pub(super) struct Dense {
    pub first: usize,
    pub count: usize,
}

/// Between which numbers the entities of one kind lie that a launch has.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    first: usize,
    end: usize,
    pub count: usize,
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
pub(super) enum Any {
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
    pub fn new<E: EntityRef>(entities: &[E]) -> Self {
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
    pub fn all<E: EntityRef>(&self) -> impl Iterator<Item = E> + '_ {
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
#[derive(Clone, Copy)]
pub(super) struct Renumbering<B, I, V, A> {
    pub blocks: B,
    pub insts: I,
    pub values: V,
    pub axes: A,
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

    pub fn block(&self, data: &BlockData) -> BlockData {
        let insts = data.insts.iter().map(|inst| self.insts.of(*inst)).collect();
        BlockData { params: self.values(&data.params), insts }
    }

    #[inline(always)]
    pub fn inst(&self, data: &InstData) -> InstData {
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
    pub fn value(&self, data: &ValueData) -> ValueData {
        ValueData { ty: data.ty, definition: self.definition(data.definition), name: data.name.clone() }
    }

    #[inline(always)]
    pub fn definition(&self, definition: Definition) -> Definition {
        match definition {
            Definition::Result(inst, at) => Definition::Result(self.insts.of(inst), at),
            Definition::Param(block, at) => Definition::Param(self.blocks.of(block), at),
        }
    }
}

/// What a launch has, measured without lists.
pub(super) type Extents = Renumbering<Extent, Extent, Extent, Extent>;

impl Extents {
    pub const EMPTY: Self =
        Self { blocks: Extent::EMPTY, insts: Extent::EMPTY, values: Extent::EMPTY, axes: Extent::EMPTY };

    pub fn block(&mut self, kernel: &Kernel, block: Block) {
        let data = &kernel.blocks[block];
        self.blocks.add(block);
        // In registers, while nothing inside is looked at.
        let (mut insts, mut values) = (self.insts, self.values);
        data.params.iter().for_each(|param| values.add(*param));
        for inst in &data.insts {
            let data = &kernel.insts[*inst];
            insts.add(*inst);
            data.results.iter().for_each(|result| values.add(*result));
            if data.regions.is_empty() {
                continue;
            }
            if let Payload::Loop { axes } | Payload::Reduce { axes, .. } = &data.payload {
                axes.iter().for_each(|axis| self.axes.add(*axis));
            }
            (self.insts, self.values) = (insts, values);
            data.regions.iter().for_each(|region| self.block(kernel, *region));
            (insts, values) = (self.insts, self.values);
        }
        (self.insts, self.values) = (insts, values);
    }

    /// The numbers, where everything lies side by side.
    pub fn dense(&self) -> Option<Renumbering<Dense, Dense, Dense, Dense>> {
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
pub(super) struct Found {
    pub blocks: Vec<Block>,
    pub insts: Vec<Inst>,
    pub values: Vec<Value>,
    pub axes: Vec<Axis>,
}

impl Found {
    pub fn block(&mut self, kernel: &Kernel, block: Block) {
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

#[cfg(test)]
mod tests {
    use super::*;

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

//! Offsets and addresses that are in registers already.

use super::super::operand::Reg;
use crate::ir::entities::Value;
use crate::ir::kernel::Short;
use rustc_hash::FxHashMap;

/// Byte offsets that were computed before and still hold: those of the current and the enclosing regions.
#[derive(Default)]
pub(super) struct OffsetMemo {
    known: FxHashMap<(OffsetKey, Short<Value>), Reg>,
    /// In the order in which they were computed.
    order: Vec<(OffsetKey, Short<Value>)>,
}

/// What an offset is, beside the subscripts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct OffsetKey {
    /// Which list of extents: the same for buffers of the same extents.
    pub extents: u32,
    /// Bytes an element; 0 for the plain row-major position.
    pub scale: u64,
    /// What it was added to.
    pub base: Option<Reg>,
    /// The axis, plus one, whose stride it is; 0 for an offset.
    pub stride: u32,
}

impl OffsetMemo {
    pub fn mark(&self) -> usize {
        self.order.len()
    }

    pub fn release(&mut self, mark: usize) {
        for entry in self.order.drain(mark..) {
            self.known.remove(&entry);
        }
    }

    /// What is there for other subscripts of the same array.
    pub fn like(&self, key: OffsetKey) -> impl Iterator<Item = (&[Value], Reg)> {
        let matching = self.order.iter().filter(move |(known, _)| *known == key);
        matching.map(|entry| (entry.1.as_slice(), self.known[entry]))
    }

    pub fn find(&self, key: OffsetKey, indices: &[Value]) -> Option<Reg> {
        self.known.get(&(key, Short::from_slice(indices))).copied()
    }

    pub fn insert(&mut self, key: OffsetKey, indices: &[Value], reg: Reg) {
        let entry = (key, Short::from_slice(indices));
        self.order.push(entry.clone());
        self.known.insert(entry, reg);
    }
}

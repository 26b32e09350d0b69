//! `cse`: common subexpressions are computed once.
//!
//! ```text
//! v3: i64 = mul v1, v2                  v3: i64 = mul v1, v2
//! if v0 {                               if v0 {
//!     v4: i64 = mul v2, v1      →           (uses of v4 become uses of v3)
//! ```
//!
//! A pure instruction, or a load from a buffer that its launch does not write, is replaced by an equal one that
//! comes before it in the same region or in one around it. Operands of commutative ops match in either order. A load
//! from a buffer that is written is replaced where nothing between the two writes that buffer or waits for other
//! threads: no other thread may write what this one reads (programs have no races), so memory holds the same.
//!
//! # Limits
//!
//! Equal instructions in two regions of which neither is around the other stay (`licm` brings many of them
//! together). Loads from buffers that the launch writes stay where they are in a loop and the equal one before it, and
//! where the launch changes the buffer by atomics.

use super::pass::{Changed, Pass, PassContext};
use crate::ir::Substitution;
use crate::ir::entities::{Block, Buffer, Inst};
use crate::ir::kernel::{InstData, Kernel, Payload};
use crate::ir::op::{Constant, Effect, Opcode};
use crate::mutants::mutant;
use cranelift_entity::{EntitySet, SecondaryMap};
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::ops::ControlFlow;

pub struct Cse;

impl Pass for Cse {
    fn name(&self) -> &str {
        "cse"
    }

    fn reason(&self) -> &str {
        "computes common subexpressions once"
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let available = FxHashMap::with_capacity_and_hasher(kernel.insts.len(), Default::default());
        let (written, replaced) = (EntitySet::new(), kernel.of_values());
        let (atomic, clock, open) = (EntitySet::new(), Clock::default(), kernel.of_blocks());
        let mut eliminator =
            Eliminator { kernel, written, atomic, clock, available, open, replaced, changed: false };
        for launch in eliminator.kernel.launches.keys().collect::<Vec<_>>() {
            let body = eliminator.kernel.launches[launch].body;
            let Eliminator { kernel, written, atomic, .. } = &mut eliminator;
            written.clear();
            atomic.clear();
            each_write(kernel, body, |buffer, by_atomic| {
                insert(written, buffer);
                if by_atomic {
                    atomic.insert(buffer);
                }
            });
            eliminator.clock = Clock::default();
            eliminator.block(body);
        }
        eliminator.changed.into()
    }
}

/// The buffer that an instruction writes, and whether by an atomic.
fn write(data: &InstData) -> Option<(Buffer, bool)> {
    match data.payload {
        Payload::Atomic { buffer, .. } => Some((buffer, true)),
        Payload::Access { buffer, .. } if data.opcode.info().effect == Effect::Write => Some((buffer, false)),
        _ => None,
    }
}

/// Calls back for every write in a block or in what is inside: the buffer, and whether by an atomic.
fn each_write(kernel: &Kernel, block: Block, mut each: impl FnMut(Buffer, bool)) {
    kernel.walk_data(block, &mut |data| {
        if let Some((buffer, by_atomic)) = write(data) {
            each(buffer, by_atomic);
        }
    });
}

/// Buffers that an instruction or what is inside writes.
pub(super) fn written_by(kernel: &Kernel, inst: Inst) -> EntitySet<Buffer> {
    let data = &kernel.insts[inst];
    let mut written = EntitySet::new();
    written.extend(write(data).map(|(buffer, _)| buffer));
    for region in &data.regions {
        each_write(kernel, *region, |buffer, _| insert(&mut written, buffer));
    }
    written
}

/// Whether something inside an instruction writes a buffer.
pub(super) fn writes(kernel: &Kernel, inst: Inst, buffer: Buffer) -> bool {
    let of = |inst: Inst| write(&kernel.insts[inst]).is_some_and(|(written, _)| written == buffer);
    let look = &mut |_, inst| if of(inst) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    kernel.insts[inst].regions.iter().any(|region| kernel.walk_until(*region, look).is_break())
}

/// Buffers that a block or what is inside writes.
pub(super) fn written_buffers(kernel: &Kernel, block: Block) -> EntitySet<Buffer> {
    let mut written = EntitySet::new();
    each_write(kernel, block, |buffer, _| insert(&mut written, buffer));
    written
}

/// Most are there already.
fn insert(set: &mut EntitySet<Buffer>, buffer: Buffer) {
    if !set.contains(buffer) {
        set.insert(buffer);
    }
}

/// Which loads from written buffers see the same memory: those of a buffer at one time.
#[derive(Default)]
struct Clock {
    /// Of all buffers: barriers and loops.
    all: u32,
    /// Of one: what writes it.
    own: SecondaryMap<Buffer, u32>,
    /// When a load from a written buffer was found.
    loads: FxHashMap<Inst, (u32, u32)>,
}

impl Clock {
    fn of(&self, buffer: Buffer) -> (u32, u32) {
        (self.all, self.own[buffer])
    }

    /// What the instruction itself does to memory; its regions count by what is in them.
    fn pass(&mut self, data: &InstData) {
        match (data.opcode.info().effect, &data.payload) {
            (Effect::Pure | Effect::Read | Effect::Terminator, _) => {}
            (_, Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) => {
                self.own[*buffer] += mutant!("cse: a load over a store to its buffer", 1, 0);
            }
            // Both sides of an `if` see what was before it; a loop's body sees what the body itself does.
            _ if matches!(data.opcode, Opcode::If | Opcode::Check) => {}
            _ => self.all += mutant!("cse: a loop reads what was there before it", 1, 0),
        }
    }
}

struct Eliminator<'k> {
    kernel: &'k mut Kernel,
    written: EntitySet<Buffer>,
    /// Of those, the ones that other threads may change at any time.
    atomic: EntitySet<Buffer>,
    clock: Clock,
    /// Instructions by hash, each with its block: of those in scope with equal hashes the last one.
    available: FxHashMap<u64, (Inst, Block)>,
    /// The blocks that the pass is in: what stands in others is out of scope.
    open: SecondaryMap<Block, bool>,
    replaced: Substitution,
    changed: bool,
}

impl Eliminator<'_> {
    fn block(&mut self, block: Block) {
        // What stands around this region, and instructions in it have taken the places of: there again after its end.
        let mut hidden = Vec::new();
        self.open[block] = true;
        let mut insts = std::mem::take(&mut self.kernel.blocks[block].insts);
        let mut kept = 0;
        for at in 0..insts.len() {
            let inst = insts[at];
            if !self.goes(inst, block, &mut hidden) {
                insts[kept] = inst;
                kept += 1;
            }
        }
        insts.truncate(kept);
        self.kernel.blocks[block].insts = insts;
        self.open[block] = mutant!("cse: what stands in a region is used behind it", false, true);
        self.available.extend(hidden);
    }

    /// Whether an equal instruction stands for this one; else what it does to memory, and what is inside, is seen to.
    #[inline]
    fn goes(&mut self, inst: Inst, block: Block, hidden: &mut Vec<(u64, (Inst, Block))>) -> bool {
        let data = &mut self.kernel.insts[inst];
        for argument in data.arguments.as_mut_slice() {
            if let Some(value) = self.replaced[*argument].expand() {
                *argument = value;
            }
        }
        match (data.opcode.info().effect, &data.payload) {
            (Effect::Pure, _) => self.eliminate(inst, block, None, hidden),
            (Effect::Read, Payload::Access { buffer, .. }) => {
                let time = match self.written.contains(*buffer) {
                    false => None,
                    true if self.atomic.contains(*buffer) => return false,
                    true => Some(self.clock.of(*buffer)),
                };
                self.eliminate(inst, block, time, hidden)
            }
            (Effect::Read | Effect::Terminator, _) => false,
            (Effect::Write | Effect::Regions, _) => {
                self.clock.pass(data);
                for at in 0..data.regions.len() {
                    self.block(self.kernel.insts[inst].regions[at]);
                }
                false
            }
        }
    }

    /// Whether an equal instruction is in scope, which then takes the place of this one: for a load from a buffer that is
    /// written, one at the same time.
    fn eliminate(
        &mut self,
        inst: Inst,
        block: Block,
        time: Option<(u32, u32)>,
        hidden: &mut Vec<(u64, (Inst, Block))>,
    ) -> bool {
        let data = &self.kernel.insts[inst];
        let hash = hash(data);
        let mut entry = self.available.entry(hash);
        let before = match &mut entry {
            Entry::Occupied(before) if self.open[before.get().1] => Some(*before.get()),
            _ => None,
        };
        let equal = before.filter(|(other, _)| {
            let at_once = || self.clock.loads.get(other).copied() == time;
            // Only loads are kept by time.
            equal(&self.kernel.insts[*other], data)
                && (data.opcode.info().effect == Effect::Pure || at_once())
        });
        let Some((other, _)) = equal else {
            if let Some(time) = time {
                self.clock.loads.insert(inst, time);
            }
            entry.insert_entry((inst, block));
            hidden.extend(before.filter(|(_, home)| *home != block).map(|before| (hash, before)));
            return false;
        };
        for at in 0..self.kernel.insts[inst].results.len() {
            let (result, value) = (self.kernel.insts[inst].results[at], self.kernel.insts[other].results[at]);
            if self.kernel.values[value].name.is_none() {
                self.kernel.values[value].name = self.kernel.values[result].name.clone();
            }
            self.replaced[result] = value.into();
        }
        self.changed = true;
        true
    }
}

fn commutes(opcode: Opcode) -> bool {
    use Opcode::{Add, And, Eq, Max, Min, Mul, Ne, Or, Xor};
    let commutes = matches!(opcode, Add | Mul | Min | Max | And | Or | Xor | Eq | Ne);
    mutant!("cse: operands of a difference in either order", commutes, commutes || opcode == Opcode::Sub)
}

/// The same for equal instructions.
fn hash(data: &InstData) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u8(data.opcode as u8);
    match &data.payload {
        Payload::None => {}
        Payload::Constant(Constant::Int(scalar, value)) => {
            hasher.write_u8(*scalar as u8);
            hasher.write_u64(*value as u64);
        }
        payload => payload.hash(&mut hasher),
    }
    match data.arguments[..] {
        // Operands of commutative ops, in either order.
        [a, b] if commutes(data.opcode) => {
            hasher.write_u64(u64::from(a.min(b).as_u32()) << 32 | u64::from(a.max(b).as_u32()));
        }
        _ => data.arguments.iter().for_each(|value| hasher.write_u32(value.as_u32())),
    }
    hasher.finish()
}

fn equal(one: &InstData, other: &InstData) -> bool {
    one.opcode == other.opcode
        && one.results.len() == other.results.len()
        && match (&one.arguments[..], &other.arguments[..]) {
            ([a, b], [c, d]) if commutes(one.opcode) => (a, b) == (c, d) || (a, b) == (d, c),
            (one, other) => one == other,
        }
        && one.payload == other.payload
}

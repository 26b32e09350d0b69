//! What the lanes of one warp access: for each instruction that reads or writes global or shared memory, the addresses
//! of one warp at one time, to look at. Counters ([`count`](super::count)) say what all warps did.
//!
//! Of all warps that come to an instruction the one with the most lanes is taken; of these that of the lowest block, and
//! in a block the first: so the choice does not depend on timing.

use super::count::kind::{Kind, Known};
use super::count::{banks, sectors};
use super::exec::Outcome;
use super::exec::lanes::{LANES, lanes_of};
use super::exec::memory::addresses;
use super::fault::SourceLocation;
use super::launch::LaunchConfig;
use super::memory::{GLOBAL_BASE, Memory, SHARED_WINDOW, WINDOW_BYTES};
use super::observe::{Event, Observer};
use super::opcodes::{CopyForm, CopyOp, MatrixForm, MemorySpace};
use super::program::{Code, NOWHERE, Program};
use std::sync::Arc;

/// One access of one warp.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TracedAccess {
    pub location: Option<SourceLocation>,
    /// Of a copy, which reads global memory and writes shared memory, there are two accesses.
    pub kind: Kind,
    /// In shared memory, where addresses count from the start of the block's; else in global memory.
    pub shared: bool,
    pub is_load: bool,
    /// Bytes that a lane moves.
    pub lane_bytes: u32,
    pub block: [u32; 3],
    /// Within the block.
    pub warp: usize,
    /// The lanes that take part; the addresses of others mean nothing.
    pub mask: u32,
    pub addresses: [u64; LANES],
    /// The allocation of the first lane's address, and where it starts; nothing in shared memory.
    pub allocation: Option<(String, u64)>,
}

impl TracedAccess {
    /// The lanes that take part, with their addresses.
    pub fn lanes(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        lanes_of(self.mask).map(|lane| (lane, self.addresses[lane]))
    }

    /// What the access touches of global memory.
    pub fn touched(&self) -> sectors::Touched {
        sectors::touched(&self.addresses, self.mask, self.lane_bytes)
    }

    /// What the access takes of shared memory.
    pub fn banked(&self) -> banks::Banked {
        banks::banked(&self.addresses, self.mask, self.lane_bytes, self.is_load)
    }

    /// The same access of other addresses.
    pub fn moved(&self, place: impl Fn(u64) -> u64) -> TracedAccess {
        TracedAccess { addresses: self.addresses.map(place), ..self.clone() }
    }
}

/// An access that was seen, before it has a name.
#[derive(Clone, Debug)]
struct Seen {
    block: u64,
    warp: usize,
    shared: bool,
    is_load: bool,
    mask: u32,
    bytes: u32,
    addresses: [u64; LANES],
}

type Slot = Option<Box<Seen>>;

/// The observer that keeps one access an instruction.
#[derive(Debug)]
pub struct Tracer<'a> {
    program: &'a Program,
    known: Arc<[Known]>,
    block: u64,
    /// By instruction.
    seen: Vec<Slot>,
    /// The targets of copies, by row.
    targets: Vec<Slot>,
}

/// Takes an access in where it is better than what is there.
fn offer(slot: &mut Slot, new: impl FnOnce() -> Seen, mask: u32) {
    if slot.as_ref().is_none_or(|known| known.mask.count_ones() < mask.count_ones()) {
        *slot = Some(Box::new(new()));
    }
}

/// The better of two that were seen by different host threads: these have no block in common.
fn better(one: Slot, other: Slot) -> Slot {
    match (one, other) {
        (Some(one), Some(other)) => {
            let rank = |seen: &Seen| (std::cmp::Reverse(seen.mask.count_ones()), seen.block);
            Some(if rank(&one) <= rank(&other) { one } else { other })
        }
        (one, other) => one.or(other),
    }
}

impl<'a> Tracer<'a> {
    pub(super) fn new(entry: &krn_compiler::ptx::Entry, program: &'a Program) -> Self {
        Tracer {
            program,
            known: program.statements.iter().map(|statement| Known::of(entry, *statement)).collect(),
            block: 0,
            seen: vec![None; program.code.len()],
            targets: vec![None; program.copies.len()],
        }
    }

    /// What was seen, in program order; of a copy the source comes first.
    pub(super) fn finish(
        self,
        memory: &Memory,
        config: &LaunchConfig<'_>,
        location: impl Fn(usize) -> Option<SourceLocation>,
    ) -> Vec<TracedAccess> {
        let mut accesses = Vec::new();
        let mut push = |pc: usize, seen: Seen| {
            let first = seen.addresses[seen.mask.trailing_zeros() as usize & 31];
            let allocation = memory.find(first).filter(|_| !seen.shared).map(|at| &memory.allocations()[at]);
            accesses.push(TracedAccess {
                location: location(pc),
                kind: self.known[pc].kind,
                shared: seen.shared,
                is_load: seen.is_load,
                lane_bytes: seen.bytes,
                block: config.block_position(seen.block),
                warp: seen.warp,
                mask: seen.mask,
                addresses: seen.addresses,
                allocation: allocation.map(|known| (known.name.clone(), known.base)),
            });
        };
        let mut targets = self.targets;
        for (pc, slot) in self.seen.into_iter().enumerate() {
            slot.into_iter().for_each(|seen| push(pc, *seen));
            let inst = &self.program.code[pc];
            if inst.code == Code::Copy(CopyOp::Begin) {
                let target = targets.get_mut(inst.imm as usize).and_then(Option::take);
                target.into_iter().for_each(|seen| push(pc, *seen));
            }
        }
        accesses
    }

    /// An access in a space; of generic ones only those whose lanes are all in shared, or all in global memory.
    fn access(
        &mut self,
        event: &Event<'_>,
        (space, is_load): (MemorySpace, bool),
        addresses: [u64; LANES],
        bytes: u32,
    ) {
        let mask = event.mask;
        let all_in =
            |window: u64| lanes_of(mask).all(|lane| addresses[lane] / WINDOW_BYTES * WINDOW_BYTES == window);
        let (shared, addresses) = match space {
            MemorySpace::Shared => (true, addresses),
            MemorySpace::Global => (false, addresses),
            MemorySpace::Generic if all_in(SHARED_WINDOW) => {
                (true, addresses.map(|at| at.wrapping_sub(SHARED_WINDOW)))
            }
            MemorySpace::Generic if all_in(GLOBAL_BASE) => (false, addresses),
            _ => return,
        };
        let (block, warp) = (self.block, event.warp);
        offer(
            &mut self.seen[event.pc],
            || Seen { block, warp, shared, is_load, mask, bytes, addresses },
            mask,
        );
    }

    fn copy(&mut self, event: &Event<'_>) {
        let row = event.inst.imm as usize;
        let form: CopyForm = self.program.copies[row];
        let (r, block, warp, bytes) = (event.registers, self.block, event.warp, form.bytes);
        let reads = |lane: &usize| form.from_bytes == NOWHERE || r.c32(form.from_bytes)[*lane] > 0;
        let reading = lanes_of(event.mask).filter(reads).fold(0, |bits, lane| bits | 1 << lane);
        if reading != 0 {
            let addresses = addresses(r, form.from_base, form.from_base_is_wide, form.from_offset);
            let new = || Seen { block, warp, shared: false, is_load: true, mask: reading, bytes, addresses };
            offer(&mut self.seen[event.pc], new, reading);
        }
        let addresses = addresses(r, form.to_base, form.to_base_is_wide, form.to_offset);
        let mask = event.mask;
        let new = || Seen { block, warp, shared: true, is_load: false, mask, bytes, addresses };
        offer(&mut self.targets[row], new, mask);
    }
}

impl Observer for Tracer<'_> {
    const ENABLED: bool = true;

    fn fork(&self) -> Self {
        Tracer {
            program: self.program,
            known: Arc::clone(&self.known),
            block: 0,
            seen: vec![None; self.seen.len()],
            targets: vec![None; self.targets.len()],
        }
    }

    fn block(&mut self, block: u64, _: &dyn Fn() -> bool) {
        self.block = block;
    }

    #[inline(always)]
    fn instruction(&mut self, event: &Event<'_>) -> Outcome {
        let (i, r, mask) = (event.inst, event.registers, event.mask);
        if mask == 0 {
            return Ok(());
        }
        match i.code {
            Code::Load(form) => {
                let bytes = u32::from(form.width) * u32::from(form.count);
                self.access(event, (form.space, true), addresses(r, i.a, form.wide_base, i.imm), bytes);
            }
            Code::Store(form) => {
                let bytes = u32::from(form.width) * u32::from(form.count);
                self.access(event, (form.space, false), addresses(r, i.a, form.wide_base, i.imm), bytes);
            }
            Code::LoadMatrix(form) => {
                let rows = Event { mask: mask & form.rows(), ..*event };
                let addresses = addresses(r, i.a, form.wide_base, i.imm);
                self.access(&rows, (form.space, true), addresses, MatrixForm::ROW);
            }
            Code::Atomic(form) => {
                let bytes = form.op.ty.bytes();
                self.access(event, (form.space, false), addresses(r, i.a, form.wide_base, i.imm), bytes);
            }
            Code::Copy(CopyOp::Begin) => self.copy(event),
            _ => {}
        }
        Ok(())
    }

    fn opened(&mut self, _: usize, _: &[usize]) {}

    fn merge(&mut self, other: Self) {
        let pairs = self.seen.iter_mut().zip(other.seen);
        for (own, theirs) in pairs.chain(self.targets.iter_mut().zip(other.targets)) {
            *own = better(own.take(), theirs);
        }
    }
}

//! Counts what the hardware counts, for each PTX instruction of a launch: warps and lanes, requests and sectors of global
//! memory, wavefronts and bank conflicts of shared memory, divergent branches.
//!
//! The numbers of memory are those that NVIDIA's profiler reads for the same accesses on an H200 (`docs/counters.md`).
//! Instructions are counted in PTX: a GPU executes other ones, which its assembler made of them. What L2 gives is a
//! model ([`l1`]).

pub mod carveout;
pub mod footprint;
pub mod kind;
pub mod l1;
pub mod multiprocessors;
mod reductions;
pub mod sectors;

pub use krn_compiler::analysis::banked as banks;

use std::ops::AddAssign;
use std::sync::Arc;

use super::decode::estimate_registers;
use super::exec::Outcome;
use super::exec::lanes::{FULL, LANES, lanes_of};
use super::exec::memory::addresses;
use super::fault::SourceLocation;
use super::launch::LaunchConfig;
use super::memory::{CONST_WINDOW, LOCAL_WINDOW, Memory, PARAM_WINDOW, SHARED_WINDOW, WINDOW_BYTES};
use super::observe::{Event, Observer};
use super::opcodes::{Control, CopyForm, CopyOp, MatrixForm, MemorySpace};
use super::program::{Code, NOWHERE, Program};
use banks::{Banked, banked};
use carveout::BlockNeeds;
use footprint::Footprint;
use kind::{Kind, Known};
use multiprocessors::Multiprocessors;
use sectors::{LINE, Touched, touched_locally};

/// What one PTX instruction did in a launch, or several together.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Warps that executed it, and lanes for which its guard held.
    pub warps: u64,
    pub lanes: u64,
    /// Floating-point operations of all lanes, of 64 bits and of fewer.
    pub flops64: u64,
    pub flops: u64,
    /// Branches at which the lanes of a warp went different ways.
    pub divergent: u64,
    /// Accesses to global memory (or to local memory, which lies there) with any lane.
    pub requests: u64,
    /// Sectors of 32 bytes that they touch, each counted once a request; of `red`, whose lanes at one address ask one by
    /// one, as often as the most lanes ask for the same bytes, unless all of them do.
    pub sectors: u64,
    /// Different bytes that they ask for, in each request.
    pub bytes: u64,
    /// Sectors that go on to L2: all written ones, and those read ones that the model of L1 does not hold.
    pub l2_sectors: u64,
    /// Accesses to shared memory with any lane, the wavefronts that they take, and those of them for bank conflicts.
    pub shared_requests: u64,
    pub wavefronts: u64,
    pub conflicts: u64,
    /// Of atomics: turns, the most lanes of a warp on one address.
    pub serial: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.warps += other.warps;
        self.lanes += other.lanes;
        self.flops64 += other.flops64;
        self.flops += other.flops;
        self.divergent += other.divergent;
        self.requests += other.requests;
        self.sectors += other.sectors;
        self.bytes += other.bytes;
        self.l2_sectors += other.l2_sectors;
        self.shared_requests += other.shared_requests;
        self.wavefronts += other.wavefronts;
        self.conflicts += other.conflicts;
        self.serial += other.serial;
    }
}

/// One PTX instruction of a launch, with what it did.
#[derive(Clone, PartialEq, Debug)]
pub struct InstructionCounts {
    pub location: Option<SourceLocation>,
    pub kind: Kind,
    /// Bytes that a lane loads, stores or copies at a time.
    pub lane_bytes: u32,
    pub counts: Counts,
}

/// What a launch did: every instruction of the entry that was executed, in program order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LaunchCounts {
    pub instructions: Vec<InstructionCounts>,
    /// Sectors of global memory that were read at all, and written at all: what must come from DRAM and go there, where
    /// a cache keeps all that is wanted again.
    pub sectors_read: u64,
    pub sectors_written: u64,
    /// Shared memory of a block, in bytes, static and dynamic.
    pub shared_bytes: u64,
    /// Registers of a thread, estimated from the values alive together in the PTX.
    pub estimated_registers: u32,
}

impl LaunchCounts {
    /// Of all instructions, or of those of some kinds.
    pub fn total(&self, wanted: impl Fn(Kind) -> bool) -> Counts {
        let mut total = Counts::default();
        for instruction in self.instructions.iter().filter(|instruction| wanted(instruction.kind)) {
            total += instruction.counts;
        }
        total
    }
}

/// The addresses that an instruction saw last, and what they cost: most come by again, further along.
#[derive(Clone, Debug)]
struct Pattern {
    mask: u32,
    /// Of the first lane, within a line.
    start: u64,
    /// From the first lane's address.
    steps: [u64; LANES],
    touched: Touched,
    banked: Banked,
}

impl Pattern {
    const NONE: Pattern = Pattern {
        mask: 0,
        start: 0,
        steps: [0; LANES],
        touched: Touched { bytes: 0, sectors: 0, sharers: 0, lines: Vec::new() },
        banked: Banked { wavefronts: 0, conflicts: 0 },
    };
}

/// The observer that counts.
#[derive(Debug)]
pub struct Counter<'a> {
    program: &'a Program,
    known: Arc<[Known]>,
    counts: Vec<Counts>,
    patterns: Vec<Pattern>,
    /// Of the targets of copies.
    target_patterns: Vec<Pattern>,
    caches: Multiprocessors,
    footprint: Footprint,
    shared_bytes: u64,
    estimated_registers: u32,
}

/// Where lanes access memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Global,
    Shared,
    Local,
}

impl<'a> Counter<'a> {
    pub(super) fn new(
        entry: &krn_compiler::ptx::Entry,
        program: &'a Program,
        memory: &Memory,
        config: &LaunchConfig<'_>,
    ) -> Self {
        let count = program.code.len();
        let shared_bytes = program.shared_bytes + u64::from(config.shared_bytes);
        let estimated_registers = estimate_registers(entry, program, config.threads());
        let needs = BlockNeeds { threads: config.threads(), registers: estimated_registers, shared_bytes };
        Counter {
            program,
            known: program.statements.iter().map(|statement| Known::of(entry, *statement)).collect(),
            counts: vec![Counts::default(); count],
            patterns: vec![Pattern::NONE; count],
            target_patterns: vec![Pattern::NONE; program.copies.len()],
            caches: Multiprocessors::new(needs, config.blocks()),
            footprint: Footprint::new(memory),
            shared_bytes,
            estimated_registers,
        }
    }

    /// What was counted, by instruction.
    pub(super) fn finish(self, location: impl Fn(usize) -> Option<SourceLocation>) -> LaunchCounts {
        let executed = self.counts.into_iter().enumerate().filter(|(_, counts)| counts.warps > 0);
        let instructions = executed.map(|(pc, mut counts)| {
            let Known { kind, flops, flops64, lane_bytes, .. } = self.known[pc];
            counts.flops = counts.lanes * u64::from(flops);
            counts.flops64 = counts.lanes * u64::from(flops64);
            InstructionCounts { location: location(pc), kind, lane_bytes, counts }
        });
        let (sectors_read, sectors_written) = self.footprint.sectors();
        LaunchCounts {
            instructions: instructions.collect(),
            sectors_read,
            sectors_written,
            shared_bytes: self.shared_bytes,
            estimated_registers: self.estimated_registers,
        }
    }

    /// An access of the lanes in `mask`, of so many bytes each.
    #[inline(never)]
    fn access(
        &mut self,
        event: &Event<'_>,
        space: MemorySpace,
        addresses: &[u64; LANES],
        mask: u32,
        bytes: u32,
    ) {
        match space {
            MemorySpace::Global => self.at(event.pc, Place::Global, addresses, mask, bytes),
            MemorySpace::Shared => self.at(event.pc, Place::Shared, addresses, mask, bytes),
            MemorySpace::Local => self.at(event.pc, Place::Local, addresses, mask, bytes),
            MemorySpace::Const | MemorySpace::Param => {}
            MemorySpace::Generic => {
                let within = |window: u64| {
                    lanes_of(mask)
                        .filter(|lane| addresses[*lane] / WINDOW_BYTES * WINDOW_BYTES == window)
                        .fold(0, |bits, lane| bits | 1 << lane)
                };
                let (shared, local) = (within(SHARED_WINDOW), within(LOCAL_WINDOW));
                let others = shared | local | within(CONST_WINDOW) | within(PARAM_WINDOW);
                for (place, lanes) in
                    [(Place::Shared, shared), (Place::Local, local), (Place::Global, mask & !others)]
                {
                    if lanes != 0 {
                        self.at(event.pc, place, addresses, lanes, bytes);
                    }
                }
            }
        }
    }

    fn at(&mut self, pc: usize, place: Place, addresses: &[u64; LANES], mask: u32, bytes: u32) {
        let known = self.known[pc];
        let reads = matches!(known.kind, Kind::GlobalLoad | Kind::SharedLoad | Kind::LocalLoad | Kind::Copy);
        let pattern = &mut self.patterns[pc];
        pattern.look_at(place, addresses, mask, bytes, reads);
        let counts = &mut self.counts[pc];
        if place == Place::Shared {
            counts.shared_requests += 1;
            counts.wavefronts += u64::from(pattern.banked.wavefronts);
            counts.conflicts += u64::from(pattern.banked.conflicts);
        } else {
            counts.requests += 1;
            // Where an integer goes to one address for all, the assembler has one lane combine for the warp.
            let apart = pattern.touched.sharers < mask.count_ones();
            let sectors = match known.kind {
                Kind::GlobalReduction if apart => reductions::turns(addresses, mask),
                _ => pattern.touched.sectors,
            };
            counts.sectors += u64::from(sectors);
            counts.bytes += u64::from(pattern.touched.bytes);
            let loads = reads && place == Place::Global;
            if !loads {
                counts.l2_sectors += u64::from(sectors);
            }
            let (reads, writes) = (known.kind != Kind::GlobalStore, !reads);
            let first = addresses[mask.trailing_zeros() as usize & 31] / LINE;
            // None, of local memory: it is not the arrays'.
            for (line, sectors) in &pattern.touched.lines {
                let line = first.wrapping_add(*line as u64);
                if loads {
                    counts.l2_sectors += u64::from(self.caches.l1().read(line, *sectors, known.in_l1));
                }
                if known.kind == Kind::GlobalStore && place == Place::Global {
                    self.caches.l1().write(line, *sectors);
                }
                self.footprint.touch(line, *sectors, reads, writes);
            }
        }
        if matches!(known.kind, Kind::GlobalAtomic | Kind::GlobalReduction | Kind::SharedAtomic) {
            counts.serial += u64::from(pattern.touched.sharers);
        }
    }

    fn copy(&mut self, event: &Event<'_>) {
        let row = event.inst.imm as usize;
        let form: CopyForm = self.program.copies[row];
        let r = event.registers;
        let sources = addresses(r, form.from_base, form.from_base_is_wide, form.from_offset);
        let reads_any = |lane: &usize| form.from_bytes == NOWHERE || r.c32(form.from_bytes)[*lane] > 0;
        let reading = lanes_of(event.mask).filter(reads_any).fold(0, |bits, lane| bits | 1 << lane);
        if reading != 0 {
            self.access(event, form.from, &sources, reading, form.bytes);
        }
        let targets = addresses(r, form.to_base, form.to_base_is_wide, form.to_offset);
        let pattern = &mut self.target_patterns[row];
        pattern.look_at(Place::Shared, &targets, event.mask, form.bytes, false);
        let counts = &mut self.counts[event.pc];
        counts.shared_requests += 1;
        counts.wavefronts += u64::from(pattern.banked.wavefronts);
        counts.conflicts += u64::from(pattern.banked.conflicts);
    }
}

impl Pattern {
    /// Works out what an access costs, unless it is the last one again or that one moved by whole lines.
    fn look_at(&mut self, place: Place, addresses: &[u64; LANES], mask: u32, bytes: u32, reads: bool) {
        let first = addresses[mask.trailing_zeros() as usize & 31];
        let start = first % LINE;
        if self.mask == mask && self.start == start && self.goes_on_like(addresses, first) {
            return;
        }
        (self.mask, self.start) = (mask, start);
        for (step, address) in self.steps.iter_mut().zip(addresses) {
            *step = address.wrapping_sub(first);
        }
        match place {
            Place::Local => self.touched = touched_locally(addresses, mask, bytes),
            Place::Global | Place::Shared => self.touched.look_at(addresses, mask, bytes),
        }
        self.banked =
            if place == Place::Shared { banked(addresses, mask, bytes, reads) } else { Banked::default() };
    }

    /// Whether the lanes of the mask are as far from the first one as they were.
    #[inline(always)]
    fn goes_on_like(&self, addresses: &[u64; LANES], first: u64) -> bool {
        let apart =
            addresses.iter().zip(&self.steps).map(|(address, step)| address.wrapping_sub(first) ^ step);
        if self.mask == FULL {
            // All of them, without a branch at each.
            apart.fold(0, |any, apart| any | apart) == 0
        } else {
            apart.enumerate().all(|(lane, apart)| apart == 0 || self.mask >> lane & 1 == 0)
        }
    }
}

impl Observer for Counter<'_> {
    const ENABLED: bool = true;

    /// Few: on the machine, the warps' accesses come mixed to the cache.
    const SLICE: u64 = 64;

    fn fork(&self) -> Self {
        Counter {
            program: self.program,
            known: Arc::clone(&self.known),
            counts: vec![Counts::default(); self.counts.len()],
            patterns: vec![Pattern::NONE; self.patterns.len()],
            target_patterns: vec![Pattern::NONE; self.target_patterns.len()],
            caches: self.caches.fork(),
            footprint: self.footprint.fresh(),
            shared_bytes: self.shared_bytes,
            estimated_registers: self.estimated_registers,
        }
    }

    fn block(&mut self, block: u64, over: &dyn Fn() -> bool) {
        self.caches.enter(block, over);
    }

    fn block_done(&mut self) {
        self.caches.leave();
    }

    #[inline(always)]
    fn instruction(&mut self, event: &Event<'_>) -> Outcome {
        let (i, r, mask) = (event.inst, event.registers, event.mask);
        let counts = &mut self.counts[event.pc];
        counts.warps += 1;
        counts.lanes += if mask == FULL { LANES as u64 } else { u64::from(mask.count_ones()) };
        if mask == 0 {
            return Ok(());
        }
        match i.code {
            Code::Control(Control::Branch) => counts.divergent += u64::from(mask != event.active),
            Code::Load(form) => {
                let bytes = u32::from(form.width) * u32::from(form.count);
                self.access(event, form.space, &addresses(r, i.a, form.wide_base, i.imm), mask, bytes);
            }
            Code::Store(form) => {
                let bytes = u32::from(form.width) * u32::from(form.count);
                self.access(event, form.space, &addresses(r, i.a, form.wide_base, i.imm), mask, bytes);
            }
            Code::LoadMatrix(form) => {
                let addresses = addresses(r, i.a, form.wide_base, i.imm);
                self.access(event, form.space, &addresses, mask & form.rows(), MatrixForm::ROW);
            }
            Code::Atomic(form) => {
                let bytes = form.op.ty.bytes();
                self.access(event, form.space, &addresses(r, i.a, form.wide_base, i.imm), mask, bytes);
            }
            Code::Copy(CopyOp::Begin) => self.copy(event),
            _ => {}
        }
        Ok(())
    }

    fn opened(&mut self, _: usize, _: &[usize]) {}

    fn merge(&mut self, other: Self) {
        for (own, theirs) in self.counts.iter_mut().zip(other.counts) {
            *own += theirs;
        }
        self.footprint.merge(other.footprint);
    }
}

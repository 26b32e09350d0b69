//! The sanitizer: an observer that ends a launch at the first race between threads, and at the first read of shared or
//! global memory that nobody has written.
//!
//! Two accesses race where different threads touch the same bytes, one of them writes, not both are atomic, and nothing
//! orders them: not a barrier that both threads' warps come to, nor, within a warp, `bar.warp.sync`. Shuffles order
//! registers, not memory. Blocks of one launch are ordered by nothing; launches wait for each other. The other access is
//! named too ([`OtherAccess`]). It does not know orders made by fences and flags. A copy in the background (`cp.async`)
//! may write from its begin to the end of the wait for its group: until then every access to its target races with it, the
//! own thread's as well; from then on it is a write of that thread.
//!
//! Divergent barriers and those that can no longer fill end every launch, sanitized or not.

mod clocks;
mod shadow;
#[cfg(test)]
mod tests;

use super::exec::copy::CopyQueue;
use super::exec::lanes::{LANES, lanes_of};
use super::exec::memory::addresses;
use super::exec::{Outcome, fault};
use super::fault::{AccessKind, FaultKind, MemoryKind, Near, OtherAccess};
use super::launch::LaunchConfig;
use super::memory::{CONST_WINDOW, LOCAL_WINDOW, Memory, PARAM_WINDOW, SHARED_WINDOW, WINDOW_BYTES};
use super::observe::{Event, Observer};
use super::opcodes::{Control, CopyOp, MatrixForm, MemorySpace};
use super::program::{Code, Program};
use clocks::Clocks;
use shadow::{Record, Shadow};

/// Shadow state of one launch, run by one host thread, block after block.
#[derive(Debug)]
pub struct Sanitizer<'a> {
    memory: &'a Memory,
    program: &'a Program,
    config: &'a LaunchConfig<'a>,
    shared_bytes: u64,
    clocks: Clocks,
    shared: Shadow,
    global: Shadow,
    block: u64,
    /// The copies of each warp that nobody has waited for.
    copies: Vec<CopyQueue<Begun>>,
}

/// A copy to shared memory under way.
#[derive(Clone, Copy, Debug)]
struct Begun {
    address: u64,
    bytes: u64,
    record: Record,
}

/// Some bytes that the lanes of a warp access.
struct Access<'a> {
    space: MemorySpace,
    kind: AccessKind,
    bytes: u32,
    addresses: &'a [u64; LANES],
    mask: u32,
    /// Whether the bytes come later, by a copy in the background.
    later: bool,
}

impl<'a> Sanitizer<'a> {
    pub(super) fn new(memory: &'a Memory, program: &'a Program, config: &'a LaunchConfig<'a>) -> Self {
        let warps = config.threads().div_ceil(LANES as u64) as usize;
        Sanitizer {
            memory,
            program,
            config,
            shared_bytes: program.shared_bytes + u64::from(config.shared_bytes),
            clocks: Clocks::new(warps),
            shared: Shadow::default(),
            global: Shadow::default(),
            block: 0,
            copies: (0..warps).map(|_| CopyQueue::default()).collect(),
        }
    }

    /// Whether some thread of the block has written these bytes of shared memory.
    pub(super) fn has_written(&self, offset: u64, bytes: u64) -> bool {
        self.shared.is_written(offset, bytes)
    }

    fn access(&mut self, event: &Event<'_>, access: &Access<'_>) -> Outcome {
        for lane in lanes_of(access.mask) {
            let address = access.addresses[lane];
            let own = match access.space {
                MemorySpace::Shared => Some((true, address)),
                MemorySpace::Global => Some((false, address)),
                MemorySpace::Generic => match address / WINDOW_BYTES * WINDOW_BYTES {
                    SHARED_WINDOW => Some((true, address - SHARED_WINDOW)),
                    LOCAL_WINDOW | PARAM_WINDOW | CONST_WINDOW => None,
                    _ => Some((false, address)),
                },
                MemorySpace::Const | MemorySpace::Local | MemorySpace::Param => None,
            };
            if let Some((shared, address)) = own {
                self.lane(event, access, lane, shared, address)?;
            }
        }
        Ok(())
    }

    /// One lane's access. One out of bounds is left to the execution, which ends the launch.
    fn lane(
        &mut self,
        event: &Event<'_>,
        access: &Access<'_>,
        lane: usize,
        shared: bool,
        address: u64,
    ) -> Outcome {
        let bytes = u64::from(access.bytes);
        let allocation = if shared {
            if address.checked_add(bytes).is_none_or(|end| end > self.shared_bytes) {
                return Ok(());
            }
            None
        } else {
            let Some(at) = self.memory.find(address) else { return Ok(()) };
            let allocation = &self.memory.allocations()[at];
            if address - allocation.base + bytes > allocation.size {
                return Ok(());
            }
            Some(allocation)
        };
        let now = Record {
            block: self.block,
            thread: (event.warp * LANES + lane) as u32,
            time: self.clocks.now(event.warp),
            pc: event.pc as u32,
            access: access.kind,
        };
        let clocks = &self.clocks;
        let is_over = |other: &Record| {
            other.block == now.block && clocks.is_over(event.warp, other.thread as usize / LANES, other.time)
        };
        let (mut race, mut unwritten) = (None, false);
        let shadow = if shared { &mut self.shared } else { &mut self.global };
        shadow.visit(address, bytes, |cell| {
            unwritten |= shared && cell.write.is_none();
            race =
                race.or(if access.later { cell.begin_copy(now, is_over) } else { cell.access(now, is_over) });
        });
        if access.later && shared {
            self.copies[event.warp].push(lane as u32, Begun { address, bytes, record: now });
        }
        let reads = access.kind != AccessKind::Store;
        if let Some(allocation) = allocation {
            let offset = address - allocation.base;
            unwritten = reads && !allocation.is_written(offset, bytes);
            if access.kind != AccessKind::Load {
                allocation.mark_written(offset, bytes);
            }
        }
        let memory = if shared { MemoryKind::Shared } else { MemoryKind::Global };
        let near =
            allocation.map(|found| Near { name: found.name.clone(), base: found.base, size: found.size });
        let kind = if let Some(other) = race {
            let other = OtherAccess {
                access: other.access,
                block: self.config.block_position(other.block),
                thread: self.config.thread_position(other.thread),
                pc: other.pc as usize,
                location: None,
                instruction: String::new(),
            };
            FaultKind::Race { access: access.kind, memory, address, near, other: Box::new(other) }
        } else if reads && unwritten {
            FaultKind::Uninitialised { access: access.kind, memory, address, bytes: access.bytes, near }
        } else {
            return Ok(());
        };
        fault(1 << lane, kind)
    }
}

impl Observer for Sanitizer<'_> {
    const ENABLED: bool = true;

    /// For the one host thread of the launch.
    fn fork(&self) -> Self {
        Sanitizer::new(self.memory, self.program, self.config)
    }

    fn block(&mut self, block: u64, _: &dyn Fn() -> bool) {
        self.block = block;
        self.clocks.start();
        self.shared.clear();
        self.copies.iter_mut().for_each(CopyQueue::clear);
    }

    fn instruction(&mut self, event: &Event<'_>) -> Outcome {
        let (i, r, mask) = (event.inst, event.registers, event.mask);
        if mask == 0 {
            return Ok(());
        }
        let plain = |sanitizer: &mut Self, space, kind, bytes, wide_base| {
            let addresses = &addresses(r, i.a, wide_base, i.imm);
            sanitizer.access(event, &Access { space, kind, bytes, addresses, mask, later: false })
        };
        match i.code {
            Code::Load(form) => {
                let bytes = u32::from(form.width) * u32::from(form.count);
                let kind = if form.ordered { AccessKind::Atomic } else { AccessKind::Load };
                plain(self, form.space, kind, bytes, form.wide_base)
            }
            Code::Store(form) => {
                let bytes = u32::from(form.width) * u32::from(form.count);
                plain(self, form.space, AccessKind::Store, bytes, form.wide_base)
            }
            Code::LoadMatrix(form) => {
                let (space, kind, bytes) = (form.space, AccessKind::Load, MatrixForm::ROW);
                let addresses = &addresses(r, i.a, form.wide_base, i.imm);
                let mask = mask & form.rows();
                self.access(event, &Access { space, kind, bytes, addresses, mask, later: false })
            }
            Code::Atomic(form) => {
                plain(self, form.space, AccessKind::Atomic, form.op.ty.bytes(), form.wide_base)
            }
            Code::Copy(CopyOp::Begin) => {
                let form = &self.program.copies[i.imm as usize];
                let sources = &addresses(r, form.from_base, form.from_base_is_wide, form.from_offset);
                let targets = &addresses(r, form.to_base, form.to_base_is_wide, form.to_offset);
                let (bytes, whole) = (form.bytes, form.from_bytes == super::program::NOWHERE);
                let (from, to) = (form.from, form.to);
                // A copy that is cut short may read nothing at all.
                if whole {
                    let (space, kind) = (from, AccessKind::Load);
                    self.access(
                        event,
                        &Access { space, kind, bytes, addresses: sources, mask, later: false },
                    )?;
                }
                let (space, kind) = (to, AccessKind::Store);
                self.access(event, &Access { space, kind, bytes, addresses: targets, mask, later: true })
            }
            Code::Copy(CopyOp::Commit) => {
                self.copies[event.warp].commit(mask);
                Ok(())
            }
            Code::Copy(CopyOp::Wait) => {
                let (shared, time) = (&mut self.shared, self.clocks.now(event.warp));
                self.copies[event.warp].wait(mask, i.imm, |copy| {
                    let done = Record { time, ..copy.record };
                    shared.visit(copy.address, copy.bytes, |cell| cell.end_copy(done));
                });
                Ok(())
            }
            Code::Control(Control::WarpSync) => {
                self.clocks.warp_sync(event.warp);
                Ok(())
            }
            Code::Control(Control::BarrierSync | Control::BarrierArrive | Control::BarrierReduce(_)) => {
                let barrier = r.c32(i.a)[mask.trailing_zeros() as usize];
                self.clocks.arrive(barrier as usize, event.warp);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn opened(&mut self, barrier: usize, waiting: &[usize]) {
        self.clocks.open(barrier, waiting);
    }

    fn merge(&mut self, _: Self) {}
}

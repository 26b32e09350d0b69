//! Runs one block after the other on one host thread: warps in turn, each until it waits.

use super::LaneFault;
use super::control::WarpState;
use super::lanes::LANES;
use super::runner::Runner;
use super::warp::Pause;
use crate::emulator::fault::FaultKind;
use crate::emulator::observe::{Event, Observer};

/// A fault and the instruction and thread it belongs to.
#[derive(Debug)]
pub struct BlockFault {
    pub kind: FaultKind,
    pub pc: usize,
    /// The thread's number in its block, x first.
    pub thread: u32,
}

impl<O: Observer> Runner<'_, O> {
    /// Runs one block. `Ok(false)` when the launch is given up meanwhile.
    pub fn run_block(&mut self, block: u64) -> Result<bool, BlockFault> {
        self.block = block;
        self.has_turn = false;
        self.prepare_block();
        let turns = self.turns;
        self.observer.block(block, &|| turns.is_over(block));
        let outcome = self.run_warps();
        if matches!(outcome, Ok(true)) {
            self.observer.block_done();
        }
        for warp in &self.warps {
            self.executed += warp.executed;
            self.lane_executed += warp.lane_executed;
        }
        outcome
    }

    fn run_warps(&mut self) -> Result<bool, BlockFault> {
        let mut running = self.warps.len() as u32;
        loop {
            let mut moved = false;
            for at in 0..self.warps.len() {
                if self.warps[at].state != WarpState::Ready {
                    continue;
                }
                moved = true;
                match self.run_warp(at) {
                    Ok(Pause::Slice) => {
                        let cancel = self.config.cancel;
                        if cancel.is_some_and(|cancel| cancel.load(std::sync::atomic::Ordering::Relaxed)) {
                            self.turns.cancel();
                        }
                        if self.turns.is_over(self.block) {
                            return Ok(false);
                        }
                    }
                    Ok(Pause::Barrier) => {}
                    Ok(Pause::Done) => running -= 1,
                    Ok(Pause::Abandoned) => return Ok(false),
                    Err(fault) => {
                        self.tell(at, &fault);
                        return Err(self.blame(at, *fault));
                    }
                }
            }
            if running == 0 {
                return Ok(true);
            }
            let observer = &mut self.observer;
            let opened = |barrier: usize, waiting: &[usize]| {
                if O::ENABLED {
                    observer.opened(barrier, waiting);
                }
            };
            self.barriers.open(&mut self.warps, &mut self.registers, running, opened);
            if !moved && self.warps.iter().all(|warp| warp.state != WarpState::Ready) {
                return Err(self.deadlock());
            }
        }
    }

    /// Lets the observer see what failed.
    fn tell(&mut self, at: usize, fault: &LaneFault) {
        let (program, warp) = (self.program, &self.warps[at]);
        let (pc, active, registers, view) = (warp.pc as usize, warp.active, &self.registers[at], &self.view);
        if let Some(inst) = program.code.get(pc).filter(|_| O::ENABLED) {
            let event = Event { pc, inst, warp: at, active, mask: active, registers, view };
            self.observer.failed(&event, fault);
        }
    }

    fn blame(&self, at: usize, fault: LaneFault) -> BlockFault {
        let pc = self.warps[at].pc as usize;
        BlockFault { kind: fault.kind, pc, thread: (at * LANES) as u32 + fault.lane }
    }

    #[cold]
    fn deadlock(&self) -> BlockFault {
        let mut waiting = self.warps.iter().enumerate().filter_map(|(at, warp)| match warp.state {
            WarpState::Waiting(barrier) => Some((at, barrier, warp)),
            _ => None,
        });
        let Some((at, barrier, warp)) = waiting.next() else {
            let kind = FaultKind::Deadlock { waiting: 0, barrier: 0 };
            return BlockFault { kind, pc: 0, thread: 0 };
        };
        let kind = FaultKind::Deadlock { waiting: 1 + waiting.count() as u32, barrier };
        let lane = warp.live.trailing_zeros().min(31);
        // The warp already stands behind the barrier.
        BlockFault { kind, pc: warp.pc as usize - 1, thread: (at * LANES) as u32 + lane }
    }
}

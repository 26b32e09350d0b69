//! The sixteen barriers of a block.

use krn_compiler::ptx::instruction::BarrierRedOp;

use super::control::{Warp, WarpState};
use super::lanes::{Registers, write};
use super::{Outcome, fault};
use crate::emulator::fault::FaultKind;
use crate::emulator::opcodes::Control;
use crate::emulator::program::{Inst, NOWHERE};

const BARRIERS: usize = 16;

/// A result that a waiting warp gets when the barrier opens.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    warp: usize,
    op: BarrierRedOp,
    column: u32,
    lanes: u32,
}

/// One barrier.
#[derive(Clone, Debug, Default)]
struct Barrier {
    arrived: u32,
    waiting: Vec<usize>,
    /// How many threads take part, where an instruction says so.
    threads: Option<u32>,
    reductions: Vec<Reduction>,
    /// Over the reductions: how many threads, and of how many the predicate holds.
    reduced: u32,
    holding: u32,
}

/// The barriers of one block. Threads take part by whole warps.
#[derive(Debug)]
pub struct Barriers {
    barriers: Vec<Barrier>,
    warps: u32,
}

impl Barriers {
    pub fn new(warps: usize) -> Self {
        Barriers { barriers: vec![Barrier::default(); BARRIERS], warps: warps as u32 }
    }

    pub fn clear(&mut self) {
        for barrier in &mut self.barriers {
            if barrier.arrived > 0 {
                *barrier = Barrier::default();
            }
        }
    }

    /// A warp arrives. True where it has to wait (which it also does as the last: the block opens the barrier).
    pub fn arrive(
        &mut self,
        op: Control,
        at: usize,
        warp: &mut Warp,
        r: &Registers,
        i: &Inst,
        mask: u32,
    ) -> Outcome<bool> {
        let lane = mask.trailing_zeros() as usize;
        let number = r.c32(i.a)[lane];
        let bad = |reason: String| fault(mask, FaultKind::BadBarrier { reason });
        if number as usize >= BARRIERS {
            return bad(format!("there is no barrier {number}, only 0 to 15"));
        }
        if mask != warp.live {
            let missing = warp.live & !mask;
            return fault(mask, FaultKind::DivergentBarrier { barrier: number, arrived: mask, missing });
        }
        let threads = (i.b != NOWHERE).then(|| r.c32(i.b)[lane]);
        if let Some(threads) = threads
            && (threads == 0 || !threads.is_multiple_of(32) || threads > self.warps * 32)
        {
            let most = self.warps * 32;
            return bad(format!("{threads} threads is not a multiple of 32 from 32 to {most}"));
        }
        let barrier = &mut self.barriers[number as usize];
        if barrier.arrived > 0 && barrier.threads != threads {
            return bad(format!("barrier {number} is in use with another number of threads"));
        }
        barrier.threads = threads;
        barrier.arrived += 1;
        if let Control::BarrierReduce(op) = op {
            let flip = if i.imm == 1 { u32::MAX } else { 0 };
            let holding = (r.predicate(i.c) ^ flip) & mask;
            barrier.reduced += mask.count_ones();
            barrier.holding += holding.count_ones();
            barrier.reductions.push(Reduction { warp: at, op, column: i.d, lanes: mask });
        }
        if op == Control::BarrierArrive {
            return Ok(false);
        }
        barrier.waiting.push(at);
        warp.state = WarpState::Waiting(number);
        Ok(true)
    }

    /// Lets the warps go whose barrier is full, and tells `opened` its number and theirs. `running` is how many warps
    /// have not exited.
    pub fn open(
        &mut self,
        warps: &mut [Warp],
        registers: &mut [Registers],
        running: u32,
        mut opened: impl FnMut(usize, &[usize]),
    ) {
        for (number, barrier) in self.barriers.iter_mut().enumerate() {
            let needed = barrier.threads.map_or(running, |threads| threads / 32);
            if barrier.arrived == 0 || barrier.arrived < needed {
                continue;
            }
            for reduction in &barrier.reductions {
                let r = &mut registers[reduction.warp];
                let answer = match reduction.op {
                    BarrierRedOp::Popc => {
                        write(r, reduction.column, reduction.lanes, &[barrier.holding; 32]);
                        continue;
                    }
                    BarrierRedOp::And => barrier.holding == barrier.reduced,
                    BarrierRedOp::Or => barrier.holding > 0,
                };
                r.set_predicate(reduction.column, reduction.lanes, if answer { u32::MAX } else { 0 });
            }
            opened(number, &barrier.waiting);
            for at in &barrier.waiting {
                warps[*at].state = WarpState::Ready;
            }
            *barrier = Barrier::default();
        }
    }
}

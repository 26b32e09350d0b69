//! Control flow of one warp: divergence, reconvergence and exit.
//!
//! A warp follows one path at a time. Where the lanes disagree at a branch, the path not taken first is put on a
//! stack together with the *reconvergence point*, the branch's immediate post-dominator, at which the lanes of both
//! paths join again. Lanes that exit drop out of every entry of the stack.

use super::copy::{CopyQueue, Pending};
use crate::emulator::program::NEVER;

/// A path that waits for its turn.
#[derive(Clone, Copy, Debug)]
struct Path {
    pc: u32,
    /// Where this path ends, to join the one below.
    until: u32,
    lanes: u32,
}

/// Where a warp is.
#[derive(Debug, Default)]
pub struct Warp {
    pub pc: u32,
    until: u32,
    /// The lanes on the current path.
    pub active: u32,
    /// The lanes that have not exited.
    pub live: u32,
    stack: Vec<Path>,
    pub copies: CopyQueue<Pending>,
    /// Instructions executed in this block, by the warp and by its lanes.
    pub executed: u64,
    pub lane_executed: u64,
    pub state: WarpState,
}

/// Whether a warp can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WarpState {
    #[default]
    Ready,
    /// At this barrier.
    Waiting(u32),
    Done,
}

impl Warp {
    /// Puts the warp at the start of the program.
    pub fn start(&mut self, lanes: u32) {
        self.pc = 0;
        self.until = NEVER;
        self.active = lanes;
        self.live = lanes;
        self.stack.clear();
        self.copies.clear();
        self.executed = 0;
        self.lane_executed = 0;
        self.state = WarpState::Ready;
    }

    /// Takes a branch: the lanes in `taken` go to `target`, the rest to the next instruction.
    #[inline(always)]
    pub fn branch(&mut self, taken: u32, target: u32, join: u32) {
        if taken == self.active {
            self.pc = target;
        } else if taken == 0 {
            self.pc += 1;
        } else {
            self.diverge(taken, target, join);
        }
    }

    /// The lanes go different ways; the fall-through path runs first.
    #[inline(never)]
    fn diverge(&mut self, taken: u32, target: u32, join: u32) {
        let next = self.pc + 1;
        let rest = self.active & !taken;
        // A join that is never reached leaves the one of the path that we are on.
        let join = if join == NEVER { self.until } else { join };
        if join != self.until {
            self.stack.push(Path { pc: join, until: self.until, lanes: self.active });
        }
        self.until = join;
        if target == join {
            self.active = rest;
            self.pc = next;
        } else if next == join {
            self.active = taken;
            self.pc = target;
        } else {
            self.stack.push(Path { pc: target, until: join, lanes: taken });
            self.active = rest;
            self.pc = next;
        }
    }

    /// The lanes in `mask` exit.
    pub fn exit(&mut self, mask: u32) {
        self.copies.wait(mask, -1, Pending::carry_out);
        self.live &= !mask;
        self.active &= !mask;
        for path in &mut self.stack {
            path.lanes &= !mask;
        }
        self.pc += 1;
    }

    /// Goes on with a waiting path where the current one has ended. False when no lane is left.
    #[inline(always)]
    pub fn settle(&mut self) -> bool {
        if self.pc != self.until && self.active != 0 {
            return true;
        }
        self.next_path()
    }

    #[inline(never)]
    fn next_path(&mut self) -> bool {
        while self.pc == self.until || self.active == 0 {
            let Some(path) = self.stack.pop() else { return false };
            self.pc = path.pc;
            self.until = path.until;
            self.active = path.lanes;
        }
        true
    }
}

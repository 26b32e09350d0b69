//! A window into a running launch, for counters and checkers.
//!
//! The loop over instructions is compiled once for each observer. With [`Quiet`] nothing of it is left.

use super::exec::lanes::Registers;
use super::exec::memory::View;
use super::exec::{LaneFault, Outcome};
use super::program::Inst;

/// One instruction that a warp is about to execute.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    /// Position in the program.
    pub pc: usize,
    pub inst: &'a Inst,
    /// The warp within its block.
    pub warp: usize,
    /// The lanes on this path, and those of them for which the guard holds.
    pub active: u32,
    pub mask: u32,
    /// The registers before the instruction: addresses and shadow state are derived from them.
    pub registers: &'a Registers,
    /// The memory that the block sees.
    pub view: &'a View<'a>,
}

/// Sees every instruction. Each host thread has its own; they are merged when the launch ends, in no order.
pub trait Observer: Send {
    /// Whether anything is looked at: constant, so that the calls vanish where it is false.
    const ENABLED: bool;

    /// So many instructions a warp may run before the others of its block get a turn.
    const SLICE: u64 = 1 << 16;

    /// For a further host thread.
    fn fork(&self) -> Self;

    /// A block starts; its number counts x first. Who waits here for an earlier block asks `over` whether the launch
    /// is given up: then that block may never come.
    fn block(&mut self, block: u64, over: &dyn Fn() -> bool);

    /// The block has run to its end.
    fn block_done(&mut self) {}

    /// A warp is about to execute an instruction. A fault ends the launch in its place.
    fn instruction(&mut self, event: &Event<'_>) -> Outcome;

    /// The instruction has failed, here or when it was executed: the launch ends.
    fn failed(&mut self, _: &Event<'_>, _: &LaneFault) {}

    /// A barrier of the block lets the warps go that wait at it.
    fn opened(&mut self, barrier: usize, waiting: &[usize]);

    /// Takes in what a fork has seen.
    fn merge(&mut self, other: Self);
}

/// Looks at nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Observer for Quiet {
    const ENABLED: bool = false;

    fn fork(&self) -> Quiet {
        Quiet
    }

    fn block(&mut self, _: u64, _: &dyn Fn() -> bool) {}

    fn instruction(&mut self, _: &Event<'_>) -> Outcome {
        Ok(())
    }

    fn opened(&mut self, _: usize, _: &[usize]) {}

    fn merge(&mut self, _: Quiet) {}
}

//! Debugging: a launch that somebody looks at, instruction by instruction, and may hold up.
//!
//! Blocks run one after the other, and warps in turn, as in [`launch_sanitized`](super::Emulator::launch_sanitized). The
//! [`Debugger`] is asked before each instruction of each warp, on the thread that runs the launch; as long as it does
//! not come back, the launch stands still and everything of it can be looked at ([`Moment`]). Where the PTX's data says
//! which registers hold the source's names ([`krn_compiler::ptx::Binding`]), [`Names`] knows where they do.

mod moment;
mod names;
#[cfg(test)]
mod tests;
mod watch;

pub use moment::{Launched, Moment};
pub use names::{Holding, Names};
pub(super) use watch::Watch;

use super::fault::Fault;

/// Who looks at launches.
pub trait Debugger: Send + Sync {
    /// A launch is about to start.
    fn begins(&self, launch: &Launched<'_>);

    /// A warp is about to execute an instruction.
    fn instruction(&self, moment: &Moment<'_>);

    /// The instruction has failed: the launch ends when this comes back.
    fn failed(&self, moment: &Moment<'_>, fault: &Fault);

    /// The launch has ended, one way or another.
    fn ends(&self);
}

//! What the threads of a block owe each other, in launches whose threads are explicit: a check that shares no code
//! with the passes that insert barriers.
//!
//! - *Convergence* (`converge.rs`): every `barrier` is reached by all threads of the block, every `shuffle_xor` by all
//!   threads of the warp: nothing around them depends on the number of the thread (or of the lane).
//! - *Races* (`walk.rs`): where two threads touch the same element of a shared buffer and one of them writes, a
//!   barrier stands between on every path, also from one turn of a loop to the next. Lanes of one warp are different
//!   threads too: they run in lockstep only where an instruction makes them.
//!
//! Two accesses are told apart by their subscripts (`forms.rs`, `conflict.rs`): sums of what is the same for all threads
//! (equal on both sides within one stretch between barriers, so it cancels), a table with one number a thread, and
//! multiples of unknowns. The tables are compared thread by thread, so nothing need be known of how a pass numbers them.
//!
//! # What is relied on
//!
//! Subscripts are inside their extents, and index arithmetic does not wrap: lowering sees to both. Global memory is not
//! looked at: iterations of a `forall` are free of conflicts (`check/prove`), and launches wait for each other. A thread
//! that a bounds check ends makes the launch fail, so what the others miss does not count.

mod conflict;
mod converge;
mod depends;
mod forms;
mod tables;
#[cfg(test)]
mod tests;
mod walk;

use super::{MAX_ERRORS, VerifierError};
use crate::ir::entities::Inst;
use crate::ir::kernel::{Kernel, Phase};
use crate::ir::text::print_inst;
use depends::Dependence;

/// Checks the barriers and shuffles of a kernel that [`verify`](super::verify) accepts, in the launches that are `staged`;
/// every broken rule (up to 20), launch by launch.
pub fn verify_threads(kernel: &Kernel) -> Result<(), Vec<VerifierError>> {
    let mut errors = Vec::new();
    for (launch, data) in &kernel.launches {
        if data.phase < Phase::Staged || !walk::needs_check(kernel, launch) {
            continue;
        }
        let depends = Dependence::new(kernel, launch);
        let found = converge::check(kernel, launch, &depends);
        // Only where all threads go through the same barriers do barriers divide time.
        errors.extend(if found.is_empty() { walk::check(kernel, launch, &depends) } else { found });
    }
    errors.truncate(MAX_ERRORS);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// An instruction's text, with its place in the source where it has one.
fn text(kernel: &Kernel, inst: Inst) -> String {
    let span = kernel.insts[inst].span;
    let line = print_inst(kernel, inst);
    if span.start == span.end {
        format!("`{line}`")
    } else {
        format!("`{line}` @{}..{}", span.start, span.end)
    }
}

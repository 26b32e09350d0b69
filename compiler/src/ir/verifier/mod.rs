//! Checks that a kernel is what the other rooms rely on. Runs after lowering, after parsing text and, in tests
//! and on demand, after every pass; a broken rule is a mistake in the compiler (or in somebody's pass), and the
//! message names the instruction in text form. Never panics, however broken the kernel.
//!
//! # What holds in every phase
//!
//! Structure (`structure.rs`)
//! - A launch's root block has no parameters and no `yield`; every other block is one region of one
//!   instruction and ends in `yield`, which stands nowhere else.
//! - An instruction is listed by one block, once; an axis belongs to one loop. Results and parameters know
//!   their definition.
//! - An operand is defined before its use, in the same block or in one around it.
//! - Ops have the payload that the table says; the entities in it exist.
//!
//! Types (`types.rs`)
//! - Values have wide types, but tiles from where they are loaded or cast to a contraction of a matrix atom; constants fit them; operands and results are as the op table says.
//! - Loop bounds, steps and subscripts are i64, one subscript an axis of the buffer and one an extent of the leaf.
//! - Region parameters and yields have the number and the types that the table in `op.rs` says.
//! - Nothing writes to constants and inputs. Atomics have a combiner that fits their scalar.
//!
//! Declarations (`declarations.rs`)
//! - Extents, facts and plan name existing symbols; extents of private buffers are constants.
//! - An array argument's position is a place in the signature that names the buffer, and the other way round.
//! - Every launch stands in the plan once; launches have different names; counters are repeated around them.
//! - Leaves have different paths; AoSoA groups are powers of two of at least 8.
//! - The code of a combiner is pure, takes the values of two contributions and yields those of one.
//!
//! # What holds in a phase (`phases.rs`)
//!
//! - `abstract`: no axis has factors and no launch has threads.
//! - `mapped` and later: every axis has factors, of size at least 1; at most one is `*`, and it is the first.
//!   Where an axis has only sized factors and a constant extent, they cover it. A launch has 1 to 1024 threads,
//!   at most 32 or a multiple of 32.
//! - `mapped` and later: a loop whose axes have `grid`, `cluster`, `warp` or `lane` factors is a `forall` that
//!   stands in no other loop, or one inside it, without `grid`, of which a team of threads shares the last axis. Its lanes
//!   and warps, times those of the loop around it, are exactly the launch's threads: lanes multiply to
//!   min(threads, 32), warps to the rest. Earlier axes of one loop are the outer ones.
//! - `mapped` and later: an axis whose grid factor is `*` has bounds that the host can compute (`symbolic`).
//! - `tiled` (`tiles.rs`): the launch declares the axes of its tiles; in other phases all values are scalars. An op's result
//!   has the axes of its operands, and may have more; those that a reduction is along are gone. Conditions of `if` and
//!   `while` and bounds of `for` are scalars. Where the launch is placed, all tiles have layouts on its threads, and the
//!   operands of an op lie as its result does, without the axes that they lack; `convert` alone goes from one to another.
//!   Tiles of a matrix atom are fragments of its instruction times whole digits.
//! - `staged` and later, by [`verify_threads`] alone: barriers stand where threads share memory, and all threads reach
//!   them (`threads/`).
//! - `block_index`, `grid_size`, `thread_index`, `barrier`, `shuffle_xor`, `load_vector`, `store_vector`, `copy_async`,
//!   `copy_commit`, `copy_wait`, shared buffers and explicit grids stand in phase `mapped` and later; a launch with an
//!   explicit grid has no parallel factors.

mod declarations;
mod phases;
mod structure;
mod threads;
mod tiles;
mod types;

use super::entities::Inst;
use super::kernel::Kernel;
use super::text::print_inst;
use crate::source::Span;
use std::fmt;

pub use threads::verify_threads;

/// One broken rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifierError {
    /// The instruction's text, or the declaration that is meant.
    pub place: String,
    /// One sentence, lower-case, without full stop.
    pub message: String,
    /// Where the instructions that are named come from in the source, as far as they do.
    pub spans: Vec<Span>,
}

impl fmt::Display for VerifierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Collects errors; stops collecting at a number that nobody reads beyond.
struct Verifier<'k> {
    kernel: &'k Kernel,
    errors: Vec<VerifierError>,
}

const MAX_ERRORS: usize = 20;

impl Verifier<'_> {
    fn report(&mut self, place: impl FnOnce() -> String, message: impl Into<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(VerifierError { place: place(), message: message.into(), spans: Vec::new() });
        }
    }

    /// An error at an instruction.
    fn fail(&mut self, inst: Inst, message: impl Into<String>) {
        let kernel = self.kernel;
        self.report(|| format!("`{}`", print_inst(kernel, inst)), message);
    }
}

/// Checks a kernel, each launch for its own phase; every broken rule (up to 20), in the order of the text.
pub fn verify(kernel: &Kernel) -> Result<(), Vec<VerifierError>> {
    let mut verifier = Verifier { kernel, errors: Vec::new() };
    verifier.declarations();
    verifier.structure();
    // What follows relies on references that lead somewhere.
    if verifier.errors.is_empty() {
        kernel.walk_all(&mut |_, inst| verifier.types(inst));
    }
    if verifier.errors.is_empty() {
        verifier.phases();
    }
    if verifier.errors.is_empty() { Ok(()) } else { Err(verifier.errors) }
}

#[cfg(test)]
mod tests;

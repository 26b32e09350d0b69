//! Proofs about a typed kernel: that accesses lie inside their arrays, that iterations do not race, and that
//! results are written everywhere.
//!
//! The elaborator hands over a kernel whose accesses say [`BoundsCheck::Proved`] (or `Guarded`) as a
//! placeholder. Nothing is believed until it is proved here; what is not proved is checked on the device
//! (bounds), an atomic (combinations), starts from zero with a warning (results), or refused (races).
//!
//! One walk over the body (`walker`, `statement`, `expression`, `arithmetic`) keeps what is known at each place
//! as polynomials that are at least 0 (the room `algebra`, with the atoms of `vocabulary`), starting from what the launch
//! checks (`assumptions`). At each access it asks `bounds`; reads and writes go to `races` (`disjoint`, `equations`, `nonzero`,
//! `conflicts`) and to `coverage` (`witness`, `earlier`). What facts say of the values of arrays is in `injective`.

mod arithmetic;
mod assumptions;
mod bounds;
mod conflicts;
mod coverage;
mod digits;
mod disjoint;
mod earlier;
mod equations;
mod expression;
mod injective;
mod nonzero;
mod races;
mod reach;
mod scan;
mod statement;
#[cfg(test)]
mod tests;
mod types;
mod value;
mod vocabulary;
mod walker;
mod witness;

use super::typed::*;
use crate::diagnostic::Diagnostics;

/// Decides every [`BoundsCheck`], every [`Combine::may_meet`] and every [`ResultStart`] of `kernel`, and reports
/// what must be refused. `program` is the program so far: its structs, constants and statics are complete.
pub fn run(kernel: &mut Kernel, program: &Program, diagnostics: &mut Diagnostics) {
    let mut body = std::mem::take(&mut kernel.body);
    let mut reductions = std::mem::take(&mut kernel.reductions);
    let mut walker = walker::Walker::new(program, kernel, diagnostics);
    walker.learn_assumptions();
    walker.learn_injections();
    walker.statements(&mut body);
    let starts = walker.result_starts();
    // What is combined may be anything of its type.
    for reduction in reductions.values_mut() {
        for param in reduction.params {
            let value = walker.unknown_value(&kernel.locals[param].ty);
            walker.declare(param, value);
        }
        walker.block(&mut reduction.body);
    }
    let sites = walker.sites;
    kernel.reductions = reductions;
    kernel.body = body;
    kernel.sites = sites;
    for (array, start) in starts {
        kernel.arrays[array].role = ArrayRole::Result(start);
    }
}

//! Warnings about speed: what a kernel does to the memory system that one line of the file would mend.
//!
//! Everything follows from the IR after the last pass: the launches that the plan takes at model sizes, with the layouts,
//! subscripts and threads that they have ([`crate::analysis::model`]). Each warning is a small file with a function that looks
//! for places; each place comes with proposals: a directive that the compiler would choose otherwise, one to add, a fact.
//! A proposal is tried: the file is compiled with it. Only where the place is gone then, and the whole kernel costs
//! less, is there a warning, and the proposal is its help line. So there is no warning without a way to act on it, and none
//! where nothing can be gained.
//!
//! Which values are in registers only NVIDIA's assembler can tell (`assembled.rs`): where the caller has none, nothing is said of spills and
//! of arrays in local memory.
//!
//! - `subject.rs`: what is looked at. - `mends.rs`: proposals as edits of the text. - `trials.rs`: trying them. - `score.rs`: what a
//!   kernel costs. - the others: one warning each.

mod assembled;
mod banks;
mod divergence;
mod divisions;
mod finding;
mod in_order;
mod local;
mod mends;
mod misaligned;
mod occupancy;
mod parallelism;
mod score;
mod spills;
mod strided;
mod structs;
mod subject;
mod text;
mod trials;
mod vectors;

pub use assembled::{Usage, Usages, read_log};
pub use subject::{Assemble, Subject};

use crate::diagnostic::{Code, Diagnostic, Diagnostics, codes};
use crate::ir::kernel::Module;
use crate::source::SourceFile;
use finding::Find;
use subject::Modelled;
use trials::Trials;

const WARNINGS: &[(Code, Find)] = &[
    (codes::W0601, strided::find),
    (codes::W0602, misaligned::find),
    (codes::W0603, structs::find),
    (codes::W0604, banks::find),
    (codes::W0605, local::find),
    (codes::W0606, spills::find),
    (codes::W0607, divergence::find),
    (codes::W0608, parallelism::find),
    (codes::W0609, occupancy::find),
    (codes::W0610, divisions::find),
    (codes::W0611, vectors::find),
    (codes::W0612, in_order::find),
];

/// Warnings that ask the assembler, where there is one.
const ASSEMBLED: &[Code] = &[codes::W0605, codes::W0606, codes::W0609];

/// The codes of all warnings about speed.
pub fn warnings() -> impl Iterator<Item = Code> {
    WARNINGS.iter().map(|(code, _)| *code)
}

/// What there is to gain in a kernel. `compile` gives a module of this kernel alone for another text of the file, after the same passes,
/// where that compiles; `wanted` says which codes are of interest.
pub fn advise(
    subject: &Subject<'_>,
    wanted: &dyn Fn(Code) -> bool,
    compile: &dyn Fn(&SourceFile) -> Option<Module>,
) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    let Some(mut modelled) = Modelled::new(subject) else { return diagnostics };
    if ASSEMBLED.iter().any(|code| wanted(*code)) {
        modelled.usages = modelled.assembled(subject, subject.module);
    }
    let mut trials = Trials::new(subject, compile);
    for (code, find) in WARNINGS.iter().filter(|(code, _)| wanted(*code)) {
        debug_assert!(code.0.starts_with('W'));
        for finding in find(&modelled) {
            let Some(mend) = trials.best(&modelled, *find, &finding) else { continue };
            let mut diagnostic =
                Diagnostic::warning(finding.code, finding.span, finding.message, finding.label);
            diagnostic.notes = finding.notes;
            diagnostic.notes.push(modelled.note());
            diagnostic.secondary = mend.labels;
            diagnostic.edits = mend.edits;
            diagnostics.push(diagnostic.help(mend.help));
        }
    }
    diagnostics
}

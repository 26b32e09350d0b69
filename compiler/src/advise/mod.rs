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

use crate::analysis::SECTOR_BYTES;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, codes};
use crate::ir::kernel::Module;
use crate::source::{SourceFile, Span};
use mends::Proposal;
use subject::{AtPlace, Modelled, number};
use trials::Trials;

/// A place that may be mended.
pub(crate) struct Finding {
    code: Code,
    /// Of the instructions that it is about, and where the warning points.
    place: Span,
    span: Span,
    /// The array or loop that it is about.
    about: String,
    message: String,
    label: String,
    notes: Vec<String>,
    proposals: Vec<Proposal>,
    /// What is better after the mend, said in the help line; and whether that is worth a warning.
    gain: Gain,
}

/// What must become better.
#[derive(Clone, Copy)]
pub(crate) enum Gain {
    /// Sectors a request, at the finding's place.
    Sectors,
    /// Wavefronts a request, at the finding's place.
    Wavefronts,
    /// Requests at the finding's place.
    Requests,
    /// What lanes wait for each other at the finding's place.
    Lost,
    /// Blocks of the launch with the fewest.
    Blocks,
    /// Warps that a multiprocessor holds, of the launch of which it holds the fewest.
    Occupancy,
    /// Divisions of 64 bits at the finding's place.
    Divisions,
    /// Bytes of arrays that the assembler leaves in memory.
    Local,
    /// Bytes of registers that it spills.
    Spills,
}

impl Gain {
    /// Whether there is less of it, by a tenth at least.
    fn is_reached(self, old: &AtPlace, new: &AtPlace) -> bool {
        let less = |of: fn(&AtPlace) -> f64| of(new) < 0.9 * of(old);
        match self {
            Gain::Sectors => less(|place| place.sectors),
            Gain::Wavefronts => less(|place| place.wavefronts),
            Gain::Requests => new.requests < 0.6 * old.requests,
            Gain::Lost => less(|place| place.lost),
            Gain::Blocks => new.blocks >= 2 * old.blocks,
            Gain::Occupancy => 2 * new.warps >= 3 * old.warps,
            Gain::Divisions => less(|place| place.divisions),
            Gain::Local => new.array_bytes < old.array_bytes,
            Gain::Spills => 2 * new.spill_bytes <= old.spill_bytes,
        }
    }

    /// What a mend may leave of what the kernel costs. The cost knows nothing of latency, which more warps hide.
    fn worth(self) -> f64 {
        if let Gain::Occupancy = self { 1.01 } else { 0.97 }
    }

    /// Whether only the assembler can tell.
    fn is_assembled(self) -> bool {
        matches!(self, Gain::Local | Gain::Spills | Gain::Occupancy)
    }

    /// For the end of a help line.
    fn spell(self, new: &AtPlace) -> String {
        let each = |sum: f64| number(sum / new.requests.max(1.0));
        match self {
            Gain::Lost if new.lost == 0.0 => ": then they stay together".to_string(),
            Gain::Blocks => format!(": then {} blocks", new.blocks),
            Gain::Occupancy => format!(": then {} warps", new.warps),
            Gain::Lost => String::new(),
            Gain::Divisions => ": then 32 bits are enough".to_string(),
            Gain::Local if new.array_bytes == 0 => ": then the array is in registers".to_string(),
            Gain::Local => format!(": then {} bytes of arrays are in memory", new.array_bytes),
            Gain::Spills if new.spill_bytes == 0 => ": then the registers are enough".to_string(),
            Gain::Spills => format!(": then {} bytes", new.spill_bytes),
            _ if new.requests == 0.0 => String::new(),
            Gain::Requests => format!(": then {} bytes at a time", number(new.width)),
            Gain::Sectors => {
                let used = 100.0 * new.bytes / (new.sectors * SECTOR_BYTES as f64);
                format!(": then {} sectors a request, {used:.0}% of their bytes used", each(new.sectors))
            }
            Gain::Wavefronts => format!(": then {} wavefronts a request", each(new.wavefronts)),
        }
    }
}

type Find = fn(&Modelled<'_>) -> Vec<Finding>;

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
];

/// Warnings that ask the assembler, where there is one.
const ASSEMBLED: &[Code] = &[codes::W0605, codes::W0606, codes::W0609];

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

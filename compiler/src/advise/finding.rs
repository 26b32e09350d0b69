//! What warnings find, and what must become better with a proposal.

use super::mends::Proposal;
use super::subject::{AtPlace, Modelled, number, whole_bytes};
use crate::analysis::SECTOR_BYTES;
use crate::diagnostic::Code;
use crate::source::Span;

/// A place that may be mended.
pub(super) struct Finding {
    pub(super) code: Code,
    /// Of the instructions that it is about, and where the warning points.
    pub(super) place: Span,
    pub(super) span: Span,
    /// The array or loop that it is about.
    pub(super) about: String,
    pub(super) message: String,
    pub(super) label: String,
    pub(super) notes: Vec<String>,
    pub(super) proposals: Vec<Proposal>,
    /// What is better after the mend, said in the help line; and whether that is worth a warning.
    pub(super) gain: Gain,
}

/// What must become better.
#[derive(Clone, Copy)]
pub(super) enum Gain {
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
    /// What the whole kernel costs.
    Whole,
}

impl Gain {
    /// Whether there is less of it, by a tenth at least.
    pub(super) fn is_reached(self, old: &AtPlace, new: &AtPlace) -> bool {
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
            Gain::Whole => true,
        }
    }

    /// What a mend may leave of what the kernel costs. The cost knows nothing of latency, which more warps hide.
    pub(super) fn worth(self) -> f64 {
        match self {
            Gain::Occupancy => 1.01,
            // For less nobody gives up an order of floats.
            Gain::Whole => 0.5,
            _ => 0.97,
        }
    }

    /// Whether only the assembler can tell.
    pub(super) fn is_assembled(self) -> bool {
        matches!(self, Gain::Local | Gain::Spills | Gain::Occupancy)
    }

    /// For the end of a help line.
    pub(super) fn spell(self, new: &AtPlace) -> String {
        let each = |sum: f64| number(sum / new.requests.max(1.0));
        match self {
            Gain::Lost if new.lost == 0.0 => ": then they stay together".to_string(),
            Gain::Blocks => format!(": then {} blocks", new.blocks),
            Gain::Occupancy => format!(": then {} warps", new.warps),
            Gain::Lost | Gain::Whole => String::new(),
            Gain::Divisions => ": then 32 bits are enough".to_string(),
            Gain::Local if new.array_bytes == 0 => ": then the array is in registers".to_string(),
            Gain::Local => format!(": then {} bytes of arrays are in memory", new.array_bytes),
            Gain::Spills if new.spill_bytes == 0 => ": then the registers are enough".to_string(),
            Gain::Spills => format!(": then {} bytes", new.spill_bytes),
            _ if new.requests == 0.0 => String::new(),
            Gain::Requests => format!(": then {} at a time", whole_bytes(new.width)),
            Gain::Sectors => {
                let used = 100.0 * new.bytes / (new.sectors * SECTOR_BYTES as f64);
                format!(": then {} sectors a request, {used:.0}% of their bytes used", each(new.sectors))
            }
            Gain::Wavefronts => format!(": then {} wavefronts a request", each(new.wavefronts)),
        }
    }
}

/// A warning: the places of a kernel that it is about.
pub(super) type Find = fn(&Modelled<'_>) -> Vec<Finding>;

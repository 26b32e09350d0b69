//! What a kernel costs as one number, for comparing it with itself after a mend.

use super::subject::Modelled;
use crate::analysis::model::Space;

/// A GPU that stands for a capability: its name, and how many multiprocessors it has.
pub(crate) fn machine(capability: u32) -> (&'static str, u64) {
    match capability {
        0..=79 => ("T4", 40),
        80..=85 => ("A100", 108),
        86..=88 => ("RTX 3090", 82),
        89 => ("RTX 4090", 128),
        90..=99 => ("H100", 132),
        100..=109 => ("B200", 148),
        _ => ("RTX 5090", 170),
    }
}

/// Cycles of a multiprocessor, roughly, on the multiprocessor with the most work: two sectors, one wavefront, or four instructions
/// a cycle. Good for comparing, not for telling a time.
pub(crate) fn score(modelled: &Modelled<'_>) -> f64 {
    let (_, multiprocessors) = machine(modelled.capability);
    let launch = |launch: &crate::analysis::model::LaunchCost| {
        let memory: f64 = launch
            .accesses
            .iter()
            .map(|access| match access.space {
                Space::Global | Space::Local => access.sectors / 2.0 + access.unknown * 16.0,
                Space::Shared => access.wavefronts + access.unknown,
            })
            .sum();
        let busy = launch.block_count().clamp(1, multiprocessors);
        (memory + launch.instructions / 4.0) / busy as f64
    };
    modelled.launches.iter().map(launch).sum()
}

//! What a kernel costs as one number, for comparing it with itself after a mend.

use super::assembled::Usage;
use super::subject::Modelled;
use crate::analysis::model::{LaunchCost, Space};
use crate::ir::kernel::Kernel;

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
/// a cycle. Good for comparing, not for telling a time. Where `assembled` is said, what the assembler keeps in registers costs
/// nothing, and what it spills does.
pub(crate) fn score(modelled: &Modelled<'_>, assembled: bool) -> f64 {
    modelled.launches.iter().map(|launch| score_of(modelled, launch, assembled)).sum()
}

fn score_of(modelled: &Modelled<'_>, launch: &LaunchCost, assembled: bool) -> f64 {
    let (_, multiprocessors) = machine(modelled.capability);
    let usage = modelled.usage(launch).filter(|_| assembled);
    let in_registers = usage.is_some_and(|usage| usage.array_bytes() == 0);
    let memory: f64 = launch
        .accesses
        .iter()
        .map(|access| match access.space {
            Space::Local if in_registers => 0.0,
            Space::Global | Space::Local => access.sectors / 2.0 + access.unknown * 16.0,
            Space::Shared => access.wavefronts + access.unknown,
        })
        .sum();
    let spills = usage.map_or(0.0, |usage| spilled(modelled.kernel, launch, usage));
    let busy = launch.block_count().clamp(1, multiprocessors);
    (memory + spills + launch.instructions / 4.0) / busy as f64
}

/// Cycles for the spills of all warps: of each word a warp has four sectors. The assembler counts instructions, which stand
/// anywhere in the code: they are taken as often as an instruction is on average.
fn spilled(kernel: &Kernel, launch: &LaunchCost, usage: &Usage) -> f64 {
    let warps = launch.block_count() as f64 * f64::from(launch.threads).div_euclid(32.0).max(1.0);
    let mut written = 0u32;
    kernel.walk(kernel.launches[launch.launch].body, &mut |_, _| written += 1);
    let taken = (launch.instructions / f64::from(written.max(1))).max(warps * launch.repeats);
    f64::from(usage.spill_bytes) / 2.0 * taken
}

//! Whether a run fits in this machine's memory: a clear refusal instead of an end by the operating system, which
//! promises memory that it does not have.

use crate::exit::{DEVICE, Failure, Result};
use crate::numbers;
use krn_compiler::manifest::{ArgumentKind, Direction, KernelManifest};
use krn_runtime::verify::Sizes;

/// Refuses a run whose arrays alone take more than this machine has left.
pub fn check(manifest: &KernelManifest, sizes: &Sizes, on_emulator: bool, full_check: bool) -> Result<()> {
    let Some(available) = available() else { return Ok(()) };
    let needed = needed(manifest, sizes, on_emulator, full_check);
    if needed <= u128::from(available) {
        return Ok(());
    }
    let given: Vec<String> = sizes.dims.iter().map(|(name, size)| format!("{name} = {size}")).collect();
    Err(Failure::new(
        DEVICE,
        format!(
            "kernel `{}` with {} needs {} of memory, and this machine has {} left; give smaller sizes",
            manifest.name,
            given.join(", "),
            numbers::bytes(u64::try_from(needed).unwrap_or(u64::MAX)),
            numbers::bytes(available)
        ),
    ))
}

/// Bytes at least: inputs and results on the host, all of them once more in the emulator's memory, and what the
/// reference evaluator holds of each scalar that it computes.
fn needed(manifest: &KernelManifest, sizes: &Sizes, on_emulator: bool, full_check: bool) -> u128 {
    let mut total = 0u128;
    for argument in &manifest.arguments {
        let ArgumentKind::Array { direction, buffer } = &argument.kind else { continue };
        let Some(shape) = sizes.shapes.get(&argument.name).or(sizes.results.get(&argument.name)) else {
            continue;
        };
        let count = shape.iter().fold(1u128, |count, extent| count.saturating_mul(u128::from(*extent)));
        let bytes = count.saturating_mul(u128::from(buffer.element.size));
        let copies = match direction {
            Direction::In | Direction::Out => 1,
            Direction::InOut => 2,
        };
        total = total.saturating_add(bytes.saturating_mul(copies + u128::from(on_emulator)));
        if full_check && *direction != Direction::In {
            let bounds = count.saturating_mul(size_of::<f64>() as u128);
            total = total.saturating_add(bytes).saturating_add(bounds);
        }
    }
    if on_emulator { total.saturating_add(sizes.scratch) } else { total }
}

/// Bytes that can be used without pushing others out; `None` where the system does not tell.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let of_machine = text.lines().find_map(|line| {
        let kibibytes = line.strip_prefix("MemAvailable:")?.trim().strip_suffix("kB")?;
        kibibytes.trim().parse::<u64>().ok()?.checked_mul(1024)
    })?;
    Some(of_group().map_or(of_machine, |of_group| of_group.min(of_machine)))
}

/// What the limit of this process' control group leaves, as in a container.
fn of_group() -> Option<u64> {
    let read = |name: &str| -> Option<u64> {
        std::fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse().ok()
    };
    Some(read("memory.max")?.saturating_sub(read("memory.current")?))
}

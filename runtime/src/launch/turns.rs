//! Whether a plan has a `while`, and whether that has another turn, as the device says.

use crate::backend::{DevicePtr, LoopCondition, StreamNumber};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory::array::DeviceArray;
use crate::stream::record::ErrorRecord;
use krn_compiler::manifest::Step;

/// Whether the device decides how often some of these are launched.
pub(crate) fn has_while(plan: &[Step]) -> bool {
    plan.iter().any(|step| match step {
        Step::Launch(_) => false,
        Step::Repeat { body, .. } => has_while(body),
        Step::Branch { then, otherwise, .. } => has_while(then) || has_while(otherwise),
        Step::While { .. } => true,
    })
}

/// As [`goes_on`], for a launch on a stream of ours, whose scratch buffers are these.
pub(crate) fn goes_on_in(
    device: &Device,
    kernel: &str,
    (scratch, record): (&[DeviceArray], Option<&ErrorRecord>),
    stream: StreamNumber,
    (condition, turns): (usize, u64),
) -> Result<bool> {
    let cell = scratch.get(condition).and_then(|cell| cell.pointers().next());
    goes_on(device, kernel, (cell, record), turns, &mut |pointer, bytes| {
        device.backend.copy_out(stream, pointer, bytes)
    })
}

/// The condition of a `while` has no scratch buffer.
#[cold]
pub(crate) fn no_memory(kernel: &str) -> Error {
    Error::Fault(format!("kernel `{kernel}`: the condition of a `while` has no memory"))
}

/// Waits for the stream that `read` reads on, and tells whether a `while` of a kernel has another turn after so many: what
/// lies at `condition` is true, and no check has failed.
///
/// # Errors
/// [`Error::Endless`] at the device's limit; a failed driver call.
pub(crate) fn goes_on(
    device: &Device,
    kernel: &str,
    (condition, record): (Option<DevicePtr>, Option<&ErrorRecord>),
    turns: u64,
    read: &mut dyn FnMut(DevicePtr, &mut [u8]) -> Result<()>,
) -> Result<bool> {
    let holds = condition.ok_or_else(|| no_memory(kernel))?;
    let more = LoopCondition { holds, record: record.and_then(ErrorRecord::pointer) }.goes_on(read)?;
    match device.shared.turn_limit() {
        Some(limit) if more && turns >= limit => Err(Error::Endless { kernel: kernel.to_string(), turns }),
        _ => Ok(more),
    }
}

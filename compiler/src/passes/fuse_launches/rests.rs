//! Reductions that become one once they stand side by side, though one of them rests on the other.

use super::nest::{Nest, Walk};
use super::place::Stored;
use crate::analysis::written_buffers;
use crate::ir::clone::ValueMap;
use crate::ir::kernel::Kernel;
use crate::passes::deviations::squares;

/// Whether all reductions of the second launch add up squared deviations from means that the first one stores (`moments`),
/// and there is nothing else to walk.
pub fn deviates(
    kernel: &Kernel,
    (first, before): (&Nest, &Walk),
    (second, after): (&Nest, &Walk),
    axes: &[(usize, usize)],
    stored: &[Stored],
) -> bool {
    let (Some(before), Some(after)) = (&before.reductions, &after.reductions) else { return false };
    let mut known = ValueMap::default();
    known.extend(axes.iter().map(|(left, right)| (second.params[*right], first.params[*left])));
    for Stored { store, loads } in stored {
        let Some(value) = kernel.insts[*store].arguments.last() else { continue };
        let loaded = loads.iter().filter_map(|load| kernel.result_of(*load));
        known.extend(loaded.map(|loaded| (loaded, *value)));
    }
    let mut written = written_buffers(kernel, kernel.launches[first.launch].body);
    written.extend(written_buffers(kernel, kernel.launches[second.launch].body).iter());
    after.iter().all(|second| {
        before.iter().any(|first| squares(kernel, (*first, *second), &known, &written).is_some())
    })
}

//! Loops in which each lane walks a row of its own.

use super::lanes;
use crate::analysis::{Affine, Atom, Multiples, SECTOR_BYTES, accesses};
use crate::ir::entities::{Inst, Launch};
use crate::ir::kernel::Kernel;

/// Iterations in the body at most.
const MOST: i64 = 16;

/// How many iterations of a serial loop of a launch read a sector of memory, where its lanes are a sector apart or more, at
/// multiples of a vector: a vector of neighbours brings a lane what it would ask for one by one, each time with a request
/// for as many sectors as there are lanes. `None` for other loops.
pub(super) fn iterations_of_sector(kernel: &Kernel, launch: Launch, inst: Inst) -> Option<u32> {
    let body = kernel.launches[launch].body;
    let region = kernel.insts[inst].regions[0];
    let index = *kernel.blocks[region].params.first()?;
    // The first one is a multiple of what is unrolled.
    if kernel.int_of(kernel.insts[inst].arguments[0]) != Some(0) {
        return None;
    }
    let mut affine = Affine::new(kernel);
    let mut multiples = Multiples::new(kernel, launch);
    let widths = accesses(kernel, region).into_iter().filter_map(|access| {
        let width = kernel.buffers[access.buffer].element.leaves[access.leaf as usize].scalar.size() as i64;
        let is_read = !kernel.insts[access.inst].opcode.info().effect.shows();
        let step = affine.step(access.inst, index).flatten().and_then(|step| step.as_wrapped());
        if !is_read || step != Some(width) {
            return None;
        }
        let position = affine.position(access.inst)?;
        let mut varying = position.atoms().into_iter().filter(|atom| {
            matches!(atom, Atom::Value(value) if *value != index && lanes::vary(kernel, body, &[*value]))
        });
        let is_far = |atom: Atom| match position.split(atom).map(|(factor, _)| factor.as_wrapped()) {
            // The extent of a row, or what data tells.
            Some(None) => true,
            Some(Some(bytes)) => bytes.unsigned_abs() >= SECTOR_BYTES,
            None => false,
        };
        let first = varying.next()?;
        let begin = position.split(Atom::Value(index))?.1;
        let is_aligned = multiples.of_form(kernel, &begin) >= 2 * width as u64;
        (is_aligned && is_far(first) && varying.all(is_far)).then_some(width)
    });
    let widest = widths.max()?;
    u32::try_from((SECTOR_BYTES as i64 / widest).min(MOST)).ok().filter(|count| *count > 1)
}

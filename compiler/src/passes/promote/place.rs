//! The scalars of private arrays.

use crate::ir::entities::{Buffer, Inst};
use crate::ir::kernel::{Kernel, Payload};
use crate::mutants::mutant;
use cranelift_entity::EntitySet;

/// One scalar of a private array: the buffer, the leaf and the literal subscripts.
pub(super) type Place = (Buffer, u32, Vec<i128>);

/// The place that an access to one of some arrays is to.
pub(super) fn place(kernel: &Kernel, inst: Inst, arrays: &EntitySet<Buffer>) -> Option<Place> {
    let data = &kernel.insts[inst];
    let Payload::Access { buffer, leaf } = data.payload else { return None };
    if !arrays.contains(buffer) {
        return None;
    }
    let indices = literal_subscripts(kernel, inst)?;
    Some((buffer, leaf, mutant!("scalarize: all elements are one", indices, Vec::new())))
}

/// The subscripts of an access, where all of them are literals.
pub(super) fn literal_subscripts(kernel: &Kernel, inst: Inst) -> Option<Vec<i128>> {
    kernel.subscripts(&kernel.insts[inst]).iter().map(|value| kernel.int_of(*value)).collect()
}

//! Shared memory that the sums of a block go through.

use super::axes::{COLUMN, PIECE_ROW};
use super::extents::Plan;
use super::found::Found;
use super::layouts::{Home, Layouts};
use crate::ir::entities::Buffer;
use crate::ir::kernel::{BufferData, BufferKind, Kernel, Payload};
use crate::ir::op::Effect;
use crate::manifest::Expr;
use crate::passes::contiguous::WORD_BYTES;
use crate::passes::tile::found::{buffer_of, scalar_of};

/// Instructions of a loop's body, beside the sum, that are written twice: with masks and without.
pub const SHORT: usize = 16;

/// Whether it pays to take sums through shared memory: where results are narrow, so that fragments store parts of sectors, or the
/// code is long. Elsewhere fragments have whole sectors.
pub fn pays(kernel: &Kernel, found: &Found) -> bool {
    let mut are_narrow = false;
    kernel.walk(found.body, &mut |_, inst| {
        let is_store = kernel.insts[inst].opcode.info().effect == Effect::Write;
        are_narrow |=
            is_store && buffer_of(kernel, inst).is_some() && scalar_of(kernel, inst).size() < WORD_BYTES;
    });
    are_narrow || found.code(kernel) > SHORT
}

/// Shared memory that sums go through.
#[derive(Clone, Copy)]
pub struct Staging {
    sums: Buffer,
    /// What a thread takes out at a time.
    pub pieces: Home,
}

impl Staging {
    pub fn new(kernel: &mut Kernel, found: &Found, layouts: &mut Layouts, plan: &Plan) -> Option<Self> {
        let shape = &plan.shape;
        let pieces = layouts.along([COLUMN, PIECE_ROW], plan.together as u64, shape)?;
        let scalar = kernel.value_type(kernel.insts[found.reduce].results[0]);
        let sums = kernel.buffers.push(BufferData::temporary(
            "sums",
            BufferKind::Shared,
            scalar,
            [shape.tile[0], shape.pitch()].map(Expr::Int).to_vec(),
        ));
        Some(Self { sums, pieces })
    }

    pub fn access(&self) -> Payload {
        Payload::Access { buffer: self.sums, leaf: 0 }
    }
}

//! Shared memory: where each buffer lies in a block's share, and how much a launch asks for.

use crate::analysis::SharedLifetimes;
use crate::ir::entities::{Block, Buffer};
use crate::ir::kernel::{BufferKind, Kernel};
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;

/// Bytes of shared memory that a kernel may declare; more is asked for at launch.
pub const STATIC_SHARED_BYTES: i64 = 48 * 1024;

/// Every shared buffer starts at a multiple of this, in bytes.
const ALIGN: i64 = 16;

/// The shared memory of one launch.
pub struct SharedPlan {
    /// Byte offsets, in the order of the buffers.
    pub offsets: Vec<(Buffer, Expr)>,
    pub total: Expr,
    /// Sized at launch, not in the entry.
    pub dynamic: bool,
}

/// Lays out the shared buffers that a launch's body uses.
pub fn plan(kernel: &Kernel, body: Block) -> SharedPlan {
    let lifetimes = SharedLifetimes::of(kernel, body);
    layout(kernel, &lifetimes, |buffer| lifetimes.is_used(buffer))
}

/// Lays out the shared buffers of a launch that are used, one after the other, but for those that live one after the other: they
/// share memory. Where sizes are the launch's, nothing is shared.
pub(super) fn layout(
    kernel: &Kernel,
    lifetimes: &SharedLifetimes,
    is_used: impl Fn(Buffer) -> bool,
) -> SharedPlan {
    let mut offsets: Vec<(Buffer, Expr)> = Vec::new();
    let mut total = Expr::Int(0);
    // What has a known place, from where to where.
    let mut placed: Vec<(Buffer, i64, i64)> = Vec::new();
    for (buffer, data) in kernel.buffers.iter().filter(|(_, data)| data.kind == BufferKind::Shared) {
        if !is_used(buffer) {
            continue;
        }
        let size = Expr::Int(data.element.size as i64);
        let bytes = round_up(data.extents.iter().cloned().fold(size, multiply));
        if let (Expr::Int(bytes), Expr::Int(end)) = (&bytes, &total) {
            let is_free = |from: i64| {
                let in_the_way = |(other, begin, end): &(Buffer, i64, i64)| {
                    let is_there = from < *end && *begin < from + bytes;
                    let may_share = lifetimes.may_share(*other, buffer);
                    is_there && !mutant!("shared memory: what is used at once has one place", may_share, true)
                };
                !placed.iter().any(in_the_way)
            };
            let begins = std::iter::once(0).chain(placed.iter().map(|(.., end)| *end));
            let begin = begins.filter(|from| is_free(*from)).min().unwrap_or(*end);
            placed.push((buffer, begin, begin.saturating_add(*bytes)));
            offsets.push((buffer, Expr::Int(begin)));
            total = Expr::Int(begin.saturating_add(*bytes).max(*end));
            continue;
        }
        offsets.push((buffer, total.clone()));
        total = add(total, bytes);
    }
    let dynamic = !matches!(total, Expr::Int(0..=STATIC_SHARED_BYTES));
    SharedPlan { offsets, total, dynamic }
}

/// Whether some launch of the kernel sizes its shared memory itself.
pub fn is_dynamic(kernel: &Kernel) -> bool {
    // Where all would fit one launch, nobody need know which uses what.
    layout(kernel, &SharedLifetimes::default(), |_| true).dynamic
        && kernel.launches.values().any(|launch| plan(kernel, launch.body).dynamic)
}

fn multiply(a: Expr, b: Expr) -> Expr {
    match (a, b) {
        (Expr::Int(a), Expr::Int(b)) => Expr::Int(a.saturating_mul(b)),
        (Expr::Int(1), other) | (other, Expr::Int(1)) => other,
        (a, b) => Expr::binary(BinaryOp::Mul, a, b),
    }
}

fn add(a: Expr, b: Expr) -> Expr {
    match (a, b) {
        (Expr::Int(a), Expr::Int(b)) => Expr::Int(a.saturating_add(b)),
        (Expr::Int(0), other) | (other, Expr::Int(0)) => other,
        (a, b) => Expr::binary(BinaryOp::Add, a, b),
    }
}

/// To whole multiples of [`ALIGN`].
fn round_up(bytes: Expr) -> Expr {
    match bytes {
        Expr::Int(bytes) => Expr::Int(bytes.max(0).saturating_add(ALIGN - 1) / ALIGN * ALIGN),
        other => {
            let blocks = Expr::binary(BinaryOp::CeilDiv, other, Expr::Int(ALIGN));
            Expr::binary(BinaryOp::Mul, blocks, Expr::Int(ALIGN))
        }
    }
}

//! Shared memory: where each buffer lies in a block's share, and how much a launch asks for.

use crate::ir::entities::{Block, Buffer};
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::manifest::{BinaryOp, Expr};
use cranelift_entity::EntitySet;

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
    let used = used(kernel, body);
    layout(kernel, |buffer| used.contains(buffer))
}

/// Lays out the shared buffers of a kernel that are used.
pub(super) fn layout(kernel: &Kernel, is_used: impl Fn(Buffer) -> bool) -> SharedPlan {
    let mut offsets = Vec::new();
    let mut total = Expr::Int(0);
    for (buffer, data) in kernel.buffers.iter().filter(|(_, data)| data.kind == BufferKind::Shared) {
        if !is_used(buffer) {
            continue;
        }
        offsets.push((buffer, total.clone()));
        let size = Expr::Int(data.element.size as i64);
        let bytes = data.extents.iter().cloned().fold(size, multiply);
        total = add(total, round_up(bytes));
    }
    let dynamic = !matches!(total, Expr::Int(0..=STATIC_SHARED_BYTES));
    SharedPlan { offsets, total, dynamic }
}

/// Whether some launch of the kernel sizes its shared memory itself.
pub fn is_dynamic(kernel: &Kernel) -> bool {
    // Where all would fit one launch, nobody need know which uses what.
    layout(kernel, |_| true).dynamic
        && kernel.launches.values().any(|launch| plan(kernel, launch.body).dynamic)
}

/// The buffers that a block, or what is inside, uses.
fn used(kernel: &Kernel, body: Block) -> EntitySet<Buffer> {
    let mut used = EntitySet::new();
    kernel.walk(body, &mut |_, inst| {
        if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = kernel.insts[inst].payload
            && !used.contains(buffer)
        {
            used.insert(buffer);
        }
    });
    used
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

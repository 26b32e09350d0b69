//! How many iterations fill the machine: where a parallel loop has fewer, its reductions are cut into pieces.

use super::pass::TargetFacts;
use crate::analysis::rates::ROWS_AT_ONCE;
use crate::analysis::{Conditions, bucket};
use crate::ir::entities::Launch;
use crate::ir::kernel::Kernel;
use crate::manifest::{BinaryOp, Expr};

/// Elements of a reduction from which on several blocks are worth a second launch.
pub const MIN_SINGLE: i64 = 1 << 16;

/// How long a reduction must be to be cut.
pub const MIN_LONG: i64 = 4096;
/// Steps from which on one is cut whose elements all iterations read alike, from caches.
pub const MIN_ALIKE: i64 = 512;
/// So many iterations a step and multiprocessor leave it idle, where they read alike.
const FULL_ALIKE: i64 = 4;
/// Where a multiprocessor has no more than so many threads, each waits for memory most of the time, and shorter columns are
/// worth a second launch (f32 on an H200: 640 × 111 in 5.9 us, whole in 68; 2752 × 6248 in 20 us, whole in 328).
const FEWER: [(i64, i64); 4] = [(32, 64), (256, 96), (512, 192), (1024, 512)];
/// The same of columns beside other loops of their iterations, which may hold what they read: to leave them they must be longer.
const FEWER_BESIDE: [(i64, i64); 3] = [(32, 64), (256, 96), (1024, 512)];
/// How many pieces of a column fill the machine where there are most columns of those that are cut.
pub const FEW_PIECES: i64 = 8;

/// Which row of a table so many columns have; its length where there are more.
fn row_of(
    kernel: &mut Kernel,
    launch: Launch,
    columns: &Expr,
    table: &[(i64, i64)],
    target: &TargetFacts,
) -> usize {
    let edges = table.iter().map(|(at_once, _)| i64::from(target.multiprocessors) * at_once);
    bucket(kernel, launch, columns, &edges.collect::<Vec<_>>())
}

/// How long columns must be to be cut, of which there are so many; nobody is asked how many where none are long enough.
pub fn least_long(
    kernel: &mut Kernel,
    launch: Launch,
    columns: &Expr,
    extent: &Expr,
    target: &TargetFacts,
) -> i64 {
    least_of(kernel, launch, (columns, extent), &FEWER, target)
}

fn least_of(
    kernel: &mut Kernel,
    launch: Launch,
    (columns, extent): (&Expr, &Expr),
    table: &[(i64, i64)],
    target: &TargetFacts,
) -> i64 {
    if matches!(extent, Expr::Int(extent) if *extent < table[0].1) {
        return MIN_LONG;
    }
    table.get(row_of(kernel, launch, columns, table, target)).map_or(MIN_LONG, |(_, least)| *least)
}

/// Whether there are so many columns that few pieces of each fill the machine.
pub fn few_pieces_fill(kernel: &mut Kernel, launch: Launch, columns: &Expr, target: &TargetFacts) -> bool {
    let row = row_of(kernel, launch, columns, &FEWER, target);
    (FEWER.len() - 2..FEWER.len()).contains(&row)
}

/// Whether there are so many columns that each is a thread's, or they are so short that nothing else pays.
pub fn columns_fill(
    kernel: &mut Kernel,
    launch: Launch,
    columns: &Expr,
    extent: &Expr,
    target: &TargetFacts,
) -> bool {
    let enough = target.threads_at_once();
    if bucket(kernel, launch, columns, &[enough]) == 1 {
        return true;
    }
    let least = least_of(kernel, launch, (columns, extent), &FEWER_BESIDE, target);
    bucket(kernel, launch, extent, &[least]) == 0
}

/// The sizes for which there are too few iterations to fill the machine with reductions of so many steps each, whose elements all of
/// them read alike.
pub fn few_alike(iterations: &Expr, steps: &Expr, target: &TargetFacts) -> Conditions {
    let multiprocessors = i64::from(target.multiprocessors);
    let times = |count: &Expr, factor| Expr::binary(BinaryOp::Mul, count.clone(), Expr::Int(factor));
    let is_few = Expr::binary(BinaryOp::Less, iterations.clone(), Expr::Int(target.threads_at_once()));
    let is_long = Expr::binary(BinaryOp::GreaterEqual, steps.clone(), Expr::Int(MIN_ALIKE));
    let leave_idle =
        Expr::binary(BinaryOp::GreaterEqual, times(steps, multiprocessors), times(iterations, FULL_ALIKE));
    Conditions::new().prefers(is_few).prefers(is_long).prefers(leave_idle)
}

/// Whether there are so many rows that each has a team of its own, or they are so short that nothing else pays.
pub fn rows_fill(
    kernel: &mut Kernel,
    launch: Launch,
    rows: &Expr,
    extent: &Expr,
    target: &TargetFacts,
) -> bool {
    let enough = i64::from(target.multiprocessors) * ROWS_AT_ONCE;
    bucket(kernel, launch, extent, &[MIN_SINGLE]) == 0 || bucket(kernel, launch, rows, &[enough]) == 1
}

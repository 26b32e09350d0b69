//! How many elements a row has: as the host knows it, or on average.

use crate::analysis::{Affine, Atom, Endless};
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{Kernel, Payload};
use crate::manifest::{BinaryOp, Expr};

/// The length of a launch's rows.
pub struct Length {
    pub extent: Expr,
    /// All rows have that many elements; otherwise they have about so many.
    pub exact: bool,
}

/// The length that all loops of a row have; the longest of several that the host knows; or the mean one where some of the loops
/// end where their row does.
pub fn length(kernel: &Kernel, forall: Inst, loops: &[Inst]) -> Option<Length> {
    let first = *loops.first()?;
    let extents: Option<Vec<Expr>> = loops.iter().map(|inst| known(kernel, *inst)).collect();
    if let Some(extents) = extents {
        let exact = loops.iter().all(|inst| same_range(kernel, first, *inst));
        let longest = |left, right| Expr::binary(BinaryOp::Max, left, right);
        let mut all = Vec::new();
        for extent in extents {
            if !all.contains(&extent) {
                all.push(extent);
            }
        }
        return Some(Length { extent: all.into_iter().reduce(longest)?, exact });
    }
    let of_one = |inst: &Inst| known(kernel, *inst).or_else(|| mean(kernel, forall, *inst));
    let of_all: Option<Vec<Expr>> = loops.iter().map(of_one).collect();
    // The shortest says least.
    let extent = of_all?.into_iter().reduce(|left, right| Expr::binary(BinaryOp::Min, left, right))?;
    Some(Length { extent, exact: false })
}

/// How many elements a loop goes through along its last axis, where the host knows.
fn known(kernel: &Kernel, inst: Inst) -> Option<Expr> {
    let (low, high) = kernel.loop_bounds(inst).pop()?;
    kernel.symbolic_extent(low, high)
}

/// Whether two loops go through the same elements along their last axes.
pub fn same_range(kernel: &Kernel, a: Inst, b: Inst) -> bool {
    let equal =
        |a: Value, b: Value| a == b || kernel.symbolic(a).is_some_and(|a| Some(a) == kernel.symbolic(b));
    let bounds = kernel.loop_bounds(a).pop().zip(kernel.loop_bounds(b).pop());
    bounds.is_some_and(|(a, b)| equal(a.0, b.0) && equal(a.1, b.1))
}

/// The mean length of rows that lie behind one another in an array, as those of a sparse matrix do, or of which each is a
/// part of an array's row: one end moves from row to row, or is where memory says.
fn mean(kernel: &Kernel, forall: Inst, inst: Inst) -> Option<Expr> {
    let around = &kernel.blocks[kernel.insts[forall].regions[0]].params;
    let [(low, high)] = kernel.loop_bounds(inst)[..] else { return None };
    let region = kernel.insts[inst].regions[0];
    let index = kernel.blocks[region].params[0];
    let mut affine = Affine::new(kernel);
    // Of axes with which no end moves, all iterations go through the same rows.
    let axes = kernel.loop_bounds(forall).into_iter().zip(around);
    let moving = axes.filter(|(_, index)| affine.any_depends(&[low, high], **index));
    let rows = moving.map(|((low, high), _)| kernel.symbolic_extent(low, high));
    let rows = rows.reduce(|left, right| Some(Expr::binary(BinaryOp::Mul, left?, right?)))??;
    // From 0 to the row's number, or from there to the end.
    let moves = |affine: &mut Affine, end: Value| {
        kernel.symbolic(end).is_none()
            && affine.form(end).atoms().into_iter().all(|atom| match atom {
                Atom::Value(value) => around.contains(&value),
                Atom::Symbol(_) => true,
            })
    };
    // Or to where memory says.
    let mut endless = Endless::new(kernel);
    let mut ends = |end: Value| moves(&mut affine, end) || endless.is_of_memory(end);
    let is_part =
        kernel.symbolic(low).is_some() && ends(high) || kernel.symbolic(high).is_some() && ends(low);
    let mut found = None;
    kernel.walk(region, &mut |_, inst| {
        let data = &kernel.insts[inst];
        let Payload::Access { buffer, .. } = data.payload else { return };
        let extents = &kernel.buffers[buffer].extents;
        let subscripts = &kernel.subscripts(data)[..extents.len()];
        let Some((last, others)) = subscripts.split_last() else { return };
        if *last != index || found.is_some() {
            return;
        }
        let extent = extents[extents.len() - 1].clone();
        let of_row = others.iter().any(|value| around.iter().any(|param| affine.depends(*value, *param)));
        if others.is_empty() && extent == rows {
            found = Some(Expr::Int(1));
        } else if others.is_empty() {
            found = Some(Expr::binary(BinaryOp::Div, extent, rows.clone()));
        } else if of_row && is_part {
            found = Some(Expr::binary(BinaryOp::Div, extent, Expr::Int(2)));
        }
    });
    found
}

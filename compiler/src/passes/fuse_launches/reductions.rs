//! Reductions over one range that need nothing of each other become one, which walks it once.
//!
//! ```text
//! v3: f32 = reduce [add] axis1 "r" = v0..v1 (v2) { v4: f32 = load buf0[v2, v9]; yield v4 }             before
//! v5: f32 = reduce [max] axis2 "r" = v0..v1 (v6) { v7: f32 = load buf0[v6, v9]; yield v7 }
//!
//! v3: f32, v5: f32 = reduce [add, max] axis1 "r" = v0..v1 (v2) { … yield v4, v7 }                      after
//! ```
//!
//! Only where both read an array that they share, and each iteration of the loops around reads elements of its own:
//! products, of which iterations share operands, are better off alone. What is no product (counts of pairs) may share operands,
//! where both walk the same arrays.

use super::nest::{Nest, Walk, access};
use super::walks::{fuse_all, same_range};
use crate::analysis::Affine;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::{Effect, Opcode};
use cranelift_entity::EntitySet;

/// Makes reductions of a block, and of those in it, one; `around` are the indices of the parallel loops around it.
pub fn fuse_reductions(kernel: &mut Kernel, block: Block, around: &[Value]) -> bool {
    let mut changed =
        fuse_all(kernel, block, |kernel, first, second| shares(kernel, [first, second], [around; 2]));
    for inst in kernel.blocks[block].insts.clone() {
        if kernel.insts[inst].opcode == Opcode::Forall {
            let body = kernel.insts[inst].regions[0];
            let inside = [around, &kernel.blocks[body].params].concat();
            changed |= fuse_reductions(kernel, body, &inside);
        }
    }
    changed
}

/// Whether a reduction of the second launch and one of the first become one, where iterations of both do nothing else.
pub fn join_walks(kernel: &Kernel, first: (&Nest, &Walk), second: (&Nest, &Walk)) -> bool {
    let (Some(before), Some(after)) = (&first.1.reductions, &second.1.reductions) else { return false };
    let around = [first.0.params.as_slice(), second.0.params.as_slice()];
    let mut pairs = before.iter().flat_map(|left| after.iter().map(move |right| [*left, *right]));
    pairs.any(|pair| same_range(kernel, pair[0], pair[1]) && shares(kernel, pair, around))
}

/// Whether both walk an array that they share, and no two iterations of the loops around, whose indices are given of each,
/// read what one walks of it, or neither is a product and they walk the same arrays; neither has loops or effects inside. What is
/// the same for some iterations may be read beside it, but no two arrays of which each is the same where the other is not: their
/// product is better off alone.
fn shares(kernel: &Kernel, reduces: [Inst; 2], around: [&[Value]; 2]) -> bool {
    let mut affine = Affine::new(kernel);
    let mut plain = true;
    let mut walked = Vec::with_capacity(2);
    let mut all_walked = Vec::with_capacity(2);
    for (reduce, around) in reduces.into_iter().zip(around) {
        let region = kernel.insts[reduce].regions[0];
        let indices = &kernel.blocks[region].params;
        let mut own: Vec<Buffer> = Vec::new();
        let mut all = EntitySet::<Buffer>::new();
        // Which of the loops' indices an array moves with that the reduction walks.
        let mut moves: Vec<Vec<bool>> = Vec::new();
        kernel.walk(region, &mut |_, inst| {
            let data = &kernel.insts[inst];
            let effect = data.opcode.info().effect;
            plain &= data.regions.is_empty() && matches!(effect, Effect::Pure | Effect::Read)
                || matches!(data.opcode, Opcode::If | Opcode::Yield);
            let Some((buffer, _, subscripts)) = access(kernel, inst) else { return };
            if !indices.iter().any(|index| affine.any_depends(subscripts, *index)) {
                return;
            }
            all.insert(buffer);
            let with: Vec<bool> = around.iter().map(|param| affine.any_depends(subscripts, *param)).collect();
            if with.iter().all(|moves| *moves) {
                // A team reads a row once anyway. Over several axes there are no rows.
                let mut is_row =
                    |index: Value| subscripts.last().is_some_and(|last| affine.depends(*last, index));
                plain &= around.is_empty() || indices.len() > 1 || !is_row(indices[0]);
                own.push(buffer);
            }
            moves.push(with);
        });
        let lacks = |one: &[bool], other: &[bool]| one.iter().zip(other).any(|(one, other)| !one && *other);
        plain &= !moves.iter().any(|one| moves.iter().any(|other| lacks(one, other) && lacks(other, one)));
        walked.push(own);
        all_walked.push(all);
    }
    let are_alike =
        all_walked[0] == all_walked[1] && !reduces.iter().any(|reduce| gives_floats(kernel, *reduce));
    plain && (are_alike || walked[0].iter().any(|buffer| walked[1].contains(buffer)))
}

/// Whether a reduction gives floats: sums of products do, and so do extremes of what tiles compute.
fn gives_floats(kernel: &Kernel, reduce: Inst) -> bool {
    kernel.insts[reduce].results.iter().any(|result| kernel.value_type(*result).is_float())
}

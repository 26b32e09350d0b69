//! Products under a condition: where tiles are to be expected, all of a product is computed, and what the condition leaves out is not
//! taken.
//!
//! ```text
//! v9: f32 = if v5 { v8: f32 = reduce [add] … { load buf0 * load buf1 }; yield v8 } else { … }        before
//!
//! v8: f32 = reduce [add] … { load buf0 * load buf1 }                                                  after
//! v9: f32 = select v5, v8, …
//! ```
//!
//! So are products that a branch stores, where the condition depends on the iteration:
//!
//! ```text
//! if v5 { v8: f32 = reduce [add] …; store buf2[v0, v1], v8 }        before
//! v8: f32 = reduce [add] …; if v5 { store buf2[v0, v1], v8 }        after
//! ```
//!
//! Where all iterations have one condition, they skip the product together: that is worth more than tiles at times.
//!
//! A reduction in a branch is one thread's or one row's; of a condition of indices (a triangle), `stage` leaves whole tiles out, but
//! matrix instructions take products that stand by themselves.

use super::inside::{Index, is_inside};
use crate::analysis::contraction::{Class, Contraction, contractions};
use crate::analysis::{Affine, Answer, Conditions, ask, reads_memory};
use crate::data::Scalar;
use crate::ir::entities::{Buffer, Inst, Launch};
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::op::{Effect, Opcode};
use crate::manifest::{BinaryOp, Expr};
use cranelift_entity::EntitySet;

/// Rows, columns and steps from which on a product is worth computing whole.
const LEAST: [i64; 3] = [4, 4, 32];

/// Whether a branch holds a product that can be computed whatever its condition is, and pays.
pub fn holds_product(
    kernel: &mut Kernel,
    launch: Launch,
    inst: Inst,
    around: &[Index],
    written: &EntitySet<Buffer>,
) -> bool {
    let data = &kernel.insts[inst];
    let is_number = |value| kernel.value_type(value) != Scalar::Bool;
    let stores = data.results.is_empty();
    if !data.results.iter().copied().all(is_number) {
        return false;
    }
    let insts: Vec<Inst> =
        data.regions.iter().flat_map(|region| kernel.blocks[*region].insts.iter().copied()).collect();
    let is_reduce = |inst: &&Inst| kernel.insts[**inst].opcode == Opcode::Reduce;
    let reduces: Vec<Inst> = insts.iter().filter(is_reduce).copied().collect();
    let [reduce] = reduces[..] else { return false };
    let within: Vec<Index> = around.iter().copied().chain(Index::of(kernel, reduce)).collect();
    let terms = &kernel.blocks[kernel.insts[reduce].regions[0]].insts;
    let may_be_done = |inst: &Inst| may_be_done(kernel, *inst, &within, written);
    let is_kept = |inst: &Inst| stores && kernel.insts[*inst].opcode == Opcode::Store;
    if !insts.iter().filter(|inst| **inst != reduce && !is_kept(inst)).chain(terms).all(may_be_done) {
        return false;
    }
    let is_product = |one: &Contraction| one.reduce == reduce && one.has_reuse() && !one.leaves_out();
    let Some(product) = contractions(kernel, launch).into_iter().find(is_product) else { return false };
    let condition = kernel.insts[inst].arguments[0];
    if !reads_memory(kernel, &[condition]) && (stores || !is_narrow(kernel, reduce)) {
        return false;
    }
    let mut affine = Affine::new(kernel);
    let mut depends = || around.iter().any(|index| affine.depends(condition, index.value));
    if stores && (is_narrow(kernel, reduce) || !depends()) {
        return false;
    }
    let extent = |indices: &[Index], class: Option<Class>| {
        let of_class = |index: &&Index| class.is_none_or(|class| product.has(class, index.value));
        let extents =
            indices.iter().filter(of_class).map(|index| kernel.symbolic_extent(index.low, index.high));
        extents.reduce(|left, right| Some(Expr::binary(BinaryOp::Mul, left?, right?)))?
    };
    let [rows, columns] = [Class::M, Class::N].map(|class| extent(around, Some(class)));
    let steps = extent(&within[around.len()..], None);
    let mut conditions = Conditions::new();
    for (extent, least) in [rows, columns, steps].into_iter().zip(LEAST) {
        let Some(extent) = extent else { return false };
        conditions = conditions.prefers_at_least(&extent, least);
    }
    ask(kernel, launch, &conditions) == Answer::Yes
}

/// Whether an instruction may be done whatever the indices are: it is pure, or loads what is there.
pub fn may_be_done(kernel: &Kernel, inst: Inst, around: &[Index], written: &EntitySet<Buffer>) -> bool {
    let data = &kernel.insts[inst];
    match data.opcode {
        Opcode::Load => is_inside(kernel, inst, around, written),
        Opcode::Yield => true,
        Opcode::If => data.regions.iter().all(|region| {
            kernel.blocks[*region].insts.iter().all(|inst| may_be_done(kernel, *inst, around, written))
        }),
        opcode => opcode.info().effect == Effect::Pure && data.regions.is_empty(),
    }
}

/// Whether the factors are of types that matrix instructions take.
pub fn is_narrow(kernel: &Kernel, reduce: Inst) -> bool {
    let terms = &kernel.blocks[kernel.insts[reduce].regions[0]].insts;
    let mut loads = terms.iter().filter_map(|inst| match kernel.insts[*inst].payload {
        Payload::Access { buffer, leaf } => Some(&kernel.buffers[buffer].element.leaves[leaf as usize]),
        _ => None,
    });
    loads.all(|leaf| leaf.scalar.is_narrow())
}

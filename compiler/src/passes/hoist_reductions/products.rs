//! A product of matrices beside other loops, or several of them, in one loop.
//!
//! ```text
//! forall axis0 "i", axis1 "j" (v0, v1) {                            before
//!     v2: f32 = reduce [add] axis2 "p" (v3) { … load buf0[v0, v3] * load buf1[v3, v1] … }
//!     v4: f32 = reduce [add] axis3 "p" (v5) { … load buf0[v0, v5] * load buf2[v5, v1] … }
//!     store buf3[v0, v1], …
//! }
//!
//! forall axis0 "i", axis1 "j" (v0, v1) { … reduce … store buf4[v0, v1] … }                        after
//! forall axis0 "i", axis1 "j" (v0, v1) { v2: f32 = load buf4[v0, v1]; … reduce … }
//! ```
//!
//! Tiles of factors go through shared memory where a product stands alone in its loop (`stage`): an element of a row is
//! then fetched once for many columns. What the first ones leave is read by the last one's loop as any array.

use super::launch::{Along, product};
use super::need::Need;
use crate::analysis::contraction::{Class, Contraction, contractions};
use crate::analysis::{Answer, Conditions, ask, written_buffers};
use crate::ir::entities::{Inst, Launch};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;

/// Rows, columns and steps from which on a product is worth tiles, and what it leaves worth writing.
pub const LEAST_ROWS: i64 = 16;
pub const LEAST_STEPS: i64 = 64;

/// The first of several products in a launch's loop, or the only one beside other loops, and the loop around.
pub fn find(kernel: &mut Kernel, launch: Launch) -> Option<(Inst, Need)> {
    let root = kernel.launches[launch].body;
    let is_forall = |inst: &&Inst| kernel.insts[**inst].opcode == Opcode::Forall;
    let forall = *kernel.blocks[root].insts.iter().find(is_forall)?;
    let body = kernel.insts[forall].regions[0];
    let has_regions = |inst: &&Inst| !kernel.insts[**inst].regions.is_empty();
    let loops: Vec<Inst> = kernel.blocks[body].insts.iter().filter(has_regions).copied().collect();
    if loops.len() < 2 {
        return None;
    }
    let all = contractions(kernel, launch);
    let products = all.iter().filter(|one| is_product(kernel, one)).map(|one| one.reduce);
    let products: Vec<Inst> = products.filter(|product| loops.contains(product)).collect();
    let written = written_buffers(kernel, root);
    products.into_iter().find_map(|reduce| {
        let one = all.iter().find(|one| one.reduce == reduce)?;
        let parents = kernel.parents_in(root);
        let need = Need::of(kernel, &parents, body, reduce, &written)?;
        // With another loop it would find itself in the same place there.
        let fits = need.is_alone(kernel) && need.values_outside_are_pure(kernel, forall);
        if need.axes.contains(&false) || !fits {
            return None;
        }
        let conditions = worth(kernel, forall, one)?;
        (ask(kernel, launch, &conditions) == Answer::Yes).then_some((forall, need))
    })
}

/// The sizes from which on a product in a loop is worth a launch of its own.
pub fn worth(kernel: &Kernel, forall: Inst, one: &Contraction) -> Option<Conditions> {
    let mut conditions = Conditions::new();
    for class in [Class::M, Class::N] {
        let axes = Along::of(kernel, forall).into_iter().filter(|axis| one.has(class, axis.index));
        let axes: Vec<Along> = axes.collect();
        conditions = conditions.prefers_at_least(&product(axes.iter(), kernel), LEAST_ROWS);
    }
    let [(low, high)] = kernel.loop_bounds(one.reduce)[..] else { return None };
    Some(conditions.prefers_at_least(&kernel.symbolic_extent(low, high)?, LEAST_STEPS))
}

/// Whether a reduction adds up products of two factors, of which each is the same for all iterations along some axis around.
pub fn is_product(kernel: &Kernel, one: &Contraction) -> bool {
    kernel.insts[one.reduce].results.len() == 1
        && one.products().len() == 1
        && one.axes.iter().filter(|axis| axis.is_reduced).count() == 1
        && one.has_reuse()
        && !one.leaves_out()
}

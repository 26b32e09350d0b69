//! Checks of a product's operands that not all results need.
//!
//! ```text
//! forall axis0 "i", axis1 "j" (v0, v1) {                                          before
//!     v9: f32 = reduce [add] axis2 "p" (v2) {
//!         v3: i32 = load buf0[v2]; …
//!         check site0: v4, v3, v5
//!         … if v4 { load buf1[v3, v1] } …
//!     }
//!
//! forall axis3 "p" (v2) { v3: i32 = load buf0[v2]; …; check site0: v6, v3, v5 }    after: a launch of its own
//! forall axis0 "i", axis1 "j" (v0, v1) { v9: f32 = reduce [add] axis2 "p" (v2) { … if v4 { load buf1[v3, v1] } … } }
//! ```
//!
//! Tiles of a product bring each element of an operand to shared memory where many results use it; a check in its terms would be
//! made once a term. The mask of the check stays where it is, so that nothing outside is read whatever the launch of its own finds.
//! That makes no check where an axis is empty that it does not go along.

use super::launch::{Along, Part, launch_of};
use super::products::{LEAST_ROWS, LEAST_STEPS};
use super::terms::{can_move, needs_of, slice};
use crate::analysis::contraction::{Class, Contraction, contractions};
use crate::analysis::{Answer, Conditions, ask};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::Kernel;
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use cranelift_entity::EntitySet;

/// Gives checks of a launch's product a launch of their own; whether there were any.
pub fn split(kernel: &mut Kernel, launch: Launch) -> bool {
    if kernel.sites.is_empty() {
        return false;
    }
    let Some(product) = contractions(kernel, launch).into_iter().find(Contraction::has_reuse) else {
        return false;
    };
    let Some(nest) = Around::of(kernel, launch, product.reduce) else { return false };
    let checks: Vec<(Block, Inst)> = [nest.region, nest.body]
        .into_iter()
        .flat_map(|block| kernel.blocks[block].insts.iter().map(move |inst| (block, *inst)))
        .filter(|(_, inst)| kernel.insts[*inst].opcode == Opcode::Check)
        .collect();
    let found: Vec<(Block, Inst, Part)> =
        checks.into_iter().filter_map(|at| nest.part(kernel, launch, &product, at)).collect();
    if found.is_empty() || !pays(kernel, launch, &product, &nest) {
        return false;
    }
    for (block, check, mut part) in found {
        guard(kernel, block, check, &nest, &mut part);
        launch_of(kernel, launch, &part, "checks");
        kernel.blocks[block].insts.retain(|inst| *inst != check);
    }
    let name = kernel.launches[launch].name.clone();
    kernel.schedule.remark(&name, "checks that many results share have a launch of their own".to_string());
    true
}

/// What stands around the terms of a product.
struct Around {
    /// The body of the parallel loop, and its axes.
    body: Block,
    outer: Vec<Along>,
    reduce: Inst,
    /// The terms, and the axes that are reduced.
    region: Block,
    own: Vec<Along>,
}

impl Around {
    /// `None` where other control stands between.
    fn of(kernel: &Kernel, launch: Launch, reduce: Inst) -> Option<Self> {
        let root = kernel.launches[launch].body;
        let is_forall = |inst: &&Inst| kernel.insts[**inst].opcode == Opcode::Forall;
        let forall = *kernel.blocks[root].insts.iter().find(is_forall)?;
        let body = kernel.insts[forall].regions[0];
        let region = kernel.insts[reduce].regions[0];
        let (outer, own) = (Along::of(kernel, forall), Along::of(kernel, reduce));
        kernel.blocks[body].insts.contains(&reduce).then_some(Self { body, outer, reduce, region, own })
    }

    fn axes(&self) -> impl Iterator<Item = &Along> {
        self.outer.iter().chain(&self.own)
    }

    /// What a check is made of, and the axes that it goes along: not all rows, or not all columns.
    fn part(
        &self,
        kernel: &Kernel,
        launch: Launch,
        product: &Contraction,
        (block, check): (Block, Inst),
    ) -> Option<(Block, Inst, Part)> {
        let mut wanted: EntitySet<Value> = EntitySet::new();
        needs_of(kernel, check, &mut wanted);
        let mut insts = slice(kernel, block, check, &mut wanted);
        insts.push(check);
        if block == self.region {
            insts.splice(0..0, slice(kernel, self.body, self.reduce, &mut wanted));
        }
        let is_left = |class: Class| product.of(class).any(|axis| !wanted.contains(axis.index));
        let is_shared = [Class::M, Class::N].into_iter().any(is_left);
        let axes: Vec<Along> = self.axes().filter(|axis| wanted.contains(axis.index)).cloned().collect();
        let is_straight = insts.iter().all(|inst| kernel.insts[*inst].regions.is_empty());
        let all: Vec<Along> = self.axes().cloned().collect();
        let moves = is_shared && is_straight && can_move(kernel, launch, (&insts, &[check]), &all);
        let span = kernel.insts[check].span;
        moves.then_some((block, check, Part { axes, insts, values: Vec::new(), span }))
    }
}

/// Lets a check hold where an axis is empty that it does not go along.
fn guard(kernel: &mut Kernel, block: Block, check: Inst, nest: &Around, part: &mut Part) {
    let is_left = |axis: &&Along| part.axes.iter().all(|own| own.index != axis.index);
    // Outside of a reduction it does not matter whether that has terms.
    let around =
        if block == nest.region { nest.axes().collect::<Vec<_>>() } else { nest.outer.iter().collect() };
    let left: Vec<Expr> = around.into_iter().filter(is_left).map(|axis| axis.extent(kernel)).collect();
    let Some(at) = kernel.blocks[block].insts.iter().position(|inst| *inst == check) else { return };
    let after = kernel.blocks[block].insts.split_off(at);
    let span = kernel.insts[check].span;
    let mut emit = Emit::new(kernel, block, span);
    let mut holds = emit.kernel.insts[check].arguments[0];
    for extent in left {
        let zero = emit.int(0);
        let extent = emit.expression(&extent);
        let empty = emit.binary(Opcode::Le, extent, zero);
        holds = emit.binary(Opcode::Or, holds, empty);
    }
    kernel.insts[check].arguments[0] = holds;
    part.insts.pop();
    part.insts.extend(kernel.blocks[block].insts[at..].iter().copied());
    part.insts.push(check);
    kernel.blocks[block].insts.extend(after);
}

/// Whether tiles are to be expected: a launch more is worth it.
fn pays(kernel: &mut Kernel, launch: Launch, product: &Contraction, nest: &Around) -> bool {
    let extent = |class: Class| {
        let of = nest.axes().filter(|axis| product.has(class, axis.index));
        let extents = of.map(|axis| axis.extent(kernel));
        extents.reduce(|left, right| Expr::binary(BinaryOp::Mul, left, right)).unwrap_or(Expr::Int(1))
    };
    let steps = nest.own.iter().map(|axis| axis.extent(kernel));
    let steps = steps.reduce(|left, right| Expr::binary(BinaryOp::Mul, left, right)).unwrap_or(Expr::Int(1));
    let conditions = [(extent(Class::M), LEAST_ROWS), (extent(Class::N), LEAST_ROWS), (steps, LEAST_STEPS)];
    let conditions = conditions
        .iter()
        .fold(Conditions::new(), |known, (extent, least)| known.prefers_at_least(extent, *least));
    ask(kernel, launch, &conditions) == Answer::Yes
}

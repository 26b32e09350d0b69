//! `pin_windows`: the extents of short windows, and of other short loops that are worth straight code, become literals.
//!
//! ```text
//! forall i in h, j in w { y[i, j] = sum(r in 0..kh, s in 0..kw: x[i + r, j + s] * k[r, s]) }     before
//! forall i in h, j in w { y[i, j] = sum(r in 0..3, s in 0..3: x[i + r, j + s] * k[r, s]) }       after, for kh == 3, kw == 3
//! ```
//!
//! A filter that comes as an array has its extents from there, and is as fast as one of literal extents: the passes that
//! make straight code of a window, and share what neighbours read of it, see how long it is. The code is for windows of
//! that size alone; others get code of their own at their first launch.
//!
//! So is a short loop inside of another one (`argmin(q: sum(j: (x[i, j] - c[q, j]) * (x[i, j] - c[q, j])))` of points with few
//! coordinates, which a thread then holds), and one in which all iterations of the loop around read the same, as the coefficients of
//! a polynomial.
//!
//! # Preconditions
//!
//! A reduction, or a loop, some subscript of which moves with it and with the loop around it, or which stands in another one, or of
//! which nothing that it loads moves with the loop around. Along each axis it has at most
//! 32 iterations, together no more than become straight code. There are so many results that a launch takes longer than
//! what is compiled for it is worth. The schedule says nothing of its names.
//!
//! # Limits
//!
//! Code that is right for all sizes keeps its loops.

use super::hoist_reductions::holds_loops;
use super::pass::{Changed, Pass, PassContext};
use super::straight::MOST_ITERATIONS;
use crate::analysis::contraction::Moves;
use crate::analysis::{Answer, Conditions, ask, exact};
use crate::data::Scalar;
use crate::ir::entities::{Block, Inst, Launch};
use crate::ir::kernel::{Kernel, Payload, Phase, Phases};
use crate::ir::op::{Constant, Opcode};
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;

pub struct PinWindows;

/// Results from which on a window has code of its own.
const MANY: i64 = 1 << 16;

impl Pass for PinWindows {
    fn name(&self) -> &str {
        "pin_windows"
    }

    fn reason(&self) -> &str {
        "makes literals of the extents of short windows, for the sizes that they have"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn runs_after(&self) -> &[&str] {
        &["collapse"]
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let mut changed = false;
        if kernel.specialization.is_general() {
            return Changed::No;
        }
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            let root = kernel.launches[launch].body;
            let foralls = kernel.blocks[root].insts.iter().copied();
            let foralls: Vec<Inst> =
                foralls.filter(|inst| kernel.insts[*inst].opcode == Opcode::Forall).collect();
            for forall in foralls {
                let mut loops = Vec::new();
                kernel.walk(kernel.insts[forall].regions[0], &mut |block, inst| {
                    if matches!(kernel.insts[inst].opcode, Opcode::Reduce | Opcode::For) {
                        loops.push((block, inst));
                    }
                });
                for inner in loops {
                    changed |= pin(kernel, launch, forall, inner).is_some();
                }
            }
        }
        changed.into()
    }
}

/// Makes literals of the upper ends of a window in a loop; `None` where it is none, or has them already.
fn pin(kernel: &mut Kernel, launch: Launch, forall: Inst, (block, inst): (Block, Inst)) -> Option<()> {
    let literal = |kernel: &Kernel, value| kernel.int_of(value).and_then(|value| i64::try_from(value).ok());
    let bounds = kernel.loop_bounds(inst);
    let lows: Vec<i64> = bounds.iter().map(|(low, _)| literal(kernel, *low)).collect::<Option<_>>()?;
    let highs: Vec<Expr> = bounds.iter().map(|(_, high)| kernel.symbolic(*high)).collect::<Option<_>>()?;
    let is_said = |kernel: &Kernel| {
        let mut axes = kernel.insts[inst].payload.axes().iter();
        axes.any(|axis| kernel.axes[*axis].nounroll || kernel.schedule.speaks_of(&kernel.axes[*axis].name))
    };
    let is_known = highs.iter().all(|high| matches!(high, Expr::Int(_)));
    if is_known || is_said(kernel) || !is_worth_straight(kernel, forall, inst) {
        return None;
    }
    let around = kernel.symbolic_iterations(forall)?;
    let extents = lows.iter().zip(&highs).map(|(low, high)| match low {
        0 => high.clone(),
        low => Expr::binary(BinaryOp::Sub, high.clone(), Expr::Int(*low)),
    });
    let extents: Vec<Expr> = extents.collect();
    let count = extents.iter().cloned().reduce(|left, right| Expr::binary(BinaryOp::Mul, left, right))?;
    let is_short = Expr::binary(BinaryOp::LessEqual, count, Expr::Int(MOST_ITERATIONS));
    let conditions = Conditions::new().prefers_at_least(&around, MANY).prefers(is_short);
    if ask(kernel, launch, &conditions) != Answer::Yes {
        return None;
    }
    let mut lengths = Vec::with_capacity(extents.len());
    for extent in &extents {
        lengths.push(exact(kernel, extent, MOST_ITERATIONS)?);
    }
    let span = kernel.insts[inst].span;
    for (at, (low, length)) in lows.iter().zip(&lengths).enumerate() {
        let low = mutant!("pin_windows: a window begins at 0", *low, 0);
        let length = mutant!("pin_windows: all axes are as long as the first", *length, lengths[0]);
        let end = low + mutant!("pin_windows: a window is shorter", length, length - 1);
        let end = Payload::Constant(Constant::Int(Scalar::I64, end.into()));
        let end = kernel.make_inst(Opcode::Const, end, &[], span);
        let place = kernel.blocks[block].insts.iter().position(|other| *other == inst)?;
        kernel.blocks[block].insts.insert(place, end);
        kernel.insts[inst].arguments[2 * at + 1] = kernel.insts[end].results[0];
    }
    Some(())
}

/// Whether a loop is a window, of which some subscript moves with it and with the loop around it; or stands in another loop; or
/// loads with its own index what is the same for all iterations around.
fn is_worth_straight(kernel: &Kernel, forall: Inst, inst: Inst) -> bool {
    if is_nested(kernel, forall, inst) {
        return true;
    }
    let mut moves = Moves::new(kernel, &[forall], inst);
    let own = moves.reduced();
    let (mut is_window, mut are_alike, mut others) = (false, false, false);
    kernel.walk(kernel.insts[inst].regions[0], &mut |_, inside| {
        let data = &kernel.insts[inside];
        if data.opcode == Opcode::Load {
            let mut all = data.arguments.iter().map(|index| moves.of(*index).axes()).collect::<Vec<_>>();
            all.retain(|of| of.intersection(own).count() > 0);
            is_window |= all.iter().any(|of| of.without(own).count() > 0);
            let moves_around =
                data.arguments.iter().any(|index| moves.of(*index).axes().without(own).count() > 0);
            are_alike |= !all.is_empty() && !moves_around;
            others |= !all.is_empty() && moves_around;
        }
    });
    is_window || are_alike && !others
}

/// Whether a loop, without loops in it, stands in another one inside of the parallel one.
fn is_nested(kernel: &Kernel, forall: Inst, inst: Inst) -> bool {
    let mut found = false;
    kernel.walk(kernel.insts[forall].regions[0], &mut |_, around| {
        let data = &kernel.insts[around];
        if around != inst && matches!(data.opcode, Opcode::Reduce | Opcode::For) {
            kernel.walk(data.regions[0], &mut |_, inside| found |= inside == inst);
        }
    });
    found && !holds_loops(kernel, inst)
}

//! The launch for one class of indices.

use super::found::{Found, Terms, literal};
use super::quotients;
use crate::analysis::Affine;
use crate::ir::entities::{Block, Inst, Launch};
use crate::ir::kernel::Kernel;
use crate::ir::op::Constant;
use crate::mutants::mutant;
use crate::passes::insert::{before, emitted, stands_for};

/// Leaves a launch the indices of a class: along each axis the first one, from the loop's first one on, and those a period
/// apart.
pub fn take(kernel: &mut Kernel, launch: Launch, found: &Found, class: &[i64]) {
    let lows = (0..class.len()).map(|axis| literal(kernel, found.forall, axis).unwrap_or(0));
    let firsts: Vec<i64> = lows.zip(class).map(|(low, first)| low + first).collect();
    for residue in &found.residues {
        let terms = residue.terms(kernel, &firsts);
        let holds = !matches!(terms, Terms::None);
        kernel.rewrite_to_constant(residue.condition, Constant::Bool(holds));
        match terms {
            Terms::All => {}
            // Its terms add nothing anyway.
            Terms::None => {
                for inst in &residue.loops {
                    let arguments = &mut kernel.insts[*inst].arguments;
                    arguments[1] = arguments[0];
                }
            }
            Terms::Every { of, axis, first, step } => {
                let block = kernel.parents_in(kernel.launches[launch].body).block_of[of];
                let block = block.expand().expect("a loop of the launch stands in a block of it");
                every(kernel, block, of, axis, (first, step));
            }
        }
    }
    let root = kernel.launches[launch].body;
    for (axis, (first, period)) in firsts.iter().zip(&found.periods).enumerate() {
        if *period > 1 {
            every(kernel, root, found.forall, axis, (*first, *period));
        }
    }
    quotients::simplify(kernel, kernel.insts[found.forall].regions[0]);
}

/// Makes a loop in a block run over the indices of an axis from `first` on, `step` apart, by their number.
fn every(kernel: &mut Kernel, block: Block, inst: Inst, axis: usize, (first, step): (i64, i64)) {
    let (_, high) = kernel.loop_bounds(inst)[axis];
    // `ceil((high - first) / step)`, as a polynomial where the sizes in it are multiples.
    let form = Affine::new(kernel).form(high).add_constant(-i128::from(first));
    let count = form.and_then(|form| {
        let constant = form.constant_term();
        let sizes = form.add_constant(-constant)?.divided_exactly(step.into())?;
        sizes.add_constant(-(-constant).div_euclid(step.into()))
    });
    let bounds = before(kernel, block, inst, |emit| {
        let count = count.and_then(|count| emitted(emit, &count));
        let count = count.unwrap_or_else(|| {
            let sum = emit.add_int(high, step - 1 - first);
            emit.div_by(sum, step)
        });
        let count = mutant!("split_residues: the last index is left out", count, emit.add_int(count, -1));
        [emit.int(0), count]
    });
    let bounds = bounds.expect("a loop stands in its block");
    kernel.insts[inst].arguments[2 * axis] = bounds[0];
    kernel.insts[inst].arguments[2 * axis + 1] = bounds[1];
    let body = kernel.insts[inst].regions[0];
    let (number, span) = (kernel.blocks[body].params[axis], kernel.insts[inst].span);
    stands_for(kernel, body, number, span, |emit, number| {
        let scaled = emit.mul_int(number, step);
        emit.add_int(scaled, first)
    });
}

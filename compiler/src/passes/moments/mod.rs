//! `moments`: a sum, and the sum of the squared deviations from its mean, in one walk of memory.
//!
//! ```text
//! v9: f32 = reduce [add] axis1 "r" = v0..v1 (v3) { v4: f32 = load buf0[v3, v2]; yield v4 }                   before
//! v10: f32 = div v9, v5
//! v17: f32 = reduce [add] axis2 "r" = v0..v1 (v11) {
//!     v12: f32 = load buf0[v11, v2]
//!     v13: f32 = sub v12, v10
//!     v14: f32 = mul v13, v13
//!     yield v14
//! }
//!
//! v20: i64, v9: f32, v21: f32 = reduce [own0] axis1 "r" = v0..v1 (v3) {                                      after
//!     v4: f32 = load buf0[v3, v2]
//!     yield 1, v4, -0.0
//! }
//! v10: f32 = div v9, v5
//! v17 = v21 + v20 * (v9 / v20 - v10)^2            0 where nothing was counted
//! ```
//!
//! For any number `m`, and any parts of a walk, each with a count `n`, a mean `a` and a sum of squared deviations `q` from that,
//! the squared deviations from `m` add up to the sum of all `q + n * (a - m)^2`. No term is negative, so nothing cancels: no
//! square of an element is formed (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
//! variances", 1979). Parts are a reduction's contributions, which threads, blocks and launches merge as they do any
//! (`combiner.rs`).
//!
//! # When
//!
//! Where the second reduction would read memory again. Rows and columns that threads hold stay as they are: there two
//! reductions cost fewer instructions. Which ones are held, their passes say.
//!
//! # Preconditions
//!
//! Both reductions stand in one block, over the same axes with the same bounds, and each term of the second one is the square
//! of what a term of the first one, computed again from the same, lies off a mean (`found.rs`). With an infinite element that
//! mean is infinite too, of the same sign, or no number; so all comes out as a NaN either way. Where the sum of finite
//! elements overflows, an infinite sum of squares becomes a NaN.

mod combiner;
mod found;

use super::fill::columns_fill;
use super::pass::{Changed, Pass, PassContext, TargetFacts};
use super::split_reductions::rows;
use super::tile::LONGEST_COLUMN;
use crate::analysis::{Answer, Conditions, ask, written_buffers};
use crate::data::Scalar;
use crate::ir::clone::ValueMap;
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;
use found::Squares;
pub use found::squares;

pub struct Moments;

impl Pass for Moments {
    fn name(&self) -> &str {
        "moments"
    }

    fn reason(&self) -> &str {
        "computes a sum of squared deviations in the walk that computes the mean"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn runs_after(&self) -> &[&str] {
        &["collapse"]
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            for block in kernel.blocks_in(kernel.launches[launch].body) {
                while let Some(found) = find(kernel, launch, block)
                    && walks_again(kernel, launch, block, found.reduces[0], &context.target)
                {
                    rewrite(kernel, block, &found);
                    let name = kernel.launches[launch].name.clone();
                    let text = "squared deviations add up in the walk that finds their mean";
                    kernel.schedule.remark(&name, text.to_string());
                    changed = true;
                }
            }
        }
        changed.into()
    }
}

/// Two reductions of a block of which the second one's terms are squared deviations.
struct Found {
    reduces: [Inst; 2],
    squares: Vec<Squares>,
}

fn find(kernel: &Kernel, launch: Launch, block: Block) -> Option<Found> {
    let is_reduce = |inst: &&Inst| kernel.insts[**inst].opcode == Opcode::Reduce;
    let reduces: Vec<Inst> = kernel.blocks[block].insts.iter().filter(is_reduce).copied().collect();
    if reduces.len() < 2 {
        return None;
    }
    let written = written_buffers(kernel, kernel.launches[launch].body);
    let pairs = (1..reduces.len()).flat_map(|second| (0..second).map(move |first| [first, second]));
    pairs.map(|pair| pair.map(|at| reduces[at])).find_map(|reduces| {
        let [first, second] = reduces;
        let squares = squares(kernel, (first, second), &ValueMap::default(), &written)?;
        Some(Found { reduces, squares })
    })
}

/// Whether a second walk over what a reduction in a block of a launch walks would read memory again.
fn walks_again(
    kernel: &mut Kernel,
    launch: Launch,
    block: Block,
    reduce: Inst,
    target: &TargetFacts,
) -> bool {
    let root = kernel.launches[launch].body;
    if block == root {
        return true;
    }
    let around = kernel.blocks[root].insts.iter().copied().find(|inst| {
        kernel.insts[*inst].opcode == Opcode::Forall && kernel.insts[*inst].regions.contains(&block)
    });
    if let Some(rows) = around.and_then(|forall| rows::find(kernel, forall)) {
        return rows.exact && !rows::are_held(kernel, launch, &rows, target);
    }
    let iterations = |kernel: &Kernel, inst: Inst| {
        let bounds = kernel.loop_bounds(inst).into_iter();
        let extents = bounds.map(|(low, high)| kernel.symbolic_extent(low, high));
        extents.reduce(|left, right| Some(Expr::binary(BinaryOp::Mul, left?, right?)))?
    };
    let Some(terms) = iterations(kernel, reduce) else { return false };
    // Of few columns each is cut into pieces, by one launch for each reduction.
    if let Some(columns) = around.and_then(|forall| iterations(kernel, forall))
        && !columns_fill(kernel, launch, &columns, &terms, target)
    {
        return true;
    }
    let long = Expr::binary(BinaryOp::Greater, terms, Expr::Int(LONGEST_COLUMN));
    ask(kernel, launch, &Conditions::new().prefers(long)) == Answer::Yes
}

/// Makes the sums of the first reduction parts of moments, of which the results of the second one are made.
fn rewrite(kernel: &mut Kernel, block: Block, found: &Found) {
    let [first, second] = found.reduces;
    let Payload::Reduce { axes, combiners } = kernel.insts[first].payload.clone() else { return };
    let region = kernel.insts[first].regions[0];
    let Some(end) = kernel.blocks[region].insts.pop() else { return };
    let span = kernel.insts[first].span;
    let yields = kernel.insts[end].arguments.clone();
    let results = std::mem::take(&mut kernel.insts[first].results);
    let mut moments: Vec<(usize, [Value; 3])> = Vec::new();
    let (mut combined, mut yielded) = (Vec::new(), Vec::new());
    let mut at = 0;
    for combiner in combiners {
        let range = at..at + combiner.width();
        if !found.squares.iter().any(|squares| squares.sum == at) {
            combined.push(combiner);
            yielded.extend_from_slice(&yields[range.clone()]);
            results[range.clone()].iter().for_each(|value| kernel.adopt_result(first, *value));
        } else {
            let scalar = kernel.value_type(results[at]);
            combined.push(combiner::moments(kernel, scalar));
            let mut emit = Emit::new(kernel, region, span);
            let one = emit.int(1);
            let none = emit.constant(combiner::literal(scalar, -0.0));
            yielded.extend([one, yields[at], none]);
            let count = kernel.add_result(first, Scalar::I64);
            kernel.adopt_result(first, results[at]);
            let squares = kernel.add_result(first, scalar);
            moments.push((at, [count, results[at], squares]));
        }
        at = range.end;
    }
    kernel.insts[end].arguments = yielded.into();
    kernel.blocks[region].insts.push(end);
    kernel.insts[first].payload = Payload::Reduce { axes, combiners: combined.into() };

    let mut insts = std::mem::take(&mut kernel.blocks[block].insts);
    let after = insts.split_off(insts.iter().position(|inst| *inst == second).unwrap_or(insts.len()));
    kernel.blocks[block].insts = insts;
    for (squares, result) in found.squares.iter().zip(kernel.insts[second].results.clone()) {
        let Some((_, parts)) = moments.iter().find(|(sum, _)| *sum == squares.sum) else { continue };
        let mut emit = Emit::new(kernel, block, kernel.insts[second].span);
        let value = from(&mut emit, *parts, squares.means);
        emit.kernel.values[value].name = emit.kernel.values[result].name.clone();
        kernel.replace_uses(result, value);
    }
    kernel.blocks[block].insts.extend(after.into_iter().skip(1));
}

/// The squared deviations from the means, added up, of a count, a sum and the squared deviations from the mean of that.
fn from(emit: &mut Emit<'_>, [count, sum, squares]: [Value; 3], means: [Value; 2]) -> Value {
    let scalar = emit.kernel.value_type(sum);
    let counted = emit.value(Opcode::Cast, Payload::Cast(scalar), &[count]);
    let own = emit.binary(Opcode::Div, sum, counted);
    let [one, other] = means.map(|mean| emit.binary(Opcode::Sub, own, mean));
    let off = emit.binary(Opcode::Mul, counted, one);
    let off = emit.binary(Opcode::Mul, off, other);
    let all = emit.binary(Opcode::Add, squares, off);
    let all = mutant!("moments: another mean than that of what was counted", all, squares);
    let none = emit.int(0);
    let some = emit.binary(Opcode::Gt, count, none);
    let zero = emit.constant(combiner::literal(scalar, 0.0));
    mutant!("moments: of nothing", emit.select(some, all, zero), all)
}

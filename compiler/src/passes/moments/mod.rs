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
//! v9: f32, v20: i64, v21: f32, v22: f32 = reduce [add, own0] axis1 "r" = v0..v1 (v3) {                       after
//!     v4: f32 = load buf0[v3, v2]
//!     v23: f32 = load buf0[v0, v2]
//!     v24: f32 = sub v4, v23
//!     yield v4, 1, v24, -0.0
//! }
//! v10: f32 = div v9, v5
//! v17 = v22 + v20 * (v9 / v20 - v10)^2            0 where nothing was counted
//! ```
//!
//! For any number `m`, and any parts of a walk, each with a count `n`, a mean `a` and a sum of squared deviations `q` from that,
//! the squared deviations from `m` add up to the sum of all `q + n * (a - m)^2`. No term is negative, so nothing cancels: no
//! square of an element is formed (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
//! variances", 1979). Parts are a reduction's contributions, which threads, blocks and launches merge as they do any
//! (`combiner.rs`).
//!
//! Means of parts are those of distances from the first element, which is the same for all parts: of large numbers with small
//! deviations the means would be rounded by more than they differ. An element is no further from the mean than the root of
//! all squares added up, so what is lost where it lies far out is nothing beside them.
//!
//! # When
//!
//! Where the second reduction would read memory again. Rows and columns that threads hold stay as they are: there two
//! reductions cost fewer instructions. Which ones are held, their passes say.
//!
//! # Preconditions
//!
//! Both reductions stand in one block, over the same axes with the same bounds, and each term of the second one is the square
//! of what a term of the first one, computed again from the same, lies off a mean (`passes/deviations.rs`). With an infinite element that
//! mean is infinite too, of the same sign, or no number; so all comes out as a NaN either way. Where the sum of finite
//! elements overflows, or a distance between two, an infinite sum of squares becomes a NaN.

mod combiner;

use super::deviations::{Squares, squares};
use super::fill::columns_fill;
use super::pass::{Changed, Pass, PassContext, TargetFacts};
use super::split_reductions::rows;
use super::tile::LONGEST_COLUMN;
use crate::analysis::{Answer, Conditions, ask, written_buffers};
use crate::data::Scalar;
use crate::ir::clone::{ValueMap, mapped};
use crate::ir::emit::Emit;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{Kernel, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use crate::manifest::{BinaryOp, Expr};
use crate::mutants::mutant;

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
    let Some(terms) = kernel.symbolic_iterations(reduce) else { return false };
    // Of few columns each is cut into pieces, by one launch for each reduction.
    if let Some(columns) = around.and_then(|forall| kernel.symbolic_iterations(forall))
        && !columns_fill(kernel, launch, &columns, &terms, target)
    {
        return true;
    }
    let long = Expr::binary(BinaryOp::Greater, terms, Expr::Int(LONGEST_COLUMN));
    ask(kernel, launch, &Conditions::new().prefers(long)) == Answer::Yes
}

/// Adds moments to the first reduction, of which the results of the second one are made.
fn rewrite(kernel: &mut Kernel, block: Block, found: &Found) {
    let [first, second] = found.reduces;
    let Payload::Reduce { axes, mut combiners } = kernel.insts[first].payload.clone() else { return };
    let region = kernel.insts[first].regions[0];
    let Some(end) = kernel.blocks[region].insts.pop() else { return };
    let mut yields = kernel.insts[end].arguments.clone();
    let mut known: Vec<(usize, Parts)> = Vec::new();
    for Squares { sum, .. } in &found.squares {
        if known.iter().any(|(of, _)| of == sum) {
            continue;
        }
        let term = yields[*sum];
        let scalar = kernel.value_type(term);
        let reference = at_first(kernel, first, term);
        let mut emit = Emit::new(kernel, region, kernel.insts[first].span);
        let apart = emit.binary(Opcode::Sub, term, reference);
        yields.extend([emit.int(1), apart, emit.constant(combiner::literal(scalar, -0.0))]);
        combiners.push(combiner::moments(kernel, scalar));
        let sum_of = kernel.insts[first].results[*sum];
        let count = kernel.add_result(first, Scalar::I64);
        kernel.add_result(first, scalar);
        let squares = kernel.add_result(first, scalar);
        known.push((*sum, Parts { count, sum: sum_of, squares }));
    }
    kernel.insts[end].arguments = yields;
    kernel.blocks[region].insts.push(end);
    kernel.insts[first].payload = Payload::Reduce { axes, combiners };

    let mut insts = std::mem::take(&mut kernel.blocks[block].insts);
    let after = insts.split_off(insts.iter().position(|inst| *inst == second).unwrap_or(insts.len()));
    kernel.blocks[block].insts = insts;
    for (squares, result) in found.squares.iter().zip(kernel.insts[second].results.clone()) {
        let Some((_, parts)) = known.iter().find(|(sum, _)| *sum == squares.sum) else { continue };
        let mut emit = Emit::new(kernel, block, kernel.insts[second].span);
        let value = from(&mut emit, parts, squares.means);
        emit.kernel.values[value].name = emit.kernel.values[result].name.clone();
        kernel.replace_uses(result, value);
    }
    kernel.blocks[block].insts.extend(after.into_iter().skip(1));
}

/// Appends to a reduction's region what a term of it is in the first iteration, as which every other one knows it.
fn at_first(kernel: &mut Kernel, reduce: Inst, term: Value) -> Value {
    let region = kernel.insts[reduce].regions[0];
    let lows = kernel.loop_bounds(reduce).into_iter().map(|(low, _)| low);
    let mut map: ValueMap = kernel.blocks[region].params.iter().copied().zip(lows).collect();
    for inst in kernel.blocks[region].insts.clone() {
        let data = &kernel.insts[inst];
        let moves = data.arguments.iter().any(|value| map.contains_key(value));
        if moves && needs(kernel, region, term, inst) {
            kernel.clone_inst(inst, region, &mut map);
        }
    }
    mapped(&map, term)
}

/// Whether a value is made by an instruction of a region, or of what that gives.
fn needs(kernel: &Kernel, region: Block, value: Value, inst: Inst) -> bool {
    let Some(own) = kernel.defining_inst(value).filter(|own| kernel.blocks[region].insts.contains(own))
    else {
        return false;
    };
    own == inst || kernel.insts[own].arguments.iter().any(|value| needs(kernel, region, *value, inst))
}

/// What a walk leaves: how many terms it had, their sum, and the squares of their deviations from their mean, added up.
struct Parts {
    count: Value,
    sum: Value,
    squares: Value,
}

/// The squares of deviations from other means, added up.
fn from(emit: &mut Emit<'_>, parts: &Parts, means: [Value; 2]) -> Value {
    let Parts { count, sum, squares } = *parts;
    let scalar = emit.kernel.value_type(sum);
    let counted = emit.value(Opcode::Cast, Payload::Cast(scalar), &[count]);
    let own = emit.binary(Opcode::Div, sum, counted);
    let [one, other] = means.map(|mean| emit.binary(Opcode::Sub, own, mean));
    let off = emit.binary(Opcode::Mul, counted, one);
    let off = emit.binary(Opcode::Mul, off, other);
    let all = emit.binary(Opcode::Add, squares, off);
    let none = emit.int(0);
    let some = emit.binary(Opcode::Gt, count, none);
    let zero = emit.constant(combiner::literal(scalar, 0.0));
    mutant!("moments: of nothing", emit.select(some, all, zero), all)
}

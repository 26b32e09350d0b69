//! `concatenate_products`: a sum of several products becomes one product along one more axis of steps.
//!
//! ```text
//! y[i, j] = sum(p: x[i, 2 * p] * low[j, p] + x[i, 2 * p + 1] * high[j, p])                         before
//!
//! y[i, j] = sum(p, term in 2: x[i, 2 * p + term] * (if term == 0 { low[j, p] } else { high[j, p] }))  after
//! ```
//!
//! Matrix instructions add up one product of two factors. Factors of the terms are concatenated along the steps, as block
//! matrices `[A B] · [C; D] = A · C + B · D` are. Loads of one array that are apart by the same from term to term are one load.
//! What is left of the others are selects, which `pack_operands` computes once.
//!
//! # Preconditions
//!
//! The sum is a product that a matrix instruction would take if it were one: each term is a product of two factors of one pair of
//! types, none of which is rounded, without a factor that is the same for all steps. Tiles of what is made are predicted to be
//! faster than threads that add up one by one. The schedule says nothing of the launch's axes and arrays.
//!
//! # Changes results
//!
//! Terms are added up in another order, roundings aside the same.

use super::extents::Sizes;
use super::factor::scalars_of;
use super::found::Found;
use super::pack::packed;
use super::{has_atom, is_said, large, plan};
use crate::analysis::contraction::{Contraction, Product, contractions};
use crate::analysis::{Affine, Answer, ask};

use crate::ir::emit::Emit;
use crate::ir::entities::{Inst, Launch, Value};
use crate::ir::kernel::{AxisData, Kernel, Payload, Phase, Phases};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::TargetFacts;
use crate::passes::insert::before;
use crate::passes::pass::{Changed, Pass, PassContext};
use crate::passes::sweep::sweep;

/// The pass.
pub struct ConcatenateProducts;

impl Pass for ConcatenateProducts {
    fn name(&self) -> &str {
        "concatenate_products"
    }

    fn reason(&self) -> &str {
        "makes one product for matrix instructions of a sum of several"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn runs_after(&self) -> &[&str] {
        &["hoist_reductions"]
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            if kernel.launches[launch].phase == Phase::Abstract
                && let Some(made) = concatenated(kernel, launch, &context.target)
            {
                *kernel = made;
                changed = true;
            }
        }
        changed.into()
    }
}

/// The kernel in which the sum of a launch is one product; `None` where it is, or tiles of it would not pay.
fn concatenated(kernel: &mut Kernel, launch: Launch, target: &TargetFacts) -> Option<Kernel> {
    let all = contractions(kernel, launch);
    let (one, scalars) = all.iter().find_map(|one| Some((one, scalars_of(kernel, one)?)))?;
    let fits = |product: &Product| {
        product.outside.is_empty() && product.left.values.len() == 1 && product.right.values.len() == 1
    };
    if one.products().len() < 2 || !one.products().iter().all(fits) || !has_atom(target, scalars) {
        return None;
    }
    let mut made = kernel.clone();
    concatenate(&mut made, one)?;
    sweep(&mut made);
    let found = Found::find(&made, launch).ok()??;
    if is_said(&made, &found) || ask(kernel, launch, &large(&Sizes::of(&found))) != Answer::Yes {
        return None;
    }
    let is_fast = plan(&mut made.clone(), launch, &found, target).is_some()
        || packed(&mut made.clone(), launch, target).is_some();
    if !is_fast {
        return None;
    }
    let name = made.launches[launch].name.clone();
    let text =
        format!("the {} products of each term are one product along one more axis", one.products().len());
    made.schedule.remark(&name, text);
    Some(made)
}

/// Makes one product along one more axis of a sum of several.
fn concatenate(kernel: &mut Kernel, one: &Contraction) -> Option<()> {
    let reduce = one.reduce;
    let products = one.products();
    let region = kernel.insts[reduce].regions[0];
    let around = kernel.blocks.keys().find(|block| kernel.blocks[*block].insts.contains(&reduce))?;
    let (end, span) = (*kernel.blocks[region].insts.last()?, kernel.insts[reduce].span);
    let count = products.len() as i64;
    let bounds = before(kernel, around, reduce, |emit| [emit.int(0), emit.int(count)])?;
    let axis = kernel.axes.push(AxisData::new("term", Vec::new()));
    let Payload::Reduce { axes, .. } = &mut kernel.insts[reduce].payload else { return None };
    let own = axes.len();
    axes.push(axis);
    kernel.insts[reduce].arguments.insert_from_slice(2 * own, &bounds);
    let term = kernel.add_param(region, kernel.value_type(bounds[0]));
    kernel.blocks[region].insts.pop();
    let lefts: Vec<Value> = products.iter().map(|product| product.left.values[0]).collect();
    let rights: Vec<Value> = products.iter().map(|product| product.right.values[0]).collect();
    // What is subtracted has another sign on the left.
    let negated: Vec<bool> = products.iter().map(|product| product.is_negative).collect();
    let left_step = step(kernel, &lefts).filter(|_| !negated.contains(&true));
    let right_step = step(kernel, &rights);
    let mut emit = Emit::new(kernel, region, span);
    emit.name(term, "term");
    let left = match left_step {
        Some(step) => moved(&mut emit, &step, term),
        None => selected(&mut emit, &lefts, term, &negated),
    };
    let right = match right_step {
        Some(step) => moved(&mut emit, &step, term),
        None => selected(&mut emit, &rights, term, &vec![false; products.len()]),
    };
    let product = emit.binary(Opcode::Mul, left, right);
    let data = &mut kernel.insts[end];
    data.arguments[0] = product;
    kernel.blocks[region].insts.push(end);
    Some(())
}

/// Loads of one array, each of which is as far from the one before.
struct Step {
    /// The load of the first term.
    first: Inst,
    /// By how much each subscript grows from term to term.
    by: Vec<i64>,
}

/// How the factors of a side follow from their terms, where all are loads of one array.
fn step(kernel: &Kernel, values: &[Value]) -> Option<Step> {
    let loads: Vec<Inst> = values.iter().map(|value| kernel.defining_inst(*value)).collect::<Option<_>>()?;
    let first = *loads.first()?;
    let of = |load: &Inst| (kernel.insts[*load].opcode, kernel.insts[*load].payload.clone());
    if kernel.insts[first].opcode != Opcode::Load || !loads.iter().all(|load| of(load) == of(&first)) {
        return None;
    }
    let mut affine = Affine::new(kernel);
    let mut between = |from: Inst, to: Inst| -> Option<Vec<i64>> {
        let [from, to] = [from, to].map(|load| kernel.subscripts(&kernel.insts[load]).to_vec());
        let pairs = from.into_iter().zip(to);
        pairs
            .map(|(from, to)| {
                let (from, to) = (affine.form(from).clone(), affine.form(to).clone());
                to.constant_left(&from)
            })
            .collect()
    };
    let by = between(first, *loads.get(1)?)?;
    let is_even = loads.windows(2).all(|pair| between(pair[0], pair[1]).as_ref() == Some(&by));
    is_even.then_some(Step { first, by })
}

/// The element that a term loads.
fn moved(emit: &mut Emit<'_>, step: &Step, term: Value) -> Value {
    let data = emit.kernel.insts[step.first].clone();
    let subscripts: Vec<Value> = emit.kernel.subscripts(&data).to_vec();
    let subscripts: Vec<Value> = subscripts
        .into_iter()
        .zip(&step.by)
        .map(|(subscript, by)| {
            let by = mutant!("concatenate_products: all terms load what the first one does", *by, 0);
            let offset = emit.mul_int(term, by);
            emit.add(subscript, offset)
        })
        .collect();
    emit.value(Opcode::Load, data.payload, &subscripts)
}

/// The factor of a term, of some with another sign.
fn selected(emit: &mut Emit<'_>, values: &[Value], term: Value, negated: &[bool]) -> Value {
    let mut chosen = None;
    for (at, value) in values.iter().enumerate().rev() {
        let is_negated = mutant!("concatenate_products: what is subtracted is added", negated[at], false);
        let value = if is_negated { emit.value(Opcode::Neg, Payload::None, &[*value]) } else { *value };
        chosen = Some(match chosen {
            None => value,
            Some(others) => {
                let number = emit.int(at as i64);
                let is_own = emit.binary(Opcode::Eq, term, number);
                let [then, otherwise] = mutant!(
                    "concatenate_products: terms take each other's factors",
                    [value, others],
                    [others, value]
                );
                emit.select(is_own, then, otherwise)
            }
        });
    }
    chosen.unwrap_or(term)
}

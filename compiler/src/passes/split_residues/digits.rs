//! Loops whose index is taken apart by literals become loops over its digits.
//!
//! ```text
//! for t in 0..9 { … t / 3 … t % 3 … }                before
//! for a in 0..3 { for b in 0..3 { … a … b … } }      after
//! ```
//!
//! So a window that was written as one loop has axes, along which conditions of remainders can be solved.

use super::quotients::{self, divided};
use crate::analysis::code;
use crate::ir::entities::{Block, Inst, Launch, Value};
use crate::ir::kernel::{BlockData, Definition, Kernel, Payload, Regions};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::insert::{before, stands_for};

/// Takes loops of a launch apart of whose digits some remainder is compared; whether there were any.
pub fn take_apart(kernel: &mut Kernel, launch: Launch) -> bool {
    let root = kernel.launches[launch].body;
    let mut loops = Vec::new();
    kernel.walk(root, &mut |_, inst| {
        if matches!(kernel.insts[inst].opcode, Opcode::Reduce | Opcode::For) {
            loops.push(inst);
        }
    });
    let mut changed = false;
    for inst in loops {
        for axis in (0..kernel.insts[inst].payload.axes().len()).rev() {
            let Some(bounds) = digits(kernel, inst, axis).filter(|_| is_asked(kernel, inst, axis)) else {
                continue;
            };
            apart(kernel, inst, axis, &bounds);
            changed = true;
        }
        if changed {
            quotients::simplify(kernel, kernel.insts[inst].regions[0]);
        }
    }
    changed
}

fn index_of(kernel: &Kernel, inst: Inst, axis: usize) -> Value {
    kernel.blocks[kernel.insts[inst].regions[0]].params[axis]
}

/// What the places of an index count, the lowest one's left out, and at last how many indices there are; `None` where the index is
/// used whole, or its parts are no digits.
fn digits(kernel: &Kernel, inst: Inst, axis: usize) -> Option<Vec<i64>> {
    let (low, high) = *kernel.loop_bounds(inst).get(axis)?;
    let count = i64::try_from(kernel.int_of(high)?).ok()?;
    let is_for = kernel.insts[inst].opcode == Opcode::For;
    if count < 1
        || kernel.int_of(low) != Some(0)
        || is_for && kernel.int_of(kernel.insts[inst].arguments[2]) != Some(1)
    {
        return None;
    }
    let index = index_of(kernel, inst, axis);
    let mut bounds = vec![count];
    let mut parts: Vec<(Value, i64)> = Vec::new();
    let mut is_whole = false;
    kernel.walk(kernel.insts[inst].regions[0], &mut |_, inside| {
        let data = &kernel.insts[inside];
        let of = divided(kernel, inside);
        if data.arguments.contains(&index) {
            match of {
                Some((dividend, divisor, is_remainder)) if dividend == index => {
                    bounds.push(divisor);
                    parts.extend((!is_remainder).then_some((data.results[0], divisor)));
                }
                _ => is_whole = true,
            }
        }
        if let Some((dividend, divisor, true)) = of
            && let Some((_, below)) = parts.iter().find(|(part, _)| *part == dividend)
        {
            bounds.push(below.saturating_mul(divisor));
        }
    });
    bounds.sort_unstable();
    bounds.dedup();
    let are_digits = bounds.windows(2).all(|pair| pair[1] % pair[0] == 0) && bounds.last() == Some(&count);
    (!is_whole && bounds.len() > 1 && are_digits).then_some(bounds)
}

/// Whether a remainder of something that an index is in is compared.
fn is_asked(kernel: &Kernel, inst: Inst, axis: usize) -> bool {
    let index = index_of(kernel, inst, axis);
    let mut is_asked = false;
    kernel.walk(kernel.insts[inst].regions[0], &mut |_, inside| {
        let data = &kernel.insts[inside];
        let Some(remainder) = data.arguments.first().and_then(|value| kernel.defining_inst(*value)) else {
            return;
        };
        if data.opcode != Opcode::Eq
            || !divided(kernel, remainder).is_some_and(|(.., is_remainder)| is_remainder)
        {
            return;
        }
        code(kernel, kernel.insts[remainder].arguments[0], &mut |part, _| {
            is_asked |= kernel.insts[part].arguments.contains(&index);
        });
    });
    is_asked
}

/// Gives a loop an axis for each digit of one of its axes, the highest first. The old index is that of the lowest digit then.
fn apart(kernel: &mut Kernel, inst: Inst, axis: usize, bounds: &[i64]) {
    let region = kernel.insts[inst].regions[0];
    let span = kernel.insts[inst].span;
    let lowest = index_of(kernel, inst, axis);
    let places: Vec<i64> = [1].iter().chain(bounds).copied().collect();
    let extents: Vec<i64> = places.windows(2).map(|pair| pair[1] / pair[0]).collect();
    let upper = match kernel.insts[inst].opcode {
        Opcode::For => nested(kernel, inst, &extents),
        _ => side_by_side(kernel, inst, axis, &extents),
    };
    stands_for(kernel, region, lowest, span, |emit, lowest| {
        let mut sum = lowest;
        for (digit, place) in upper.iter().zip(&places[1..]) {
            let place = mutant!("split_residues: each digit counts as the lowest one", *place, 1);
            let scaled = emit.mul_int(*digit, place);
            sum = emit.add(scaled, sum);
        }
        sum
    });
}

/// Puts literals in front of an instruction of the launches; their values.
fn literals(kernel: &mut Kernel, inst: Inst, numbers: &[i64]) -> Vec<Value> {
    let block = kernel.parents().block_of[inst].expand().expect("the loop stands in a block");
    let values = before(kernel, block, inst, |emit| numbers.iter().map(|number| emit.int(*number)).collect());
    values.expect("the loop stands in its block")
}

/// The digits of an axis of a reduction but the lowest one, the lower first.
fn side_by_side(kernel: &mut Kernel, inst: Inst, axis: usize, extents: &[i64]) -> Vec<Value> {
    let region = kernel.insts[inst].regions[0];
    let ends = literals(kernel, inst, extents);
    let zero = kernel.insts[inst].arguments[2 * axis];
    kernel.insts[inst].arguments[2 * axis + 1] = ends[0];
    let mut upper = Vec::new();
    for end in &ends[1..] {
        let Payload::Reduce { axes, .. } = &kernel.insts[inst].payload else { return upper };
        let fresh = kernel.axes[axes[axis]].clone();
        let fresh = kernel.axes.push(fresh);
        let index = kernel.add_param(region, kernel.values[kernel.blocks[region].params[axis]].ty);
        let params = &mut kernel.blocks[region].params;
        params.pop();
        params.insert(axis, index);
        if let Payload::Reduce { axes, .. } = &mut kernel.insts[inst].payload {
            axes.insert(axis, fresh);
        }
        let arguments = &mut kernel.insts[inst].arguments;
        arguments.insert(2 * axis, *end);
        arguments.insert(2 * axis, zero);
        upper.push(index);
    }
    for (position, param) in kernel.blocks[region].params.clone().into_iter().enumerate() {
        kernel.values[param].definition = Definition::Param(region, position as u16);
    }
    upper
}

/// The same of a loop, which stands in others then: of the digits but the lowest one, the lower first.
fn nested(kernel: &mut Kernel, inst: Inst, extents: &[i64]) -> Vec<Value> {
    let mut upper = Vec::new();
    for (at, extent) in extents.iter().enumerate().take(extents.len() - 1) {
        let around = extents[at + 1..].iter().product::<i64>();
        let (zero, ends) = (kernel.insts[inst].arguments[0], literals(kernel, inst, &[*extent, around]));
        let inner_region = kernel.insts[inst].regions[0];
        let outer_region: Block = kernel.blocks.push(BlockData::default());
        let mut params = Vec::new();
        for param in kernel.blocks[inner_region].params.clone() {
            params.push(kernel.add_param(outer_region, kernel.values[param].ty));
        }
        let step = kernel.insts[inst].arguments[2];
        let arguments: Vec<Value> = [zero, ends[0], step].iter().chain(&params[1..]).copied().collect();
        let payload = kernel.clone_payload(kernel.insts[inst].payload.clone());
        let span = kernel.insts[inst].span;
        let inner = kernel.make_inst(Opcode::For, payload, &arguments, span);
        kernel.insts[inner].regions = Regions::from_slice(&[inner_region]);
        let results = kernel.insts[inst].results.to_vec();
        let carried: Vec<Value> = results.iter().map(|like| kernel.clone_result(*like, inner)).collect();
        let end = kernel.make_inst(Opcode::Yield, Payload::None, &carried, span);
        kernel.blocks[outer_region].insts = vec![inner, end];
        kernel.insts[inst].regions = Regions::from_slice(&[outer_region]);
        kernel.insts[inst].arguments[1] = ends[1];
        upper.push(params[0]);
    }
    upper
}

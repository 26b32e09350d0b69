//! A loop gets an axis for each digit of one of its axes.

use super::digits::Digits;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::kernel::{BlockData, Definition, Kernel, Payload, Regions};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::insert::{before, emitted, stands_for};

/// Gives a loop of a block an axis for each digit of one of its axes, the highest first; quotients and remainders by which digits
/// were asked become sums of these. `None` where a number would be too large.
pub fn apart(kernel: &mut Kernel, block: Block, inst: Inst, axis: usize, digits: &Digits) -> Option<()> {
    let body = kernel.insts[inst].regions[0];
    let span = kernel.insts[inst].span;
    let lowest = kernel.blocks[body].params[axis];
    // How many indices each digit has, and all those above it.
    let counts = before(kernel, block, inst, |emit| {
        let extents: Option<Vec<Value>> = digits.extents.iter().map(|extent| emitted(emit, extent)).collect();
        let above: Option<Vec<Value>> = digits.above.iter().map(|extent| emitted(emit, extent)).collect();
        extents.zip(above)
    });
    let (extents, above) = counts??;
    let upper = match kernel.insts[inst].opcode {
        Opcode::For => nested(kernel, inst, &extents[..extents.len() - 1], &above),
        _ => side_by_side(kernel, inst, axis, &extents),
    };
    if kernel.insts[inst].opcode == Opcode::Forall {
        name(kernel, inst, axis, digits);
    }
    let all: Vec<Value> = [lowest].into_iter().chain(upper).collect();
    let mut of_parts = Vec::new();
    stands_for(kernel, body, lowest, span, |emit, _| {
        let mut sum = |first: usize, end: usize| {
            let mut sum: Option<Value> = None;
            for (at, digit) in all.iter().enumerate().take(end).skip(first) {
                let place = digits.place(first, at).and_then(|place| emitted(emit, &place));
                let place = place.expect("it divides the extent, which is a number");
                let place = mutant!("delinearize: each digit counts as the lowest one", place, emit.int(1));
                let scaled = emit.mul(*digit, place);
                sum = Some(match sum {
                    Some(sum) => emit.add(scaled, sum),
                    None => scaled,
                });
            }
            sum.unwrap_or_else(|| emit.int(0))
        };
        of_parts.extend(digits.parts.iter().map(|part| (part.inst, sum(part.first, part.end))));
        sum(0, all.len())
    });
    for (part, value) in of_parts {
        let result = kernel.insts[part].results[0];
        kernel.replace_uses(result, value);
    }
    Some(())
}

/// Names the digits of a parallel loop's axis, of which no directive can say anything.
fn name(kernel: &mut Kernel, inst: Inst, axis: usize, digits: &Digits) {
    let axes = kernel.insts[inst].payload.axes().to_vec();
    let stem = kernel.axes[axes[axis]].name.clone();
    let count = digits.extents.len();
    for digit in 0..count {
        let said = digits.parts.iter().filter(|part| part.first == digit && part.end == digit + 1);
        let said = said.filter_map(|part| kernel.values[kernel.insts[part.inst].results[0]].name.as_deref());
        let said = said.map(str::to_string);
        let numbered = (1..).map(|number| format!("{stem}_{number}"));
        let is_free = |name: &String| {
            !kernel.schedule.speaks_of(name) && kernel.axes.values().all(|axis| axis.name != *name)
        };
        let name = said.chain(numbered).find(is_free).unwrap_or_default();
        // The highest digit comes first.
        kernel.axes[axes[axis + count - 1 - digit]].name.clone_from(&name);
        kernel.schedule.remade.push(name);
    }
}

/// The digits of an axis but the lowest one, the lower first.
fn side_by_side(kernel: &mut Kernel, inst: Inst, axis: usize, ends: &[Value]) -> Vec<Value> {
    let region = kernel.insts[inst].regions[0];
    let zero = kernel.insts[inst].arguments[2 * axis];
    kernel.insts[inst].arguments[2 * axis + 1] = ends[0];
    let mut upper = Vec::new();
    for end in &ends[1..] {
        let fresh = kernel.axes[kernel.insts[inst].payload.axes()[axis]].clone();
        let fresh = kernel.axes.push(fresh);
        let index = kernel.add_param(region, kernel.values[kernel.blocks[region].params[axis]].ty);
        let params = &mut kernel.blocks[region].params;
        params.pop();
        params.insert(axis, index);
        if let Payload::Loop { axes } | Payload::Reduce { axes, .. } = &mut kernel.insts[inst].payload {
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

/// The same of a loop that runs in order, which stands in others then. `around`: how many rounds are left for the digits above
/// each.
fn nested(kernel: &mut Kernel, inst: Inst, ends: &[Value], around: &[Value]) -> Vec<Value> {
    let mut upper = Vec::new();
    for (end, around) in ends.iter().zip(around) {
        let zero = kernel.insts[inst].arguments[0];
        let inner_region = kernel.insts[inst].regions[0];
        let outer_region: Block = kernel.blocks.push(BlockData::default());
        let mut params = Vec::new();
        for param in kernel.blocks[inner_region].params.clone() {
            params.push(kernel.add_param(outer_region, kernel.values[param].ty));
        }
        let step = kernel.insts[inst].arguments[2];
        let arguments: Vec<Value> = [zero, *end, step].iter().chain(&params[1..]).copied().collect();
        let payload = kernel.clone_payload(kernel.insts[inst].payload.clone());
        let span = kernel.insts[inst].span;
        let inner = kernel.make_inst(Opcode::For, payload, &arguments, span);
        kernel.insts[inner].regions = Regions::from_slice(&[inner_region]);
        let results = kernel.insts[inst].results.to_vec();
        let carried: Vec<Value> = results.iter().map(|like| kernel.clone_result(*like, inner)).collect();
        let end = kernel.make_inst(Opcode::Yield, Payload::None, &carried, span);
        kernel.blocks[outer_region].insts = vec![inner, end];
        kernel.insts[inst].regions = Regions::from_slice(&[outer_region]);
        kernel.insts[inst].arguments[1] = *around;
        upper.push(params[0]);
    }
    upper
}

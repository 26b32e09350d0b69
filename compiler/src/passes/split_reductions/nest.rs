//! Reductions of several axes of which one alone is long: cut along that one, the others become straight code.
//!
//! ```text
//! reduce [add] axis1 "q" = 0..9, axis2 "z" = 0..n { … }    →    reduce [add] axis2 "z" = 0..n { reduce [add] axis1 "q" = 0..9 { … } }
//! ```

use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{BlockData, Definition, Kernel, Payload};
use crate::ir::op::Opcode;
use crate::mutants::mutant;
use crate::passes::straight::MOST_ITERATIONS;
use smallvec::smallvec;

/// A kernel with a reduction that is nested, and the terms for each step of its long axis; `None` where none is.
pub fn nested(kernel: &Kernel, reduce: Inst) -> Option<(Kernel, i64)> {
    long_axis(kernel, reduce)?;
    let mut nested = kernel.clone();
    let terms = nest(&mut nested, reduce)?;
    Some((nested, terms))
}

/// Puts the short axes of a reduction into one within it, where one axis is long and all others together are short. Terms for each
/// step of the long one.
pub fn nest(kernel: &mut Kernel, reduce: Inst) -> Option<i64> {
    let (long, terms) = long_axis(kernel, reduce)?;
    let data = kernel.insts[reduce].clone();
    let Payload::Reduce { axes, combiners } = data.payload else { return None };
    let (inner, outer) = (data.regions[0], kernel.blocks.push(BlockData::default()));
    let mut params = kernel.blocks[inner].params.clone();
    let index = params.remove(mutant!("split_reductions: the first index is the long one", long, 0));
    // The long axis' index is the outer block's.
    let own = kernel.add_param(outer, kernel.value_type(index));
    kernel.values[own].name = kernel.values[index].name.clone();
    for (at, param) in params.iter().enumerate() {
        kernel.values[*param].definition = Definition::Param(inner, at as u16);
    }
    kernel.blocks[inner].params = params;
    kernel.replace_uses(index, own);
    let bounds = data.arguments.to_vec();
    let mut short: Vec<Value> = bounds.clone();
    short.drain(2 * long..2 * long + 2);
    let mut short_axes = axes.clone();
    let axis = short_axes.remove(long);
    let payload = Payload::Reduce { axes: short_axes, combiners: combiners.clone() };
    let within = kernel.make_inst(Opcode::Reduce, payload, &short, data.span);
    kernel.insts[within].regions = smallvec![inner];
    let sums = kernel.add_results_like(within, &data.results);
    let end = kernel.make_inst(Opcode::Yield, Payload::None, &sums, data.span);
    kernel.blocks[outer].insts = vec![within, end];
    let whole = &mut kernel.insts[reduce];
    whole.payload = Payload::Reduce { axes: smallvec![axis], combiners };
    whole.arguments = bounds[2 * long..2 * long + 2].into();
    whole.regions = smallvec![outer];
    Some(terms)
}

/// The axis that is no literal, where all others are and have few iterations together, and these; none where each tells its own
/// place.
fn long_axis(kernel: &Kernel, reduce: Inst) -> Option<(usize, i64)> {
    let Payload::Reduce { axes, combiners } = &kernel.insts[reduce].payload else { return None };
    if axes.len() < 2 || combiners.iter().any(|combiner| combiner.is_position()) {
        return None;
    }
    let bounds = kernel.loop_bounds(reduce);
    let extent = |(low, high): &(Value, Value)| Some(kernel.int_of(*high)? - kernel.int_of(*low)?);
    let (mut long, mut others) = (None, 1);
    for (at, bounds) in bounds.iter().enumerate() {
        let is_said = kernel.schedule.speaks_of(&kernel.axes[axes[at]].name);
        match extent(bounds).filter(|_| !is_said) {
            Some(extent) if extent <= MOST_ITERATIONS.into() => others *= extent,
            _ if long.is_none() => long = Some(at),
            _ => return None,
        }
    }
    long.filter(|_| others <= MOST_ITERATIONS.into()).zip(i64::try_from(others).ok())
}

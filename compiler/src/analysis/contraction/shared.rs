//! Contractions that have an operand in common.

use super::parts::{Contraction, Side, Terms};
use crate::ir::entities::Value;
use crate::ir::kernel::Kernel;

/// Definitions that are compared.
const DEPTH: u32 = 32;

/// Groups of contractions, by their numbers, that reduce as many axes between the same bounds and have a side in common:
/// what is loaded for one of them is loaded for all. Those that share nothing are in none.
pub fn shared(kernel: &Kernel, all: &[Contraction]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, one) in all.iter().enumerate() {
        let group = groups.iter().position(|group| group.iter().any(|it| shares(kernel, &all[*it], one)));
        match group {
            Some(group) => groups[group].push(at),
            None => groups.push(vec![at]),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

fn shares(kernel: &Kernel, one: &Contraction, other: &Contraction) -> bool {
    if one.reduce == other.reduce {
        return true;
    }
    let reduced = |of: &Contraction| -> Vec<Value> {
        of.axes.iter().filter(|axis| axis.is_reduced).map(|axis| axis.index).collect()
    };
    let pairs: Vec<(Value, Value)> = reduced(one).into_iter().zip(reduced(other)).collect();
    let (bounds, others) = (kernel.loop_bounds(one.reduce), kernel.loop_bounds(other.reduce));
    let is_alike = bounds.len() == others.len()
        && bounds.iter().zip(&others).all(|(one, other)| {
            same(kernel, (one.0, other.0), &pairs, DEPTH) && same(kernel, (one.1, other.1), &pairs, DEPTH)
        });
    let of_one = sides(one);
    is_alike
        && sides(other).iter().any(|other| {
            of_one.iter().any(|one| {
                one.values.len() == other.values.len()
                    && one
                        .values
                        .iter()
                        .zip(&other.values)
                        .all(|(one, other)| same(kernel, (*one, *other), &pairs, DEPTH))
            })
        })
}

fn sides(of: &Contraction) -> Vec<&Side> {
    match &of.terms {
        Terms::Plain { left, right } => vec![left, right],
        Terms::Products(products) => products.iter().flat_map(|it| [&it.left, &it.right]).collect(),
    }
}

/// Whether two values are the same code, where one index stands for another one.
fn same(kernel: &Kernel, (one, other): (Value, Value), pairs: &[(Value, Value)], depth: u32) -> bool {
    if one == other || pairs.contains(&(one, other)) {
        return true;
    }
    let (Some(left), Some(right)) = (kernel.definition_data(one), kernel.definition_data(other)) else {
        return false;
    };
    depth > 0
        && left.opcode == right.opcode
        && left.payload == right.payload
        && left.regions.is_empty()
        && right.regions.is_empty()
        && left.arguments.len() == right.arguments.len()
        && left
            .arguments
            .iter()
            .zip(&right.arguments)
            .all(|(one, other)| same(kernel, (*one, *other), pairs, depth - 1))
}

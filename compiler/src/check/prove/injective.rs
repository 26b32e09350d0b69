//! What `where injective(idx in low..high)` says to the proof of races: where `idx[p]` and `idx[q]` are one value of the
//! range, `p` and `q` are one position.
//!
//! It says nothing of values outside of the range, and nothing of values of two arrays. That values lie in the range
//! has to be shown wherever the fact is used: the launch does not check it.

use super::vocabulary::{Atom, Facts, Function, Interval, Key, Operation, Poly};
use crate::check::typed::ArrayId;
use crate::data::Scalar;

/// Pairs of values that are looked at.
const MAX_PAIRS: usize = 8;
/// Steps for the proof that a value lies in the range.
const RANGE_BUDGET: u32 = 200;

/// Two values of one array.
pub struct Pair {
    array: ArrayId,
    pub left: Poly,
    pub right: Poly,
    /// Differences of their subscripts.
    pub positions: Vec<Poly>,
}

/// Pairs of different values in the equations that are of one injective array.
pub fn pairs(facts: &Facts, equations: &[Poly]) -> Vec<Pair> {
    let mut atoms: Vec<Atom> = equations.iter().flat_map(Poly::atoms).collect();
    atoms.sort_unstable();
    atoms.dedup();
    let values: Vec<(Atom, ArrayId, &[Poly])> =
        atoms.iter().filter_map(|atom| element(facts, *atom).map(|(array, at)| (*atom, array, at))).collect();
    let mut pairs = Vec::new();
    for (number, (left, array, at)) in values.iter().enumerate() {
        for (right, other, there) in &values[number + 1..] {
            let positions: Option<Vec<Poly>> =
                at.iter().zip(*there).map(|(here, there)| there.subtract(here)).collect();
            if array == other
                && pairs.len() < MAX_PAIRS
                && let Some(positions) = positions
            {
                pairs.push(Pair {
                    array: *array,
                    left: Poly::atom(*left),
                    right: Poly::atom(*right),
                    positions,
                });
            }
        }
    }
    pairs
}

/// The array of a fact whose element the atom is, as it subscripts, and the element's subscripts.
fn element(facts: &Facts, atom: Atom) -> Option<(ArrayId, &[Poly])> {
    let (array, at) = match &facts.atoms.get(atom).key {
        Key::Apply(Function::Operation(Operation::Load(array)), at) => (*array, at),
        // A `u64` subscripts as the i64 of its bits: different values, different bits.
        Key::Apply(Function::Operation(Operation::Cast(Scalar::I64)), operand) => {
            let inner = facts.atoms.get(operand[0].as_atom()?);
            let Key::Apply(Function::Operation(Operation::Load(array)), at) = &inner.key else { return None };
            if inner.range != Interval::of(Scalar::U64) {
                return None;
            }
            (*array, at)
        }
        _ => return None,
    };
    facts
        .injective
        .iter()
        .any(|known| known.operation == Operation::Load(array))
        .then_some((array, at.as_slice()))
}

/// Whether, where all of `known` holds, the left value of the pair lies in a range in which no two are equal.
pub fn in_range(facts: &mut Facts, known: &[Poly], pair: &Pair) -> bool {
    let mark = facts.mark();
    facts.assume_all(known);
    let ranges: Vec<[Option<Poly>; 2]> = facts
        .injective
        .iter()
        .filter(|range| range.operation == Operation::Load(pair.array))
        .map(|range| {
            let below = range.high.subtract(&pair.left).and_then(|room| room.add_constant(-1));
            [pair.left.subtract(&range.low), below]
        })
        .collect();
    let inside = ranges.into_iter().any(|ends| {
        ends.into_iter().all(|end| end.is_some_and(|goal| facts.proves_within(&goal, RANGE_BUDGET)))
    });
    facts.forget_since(mark);
    inside
}

//! Whether the tiles of a contraction are fragments of a matrix instruction, repeated.

use super::{Atom, FactorType, MatrixAtom};
use crate::data::Scalar;
use crate::layout::{Dimension, ValueLayout};

/// How a contraction is made of matrix instructions: which one, and what is left of the layouts when its fragments are taken
/// out of them. Each place of what is left has a fragment.
#[derive(Clone, PartialEq, Debug)]
pub struct Fit {
    pub atom: &'static MatrixAtom,
    /// The right factor of the contraction is the left one of the instruction.
    pub swapped: bool,
    /// Of the instruction's left factor, of its right one, and of the sums.
    pub outer: [ValueLayout; 3],
}

impl Fit {
    /// Finds the instruction's rows and columns among the axes of two factors and a result, of which the steps run along `step`:
    /// the digits of its fragments are the lowest ones of the layouts, and no register holds what another one holds.
    pub fn find(
        kind: Atom,
        (left, right): (Scalar, Scalar),
        layouts: [&ValueLayout; 3],
        step: &str,
    ) -> Option<Fit> {
        [false, true].into_iter().find_map(|swapped| {
            let [first, second] = if swapped { [right, left] } else { [left, right] };
            let atom = MatrixAtom::find(FactorType::of(kind, first)?, FactorType::of(kind, second)?)?;
            let [left, right, sums] = layouts;
            let [rows, columns] = if swapped { [right, left] } else { [left, right] };
            let own = |one: &ValueLayout, other: &ValueLayout| {
                let has =
                    |layout: &ValueLayout, axis: &str| layout.axes().iter().any(|(name, _)| *name == axis);
                let axes = one.axes().into_iter().map(|(name, _)| name.to_string());
                axes.filter(|axis| has(sums, axis) && !has(other, axis)).collect::<Vec<String>>()
            };
            let fragments = atom.layouts();
            own(rows, columns).iter().find_map(|row| {
                own(columns, rows).iter().find_map(|column| {
                    let named = |fragment: &ValueLayout| -> Option<ValueLayout> {
                        let mut named = fragment.clone();
                        for (axis, name) in [("m", row.as_str()), ("n", column.as_str()), ("k", step)] {
                            if named.axes().iter().any(|(known, _)| *known == axis) {
                                named = named.rename(axis, &format!("_{name}")).ok()?;
                            }
                        }
                        // In two steps, for an axis may be called `m` itself.
                        for name in [row.as_str(), column.as_str(), step] {
                            let before = format!("_{name}");
                            if named.axes().iter().any(|(known, _)| *known == before) {
                                named = named.rename(&before, name).ok()?;
                            }
                        }
                        Some(named)
                    };
                    let [first, second, third] = &fragments;
                    let outer = [
                        rows.divide(&named(first)?)?,
                        columns.divide(&named(second)?)?,
                        sums.divide(&named(third)?)?,
                    ];
                    let whole = |layout: &ValueLayout| {
                        layout.replicas().iter().all(|digit| digit.dimension != Dimension::Register)
                    };
                    outer.iter().all(whole).then(|| Fit { atom, swapped, outer: outer.clone() })
                })
            })
        })
    }
}

//! Reading array elements and their parts.

use crate::expressions::Expressions;
use crate::scope::{ArrayName, Element, Scope};
use crate::types::{Extent, Wide};

impl Expressions<'_, '_> {
    /// Reads an element, or its part: with bare names where there are some, else guarded or brought into range.
    pub fn element(&mut self, array: &ArrayName, part: &str, ty: Wide, scope: &Scope) -> String {
        if array.extents.is_empty() {
            return format!("{}{part}", array.name);
        }
        let (subscripts, guarded) = self.subscripts(array, scope);
        let access = format!("{}[{subscripts}]{part}", array.name);
        if guarded { format!("({access} else {})", self.literal(ty)) } else { access }
    }

    /// Subscripts, and whether they need a guard.
    pub fn subscripts(&mut self, array: &ArrayName, scope: &Scope) -> (String, bool) {
        match self.bare(array, scope) {
            Some(bare) if !self.choices.once_in(5) => (bare.join(", "), false),
            _ => self.other_subscripts(array, scope),
        }
    }

    /// Names that run over the axes: different ones where there are some, in any order.
    fn bare(&mut self, array: &ArrayName, scope: &Scope) -> Option<Vec<String>> {
        let mut subscripts = Vec::with_capacity(array.extents.len());
        for (axis, extent) in array.extents.iter().enumerate() {
            let names: Vec<&str> = scope
                .indices
                .iter()
                .filter(|index| index.extent == *extent)
                .map(|index| index.name.as_str())
                .collect();
            let name = match names.as_slice() {
                [] => return None,
                [only] => only,
                // The last ones, in order: of `p` in a reduction over `i` that is what a row of a product wants.
                _ => {
                    let first = names.len().saturating_sub(array.extents.len());
                    names[(first + axis + self.choices.below(names.len())) % names.len()]
                }
            };
            subscripts.push(name.to_string());
        }
        Some(subscripts)
    }

    /// Shifted names, wrapped names, numbers, data; and whether the access needs a guard.
    fn other_subscripts(&mut self, array: &ArrayName, scope: &Scope) -> (String, bool) {
        let mut guarded = false;
        let mut subscripts = Vec::new();
        for extent in &array.extents {
            let any = scope.indices.last().map(|index| index.name.clone());
            let same = scope.index_over(*extent).map(str::to_string);
            let text = match (self.choices.below(7), same, any) {
                (0, Some(same), _) => same,
                (1, Some(same), _) => {
                    guarded = true;
                    let shift = self.choices.one_of(&["- 1", "+ 1", "+ 2", "- 3"]);
                    format!("{same} {shift}")
                }
                // In range: the range is not empty, since a name runs over it here.
                (2, Some(same), _) => format!("({same} * 3 + 1) % {}", extent.text()),
                (4, Some(_), _) => {
                    let at = self.leaf(Wide::I64, &without_arrays(scope));
                    format!("clamp({at}, 0i64, {} - 1)", extent.text())
                }
                (5, ..) => {
                    guarded = true;
                    self.leaf(Wide::I64, &without_arrays(scope))
                }
                (6, ..) if *extent == Extent::Fixed(16) => {
                    format!("{} & 15", self.leaf(Wide::I64, &without_arrays(scope)))
                }
                (_, _, Some(any)) => {
                    guarded = true;
                    format!("{any} * 2 - 1")
                }
                _ => {
                    guarded = true;
                    self.choices.one_of(&["0", "1", "3"]).to_string()
                }
            };
            subscripts.push(text);
        }
        (subscripts.join(", "), guarded)
    }
}

/// What subscripts are made of: no struct, and arrays of one axis only, so that they stay short.
fn without_arrays(scope: &Scope) -> Scope {
    let mut scope = scope.clone();
    scope.arrays.retain(|array| {
        let [extent] = array.extents.as_slice() else { return false };
        matches!(array.element, Element::Scalar(stored) if stored.wide.is_integer())
            && scope.indices.iter().any(|index| index.extent == *extent)
    });
    scope
}

/// The parts of an array's elements that have the type: the element itself, or fields.
pub fn parts_of(array: &ArrayName, ty: Wide) -> impl Iterator<Item = &'static str> {
    let parts: Vec<(&'static str, Wide)> = match array.element {
        Element::Scalar(stored) => vec![("", stored.wide)],
        Element::Struct(structure) => {
            structure.parts().iter().map(|(part, stored)| (*part, stored.wide)).collect()
        }
    };
    parts.into_iter().filter(move |(_, wide)| *wide == ty).map(|(part, _)| part)
}

//! Writes whose subscripts are more than the names of the axes.

use crate::expressions::Expressions;
use crate::kernel::Draft;
use crate::kernel_level::{combining, iterate, ranges, result};
use crate::types::{Extent, STORED};

pub fn statement(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    match make.choices.below(8) {
        0 => one_axis(make, draft, "reversed"),
        1 => one_axis(make, draft, "interleaved"),
        2 => flattened(make, draft),
        3 => joined(make, draft),
        4 => diagonals(make, draft),
        5 => along(make, draft),
        6 => triangle(make, draft),
        _ => nested(make, draft),
    }
}

fn dim(make: &mut Expressions<'_, '_>, draft: &Draft) -> usize {
    make.choices.below(draft.scope.dims)
}

/// `y[n - 1 - i] = e`, or `y[2 * i] = e` and `y[2 * i + 1] = e`.
fn one_axis(make: &mut Expressions<'_, '_>, draft: &mut Draft, which: &str) {
    let (stored, dim) = (make.choices.one_of(&STORED), dim(make, draft));
    let reversed = which == "reversed";
    let extent = if reversed { Extent::Dim(dim) } else { Extent::Twice(dim) };
    let array = result(make, draft, stored, vec![extent]);
    let (indices, inner) = iterate(make, draft, &[Extent::Dim(dim)]);
    let index = &indices[0];
    draft.body.open(&format!("forall {} {{", ranges(&indices, &[Extent::Dim(dim)])));
    let subscripts = if reversed {
        vec![format!("{} - 1 - {index}", Extent::Dim(dim).text())]
    } else {
        vec![format!("2 * {index}"), format!("2 * {index} + 1")]
    };
    for subscript in subscripts {
        let value = make.expression(stored.wide, &inner, 3);
        draft.body.line(&format!("{}[{subscript}] = {value}", array.name));
    }
    draft.body.close("}");
    draft.scope.arrays.push(array);
}

/// `y[i * m + j] = e`
fn flattened(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let (stored, rows, columns) = (make.choices.one_of(&STORED), dim(make, draft), dim(make, draft));
    let array = result(make, draft, stored, vec![Extent::Product(rows, columns)]);
    let extents = [Extent::Dim(rows), Extent::Dim(columns)];
    let (indices, inner) = iterate(make, draft, &extents);
    let value = make.expression(stored.wide, &inner, 3);
    let at = format!("{} * {} + {}", indices[0], Extent::Dim(columns).text(), indices[1]);
    draft.body.line(&format!("forall {} {{ {}[{at}] = {value} }}", ranges(&indices, &extents), array.name));
    draft.scope.arrays.push(array);
}

/// `y[i] = e` and `y[n + j] = e`
fn joined(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let (stored, first, second) = (make.choices.one_of(&STORED), dim(make, draft), dim(make, draft));
    let array = result(make, draft, stored, vec![Extent::Sum(first, second)]);
    for (dim, offset) in [(first, String::new()), (second, format!("{} + ", Extent::Dim(first).text()))] {
        let extents = [Extent::Dim(dim)];
        let (indices, inner) = iterate(make, draft, &extents);
        let value = make.expression(stored.wide, &inner, 3);
        let at = format!("{offset}{}", indices[0]);
        draft.body.line(&format!(
            "forall {} {{ {}[{at}] = {value} }}",
            ranges(&indices, &extents),
            array.name
        ));
    }
    draft.scope.arrays.push(array);
}

/// `y[i + j] += e`
fn diagonals(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let (stored, first, second) = (make.choices.one_of(&STORED), dim(make, draft), dim(make, draft));
    let array = result(make, draft, stored, vec![Extent::Sum(first, second)]);
    let extents = [Extent::Dim(first), Extent::Dim(second)];
    let (indices, inner) = iterate(make, draft, &extents);
    let value = make.expression(stored.wide, &inner, 3);
    let operator = make.choices.one_of(combining(stored.wide));
    let target = format!("{}[{} + {}]", array.name, indices[0], indices[1]);
    draft.body.line(&format!("forall {} {{ {target} {operator} {value} }}", ranges(&indices, &extents)));
    draft.scope.arrays.push(array);
}

/// `y[j] += e` over `i` and `j`
fn along(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let (stored, first, second) = (make.choices.one_of(&STORED), dim(make, draft), dim(make, draft));
    let extents = [Extent::Dim(first), Extent::Dim(second)];
    let kept = make.choices.below(2);
    let array = result(make, draft, stored, vec![extents[kept]]);
    let (indices, inner) = iterate(make, draft, &extents);
    let value = make.expression(stored.wide, &inner, 3);
    let operator = make.choices.one_of(combining(stored.wide));
    let target = format!("{}[{}]", array.name, indices[kept]);
    draft.body.line(&format!("forall {} {{ {target} {operator} {value} }}", ranges(&indices, &extents)));
    draft.scope.arrays.push(array);
}

/// `forall i in n, j in 0..=i { y[i, j] = e }`: the rest is written before, or else starts from zero and is not read.
fn triangle(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let (stored, dim) = (make.choices.one_of(&STORED), dim(make, draft));
    let extents = [Extent::Dim(dim), Extent::Dim(dim)];
    let array = result(make, draft, stored, extents.to_vec());
    let filled = make.choices.once_in(2);
    if filled {
        let (indices, inner) = iterate(make, draft, &extents);
        let value = make.leaf(stored.wide, &inner);
        draft.body.line(&format!("{}[{}] = {value}", array.name, indices.join(", ")));
    }
    let (indices, inner) = iterate(make, draft, &extents);
    let value = make.expression(stored.wide, &inner, 3);
    let (row, column, end) = (&indices[0], &indices[1], extents[0].text());
    let range = match make.choices.below(3) {
        0 => format!("0..={row}"),
        1 => format!("{row}..{end}"),
        _ => format!("{row} + 1..{end}"),
    };
    let target = format!("{}[{row}, {column}]", array.name);
    draft.body.line(&format!("forall {row} in {end}, {column} in {range} {{ {target} = {value} }}"));
    if filled {
        draft.scope.arrays.push(array);
    }
}

/// `forall i in n { statements; forall j in m { y[i, j] = e } }`
fn nested(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let stored = make.choices.one_of(&STORED);
    let extents = [Extent::Dim(dim(make, draft)), Extent::Dim(dim(make, draft))];
    let array = result(make, draft, stored, extents.to_vec());
    let (outer, mut scope) = iterate(make, draft, &extents[..1]);
    draft.body.open(&format!("forall {} {{", ranges(&outer, &extents[..1])));
    let count = 1 + make.choices.below(2);
    make.statements(&mut draft.body, &mut scope, count, 1);
    let (inner, names) = iterate(make, draft, &extents[1..]);
    // A variable from outside can be read inside, and is not changed there.
    scope.indices.extend(names.indices);
    scope.loops += 1;
    let value = make.expression(stored.wide, &scope, 3);
    let target = format!("{}[{}, {}]", array.name, outer[0], inner[0]);
    draft.body.line(&format!("forall {} {{ {target} = {value} }}", ranges(&inner, &extents[1..])));
    draft.body.close("}");
    draft.scope.arrays.push(array);
}

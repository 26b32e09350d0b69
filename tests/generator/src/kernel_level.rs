//! Statements at kernel level: each writes a result, a temporary, a static or an inout array.

use crate::expressions::Expressions;
use crate::kernel::{Draft, array_type, shape};
use crate::scope::{ArrayName, Element, IndexName, MOST_LOOPS, Scope};
use crate::structs::Structure;
use crate::types::{Extent, NUMBERS, STORED, Stored, Wide};
use crate::writes;

pub fn kernel_statement(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    match make.choices.below(16) {
        1 | 2 => forall(make, draft),
        3 => whole_reduction(make, draft),
        4 => combine(make, draft),
        5 if !draft.inouts.is_empty() => change(make, draft),
        6 => temporary(make, draft),
        7 | 8 if draft.structure => structs(make, draft),
        9 => value(make, draft),
        10 => branch(make, draft),
        11 if !draft.inouts.is_empty() => repeated(make, draft),
        12 if !draft.statics.is_empty() => set_static(make, draft),
        13 | 8 => writes::statement(make, draft),
        14 => product(make, draft),
        15 => recurrence(make, draft),
        _ => elementwise(make, draft),
    }
}

/// Fresh index names for a shape, in the scope of one iteration.
pub fn iterate(
    make: &mut Expressions<'_, '_>,
    draft: &mut Draft,
    extents: &[Extent],
) -> (Vec<String>, Scope) {
    let mut inner = draft.scope.clone();
    let mut indices = Vec::new();
    for extent in extents {
        let name = make.names.fresh("i");
        inner.indices.push(IndexName { name: name.clone(), extent: *extent });
        inner.loops += 1;
        indices.push(name);
    }
    draft.parallel.push(indices.clone());
    (indices, inner)
}

/// Ranges written out: `i0 in n, i1 in m`.
pub fn ranges(indices: &[String], extents: &[Extent]) -> String {
    let each = indices.iter().zip(extents).map(|(index, extent)| format!("{index} in {}", extent.text()));
    each.collect::<Vec<String>>().join(", ")
}

/// A new result; not to be read before the statement is over.
pub fn result(
    make: &mut Expressions<'_, '_>,
    draft: &mut Draft,
    stored: Stored,
    extents: Vec<Extent>,
) -> ArrayName {
    result_of(make, draft, Element::Scalar(stored), extents)
}

fn result_of(
    make: &mut Expressions<'_, '_>,
    draft: &mut Draft,
    element: Element,
    extents: Vec<Extent>,
) -> ArrayName {
    let array = ArrayName { name: make.names.fresh("y"), element, extents };
    draft.results.push(format!("{}: {}", array.name, array_type(array.element, &array.extents)));
    draft.scheduled.push((array.clone(), false));
    array
}

/// `y[i, j] = e`
fn elementwise(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let stored = make.choices.one_of(&STORED);
    let extents = shape(make, draft.scope.dims);
    let array = result(make, draft, stored, extents.clone());
    let (indices, inner) = iterate(make, draft, &extents);
    let value = make.expression(stored.wide, &inner, 4);
    draft.body.line(&format!("{}[{}] = {value}", array.name, indices.join(", ")));
    draft.scope.arrays.push(array);
}

/// `y[i, j] = sum(p in k: a[i, p] * b[p, j])`, each array perhaps the other way round, with something around it.
fn product(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let wide = make.choices.one_of(&[Wide::F32, Wide::F64, Wide::I32]);
    let of_two_axes = |array: &&ArrayName| match (array.element, array.extents.as_slice()) {
        (Element::Scalar(stored), [Extent::Dim(_), Extent::Dim(_)]) => stored.wide == wide,
        _ => false,
    };
    let arrays: Vec<ArrayName> = draft.scope.arrays.iter().filter(of_two_axes).cloned().collect();
    if arrays.is_empty() {
        return elementwise(make, draft);
    }
    let first = arrays[make.choices.below(arrays.len())].clone();
    let along = make.choices.below(2);
    let second: Vec<&ArrayName> =
        arrays.iter().filter(|array| array.extents.contains(&first.extents[along])).collect();
    let second = second[make.choices.below(second.len())].clone();
    let other = usize::from(second.extents[0] == first.extents[along]);
    let extents = vec![first.extents[1 - along], second.extents[other]];
    let stored = STORED.into_iter().find(|stored| stored.wide == wide && stored.name == wide.name());
    let turned = make.choices.once_in(3);
    let shape = if turned { vec![extents[1], extents[0]] } else { extents.clone() };
    let array = result(make, draft, stored.unwrap_or(STORED[0]), shape);
    let (indices, _) = iterate(make, draft, &extents);
    let step = make.names.fresh("p");
    let read = |array: &ArrayName, summed: usize, kept: &str| match summed {
        0 => format!("{}[{step}, {kept}]", array.name),
        _ => format!("{}[{kept}, {step}]", array.name),
    };
    let (left, right) = (read(&first, along, &indices[0]), read(&second, 1 - other, &indices[1]));
    let range = first.extents[along].text();
    let sum = format!("sum({step} in {range}: {left} * {right})");
    let value = match make.choices.below(3) {
        0 => sum,
        1 => format!("{sum} + {}", make.literal(wide)),
        _ => format!("max({sum}, {})", make.literal(wide)),
    };
    let mut places = indices.clone();
    if turned {
        places.reverse();
    }
    draft.body.line(&format!("{}[{}] = {value}", array.name, places.join(", ")));
    draft.scope.arrays.push(array);
}

/// `forall i in n { for j in 0..m { y[i, j] = e(y[i, j - 1]) } }`, up or down: what an iteration wrote itself is read.
fn recurrence(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let stored = make.choices.one_of(&STORED);
    if stored.wide == Wide::Bool {
        return elementwise(make, draft);
    }
    let along = make.range(&draft.scope);
    let mut extents = vec![make.range(&draft.scope)];
    let (indices, mut inner) = iterate(make, draft, &extents);
    extents.push(along);
    let array = result(make, draft, stored, extents.clone());
    let turn = make.names.fresh("j");
    inner.indices.push(IndexName { name: turn.clone(), extent: along });
    inner.loops += 1;
    let (name, i, end) = (&array.name, &indices[0], along.text());
    let (range, has_earlier, earlier) = if make.choices.once_in(3) {
        (format!("{end} - 1..=0 step -1"), format!("{turn} + 1 < {end}"), format!("{turn} + 1"))
    } else {
        (format!("0..{end}"), format!("{turn} > 0"), format!("{turn} - 1"))
    };
    let (value, start) = (make.expression(stored.wide, &inner, 2), make.literal(stored.wide));
    // Floats shrink on the way, so that their bounds do.
    let shrunk = if stored.wide.is_float() { "0.25 * " } else { "" };
    draft.body.open(&format!("forall {} {{", ranges(&indices, &extents[..1])));
    draft.body.open(&format!("for {turn} in {range} {{"));
    draft.body.line(&format!(
        "{name}[{i}, {turn}] = {value} + (if {has_earlier} {{ {shrunk}{name}[{i}, {earlier}] }} else {{ {start} }})"
    ));
    draft.body.close("}");
    draft.body.close("}");
    draft.scope.arrays.push(array);
}

/// `forall i in n { statements; y[i] = e; … }`
fn forall(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let extents = shape(make, draft.scope.dims);
    let (indices, mut inner) = iterate(make, draft, &extents);
    draft.body.open(&format!("forall {} {{", ranges(&indices, &extents)));
    let count = make.choices.below(5);
    make.statements(&mut draft.body, &mut inner, count, 2);
    let mut written = Vec::new();
    for _ in 0..1 + make.choices.below(2) {
        let stored = make.choices.one_of(&STORED);
        let array = result(make, draft, stored, extents.clone());
        let value = make.expression(stored.wide, &inner, 3);
        draft.body.line(&format!("{}[{}] = {value}", array.name, indices.join(", ")));
        written.push(array);
    }
    // What the statements did to variables and local arrays is to be seen.
    for (name, wide) in inner.variables.clone().into_iter().take(4) {
        let stored = Stored { name: wide.name(), wide };
        let array = result(make, draft, stored, extents.clone());
        draft.body.line(&format!("{}[{}] = {name}", array.name, indices.join(", ")));
        written.push(array);
    }
    for local in inner.mutable_arrays.clone().into_iter().take(1) {
        let Element::Scalar(of) = local.element else { continue };
        let operation = if of.wide == Wide::Bool { "any" } else { "max" };
        let array = result(make, draft, Stored { name: of.wide.name(), wide: of.wide }, extents.clone());
        let names: Vec<String> = local.extents.iter().map(|_| make.names.fresh("p")).collect();
        let axes = ranges(&names, &local.extents);
        let value = format!("{operation}({axes}: {}[{}])", local.name, names.join(", "));
        draft.body.line(&format!("{}[{}] = {value}", array.name, indices.join(", ")));
        written.push(array);
    }
    draft.body.close("}");
    draft.scope.arrays.extend(written);
}

/// `y = sum(…)`: a result without axes.
fn whole_reduction(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let stored = make.choices.one_of(&STORED);
    let array = result(make, draft, stored, Vec::new());
    let value = make.expression(stored.wide, &draft.scope.clone(), 4);
    draft.body.line(&format!("{} = {value}", array.name));
    draft.scope.arrays.push(array);
}

/// Operators that combine values of a type.
pub fn combining(wide: Wide) -> &'static [&'static str] {
    match wide {
        Wide::Bool => &["|=", "&=", "^="],
        wide if wide.is_float() => &["+=", "max=", "min=", "-="],
        _ => &["+=", "max=", "min=", "|=", "&=", "^=", "-="],
    }
}

/// `forall i in n { h[e & 15] += v }`, of a result or a static.
fn combine(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let array = if !draft.statics.is_empty() && make.choices.once_in(3) {
        let at = make.choices.below(draft.statics.len());
        draft.statics[at].clone()
    } else {
        let element = if draft.structure && make.choices.once_in(4) {
            Element::Struct(Structure::S)
        } else {
            Element::Scalar(make.choices.one_of(&STORED))
        };
        let bins = if make.choices.once_in(3) { Vec::new() } else { vec![Extent::Fixed(16)] };
        result_of(make, draft, element, bins)
    };
    let extents = shape(make, draft.scope.dims);
    let (indices, inner) = iterate(make, draft, &extents);
    let mut inner = inner.without_array(&array.name);
    draft.body.open(&format!("forall {} {{", ranges(&indices, &extents)));
    let count = make.choices.below(2);
    make.statements(&mut draft.body, &mut inner, count, 1);
    let (operator, value) = match array.element {
        Element::Scalar(stored) => {
            (make.choices.one_of(combining(stored.wide)), make.expression(stored.wide, &inner, 3))
        }
        Element::Struct(structure) => ("+=", make.structure(structure, &inner, 2)),
    };
    let target = if array.extents.is_empty() {
        array.name.clone()
    } else {
        let bin = make.names.fresh("b");
        draft.body.line(&format!("let {bin} = {}", make.expression(Wide::I64, &inner, 2)));
        format!("{}[{bin} & 15]", array.name)
    };
    let conditional = make.choices.once_in(4);
    if conditional {
        let condition = make.expression(Wide::Bool, &inner, 2);
        draft.body.open(&format!("if {condition} {{"));
    }
    draft.body.line(&format!("{target} {operator} {value}"));
    if conditional {
        draft.body.close("}");
    }
    draft.body.close("}");
    if !draft.scope.arrays.contains(&array) {
        draft.scope.arrays.push(array);
    }
}

/// An inout array: its own element, or a part of it, changed; sometimes several times over.
fn change(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let at = make.choices.below(draft.inouts.len());
    let array = draft.inouts[at].clone();
    let repeated = make.choices.once_in(3);
    if repeated {
        let name = make.names.fresh("r");
        draft.body.open(&format!("for {name} in 0..3 {{"));
        draft.scope.values.push((name, Wide::I64));
    }
    let (indices, inner) = iterate(make, draft, &array.extents);
    let mut inner = inner.without_array(&array.name);
    let own = format!("{}[{}]", array.name, indices.join(", "));
    let (target, stored) = match array.element {
        Element::Scalar(stored) => (own.clone(), Some(stored)),
        Element::Struct(structure) => match make.choices.below(structure.parts().len() + 1) {
            0 => (own.clone(), None),
            part => {
                let (part, stored) = structure.parts()[part - 1];
                (format!("{own}{part}"), Some(stored))
            }
        },
    };
    match array.element {
        Element::Scalar(stored) => inner.values.push((own.clone(), stored.wide)),
        Element::Struct(structure) => inner.add_structure(&own, structure, false),
    }
    let assignment = match (stored, array.element) {
        (Some(stored), _) => {
            let value = make.expression(stored.wide, &inner, 3);
            let operators: &[&str] =
                if NUMBERS.contains(&stored.wide) { &["=", "+=", "max="] } else { &["=", "|="] };
            format!("{target} {} {value}", make.choices.one_of(operators))
        }
        (None, Element::Struct(structure)) => format!("{target} = {}", make.structure(structure, &inner, 3)),
        (None, Element::Scalar(_)) => return,
    };
    // A combining assignment binds no names: they are written out.
    draft.body.line(&format!("forall {} {{ {assignment} }}", ranges(&indices, &array.extents)));
    if repeated {
        draft.scope.values.pop();
        draft.body.close("}");
    }
}

/// `let t[i] = e` at kernel level, for later statements.
fn temporary(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let extents = shape(make, draft.scope.dims);
    let (indices, inner) = iterate(make, draft, &extents);
    let (name, stored) = (make.names.fresh("u"), make.choices.one_of(&STORED));
    let value = make.expression(stored.wide, &inner, 3);
    let stored_as = stored.name;
    draft.body.line(&format!("let {name}[{}]: {stored_as} = {value}", ranges(&indices, &extents)));
    draft.scope.arrays.push(ArrayName { name, element: Element::Scalar(stored), extents });
    elementwise(make, draft);
}

/// A result of structs.
fn structs(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let structure = make.choices.one_of(&[Structure::S, Structure::T]);
    let extents = shape(make, draft.scope.dims);
    let array = result_of(make, draft, Element::Struct(structure), extents.clone());
    let (indices, inner) = iterate(make, draft, &extents);
    let value = make.structure(structure, &inner, 3);
    draft.body.line(&format!("{}[{}] = {value}", array.name, indices.join(", ")));
    draft.scope.arrays.push(array);
}

/// `let s = e`: one value, for the statements that follow.
fn value(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let (name, stored) = (make.names.fresh("t"), make.choices.one_of(&STORED));
    let value = make.expression(stored.wide, &draft.scope.clone(), 3);
    draft.body.line(&format!("let {name}: {} = {value}", stored.name));
    draft.scope.values.push((name, stored.wide));
    elementwise(make, draft);
}

/// `if c { y[i] = e } else { y[i] = e }`
fn branch(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let stored = make.choices.one_of(&STORED);
    let extents = shape(make, draft.scope.dims);
    let array = result(make, draft, stored, extents.clone());
    let condition = make.expression(Wide::Bool, &draft.scope.clone(), 2);
    for (open, close) in [(format!("if {condition} {{"), "} else {"), (String::new(), "}")] {
        if open.is_empty() {
            draft.body.indent += 1;
        } else {
            draft.body.open(&open);
        }
        let (indices, inner) = iterate(make, draft, &extents);
        let value = make.expression(stored.wide, &inner, 3);
        draft.body.line(&format!("{}[{}] = {value}", array.name, indices.join(", ")));
        draft.body.close(close);
    }
    draft.scope.arrays.push(array);
}

/// An inout array, by way of a temporary that reads all of it; a few times over.
fn repeated(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let at = make.choices.below(draft.inouts.len());
    let array = draft.inouts[at].clone();
    let Element::Scalar(stored) = array.element else { return change(make, draft) };
    if array.extents.len() >= MOST_LOOPS {
        return change(make, draft);
    }
    let rounds = make.names.fresh("r");
    // Counted by the host, or by the device.
    let counted = make.choices.once_in(2);
    if counted {
        draft.body.open(&format!("for {rounds} in 0..3 {{"));
    } else {
        draft.body.line(&format!("var {rounds}: i64 = 0"));
        // At times a value that the device has computed ends it earlier.
        let decided = make.choices.once_in(2);
        let condition = if decided {
            format!(" && {}", make.expression(Wide::Bool, &draft.scope.clone(), 2))
        } else {
            String::new()
        };
        draft.body.open(&format!("while {rounds} < 3{condition} {{"));
    }
    draft.scope.values.push((rounds.clone(), Wide::I64));
    let name = make.names.fresh("u");
    let (indices, inner) = iterate(make, draft, &array.extents);
    let value = make.expression(stored.wide, &inner, 3);
    let written_out = ranges(&indices, &array.extents);
    draft.body.line(&format!("let {name}[{written_out}]: {} = {value}", stored.name));
    let (indices, mut inner) = iterate(make, draft, &array.extents);
    inner = inner.without_array(&array.name);
    inner.arrays.push(ArrayName { name, ..array.clone() });
    let value = make.expression(stored.wide, &inner, 2);
    draft.body.line(&format!("{}[{}] = {value}", array.name, indices.join(", ")));
    draft.scope.values.pop();
    if !counted {
        draft.body.line(&format!("{rounds} += 1"));
    }
    draft.body.close("}");
}

/// `g = e`, `g[i] = e` of a static.
fn set_static(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let at = make.choices.below(draft.statics.len());
    let array = draft.statics[at].clone();
    let Element::Scalar(stored) = array.element else { return };
    let (indices, inner) = iterate(make, draft, &array.extents);
    let value = make.expression(stored.wide, &inner.without_array(&array.name), 3);
    let target =
        if indices.is_empty() { array.name } else { format!("{}[{}]", array.name, indices.join(", ")) };
    draft.body.line(&format!("{target} = {value}"));
}

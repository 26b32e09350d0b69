//! A whole program: struct, constants and functions, signature, and statements at kernel level.

use crate::Program;
use crate::choices::Choices;
use crate::expressions::Expressions;
use crate::scope::{ArrayName, Element, FIELDS, FunctionName, IndexName, Names, Scope};
use crate::statements::Lines;
use crate::types::{DIMS, Extent, NUMBERS, STORED, Stored, Wide};

/// Sizes to try: around a warp, primes, one, none.
const SIZES: [i64; 10] = [3, 1, 2, 5, 8, 13, 31, 33, 32, 0];

/// What the program still needs said about it.
struct Draft {
    items: Lines,
    body: Lines,
    scope: Scope,
    results: Vec<String>,
    structure: bool,
}

/// The first list decides data, items and signature, each further one a statement (at least one).
pub fn generate(lists: &[Vec<u32>]) -> Program {
    let (head, statements) =
        lists.split_first().map_or((&[][..], &[][..]), |(head, rest)| (head.as_slice(), rest));
    let mut names = Names::default();
    let mut choices = Choices::new(head);
    let mut make = Expressions { choices: &mut choices, names: &mut names };
    // First what the data is made of, so that it stays the same while the program below shrinks.
    let seed = make.choices.seed();
    let dims = 1 + make.choices.below(3);
    let sizes = (0..dims).map(|dim| (DIMS[dim].to_string(), make.choices.one_of(&SIZES))).collect();
    let mut draft = Draft {
        items: Lines { text: String::new(), indent: 0 },
        body: Lines { text: String::new(), indent: 1 },
        scope: Scope { dims, ..Scope::default() },
        results: Vec::new(),
        structure: make.choices.once_in(3),
    };
    items(&mut make, &mut draft);
    let (parameters, inouts) = signature(&mut make, &mut draft);
    let simplest = [Vec::new()];
    for list in if statements.is_empty() { &simplest[..] } else { statements } {
        let mut choices = Choices::new(list);
        kernel_statement(&mut Expressions { choices: &mut choices, names: &mut names }, &mut draft, &inouts);
    }
    let results =
        if draft.results.is_empty() { String::new() } else { format!(" -> {}", draft.results.join(", ")) };
    let source = format!(
        "{}kernel random({}){results} {{\n{}}}\n",
        draft.items.text,
        parameters.join(", "),
        draft.body.text
    );
    Program { source, dims: sizes, seed }
}

/// The struct, and some constants and functions.
fn items(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    if draft.structure {
        let fields: Vec<String> =
            FIELDS.iter().map(|(name, stored)| format!("{name}: {}", stored.name)).collect();
        draft.items.line(&format!("struct S {{ {} }}\n", fields.join(", ")));
    }
    if make.choices.once_in(4) {
        draft.items.line("const TAPS: f32[3] = [0.25, 0.5, -1.5]\n");
        let element = Element::Scalar(Stored { name: "f32", wide: Wide::F32 });
        let taps = ArrayName { name: "TAPS".to_string(), element, extents: vec![Extent::Fixed(3)] };
        draft.scope.arrays.push(taps);
    }
    if make.choices.once_in(4) {
        draft.items.line("const LIMIT: i32 = 5\n");
        draft.scope.values.push(("LIMIT".to_string(), Wide::I32));
    }
    for _ in 0..make.choices.below(3) {
        let (name, result) = (make.names.fresh("f"), make.choices.one_of(&NUMBERS));
        let mut scope = Scope { functions: draft.scope.functions.clone(), loops: 2, ..Scope::default() };
        let mut parameters = Vec::new();
        for _ in 0..1 + make.choices.below(2) {
            let (name, ty) = (make.names.fresh("a"), make.choices.one_of(&NUMBERS));
            parameters.push((name.clone(), ty));
            scope.values.push((name, ty));
        }
        let body = make.expression(result, &scope, 3);
        let list: Vec<String> =
            parameters.iter().map(|(name, ty)| format!("{name}: {}", ty.name())).collect();
        draft.items.line(&format!("fn {name}({}) -> {} {{ {body} }}\n", list.join(", "), result.name()));
        let parameters = parameters.into_iter().map(|(_, ty)| ty).collect();
        draft.scope.functions.push(FunctionName { name, parameters, result });
    }
}

/// The parameters: one array that binds every dimension, more arrays, scalars, and arrays to change.
fn signature(make: &mut Expressions<'_, '_>, draft: &mut Draft) -> (Vec<String>, Vec<ArrayName>) {
    let mut parameters = Vec::new();
    let scalars = make.choices.below(3);
    for dim in 0..draft.scope.dims {
        let stored = make.choices.one_of(&STORED);
        input(make, draft, &mut parameters, Element::Scalar(stored), vec![Extent::Dim(dim)]);
    }
    for _ in 0..make.choices.below(3) {
        let stored = make.choices.one_of(&STORED);
        let extents = shape(make, draft.scope.dims);
        input(make, draft, &mut parameters, Element::Scalar(stored), extents);
    }
    if draft.structure {
        input(make, draft, &mut parameters, Element::Struct, vec![Extent::Dim(0)]);
    }
    for _ in 0..scalars {
        let (name, stored) = (make.names.fresh("s"), make.choices.one_of(&STORED));
        parameters.push(format!("{name}: {}", stored.name));
        draft.scope.values.push((name, stored.wide));
    }
    let mut inouts = Vec::new();
    for _ in 0..make.choices.below(2) {
        let (name, stored) = (make.names.fresh("z"), make.choices.one_of(&STORED));
        let extents = shape(make, draft.scope.dims);
        parameters.push(format!("{name}: inout {}", array_type(Element::Scalar(stored), &extents)));
        inouts.push(ArrayName { name, element: Element::Scalar(stored), extents });
    }
    (parameters, inouts)
}

fn shape(make: &mut Expressions<'_, '_>, dims: usize) -> Vec<Extent> {
    let rank = 1 + make.choices.below(2);
    (0..rank).map(|_| Extent::Dim(make.choices.below(dims))).collect()
}

fn array_type(element: Element, extents: &[Extent]) -> String {
    let name = match element {
        Element::Scalar(stored) => stored.name,
        Element::Struct => "S",
    };
    if extents.is_empty() {
        return name.to_string();
    }
    let extents: Vec<String> = extents.iter().map(|extent| extent.text()).collect();
    format!("{name}[{}]", extents.join(", "))
}

fn input(
    make: &mut Expressions<'_, '_>,
    draft: &mut Draft,
    parameters: &mut Vec<String>,
    element: Element,
    extents: Vec<Extent>,
) {
    let name = make.names.fresh("x");
    parameters.push(format!("{name}: {}", array_type(element, &extents)));
    draft.scope.arrays.push(ArrayName { name, element, extents });
}

fn kernel_statement(make: &mut Expressions<'_, '_>, draft: &mut Draft, inouts: &[ArrayName]) {
    match make.choices.below(8) {
        1 | 2 => forall(make, draft),
        3 => whole_reduction(make, draft),
        4 => combine(make, draft),
        5 if !inouts.is_empty() => change(make, draft, inouts),
        6 => temporary(make, draft),
        7 if draft.structure => structs(make, draft),
        _ => elementwise(make, draft),
    }
}

/// Fresh index names for a shape, in the scope of one iteration.
fn iterate(make: &mut Expressions<'_, '_>, scope: &Scope, extents: &[Extent]) -> (Vec<String>, Scope) {
    let mut inner = scope.clone();
    let mut indices = Vec::new();
    for extent in extents {
        let name = make.names.fresh("i");
        inner.indices.push(IndexName { name: name.clone(), extent: *extent });
        inner.loops += 1;
        indices.push(name);
    }
    (indices, inner)
}

/// Ranges written out: `i0 in n, i1 in m`.
fn ranges(indices: &[String], extents: &[Extent]) -> String {
    let each = indices.iter().zip(extents).map(|(index, extent)| format!("{index} in {}", extent.text()));
    each.collect::<Vec<String>>().join(", ")
}

fn result(
    make: &mut Expressions<'_, '_>,
    draft: &mut Draft,
    stored: Stored,
    extents: Vec<Extent>,
) -> ArrayName {
    let name = make.names.fresh("y");
    let array = ArrayName { name, element: Element::Scalar(stored), extents };
    draft.results.push(format!("{}: {}", array.name, array_type(array.element, &array.extents)));
    array
}

/// `y[i, j] = e`; sometimes transposed.
fn elementwise(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let stored = make.choices.one_of(&STORED);
    let extents = shape(make, draft.scope.dims);
    let array = result(make, draft, stored, extents.clone());
    let (indices, inner) = iterate(make, &draft.scope, &extents);
    let value = make.expression(stored.wide, &inner, 4);
    draft.body.line(&format!("{}[{}] = {value}", array.name, indices.join(", ")));
    draft.scope.arrays.push(array);
}

/// `forall i in n { statements; y[i] = e; … }`
fn forall(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let extents = shape(make, draft.scope.dims);
    let (indices, mut inner) = iterate(make, &draft.scope, &extents);
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
    for (name, wide) in inner.variables.clone().into_iter().take(3) {
        let stored = Stored { name: wide.name(), wide };
        let array = result(make, draft, stored, extents.clone());
        draft.body.line(&format!("{}[{}] = {name}", array.name, indices.join(", ")));
        written.push(array);
    }
    for local in inner.mutable_arrays.clone().into_iter().take(1) {
        let (Element::Scalar(of), [extent]) = (local.element, local.extents.as_slice()) else { continue };
        let operation = if of.wide == Wide::Bool { "any" } else { "max" };
        let array = result(make, draft, Stored { name: of.wide.name(), wide: of.wide }, extents.clone());
        let index = make.names.fresh("p");
        let value = format!("{operation}({index} in {}: {}[{index}])", extent.text(), local.name);
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

/// `forall i in n { h[e & 15] += v }`
fn combine(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let stored = make.choices.one_of(&STORED);
    let bins = if make.choices.once_in(3) { Vec::new() } else { vec![Extent::Fixed(16)] };
    let array = result(make, draft, stored, bins);
    let extents = shape(make, draft.scope.dims);
    let (indices, mut inner) = iterate(make, &draft.scope, &extents);
    draft.body.open(&format!("forall {} {{", ranges(&indices, &extents)));
    let count = make.choices.below(2);
    make.statements(&mut draft.body, &mut inner, count, 1);
    let value = make.expression(stored.wide, &inner, 3);
    let operators: &[&str] = match stored.wide {
        Wide::Bool => &["|=", "&=", "^="],
        wide if wide.is_float() => &["+=", "max=", "min="],
        _ => &["+=", "max=", "min=", "|=", "&=", "^="],
    };
    let operator = make.choices.one_of(operators);
    let target = if array.extents.is_empty() {
        array.name.clone()
    } else {
        let bin = make.names.fresh("b");
        draft.body.line(&format!("let {bin} = {}", make.expression(Wide::I64, &inner, 2)));
        format!("{}[{bin} & 15]", array.name)
    };
    draft.body.line(&format!("{target} {operator} {value}"));
    draft.body.close("}");
    draft.scope.arrays.push(array);
}

/// An inout array: its own element, changed; sometimes several times over.
fn change(make: &mut Expressions<'_, '_>, draft: &mut Draft, inouts: &[ArrayName]) {
    let at = make.choices.below(inouts.len());
    let array = inouts[at].clone();
    let Element::Scalar(stored) = array.element else { return };
    let repeated = make.choices.once_in(3);
    if repeated {
        let name = make.names.fresh("r");
        draft.body.open(&format!("for {name} in 0..3 {{"));
    }
    let (indices, mut inner) = iterate(make, &draft.scope, &array.extents);
    let own = format!("{}[{}]", array.name, indices.join(", "));
    inner.values.push((own.clone(), stored.wide));
    let value = make.expression(stored.wide, &inner, 3);
    let operators: &[&str] = if NUMBERS.contains(&stored.wide) { &["=", "+=", "max="] } else { &["=", "|="] };
    let operator = make.choices.one_of(operators);
    // A combining assignment binds no names: they are written out.
    draft.body.line(&format!("forall {} {{ {own} {operator} {value} }}", ranges(&indices, &array.extents)));
    if repeated {
        draft.body.close("}");
    }
}

/// `let t[i] = e` at kernel level, for later statements.
fn temporary(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let extents = shape(make, draft.scope.dims);
    let (indices, inner) = iterate(make, &draft.scope, &extents);
    let (name, stored) = (make.names.fresh("u"), make.choices.one_of(&STORED));
    let value = make.expression(stored.wide, &inner, 3);
    let stored_as = stored.name;
    draft.body.line(&format!("let {name}[{}]: {stored_as} = {value}", ranges(&indices, &extents)));
    draft.scope.arrays.push(ArrayName { name, element: Element::Scalar(stored), extents });
    elementwise(make, draft);
}

/// A result of structs.
fn structs(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let name = make.names.fresh("y");
    let extents = shape(make, draft.scope.dims);
    draft.results.push(format!("{name}: {}", array_type(Element::Struct, &extents)));
    let (indices, inner) = iterate(make, &draft.scope, &extents);
    let fields: Vec<String> = FIELDS
        .iter()
        .map(|(field, stored)| format!("{field}: {}", make.expression(stored.wide, &inner, 3)))
        .collect();
    draft.body.line(&format!("{name}[{}] = S {{ {} }}", indices.join(", "), fields.join(", ")));
    draft.scope.arrays.push(ArrayName { name, element: Element::Struct, extents });
}

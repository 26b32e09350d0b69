//! A whole program: struct, constants and functions, signature, and statements at kernel level.

use crate::Program;
use crate::choices::Choices;
use crate::expressions::Expressions;
use crate::kernel_level::kernel_statement;
use crate::own;
use crate::schedules;
use crate::scope::{ArrayName, Element, FunctionName, Names, Parameter, Scope};
use crate::statements::Lines;
use crate::structs::{DECLARATIONS, Structure};
use crate::types::{DIMS, Extent, NUMBERS, STORED, Stored, Wide};

/// Sizes to try: around a warp, primes, one, none.
const SIZES: [i64; 10] = [3, 1, 2, 5, 8, 13, 31, 33, 32, 0];

/// Of so many programs one has functions that read arrays, and as many bind the first dimension by twice its size. It
/// is the seed that says so.
const READS: u64 = 4;
const LINEAR: u64 = 8;

/// A program that is being written.
pub struct Draft {
    items: Lines,
    pub body: Lines,
    pub scope: Scope,
    pub results: Vec<String>,
    pub inouts: Vec<ArrayName>,
    pub statics: Vec<ArrayName>,
    pub structure: bool,
    /// The names of each parallel statement.
    pub parallel: Vec<Vec<String>>,
    /// Every array that a schedule may name, and whether it is only read.
    pub scheduled: Vec<(ArrayName, bool)>,
}

impl Draft {
    pub fn declare(&mut self, item: &str) {
        self.items.line(item);
    }
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
        inouts: Vec::new(),
        statics: Vec::new(),
        structure: make.choices.once_in(3),
        parallel: Vec::new(),
        scheduled: Vec::new(),
    };
    let schedule = make.choices.take(12);
    draft.scope.has_structs = draft.structure;
    items(&mut make, &mut draft, seed);
    own::declare(&mut draft, seed);
    let parameters = signature(&mut make, &mut draft, seed);
    let simplest = [Vec::new()];
    for list in if statements.is_empty() { &simplest[..] } else { statements } {
        let mut choices = Choices::new(list);
        kernel_statement(&mut Expressions { choices: &mut choices, names: &mut names }, &mut draft);
    }
    // One more statement of those numbers that the last one has from the middle on.
    let last = statements.last().map_or(&[][..], Vec::as_slice);
    let mut choices = Choices::new(&last[last.len() / 2..]);
    own::statement(&mut Expressions { choices: &mut choices, names: &mut names }, &mut draft);
    let results =
        if draft.results.is_empty() { String::new() } else { format!(" -> {}", draft.results.join(", ")) };
    let source = format!(
        "{}kernel random({}){results} {{\n{}}}\n{}",
        draft.items.text,
        parameters.join(", "),
        draft.body.text,
        schedules::schedule(&mut Choices::new(&schedule), &draft)
    );
    Program { source, dims: sizes, seed }
}

/// The struct, and some constants and functions.
fn items(make: &mut Expressions<'_, '_>, draft: &mut Draft, seed: u64) {
    if draft.structure {
        draft.items.line(DECLARATIONS);
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
    if make.choices.once_in(4) {
        statics(make, draft);
    }
    for _ in 0..make.choices.below(3) {
        let (name, result) = (make.names.fresh("f"), make.choices.one_of(&NUMBERS));
        let mut scope = Scope { functions: draft.scope.functions.clone(), loops: 2, ..Scope::default() };
        let (mut parameters, mut list) = (Vec::new(), Vec::new());
        for _ in 0..1 + make.choices.below(2) {
            let (name, ty) = (make.names.fresh("a"), make.choices.one_of(&NUMBERS));
            list.push(format!("{name}: {}", ty.name()));
            parameters.push(Parameter::Value(ty));
            scope.values.push((name, ty));
        }
        if seed % READS == 1 {
            let (name, stored, rank) =
                (make.names.fresh("b"), make.choices.one_of(&STORED), 1 + make.choices.below(2));
            let (element, extents) =
                (Element::Scalar(stored), (0..rank).map(Extent::Dim).collect::<Vec<_>>());
            list.push(format!("{name}: {}", array_type(element, &extents)));
            parameters.push(Parameter::Array(stored, rank));
            scope.dims = rank;
            scope.arrays.push(ArrayName { name, element, extents });
        }
        let body = make.expression(result, &scope, 3);
        draft.items.line(&format!("fn {name}({}) -> {} {{ {body} }}\n", list.join(", "), result.name()));
        draft.scope.functions.push(FunctionName { name, parameters, result });
    }
}

/// A static variable and a static array: with the statements that write them, and all others may read them.
fn statics(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    let stored = make.choices.one_of(&STORED);
    let start = match stored.wide {
        Wide::Bool => "true",
        wide if wide.is_float() => "1.5",
        _ => "3",
    };
    draft.items.line(&format!("static g0: {} = {start}\n", stored.name));
    let name = make.names.fresh("g");
    draft.statics.push(ArrayName { name, element: Element::Scalar(stored), extents: Vec::new() });
    let stored = make.choices.one_of(&STORED);
    draft.items.line(&format!("static g1: {}[16]\n", stored.name));
    let name = make.names.fresh("g");
    draft.statics.push(ArrayName {
        name,
        element: Element::Scalar(stored),
        extents: vec![Extent::Fixed(16)],
    });
    draft.scope.arrays.extend(draft.statics.clone());
}

/// The parameters: one array that binds every dimension, more arrays, scalars, and arrays to change.
fn signature(make: &mut Expressions<'_, '_>, draft: &mut Draft, seed: u64) -> Vec<String> {
    let mut parameters = Vec::new();
    let scalars = make.choices.below(3);
    for dim in 0..draft.scope.dims {
        let stored = make.choices.one_of(&STORED);
        // By an extent that is more than the dimension.
        let extent = if seed % LINEAR == dim as u64 + 1 { Extent::Twice(dim) } else { Extent::Dim(dim) };
        input(make, draft, &mut parameters, Element::Scalar(stored), vec![extent]);
    }
    for _ in 0..make.choices.below(3) {
        let stored = make.choices.one_of(&STORED);
        let extents = shape(make, draft.scope.dims);
        input(make, draft, &mut parameters, Element::Scalar(stored), extents);
    }
    if draft.structure {
        let structure = make.choices.one_of(&[Structure::S, Structure::T]);
        input(make, draft, &mut parameters, Element::Struct(structure), vec![Extent::Dim(0)]);
        if make.choices.once_in(3) {
            let (name, structure) =
                (make.names.fresh("s"), make.choices.one_of(&[Structure::S, Structure::T]));
            parameters.push(format!("{name}: {}", structure.name()));
            draft.scope.add_structure(&name, structure, false);
        }
    }
    for _ in 0..scalars {
        let (name, stored) = (make.names.fresh("s"), make.choices.one_of(&STORED));
        parameters.push(format!("{name}: {}", stored.name));
        draft.scope.values.push((name, stored.wide));
    }
    for _ in 0..make.choices.below(3) {
        let name = make.names.fresh("z");
        let element = if draft.structure && make.choices.once_in(3) {
            Element::Struct(make.choices.one_of(&[Structure::S, Structure::T]))
        } else {
            Element::Scalar(make.choices.one_of(&STORED))
        };
        let extents = shape(make, draft.scope.dims);
        parameters.push(format!("{name}: inout {}", array_type(element, &extents)));
        let array = ArrayName { name, element, extents };
        draft.scheduled.push((array.clone(), false));
        draft.scope.arrays.push(array.clone());
        draft.inouts.push(array);
    }
    parameters
}

pub fn shape(make: &mut Expressions<'_, '_>, dims: usize) -> Vec<Extent> {
    let rank = make.choices.one_of(&[1, 2, 1, 2, 3]);
    (0..rank).map(|_| Extent::Dim(make.choices.below(dims))).collect()
}

pub fn array_type(element: Element, extents: &[Extent]) -> String {
    let name = match element {
        Element::Scalar(stored) => stored.name,
        Element::Struct(structure) => structure.name(),
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
    let array = ArrayName { name, element, extents };
    draft.scheduled.push((array.clone(), true));
    draft.scope.arrays.push(array);
}

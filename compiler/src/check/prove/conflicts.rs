//! What to say of a race: which two places, in iterations of which name, and what to write instead.

use super::races::{NestReference, Record, Touching};
use super::vocabulary::{Function, Key, Operation};
use super::walker::Walker;
use crate::check::typed::ArrayRole;
use crate::diagnostic::{Diagnostic, codes};

/// Reports that two accesses, of which one at least writes, may meet in different iterations of `level`.
pub fn report(walker: &mut Walker, earlier: &Record, later: &Record, same: bool, level: &NestReference) {
    let diagnostic = if same {
        not_injective(walker, earlier, level)
    } else {
        match (earlier.access.touching, later.access.touching) {
            (Touching::Read, Touching::Write) => read_and_write(walker, earlier, later, level),
            (Touching::Write, Touching::Read) => read_and_write(walker, later, earlier, level),
            (Touching::Read, Touching::Combine(..)) => read_and_combine(walker, earlier, later, level),
            (Touching::Combine(..), Touching::Read) => read_and_combine(walker, later, earlier, level),
            (Touching::Write, Touching::Combine(..)) => write_and_combine(walker, earlier, later, level),
            (Touching::Combine(..), Touching::Write) => write_and_combine(walker, later, earlier, level),
            (Touching::Combine(..), Touching::Combine(..)) => two_operators(walker, earlier, later, level),
            _ => two_writes(walker, earlier, later, level),
        }
    };
    walker.diagnostics.push(diagnostic);
}

fn array_name(walker: &Walker, record: &Record) -> String {
    walker.kernel.arrays[record.access.array].name.clone()
}

/// "iterations of `i`"
fn iterations(walker: &Walker, level: &NestReference) -> String {
    match level.index {
        Some(index) => format!("iterations of `{}`", walker.kernel.indices[index].name),
        None => String::from("iterations"),
    }
}

fn not_injective(walker: &Walker, record: &Record, level: &NestReference) -> Diagnostic {
    let array = array_name(walker, record);
    let iterations = iterations(walker, level);
    let span = record.access.span;
    let name = level.index.map_or(String::from("i"), |index| walker.kernel.indices[index].name.clone());
    if record.access.place.is_empty() {
        return Diagnostic::error(
            codes::E0413,
            span,
            format!("every iteration writes the one value of `{array}`"),
            format!("different {iterations} write it at the same time"),
        )
        .help(format!(
            "combine instead, `{array} += …` or `{array} max= …`; or let one iteration write, `if {name} == 0 {{ {array} = … }}`"
        ));
    }
    let atoms = &walker.facts.atoms;
    let from_data = record.access.place.iter().any(|poly| {
        atoms.any(poly, &mut |_, key| {
            matches!(key, Key::Apply(Function::Operation(Operation::Load(_)) | Function::Unknown(_), _))
        })
    });
    if from_data {
        return Diagnostic::error(
            codes::E0404,
            span,
            format!("`{array}` is written at subscripts that come from data: two iterations may write the same element"),
            format!("nothing says that different {iterations} write different elements"),
        )
        .help(distinct_or_combined(walker, record, level, &array));
    }
    let uses_name = level.atom.is_some_and(|atom| {
        record.access.place.iter().any(|poly| atoms.any(poly, &mut |one, _| one == atom))
    });
    let diagnostic = Diagnostic::error(
        codes::E0403,
        span,
        format!("`=` may write an element of `{array}` more than once"),
        format!("different {iterations} may write the same element"),
    );
    let diagnostic = match level.index {
        Some(index) => {
            diagnostic.label(walker.kernel.indices[index].span, format!("`{name}` runs in parallel"))
        }
        None => diagnostic,
    };
    if uses_name {
        diagnostic.help(format!(
            "combine with `+=`, or use subscripts that are different for different {iterations}: `{name}`, `2*{name} + 1`, `n - 1 - {name}`"
        ))
    } else {
        diagnostic.help(format!(
            "subscript by `{name}` too, reduce over it (`sum({name}: …)`), or combine: `{array}[…] += …`"
        ))
    }
}

/// Where an element of an input of integers subscripts bare, a fact would do: were its values all different, so would the
/// subscripts be.
fn distinct_or_combined(walker: &Walker, record: &Record, level: &NestReference, array: &str) -> String {
    let (kernel, atoms) = (walker.kernel, &walker.facts.atoms);
    let subscripting = record.access.place.iter().find_map(|place| {
        let Key::Apply(Function::Operation(Operation::Load(given)), at) = &atoms.get(place.as_atom()?).key
        else {
            return None;
        };
        let depends = at.iter().any(|poly| atoms.any(poly, &mut |one, _| Some(one) == level.atom));
        (depends && kernel.arrays[*given].role == ArrayRole::Input).then_some(*given)
    });
    let Some(given) = subscripting else {
        return format!(
            "combine instead: `{array}[…] += …`, `max=` or `min=` may meet on one element in any order; or, if the places \
             are all different, read them from an array `at` of the kernel, and say `where injective(at)`"
        );
    };
    let name = &kernel.arrays[given].name;
    match kernel.injections.iter().find(|known| known.array == given) {
        None => format!(
            "say that no two elements of `{name}` are equal, `where injective({name})`; or combine: `{array}[…] += …`, \
             `max=` or `min=` may meet on one element"
        ),
        Some(fact) => format!(
            "`{}` does not say it: give each iteration a position of `{name}` of its own, and the fact all values that \
             subscript `{array}`; or combine, `{array}[…] += …`",
            fact.text
        ),
    }
}

fn read_and_write(walker: &Walker, read: &Record, write: &Record, level: &NestReference) -> Diagnostic {
    let array = array_name(walker, read);
    let iterations = iterations(walker, level);
    Diagnostic::error(
        codes::E0405,
        read.access.span,
        format!("an iteration reads an element of `{array}` that another one may write"),
        "read here",
    )
    .label(write.access.span, format!("written here, by other {iterations}"))
    .help(format!(
        "parallel iterations have no order: write to another array, or read from a copy made before, `let old[i] = {array}[i]`"
    ))
}

fn two_writes(walker: &Walker, first: &Record, second: &Record, level: &NestReference) -> Diagnostic {
    let array = array_name(walker, first);
    let iterations = iterations(walker, level);
    Diagnostic::error(
        codes::E0406,
        second.access.span,
        format!("two stores may write the same element of `{array}` in different iterations"),
        "this one",
    )
    .label(first.access.span, format!("and this one, in other {iterations}"))
    .help("move one of them to a statement of its own after the `forall`, or make the subscripts disjoint")
}

fn read_and_combine(walker: &Walker, read: &Record, combine: &Record, level: &NestReference) -> Diagnostic {
    let array = array_name(walker, read);
    let iterations = iterations(walker, level);
    Diagnostic::error(
        codes::E0407,
        read.access.span,
        format!("an iteration reads an element of `{array}` into which others combine"),
        "read here, at no certain time",
    )
    .label(combine.access.span, format!("combined into here, by other {iterations}"))
    .help(format!("read `{array}` in a statement of its own, after the `forall` that combines into it"))
}

fn write_and_combine(walker: &Walker, write: &Record, combine: &Record, level: &NestReference) -> Diagnostic {
    let array = array_name(walker, write);
    let iterations = iterations(walker, level);
    Diagnostic::error(
        codes::E0408,
        write.access.span,
        format!("an iteration writes an element of `{array}` into which others combine"),
        "written here",
    )
    .label(combine.access.span, format!("combined into here, by other {iterations}"))
    .help(format!("write `{array}` in a statement of its own, before the `forall` that combines into it"))
}

fn two_operators(walker: &Walker, first: &Record, second: &Record, level: &NestReference) -> Diagnostic {
    let array = array_name(walker, first);
    let iterations = iterations(walker, level);
    Diagnostic::error(
        codes::E0409,
        second.access.span,
        format!("`{array}` is combined by two operators in no certain order"),
        "one operator here",
    )
    .label(first.access.span, format!("another one here, in other {iterations}"))
    .help("use one operator in a `forall`; give the other one a statement of its own")
}

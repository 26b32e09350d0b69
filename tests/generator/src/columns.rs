//! Loops whose iterations walk one axis of their arrays several times, along another axis than that of neighbours in memory:
//! reductions of all kinds over it, what is made of their results, arrays of the iteration's own, arrays in place, guards,
//! branches, checks, other ranges, and extents around those where tiles and their classes end.

use crate::Program;
use crate::choices::Choices;

const TYPES: [&str; 8] = ["f32", "i32", "bf16", "f64", "u8", "i64", "f16", "u32"];
/// Extents of the walked axis.
const WALKED: [i64; 14] = [8, 5, 9, 16, 1, 17, 33, 64, 65, 2, 40, 130, 100, 300];
/// Extents of the axis of neighbours: with lanes for all of them, mostly.
const ALONG: [i64; 10] = [32, 64, 40, 33, 36, 128, 5, 72, 48, 257];
/// Elements of the largest array.
const MOST: i64 = 12_000;

/// The program that a list of choices stands for.
pub fn generate(choices: &[u32]) -> Program {
    let mut choices = Choices::new(choices);
    let seed = choices.seed();
    let is_flat = choices.below(4) == 3;
    let (walked, along) = (choices.one_of(&WALKED), choices.one_of(&ALONG));
    let outer = if is_flat { 1 } else { choices.one_of(&[2, 1, 3]) }.min(1 + MOST / (walked * along));
    let (scalar, wide) = (choices.one_of(&TYPES), choices.one_of(&["f32", "f64", "i64", "f32"]));
    let is_float = wide.starts_with('f');
    let half = if is_float { format!("0.5{wide}") } else { format!("2{wide}") };
    let place = if is_flat { "k, i" } else { "s, k, i" };
    let column = if is_flat { "i" } else { "s, i" };
    let element = |array: &str| format!("({array}[{place}] as {wide})");
    let term = |choices: &mut Choices| match choices.below(9) {
        0 | 1 => element("x"),
        2 => element("z"),
        3 => format!("{} * (v[k] as {wide})", element("x")),
        4 => format!("({} + (v[(q[k] as i64) % c] as {wide}))", element("x")),
        5 | 6 => element("x").replace('k', "c - 1 - k"),
        7 => format!("((x[{}] else (2 as {scalar})) as {wide})", place.replace('k', "k + 1")),
        _ => format!("(if k % 3 == 1 {{ {} }} else {{ {half} }})", element("x")),
    };
    let reduction = |choices: &mut Choices, term: String| {
        let range = choices.one_of(&["k in 0..c", "k in 0..c", "k in 0..c", "k in 1..c", "k in 0..c - 1"]);
        match choices.below(6) {
            0 | 1 => format!("sum({range}: {term})"),
            2 => format!("max({range}: {term})"),
            3 => format!("min({range}: {term})"),
            4 => format!("(argmax({range}: {term}) as {wide})"),
            _ => format!("(count({range}: {term} > {half}) as {wide})"),
        }
    };
    let first_term = term(&mut choices);
    let first = reduction(&mut choices, first_term);
    let has_own = choices.below(2) == 1;
    let own =
        if has_own { format!("let e[k in c] = {} - u\n        ", term(&mut choices)) } else { String::new() };
    let second_term = match (has_own, choices.below(3)) {
        (true, _) => format!("(e[k] as {wide})"),
        (false, 0) => term(&mut choices),
        (false, _) => format!("({} - u)", term(&mut choices)),
    };
    let second = reduction(&mut choices, second_term.clone());
    let value = match choices.below(3) {
        0 => format!("{second_term} + w"),
        1 => format!("max({second_term}, u) - w"),
        _ => format!("({} - w) * {half}", element("x")),
    };
    let store = match choices.below(6) {
        0 | 1 => format!("y[{place}] = ({value}) as {scalar}"),
        2 | 3 => format!("z[{place}] = ({value}) as {scalar}"),
        4 => format!("forall k {{ if v[k] as {wide} > {half} {{ y[{place}] = ({value}) as {scalar} }} }}"),
        _ => format!("m[{column}] = u + w"),
    };
    let again = format!("\n        m[COLUMN] = {}", reduction(&mut choices, element("z")));
    let also = choices.one_of(&["", &again, "\n        m[COLUMN] = w - u", &again]).replace("COLUMN", column);
    let also = if store.starts_with('m') { String::new() } else { also };
    let (shape, columns) = if is_flat { ("c, p", "p") } else { ("b, c, p", "b, p") };
    let axes = if is_flat { "i in p" } else { "s in b, i in p" };
    let source = format!(
        "kernel random(x: {scalar}[{shape}], v: {scalar}[c], q: u8[c], y: inout {scalar}[{shape}], z: inout {scalar}[{shape}], \
         m: inout {wide}[{columns}]) where c >= 1 {{\n    forall {axes} {{\n        let u = {first}\n        {own}let w = {second}\n        \
         {store}{also}\n    }}\n}}\n"
    );
    let sizes = [("b", outer), ("c", walked), ("p", along)];
    let sizes = sizes.iter().skip(usize::from(is_flat));
    let dims = sizes.map(|(name, extent)| (name.to_string(), *extent)).collect();
    Program { source, dims, seed }
}

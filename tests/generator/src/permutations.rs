//! Element-wise kernels whose arrays lie along different axes: two to four axes in two orders, of all types, with guards,
//! branches, checks, several inputs and results, fields of structs, arrays in place, axes of a few elements and of more than a
//! tile has.

use crate::Program;
use crate::choices::Choices;

const TYPES: [&str; 9] = ["f32", "i32", "bf16", "f64", "u8", "i64", "f16", "i16", "u32"];
/// Extents: around those where tiles, vectors and warps end.
const EXTENTS: [i64; 16] = [4, 8, 3, 5, 16, 1, 2, 33, 28, 64, 7, 17, 32, 65, 12, 31];
/// Elements of the largest array.
const MOST: i64 = 6000;

/// The program that a list of choices stands for.
pub fn generate(choices: &[u32]) -> Program {
    let mut choices = Choices::new(choices);
    let seed = choices.seed();
    let count = choices.one_of(&[2, 3, 2, 3, 4]);
    let sizes = &["n0", "n1", "n2", "n3"][..count];
    let mut extents: Vec<i64> = sizes.iter().map(|_| choices.one_of(&EXTENTS)).collect();
    while extents.iter().product::<i64>() > MOST {
        extents.iter_mut().for_each(|extent| *extent = (*extent * 3 / 4).max(1));
    }
    let axes = &["i0", "i1", "i2", "i3"][..count];
    let mut order: Vec<usize> = (0..count).collect();
    // Any order; of no choices the reverse.
    for at in 0..count {
        let other = count - 1 - choices.below(count - at);
        order.swap(at, other);
    }
    let there = |names: &[&str]| order.iter().map(|at| names[*at]).collect::<Vec<_>>().join(", ");
    let (scalar, other) = (choices.one_of(&TYPES), choices.one_of(&TYPES));
    let wide = choices.one_of(&["f32", "f64", "i64", "f32"]);
    let zero = if wide.starts_with('f') { "0.5" } else { "2" };
    let here = axes.join(", ");
    let (first, last) = (axes[0], axes[count - 1]);
    let load = choices.one_of(&["x[HERE]", "x[HERE]", "x[HERE]", "p[HERE].a", "(x[NEAR] else (ZERO as T))"]);
    let near = here.replace(last, &format!("{last} {}", choices.one_of(&["- 1", "+ 2"])));
    let load = load.replace("HERE", &here).replace("NEAR", &near).replace("ZERO", &format!("{zero}{wide}"));
    let load = format!("({} as {wide})", load.replace('T', scalar));
    let term = choices.one_of(&["v[LAST]", "w[THERE]", "(FIRST * 3 + LAST)", "v[(q[LAST] as i64) % SIZE]"]);
    let term = term
        .replace("LAST", last)
        .replace("SIZE", sizes[count - 1])
        .replace("FIRST", first)
        .replace("THERE", &there(axes));
    let term = format!("({term} as {wide})");
    let value = match choices.below(4) {
        0 => load,
        1 => format!("{load} + {term}"),
        2 => format!("max({load}, {term})"),
        _ => format!("(if {first} + 1 < {} {{ {load} }} else {{ {term} }})", sizes[0]),
    };
    let to = there(axes);
    let body = match choices.below(6) {
        0..=2 => format!("y[{to}] = ({value}) as {other}"),
        3 => format!("if {term} > {zero}{wide} {{ y[{to}] = ({value}) as {other} }}"),
        4 => format!("y[{to}] = ({value} + y[{to}] as {wide}) as {other}"),
        _ => {
            format!(
                "let e = {value}\n        y[{to}] = e as {other}\n        z[{here}] = (e + {zero}{wide}) as {scalar}"
            )
        }
    };
    let (shape, over) = (sizes.join(", "), there(sizes));
    let loops: Vec<String> = axes.iter().zip(sizes).map(|(axis, size)| format!("{axis} in {size}")).collect();
    let source = format!(
        "struct P {{ a: {scalar}, b: {other} }}\n\nkernel random(x: {scalar}[{shape}], p: P[{shape}], v: {other}[{}], w: {scalar}[{over}], \
         q: u8[{}], y: inout {other}[{over}], z: inout {scalar}[{shape}]) {{\n    forall {} {{\n        {body}\n    }}\n}}\n",
        sizes[count - 1],
        sizes[count - 1],
        loops.join(", "),
    );
    let dims = sizes.iter().zip(&extents).map(|(name, extent)| (name.to_string(), *extent)).collect();
    Program { source, dims, seed }
}

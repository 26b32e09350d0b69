//! Contractions of two arrays whose axes of rows, columns, steps and batches stand in any order: of one to three axes a class, with
//! what is added or scaled behind the sum, results in place, several sums, and an operand that is read elsewhere, too.

use crate::Program;
use crate::choices::Choices;

/// The program that a list of choices stands for.
pub fn generate(choices: &[u32]) -> Program {
    let mut choices = Choices::new(choices);
    let seed = choices.seed();
    let scalar = choices.one_of(&["f32", "i32", "f32", "f64", "i64"]);
    let names = |letter: &str, count: usize| -> Vec<String> {
        (0..count).map(|number| format!("{letter}{number}")).collect()
    };
    let rows = names("r", choices.one_of(&[2, 1, 2, 3]));
    let columns = names("c", choices.one_of(&[1, 2, 1, 2]));
    let steps = names("k", choices.one_of(&[1, 2, 2, 3]));
    let batch = names("b", choices.one_of(&[0, 0, 0, 1, 2]));
    let mut in_any_order = |classes: &[&Vec<String>]| -> Vec<String> {
        let mut all: Vec<String> = classes.iter().flat_map(|class| class.iter().cloned()).collect();
        for at in 0..all.len() {
            let other = at + choices.below(all.len() - at);
            all.swap(at, other);
        }
        all
    };
    let x = in_any_order(&[&batch, &rows, &steps]);
    let y = in_any_order(&[&batch, &columns, &steps]);
    let z = in_any_order(&[&batch, &rows, &columns]);
    let reduced = in_any_order(&[&steps]).join(", ");
    // Axes are called as what they are; sizes have an `n` in front.
    let shape = |axes: &[String]| axes.iter().map(|axis| format!("n{axis}")).collect::<Vec<_>>().join(", ");
    let at = |axes: &[String]| axes.join(", ");
    let (x_at, y_at, z_at) = (at(&x), at(&y), at(&z));
    let term = match choices.below(5) {
        1 => format!("x[{x_at}] * y[{y_at}] - y[{y_at}]"),
        2 => format!("y[{y_at}] * x[{x_at}]"),
        3 => format!("p[{x_at}].u * y[{y_at}] - p[{x_at}].v * y[{y_at}]"),
        _ => format!("x[{x_at}] * y[{y_at}]"),
    };
    let combine = choices.one_of(&["sum", "sum", "sum", "max"]);
    let sum = format!("{combine}({reduced}: {term})");
    let first = &rows[0];
    let value = match choices.below(7) {
        1 => format!("{sum} + w[{first}]"),
        2 => format!("{sum} + z[{z_at}]"),
        3 => format!("{sum} * v[{z_at}]"),
        4 => format!("{sum} + {sum}"),
        5 => format!("(if {first} % 2 == 1 {{ {sum} }} else {{ z[{z_at}] }})"),
        _ => sum,
    };
    // An operand that another statement reads.
    let also = match choices.below(4) {
        1 => format!("\n    o[{x_at}] = x[{x_at}] + x[{x_at}]"),
        _ => String::new(),
    };
    let source = format!(
        "struct P {{ u: {scalar}, v: {scalar} }}\n\nkernel random(x: {scalar}[{0}], y: {scalar}[{1}], p: P[{0}], v: {scalar}[{2}], \
         w: {scalar}[n{first}], z: inout {scalar}[{2}], o: inout {scalar}[{0}]) {{\n    z[{z_at}] = {value}{also}\n}}\n",
        shape(&x),
        shape(&y),
        shape(&z),
    );
    let axes = [batch, rows, columns, steps].concat();
    let sizes: Vec<i64> = axes.iter().map(|_| choices.one_of(&[2, 3, 1, 2, 3, 4])).collect();
    let dims = axes.iter().zip(sizes).map(|(axis, size)| (format!("n{axis}"), size)).collect();
    Program { source, dims, seed }
}

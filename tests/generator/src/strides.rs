//! Sums in which an index decides by its remainder which terms count, as transposed convolutions with strides do: of one and two
//! axes, with padding, dilations that share factors with the stride and that do not, ranges that begin anywhere, results that are
//! no multiple of the stride, remainders by `%` and by `&`, and quotients that leave something over.

use crate::Program;
use crate::choices::Choices;

/// The program that a list of choices stands for.
pub fn generate(choices: &[u32]) -> Program {
    let mut choices = Choices::new(choices);
    let seed = choices.seed();
    let axes = 1 + usize::from(choices.below(3) == 2);
    let scalar = choices.one_of(&["f32", "i32", "f32", "f64"]);
    let zero = if scalar == "i32" { "0" } else { "0.0" };
    let names = ["i", "j"];
    let lengths = [0, 1].map(|_| choices.one_of(&[3, 4, 1, 2, 5]));
    // A window of both axes may be one loop.
    let is_one = axes == 2 && choices.below(3) == 1;
    let terms = match is_one {
        true => [format!("t / {}", lengths[1]), format!("t % {}", lengths[1])],
        false => ["p".to_string(), "q".to_string()],
    };
    let (mut ranges, mut sums, mut masks) = (Vec::new(), Vec::new(), Vec::new());
    let (mut sources, mut taps, mut extents, mut places) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for at in 0..axes {
        let (name, term, length) = (names[at], &terms[at], lengths[at]);
        let stride = choices.one_of(&[2, 3, 2, 4, 5]);
        let dilation = choices.one_of(&[1, 1, 2, 3, 4]);
        let padding = choices.one_of(&[1, 0, 2, 3, 7]);
        let more = choices.one_of(&["", " + 1", "", " - 1"]);
        let low = if is_one { 0 } else { choices.one_of(&[0, 0, 0, 1, 2]).min(length - 1) };
        let first = choices.one_of(&[0, 0, 0, 1]);
        let sum = format!("{name} + {padding} - {dilation} * ({term})");
        let mask = match choices.below(5) {
            0 if stride == 2 || stride == 4 => format!("({sum}) & {} == 0", stride - 1),
            1 if stride == 2 || stride == 4 => format!("({sum}) & {} == 1", stride - 1),
            2 => format!("({sum} + {stride} * ({term})) % {stride} == 0"),
            _ => format!("({sum}) % {stride} == 0"),
        };
        masks.push(mask);
        ranges.push(format!("{name} in {first}..{stride} * n{more}"));
        extents.push(format!("{stride} * n{more}"));
        places.push(name.to_string());
        sums.push(format!("{term} in {low}..{length}"));
        taps.push((term.to_string(), length));
        sources.push(match choices.below(4) {
            0 => format!("{name} / {stride} - ({term})"),
            1 => format!("({sum}) / {stride} + {name} % {stride}"),
            _ => format!("({sum}) / {stride}"),
        });
    }
    if is_one {
        sums = vec![format!("t in {}", lengths[0] * lengths[1])];
    }
    let extents_of_taps = taps.iter().map(|(_, length)| length.to_string()).collect::<Vec<_>>().join(", ");
    let tap = taps.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let (source, place, extents) = (sources.join(", "), places.join(", "), extents.join(", "));
    let shape = vec!["n"; axes].join(", ");
    let product = match choices.below(4) {
        0 => format!("(x[k, {source}] else {zero})"),
        1 => format!("f[k, {tap}] * (x[k, {source}] else {zero}) - f[0, {tap}]"),
        _ => format!("f[k, {tap}] * (x[k, {source}] else {zero})"),
    };
    let term = match choices.below(3) {
        0 if axes == 2 => {
            format!(
                "if {} {{ if {} {{ {product} }} else {{ {zero} }} }} else {{ {zero} }}",
                masks[0], masks[1]
            )
        }
        _ => format!("if {} {{ {product} }} else {{ {zero} }}", masks.join(" && ")),
    };
    let sum = format!("sum(k in c, {}: {term})", sums.join(", "));
    let value = match choices.below(4) {
        0 => format!("{sum} + {sum}"),
        1 => format!("max({sum}, {zero})"),
        2 => format!("if i % 2 == 1 {{ {sum} }} else {{ {zero} }}"),
        _ => sum,
    };
    let source = format!(
        "kernel random(x: {scalar}[c, {shape}], f: {scalar}[c, {extents_of_taps}]) -> y: {scalar}[{extents}] where c >= 1, n >= 1 {{\n    \
         y[{place}] = {zero}\n    forall {} {{ y[{place}] = {value} }}\n}}\n",
        ranges.join(", ")
    );
    let (n, c) = (choices.one_of(&[3, 1, 2, 5, 8]), choices.one_of(&[1, 2, 3]));
    Program { source, dims: vec![("c".to_string(), c), ("n".to_string(), n)], seed }
}

//! Kernels of the forms that the compiler has launches of its own for, at sizes that take them: products, transposes,
//! rows that threads share, sums along columns and over all, stencils, histograms, fields of structs.

use crate::Program;
use crate::choices::Choices;

const FLOATS: [&str; 4] = ["f32", "bf16", "f16", "f64"];
const ALL: [&str; 10] = ["f32", "f32", "bf16", "f16", "f64", "i32", "u32", "i64", "u8", "i16"];
/// Sizes around which tiles, warps and vectors end.
const EDGES: [i64; 12] = [16, 32, 64, 128, 31, 33, 65, 127, 129, 255, 256, 257];
/// Lengths of rows around which the threads that share one change.
const ROWS: [i64; 12] = [32, 33, 512, 513, 1000, 1001, 1024, 2048, 4096, 4097, 8192, 9001];
/// Multiplications of the largest product.
const MOST_STEPS: i64 = 400_000;

fn is_float(scalar: &str) -> bool {
    FLOATS.contains(&scalar)
}

struct Pattern<'a> {
    choices: Choices<'a>,
    dims: Vec<(String, i64)>,
}

impl Pattern<'_> {
    /// A dimension of at most `most`, often beside an edge.
    fn dim(&mut self, name: &str, most: i64) {
        let size = self.any_or(&EDGES, most).min(most);
        self.size(name, size);
    }

    /// A size of at most `most`, or one of the given ones.
    fn any_or(&mut self, edges: &[i64], most: i64) -> i64 {
        let any = 1 + self.choices.below(most as usize) as i64;
        let edge = self.choices.one_of(edges);
        if self.choices.once_in(2) { any } else { edge }
    }

    fn size(&mut self, name: &str, size: i64) {
        self.dims.push((name.to_string(), size));
    }

    /// Three quarters of each size until the whole takes no more than `most` steps.
    fn at_most(&mut self, most: i64) {
        while self.dims.iter().map(|(_, size)| *size).product::<i64>() > most {
            self.dims.iter_mut().for_each(|(_, size)| *size = (*size * 3 / 4).max(1));
        }
    }

    /// A reduction of such scalars, and a type that holds what comes of it.
    fn fold(&mut self, scalar: &str) -> (&'static str, &'static str) {
        let fold = self.choices.one_of(&["sum", "max", "min", "argmax", "argmin"]);
        (fold, if fold.starts_with("arg") || !is_float(scalar) { "i64" } else { "f64" })
    }

    fn product(&mut self) -> String {
        let scalar = self.choices.one_of(&ALL);
        // Floats that are computed as f32 mix.
        let mixes = is_float(scalar) && scalar != "f64";
        let other = if mixes { self.choices.one_of(&[scalar, "f32", "bf16"]) } else { scalar };
        for (name, most) in [("m", 260), ("n", 260), ("k", 200)] {
            self.dim(name, most);
        }
        let batched = self.choices.once_in(5);
        if batched {
            self.size("g", 3);
        }
        self.at_most(MOST_STEPS);
        let (front, place) = if batched { ("g, ", "h, ") } else { ("", "") };
        let (a_shape, a) = self.choices.one_of(&[("m, k", "i, p"), ("k, m", "p, i")]);
        let (b_shape, b) = self.choices.one_of(&[("k, n", "p, j"), ("n, k", "j, p")]);
        let (a, b) = (format!("a[{place}{a}]"), format!("b[{place}{b}]"));
        let (fold, guard) = self.choices.one_of(&[
            ("sum", ""),
            ("sum", ""),
            ("max", " where k >= 1"),
            ("min", " where k >= 1"),
        ]);
        let term = match (fold, self.choices.below(5)) {
            ("sum", 1) => format!("s[p] * {a} * {b}"),
            ("sum", 2) => format!("({a} - {b}) * ({a} - {b})"),
            ("sum", 3) => format!("max({a}, {b}) as {}", if is_float(scalar) { "f32" } else { "i64" }),
            ("sum", _) => format!("{a} * {b}"),
            _ => format!("{a} + {b}"),
        };
        let value = format!("{fold}(p: {term})");
        let result = if is_float(scalar) { self.choices.one_of(&["f32", "f64", "bf16"]) } else { "i64" };
        let value = match self.choices.below(3) {
            1 => format!("({value}) as {result} + bias[j] as {result}"),
            2 => format!("max(({value}) as {result}, bias[j] as {result})"),
            _ => value,
        };
        let (c_shape, c) = self.choices.one_of(&[("m, n", "i, j"), ("n, m", "j, i")]);
        format!(
            "kernel random(a: {scalar}[{front}{a_shape}], b: {other}[{front}{b_shape}], s: {scalar}[k], bias: {scalar}[n]) \
             -> c: {result}[{front}{c_shape}]{guard} {{\n    c[{place}{c}] = ({value}) as {result}\n}}\n"
        )
    }

    fn transpose(&mut self) -> String {
        let scalar = self.choices.one_of(&ALL);
        let (from, at, to, there) = self.choices.one_of(&[
            ("m, n", "i, j", "n, m", "j, i"),
            ("m, n, q", "i, j, l", "q, n, m", "l, j, i"),
            ("m, n, q", "i, j, l", "n, m, q", "j, i, l"),
            ("m, n, q", "i, j, l", "m, q, n", "i, l, j"),
            ("m, n, q", "i, j, l", "q, m, n", "l, i, j"),
        ]);
        let most = if from.len() > 4 { 70 } else { 300 };
        for name in from.split(", ") {
            self.dim(name, most);
        }
        self.at_most(MOST_STEPS);
        let value = self.choices.one_of(&["a[AT]", "a[AT] + a[AT]", "a[AT] + w[i]"]).replace("AT", at);
        format!(
            "kernel random(a: {scalar}[{from}], w: {scalar}[m]) -> b: {scalar}[{to}] {{\n    b[{there}] = ({value}) as {scalar}\n}}\n"
        )
    }

    fn rows(&mut self) -> String {
        let scalar = self.choices.one_of(&FLOATS);
        let cols = self.any_or(&ROWS, 5000);
        self.size("cols", cols);
        let most = (MOST_STEPS / 4 / cols).clamp(1, 60);
        self.dim("rows", most);
        let first = self.choices.one_of(&["max", "sum", "min"]);
        let gain = self.choices.one_of(&["", " * g[c] as f32"]);
        let last = self.choices.one_of(&["", " * g[c] as f32"]);
        let value = self.choices.one_of(&["exp(x[r, c] as f32 - q)", "x[r, c] as f32 - q"]);
        // Values of an array of the row's own are kept or worked out again.
        let (own, used) = self.choices.one_of(&[("let e[c] = VALUE\n        ", "e[c]"), ("", "(VALUE)")]);
        let (own, used) = (own.replace("VALUE", value), used.replace("VALUE", value));
        format!(
            "kernel random(x: {scalar}[rows, cols], g: {scalar}[cols]) -> y: {scalar}[rows, cols], z: f32[rows] where cols >= 1 {{\n    \
             forall r in rows {{\n        let q = max(c: x[r, c] as f32)\n        {own}let s = sum(c: {used}{gain})\n        \
             let t = {first}(c: x[r, c] as f32)\n        z[r] = s + t\n        \
             y[r, c] = ({used}{last} / (1.0 + abs(s))) as {scalar}\n    }}\n}}\n"
        )
    }

    fn along(&mut self) -> String {
        let scalar = self.choices.one_of(&ALL);
        self.dim("rows", 300);
        self.dim("cols", 600);
        self.at_most(MOST_STEPS / 4);
        let (fold, result) = self.fold(scalar);
        let (shape, at, over) = self.choices.one_of(&[("cols", "c", "r"), ("rows", "r", "c")]);
        let guard = if fold == "sum" { "" } else { " where rows >= 1, cols >= 1" };
        format!(
            "kernel random(x: {scalar}[rows, cols]) -> y: {result}[{shape}]{guard} {{\n    \
             y[{at}] = ({fold}({over}: x[r, c])) as {result}\n}}\n"
        )
    }

    fn whole(&mut self) -> String {
        let scalar = self.choices.one_of(&ALL);
        let size = 1 + self.choices.below(100_000) as i64;
        self.size("n", size);
        let (fold, result) = self.fold(scalar);
        format!(
            "kernel random(x: {scalar}[n]) -> y: {result} where n >= 1 {{\n    y = ({fold}(i: x[i])) as {result}\n}}\n"
        )
    }

    fn stencil(&mut self) -> String {
        let scalar = self.choices.one_of(&ALL);
        self.dim("h", 130);
        self.dim("w", 300);
        let zero = if is_float(scalar) { "0.0" } else { "0" };
        let count = 2 + self.choices.below(6);
        let mut offset = || ["", " + 1", " - 1", " + 2", " - 2"][self.choices.below(5)];
        let terms: Vec<String> =
            (0..count).map(|_| format!("(a[y{}, x{}] else {zero})", offset(), offset())).collect();
        format!(
            "kernel random(a: {scalar}[h, w]) -> b: {scalar}[h, w] {{\n    b[y, x] = ({}) as {scalar}\n}}\n",
            terms.join(" + ")
        )
    }

    fn histogram(&mut self) -> String {
        let size = 1 + self.choices.below(20_000) as i64;
        self.size("n", size);
        let bins = self.choices.one_of(&[256, 4, 16, 1000]);
        self.size("b", bins);
        let what = self.choices.one_of(&["1", "i as i32", "x[i] as i32"]);
        format!(
            "kernel random(x: u8[n], h: inout i32[b]) {{\n    forall i in n {{\n        \
             if (x[i] as i64) < b {{ h[x[i]] += {what} }}\n    }}\n}}\n"
        )
    }

    fn fields(&mut self) -> String {
        let (scalar, other) = (self.choices.one_of(&ALL), self.choices.one_of(&ALL));
        self.dim("n", 3000);
        let field = self.choices.one_of(&["x", "z"]);
        let second =
            self.choices.one_of(&["", "\n        p[i].y = q[n - 1 - i] as OTHER"]).replace("OTHER", other);
        format!(
            "struct S {{ x: {scalar}, y: {other}, z: {scalar} }}\n\nkernel random(p: inout S[n], q: {scalar}[n]) {{\n    \
             forall i in n {{\n        p[i].{field} = q[i]{second}\n    }}\n}}\n"
        )
    }
}

/// The program that a list of choices stands for.
pub fn generate(choices: &[u32]) -> Program {
    let mut choices = Choices::new(choices);
    let seed = choices.seed();
    let form = choices.below(11);
    let mut pattern = Pattern { choices, dims: Vec::new() };
    let source = match form {
        0..=2 => pattern.product(),
        3 => pattern.transpose(),
        4 | 5 => pattern.rows(),
        6 => pattern.along(),
        7 => pattern.whole(),
        8 => pattern.stencil(),
        9 => pattern.histogram(),
        _ => pattern.fields(),
    };
    Program { source, dims: pattern.dims, seed }
}

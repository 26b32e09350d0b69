//! Reductions of one's own at sizes that give them teams, blocks and pieces of the grid: of rows, columns and whole arrays, of
//! the middle axis, held beside what is computed of them, and deciding about more reductions.

use crate::Program;
use crate::choices::Choices;

const TYPES: [&str; 7] = ["f32", "i32", "bf16", "f64", "u8", "i64", "f16"];
/// Lengths around which teams, vectors and pieces change.
const LONG: [i64; 14] = [1000, 32, 33, 64, 100, 257, 512, 513, 1024, 2048, 4096, 4097, 5000, 9001];
const SHORT: [i64; 8] = [3, 1, 2, 5, 9, 33, 64, 130];
/// Terms of the largest program.
const MOST: i64 = 24_000;

/// What stands before the kernel; the reduction's name; a term of `X`, which stands at `AT`; a number of a result `Q`.
const OWN: [(&str, &str, &str, &str); 6] = [
    (
        "struct Moments { n: f64, mean: f64, square: f64 }

reduction merge(a: Moments, b: Moments) -> Moments from Moments { n: 0.0, mean: 0.0, square: 0.0 } {
    if a.n == 0.0 || b.n == 0.0 {
        if b.n == 0.0 { a } else { b }
    } else {
        let n = a.n + b.n
        let apart = b.mean - a.mean
        Moments { n: n, mean: a.mean + apart * b.n / n, square: a.square + b.square + apart * apart * a.n * b.n / n }
    }
}
",
        "merge",
        "Moments { n: 1.0, mean: clamp(X as f64, -1000.0, 1000.0), square: 0.0 }",
        "Q.mean + Q.square / Q.n",
    ),
    (
        "struct At { value: f64, place: i64 }

fn before(a: At, b: At) -> bool {
    a.place != -1 && (b.place == -1 || a.value > b.value || isnan(a.value) && !isnan(b.value)
        || (a.value == b.value || isnan(a.value) && isnan(b.value)) && a.place < b.place)
}

reduction furthest(a: At, b: At) -> At from At { value: -inf, place: -1 } { if before(b, a) { b } else { a } }
",
        "furthest",
        "At { value: X as f64, place: AT }",
        "Q.value + Q.place as f64",
    ),
    (
        "struct At { value: i64, place: i64 }

struct Two { first: At, second: At }

fn before(a: At, b: At) -> bool {
    a.place != -1 && (b.place == -1 || a.value > b.value || a.value == b.value && a.place < b.place)
}

reduction two(a: Two, b: Two) -> Two from Two { first: At { value: 0, place: -1 }, second: At { value: 0, place: -1 } } {
    if before(b.first, a.first) {
        Two { first: b.first, second: if before(b.second, a.first) { b.second } else { a.first } }
    } else {
        Two { first: a.first, second: if before(b.first, a.second) { b.first } else { a.second } }
    }
}
",
        "two",
        "Two { first: At { value: X as i64, place: AT }, second: At { value: 0, place: -1 } }",
        "(Q.first.value + 3 * Q.first.place + 5 * Q.second.value + 7 * Q.second.place) as f64",
    ),
    (
        "struct Tally { total: i64, low: i16, bits: u8, odd: bool, last: u32[2] }

reduction tally(a: Tally, b: Tally) -> Tally from Tally { total: 0, low: 32767, bits: 0, odd: false, last: [0, 0] } {
    Tally {
        total: a.total + b.total, low: min(a.low, b.low), bits: a.bits ^ b.bits, odd: a.odd != b.odd,
        last: [max(a.last[0], b.last[0]), a.last[1] + b.last[1]]
    }
}
",
        "tally",
        "Tally { total: X as i64, low: X as i32, bits: X as u32, odd: AT % 3 == 1, last: [X as u32, AT as u32] }",
        "(Q.total + (Q.low + Q.bits as i32) as i64 + (Q.last[0] / 2 + Q.last[1]) as i64 + (if Q.odd { 7 } else { 0 })) as f64",
    ),
    (
        "reduction larger(a: i32, b: i32) -> i32 from -2147483648 { if a > b { a } else { b } }
",
        "larger",
        "X as i32",
        "Q as f64",
    ),
    (
        "reduction divisor(a: u32, b: u32) -> u32 from 0 {
    var one = a
    var other = b
    while other != 0 {
        let rest = one % other
        one = other
        other = rest
    }
    one
}
",
        "divisor",
        "6 * ((X as i32) & 63) as u32",
        "Q as f64",
    ),
];

/// The program that a list of choices stands for.
pub fn generate(choices: &[u32]) -> Program {
    let mut choices = Choices::new(choices);
    let seed = choices.seed();
    let scalar = choices.one_of(&TYPES);
    let (items, name, term, number) = choices.one_of(&OWN);
    let (mut long, mut short) = (choices.one_of(&LONG), choices.one_of(&SHORT));
    if choices.once_in(2) {
        (long, short) = (1 + choices.below(long as usize) as i64, 1 + choices.below(short as usize) as i64);
    }
    let shape = choices.below(9);
    if shape == 4 {
        // Of a whole array.
        long *= 1 + choices.below(4) as i64;
        short = 1;
    }
    while long * short > MOST {
        (long, short) = (long * 7 / 8, (short * 7 / 8).max(1));
    }
    let filter = choices.below(4);
    let of = |element: &str, at: &str| {
        let one = term.replace('X', element).replace("AT", at);
        match filter {
            3 => format!("if {at} % 5 != 2 {{ {one} }} else {{ {} }}", nothing(items)),
            _ => one,
        }
    };
    let used = |value: &str| number.replace('Q', value);
    let range = choices.one_of(&["", "", "", " in 1..p", " in 0..p - 1"]);
    let range = |over: &str| range.replace('p', over);
    let (parameters, body) = match shape {
        0 | 1 => (
            "x: T[m, p]) -> y: f64[m]",
            format!(
                "forall r in m {{\n        let q = {name}(c{}: {})\n        y[r] = {}\n    }}",
                range("p"),
                of("x[r, c]", "c"),
                used("q")
            ),
        ),
        2 | 3 => (
            "x: T[p, m]) -> y: f64[m]",
            format!(
                "forall c in m {{\n        let q = {name}(r{}: {})\n        y[c] = {}\n    }}",
                range("p"),
                of("x[r, c]", "r"),
                used("q")
            ),
        ),
        4 => (
            "x: T[p]) -> y: f64",
            format!("let q = {name}(i{}: {})\n    y = {}", range("p"), of("x[i]", "i"), used("q")),
        ),
        5 => (
            "x: T[m, p]) -> y: f64",
            format!(
                "let q = {name}(r, c{}: {})\n    y = {}",
                range("p"),
                of("x[r, c]", "(r * p + c)"),
                used("q")
            ),
        ),
        // What comes of it is used for each element, and decides about another reduction.
        6 => (
            "x: T[m, p]) -> y: f64[m], z: f64[m, p]",
            format!(
                "forall r in m {{\n        let q = {name}(c{}: {})\n        let u = {}\n        var t = 0.0f64\n        \
                 if u > 3.0 {{ t = max(c: x[r, c] as f64) + sum(c: (x[r, c] as i64) & 7) as f64 }}\n        y[r] = t\n        \
                 z[r, c] = x[r, c] as f64 - u\n    }}",
                range("p"),
                of("x[r, c]", "c"),
                used("q")
            ),
        ),
        // Columns that are held, with a built-in reduction before and another one behind.
        7 => (
            "x: T[p, m]) -> y: f64[m], z: f64[p, m]",
            format!(
                "forall c in m {{\n        let a = max(r: x[r, c])\n        let q = {name}(r{}: {})\n        let u = {}\n        \
                 let b = count(r: x[r, c] as f64 > u)\n        y[c] = a as f64 + b as f64\n        \
                 z[r, c] = x[r, c] as f64 + u\n    }}",
                range("p"),
                of("x[r, c]", "r"),
                used("q")
            ),
        ),
        _ => (
            "x: T[3, p, m]) -> y: f64[3, m]",
            format!(
                "forall s in 3, c in m {{\n        let q = {name}(r{}: {})\n        y[s, c] = {} + sum(r: (x[s, r, c] as i64) & 3) as f64\n    }}",
                range("p"),
                of("x[s, r, c]", "r"),
                used("q")
            ),
        ),
    };
    let source = format!(
        "{items}\nkernel random({} where p >= 1 {{\n    {body}\n}}\n",
        parameters.replace("T[", &format!("{scalar}["))
    );
    let dims = [("p", long), ("m", short)];
    let dims = dims.iter().take(if shape == 4 { 1 } else { 2 });
    Program { source, dims: dims.map(|(name, size)| ((*name).to_string(), *size)).collect(), seed }
}

/// What stands behind `from`.
fn nothing(items: &str) -> &str {
    let from = items.split(" from ").nth(1).unwrap_or_default();
    // Up to the brace of the body, which ends the line or has spaces around it.
    let head = from.split('\n').next().unwrap_or_default();
    let head = head.split(" { if ").next().unwrap_or_default();
    head.trim_end_matches('{').trim_end()
}

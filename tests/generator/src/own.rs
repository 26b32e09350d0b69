//! Reductions of one's own in programs of any statements: declared beside constants and functions, and used wherever a
//! built-in one could stand. Which one a program has, its seed says.

use crate::expressions::Expressions;
use crate::kernel::{Draft, shape};
use crate::kernel_level::{iterate, result};
use crate::scope::{MOST_LOOPS, OwnReduction, Scope};
use crate::types::{Stored, Wide};

/// Of so many programs one has reductions of its own.
const OWN: u64 = 3;

/// A struct of numbers that are kept together, and which of two comes first. NaN comes before all numbers.
const KEPT: &str = "struct Kept { of: f32, place: i64 }

fn earlier(a: Kept, b: Kept) -> bool {
    a.of > b.of || isnan(a.of) && !isnan(b.of)
        || (a.of == b.of || isnan(a.of) && isnan(b.of)) && a.place < b.place
}

reduction kept(a: Kept, b: Kept) -> Kept from Kept { of: -inf, place: 9223372036854775807 } {
    if earlier(b, a) { b } else { a }
}
";

/// Integers, narrow ones among them, and a truth.
const TALLY: &str = "struct Tally { total: i64, low: i16, bits: u8, odd: bool }

reduction tally(a: Tally, b: Tally) -> Tally from Tally { total: 0, low: 32767, bits: 0, odd: false } {
    Tally { total: a.total + b.total, low: min(a.low, b.low), bits: a.bits ^ b.bits, odd: a.odd != b.odd }
}
";

const MOMENTS: &str = "struct Moments { n: f64, mean: f64, square: f64 }

reduction moments(a: Moments, b: Moments) -> Moments from Moments { n: 0.0, mean: 0.0, square: 0.0 } {
    if a.n == 0.0 {
        b
    } else if b.n == 0.0 {
        a
    } else {
        let n = a.n + b.n
        let part = b.n / n
        let apart = b.mean - a.mean
        Moments { n: n, mean: a.mean + apart * part, square: a.square + b.square + apart * apart * a.n * part }
    }
}
";

const LARGER: &str = "reduction larger(a: i32, b: i32) -> i32 from -2147483648 { if a > b { a } else { b } }
";

const PLUS: &str = "reduction plus(a: f32, b: f32) -> f32 from -0.0 { a + b }
";

/// Declares what the seed says.
pub fn declare(draft: &mut Draft, seed: u64) {
    if seed % OWN != 2 {
        return;
    }
    let number = |name, of| OwnReduction { name, of, literal: "", part: "", result: of };
    let part = |name, of, literal, part, result| OwnReduction { name, of, literal, part, result };
    let (item, found) = match seed / OWN % 5 {
        0 => (
            KEPT,
            vec![
                part("kept", Wide::F32, "Kept { of: VALUE + 0.0, place: PLACE }", ".of", Wide::F32),
                part("kept", Wide::F32, "Kept { of: VALUE + 0.0, place: PLACE }", ".place", Wide::I64),
            ],
        ),
        1 => {
            let literal = "Tally { total: VALUE, low: 3, bits: 5, odd: PLACE > 2 }";
            (
                TALLY,
                vec![
                    part("tally", Wide::I64, literal, ".total", Wide::I64),
                    part("tally", Wide::I64, literal, ".odd", Wide::Bool),
                    part(
                        "tally",
                        Wide::I32,
                        "Tally { total: PLACE, low: VALUE, bits: 9, odd: true }",
                        ".low",
                        Wide::I32,
                    ),
                    part(
                        "tally",
                        Wide::U32,
                        "Tally { total: PLACE, low: 1, bits: VALUE, odd: true }",
                        ".bits",
                        Wide::U32,
                    ),
                ],
            )
        }
        2 => (
            MOMENTS,
            vec![
                part(
                    "moments",
                    Wide::F64,
                    "Moments { n: 1.0, mean: clamp(VALUE, -1000.0, 1000.0), square: 0.0 }",
                    ".square",
                    Wide::F64,
                ),
                part(
                    "moments",
                    Wide::F64,
                    "Moments { n: 1.0, mean: clamp(VALUE, -1000.0, 1000.0), square: 0.0 }",
                    ".mean",
                    Wide::F64,
                ),
            ],
        ),
        3 => (LARGER, vec![number("larger", Wide::I32)]),
        _ => (PLUS, vec![part("plus", Wide::F32, "clamp(VALUE, -1e6, 1e6)", "", Wide::F32)]),
    };
    draft.declare(item);
    draft.scope.reductions.extend(found);
}

/// `y[i, j] = own(p in m: e)`, where there is one.
pub fn statement(make: &mut Expressions<'_, '_>, draft: &mut Draft) {
    if draft.scope.reductions.is_empty() {
        return;
    }
    let own = make.choices.one_of(&draft.scope.reductions);
    let mut extents = shape(make, draft.scope.dims);
    extents.truncate(MOST_LOOPS - 1);
    let stored = Stored { name: own.result.name(), wide: own.result };
    let array = result(make, draft, stored, extents.clone());
    let (indices, scope) = iterate(make, draft, &extents);
    let mut inner = scope.clone();
    let axis = make.axis(&scope, &mut inner);
    let value = make.own_of(own, &axis, &inner, 2);
    draft.body.line(&format!("{}[{}] = {value}", array.name, indices.join(", ")));
    draft.scope.arrays.push(array);
}

impl Expressions<'_, '_> {
    /// A reduction of one's own that gives this type, over names that are bound in `inner`.
    pub fn own_reduction(&mut self, ty: Wide, axes: &str, inner: &Scope, depth: usize) -> Option<String> {
        let found: Vec<OwnReduction> =
            inner.reductions.iter().copied().filter(|own| own.result == ty).collect();
        if found.is_empty() || self.choices.once_in(2) {
            return None;
        }
        let own = self.choices.one_of(&found);
        Some(self.own_of(own, axes, inner, depth))
    }

    fn own_of(&mut self, own: OwnReduction, axes: &str, inner: &Scope, depth: usize) -> String {
        let value = self.expression(own.of, inner, depth);
        let place = inner.indices.last().map_or("0", |index| index.name.as_str());
        let term = if own.literal.is_empty() {
            value
        } else {
            own.literal.replace("VALUE", &value).replace("PLACE", place)
        };
        format!("{}({axes}: {term}){}", own.name, own.part)
    }
}

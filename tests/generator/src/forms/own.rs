//! Reductions of one's own: of numbers and of structs, in rows, in columns, over all elements, inside of others, behind
//! conditions, and beside the built-in ones. All of them keep their promises, for NaN and infinities as well.

use super::{Forms, is_float};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// The largest number; of floats NaN wins.
    Larger,
    /// The sum, as one writes it.
    Plus,
    /// Exclusive or; of floats the length of a vector.
    Bits,
    /// The greatest common divisor, by a loop; of floats the sum of magnitudes.
    Divisor,
    /// The largest element and where it is.
    Place,
    /// The two largest ones and where they are.
    Two,
    /// Count, mean and squared deviations; of integers how many, the sum, and both ends.
    Moments,
    /// An array of numbers in a struct, of the type that arrays hold.
    Narrow,
}

const KINDS: [Kind; 8] = [
    Kind::Larger,
    Kind::Place,
    Kind::Plus,
    Kind::Moments,
    Kind::Two,
    Kind::Bits,
    Kind::Narrow,
    Kind::Divisor,
];

/// A declared reduction.
#[derive(Clone, Copy)]
struct Own {
    kind: Kind,
    name: &'static str,
    /// `None`: of numbers as they are computed.
    structure: Option<&'static str>,
    /// How to get at the numbers of a value, and whether these have the type that is computed in.
    fields: &'static [(&'static str, bool)],
}

impl Own {
    fn of(kind: Kind) -> Own {
        let (name, structure, fields): (_, _, &'static [_]) = match kind {
            Kind::Larger => ("larger", None, &[("", true)]),
            Kind::Plus => ("plus", None, &[("", true)]),
            Kind::Bits => ("bits", None, &[("", true)]),
            Kind::Divisor => ("divisor", None, &[("", true)]),
            Kind::Place => ("furthest", Some("Place"), &[(".value", true), (".place", false)]),
            Kind::Two => (
                "two",
                Some("Two"),
                &[(".second.value", true), (".first.place", false), (".second.place", false)],
            ),
            Kind::Moments => {
                ("merge", Some("Moments"), &[(".square", true), (".mean", true), (".count", true)])
            }
            Kind::Narrow => ("ends", Some("Ends"), &[(".of[0]", true), (".of[1]", true), (".total", true)]),
        };
        Own { kind, name, structure, fields }
    }
}

fn bounded(term: &str) -> String {
    format!("clamp({term}, -1000.0, 1000.0)")
}

impl Forms<'_> {
    fn item(&mut self, item: String) {
        if !self.items.contains(&item) {
            self.items.push(item);
        }
    }

    /// The least number of the type that is computed in.
    fn least(&self) -> &'static str {
        match self.wide {
            "i32" => "-2147483648",
            "i64" => "-9223372036854775807 - 1",
            "u32" | "u64" => "0",
            _ => "-inf",
        }
    }

    /// What it gives over nothing.
    fn nothing(&self, own: Own) -> String {
        let zero = if is_float(self.wide) { "0.0" } else { "0" };
        let nowhere = format!("Place {{ value: {}, place: -1 }}", self.least());
        match own.kind {
            Kind::Larger => self.least().to_string(),
            // A sum of nothing but -0 is -0.
            Kind::Plus if is_float(self.wide) => "-0.0".to_string(),
            Kind::Plus | Kind::Bits | Kind::Divisor => zero.to_string(),
            Kind::Place => nowhere,
            Kind::Two => format!("Two {{ first: {nowhere}, second: {nowhere} }}"),
            Kind::Moments => format!("Moments {{ count: {zero}, mean: {zero}, square: {zero} }}"),
            Kind::Narrow => match self.scalar {
                "u8" => "Ends { of: [255, 0], total: 0 }".to_string(),
                "i16" => "Ends { of: [32767, -32768], total: 0 }".to_string(),
                "i32" => "Ends { of: [2147483647, -2147483648], total: 0 }".to_string(),
                "i64" => "Ends { of: [9223372036854775807, -9223372036854775807 - 1], total: 0 }".to_string(),
                "u32" => "Ends { of: [4294967295, 0], total: 0 }".to_string(),
                "u64" => "Ends { of: [18446744073709551615, 0], total: 0 }".to_string(),
                _ => "Ends { of: [inf, -inf], total: -0.0 }".to_string(),
            },
        }
    }

    /// Declares one, with what it is made of.
    fn declare(&mut self, kind: Kind) -> Own {
        let (wide, scalar, own) = (self.wide, self.scalar, Own::of(kind));
        let float = is_float(wide);
        if matches!(kind, Kind::Place | Kind::Two) {
            self.item(format!("struct Place {{ value: {wide}, place: i64 }}"));
            let larger = if float {
                "a.value > b.value || isnan(a.value) && !isnan(b.value) \
                 || (a.value == b.value || isnan(a.value) && isnan(b.value)) && a.place < b.place"
            } else {
                "a.value > b.value || a.value == b.value && a.place < b.place"
            };
            self.item(format!(
                "fn before(a: Place, b: Place) -> bool {{ a.place != -1 && (b.place == -1 || {larger}) }}"
            ));
        }
        match kind {
            Kind::Two => self.item("struct Two { first: Place, second: Place }".to_string()),
            Kind::Moments => {
                self.item(format!("struct Moments {{ count: {wide}, mean: {wide}, square: {wide} }}"))
            }
            Kind::Narrow => self.item(format!("struct Ends {{ of: {scalar}[2], total: {scalar} }}")),
            _ => {}
        }
        let body = match kind {
            Kind::Larger if float => {
                "if isnan(a) || a > b || a == b && to_bits(a) < to_bits(b) { a } else { b }".to_string()
            }
            Kind::Larger => "if a > b { a } else { b }".to_string(),
            Kind::Plus => "a + b".to_string(),
            Kind::Bits if float => "sqrt(a * a + b * b)".to_string(),
            Kind::Bits => "a ^ b".to_string(),
            Kind::Divisor if float => "abs(a) + abs(b)".to_string(),
            Kind::Divisor => "\n    var one = a\n    var other = b\n    \
                while other != 0 {\n        let rest = one % other\n        one = other\n        other = rest\n    }\n    one\n"
                .to_string(),
            Kind::Place => "if before(b, a) { b } else { a }".to_string(),
            Kind::Two => "\n    if before(b.first, a.first) {\n        \
                Two { first: b.first, second: if before(b.second, a.first) { b.second } else { a.first } }\n    \
                } else {\n        \
                Two { first: a.first, second: if before(b.first, a.second) { b.first } else { a.second } }\n    }\n"
                .to_string(),
            Kind::Moments if float => {
                "\n    let count = a.count + b.count\n    if a.count == 0.0 || b.count == 0.0 {\n        \
                 if b.count == 0.0 { a } else { b }\n    } else {\n        let part = b.count / count\n        \
                 let apart = b.mean - a.mean\n        \
                 Moments { count: count, mean: a.mean + apart * part, square: a.square + b.square + apart * apart * a.count * part }\n    }\n"
                    .to_string()
            }
            Kind::Moments => "a + b".to_string(),
            Kind::Narrow => {
                "\n    var both = a\n    both.of[0] = min(a.of[0], b.of[0])\n    both.of[1] = max(a.of[1], b.of[1])\n    \
                 both.total += b.total\n    both\n"
                    .to_string()
            }
        };
        let body = if body.starts_with('\n') { body } else { format!(" {body} ") };
        let (name, ty) = (own.name, own.structure.unwrap_or(wide));
        self.item(format!(
            "reduction {name}(a: {ty}, b: {ty}) -> {ty} from {} {{{body}}}",
            self.nothing(own)
        ));
        own
    }

    /// A value for it of a term, which stands at a place.
    fn one(&mut self, own: Own, term: &str, place: &str) -> String {
        let (wide, scalar) = (self.wide, self.scalar);
        let float = is_float(wide);
        match own.kind {
            // Infinities of both signs, and sums that are too large, make the order matter.
            Kind::Plus if float => bounded(term),
            Kind::Larger | Kind::Plus => term.to_string(),
            Kind::Bits if float => format!("min(abs({term}), 1000.0)"),
            Kind::Divisor if float => format!("abs({term})"),
            Kind::Bits => term.to_string(),
            Kind::Divisor => format!("(({term}) & 63)"),
            Kind::Place => format!("Place {{ value: {term}, place: {place} }}"),
            Kind::Two => {
                let nowhere = self.nothing(Own::of(Kind::Place));
                format!("Two {{ first: Place {{ value: {term}, place: {place} }}, second: {nowhere} }}")
            }
            Kind::Moments if float => {
                format!("Moments {{ count: 1.0, mean: {}, square: 0.0 }}", bounded(term))
            }
            Kind::Moments => format!("Moments {{ count: 1, mean: {term}, square: {term} & 3 }}"),
            Kind::Narrow => {
                let total = if float { bounded(term) } else { term.to_string() };
                let of = format!("({term}) as {scalar}");
                format!("Ends {{ of: [{of}, {of}], total: ({total}) as {scalar} }}")
            }
        }
    }

    /// Such a value, at times behind a condition.
    fn filtered(&mut self, own: Own, term: &str, place: &str, has_j: bool) -> String {
        let value = self.one(own, term, place);
        if !self.choices.once_in(3) {
            return value;
        }
        let (condition, nothing) = (self.condition(has_j), self.nothing(own));
        format!("if {condition} {{ {value} }} else {{ {nothing} }}")
    }

    /// One number of a value, as it is computed.
    fn number(&mut self, own: Own, value: &str) -> String {
        let (field, fits) = self.choices.one_of(own.fields);
        let narrow = own.kind == Kind::Narrow && self.scalar != self.wide;
        if fits && !narrow { format!("{value}{field}") } else { format!("({value}{field} as {})", self.wide) }
    }

    /// A reduction, and what it is a reduction of, in one of many places.
    pub(super) fn own(&mut self) {
        let kind = self.choices.one_of(&KINDS);
        let own = self.declare(kind);
        let (name, wide) = (own.name, self.wide);
        let ty = own.structure.unwrap_or(wide);
        match self.choices.below(12) {
            // A row, of which some or all is taken.
            0..=2 => {
                let (term, over) = (
                    self.term(true, 1),
                    self.choices.one_of(&["m", "m", "m", "1..m", "0..min(i + 1, m)", "2..2"]),
                );
                let value = self.filtered(own, &term, "j", true);
                let result = self.result(ty, "n");
                self.line(format!("{result}[i] = {name}(j in {over}: {value})"));
            }
            3 => {
                let term = self.term(true, 1);
                let value = self.filtered(own, &term, "i", true);
                let result = self.result(ty, "m");
                self.line(format!("{result}[j] = {name}(i in n: {value})"));
            }
            4 | 5 => {
                let term = self.term(true, 1);
                let value = self.filtered(own, &term, "i * m + j", true);
                let result = self.result(ty, "");
                let over = self.choices.one_of(&[
                    "i in n, j in m",
                    "i in n, j in m",
                    "j in m, i in n",
                    "i in n, j in 0..=i",
                ]);
                // The triangle reads below the diagonal, where there are so many columns.
                let value = if over.ends_with("=i") {
                    value.replace("x[i, j]", "(x[i, j] else (0 as T))")
                } else {
                    value
                };
                let value =
                    value.replace("v[j]", if over.ends_with("=i") { "(v[j] else (0 as T))" } else { "v[j]" });
                let value = value.replace("(0 as T)", if is_float(wide) { "0.0" } else { "0" });
                self.line(format!("{result} = {name}({over}: {value})"));
            }
            6 => self.inside(own),
            7 | 8 => self.beside(own),
            // Of an array of the iteration's own, or of the kernel's.
            9 => {
                let (term, number) = (self.term(true, 1), self.results.len());
                let result = self.result(ty, "n");
                if self.choices.once_in(2) {
                    let value = self.one(own, &format!("t{number}[i, j]"), "j");
                    self.line(format!("let t{number}[i in n, j in m] = {term}"));
                    self.line(format!("{result}[i] = {name}(j in m: {value})"));
                } else {
                    let value = self.one(own, "e[j]", "j");
                    self.line("forall i in n {");
                    self.line(format!("    let e[j in 0..m] = {term}"));
                    self.line(format!("    {result}[i] = {name}(j in 0..m: {value})"));
                    self.line("}");
                }
            }
            // In a loop, and as a function.
            10 => {
                let (first, term) = (self.term(false, 2), self.term(true, 2));
                let start = self.one(own, &first, "m + 1");
                let value = self.filtered(own, &format!("({term} + (d as {wide}))"), "j", true);
                let result = self.result(ty, "n");
                self.line(format!("forall i in n {{\n        var a = {start}"));
                self.line(format!("    for d in 0..3 {{ a = {name}(a, {name}(j in m: {value})) }}"));
                self.line(format!("    {result}[i] = a\n    }}"));
            }
            // A value that later statements use.
            _ => {
                let (term, number) = (self.term(false, 1), self.results.len());
                let value = self.filtered(own, &term, "i", false);
                let result = self.result(wide, "n");
                self.line(format!("let q{number} = {name}(i in n: {value})"));
                let used = self.number(own, &format!("q{number}"));
                self.line(format!("{result}[i] = w[i] - {used}"));
            }
        }
    }

    /// One inside another one, or inside of a built-in one, or around one.
    fn inside(&mut self, own: Own) {
        let (name, wide, term) = (own.name, self.wide, self.term(true, 2));
        let fold = self.choices.one_of(&["sum", "max", "min"]);
        match self.choices.below(4) {
            0 => {
                let value = self.one(own, &format!("{fold}(j in m: {term})"), "i");
                let result = self.result(own.structure.unwrap_or(wide), "");
                self.line(format!("{result} = {name}(i in n: {value})"));
            }
            1 => {
                let (value, result) =
                    (self.one(own, &term, "i * m + j"), self.result(own.structure.unwrap_or(wide), ""));
                self.line(format!("{result} = {name}(i in n: {name}(j in m: {value}))"));
            }
            2 => {
                let (value, result) = (self.one(own, &term, "j"), self.result(wide, ""));
                let used = self.number(own, &format!("{name}(j in m: {value})"));
                self.line(format!("{result} = {fold}(i in n: {used})"));
            }
            // For each row again.
            _ => {
                let (value, result) = (self.one(own, "x[q, j]", "q"), self.result(wide, "n, m"));
                let used = self.number(own, &format!("{name}(q in n: {value})"));
                self.line(format!("{result}[i, j] = {term} - {used}"));
            }
        }
    }

    /// Beside built-in ones, and beside another one.
    fn beside(&mut self, own: Own) {
        let (name, wide, term) = (own.name, self.wide, self.term(true, 2));
        let value = self.filtered(own, &term, "j", true);
        let other = self.term(true, 2);
        let built_in = self.folded(&other);
        let kind = self.choices.one_of(&KINDS);
        let second = self.declare(kind);
        let again = self.one(second, &term, "j");
        let (result, elements) = (self.result(wide, "n"), self.result(wide, "n, m"));
        self.line(format!("forall i in n {{\n        let a = {name}(j in m: {value})"));
        self.line(format!("    let b = {built_in}"));
        let used = self.number(own, "a");
        let operator = self.choices.one_of(&["-", "+", "*"]);
        if self.choices.once_in(2) {
            self.line(format!("    let c = {}(j in m: {again})", second.name));
            let more = self.number(second, "c");
            self.line(format!("    {result}[i] = {used} {operator} b - {more}"));
        } else {
            self.line(format!("    {result}[i] = {used} {operator} b"));
        }
        self.line(format!("    forall j in m {{ {elements}[i, j] = {term} - {used} }}\n    }}"));
    }
}

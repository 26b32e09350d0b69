//! Small kernels of the forms that passes look for: reductions of every operator with invariant and shared factors, several
//! reductions in a body, loops with atomics, local arrays, gathers, guards, short axes, neighbours, fields of structs.
//!
//! All is small, so that thousands of them take seconds, and most numbers are whole, so that results are exact.

mod own;
mod spaces;
mod turns;

use crate::Program;
use crate::choices::Choices;

/// Mostly integers, of which every bit counts.
const ALL: [&str; 10] = ["i32", "i64", "f32", "u32", "i32", "f64", "u64", "i32", "u8", "i16"];
const LONG: [i64; 9] = [5, 1, 2, 3, 4, 7, 8, 12, 33];
const SHORT: [i64; 8] = [4, 1, 2, 3, 6, 8, 9, 17];
/// Of kernels that say that there are four columns, or eight, or more.
const FOURS: [i64; 4] = [4, 8, 12, 16];

struct Forms<'a> {
    choices: Choices<'a>,
    /// What arrays hold, and what is computed of it.
    scalar: &'static str,
    wide: &'static str,
    results: Vec<String>,
    /// What stands before the kernel.
    items: Vec<String>,
    lines: Vec<String>,
    /// Whether a loop over `j` runs in order.
    serial: bool,
}

fn is_float(scalar: &str) -> bool {
    scalar.starts_with('f')
}

impl Forms<'_> {
    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// A new result of a type and a shape (empty: one value); its name.
    fn result(&mut self, ty: &str, shape: &str) -> String {
        let name = format!("y{}", self.results.len());
        let shape = if shape.is_empty() { String::new() } else { format!("[{shape}]") };
        self.results.push(format!("{name}: {ty}{shape}"));
        name
    }

    fn literal(&mut self) -> String {
        let wide = self.wide;
        if is_float(wide) {
            let number = self.choices.one_of(&["2.0", "0.5", "-1.5", "0.0", "4.0", "1.0"]);
            return format!("{number}{wide}");
        }
        let number = self.choices.one_of(&["3", "2", "1", "0", "8", "5"]);
        format!("{number}{wide}")
    }

    /// A value of row `i` (and of `j`, where there is one).
    fn term(&mut self, has_j: bool, depth: usize) -> String {
        let wide = self.wide;
        let form = self.choices.below(if depth > 2 { 4 } else { 16 });
        if has_j && form < 2 {
            return self.choices.one_of(&["x[i, j]", "x[i, j]", "v[j]"]).to_string();
        }
        let both = |forms: &mut Self| (forms.term(has_j, depth + 1), forms.term(has_j, depth + 1));
        match form {
            0 | 1 => "w[i]".to_string(),
            2 => self.choices.one_of(&["s", "w[i]"]).to_string(),
            3 => self.literal(),
            // Factors that do not change from step to step.
            4 | 5 => {
                let factor = self.choices.one_of(&["s", "w[i]", "(s + w[i])", "(k as W)"]).replace('W', wide);
                format!("({factor} * {})", self.term(has_j, depth + 1))
            }
            // The same again.
            6 => {
                let shared = self.term(has_j, depth + 1);
                if self.choices.once_in(3) {
                    return format!("(({shared} - s) * (s - {shared}))");
                }
                let operator = self.choices.one_of(&["*", "+", "-"]);
                format!("(({shared} + s) {operator} ({shared} + s))")
            }
            7..=9 => {
                let (left, right) = both(self);
                let operator = self.choices.one_of(&["+", "-", "*"]);
                format!("({left} {operator} {right})")
            }
            10 => {
                let (left, right) = both(self);
                let name = self.choices.one_of(&["max", "min"]);
                format!("{name}({left}, {right})")
            }
            11 => {
                let (left, right) = both(self);
                let condition = self.condition(has_j);
                format!("(if {condition} {{ {left} }} else {{ {right} }})")
            }
            12 => {
                let (left, right) = both(self);
                let condition = self.condition(has_j);
                format!("select({condition}, {left}, {right})")
            }
            13 if has_j => {
                let zero = self.literal();
                let shift = self.choices.one_of(&["- 1", "+ 1", "- 2", "+ 3"]);
                format!("(x[i, j {shift}] else {zero})")
            }
            14 => {
                let (at, by) =
                    (self.index(has_j), self.choices.one_of(&["/ 4", "% 4", "/ 3", "% 3", "<< 1", ">> 2"]));
                format!("((({at}) {by}) as {wide})")
            }
            _ if !is_float(wide) => {
                let left = self.term(has_j, depth + 1);
                let (operator, right) = self.choices.one_of(&[
                    ("/", "4"),
                    ("%", "4"),
                    ("&", "7"),
                    ("^", "3"),
                    (">>", "1"),
                    ("/", "3"),
                ]);
                format!("({left} {operator} {right})")
            }
            _ => format!("abs({})", self.term(has_j, depth + 1)),
        }
    }

    fn condition(&mut self, has_j: bool) -> String {
        let column = if has_j { "j" } else { "i" };
        match self.choices.below(6) {
            0 => format!("{column} + 1 < m"),
            1 if self.choices.once_in(2) => format!("i + 1 < n && w[i + 1] <= {}", self.literal()),
            1 => "i + 2 < n".to_string(),
            2 => format!("i < n - 1 && {column} >= 1"),
            3 => format!("({} > {})", self.term(has_j, 3), self.literal()),
            4 => format!("!({} <= {})", self.term(has_j, 3), self.term(has_j, 3)),
            _ => format!("({} == {} || {column} < 2)", self.term(has_j, 3), self.literal()),
        }
    }

    /// A number that is made of indices.
    fn index(&mut self, has_j: bool) -> &'static str {
        if has_j {
            self.choices.one_of(&["i * 4 + j", "i + j", "i * m + j + 2", "2 * (i + 3) + j", "j * 2 + 1"])
        } else {
            self.choices.one_of(&["i * 4 + 1", "i + 3", "2 * (i + 3) - 1", "i * 2"])
        }
    }

    /// A reduction over `j`, and its type.
    fn fold(&mut self, term: &str) -> (String, &'static str) {
        let literal = self.literal();
        let fold =
            self.choices.one_of(&["sum", "max", "min", "prod", "argmax", "argmin", "count", "any", "all"]);
        if !is_float(self.wide) && self.choices.once_in(4) {
            let bits = self.choices.one_of(&["xor", "or", "and"]);
            return (format!("{bits}(j in m: {term})"), self.wide);
        }
        match fold {
            "count" => (format!("count(j in m: {term} > {literal})"), "i64"),
            "any" | "all" => (format!("{fold}(j in m: {term} > {literal})"), "bool"),
            "argmax" | "argmin" => (format!("{fold}(j in m: {term})"), "i64"),
            _ => (format!("{fold}(j in m: {term})"), self.wide),
        }
    }

    /// Such a reduction as a number.
    fn folded(&mut self, term: &str) -> String {
        let (fold, ty) = self.fold(term);
        match ty {
            "bool" => format!(
                "select({fold}, 1{0}, 0{0})",
                if is_float(self.wide) { format!(".0{}", self.wide) } else { self.wide.to_string() }
            ),
            ty if ty == self.wide => fold,
            _ => format!("({fold} as {})", self.wide),
        }
    }

    fn reduction(&mut self) {
        self.serial = true;
        let mut term = self.term(true, 0);
        // A factor of all of it, which a pass may want to move out of the reduction, or an addend. Any may be negative.
        if self.choices.once_in(2) {
            let (factor, operator) = self.choices.one_of(&[
                ("s", "*"),
                ("w[i]", "*"),
                ("(s - w[i])", "*"),
                ("s", "+"),
                ("w[i]", "-"),
            ]);
            term = format!("{factor} {operator} {term}");
        }
        let (fold, ty) = self.fold(&term);
        let name = self.result(ty, "n");
        let around = if ty == self.wide { self.choices.one_of(&["", "s * ", "w[i] + "]) } else { "" };
        self.line(format!("{name}[i] = {around}{fold}"));
    }

    fn several(&mut self) {
        self.serial = true;
        self.line("forall i in n {");
        for name in ["a", "b"] {
            let term = self.term(true, 1);
            let fold = self.folded(&term);
            self.line(format!("    let {name} = {fold}"));
        }
        let last = self.term(true, 1);
        let operator = self.choices.one_of(&["+", "-", "*"]);
        let last = self.folded(&format!("({last} {operator} a)"));
        let (wide, name) = (self.wide, self.result(self.wide, "n"));
        let second = self.result(wide, "n, m");
        self.line(format!("    {name}[i] = {last} - b"));
        let value = self.term(true, 1);
        self.line(format!("    forall j in m {{ {second}[i, j] = {value} + a * b }}"));
        self.line("}");
    }

    fn whole(&mut self) {
        let (term, wide) = (self.term(true, 0), self.wide);
        let fold = self.choices.one_of(&["sum", "max", "min"]);
        let name = self.result(wide, "");
        self.line(format!("{name} = {fold}(i in n, j in m: {term})"));
    }

    fn atomics(&mut self) {
        let wide = self.wide;
        let (shape, place) = self.choices.one_of(&[
            ("n", "[i]"),
            ("m", "[j]"),
            ("", ""),
            ("n", "[i / 2]"),
            ("8", "[(i * 3 + j) & 7]"),
            ("n, 4", "[i, j & 3]"),
            ("n", "[n - 1 - i]"),
        ]);
        let name = self.result(wide, shape);
        let operators: &[&str] = if is_float(wide) {
            &["+=", "max=", "min=", "-="]
        } else {
            &["+=", "max=", "min=", "-=", "|=", "&=", "^="]
        };
        let operator = self.choices.one_of(operators);
        let value = self.term(true, 1);
        let guard = if self.choices.once_in(3) { Some(self.condition(true)) } else { None };
        let assignment = format!("{name}{place} {operator} {value}");
        let assignment = match guard {
            Some(condition) => format!("if {condition} {{ {assignment} }}"),
            None => assignment,
        };
        match self.choices.below(4) {
            0 | 1 => self.line(format!("forall i in n, j in m {{ {assignment} }}")),
            2 => self.line(format!("forall i in n {{ forall j in m {{ {assignment} }} }}")),
            _ => {
                self.serial = true;
                self.line(format!("forall i in n {{ for j in 0..m {{ {assignment} }} }}"));
            }
        }
    }

    /// An array of the iteration's own with a few elements.
    fn small_array(&mut self) {
        let (wide, value) = (self.wide, self.term(false, 1));
        let rounded = if self.choices.once_in(4) { format!(": {}", self.scalar) } else { String::new() };
        self.line("forall i in n {");
        self.line(format!("    var e[c in 0..4]{rounded} = {value} + (c as {wide})"));
        for _ in 0..self.choices.below(4) {
            let at = self.choices.one_of(&["1", "0", "3", "(i & 3)", "2"]);
            let (operator, value) = (self.choices.one_of(&["=", "+=", "*="]), self.term(false, 2));
            let change = format!("e[{at}] {operator} {value} - e[2]");
            if self.choices.once_in(3) {
                let condition = self.condition(false);
                self.line(format!("    if {condition} {{ {change} }}"));
            } else {
                self.line(format!("    {change}"));
            }
        }
        let (name, other) = (self.result(wide, "n"), self.result(wide, "n"));
        self.line(format!("    {name}[i] = e[0] + e[1] * e[3]"));
        let fold = self.choices.one_of(&["sum", "max", "prod"]);
        self.line(format!("    {other}[i] = {fold}(c in 0..4: e[c] - s)"));
        self.line("}");
    }

    /// An array of the iteration's own with an element for each column, read in one place or in two, or searched.
    fn long_array(&mut self) {
        self.serial = true;
        let (wide, value) = (self.wide, self.term(true, 1));
        self.line("forall i in n {");
        self.line(format!("    let e[j in 0..m] = {value}"));
        let name = self.result(wide, "n");
        match self.choices.below(3) {
            0 => {
                let fold = self.folded("e[j]");
                self.line(format!("    {name}[i] = {fold}"));
            }
            1 => {
                let fold = self.folded("(e[j] * v[j])");
                let again = self.folded("e[j]");
                self.line(format!("    {name}[i] = {fold} + {again}"));
            }
            _ => {
                let fold = self.choices.one_of(&["argmin", "argmax"]);
                self.line(format!("    let place = {fold}(j in 0..m: e[j])"));
                self.line(format!("    {name}[i] = e[place] + (place as {wide})"));
            }
        }
        self.line("}");
    }

    fn gather(&mut self) {
        let (wide, zero) = (self.wide, self.literal());
        let name = self.result(wide, "n");
        match self.choices.below(4) {
            0 => self.line(format!("{name}[i] = s * (w[idx[i]] else {zero})")),
            1 => self.line(format!("{name}[i] = w[clamp(idx[i] as i64, 0, n - 1)] + s")),
            2 => {
                self.serial = true;
                let term = format!("((w[idx[i] as i64 + j] else {zero}) * v[j])");
                let fold = self.folded(&term);
                self.line(format!("{name}[i] = {fold}"));
            }
            _ => self.line(format!("{name}[i] = (x[idx[i], i] else {zero}) + (x[i, idx[i]] else {zero})")),
        }
    }

    fn stencil(&mut self) {
        let (wide, zero) = (self.wide, self.literal());
        let name = self.result(wide, "n, m");
        match self.choices.below(5) {
            0 => {
                let fold = self.choices.one_of(&["sum", "max", "min"]);
                self.line(format!("{name}[i, j] = {fold}(d in 0..5: (x[i, j + d - 2] else {zero}))"));
            }
            1 => {
                self.line(format!("{name}[i, j] = sum(d in 0..3, f in 0..3: (x[i + d - 1, j + f - 1] else {zero}) * s)"));
            }
            2 => self.line(format!("{name}[i, j] = (x[i, j - 1] else {zero}) + (x[i, j + 1] else {zero}) - (x[i + 1, j] else {zero})")),
            3 => {
                let (then, otherwise) = (self.term(true, 2), self.term(true, 2));
                self.line(format!(
                    "{name}[i, j] = if j + 2 < m {{ x[i, j + 2] - (x[i, j + 1] else {zero}) + {then} }} else {{ if j + 1 < m {{ x[i, j + 1] }} else {{ {otherwise} }} }}"
                ));
            }
            _ => self.line(format!(
                "{name}[i, j] = if i >= 1 && i + 1 < n {{ x[i - 1, j] + max(x[i + 1, j], x[i, j]) }} else {{ (x[min(i + 1, n - 1), j] else {zero}) }}"
            )),
        }
    }

    fn short_axis(&mut self) {
        let (wide, value) = (self.wide, self.term(false, 1));
        let count = self.choices.one_of(&[3, 2, 1, 5]);
        let name = self.result(wide, &format!("n, {count}"));
        // A range that is empty, as the compiler can see.
        let nothing = self.choices.one_of(&["w[i]", "max(d in 2..2: w[i])", "min(d in 2..2: x[i, 0])"]);
        self.line(format!("{name}[i, c] = {value} * (c as {wide}) + {nothing}"));
    }

    /// Neighbours that one iteration reads and writes.
    fn neighbours(&mut self) {
        let (wide, scalar) = (self.wide, self.scalar);
        let count: usize = self.choices.one_of(&[4, 2, 3]);
        let name = self.result(scalar, &format!("{count} * n"));
        let first = self.choices.below(count);
        self.line("forall i in n {");
        for step in 0..count {
            let at = (first + step) % count;
            let other = self.choices.below(4);
            let value = self.term(false, 2);
            self.line(format!(
                "    {name}[{count} * i + {at}] = (u[4 * i + {other}] - {value} + {at} as {wide}) as {scalar}"
            ));
        }
        self.line("}");
    }

    fn structs(&mut self) {
        let (wide, scalar) = (self.wide, self.scalar);
        let value = self.term(false, 1);
        match self.choices.below(5) {
            4 => {
                let name = self.result(wide, "n");
                self.line(format!("{name}[i] = TABLE[i % 3].a * {value} - TABLE[clamp(k as i64, 0, 2)].b"));
            }
            3 => {
                let name = self.result(wide, "n");
                let literal = format!("P {{ a: ({value}) as {scalar}, b: w[i] as {scalar}, c: c as i32 }}");
                self.line(format!("forall i in n {{\n        let own[c in 0..3] = {literal}"));
                self.line(format!("    {name}[i] = own[1].a - own[clamp(k as i64, 0, 2)].b\n    }}"));
            }
            0 => self.line(format!("forall i in n {{ p[i].b = (p[i].a + {value}) as {scalar} }}")),
            1 => self.line(format!("forall i in n {{ p[i].a = (p[i].b * s) as {scalar}\n        p[i].b = ({value}) as {scalar} }}")),
            _ => {
                let (name, zero) = (self.result(wide, "n"), self.literal());
                self.line(format!("{name}[i] = p[i].a * {value} - (p[i + 1].b else {zero})"));
            }
        }
    }

    fn nested(&mut self) {
        let (wide, between, value) = (self.wide, self.term(false, 1), self.term(true, 1));
        let name = self.result(wide, "n, m");
        let range = self.choices.one_of(&["m", "m", "0..min(i + 1, m)", "1..m"]);
        let inner = if self.choices.once_in(3) { "a + (z[i, j] as W)" } else { "a" }.replace('W', wide);
        self.line(format!("forall i in n {{\n        let a = {between}\n        forall j in {range} {{ {name}[i, j] = {inner} - {value} }}\n    }}"));
    }

    fn serial(&mut self) {
        self.serial = true;
        let (wide, start, value) = (self.wide, self.term(false, 1), self.term(true, 1));
        let range =
            self.choices.one_of(&["0..m", "0..m step 2", "1..m", "0..3", "0..5 step 2", "0..7 step 3"]);
        // An index below 3 is none of a column.
        let value = if !range.contains("..m") { self.term(false, 1) } else { value };
        let name = self.result(wide, "n");
        self.line(format!("forall i in n {{\n        var t = {start}\n        var q = s"));
        let second = self.choices.one_of(&["q = t", "q = q + t", "if t > q { q = t }", "q = max(q, t) - 1"]);
        let second = if is_float(wide) { second.replace("- 1", "- 1.0") } else { second.to_string() };
        self.line(format!("    for j in {range} {{ t = {value} - t * s\n            {second} }}"));
        self.line(format!("    {name}[i] = t + q\n    }}"));
    }

    /// An array that is read and changed in turns.
    fn memory(&mut self) {
        let (scalar, wide, value) = (self.scalar, self.wide, self.term(true, 1));
        let name = self.result(wide, "n, m");
        self.line("forall i in n, j in m {");
        match self.choices.below(5) {
            4 => {
                let (first, second) = (self.term(true, 2), self.term(true, 2));
                self.line(format!(
                    "    z[i, j] = ({first}) as {scalar}\n        z[i, j] = ({second} + {value}) as {scalar}"
                ));
                self.line(format!("    {name}[i, j] = {value}"));
            }
            0 => {
                self.line(format!("    {name}[i, j] = z[i, j] + {value}"));
                self.line(format!("    z[i, j] = (z[i, j] * s) as {scalar}"));
            }
            1 => {
                self.line(format!("    let before = z[i, j]\n        z[i, j] = ({value}) as {scalar}"));
                self.line(format!("    {name}[i, j] = z[i, j] - before"));
            }
            2 => {
                self.line("    let before = z[i, j] * s");
                self.line(format!("    for t in 0..3 {{ z[i, j] = (z[i, j] * s + x[i, j]) as {scalar} }}"));
                self.line(format!("    {name}[i, j] = z[i, j] + x[i, j] * s - before"));
            }
            _ => {
                let condition = self.condition(true);
                self.line(format!(
                    "    let before = z[i, j]\n        if {condition} {{ z[i, j] = ({value}) as {scalar} }}"
                ));
                self.line(format!("    {name}[i, j] = z[i, j] * s - before"));
            }
        }
        self.line("}");
    }

    fn product(&mut self) {
        self.serial = true;
        let name = self.result(self.wide, "n, n");
        let term =
            self.choices.one_of(&["x[i, j] * x[l, j]", "s * x[i, j] * x[l, j]", "x[i, j] * v[j] - x[l, j]"]);
        let last = self.choices.one_of(&["", " + w[i]", " - w[l] * s"]);
        self.line(format!("{name}[i, l] = sum(j in m: {term}){last}"));
    }

    /// Operations that almost do nothing.
    fn corner(&mut self) {
        let (wide, value) = (self.wide, self.choices.one_of(&["x[i, j]", "x[i, j]", "(x[i, j] * s)"]));
        let (name, one) = (self.result(wide, "n, m"), if is_float(wide) { "1.0" } else { "1" });
        let forms: &[&str] = if is_float(wide) {
            &["V + 0.0", "V - 0.0", "0.0 + V", "V * 1.0", "V / 4.0", "V / 3.0", "-(-V)", "abs(-V)", "V * 0.0"]
        } else {
            &[
                "V + 0",
                "V * 8 / 4",
                "(V << 2) / 4",
                "0 - (0 - V)",
                "V % 1",
                "V / 1",
                "(V + 3) - 3",
                "V & 0",
                "V / V",
            ]
        };
        let form = self.choices.one_of(forms).replace('V', value);
        self.line(format!("{name}[i, j] = select(i >= 0, {form}, {one})"));
    }

    /// A reduction in a loop that does not depend on all of its names, or on none of them.
    fn invariant(&mut self) {
        let (value, term) = (self.term(true, 2), self.term(true, 2).replace('j', "q"));
        let (wide, operator) = (self.wide, self.choices.one_of(&["-", "+", "*"]));
        let name = self.result(wide, "n, m");
        let fold = self.choices.one_of(&["sum", "max", "min"]);
        let inner = match self.choices.below(6) {
            0 | 1 => format!("{fold}(q in m: {term})"),
            // Of the columns, or of all rows.
            2 => format!("{fold}(q in n: x[q, j])"),
            3 => format!("({fold}(q in m: x[i, q]) {operator} {fold}(q in n: w[q]))"),
            // Of a row that may not be there.
            4 => format!("{fold}(q in m: x[idx[i], q])"),
            // Of numbers that each iteration has of its own.
            _ => {
                self.line("forall i in n, j in m {");
                self.line(format!("    let a[d in 0..18] = {value} + (d as {wide})"));
                self.line(format!(
                    "    {name}[i, j] = {fold}(d in 0..18: a[d]) {operator} min(d in 0..18: a[d])"
                ));
                self.line("}");
                return;
            }
        };
        match self.choices.below(3) {
            0 => self.line(format!("forall i in n, j in m {{ {name}[i, j] = {value} {operator} {inner} }}")),
            1 => self.line(format!(
                "forall i in n {{ forall j in m {{ {name}[i, j] = {value} {operator} {inner} }} }}"
            )),
            _ => {
                let short = self.choices.one_of(&["sum", "min"]);
                self.line(format!("forall j in m, i in n {{ {name}[i, j] = {inner} {operator} {short}(d in 0..3: {value}) }}"));
            }
        }
    }

    /// A temporary of the kernel, which another statement reads.
    fn temporary(&mut self) {
        let (value, wide, number) = (self.term(true, 2), self.wide, self.results.len());
        let operator = self.choices.one_of(&["-", "+", "*"]);
        match self.choices.below(5) {
            0 => {
                let name = self.result(wide, "n, m");
                self.line(format!("let t{number}[i in n, j in m] = {value}"));
                self.line(format!("{name}[i, j] = t{number}[i, j] {operator} w[i]"));
            }
            1 => {
                let name = self.result(wide, "n");
                self.line(format!("let t{number}[i in n, j in m] = {value}"));
                self.line(format!("{name}[i] = max(j: t{number}[i, j] {operator} s)"));
            }
            2 => {
                let name = self.result(wide, "n");
                self.line(format!("let t{number}[i in n] = sum(j in m: {value})"));
                self.line(format!("{name}[i] = t{number}[i] {operator} w[i]"));
            }
            // What it is made of is written before it is read.
            3 => {
                let name = self.result(wide, "n, m");
                self.line(format!("let t{number}[i in n, j in m] = z[i, j] {operator} {value}"));
                self.line("z[i, j] = x[i, j]");
                self.line(format!("{name}[i, j] = t{number}[i, j]"));
            }
            _ => {
                let name = self.result(wide, "n, m");
                self.line(format!("let t{number}[j in m, i in n] = {value}"));
                self.line(format!("{name}[i, j] = t{number}[j, i] {operator} t{number}[m - 1 - j, i]"));
            }
        }
    }

    /// A name for what a reduction reads, before it.
    fn named(&mut self) {
        let (first, term) = (self.term(false, 2), self.term(true, 2));
        let (wide, operator) = (self.wide, self.choices.one_of(&["-", "+", "*"]));
        let fold = self.choices.one_of(&["sum", "max", "min", "argmax"]);
        let ty = if fold == "argmax" { "i64" } else { wide };
        let name = self.result(ty, "n");
        let read = self.choices.one_of(&["w[i]", "z[i, 0]"]);
        self.line("forall i in n {");
        self.line(format!("    let a = {read} {operator} {first}"));
        if read == "z[i, 0]" && self.choices.once_in(2) {
            self.line("    z[i, 0] = w[i]");
        }
        self.line(format!("    {name}[i] = {fold}(j in m: {term} {operator} a)"));
        self.line("}");
    }

    /// A reduction of reductions, of the same operator or of another one.
    fn nested_reductions(&mut self) {
        let (term, wide) = (self.term(true, 2), self.wide);
        let folds = ["sum", "max", "min"];
        let (outer, other) = (self.choices.one_of(&folds), self.choices.one_of(&folds));
        let inner = if self.choices.once_in(3) { other } else { outer };
        let name = self.result(wide, "");
        match self.choices.below(4) {
            0 => self.line(format!("{name} = {outer}(i in n: {inner}(j in m: {term}))")),
            1 => self.line(format!("{name} = {outer}(j in m, i in n: {term})")),
            2 => self.line(format!("{name} = {outer}(i in n: w[i] - {inner}(j in m: {term}))")),
            _ => self.line(format!("{name} = {outer}(i in n: {inner}(j in 0..min(i, m): {term}))")),
        }
    }

    /// Random bits of counters that share a block of the generator, or do not.
    fn random_numbers(&mut self) {
        let name = self.result("u32", "n");
        let start = self.choices.one_of(&["4 * i", "i", "2 * i", "3 * i", "8 * i + 4", "4 * i - 3"]);
        let more = self.choices.one_of(&["1", "2", "3", "5"]);
        self.line(format!("{name}[i] = rand_u32(7u64, {start}) ^ (rand_u32(7u64, {start} + {more}) >> 1)"));
    }

    fn statement(&mut self) {
        match self.choices.below(23) {
            18 => self.corner(),
            19 => self.invariant(),
            20 => self.temporary(),
            21 => self.named(),
            22 => self.nested_reductions(),
            0..=2 => self.reduction(),
            3 => self.several(),
            4 => self.whole(),
            5 | 6 => self.atomics(),
            7 => self.small_array(),
            8 => self.long_array(),
            9 if self.choices.once_in(4) => self.random_numbers(),
            9 => self.gather(),
            10 | 11 => self.stencil(),
            12 => self.short_axis(),
            13 => self.neighbours(),
            14 => self.structs(),
            15 => self.nested(),
            16 => self.serial(),
            17 if self.choices.once_in(2) => self.product(),
            _ => self.memory(),
        }
    }
}

/// The program that a list of choices stands for.
pub fn generate(choices: &[u32]) -> Program {
    of_statements(choices, |forms| forms.statement())
}

/// The same, of reductions of one's own and of statements that depend on their order.
pub fn of_idioms(choices: &[u32]) -> Program {
    of_statements(choices, |forms| forms.idiom())
}

/// The same, of loops at kernel level that change an array in place by what lies around each element.
pub fn of_time_steps(choices: &[u32]) -> Program {
    of_statements(choices, |forms| forms.time_steps())
}

/// The same, of statements over one space.
pub fn of_one_space(choices: &[u32]) -> Program {
    of_statements(choices, |forms| forms.over_one_space())
}

fn of_statements(choices: &[u32], statement: fn(&mut Forms)) -> Program {
    let mut choices = Choices::new(choices);
    let seed = choices.seed();
    let scalar = choices.one_of(&ALL);
    let wide = match scalar {
        "u8" => "u32",
        "i16" => "i32",
        scalar => scalar,
    };
    let fours = choices.once_in(3);
    let dims = vec![
        ("n".to_string(), choices.one_of(&LONG)),
        ("m".to_string(), if fours { choices.one_of(&FOURS) } else { choices.one_of(&SHORT) }),
    ];
    let count = 1 + choices.below(3);
    let unroll = choices.one_of(&["", "", ": 2", ": 3", ": 4", "whole"]);
    let mut forms = Forms {
        choices,
        scalar,
        wide,
        results: Vec::new(),
        items: Vec::new(),
        lines: Vec::new(),
        serial: false,
    };
    for _ in 0..count {
        statement(&mut forms);
    }
    let Forms { results, items: declared, lines, serial, .. } = forms;
    let body: String = lines.iter().map(|line| format!("    {line}\n")).collect();
    let names = [
        ("x", format!("{scalar}[n, m]")),
        ("w", format!("{scalar}[n]")),
        ("v", format!("{scalar}[m]")),
        ("u", format!("{scalar}[4 * n]")),
        ("idx", "i32[n]".to_string()),
        ("z", format!("inout {scalar}[n, m]")),
        ("p", "inout P[n]".to_string()),
        ("flat", format!("inout {scalar}[4 * n]")),
        ("pairs", format!("inout {scalar}[2 * n * m]")),
        ("s", scalar.to_string()),
        ("k", "i32".to_string()),
    ];
    let is_named = |name: &str| {
        let mut words = body.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| word == name)
    };
    // Both dimensions are bound, whatever is read.
    let bound = |name: &str| name == "x" || is_named(name);
    let parameters = names.iter().filter(|(name, _)| bound(name));
    let parameters: Vec<String> = parameters.map(|(name, ty)| format!("{name}: {ty}")).collect();
    let mut items = String::new();
    if is_named("p") || is_named("P") || is_named("TABLE") {
        items = format!("struct P {{ a: {scalar}, b: {scalar}, c: i32 }}\n\n");
    }
    if is_named("TABLE") {
        let elements =
            ["P { a: 3, b: 1, c: 2 }", "P { a: 5, b: 2, c: 7 }", "P { a: 1, b: 4, c: 0 }"].join(", ");
        items.push_str(&format!("const TABLE: P[3] = [{elements}]\n\n"));
    }
    for item in declared {
        items.push_str(&format!("{item}\n\n"));
    }
    let results = if results.is_empty() { String::new() } else { format!(" -> {}", results.join(", ")) };
    let fact = if fours { ", m % 4 == 0" } else { "" };
    let unrolled = match unroll {
        "" => None,
        "whole" => body.contains("d in 0..5").then(|| "unroll d".to_string()),
        factor => serial.then(|| format!("unroll j{factor}")),
    };
    let schedule = unrolled.map_or(String::new(), |said| format!("\nschedule random {{ {said} }}\n"));
    let source = format!(
        "{items}kernel random({}){results} where n >= 1, m >= 1{fact} {{\n{body}}}\n{schedule}",
        parameters.join(", ")
    );
    Program { source, dims, seed }
}

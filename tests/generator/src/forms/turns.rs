//! Statements that depend on their order: arrays changed in place by iterations that touch disjoint sets of elements, results
//! that an iteration reads again, loops over the few elements of an array of its own, and loops that the device ends.

use super::{Forms, is_float};

impl Forms<'_> {
    fn zero(&self) -> &'static str {
        if is_float(self.wide) { "0.0" } else { "0" }
    }

    /// What keeps the numbers of a loop small, where they are floats.
    fn shrunk(&self) -> String {
        if is_float(self.wide) { format!("0.25{} * ", self.wide) } else { String::new() }
    }

    /// Iterations that change an array in place, and read what none of the others writes.
    pub(super) fn disjoint(&mut self) {
        match self.choices.below(4) {
            0 => self.colours(),
            1 => self.exchange(),
            _ => self.butterfly(),
        }
    }

    /// By remainders: each colour reads the others.
    fn colours(&mut self) {
        let (scalar, wide, zero, term) = (self.scalar, self.wide, self.zero(), self.term(true, 2));
        let (colour, count, beside) = self.choices.one_of(&[
            ("(i + j) % 2", 2, ["i, j - 1", "i + 1, j"]),
            ("j % 3", 3, ["i, j - 1", "i, j + 1"]),
            ("i % 2", 2, ["i - 1, j", "i + 1, j"]),
            ("(i + j) & 1", 2, ["i - 1, j", "i, j + 1"]),
            ("(i + 2 * j) % 3", 3, ["i + 1, j", "i, j - 1"]),
        ]);
        let [first, second] = beside;
        let shrunk = self.shrunk();
        let value = format!(
            "{shrunk}((z[{first}] else {zero}) - (z[{second}] else {zero})) + z[i, j] - ({term} as {wide})"
        );
        let assignment = format!("z[i, j] = ({value}) as {scalar}");
        if self.choices.once_in(2) {
            self.line(format!("for c in 0..{count} {{"));
            self.line(format!("    forall i in n, j in m {{ if {colour} == c {{ {assignment} }} }}\n    }}"));
        } else {
            let own = self.choices.below(count);
            self.line(format!("forall i in n, j in m {{ if {colour} == {own} {{ {assignment} }} }}"));
        }
    }

    /// By the exchange of pairs, as in sorting networks: of a row's elements, or of rows.
    fn exchange(&mut self) {
        let (partner, index, end, other) =
            self.choices.one_of(&[("j ^ d", "j", "m", "i, q"), ("i ^ d", "i", "n", "q, j")]);
        let swap = self.choices.one_of(&[
            "z[i, j] = min(a, b)\n                z[OTHER] = max(a, b)",
            "z[i, j] = b\n                z[OTHER] = a",
            "if b > a {\n                    z[i, j] = b\n                    z[OTHER] = a\n                }",
        ]);
        let swap = swap.replace("OTHER", other);
        let guard = self.choices.one_of(&["q > INDEX && q < END", "q < END && INDEX & d == 0"]);
        let guard = guard.replace("INDEX", index).replace("END", end);
        let distance = self.choices.one_of(&["1", "2", "4", "1 << c"]);
        self.line("for c in 0..3 {");
        self.line(format!("    let d: i64 = {distance}"));
        self.line(format!("    forall i in n, j in m {{\n            let q = {partner}"));
        self.line(format!(
            "        if {guard} {{\n                let a = z[i, j]\n                let b = z[{other}]"
        ));
        self.line(format!("            {swap}\n            }}\n        }}\n    }}"));
    }

    /// By digits of flat indices, as in butterflies.
    fn butterfly(&mut self) {
        let (scalar, term) = (self.scalar, self.term(false, 2));
        let operator = self.choices.one_of(&["+", "-", "*"]);
        let (loops, before, low, high, array) = self.choices.one_of(&[
            ("i in n, c in 0..2", "", "4 * i + c", "4 * i + 2 + c", "flat"),
            ("i in n, j in m", "", "2 * i * m + j", "2 * i * m + m + j", "pairs"),
            ("c in 0..n * m", "let q = 2 * (c / m) * m + c % m\n        ", "q", "q + m", "pairs"),
            ("i in 2 * n", "", "2 * i", "2 * i + 1", "flat"),
        ]);
        // A row there may be none of.
        let term = if loops.starts_with("i in n") { term } else { self.literal() };
        self.line(format!("forall {loops} {{\n        {before}let a = {array}[{low}]"));
        self.line(format!("    let b = {array}[{high}] {operator} {term}"));
        self.line(format!("    {array}[{low}] = (a + b) as {scalar}"));
        self.line(format!("    {array}[{high}] = (a - b) as {scalar}\n    }}"));
    }

    /// Results that an iteration has written before, or a statement.
    pub(super) fn own_results(&mut self) {
        let (wide, term, shrunk) = (self.wide, self.term(true, 2), self.shrunk());
        match self.choices.below(4) {
            // Forward substitution.
            0 => {
                let result = self.result(wide, "n, m");
                let factor = self.choices.one_of(&["v[q]", "x[i, q]", "s"]);
                self.line("forall i in n {\n        for j in 0..m {");
                self.line(format!(
                    "        {result}[i, j] = {term} - {shrunk}sum(q in 0..j: {factor} * {result}[i, q])\n        }}\n    }}"
                ));
            }
            // A table of two axes, such as that of the edit distance.
            1 => {
                let (first, second) = (self.literal(), self.literal());
                let result = self.result(wide, "n, m, 4");
                let fold = self.choices.one_of(&["min", "max"]);
                let (up, left) = (format!("{result}[i, j - 1, c]"), format!("{result}[i, j, c - 1]"));
                self.line("forall i in n {\n        for j in 0..m {\n            for c in 0..4 {");
                self.line(format!("            let a = if j > 0 {{ {shrunk}{up} }} else {{ {first} }}"));
                self.line(format!("            let b = if c > 0 {{ {shrunk}{left} }} else {{ {second} }}"));
                self.line(format!("            {result}[i, j, c] = {fold}(a, b) + {term}"));
                self.line("        }\n        }\n    }");
            }
            // From the end.
            2 => {
                let (start, result) = (self.literal(), self.result(wide, "n, m"));
                self.line("forall i in n {");
                self.line(format!("    {result}[i, m - 1] = {start}"));
                self.line(format!(
                    "    for j in m - 2..-1 step -1 {{ {result}[i, j] = {term} - {shrunk}{result}[i, j + 1] }}\n    }}"
                ));
            }
            _ => {
                let (first, second) = (self.result(wide, "n, m"), self.result(wide, "n, m"));
                let (row, operator) =
                    (self.choices.one_of(&["i", "n - 1 - i", "0"]), self.choices.one_of(&["+", "-", "*"]));
                self.line(format!("{first}[i, j] = {term}"));
                self.line(format!("{second}[i, j] = {first}[{row}, m - 1 - j] {operator} {first}[i, j]"));
            }
        }
    }

    /// Constant loops over an array of the iteration's own: a sorting network, a small transform, an early end.
    pub(super) fn constant_loops(&mut self) {
        let (wide, value) = (self.wide, self.term(false, 1));
        let count = self.choices.one_of(&[5, 3, 9, 4]);
        let last = count - 1;
        let result = self.result(wide, "n");
        let step = self.choices.one_of(&["s", "w[i]", "x[i, 0]"]);
        self.line(format!(
            "forall i in n {{\n        var e[c in 0..{count}] = {value} - (c as {wide}) * {step}"
        ));
        if self.choices.once_in(2) {
            let at = self.choices.below(count);
            self.line(format!("    e[{at}] = x[i, 0]"));
        }
        match self.choices.below(4) {
            0 => {
                self.line(format!("    for a in 0..{last} {{\n            for b in a + 1..{count} {{"));
                self.line("            let low = min(e[a], e[b])\n                e[b] = max(e[a], e[b])\n                e[a] = low");
                self.line(format!("        }}\n        }}\n        {result}[i] = e[{}]", count / 2));
            }
            1 => {
                self.line(format!("    for a in {last}..0 step -1 {{\n            for b in 0..a {{"));
                self.line("            if e[b] > e[b + 1] {\n                    let low = e[b + 1]");
                self.line(
                    "                e[b + 1] = e[b]\n                    e[b] = low\n                }",
                );
                self.line(format!("        }}\n        }}\n        {result}[i] = e[0] + e[{last}]"));
            }
            2 => {
                let start = self.literal();
                self.line(format!("    var total = {start}"));
                self.line(format!("    for a in 0..{count} {{\n            for b in 0..{count} {{"));
                self.line(format!("            total += e[b] * (((a * b) % 3) as {wide})"));
                if self.choices.once_in(2) {
                    self.line("            if b > a { break }");
                }
                self.line(format!("        }}\n        }}\n        {result}[i] = total"));
            }
            _ => {
                let bound = self.literal();
                self.line(format!("    var place = {last}\n        for a in 0..{count} {{"));
                self.line(format!("        if e[a] > {bound} {{\n                place = a as i32\n                break\n            }}"));
                self.line(format!(
                    "        e[a] += {step}\n        }}\n        {result}[i] = e[clamp(place, 0, {last})]"
                ));
            }
        }
        self.line("}");
    }

    /// A loop at kernel level that ends where the device says so.
    pub(super) fn device_loop(&mut self) {
        let (wide, scalar, number) = (self.wide, self.scalar, self.results.len());
        let (term, bound, shrunk) = (self.term(true, 2), self.literal(), self.shrunk());
        let turn = format!("turn{number}");
        let fold = self.choices.one_of(&["max", "sum", "min"]);
        let compared = self.choices.one_of(&[">", "<", "!="]);
        let step = format!("z[i, j] = ({shrunk}z[i, j] - {term}) as {scalar}");
        self.line(format!("var {turn} = 0i32"));
        match self.choices.below(4) {
            // A reduction in the condition.
            0 => {
                self.line(format!(
                    "while {turn} < 4 && {fold}(i in n, j in m: z[i, j]) {compared} {bound} {{"
                ));
                self.line(format!("    forall i in n, j in m {{ {step} }}"));
            }
            // A variable that a reduction is assigned to, and an array of the kernel's.
            1 => {
                let (level, own) = (format!("level{number}"), format!("r{number}"));
                self.line(format!("var {own}[i in n]: {scalar} = w[i] as {scalar}"));
                self.line(format!("var {level} = {fold}(i in n: w[i])"));
                self.line(format!("while {level} {compared} {bound} && {turn} < 3 {{"));
                self.line(format!("    let q{number}[i in n] = {shrunk}{own}[i] - {bound}"));
                self.line(format!("    {own}[i] = q{number}[i] as {scalar}"));
                self.line(format!("    {level} = {fold}(i in n: {own}[i])"));
                let result = self.result(wide, "n");
                self.lines.insert(0, format!("{result}[i] = {}", self.zero()));
                self.line(format!("    {result}[i] = {own}[i] + {level}"));
            }
            // Until nothing changes, as in a search by breadth.
            2 => {
                let changed = format!("changed{number}");
                self.line(format!("var {changed} = 1i64\n    while {changed} > 0 && {turn} < 5 {{"));
                self.line(format!(
                    "    let q{number}[i in n, j in m] = max(z[i, j], max((z[i, j - 1] else {bound}), (z[i, j + 1] else {bound})))"
                ));
                self.line(format!("    {changed} = count(i in n, j in m: q{number}[i, j] != z[i, j])"));
                self.line(format!("    z[i, j] = q{number}[i, j] as {scalar}"));
            }
            // An element of an array.
            _ => {
                self.line(format!("while z[0, 0] {compared} {bound} && {turn} < 4 {{"));
                self.line(format!("    forall i in n, j in m {{ {step} }}"));
            }
        }
        self.line(format!("    {turn} += 1\n    }}"));
        let result = self.result("i32", "");
        self.line(format!("{result} = {turn}"));
    }

    /// Turns that change an array in place by what lies around each element, by way of an array of their own.
    pub(super) fn time_steps(&mut self) {
        let (scalar, zero, shrunk, term) = (self.scalar, self.zero(), self.shrunk(), self.term(true, 1));
        let own = format!("q{}", self.lines.len());
        let turns = self.choices.one_of(&["0..3", "0..4", "2..3", "0..5 step 2", "1..8 step 2"]);
        let around = self.choices.one_of(&[
            "(z[i, j - 1] else ZERO) - (z[i + 1, j] else ZERO)",
            "(z[i - 1, j] else ZERO) + (z[i, j + 1] else ZERO)",
            "z[n - 1 - i, j]",
        ]);
        let around = around.replace("ZERO", zero);
        self.line(format!("for t in {turns} {{"));
        match self.choices.below(5) {
            0 => {
                self.line(format!(
                    "    let {own}[i in n, j in m]: {scalar} = ({shrunk}({around}) - {term}) as {scalar}"
                ));
                self.line(format!("    z[i in n, j in 1..m] = {own}[i, j]"));
            }
            1 => {
                self.line(format!(
                    "    let {own}[i in n, j in m - 1]: {scalar} = ({shrunk}(z[i, j + 1] - z[i, j])) as {scalar}"
                ));
                self.line(format!("    forall i in n, j in m - 1 {{ z[i, j + 1] = {own}[i, j] }}"));
            }
            2 | 3 => {
                self.line(format!("    let {own}[i in n, j in m] = {around}"));
                let step = format!("z[i, j] = (z[i, j] - {shrunk}{own}[i, j]) as {scalar}");
                // What an iteration has written, it reads again at times.
                match self.choices.once_in(2) {
                    true => {
                        let result = self.result(self.wide, "n, m");
                        self.line(format!(
                            "    forall i in n, j in m {{\n        {step}\n        {result}[i, j] = z[i, j]\n    }}"
                        ));
                    }
                    false => self.line(format!("    {step}")),
                }
            }
            _ => {
                self.line(format!(
                    "    let {own}[i in n, j in m]: {scalar} = (z[i, j] + {shrunk}({around}) - {term}) as {scalar}"
                ));
                self.line(format!("    z[i, j] = {own}[i, j]"));
            }
        }
        // What another step writes, or reads after.
        match self.choices.below(6) {
            0 => self.line("    z[0, 0] = z[n - 1, m - 1]"),
            1 => self.line("    forall i in n { flat[4 * i] = z[i, 0] }"),
            _ => {}
        }
        self.line("}");
    }

    /// Ranges on the left side.
    pub(super) fn ranges_on_the_left(&mut self) {
        let (wide, value, term) = (self.wide, self.term(false, 1), self.term(true, 2));
        match self.choices.below(3) {
            0 => {
                let result = self.result(wide, "n, 4");
                self.line(format!("{result}[i, c in 0..3] = {value} + (c as {wide})"));
                self.line(format!("{result}[i, 3] = {value}"));
            }
            1 => {
                let result = self.result(wide, "n, m + 1");
                self.line(format!("{result}[i, j in 0..m] = {term}\n    {result}[i, m] = {value}"));
            }
            _ => {
                let result = self.result(wide, "n, m");
                self.line(format!(
                    "{result}[i, 0] = {value}\n    {result}[i, j in 1..m] = {term} - {result}[i, 0]"
                ));
            }
        }
    }

    /// One of the statements of this file, or a reduction of one's own.
    pub(super) fn idiom(&mut self) {
        match self.choices.below(17) {
            0..=7 => self.own(),
            16 => self.time_steps(),
            8 | 9 => self.disjoint(),
            10 => self.own_results(),
            11 | 12 => self.constant_loops(),
            13 | 14 => self.device_loop(),
            _ => self.ranges_on_the_left(),
        }
    }
}

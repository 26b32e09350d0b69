//! Statements over one space, which can be computed together, and axes that can be one; and those that nearly can.

use super::Forms;

impl Forms<'_> {
    pub(super) fn over_one_space(&mut self) {
        match self.choices.below(8) {
            0..=2 => self.rows(),
            3 | 4 => self.columns(),
            5 => self.totals(),
            _ => self.side_by_side(),
        }
    }

    /// Two reductions of a column, of which the second one may need the first, or what is written after it.
    fn columns(&mut self) {
        let wide = self.wide;
        let name = self.result(wide, "m");
        let fold = self.choices.one_of(&["sum", "max", "min"]);
        let operator = self.choices.one_of(&["-", "+", "*"]);
        let other = self.choices.one_of(&["s", "a", "s", "v[j]"]);
        let between = self.choices.once_in(3);
        let array = if between { "z" } else { "x" };
        self.line("forall j in m {");
        self.line(format!("    let a = {fold}(i in n: {array}[i, j])"));
        if between {
            self.line("    forall i in n { z[i, j] = x[i, j] }");
        }
        self.line(format!("    let b = sum(i in n: {array}[i, j] {operator} {other})"));
        self.line(format!("    {name}[j] = a - b\n    }}"));
    }

    /// Rows in several statements: what one writes, the next one reads, of the same row or of another one.
    fn rows(&mut self) {
        let (wide, number, term) = (self.wide, self.results.len(), self.term(true, 2));
        let fold = self.choices.one_of(&["sum", "max", "min"]);
        let operator = self.choices.one_of(&["-", "+", "*"]);
        let row = self.choices.one_of(&["i", "i", "i", "n - 1 - i", "0"]);
        let column = self.choices.one_of(&["j", "j", "m - 1 - j"]);
        match self.choices.below(5) {
            0 => {
                let (first, second) = (self.result(wide, "n"), self.result(wide, "n, m"));
                self.line(format!("let a{number}[i in n] = {fold}(j in m: x[i, j])"));
                self.line(format!("{first}[i] = {fold}(j: (x[i, j] {operator} a{number}[{row}]) * s)"));
                self.line(format!("{second}[i, j] = x[i, j] {operator} a{number}[{row}]"));
            }
            1 => {
                let name = self.result(wide, "n, m");
                self.line(format!("let e{number}[i in n, j in m] = {term} + x[i, j]"));
                self.line(format!("let t{number}[i in n] = {fold}(j in m: e{number}[i, j])"));
                self.line(format!("{name}[i, j] = e{number}[{row}, {column}] {operator} t{number}[i]"));
            }
            2 => {
                let name = self.result(wide, "n, m");
                self.line(format!("z[i, j] = x[i, j] {operator} s"));
                self.line(format!("{name}[i, j] = x[i, j] + z[{row}, {column}]"));
            }
            3 => {
                let name = self.result(wide, "n");
                self.line("forall i in n {");
                self.line(format!("    let a = {fold}(j in m: z[i, j])"));
                self.line("    forall j in m { z[i, j] = x[i, j] }".to_string());
                self.line(format!("    let b = sum(j in m: z[i, j] {operator} s)"));
                self.line(format!("    {name}[i] = a - b\n    }}"));
            }
            _ => {
                let name = self.result(wide, "n");
                self.line("forall i in n {");
                self.line(format!("    let a = {fold}(j in m: x[i, j])"));
                let other = self.choices.one_of(&["s", "s", "a"]);
                self.line(format!("    let b = sum(j in m: x[i, j] {operator} {other})"));
                self.line(format!("    {name}[i] = a - b\n    }}"));
            }
        }
    }

    /// Numbers of a whole array in several statements.
    fn totals(&mut self) {
        let (wide, number) = (self.wide, self.results.len());
        let fold = self.choices.one_of(&["sum", "max", "min"]);
        let operator = self.choices.one_of(&["-", "+", "*"]);
        let name = self.result(wide, "");
        self.line(format!("let a{number} = {fold}(i in n: w[i])"));
        match self.choices.below(3) {
            0 => self.line(format!("{name} = sum(i in n: w[i] {operator} a{number})")),
            1 => self.line(format!("{name} = a{number} {operator} s")),
            _ => self.line(format!("{name} = sum(i in n: w[i] {operator} s)")),
        }
    }

    /// Axes that lie side by side, used as one or not.
    fn side_by_side(&mut self) {
        let wide = self.wide;
        let (outer, inner) =
            self.choices.one_of(&[("n", "m"), ("n", "m"), ("n", "0..m - 1"), ("0..n - 1", "m")]);
        let value = self.choices.one_of(&[
            "x[i, j] * s",
            "x[i, j] * s",
            "x[i, j] - x[i, j] * s",
            "x[i, j] + v[j]",
            "x[i, j] - w[i]",
            "x[i, j] * ((i + j) as W)",
        ]);
        let value = value.replace('W', wide);
        match self.choices.below(3) {
            0 => {
                let name = self.result(wide, "");
                let fold = self.choices.one_of(&["sum", "max", "min"]);
                self.line(format!("{name} = {fold}(i in {outer}, j in {inner}: {value})"));
            }
            1 => {
                let scalar = self.scalar;
                self.line(format!("forall i in {outer}, j in {inner} {{ z[i, j] = ({value}) as {scalar} }}"));
            }
            _ => {
                let name = self.result(wide, "m, n");
                self.line(format!("{name}[j, i] = {value}"));
            }
        }
    }
}

//! Kernels whose iterations hold arrays of their own: filled by one loop, read in one place or in several, searched for
//! their extremes, made of arrays that are changed in between.

use crate::Program;
use crate::choices::Choices;

const ALL: [&str; 8] = ["f32", "i32", "f64", "f16", "u8", "i8", "i64", "bf16"];

struct Locals<'a> {
    choices: Choices<'a>,
    scalar: &'static str,
    /// What results and totals are.
    wide: &'static str,
    /// Arguments, and whether the kernel may change them.
    arguments: Vec<(&'static str, bool)>,
    arrays: Vec<String>,
    lines: Vec<String>,
}

impl Locals<'_> {
    fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    /// An element of an array of the iteration's own, or of an argument's row.
    fn element(&mut self) -> String {
        let at = self.choices.below(self.arguments.len() + self.arrays.len());
        match at.checked_sub(self.arguments.len()) {
            None => format!("{}[i, j]", self.arguments[at].0),
            Some(own) => format!("{}[j]", self.arrays[own]),
        }
    }

    /// A value for each `j`. What the statement writes, `except`, is read at `j` alone.
    fn value(&mut self, except: Option<&str>, depth: usize) -> String {
        let form = if depth > 1 { 0 } else { self.choices.below(8) };
        if let 1..=4 = form {
            let (left, right) = (self.value(except, depth + 1), self.value(except, depth + 1));
            return match form {
                1 => format!("({left} + {right})"),
                2 => format!("({left} - {right})"),
                3 => format!("max({left}, {right})"),
                _ => {
                    let (one, other) = (self.element(), self.element());
                    format!("(if {one} > {other} {{ {left} }} else {{ {right} }})")
                }
            };
        }
        let beside = self.arguments.iter().map(|(name, _)| *name).find(|name| Some(*name) != except);
        match (form, beside) {
            (5, Some(name)) => {
                let step = self.choices.one_of(&["- 1", "+ 1", "+ 3"]);
                let outside = if self.wide == "i64" { "3" } else { "0.5" };
                format!("({name}[i, j {step}] else {outside})")
            }
            _ => self.element(),
        }
    }

    fn array(&mut self, number: usize) {
        let value = self.value(None, 0);
        let rounded = if self.choices.once_in(3) { format!(": {}", self.scalar) } else { String::new() };
        let keyword = if self.choices.once_in(8) { "var" } else { "let" };
        let name = format!("a{number}");
        self.line(format!("{keyword} {name}[j in 0..n]{rounded} = {value}"));
        self.arrays.push(name.clone());
        if keyword == "var" {
            let value = self.value(None, 0);
            self.line(format!("{name}[j] = {value}"));
            if self.choices.once_in(2) {
                self.line(format!("for j in 1..n {{ {name}[j] max= {name}[j - 1] }}"));
            }
        }
    }

    fn reduction(&mut self) {
        let fold = self.choices.one_of(&["sum", "max", "min"]);
        let value = self.value(None, 0);
        self.line(format!("total += ({fold}(j in 0..n: {value})) as {}", self.wide));
    }

    /// Looks for an extreme, and reads what lies there.
    fn search(&mut self, number: usize) {
        let fold = self.choices.one_of(&["argmin", "argmax"]);
        let (searched, place) = (self.element(), format!("p{number}"));
        self.line(format!("let {place} = {fold}(j in 0..n: {searched})"));
        if self.choices.once_in(3) {
            self.change();
        }
        let read = if self.choices.once_in(3) { self.element() } else { searched };
        let read = read.replace("j]", &format!("{place}]"));
        self.line(format!("total += {read} as {0} + {place} as {0}", self.wide));
    }

    /// Changes an argument, where the kernel may.
    fn change(&mut self) {
        let Some(name) = self.arguments.iter().find(|(_, changes)| *changes).map(|(name, _)| *name) else {
            return;
        };
        let value = self.value(Some(name), 0);
        self.line(format!("{name}[i, j] = {value}"));
    }

    fn serial(&mut self) {
        let element = self.element();
        self.line(format!("for j in 0..n {{ total += {element} as {} }}", self.wide));
    }
}

/// The program that a list of choices stands for.
pub fn generate(choices: &[u32]) -> Program {
    let mut choices = Choices::new(choices);
    let seed = choices.seed();
    let scalar = choices.one_of(&ALL);
    let wide = match scalar {
        "f64" => "f64",
        "f32" | "f16" | "bf16" => "f32",
        _ => "i64",
    };
    let mut dims = Vec::new();
    for (name, edges) in [("m", [3, 1, 33, 70]), ("n", [5, 1, 32, 65])] {
        let any = 1 + choices.below(40) as i64;
        let size = if choices.once_in(2) { any } else { choices.one_of(&edges) };
        dims.push((name.to_string(), size));
    }
    let mut arguments = vec![("x", choices.once_in(3))];
    if choices.once_in(2) {
        arguments.push(("w", choices.once_in(3)));
    }
    let statements = 2 + choices.below(6);
    let mut locals = Locals { choices, scalar, wide, arguments, arrays: Vec::new(), lines: Vec::new() };
    locals.array(0);
    for number in 1..=statements {
        match locals.choices.below(8) {
            0..=2 => locals.array(number),
            3 => locals.reduction(),
            4 | 5 => locals.search(number),
            6 => locals.change(),
            _ => locals.serial(),
        }
    }
    let last = locals.value(None, 0);
    let is_nested = locals.choices.once_in(4);
    let Locals { arguments, mut lines, .. } = locals;
    lines.push(format!("z[i, j] = ({last}) as {wide}"));
    let zero = if wide == "i64" { "0" } else { "0.0" };
    // Loops inside of each other, of which the inner one has the arrays.
    let outer = if is_nested { "h, " } else { "" };
    if is_nested {
        dims.push(("h".to_string(), 1 + dims[0].1 % 3));
        lines.iter_mut().for_each(|line| *line = line.replace("[i, ", "[g, i, "));
    }
    let declared = |(name, changes): &(&str, bool)| {
        format!("{name}: {}{scalar}[{outer}m, n]", if *changes { "inout " } else { "" })
    };
    let declared: Vec<String> = arguments.iter().map(declared).collect();
    let body: String = lines.iter().map(|line| format!("        {line}\n")).collect();
    let (open, close) = if is_nested { ("forall g in h { ", " }") } else { ("", "") };
    let row = if is_nested { "g, i" } else { "i" };
    let source = format!(
        "kernel random({}) -> y: {wide}[{outer}m], z: {wide}[{outer}m, n] where n >= 1 {{\n    {open}forall i in m {{\n        \
         var total: {wide} = {zero}\n{body}        y[{row}] = total\n    }}{close}\n}}\n",
        declared.join(", ")
    );
    Program { source, dims, seed }
}

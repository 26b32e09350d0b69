//! Statements of one iteration: the body of a `forall`.

use crate::expressions::Expressions;
use crate::scope::{ArrayName, Element, IndexName, MOST_LOOPS, Scope};
use crate::structs::Structure;
use crate::types::{Extent, NUMBERS, STORED, Stored, Wide};

/// Lines of source, indented.
pub struct Lines {
    pub text: String,
    pub indent: usize,
}

impl Lines {
    pub fn line(&mut self, line: &str) {
        self.text.push_str(&"    ".repeat(self.indent));
        self.text.push_str(line);
        self.text.push('\n');
    }

    pub fn open(&mut self, line: &str) {
        self.line(line);
        self.indent += 1;
    }

    pub fn close(&mut self, line: &str) {
        self.indent -= 1;
        self.line(line);
    }
}

impl Expressions<'_, '_> {
    /// Some statements that declare and change values; the scope gains what they declare.
    pub fn statements(&mut self, lines: &mut Lines, scope: &mut Scope, count: usize, depth: usize) {
        for _ in 0..count {
            self.statement(lines, scope, depth);
        }
    }

    fn statement(&mut self, lines: &mut Lines, scope: &mut Scope, depth: usize) {
        match self.choices.below(10) {
            0 => self.binding(lines, scope),
            1 | 2 => self.variable(lines, scope),
            3 if depth > 0 => self.conditional(lines, scope, depth),
            4 if depth > 0 && scope.loops < MOST_LOOPS => self.sequential(lines, scope, depth),
            5 if depth > 0 && scope.loops < MOST_LOOPS => self.repeated(lines, scope, depth),
            6 => self.local_array(lines, scope),
            7 => self.change_element(lines, scope),
            8 if scope.has_structs => {
                let structure = self.choices.one_of(&[Structure::S, Structure::T]);
                let (name, value) = (self.names.fresh("q"), self.structure(structure, scope, 2));
                let variable = self.choices.once_in(2);
                lines.line(&format!("{} {name} = {value}", if variable { "var" } else { "let" }));
                scope.add_structure(&name, structure, variable);
            }
            9 if self.choices.once_in(2) => self.assertion(lines, scope),
            _ => self.assignment(lines, scope),
        }
    }

    /// One that holds, whatever it is about.
    fn assertion(&mut self, lines: &mut Lines, scope: &Scope) {
        if self.choices.once_in(2) {
            let number = self.expression(Wide::I32, scope, 2);
            return lines.line(&format!("assert ({number} & 7i32) <= 7i32"));
        }
        let (name, condition) = (self.names.fresh("t"), self.expression(Wide::Bool, scope, 2));
        lines.line(&format!("let {name} = {condition}"));
        lines.line(&format!("assert {name} || !{name}"));
    }

    /// The type of a `let` or `var`: a wide one, at times written out, or a narrow one.
    fn annotated(&mut self) -> (String, Stored) {
        let stored = self.choices.one_of(&STORED);
        (format!(": {}", stored.name), stored)
    }

    fn binding(&mut self, lines: &mut Lines, scope: &mut Scope) {
        let (name, (annotation, stored)) = (self.names.fresh("t"), self.annotated());
        let value = self.expression(stored.wide, scope, 3);
        let wide = stored.name == stored.wide.name();
        // The generator's expressions carry their types: a wide one need not be said.
        let annotation = if wide && self.choices.once_in(2) { String::new() } else { annotation };
        lines.line(&format!("let {name}{annotation} = {value}"));
        scope.values.push((name, stored.wide));
    }

    fn variable(&mut self, lines: &mut Lines, scope: &mut Scope) {
        let (name, (annotation, stored)) = (self.names.fresh("v"), self.annotated());
        let value = self.expression(stored.wide, scope, 2);
        if stored.name == stored.wide.name() && stored.wide != Wide::Bool && self.choices.once_in(4) {
            // A literal that takes the type of what the variable is used with.
            let literal = if stored.wide.is_float() { ["2", "0.5", "0"] } else { ["1", "0", "7"] };
            let literal = self.choices.one_of(&literal);
            lines.line(&format!("var {name} = {literal}"));
            let operator = self.choices.one_of(&["=", "+=", "*=", "max="]);
            lines.line(&format!("{name} {operator} {value}"));
        } else {
            lines.line(&format!("var {name}{annotation} = {value}"));
        }
        scope.variables.push((name, stored.wide));
    }

    fn assignment(&mut self, lines: &mut Lines, scope: &Scope) {
        if scope.variables.is_empty() {
            return;
        }
        let at = self.choices.below(scope.variables.len());
        let (name, ty) = scope.variables[at].clone();
        let value = self.expression(ty, scope, 3);
        let operators: &[&str] = match ty {
            Wide::Bool => &["=", "&=", "|=", "^="],
            _ if ty.is_float() => &["=", "+=", "-=", "*=", "min=", "max=", "/="],
            _ => &["=", "+=", "-=", "*=", "min=", "max=", "&=", "|=", "^=", "/=", "%=", "<<=", ">>="],
        };
        let operator = self.choices.one_of(operators);
        // A divisor that is zero at compile time is refused, and so is a shift past the width.
        let value = match operator {
            "/=" | "%=" if ty.is_integer() => self.divisor(ty, scope),
            "<<=" | ">>=" => self.literal_shift(ty, scope, 2),
            _ => value,
        };
        lines.line(&format!("{name} {operator} {value}"));
    }

    /// What a nested block declares ends with it.
    fn nested(&mut self, lines: &mut Lines, scope: &Scope, depth: usize) {
        let mut inner = scope.clone();
        let count = 1 + self.choices.below(2);
        self.statements(lines, &mut inner, count, depth - 1);
        self.assignment(lines, scope);
    }

    /// At times the end of the loop around a branch, as its last statement.
    fn leave(&mut self, lines: &mut Lines, scope: &Scope) -> bool {
        let leaves = scope.in_loop && self.choices.once_in(5);
        if leaves {
            lines.line("break");
        }
        leaves
    }

    /// At times an early end of the loop, and something behind it.
    fn early_end(&mut self, lines: &mut Lines, scope: &Scope) {
        if self.choices.once_in(5) {
            let condition = self.expression(Wide::Bool, scope, 1);
            lines.line(&format!("if {condition} {{ break }}"));
            self.assignment(lines, scope);
        }
    }

    fn conditional(&mut self, lines: &mut Lines, scope: &Scope, depth: usize) {
        let condition = self.expression(Wide::Bool, scope, 2);
        lines.open(&format!("if {condition} {{"));
        self.nested(lines, scope, depth);
        let leaves = self.leave(lines, scope);
        if self.choices.once_in(2) {
            lines.close("} else {");
            lines.indent += 1;
            self.nested(lines, scope, depth);
            // Where both sides end the loop, what follows is never reached, which is refused.
            if !leaves {
                self.leave(lines, scope);
            }
        }
        lines.close("}");
    }

    fn sequential(&mut self, lines: &mut Lines, scope: &Scope, depth: usize) {
        let extent = self.range(scope);
        let name = self.names.fresh("j");
        let step = self.choices.one_of(&["", "", " step 2", " step 3"]);
        let end = extent.text();
        let (range, extent) = match (self.choices.below(8), scope.index_over(extent), scope.indices.last()) {
            (3, Some(outer), _) => (format!("{outer}..{end}"), extent),
            (4, _, Some(outer)) => (format!("{} - 1..{} + 2", outer.name, outer.name), Extent::Other),
            (5, ..) => (format!("0..({} & 7)", self.leaf(Wide::I64, scope)), Extent::Other),
            (6, ..) => (format!("{end} - 1..=0"), extent),
            (7, ..) => (format!("({} & 7)..-1", self.leaf(Wide::I64, scope)), Extent::Other),
            _ => (format!("0..{end}"), extent),
        };
        let step = match (range.ends_with("..=0") || range.ends_with("..-1"), step) {
            (false, step) => step,
            (true, "") => " step -1",
            (true, _) => " step -2",
        };
        lines.open(&format!("for {name} in {range}{step} {{"));
        let mut inner = scope.clone();
        inner.indices.push(IndexName { name, extent });
        inner.loops += 1;
        inner.in_loop = true;
        self.nested(lines, &inner, depth);
        self.early_end(lines, &inner);
        lines.close("}");
    }

    fn repeated(&mut self, lines: &mut Lines, scope: &Scope, depth: usize) {
        // A counter that nothing else changes ends it.
        let counter = self.names.fresh("w");
        let condition = self.expression(Wide::Bool, scope, 2);
        let limit = self.choices.one_of(&[2, 1, 5]);
        lines.line(&format!("var {counter} = 0i32"));
        lines.open(&format!("while ({counter} < {limit}i32) && {condition} {{"));
        lines.line(&format!("{counter} += 1i32"));
        let mut inner = scope.clone();
        inner.loops += 1;
        inner.in_loop = true;
        self.nested(lines, &inner, depth);
        self.early_end(lines, &inner);
        lines.close("}");
    }

    fn local_array(&mut self, lines: &mut Lines, scope: &mut Scope) {
        if scope.loops + 1 > MOST_LOOPS {
            return;
        }
        let mut inner = scope.clone();
        let (mut extents, mut axes) = (Vec::new(), Vec::new());
        loop {
            let (extent, index) = (self.range(scope), self.names.fresh("c"));
            axes.push(format!("{index} in 0..{}", extent.text()));
            extents.push(extent);
            inner.indices.push(IndexName { name: index, extent });
            inner.loops += 1;
            if extents.len() == 2 || inner.loops >= MOST_LOOPS || !self.choices.once_in(3) {
                break;
            }
        }
        let stored = self.choices.one_of(&STORED);
        let name = self.names.fresh("e");
        let value = self.expression(stored.wide, &inner, 2);
        let mutable = self.choices.once_in(2);
        let word = if mutable { "var" } else { "let" };
        lines.line(&format!("{word} {name}[{}]: {} = {value}", axes.join(", "), stored.name));
        let array = ArrayName { name, element: Element::Scalar(stored), extents };
        if mutable {
            scope.mutable_arrays.push(array.clone());
        }
        scope.arrays.push(array);
    }

    /// Changes an element of a local array: one that is surely there.
    fn change_element(&mut self, lines: &mut Lines, scope: &Scope) {
        if scope.mutable_arrays.is_empty() {
            return self.assignment(lines, scope);
        }
        let at = self.choices.below(scope.mutable_arrays.len());
        let array = scope.mutable_arrays[at].clone();
        let Element::Scalar(stored) = array.element else { return };
        let mut subscripts = Vec::new();
        for extent in &array.extents {
            subscripts.push(match (scope.index_over(*extent), extent) {
                (Some(index), _) => index.to_string(),
                (None, Extent::Fixed(4)) if self.choices.once_in(2) => {
                    format!("({} & 3)", self.leaf(Wide::I64, scope))
                }
                (None, Extent::Fixed(extent)) => self.choices.below(*extent as usize).to_string(),
                (None, _) => return,
            });
        }
        let value = self.expression(stored.wide, scope, 2);
        let operator = if NUMBERS.contains(&stored.wide) {
            self.choices.one_of(&["=", "+=", "*=", "max="])
        } else {
            self.choices.one_of(&["=", "|="])
        };
        lines.line(&format!("{}[{}] {operator} {value}", array.name, subscripts.join(", ")));
    }
}

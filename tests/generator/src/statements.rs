//! Statements of one iteration: the body of a `forall`.

use crate::expressions::Expressions;
use crate::scope::{ArrayName, Element, IndexName, MOST_LOOPS, Scope};
use crate::types::{Extent, NUMBERS, STORED, Wide};

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

    fn value_type(&mut self) -> Wide {
        self.choices.one_of(&[Wide::F32, Wide::I32, Wide::Bool, Wide::I64, Wide::U32, Wide::F64, Wide::U64])
    }

    fn statement(&mut self, lines: &mut Lines, scope: &mut Scope, depth: usize) {
        match self.choices.below(9) {
            0 => {
                let (name, ty) = (self.names.fresh("t"), self.value_type());
                let value = self.expression(ty, scope, 3);
                lines.line(&format!("let {name} = {value}"));
                scope.values.push((name, ty));
            }
            1 | 2 => {
                let (name, ty) = (self.names.fresh("v"), self.value_type());
                let value = self.expression(ty, scope, 2);
                lines.line(&format!("var {name}: {} = {value}", ty.name()));
                scope.variables.push((name, ty));
            }
            3 if depth > 0 => self.conditional(lines, scope, depth),
            4 if depth > 0 && scope.loops < MOST_LOOPS => self.sequential(lines, scope, depth),
            5 if depth > 0 && scope.loops < MOST_LOOPS => self.repeated(lines, scope, depth),
            6 => self.local_array(lines, scope),
            7 => self.change_element(lines, scope),
            _ => self.assignment(lines, scope),
        }
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
            _ if ty.is_float() => &["=", "+=", "-=", "*=", "min=", "max="],
            _ => &["=", "+=", "-=", "*=", "min=", "max=", "&=", "|=", "^="],
        };
        let operator = self.choices.one_of(operators);
        lines.line(&format!("{name} {operator} {value}"));
    }

    /// What a nested block declares ends with it.
    fn nested(&mut self, lines: &mut Lines, scope: &Scope, depth: usize) {
        let mut inner = scope.clone();
        let count = 1 + self.choices.below(2);
        self.statements(lines, &mut inner, count, depth - 1);
        self.assignment(lines, scope);
    }

    fn conditional(&mut self, lines: &mut Lines, scope: &Scope, depth: usize) {
        let condition = self.expression(Wide::Bool, scope, 2);
        lines.open(&format!("if {condition} {{"));
        self.nested(lines, scope, depth);
        if self.choices.once_in(2) {
            lines.close("} else {");
            lines.indent += 1;
            self.nested(lines, scope, depth);
        }
        lines.close("}");
    }

    fn sequential(&mut self, lines: &mut Lines, scope: &Scope, depth: usize) {
        let extent = self.range(scope);
        let name = self.names.fresh("j");
        let step = self.choices.one_of(&["", "", " step 2", " step 3"]);
        lines.open(&format!("for {name} in 0..{}{step} {{", extent.text()));
        let mut inner = scope.clone();
        inner.indices.push(IndexName { name, extent });
        inner.loops += 1;
        self.nested(lines, &inner, depth);
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
        self.nested(lines, &inner, depth);
        lines.close("}");
    }

    fn local_array(&mut self, lines: &mut Lines, scope: &mut Scope) {
        if scope.loops + 1 > MOST_LOOPS || scope.loops > 2 {
            return;
        }
        let extent = self.range(scope);
        let stored = self.choices.one_of(&STORED);
        let (name, index) = (self.names.fresh("e"), self.names.fresh("c"));
        let mut inner = scope.clone();
        inner.indices.push(IndexName { name: index.clone(), extent });
        inner.loops += 1;
        let value = self.expression(stored.wide, &inner, 2);
        let mutable = self.choices.once_in(2);
        let word = if mutable { "var" } else { "let" };
        lines.line(&format!("{word} {name}[{index} in 0..{}]: {} = {value}", extent.text(), stored.name));
        let array = ArrayName { name, element: Element::Scalar(stored), extents: vec![extent] };
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
        let (Element::Scalar(stored), [extent]) = (array.element, array.extents.as_slice()) else { return };
        let subscript = match (scope.index_over(*extent), extent) {
            (Some(index), _) => index.to_string(),
            (None, Extent::Fixed(extent)) => self.choices.below(*extent as usize).to_string(),
            (None, Extent::Dim(_)) => return,
        };
        let value = self.expression(stored.wide, scope, 2);
        let operator =
            if NUMBERS.contains(&stored.wide) { self.choices.one_of(&["=", "+=", "*="]) } else { "=" };
        lines.line(&format!("{}[{subscript}] {operator} {value}", array.name));
    }
}

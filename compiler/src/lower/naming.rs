//! The names of values: readable ones for registers and, where a debugger wants them, which definitions they are.

use super::Lowerer;
use super::ranges::Counted;
use crate::check::typed::{Definition, IndexId, LocalId, Moment, Stmt};
use crate::ir::entities::Value;

impl Lowerer<'_> {
    /// Names what a local is from here on. The first name of a value stays: a debugger knows that `let a = b` is `b`.
    pub fn name_local(&mut self, local: LocalId, values: &[Value], by: Option<(&Stmt, Moment)>) {
        let name = &self.typed.locals[local].name;
        let Some(numbers) = &self.numbers else {
            if let [only] = values {
                self.builder.name(*only, name);
            }
            return;
        };
        let Some((statement, moment)) = by else { return };
        let definition = Definition::Local { local, statement: numbers.get(statement), moment };
        self.tag(definition, name, values);
    }

    /// What an assignment gives a local has a name where a debugger asks for it.
    pub fn name_assigned(&mut self, local: LocalId, values: &[Value], statement: &Stmt) {
        if self.numbers.is_some() {
            self.name_local(local, values, Some((statement, Moment::End)));
        }
    }

    /// What a launch finds of a local of the kernel's own level.
    pub fn name_found(&mut self, local: LocalId, values: &[Value]) {
        if self.numbers.is_some() {
            self.tag(Definition::Launch(local), &self.typed.locals[local].name, values);
        }
    }

    /// Lets an index name be what a loop's counter says. A counter that counts something else has the name for reading
    /// alone.
    pub fn bind_index(&mut self, index: IndexId, range: &Counted, counter: Value) {
        let value = self.index_of(range, counter);
        if self.numbers.is_some() {
            if value == counter {
                self.builder.unname(counter);
            }
            self.tag(Definition::Index(index), &self.typed.indices[index].name, &[value]);
        }
        self.indices[index] = Some(value);
    }

    fn tag(&mut self, definition: Definition, name: &str, values: &[Value]) {
        for (leaf, value) in values.iter().enumerate() {
            self.builder.name(*value, &definition.name(name, leaf));
        }
    }
}

//! Builds one entry: registers with readable names, labels, and statements in order.

use super::binding::Binding;
use super::instruction::{Guard, Instruction, Op};
use super::module::{Entry, Loc, Param, Register, Statement, Variable};
use super::names::Names;
use super::operand::{EntryVariable, Label, Operand, ParamId, Reg};
use super::types::{RegClass, Type};
use crate::data::Scalar;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Fills an [`Entry`]. Names are made unique by a counter a hint, so the same calls give the same names.
#[derive(Debug)]
pub struct EntryBuilder {
    entry: Entry,
    names: Names,
    last_loc: Option<Loc>,
}

impl EntryBuilder {
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let names = Names::new(&name);
        EntryBuilder { entry: Entry::new(name), names, last_loc: None }
    }

    /// The entry so far.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The entry so far, for settings that need no builder (bounds, header).
    pub fn entry_mut(&mut self) -> &mut Entry {
        &mut self.entry
    }

    /// Adds a parameter; its name is taken as it is.
    pub fn param(&mut self, param: Param) -> ParamId {
        self.names.reserve(&param.name);
        self.entry.params.push(param)
    }

    /// Declares a `.shared` or `.local` variable; its name is made unique.
    pub fn variable(&mut self, mut variable: Variable) -> EntryVariable {
        variable.name = self.names.give("", &variable.name);
        self.entry.variables.push(variable)
    }

    /// Keeps the names outside of the entry, those of all entries, from being given to anything in it.
    pub fn keep_off(&mut self, outside: Arc<FxHashSet<String>>) {
        self.names.keep_off(outside);
    }

    /// Whether a name is one outside of the entry.
    pub fn is_outside(&self, name: &str) -> bool {
        self.names.is_outside(name)
    }

    /// A new register. `hint` needs no percent sign; what PTX does not allow in names becomes `_`; an empty
    /// hint stands for one or two letters that tell the class.
    pub fn reg(&mut self, class: RegClass, hint: &str) -> Reg {
        let hint = if hint.is_empty() { class_stem(class) } else { hint };
        let name = self.names.give("%", hint);
        self.entry.registers.push(Register { name, class })
    }

    /// A new register of the class that best holds `ty`.
    pub fn reg_for(&mut self, ty: Type, hint: &str) -> Reg {
        self.reg(ty.class(), hint)
    }

    /// A new label, placed later by [`place`](Self::place).
    pub fn label(&mut self, hint: &str) -> Label {
        let name = self.names.give("", hint);
        self.entry.labels.push(name)
    }

    /// Puts a label at the current end of the body.
    pub fn place(&mut self, label: Label) {
        self.entry.body.push(Statement::Label(label));
    }

    /// Appends an instruction.
    pub fn emit(&mut self, op: impl Into<Op>) {
        self.entry.body.push(Statement::Instruction(Instruction::new(op)));
    }

    /// Appends an instruction that takes effect where the guard holds.
    pub fn emit_if(&mut self, guard: impl Into<Guard>, op: impl Into<Op>) {
        self.entry.body.push(Statement::Instruction(Instruction::guarded(guard.into(), op)));
    }

    /// Appends a complete instruction.
    pub fn push(&mut self, instruction: Instruction) {
        self.entry.body.push(Statement::Instruction(instruction));
    }

    /// Appends a comment line; line breaks in `text` make several.
    pub fn comment(&mut self, text: &str) {
        for line in text.lines() {
            self.entry.body.push(Statement::Comment(line.trim_end().to_owned()));
        }
    }

    /// Attaches a comment to the end of the line of the instruction emitted last.
    pub fn remark(&mut self, text: &str) {
        if let Some(Statement::Instruction(instruction)) = self.entry.body.last_mut() {
            instruction.comment = Some(text.replace(['\n', '\r'], " ").trim().to_owned());
        }
    }

    /// Appends a word to the assembler about what follows.
    pub fn pragma(&mut self, text: &str) {
        self.entry.body.push(Statement::Pragma(text.to_owned()));
    }

    /// Appends a blank line, unless the body is empty or ends in one.
    pub fn blank(&mut self) {
        if !matches!(self.entry.body.last(), None | Some(Statement::BlankLine)) {
            self.entry.body.push(Statement::BlankLine);
        }
    }

    /// The instructions that follow come from this place; repeated places print once.
    pub fn loc(&mut self, loc: Loc) {
        if self.last_loc != Some(loc) {
            self.last_loc = Some(loc);
            self.entry.body.push(Statement::Loc(loc));
        }
    }

    /// A name's value is in an operand from here on.
    pub fn bind(&mut self, name: Arc<str>, ty: Scalar, value: Operand) {
        let at = self.entry.body.len() as u32;
        self.entry.bindings.push(Binding { name, ty, at, value });
    }

    /// The finished entry, in canonical form: registers are renumbered class by class.
    pub fn finish(mut self) -> Entry {
        self.entry.canonicalize();
        self.entry
    }
}

/// The letters that nvcc uses for each class.
const fn class_stem(class: RegClass) -> &'static str {
    match class {
        RegClass::Pred => "p",
        RegClass::B16 => "rs",
        RegClass::B32 => "r",
        RegClass::B64 => "rd",
        RegClass::B128 => "rq",
        RegClass::F32 => "f",
        RegClass::F64 => "fd",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_deterministic() {
        let mut builder = EntryBuilder::new("k");
        let names = ["i", "i", "tid", "i", "2x", "π", "i2", ""].map(|hint| {
            let reg = builder.reg(RegClass::B32, hint);
            builder.entry().registers[reg].name.clone()
        });
        assert_eq!(names, ["%i", "%i2", "%tid2", "%i3", "%v2x", "%v_", "%i2_2", "%r"]);
        let label = builder.label("k");
        assert_eq!(builder.entry().labels[label], "k2");
    }
}

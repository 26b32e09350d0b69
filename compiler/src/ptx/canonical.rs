//! The canonical form of an entry: what printing and parsing keep.
//!
//! Registers are numbered class by class, as they are declared in the text; labels in the order in which
//! they are placed. Comments have no line breaks or trailing blanks, and the body neither starts nor ends
//! with a blank line. `parse(print(entry))` is the canonical form of `entry`.

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, packed_option::ReservedValue};

use super::grammar::Slot;
use super::instruction::Instruction;
use super::module::{Entry, Module, Statement, quotable};
use super::operand::{Label, Operand, Reg};

impl Module {
    /// Brings every entry into canonical form.
    pub fn canonicalize(&mut self) {
        tidy_lines(&mut self.header);
        for file in &mut self.files {
            file.name = quotable(&file.name);
        }
        self.entries.iter_mut().for_each(Entry::canonicalize);
    }
}

impl Entry {
    /// Brings the entry into canonical form; its meaning stays.
    pub fn canonicalize(&mut self) {
        tidy_lines(&mut self.header);
        let labels = self.tidy_comments();
        while matches!(self.body.last(), Some(Statement::BlankLine)) {
            self.body.pop();
        }
        let blanks = self.body.iter().take_while(|statement| **statement == Statement::BlankLine).count();
        self.body.drain(..blanks);
        self.move_bindings(|at| at.saturating_sub(blanks as u32));
        let registers = self.order_registers();
        self.rename(labels, registers);
    }

    /// Cuts comments into lines without trailing blanks. Gives the labels in the order of their places, which the same walk
    /// finds.
    fn tidy_comments(&mut self) -> Vec<Label> {
        let wild = |text: &str| text.contains('\n') || text.ends_with(char::is_whitespace);
        let mut lines = false;
        let mut labels = Vec::with_capacity(self.labels.len());
        for statement in &mut self.body {
            match statement {
                Statement::Comment(text) => lines |= wild(text),
                Statement::Instruction(Instruction { comment: Some(comment), .. }) if wild(comment) => {
                    *comment = comment.replace(['\n', '\r'], " ").trim_end().to_owned();
                }
                Statement::Label(label) => labels.push(*label),
                _ => {}
            }
        }
        if lines {
            let body = std::mem::take(&mut self.body);
            let mut places = Vec::with_capacity(body.len() + 1);
            for statement in body {
                places.push(self.body.len() as u32);
                match statement {
                    Statement::Comment(text) => {
                        let mut lines = vec![text];
                        tidy_lines(&mut lines);
                        self.body.extend(lines.into_iter().map(Statement::Comment));
                    }
                    statement => self.body.push(statement),
                }
            }
            places.push(self.body.len() as u32);
            self.move_bindings(|at| places[at as usize]);
        }
        labels
    }

    /// Statements have moved to other places.
    pub(super) fn move_bindings(&mut self, place: impl Fn(u32) -> u32) {
        self.bindings.iter_mut().for_each(|binding| binding.at = place(binding.at));
    }

    /// Orders registers by class; the new number of each, where that changes any.
    fn order_registers(&mut self) -> Option<Vec<Reg>> {
        let mut old: Vec<Reg> = self.registers.keys().collect();
        old.sort_by_cached_key(|reg| self.registers[*reg].class.rank());
        if old.is_sorted() {
            return None;
        }
        let mut new = vec![Reg::default(); old.len()];
        old.iter().enumerate().for_each(|(at, reg)| new[reg.index()] = Reg::new(at));
        self.registers = old.into_iter().map(|reg| self.registers[reg].clone()).collect();
        Some(new)
    }

    /// Names registers and labels by their new numbers. Labels: placed ones first, in the given order of their places; then those
    /// that are only jumped to (an error, which the verifier reports); labels that nobody names go.
    fn rename(&mut self, placed: Vec<Label>, registers: Option<Vec<Reg>>) {
        let mut labels = PrimaryMap::with_capacity(self.labels.len());
        let mut renamed: SecondaryMap<Label, Label> = SecondaryMap::with_default(Label::reserved_value());
        let mut name = |label: &mut Label| {
            if renamed[*label].is_reserved_value()
                && let Some(text) = self.labels.get_mut(*label)
            {
                renamed[*label] = labels.push(std::mem::take(text));
            }
            *label = renamed[*label];
        };
        placed.into_iter().for_each(|mut label| name(&mut label));
        for statement in &mut self.body {
            match statement {
                Statement::Label(label) => name(label),
                Statement::Instruction(Instruction { guard, op, .. }) => {
                    let mut number = |reg: &mut Reg, _| {
                        if let Some(renamed) = &registers {
                            *reg = renamed[reg.index()];
                        }
                    };
                    guard.iter_mut().for_each(|guard| number(&mut guard.reg, false));
                    op.each_operand(|mut slot| match &mut slot {
                        Slot::Label(label) => name(label),
                        slot => slot.each_register(&mut number),
                    });
                }
                _ => {}
            }
        }
        for binding in &mut self.bindings {
            if let (Operand::Reg(reg), Some(renamed)) = (&mut binding.value, &registers) {
                *reg = renamed[reg.index()];
            }
        }
        self.labels = labels;
    }
}

/// Splits lines at line breaks and cuts trailing blanks.
fn tidy_lines(lines: &mut Vec<String>) {
    if lines.iter().any(|line| line.contains('\n') || line.ends_with(char::is_whitespace)) {
        *lines =
            lines.iter().flat_map(|line| line.split('\n')).map(|line| line.trim_end().to_owned()).collect();
    }
}

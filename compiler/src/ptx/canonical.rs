//! The canonical form of an entry: what printing and parsing keep.
//!
//! Registers are numbered class by class, as they are declared in the text; labels in the order in which
//! they are placed. Comments have no line breaks or trailing blanks, and the body neither starts nor ends
//! with a blank line. `parse(print(entry))` is the canonical form of `entry`.

use cranelift_entity::{PrimaryMap, SecondaryMap, packed_option::ReservedValue};

use super::module::{Entry, Module, Statement};
use super::operand::{Label, Reg};
use super::print::{CLASS_ORDER, quotable};

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
        self.tidy_comments();
        while matches!(self.body.last(), Some(Statement::BlankLine)) {
            self.body.pop();
        }
        let blanks = self.body.iter().take_while(|statement| **statement == Statement::BlankLine).count();
        self.body.drain(..blanks);
        self.number_registers();
        self.number_labels();
    }

    fn tidy_comments(&mut self) {
        let wild = |text: &str| text.contains('\n') || text.ends_with(char::is_whitespace);
        if self.body.iter().any(|statement| matches!(statement, Statement::Comment(text) if wild(text))) {
            self.body = std::mem::take(&mut self.body)
                .into_iter()
                .flat_map(|statement| match statement {
                    Statement::Comment(text) => {
                        let mut lines = vec![text];
                        tidy_lines(&mut lines);
                        lines.into_iter().map(Statement::Comment).collect()
                    }
                    statement => vec![statement],
                })
                .collect();
        }
        for statement in &mut self.body {
            if let Statement::Instruction(instruction) = statement
                && let Some(comment) = &mut instruction.comment
                && wild(comment)
            {
                *comment = comment.replace(['\n', '\r'], " ").trim_end().to_owned();
            }
        }
    }

    fn number_registers(&mut self) {
        let rank = |class| CLASS_ORDER.iter().position(|other| *other == class);
        if self.registers.values().is_sorted_by_key(|register| rank(register.class)) {
            return;
        }
        let mut old: Vec<Reg> = self.registers.keys().collect();
        old.sort_by_key(|reg| rank(self.registers[*reg].class));
        let mut registers = PrimaryMap::with_capacity(old.len());
        let mut renamed: SecondaryMap<Reg, Reg> = SecondaryMap::with_default(Reg::reserved_value());
        for reg in old {
            renamed[reg] = registers.push(self.registers[reg].clone());
        }
        self.registers = registers;
        for statement in &mut self.body {
            if let Statement::Instruction(instruction) = statement {
                if let Some(guard) = &mut instruction.guard {
                    guard.reg = renamed[guard.reg];
                }
                instruction.op.each_register_mut(|reg, _| *reg = renamed[*reg]);
            }
        }
    }

    /// Placed labels first, in the order of their places; then those that are only jumped to (an error, which
    /// the verifier reports); labels that nobody names go.
    fn number_labels(&mut self) {
        let mut labels = PrimaryMap::with_capacity(self.labels.len());
        let mut renamed: SecondaryMap<Label, Label> = SecondaryMap::with_default(Label::reserved_value());
        let mut name = |label: &mut Label| {
            if renamed[*label].is_reserved_value()
                && let Some(text) = self.labels.get(*label)
            {
                renamed[*label] = labels.push(text.clone());
            }
            *label = renamed[*label];
        };
        for statement in &mut self.body {
            if let Statement::Label(label) = statement {
                name(label);
            }
        }
        for statement in &mut self.body {
            if let Statement::Instruction(instruction) = statement {
                instruction.op.each_label_mut(&mut name);
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

//! The canonical form of an entry: what printing and parsing keep.
//!
//! Registers are numbered class by class, as they are declared in the text; labels in the order in which
//! they are placed. Comments have no line breaks or trailing blanks, and the body neither starts nor ends
//! with a blank line. `parse(print(entry))` is the canonical form of `entry`.

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, packed_option::ReservedValue};

use super::instruction::Instruction;
use super::module::{Entry, Module, Register, Statement};
use super::operand::{Label, Reg};
use super::print::{CLASS_ORDER, quotable};
use super::types::RegClass;

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
        labels
    }

    /// Orders registers by class; the new number of each, where that changes any.
    fn order_registers(&mut self) -> Option<Vec<Reg>> {
        if self.registers.values().is_sorted_by_key(|register| rank(register.class)) {
            return None;
        }
        // How many registers come before those of each class.
        let mut before = [0; CLASS_ORDER.len() + 1];
        for register in self.registers.values() {
            before[rank(register.class) + 1] += 1;
        }
        for class in 0..CLASS_ORDER.len() {
            before[class + 1] += before[class];
        }
        let mut old = vec![Reg::reserved_value(); self.registers.len()];
        let renamed: Vec<Reg> = self
            .registers
            .iter()
            .map(|(reg, register)| {
                let place = &mut before[rank(register.class)];
                old[*place] = reg;
                *place += 1;
                Reg::new(*place - 1)
            })
            .collect();
        let moved = |reg| {
            let Register { name, class } = &mut self.registers[reg];
            Register { name: std::mem::take(name), class: *class }
        };
        self.registers = old.into_iter().map(moved).collect();
        Some(renamed)
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
            let Instruction { guard, op, .. } = match statement {
                Statement::Instruction(instruction) => instruction,
                Statement::Label(label) => {
                    name(label);
                    continue;
                }
                _ => continue,
            };
            op.each_label_mut(&mut name);
            if let Some(renamed) = &registers {
                if let Some(guard) = guard {
                    guard.reg = renamed[guard.reg.index()];
                }
                op.each_register_mut(|reg, _| *reg = renamed[reg.index()]);
            }
        }
        self.labels = labels;
    }
}

/// The place of a class in the order of declarations.
pub(super) fn rank(class: RegClass) -> usize {
    const RANKS: [u8; CLASS_ORDER.len()] = {
        let mut ranks = [0; CLASS_ORDER.len()];
        let mut at = 0;
        while at < CLASS_ORDER.len() {
            ranks[CLASS_ORDER[at] as usize] = at as u8;
            at += 1;
        }
        ranks
    };
    RANKS[class as usize].into()
}

/// Splits lines at line breaks and cuts trailing blanks.
fn tidy_lines(lines: &mut Vec<String>) {
    if lines.iter().any(|line| line.contains('\n') || line.ends_with(char::is_whitespace)) {
        *lines =
            lines.iter().flat_map(|line| line.split('\n')).map(|line| line.trim_end().to_owned()).collect();
    }
}

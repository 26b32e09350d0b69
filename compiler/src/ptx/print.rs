//! Prints a module as text that a person likes to read; the same module gives the same bytes.
//!
//! ```text
//! // saxpy.krn
//! .version 6.3
//! .target sm_75
//! .address_size 64
//!
//! .visible .entry saxpy(
//!     .param .u64 .ptr .global .align 4 x,
//!     .param .f32 alpha
//! )
//! {
//!     .reg .b32 %i;
//!
//!     mov.u32             %i, %tid.x;  // i
//!     ret;
//! }
//! ```

use std::fmt::{self, Write};

use cranelift_entity::PrimaryMap;

use super::grammar::{Slot, Step, Walk};
use super::instruction::{Guard, Instruction};
use super::module::{Entry, Length, Module, Param, Statement, Variable, quotable};
use super::operand::{Address, Base, Label, ModuleVariable, Operand, PredOperand, Reg, Symbol};
use super::types::{Modifier, RegClass, Space, Type};

/// The column, within the indented line, at which operands start; longer mnemonics push them right.
const OPERAND_COLUMN: usize = 24;

/// The width that lists of register names and of initial values are wrapped to.
const LINE_WIDTH: usize = 100;

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

/// The text of a module.
pub fn print(module: &Module) -> String {
    let entries = module.entries.iter().map(|entry| print_entry(module, entry)).collect();
    print_with(module, entries)
}

/// The text of a module whose entries have been printed.
pub(super) fn print_with(module: &Module, entries: Vec<String>) -> String {
    let mut text = String::with_capacity(1024 + entries.iter().map(String::len).sum::<usize>());
    comments(&mut text, "", &module.header);
    let _ = writeln!(text, ".version {}", module.version);
    let _ = writeln!(text, ".target {}", module.target);
    text.push_str(".address_size 64\n");
    if !module.files.is_empty() {
        text.push('\n');
    }
    for file in &module.files {
        let _ = writeln!(text, ".file {} \"{}\"", file.index, quotable(&file.name));
    }
    if !module.variables.is_empty() {
        text.push('\n');
    }
    for variable in module.variables.values() {
        print_variable(&mut text, "", variable);
    }
    entries.into_iter().for_each(|entry| text.push_str(&entry));
    text
}

/// The text of one entry of a module, with the blank line before it.
pub(super) fn print_entry(module: &Module, entry: &Entry) -> String {
    // Lines are rarely longer, declarations of registers included.
    let mut text = String::with_capacity(64 * entry.body.len());
    text.push('\n');
    push_entry(&mut text, &module.variables, entry);
    text
}

/// The text of one instruction, without indentation, comment or line end.
pub fn print_instruction(
    entry: &Entry,
    variables: &PrimaryMap<ModuleVariable, Variable>,
    instruction: &Instruction,
) -> String {
    let mut line = String::new();
    push_instruction(&mut line, &Names { entry, variables }, instruction);
    line
}

fn comments(text: &mut String, indent: &str, lines: &[String]) {
    for line in lines {
        text.push_str(indent);
        push_comment(text, line);
        text.push('\n');
    }
}

/// The slashes and a line of a comment, without the blanks at its end.
fn push_comment(text: &mut String, line: &str) {
    text.push_str("//");
    let line = line.trim_end();
    if !line.is_empty() {
        text.push(' ');
        text.push_str(line);
    }
}

/// Appends a blank, and more where the text is then shorter than `length` bytes.
fn pad(text: &mut String, length: usize) {
    let blanks = length.saturating_sub(text.len()).max(1);
    text.extend(std::iter::repeat_n(' ', blanks));
}

fn push_entry(text: &mut String, variables: &PrimaryMap<ModuleVariable, Variable>, entry: &Entry) {
    comments(text, "", &entry.header);
    let _ = write!(text, ".visible .entry {}(", entry.name);
    for (index, param) in entry.params.values().enumerate() {
        text.push_str(if index == 0 { "\n    " } else { ",\n    " });
        print_param(text, param);
    }
    text.push_str(if entry.params.is_empty() { ")\n" } else { "\n)\n" });
    for (name, extent) in [(".maxntid", entry.bounds.max), (".reqntid", entry.bounds.required)] {
        if let Some([x, y, z]) = extent {
            let _ = writeln!(text, "{name} {x}, {y}, {z}");
        }
    }
    for (name, value) in
        [(".minnctapersm", entry.bounds.min_blocks_per_sm), (".maxnreg", entry.bounds.max_registers)]
    {
        if let Some(value) = value {
            let _ = writeln!(text, "{name} {value}");
        }
    }
    text.push_str("{\n");
    let start = text.len();
    let mut classes: [Vec<&str>; RegClass::DECLARED.len()] = Default::default();
    for register in entry.registers.values() {
        classes[register.class.rank()].push(&register.name);
    }
    for (class, names) in RegClass::DECLARED.into_iter().zip(classes) {
        print_list(text, &format!("    .reg .{class} "), ";", names.into_iter());
    }
    for variable in entry.variables.values() {
        print_variable(text, "    ", variable);
    }
    if text.len() > start && !entry.body.is_empty() {
        text.push('\n');
    }
    let names = Names { entry, variables };
    entry.body.iter().for_each(|statement| push_statement(text, &names, statement));
    text.push_str("}\n");
}

/// Prints `head a, b, c` and the end, wrapped; nothing where there are no items.
fn print_list<'a>(text: &mut String, head: &str, end: &str, items: impl Iterator<Item = &'a str>) {
    let mut column = 0;
    for item in items {
        let length = item.len();
        if column == 0 {
            text.push_str(head);
            column = head.len();
        } else if column + length + 2 > LINE_WIDTH {
            text.push_str(",\n");
            pad(text, text.len() + head.len());
            column = head.len();
        } else {
            text.push_str(", ");
            column += 2;
        }
        text.push_str(item);
        column += length;
    }
    if column > 0 {
        text.push_str(end);
        text.push('\n');
    }
}

fn print_param(text: &mut String, param: &Param) {
    text.push_str(".param ");
    if let Some(align) = param.align {
        let _ = write!(text, ".align {align} ");
    }
    let _ = write!(text, ".{} ", param.ty);
    if let Some(pointer) = param.pointer {
        text.push_str(".ptr ");
        if pointer.space != Space::Generic {
            let _ = write!(text, ".{} ", pointer.space);
        }
        let _ = write!(text, ".align {} ", pointer.align);
    }
    text.push_str(&param.name);
    if let Length::Array(elements) = param.length {
        let _ = write!(text, "[{elements}]");
    }
}

fn print_variable(text: &mut String, indent: &str, variable: &Variable) {
    text.push_str(indent);
    if variable.external {
        text.push_str(".extern ");
    }
    if variable.visible {
        text.push_str(".visible ");
    }
    let _ = write!(text, ".{} .align {} .{} {}", variable.space, variable.align, variable.ty, variable.name);
    match variable.length {
        Length::Scalar => {}
        Length::Array(elements) => {
            let _ = write!(text, "[{elements}]");
        }
        Length::Unsized => text.push_str("[]"),
    }
    if let Some(bytes) = &variable.init {
        let values = bytes.chunks(variable.ty.bytes() as usize);
        let values: Vec<String> = values.map(|bytes| constant(variable.ty, bytes)).collect();
        match (variable.length, values.as_slice()) {
            (Length::Scalar, [value]) => {
                let _ = write!(text, " = {value}");
            }
            _ => {
                text.push_str(" = {\n");
                let head = format!("{indent}    ");
                print_list(text, &head, "", values.iter().map(String::as_str));
                text.push_str(indent);
                text.push('}');
            }
        }
    }
    text.push_str(";\n");
}

/// An initial value, from its little-endian bytes.
fn constant(ty: Type, bytes: &[u8]) -> String {
    let mut padded = [0u8; 8];
    for (to, from) in padded.iter_mut().zip(bytes) {
        *to = *from;
    }
    let bits = u64::from_le_bytes(padded);
    match ty {
        Type::F32 => format!("0f{bits:08X}"),
        Type::F64 => format!("0d{bits:016X}"),
        Type::S8 => (bits as i8).to_string(),
        Type::S16 => (bits as i16).to_string(),
        Type::S32 => (bits as i32).to_string(),
        Type::S64 => {
            let mut text = String::new();
            push_signed(&mut text, bits as i64);
            text
        }
        Type::B16 | Type::B32 | Type::B64 => format!("0x{bits:0width$x}", width = ty.bytes() as usize * 2),
        _ => bits.to_string(),
    }
}

fn push_signed(text: &mut String, value: i64) {
    // The magnitude of the least value does not fit a signed literal.
    let _ = match value {
        i64::MIN => text.write_str("0x8000000000000000"),
        value => write!(text, "{value}"),
    };
}

/// The guard of an instruction, if it has one.
fn push_guard(text: &mut String, names: &Names<'_>, guard: Option<Guard>) {
    if let Some(Guard { reg, negated }) = guard {
        text.push_str(if negated { "@!" } else { "@" });
        names.push_reg(text, reg);
        text.push(' ');
    }
}

/// The offset of an address.
fn push_offset(text: &mut String, offset: i64) {
    // ptxas reads `+-4`, but not `-4`.
    if offset != 0 {
        let _ = write!(text, "+{offset}");
    }
}

fn push_statement(text: &mut String, names: &Names<'_>, statement: &Statement) {
    match statement {
        Statement::Label(label) => {
            text.push_str(names.label(*label));
            text.push_str(":\n");
        }
        Statement::Instruction(instruction) => {
            text.push_str("    ");
            push_instruction(text, names, instruction);
            text.push(';');
            if let Some(comment) = &instruction.comment {
                text.push_str("  ");
                push_comment(text, comment);
            }
            text.push('\n');
        }
        Statement::Loc(loc) => {
            let _ = writeln!(text, "    .loc {} {} {}", loc.file, loc.line, loc.column);
        }
        Statement::Comment(comment) => comments(text, "    ", std::slice::from_ref(comment)),
        Statement::Pragma(pragma) => {
            let _ = writeln!(text, "    .pragma \"{}\";", quotable(pragma));
        }
        Statement::BlankLine => text.push('\n'),
    }
}

fn push_instruction(line: &mut String, names: &Names<'_>, instruction: &Instruction) {
    let start = line.len();
    push_guard(line, names, instruction.guard);
    let printed = instruction.op.inspect(&mut Printer { line, names, start, words: 0, operands: 0 });
    debug_assert!(printed.is_ok(), "printing cannot fail");
}

/// What things are called.
struct Names<'a> {
    entry: &'a Entry,
    variables: &'a PrimaryMap<ModuleVariable, Variable>,
}

impl<'a> Names<'a> {
    fn push_reg(&self, line: &mut String, reg: Reg) {
        match self.entry.registers.get(reg) {
            Some(register) => line.push_str(&register.name),
            None => line.push_str("%undeclared"),
        }
    }

    fn label(&self, label: Label) -> &'a str {
        self.entry.labels.get(label).map_or("undeclared", String::as_str)
    }

    fn symbol(&self, symbol: Symbol) -> &'a str {
        self.entry.symbol_name(self.variables, symbol).unwrap_or("undeclared")
    }
}

/// The walker that writes what it meets.
struct Printer<'a> {
    line: &'a mut String,
    names: &'a Names<'a>,
    start: usize,
    words: usize,
    operands: usize,
}

impl Printer<'_> {
    fn push_word(&mut self, text: &str) {
        if self.words > 0 {
            self.line.push('.');
        }
        self.words += 1;
        self.line.push_str(text);
    }

    fn list<T>(&mut self, items: &[T], item: impl Fn(&mut Self, &T)) {
        self.line.push('{');
        for (index, value) in items.iter().enumerate() {
            if index > 0 {
                self.line.push_str(", ");
            }
            item(self, value);
        }
        self.line.push('}');
    }

    fn reg(&mut self, reg: Reg) {
        self.names.push_reg(self.line, reg);
    }

    fn offset(&mut self, offset: i64) {
        push_offset(self.line, offset);
    }

    fn source(&mut self, operand: Operand) {
        match operand {
            Operand::Reg(reg) => self.reg(reg),
            Operand::Int(value) => push_signed(self.line, value),
            Operand::F32(bits) => {
                let _ = write!(self.line, "0f{bits:08X}");
            }
            Operand::F64(bits) => {
                let _ = write!(self.line, "0d{bits:016X}");
            }
            Operand::Special(special) => self.line.push_str(special.name()),
            Operand::Symbol(symbol, offset) => {
                self.line.push_str(self.names.symbol(symbol));
                self.offset(offset);
            }
        }
    }

    fn pred(&mut self, pred: PredOperand) {
        if pred.negated {
            self.line.push('!');
        }
        self.reg(pred.reg);
    }

    fn address(&mut self, address: Address) {
        self.line.push('[');
        match address.base {
            Base::Reg(reg) => self.reg(reg),
            Base::Symbol(symbol) => self.line.push_str(self.names.symbol(symbol)),
            Base::Absolute => {
                push_signed(self.line, address.offset);
                self.line.push(']');
                return;
            }
        }
        self.offset(address.offset);
        self.line.push(']');
    }

    /// What stands between the mnemonic and the operands, and between those.
    fn separate(&mut self) {
        if self.operands > 0 {
            self.line.push_str(", ");
        } else {
            pad(self.line, self.start + OPERAND_COLUMN);
        }
        self.operands += 1;
    }
}

impl Walk for Printer<'_> {
    fn word(&mut self, text: &'static str) -> Step {
        self.push_word(text);
        Ok(())
    }

    fn flag(&mut self, text: &'static str, on: &mut bool) -> Step {
        if *on {
            self.push_word(text);
        }
        Ok(())
    }

    fn suffix<M: Modifier>(&mut self, value: &mut Option<M>, _: bool, _: &[M]) -> Step {
        if let Some(value) = value {
            self.push_word(value.text());
        }
        Ok(())
    }

    fn operand(&mut self, slot: Slot<'_>) -> Step {
        self.separate();
        match slot {
            Slot::Write(reg, _) | Slot::WriteWide(reg, _) | Slot::Read(reg, _) => self.reg(*reg),
            Slot::WritePair(reg, _, second) => {
                self.reg(*reg);
                if let Some(second) = second {
                    self.line.push('|');
                    self.reg(*second);
                }
            }
            Slot::WriteVector(regs, _) => match regs.as_slice() {
                [reg] => self.reg(*reg),
                regs => self.list(regs, |printer, reg| printer.reg(*reg)),
            },
            Slot::WriteGroup(regs, _) | Slot::ReadGroup(regs, _) => {
                self.list(regs, |printer, reg| printer.reg(*reg));
            }
            Slot::WriteParts(regs, _) => self.list(regs, |printer, reg| match reg {
                Some(reg) => printer.reg(*reg),
                None => printer.line.push('_'),
            }),
            Slot::Source(operand, _)
            | Slot::SourceRange(operand, _)
            | Slot::SourceSymbol(operand, _)
            | Slot::SourceWide(operand, _)
            | Slot::SourceAny(operand, _) => {
                self.source(*operand);
            }
            Slot::SourceVector(operands, _) => match operands.as_slice() {
                [operand] => self.source(*operand),
                operands => self.list(operands, |printer, operand| printer.source(*operand)),
            },
            Slot::SourceParts(operands, _) => {
                self.list(operands, |printer, operand| printer.source(*operand))
            }
            Slot::Pred(pred) => self.pred(*pred),
            Slot::Address(address, _) => self.address(*address),
            Slot::Number(number, _) => {
                let _ = write!(self.line, "{number}");
            }
            Slot::Label(label) => self.line.push_str(self.names.label(*label)),
        }
        Ok(())
    }
}

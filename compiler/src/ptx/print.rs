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

mod alike;

use std::fmt::{self, Write};

use cranelift_entity::PrimaryMap;

use super::canonical::rank;
use super::digits::{push_hex, push_int};
use super::grammar::{Slot, Step, Walk};
use super::instruction::{Guard, Instruction, Op};
use super::module::{Entry, Length, Module, Param, Statement, Variable};
use super::name::Name;
use super::operand::{Address, Base, Label, ModuleVariable, Operand, PredOperand, Reg, Symbol};
use super::text::Text;
use super::types::{Modifier, RegClass, Space, Type};
use alike::Head;

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
    // Printing walks instructions as one who may change them, though it does not.
    let entries: Vec<String> =
        module.entries.iter().map(|entry| print_entry(module, &mut entry.clone())).collect();
    print_with(module, entries)
}

/// The text of a module whose entries have been printed.
pub(super) fn print_with(module: &Module, entries: Vec<String>) -> String {
    let mut text = Text::with_capacity(1024 + entries.iter().map(String::len).sum::<usize>());
    comments(&mut text, "", &module.header);
    let _ = writeln!(text, ".version {}", module.version);
    let _ = writeln!(text, ".target {}", module.target);
    text.push_str(".address_size 64\n");
    if !module.files.is_empty() {
        text.push_str("\n");
    }
    for file in &module.files {
        let _ = writeln!(text, ".file {} \"{}\"", file.index, quotable(&file.name));
    }
    if !module.variables.is_empty() {
        text.push_str("\n");
    }
    for variable in module.variables.values() {
        print_variable(&mut text, "", variable);
    }
    let mut text = String::from(text);
    entries.into_iter().for_each(|entry| text.push_str(&entry));
    text
}

/// The text of one entry of a module, with the blank line before it. The entry stays as it is.
pub(super) fn print_entry(module: &Module, entry: &mut Entry) -> String {
    // Lines are rarely longer, declarations of registers included.
    let mut text = Text::with_capacity(64 * entry.body.len());
    text.push_str("\n");
    let mut body = std::mem::take(&mut entry.body);
    push_entry(&mut text, &module.variables, entry, &mut body);
    entry.body = body;
    text.into()
}

/// The text of one instruction, without indentation, comment or line end.
pub fn print_instruction(
    entry: &Entry,
    variables: &PrimaryMap<ModuleVariable, Variable>,
    instruction: &Instruction,
) -> String {
    let mut line = Text::default();
    write_instruction(&mut line, &Names { entry, variables }, &mut instruction.clone());
    line.into()
}

fn comments(text: &mut Text, indent: &str, lines: &[String]) {
    for line in lines {
        text.push_str(indent);
        text.push_comment(line);
        text.push_str("\n");
    }
}

/// PTX strings know no escapes: what would end the string early becomes harmless.
pub(crate) fn quotable(name: &str) -> String {
    name.replace('"', "'").replace(['\n', '\r'], " ")
}

/// The classes in the order in which registers are declared.
pub(crate) const CLASS_ORDER: [RegClass; 7] = [
    RegClass::Pred,
    RegClass::B16,
    RegClass::B32,
    RegClass::B64,
    RegClass::B128,
    RegClass::F32,
    RegClass::F64,
];

fn push_entry(
    text: &mut Text,
    variables: &PrimaryMap<ModuleVariable, Variable>,
    entry: &Entry,
    body: &mut [Statement],
) {
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
    let mut classes: [Vec<&Name>; CLASS_ORDER.len()] = Default::default();
    for register in entry.registers.values() {
        classes[rank(register.class)].push(&register.name);
    }
    for (class, names) in CLASS_ORDER.into_iter().zip(classes) {
        print_list(text, &format!("    .reg .{class} "), ";", names.into_iter());
    }
    for variable in entry.variables.values() {
        print_variable(text, "    ", variable);
    }
    if text.len() > start && !body.is_empty() {
        text.push_str("\n");
    }
    let names = Names { entry, variables };
    let (mut head, mut rest) = (None, body);
    loop {
        let alike = head.as_ref().map_or(0, |head: &Head| head.print(text, &names, rest));
        let Some((statement, after)) = rest.get_mut(alike..).and_then(<[_]>::split_first_mut) else { break };
        print_statement(text, &names, &mut head, statement);
        rest = after;
    }
    text.push_str("}\n");
}

/// Prints `head a, b, c` and the end, wrapped; nothing where there are no items.
fn print_list<'a>(text: &mut Text, head: &str, end: &str, items: impl Iterator<Item = &'a Name>) {
    let mut column = 0;
    for item in items {
        let length = item.as_bytes().len();
        if column == 0 {
            text.push_str(head);
            column = head.len();
        } else if column + length + 2 > LINE_WIDTH {
            text.push_str(",\n");
            text.push_blanks(text.len() + head.len());
            column = head.len();
        } else {
            text.push_str(", ");
            column += 2;
        }
        text.push_name(item);
        column += length;
    }
    if column > 0 {
        text.push_str(end);
        text.push_str("\n");
    }
}

fn print_param(text: &mut Text, param: &Param) {
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

fn print_variable(text: &mut Text, indent: &str, variable: &Variable) {
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
        let values: Vec<Name> = values.map(|bytes| constant(variable.ty, bytes).into()).collect();
        match (variable.length, values.as_slice()) {
            (Length::Scalar, [value]) => {
                let _ = write!(text, " = {value}");
            }
            _ => {
                text.push_str(" = {\n");
                let head = format!("{indent}    ");
                print_list(text, &head, "", values.iter());
                text.push_str(indent);
                text.push_str("}");
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
            let mut text = Text::default();
            push_signed(&mut text, bits as i64);
            text.into()
        }
        Type::B16 | Type::B32 | Type::B64 => format!("0x{bits:0width$x}", width = ty.bytes() as usize * 2),
        _ => bits.to_string(),
    }
}

fn push_signed(text: &mut Text, value: i64) {
    // The magnitude of the least value does not fit a signed literal.
    if value == i64::MIN { text.push_str("0x8000000000000000") } else { push_int(text, value) }
}

/// The guard of an instruction, if it has one.
#[inline]
fn push_guard(text: &mut Text, names: &Names<'_>, guard: Option<Guard>) {
    if let Some(Guard { reg, negated }) = guard {
        text.push_str(if negated { "@!" } else { "@" });
        names.push_reg(text, reg);
        text.push_str(" ");
    }
}

/// The offset of an address.
#[inline]
fn push_offset(text: &mut Text, offset: i64) {
    // ptxas reads `+-4`, but not `-4`.
    if offset != 0 {
        text.push_str("+");
        push_int(text, offset);
    }
}

fn print_statement(text: &mut Text, names: &Names<'_>, last: &mut Option<Head>, statement: &mut Statement) {
    match statement {
        Statement::Label(label) => {
            text.push_str(names.label(*label));
            text.push_str(":\n");
        }
        Statement::Instruction(instruction) => {
            let start = text.len();
            text.push_str("    ");
            let operands = write_instruction(text, names, instruction);
            if matches!(instruction.op, Op::Fma(_) | Op::St(_)) && instruction.comment.is_none() {
                *last = text.between(start, operands).and_then(|line| Head::of(instruction, line));
            }
            if let Some(comment) = &instruction.comment {
                text.push_str(";  ");
                text.push_comment(comment);
                text.push_str("\n");
            } else {
                text.push_str(";\n");
            }
        }
        Statement::Loc(loc) => {
            text.push_str("    .loc");
            for number in [loc.file, loc.line, loc.column] {
                text.push_str(" ");
                push_int(text, number.into());
            }
            text.push_str("\n");
        }
        Statement::Comment(comment) => comments(text, "    ", std::slice::from_ref(comment)),
        Statement::Pragma(pragma) => {
            let _ = writeln!(text, "    .pragma \"{}\";", quotable(pragma));
        }
        Statement::BlankLine => text.push_str("\n"),
    }
}

/// Where the operands begin.
fn write_instruction(line: &mut Text, names: &Names<'_>, instruction: &mut Instruction) -> usize {
    let start = line.len();
    push_guard(line, names, instruction.guard);
    let mut printer = Printer { line, names, start, words: 0, operands: None };
    let printed = instruction.op.describe(&mut printer);
    debug_assert!(printed.is_ok(), "printing cannot fail");
    printer.operands.unwrap_or(printer.line.len())
}

/// What things are called.
struct Names<'a> {
    entry: &'a Entry,
    variables: &'a PrimaryMap<ModuleVariable, Variable>,
}

impl<'a> Names<'a> {
    #[inline]
    fn push_reg(&self, line: &mut Text, reg: Reg) {
        match self.entry.registers.get(reg) {
            Some(register) => line.push_name(&register.name),
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
    line: &'a mut Text,
    names: &'a Names<'a>,
    start: usize,
    words: usize,
    /// Where the operands begin.
    operands: Option<usize>,
}

impl Printer<'_> {
    #[inline]
    fn push_word(&mut self, text: &str) {
        if self.words > 0 {
            self.line.push_str(".");
        }
        self.words += 1;
        self.line.push_str(text);
    }

    fn list<T>(&mut self, items: &[T], item: impl Fn(&mut Self, &T)) {
        self.line.push_str("{");
        for (index, value) in items.iter().enumerate() {
            if index > 0 {
                self.line.push_str(", ");
            }
            item(self, value);
        }
        self.line.push_str("}");
    }

    #[inline]
    fn reg(&mut self, reg: Reg) {
        self.names.push_reg(self.line, reg);
    }

    fn offset(&mut self, offset: i64) {
        push_offset(self.line, offset);
    }

    #[inline]
    fn source(&mut self, operand: Operand) {
        match operand {
            Operand::Reg(reg) => self.reg(reg),
            constant => self.constant(constant),
        }
    }

    /// A source that is no register.
    fn constant(&mut self, operand: Operand) {
        match operand {
            Operand::Reg(reg) => self.reg(reg),
            Operand::Int(value) => push_signed(self.line, value),
            Operand::F32(bits) => {
                self.line.push_str("0f");
                push_hex(self.line, bits.into(), 8);
            }
            Operand::F64(bits) => {
                self.line.push_str("0d");
                push_hex(self.line, bits, 16);
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
            self.line.push_str("!");
        }
        self.reg(pred.reg);
    }

    fn address(&mut self, address: Address) {
        self.line.push_str("[");
        match address.base {
            Base::Reg(reg) => self.reg(reg),
            Base::Symbol(symbol) => self.line.push_str(self.names.symbol(symbol)),
            Base::Absolute => {
                push_signed(self.line, address.offset);
                self.line.push_str("]");
                return;
            }
        }
        self.offset(address.offset);
        self.line.push_str("]");
    }

    /// What stands between the mnemonic and the operands, and between those.
    #[inline]
    fn separate(&mut self) {
        if self.operands.is_some() {
            self.line.push_str(", ");
        } else {
            self.line.push_blanks(self.start + OPERAND_COLUMN);
            self.operands = Some(self.line.len());
        }
    }

    /// An operand of the rarer kinds.
    fn other(&mut self, slot: Slot<'_>) {
        match slot {
            Slot::Write(reg, _) | Slot::WriteWide(reg, _) | Slot::Read(reg, _) => self.reg(*reg),
            Slot::WritePair(reg, _, second) => {
                self.reg(*reg);
                if let Some(second) = second {
                    self.line.push_str("|");
                    self.reg(*second);
                }
            }
            Slot::WriteVector(regs, _) => match regs.as_slice() {
                [reg] => self.reg(*reg),
                regs => self.list(regs, |printer, reg| printer.reg(*reg)),
            },
            Slot::WriteParts(regs, _) => self.list(regs, |printer, reg| match reg {
                Some(reg) => printer.reg(*reg),
                None => printer.line.push_str("_"),
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
            Slot::Number(number, _) => push_int(self.line, i64::from(*number)),
            Slot::Label(label) => self.line.push_str(self.names.label(*label)),
        }
    }
}

impl Walk for Printer<'_> {
    #[inline]
    fn word(&mut self, text: &'static str) -> Step {
        self.push_word(text);
        Ok(())
    }

    #[inline]
    fn flag(&mut self, text: &'static str, on: &mut bool) -> Step {
        if *on {
            self.push_word(text);
        }
        Ok(())
    }

    #[inline]
    fn suffix<M: Modifier>(&mut self, value: &mut Option<M>, _: bool, _: &[M]) -> Step {
        if let Some(value) = value {
            self.push_word(value.text());
        }
        Ok(())
    }

    // As part of each description, where it is known what stands there.
    #[inline(always)]
    fn operand(&mut self, slot: Slot<'_>) -> Step {
        self.separate();
        match slot {
            Slot::Write(reg, _) => self.reg(*reg),
            Slot::Source(operand, _) => self.source(*operand),
            other => self.other(other),
        }
        Ok(())
    }
}

//! PTX as data: modules, entries and instructions that print to text, parse back, and run.
//!
//! Selection builds a [`Module`] through [`EntryBuilder`]; the printer turns it into the text that a GPU
//! loads; the parser turns that text back into an equal module; the emulator decodes the same data. No
//! instruction is a string: each family is a struct with typed modifiers (`instruction/`), described in one
//! place that printer, parser and verifier share.

#[cfg(test)]
mod assembly_tests;
pub mod binding;
pub mod builder;
mod canonical;
pub mod dependent;
#[cfg(test)]
mod generate;
pub mod grammar;
pub mod instruction;
pub mod math;
pub mod module;
mod names;
pub mod operand;
pub mod parse;
mod part;
pub mod print;
pub mod select;
pub mod target;
#[cfg(test)]
mod tests;
pub mod types;
pub mod verify;
mod version;

pub use binding::{Binding, Tile};
pub use builder::EntryBuilder;
pub use instruction::{Guard, Instruction, Op};
pub use module::{
    Entry, LabelName, Length, Loc, Module, Param, Pointer, Register, SourceName, Statement, ThreadBounds,
    Variable, Version,
};
pub use operand::{
    Address, Axis, Base, EntryVariable, Label, ModuleVariable, Operand, ParamId, PredOperand, Reg,
    SpecialReg, Symbol,
};
pub use parse::{ParseError, parse};
pub use print::{print, print_instruction};
pub use target::Target;
pub use types::{RegClass, Space, Type};
pub use verify::{Problem, is_identifier, verify};

//! The grammar of every instruction, described once.
//!
//! Each family has one `describe` function that names, in the order of the text, the words of the mnemonic
//! with the values that are legal, the operands with their types, the rules that hold between them, and the
//! target and PTX version that they need. Different walkers run through the same description: the printer
//! writes what it meets, the parser reads it, the verifier checks it, the version computation collects the
//! needs, and the test generator fills it with random choices. None of them can know a syntax that the
//! others do not.

mod arithmetic;
mod control;
mod logic;
mod matrix;
mod memory;
mod warp;

use super::instruction::{Op, Registers, Values};
use super::module::Version;
use super::operand::{Address, Base, Label, Operand, PredOperand, Reg};
use super::types::{Modifier, RegClass, Space, Type};

/// The outcome of a step of a walk; the message says what is wrong, in one sentence.
pub type Step = Result<(), String>;

/// One operand position of an instruction, with what may stand there.
#[derive(Debug)]
pub enum Slot<'a> {
    /// A register that is written.
    Write(&'a mut Reg, Type),
    /// As `Write`; the register may be wider than the type.
    WriteWide(&'a mut Reg, Type),
    /// `d|p`: a register and, where present, a predicate.
    WritePair(&'a mut Reg, Type, &'a mut Option<Reg>),
    /// One register, or `{a, b, …}` as many as the vector has; they may be wider than the type.
    WriteVector(&'a mut Registers, Type),
    /// `{a, _, …}`: the equal parts of a value of the type.
    WriteParts(&'a mut Vec<Option<Reg>>, Type),
    /// `{a, b, …}`, braces around one as well: as many registers as there are, each of exactly that size.
    WriteGroup(&'a mut Registers, Type),
    /// As `WriteGroup`; registers that are read.
    ReadGroup(&'a mut Registers, Type),
    /// A register that is read; no constant.
    Read(&'a mut Reg, Type),
    /// A register or a constant.
    Source(&'a mut Operand, Type),
    /// A 32-bit register, or a constant in that range.
    SourceRange(&'a mut Operand, Range),
    /// A 64-bit register, or the address of a variable in that state space.
    SourceSymbol(&'a mut Operand, Space),
    /// As `Source`; the register may be wider than the type.
    SourceWide(&'a mut Operand, Type),
    /// As `Source`, or a special register, or the address of a variable.
    SourceAny(&'a mut Operand, Type),
    /// One source, or `{a, b, …}` as many as the vector has; registers may be wider than the type.
    SourceVector(&'a mut Values, Type),
    /// `{a, b, …}`: the equal parts of a value of the type.
    SourceParts(&'a mut Vec<Operand>, Type),
    /// `p` or `!p`.
    Pred(&'a mut PredOperand),
    /// `[base + offset]` in that state space.
    Address(&'a mut Address, Space),
    /// A literal number out of those allowed; an empty list allows 0..=255.
    Number(&'a mut u32, &'static [u32]),
    Label(&'a mut Label),
}

/// The constants that an operand may be: `min`, and from there in steps up to `max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub min: u32,
    pub max: u32,
    pub step: u32,
}

impl Range {
    /// From zero to `max`.
    pub(crate) const fn upto(max: u32) -> Range {
        Range { min: 0, max, step: 1 }
    }

    pub const fn contains(self, value: i64) -> bool {
        value >= self.min as i64
            && value <= self.max as i64
            && (value - self.min as i64) % self.step as i64 == 0
    }
}

/// What an instruction needs beyond the oldest target and version that Krn knows (sm_75, PTX 6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Needs {
    /// Compute capability times ten: 80 for `sm_80`.
    pub sm: u32,
    pub version: Version,
}

/// Something that runs through the description of an instruction. By itself it comes to everything and looks at nothing.
pub trait Walk {
    /// Whether this walk fills instructions in (parser, generator), rather than reading them.
    fn fills(&self) -> bool {
        false
    }

    /// A word of the mnemonic that must stand here.
    fn word(&mut self, _text: &'static str) -> Step {
        Ok(())
    }

    /// A word of the mnemonic that may stand here.
    fn flag(&mut self, _text: &'static str, _on: &mut bool) -> Step {
        Ok(())
    }

    /// A word out of a set; required or not.
    fn suffix<M: Modifier>(&mut self, _value: &mut Option<M>, _required: bool, _legal: &[M]) -> Step {
        Ok(())
    }

    /// Whether a further, optional operand is there; `present` says whether the instruction has it.
    fn more(&mut self, present: bool) -> bool {
        present
    }

    /// As [`more`](Self::more), for an optional operand that stands before the last one.
    fn more_before_last(&mut self, present: bool) -> bool {
        present
    }

    /// An operand.
    fn operand(&mut self, _slot: Slot<'_>) -> Step {
        Ok(())
    }

    /// A rule between the parts named so far.
    fn rule(&mut self, _holds: bool, _message: &str) -> Step {
        Ok(())
    }

    /// What the instruction needs of the target.
    fn needs(&mut self, _what: &str, _needs: Needs) -> Step {
        Ok(())
    }

    /// A word that must be one of the legal ones.
    fn choice<M: Modifier>(&mut self, value: &mut M, legal: &[M]) -> Step {
        let mut word = Some(*value);
        self.suffix(&mut word, true, legal)?;
        *value = word.unwrap_or(*value);
        Ok(())
    }

    /// A word that may be absent.
    fn option<M: Modifier>(&mut self, value: &mut Option<M>, legal: &[M]) -> Step {
        self.suffix(value, false, legal)
    }

    /// An operand that may be absent, at the end.
    fn trailing(&mut self, operand: &mut Option<Operand>, range: Range) -> Step {
        if self.more(operand.is_some()) {
            let mut present = operand.unwrap_or_default();
            self.operand(Slot::SourceRange(&mut present, range))?;
            *operand = Some(present);
        } else {
            *operand = None;
        }
        Ok(())
    }
}

/// A family of instructions: one struct, one description.
pub trait Family {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step;
}

/// Shorthand for what a feature needs.
pub(crate) const fn needs(sm: u32, major: u32, minor: u32) -> Needs {
    Needs { sm, version: Version::new(major, minor) }
}

/// Whether a register of that class may hold a value of that type, of exactly its size.
pub fn agrees(class: RegClass, ty: Type) -> bool {
    match class {
        RegClass::Pred => ty == Type::Pred,
        RegClass::F32 => matches!(ty, Type::F32 | Type::B32),
        RegClass::F64 => matches!(ty, Type::F64 | Type::B64),
        _ => ty != Type::Pred && class.bits() == ty.bits(),
    }
}

/// Whether a register of that class may hold a value of that type and be wider, as loads, stores and
/// conversions allow for integers and bits.
pub fn agrees_wide(class: RegClass, ty: Type) -> bool {
    let extends = matches!(class, RegClass::B16 | RegClass::B32 | RegClass::B64);
    agrees(class, ty) || (extends && !ty.is_float() && ty != Type::Pred && class.bits() > ty.bits())
}

/// The type of one of so many equal parts of a value of the type, where registers for it exist.
pub fn part_type(whole: Type, parts: usize) -> Option<Type> {
    match (whole, parts) {
        (Type::B32, 2) | (Type::B64, 4) => Some(Type::B16),
        (Type::B64, 2) | (Type::B128, 4) => Some(Type::B32),
        (Type::B128, 2) => Some(Type::B64),
        _ => None,
    }
}

/// Whether an integer constant fits the type, read as signed or unsigned.
pub fn fits(value: i64, ty: Type) -> bool {
    match ty.bits() {
        64.. => true,
        bits => (-(1i64 << (bits - 1))..1i64 << bits).contains(&value) || (ty == Type::Pred && value == -1),
    }
}

/// Every integer type that arithmetic knows.
pub(crate) const INTEGERS: &[Type] = &[Type::U16, Type::U32, Type::U64, Type::S16, Type::S32, Type::S64];

/// The types of values that can be moved, selected and compared, without the narrow floats.
pub(crate) const PLAIN: &[Type] = &[
    Type::B16,
    Type::B32,
    Type::B64,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F32,
    Type::F64,
];

/// The types that loads and stores know.
pub(crate) const MEMORY: &[Type] = &[
    Type::B8,
    Type::B16,
    Type::B32,
    Type::B64,
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S8,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F32,
    Type::F64,
];

/// Whether this is a 16-bit float, or two of them.
pub(crate) const fn is_narrow(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2)
}

/// Whether this is `bf16`, or two of them.
pub(crate) const fn is_bf16(ty: Type) -> bool {
    matches!(ty, Type::Bf16 | Type::Bf16x2)
}

impl Op {
    /// Runs a walker through the description of this instruction.
    pub fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        macro_rules! dispatch {
            ($($name:ident)*) => {
                match self { $(Op::$name(op) => op.describe(walk)),* }
            };
        }
        crate::ptx::instruction::with_families!(dispatch)
    }

    /// As [`describe`](Self::describe), for walkers that read the instruction and leave it as it is.
    pub fn inspect<W: Walk>(&self, walk: &mut W) -> Step {
        self.clone().describe(walk)
    }

    /// A blank instruction of every family, for the parser and the generator to fill in.
    pub fn templates() -> Vec<Op> {
        macro_rules! templates {
            ($($name:ident)*) => {
                vec![$(Op::$name(Default::default())),*]
            };
        }
        crate::ptx::instruction::with_families!(templates)
    }
}

/// A walker that only looks at operands. One for all who look: all descriptions would be compiled for each.
struct Operands<'f>(&'f mut dyn FnMut(Slot<'_>));

impl Walk for Operands<'_> {
    fn operand(&mut self, slot: Slot<'_>) -> Step {
        (self.0)(slot);
        Ok(())
    }
}

impl Slot<'_> {
    /// Calls `visit` with every register that stands here, and whether it is written.
    pub(crate) fn each_register(&mut self, visit: &mut impl FnMut(&mut Reg, bool)) {
        let mut read = |operand: &mut Operand| {
            if let Operand::Reg(reg) = operand {
                visit(reg, false);
            }
        };
        match self {
            Slot::Source(operand, _)
            | Slot::SourceRange(operand, _)
            | Slot::SourceSymbol(operand, _)
            | Slot::SourceWide(operand, _)
            | Slot::SourceAny(operand, _) => read(operand),
            Slot::SourceVector(operands, _) => operands.iter_mut().for_each(read),
            Slot::SourceParts(operands, _) => operands.iter_mut().for_each(read),
            Slot::Write(reg, _) | Slot::WriteWide(reg, _) => visit(reg, true),
            Slot::WritePair(reg, _, second) => {
                visit(reg, true);
                second.iter_mut().for_each(|second| visit(second, true));
            }
            Slot::WriteVector(regs, _) | Slot::WriteGroup(regs, _) => {
                regs.iter_mut().for_each(|reg| visit(reg, true));
            }
            Slot::ReadGroup(regs, _) => regs.iter_mut().for_each(|reg| visit(reg, false)),
            Slot::WriteParts(regs, _) => regs.iter_mut().flatten().for_each(|reg| visit(reg, true)),
            Slot::Read(reg, _) => visit(reg, false),
            Slot::Pred(pred) => visit(&mut pred.reg, false),
            Slot::Address(address, _) => {
                if let Base::Reg(reg) = &mut address.base {
                    visit(reg, false);
                }
            }
            Slot::Number(..) | Slot::Label(_) => {}
        }
    }
}

impl Op {
    /// Calls `visit` with every operand, in the order of the text.
    pub(crate) fn each_operand(&mut self, mut visit: impl FnMut(Slot<'_>)) {
        let walked = self.describe(&mut Operands(&mut visit));
        debug_assert!(walked.is_ok(), "looking at operands cannot fail");
    }

    /// Calls `visit` with every register that the instruction names, and whether it is written.
    pub fn each_register(&self, mut visit: impl FnMut(Reg, bool)) {
        let mut visit = |reg: &mut Reg, written: bool| visit(*reg, written);
        self.clone().each_operand(|mut slot| slot.each_register(&mut visit));
    }
}

//! The walker that checks one instruction: registers, constants, addresses, modifiers and what the target knows.

use crate::ptx::grammar::{Needs, Slot, Step, Walk, agrees, agrees_wide, fits, part_type};
use crate::ptx::module::{Entry, Module, Register, Version};
use crate::ptx::operand::{Address, Base, Label, Operand, Reg, Symbol};
use crate::ptx::target::Target;
use crate::ptx::types::{Modifier, RegClass, Space, Type};
use rustc_hash::{FxHashMap, FxHashSet};

/// The walker that checks what it meets.
pub(super) struct Checker<'m> {
    pub module: &'m Module,
    pub entry: &'m Entry,
    pub target: Option<&'m Target>,
    /// The lowest version that knows what it has met.
    pub lowest: Version,
    /// What the instruction needs that the target has not: what for, and which target has it.
    pub missing: Vec<(String, u32)>,
    /// The statement that it is at.
    pub at: usize,
    pub written: FxHashSet<Reg>,
    /// Registers that are read, each with the first statement that does.
    pub first_read: FxHashMap<Reg, usize>,
    /// Labels that are jumped to, and the statements that do.
    pub jumped: FxHashSet<(Label, usize)>,
}

impl<'m> Checker<'m> {
    /// For the instructions of an entry, none of which it has seen.
    pub fn new(module: &'m Module, entry: &'m Entry, target: Option<&'m Target>) -> Self {
        Self {
            module,
            entry,
            target,
            lowest: Version::new(1, 0),
            missing: Vec::new(),
            at: 0,
            written: FxHashSet::default(),
            first_read: FxHashMap::default(),
            jumped: FxHashSet::default(),
        }
    }

    /// Notes the registers and the label that an operand names.
    pub fn note(&mut self, slot: &mut Slot<'_>) {
        if let Slot::Label(label) = slot {
            self.jumped.insert((**label, self.at));
        }
        slot.each_register(&mut |reg, is_written| {
            if is_written {
                self.written.insert(*reg);
            } else {
                self.first_read.entry(*reg).or_insert(self.at);
            }
        });
    }

    /// The class of a register, where it is declared.
    pub fn class(&self, reg: Reg) -> Option<RegClass> {
        self.entry.registers.get(reg).map(|register| register.class)
    }

    fn reg(&self, reg: Reg, ty: Type, wide: bool) -> Step {
        let class = self.class(reg);
        let suits = |class| if wide { agrees_wide(class, ty) } else { agrees(class, ty) };
        if class.is_some_and(suits) { Ok(()) } else { Err(self.misfit(reg, ty)) }
    }

    /// Why a register does not fit a type.
    fn misfit(&self, reg: Reg, ty: Type) -> String {
        match self.entry.registers.get(reg) {
            Some(Register { name, class }) => {
                format!("`{name}` is a .{class} register, which cannot hold .{ty}")
            }
            None => "a register that is not declared".to_owned(),
        }
    }

    fn source(&self, operand: Operand, ty: Type, wide: bool) -> Step {
        match operand {
            Operand::Reg(reg) => self.reg(reg, ty, wide),
            Operand::Int(value) if !ty.is_float() && ty != Type::B128 => {
                if fits(value, ty) {
                    Ok(())
                } else {
                    Err(format!("{value} does not fit .{ty}"))
                }
            }
            Operand::F32(_) if matches!(ty, Type::F32 | Type::B32) => Ok(()),
            Operand::F64(_) if matches!(ty, Type::F64 | Type::B64) => Ok(()),
            Operand::Int(_) | Operand::F32(_) | Operand::F64(_) => {
                Err(format!("this kind of constant cannot be a .{ty}"))
            }
            Operand::Special(special) => {
                Err(format!("the special register `{}` can only be read by mov", special.name()))
            }
            Operand::Symbol(..) => Err("the address of a variable can only be taken by mov".to_owned()),
        }
    }

    /// A source that may also be a special register or the address of a variable.
    fn any_source(&self, operand: Operand, ty: Type) -> Step {
        match operand {
            Operand::Special(special) if ty.bits() == special.bits() && !ty.is_float() => Ok(()),
            Operand::Special(special) => {
                Err(format!("`{}` has {} bits, which .{ty} cannot hold", special.name(), special.bits()))
            }
            Operand::Symbol(symbol, _) => {
                let space = self.symbol_space(symbol)?;
                let near = matches!(space, Space::Shared | Space::Local | Space::Const);
                match ty {
                    Type::U64 | Type::S64 | Type::B64 => Ok(()),
                    Type::U32 | Type::S32 | Type::B32 if near => Ok(()),
                    _ => Err(format!("an address in .{space} space does not fit .{ty}")),
                }
            }
            operand => self.source(operand, ty, false),
        }
    }

    fn symbol_space(&self, symbol: Symbol) -> Result<Space, String> {
        let variable = match symbol {
            Symbol::Param(param) => {
                return self.entry.params.get(param).map(|_| Space::Param).ok_or_else(undeclared);
            }
            Symbol::Entry(variable) => self.entry.variables.get(variable),
            Symbol::Module(variable) => self.module.variables.get(variable),
        };
        variable.map(|variable| variable.space).ok_or_else(undeclared)
    }

    fn address(&self, address: Address, space: Space) -> Step {
        match address.base {
            Base::Reg(reg) => {
                let near = !matches!(space, Space::Global | Space::Generic);
                self.reg(reg, Type::B64, false).or_else(|error| {
                    // Shared, local and constant addresses fit 32 bits.
                    if near { self.reg(reg, Type::B32, false) } else { Err(error) }
                })
            }
            Base::Symbol(symbol) => {
                let of = self.symbol_space(symbol)?;
                let same = of == space
                    || space == Space::Generic
                    || (of == Space::Shared && space == Space::SharedCluster);
                if same { Ok(()) } else { Err(format!("the address is in .{of} space, not .{space}")) }
            }
            Base::Absolute => Ok(()),
        }
    }

    /// The registers of a vector must be of one class, even where each may be wider than the type.
    fn same_class(&self, regs: impl Iterator<Item = Reg>) -> Step {
        let mut classes = regs.map(|reg| self.class(reg));
        let first = classes.next();
        if classes.all(|class| Some(class) == first) {
            Ok(())
        } else {
            Err("the registers of a vector are of different classes".to_owned())
        }
    }

    fn part(&self, whole: Type, parts: usize) -> Result<Type, String> {
        part_type(whole, parts).ok_or_else(|| format!("{parts} parts do not make a .{whole}"))
    }
}

fn not_allowed(word: &str) -> String {
    format!("`.{word}` is not allowed there")
}

fn undeclared() -> String {
    "a variable that is not declared".to_owned()
}

impl Walk for Checker<'_> {
    fn suffix<M: Modifier>(&mut self, value: &mut Option<M>, required: bool, legal: &[M]) -> Step {
        match value {
            None if required => Err("a modifier is missing".to_owned()),
            Some(word) if !legal.contains(word) => Err(not_allowed(word.text())),
            _ => Ok(()),
        }
    }

    fn operand(&mut self, mut slot: Slot<'_>) -> Step {
        self.note(&mut slot);
        match slot {
            Slot::Write(reg, ty) | Slot::Read(reg, ty) => self.reg(*reg, ty, false),
            Slot::WriteWide(reg, ty) => self.reg(*reg, ty, true),
            Slot::WritePair(reg, ty, second) => {
                self.reg(*reg, ty, false)?;
                second.as_ref().map_or(Ok(()), |second| self.reg(*second, Type::Pred, false))
            }
            Slot::WriteVector(regs, ty) => {
                if regs.iter().enumerate().any(|(at, reg)| regs[..at].contains(reg)) {
                    return Err("the same register is written twice".to_owned());
                }
                self.same_class(regs.iter().copied())?;
                regs.iter().try_for_each(|reg| self.reg(*reg, ty, true))
            }
            Slot::WriteGroup(regs, ty) => {
                if regs.iter().enumerate().any(|(at, reg)| regs[..at].contains(reg)) {
                    return Err("the same register is written twice".to_owned());
                }
                regs.iter().try_for_each(|reg| self.reg(*reg, ty, false))
            }
            Slot::ReadGroup(regs, ty) => regs.iter().try_for_each(|reg| self.reg(*reg, ty, false)),
            Slot::WriteParts(parts, whole) => {
                let part = self.part(whole, parts.len())?;
                parts.iter().flatten().try_for_each(|reg| self.reg(*reg, part, false))
            }
            Slot::Source(operand, ty) => self.source(*operand, ty, false),
            Slot::SourceRange(operand, range) => match *operand {
                Operand::Int(value) if range.contains(value) => Ok(()),
                Operand::Int(value) => {
                    Err(format!("{value} is not in {}..={} by steps of {}", range.min, range.max, range.step))
                }
                operand => self.source(operand, Type::U32, false),
            },
            Slot::SourceSymbol(operand, space) => match *operand {
                Operand::Reg(reg) => self.reg(reg, Type::U64, false),
                Operand::Symbol(symbol, _) => {
                    let of = self.symbol_space(symbol)?;
                    if of == space {
                        Ok(())
                    } else {
                        Err(format!("the variable is in .{of} space, not .{space}"))
                    }
                }
                _ => Err("expected a register or a variable".to_owned()),
            },
            Slot::SourceWide(operand, ty) => self.source(*operand, ty, true),
            Slot::SourceAny(operand, ty) => self.any_source(*operand, ty),
            Slot::SourceVector(operands, ty) => {
                self.same_class(operands.iter().filter_map(|operand| operand.reg()))?;
                operands.iter().try_for_each(|operand| self.source(*operand, ty, true))
            }
            Slot::SourceParts(parts, whole) => {
                let part = self.part(whole, parts.len())?;
                parts.iter().try_for_each(|operand| self.source(*operand, part, false))
            }
            Slot::Pred(pred) => self.reg(pred.reg, Type::Pred, false),
            Slot::Address(address, space) => self.address(*address, space),
            Slot::Number(number, legal) => {
                let allowed = if legal.is_empty() { *number <= 255 } else { legal.contains(number) };
                if allowed { Ok(()) } else { Err(format!("{number} is not allowed there")) }
            }
            Slot::Label(label) => {
                if self.entry.labels.is_valid(*label) {
                    Ok(())
                } else {
                    Err("a label that is not declared".to_owned())
                }
            }
        }
    }

    fn rule(&mut self, holds: bool, message: &str) -> Step {
        if holds { Ok(()) } else { Err(message.to_owned()) }
    }

    fn needs(&mut self, what: &str, needs: Needs) -> Step {
        self.lowest = self.lowest.max(needs.version);
        if self.target.is_some_and(|target| target.sm < needs.sm) {
            self.missing.push((what.to_owned(), needs.sm));
        }
        Ok(())
    }
}

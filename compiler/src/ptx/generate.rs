//! Random modules for tests: the grammar itself, walked with dice.
//!
//! Because the generator runs through the same descriptions as the printer and the parser, a family that is
//! added is covered without a word here.

use super::builder::EntryBuilder;
use super::grammar::{Needs, Slot, Step, Walk, agrees, agrees_wide, part_type};
use super::instruction::{Guard, Instruction, Op};
use super::module::{Entry, Length, Loc, Module, Param, Statement, Variable, Version};
use super::operand::{Address, Base, Label, Operand, PredOperand, Reg, SpecialReg, Symbol};
use super::types::{Modifier, RegClass, Space, Type};
use std::sync::Arc;

/// A small, fixed sequence of dice (SplitMix64): the same seed gives the same module on every machine.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
}

/// What a generated instruction may refer to.
pub struct Ground<'a> {
    pub builder: &'a EntryBuilder,
    pub labels: &'a [Label],
    /// Variables and parameters by state space.
    pub symbols: &'a [(Space, Symbol)],
}

/// The walker that fills an instruction with random, legal choices.
struct Generator<'a> {
    dice: &'a mut Dice,
    ground: &'a Ground<'a>,
    needs: Needs,
}

/// A random legal instruction of the template's family, with what it needs; `None` if the dice broke a rule.
pub fn fill(template: &Op, dice: &mut Dice, ground: &Ground<'_>) -> Option<(Op, Needs)> {
    let mut op = template.clone();
    let mut generator = Generator { dice, ground, needs: Needs { sm: 75, version: Version::new(6, 3) } };
    op.describe(&mut generator).ok()?;
    let needs = generator.needs;
    Some((op, needs))
}

impl Generator<'_> {
    fn reg(&mut self, suits: impl Fn(RegClass) -> bool) -> Result<Reg, String> {
        let registers = &self.ground.builder.entry().registers;
        let fit: Vec<Reg> = registers.keys().filter(|reg| suits(registers[*reg].class)).collect();
        if fit.is_empty() { Err("no register of that class".to_owned()) } else { Ok(self.dice.pick(&fit)) }
    }

    /// The class of a register that suits.
    fn class(&mut self, suits: impl Fn(RegClass) -> bool) -> Result<RegClass, String> {
        let reg = self.reg(suits)?;
        Ok(self.ground.builder.entry().registers[reg].class)
    }

    fn distinct(
        &mut self,
        count: usize,
        suits: impl Fn(RegClass) -> bool + Copy,
    ) -> Result<Vec<Reg>, String> {
        let mut regs = Vec::new();
        while regs.len() < count {
            let reg = self.reg(suits)?;
            if !regs.contains(&reg) {
                regs.push(reg);
            } else if self.dice.chance(64) {
                return Err("not enough registers".to_owned());
            }
        }
        Ok(regs)
    }

    fn source(&mut self, ty: Type, wide: bool) -> Result<Operand, String> {
        let constant = ty != Type::Pred && ty != Type::B128 && self.dice.chance(4);
        match ty {
            Type::F32 if constant => Ok(Operand::F32(self.dice.next() as u32)),
            Type::F64 if constant => Ok(Operand::F64(self.dice.next())),
            _ if constant && !ty.is_float() => {
                let bits = ty.bits().min(63);
                let value = (self.dice.next() & ((1 << bits) - 1)) as i64;
                Ok(Operand::Int(if self.dice.chance(2) && ty.is_signed() {
                    -(value >> 1)
                } else {
                    value >> 1
                }))
            }
            _ => {
                let suits = |class| if wide { agrees_wide(class, ty) } else { agrees(class, ty) };
                self.reg(suits).map(Operand::Reg)
            }
        }
    }

    /// A small constant where ptxas checks the range, or a register.
    fn address(&mut self, space: Space) -> Result<Address, String> {
        let symbols: Vec<Symbol> =
            self.ground.symbols.iter().filter(|(of, _)| *of == space).map(|(_, symbol)| *symbol).collect();
        let offset = if self.dice.chance(2) { 0 } else { 16 * (self.dice.below(8) as i64) };
        if space == Space::Param || (!symbols.is_empty() && self.dice.chance(2)) {
            let symbol = self.dice.pick(&symbols);
            return Ok(Address {
                base: Base::Symbol(symbol),
                offset: if space == Space::Param { 0 } else { offset },
            });
        }
        let reg = self.reg(|class| class == RegClass::B64)?;
        Ok(Address { base: Base::Reg(reg), offset: if self.dice.chance(2) { offset } else { -offset } })
    }
}

impl Walk for Generator<'_> {
    fn fills(&self) -> bool {
        true
    }

    fn word(&mut self, _: &'static str) -> Step {
        Ok(())
    }

    fn flag(&mut self, text: &'static str, on: &mut bool) -> Step {
        // The long spellings of barriers are read, never written.
        *on = !matches!(text, "cta" | "aligned") && self.dice.chance(3);
        Ok(())
    }

    fn suffix<M: Modifier>(&mut self, value: &mut Option<M>, required: bool, legal: &[M]) -> Step {
        *value = (required || self.dice.chance(3)).then(|| self.dice.pick(legal));
        Ok(())
    }

    fn more(&mut self, _: bool) -> bool {
        self.dice.chance(2)
    }

    fn more_before_last(&mut self, _: bool) -> bool {
        self.dice.chance(2)
    }

    fn operand(&mut self, slot: Slot<'_>) -> Step {
        match slot {
            Slot::Write(reg, ty) | Slot::Read(reg, ty) => *reg = self.reg(|class| agrees(class, ty))?,
            Slot::WriteWide(reg, ty) => *reg = self.reg(|class| agrees_wide(class, ty))?,
            Slot::WritePair(reg, ty, second) => {
                *reg = self.reg(|class| agrees(class, ty))?;
                *second = None;
                if self.dice.chance(2) {
                    let other = self.reg(|class| class == RegClass::Pred)?;
                    *second = (other != *reg).then_some(other);
                }
            }
            Slot::WriteVector(regs, ty) => {
                let class = self.class(|class| agrees_wide(class, ty))?;
                *regs = self.distinct(regs.len(), |other| other == class)?.into();
            }
            Slot::WriteGroup(regs, ty) => {
                *regs = self.distinct(regs.len(), |class| agrees(class, ty))?.into();
            }
            Slot::ReadGroup(regs, ty) => {
                for reg in regs {
                    *reg = self.reg(|class| agrees(class, ty))?;
                }
            }
            Slot::WriteParts(parts, whole) => {
                let count = self.dice.pick(&[2, 4]);
                let part = part_type(whole, count).ok_or("no such parts")?;
                let regs = self.distinct(count, |class| agrees(class, part))?;
                *parts = regs.into_iter().map(|reg| (!self.dice.chance(4)).then_some(reg)).collect();
            }
            Slot::Source(operand, ty) => *operand = self.source(ty, false)?,
            Slot::SourceSymbol(operand, space) => {
                let symbols: Vec<Symbol> = self
                    .ground
                    .symbols
                    .iter()
                    .filter(|(of, _)| *of == space)
                    .map(|(_, symbol)| *symbol)
                    .collect();
                *operand = match self.dice.chance(2) && !symbols.is_empty() {
                    true => Operand::Symbol(self.dice.pick(&symbols), self.dice.below(3) as i64 * 4),
                    false => self.reg(|class| class == RegClass::B64).map(Operand::Reg)?,
                };
            }
            Slot::SourceRange(operand, range) => {
                let steps = (range.max - range.min) / range.step;
                let value = range.min + range.step * self.dice.below(steps as usize + 1) as u32;
                *operand = match self.dice.chance(2) {
                    true => value.into(),
                    false => self.reg(|class| class == RegClass::B32).map(Operand::Reg)?,
                };
            }
            Slot::SourceWide(operand, ty) => *operand = self.source(ty, true)?,
            Slot::SourceAny(operand, ty) => {
                *operand = match self.dice.below(4) {
                    0 if matches!(ty, Type::U32 | Type::B32 | Type::U64 | Type::B64) => {
                        let specials: Vec<SpecialReg> =
                            SpecialReg::all().filter(|special| special.bits() == ty.bits()).collect();
                        self.dice.pick(&specials).into()
                    }
                    1 if ty == Type::U64 => {
                        let symbols: Vec<Symbol> = self
                            .ground
                            .symbols
                            .iter()
                            .filter(|(space, _)| *space == Space::Global)
                            .map(|(_, symbol)| *symbol)
                            .collect();
                        Operand::Symbol(self.dice.pick(&symbols), self.dice.below(3) as i64 * 4)
                    }
                    _ => self.source(ty, false)?,
                };
            }
            Slot::SourceVector(operands, ty) => {
                let class = self.class(|class| agrees_wide(class, ty))?;
                for operand in operands {
                    *operand = match self.source(ty, true)? {
                        Operand::Reg(_) => Operand::Reg(self.reg(|other| other == class)?),
                        constant => constant,
                    };
                }
            }
            Slot::SourceParts(parts, whole) => {
                let count = self.dice.pick(&[2, 4]);
                let part = part_type(whole, count).ok_or("no such parts")?;
                *parts = (0..count)
                    .map(|_| self.reg(|class| agrees(class, part)).map(Operand::Reg))
                    .collect::<Result<_, String>>()?;
            }
            Slot::Pred(pred) => {
                *pred = PredOperand {
                    reg: self.reg(|class| class == RegClass::Pred)?,
                    negated: self.dice.chance(2),
                };
            }
            Slot::Address(address, space) => *address = self.address(space)?,
            Slot::Number(number, legal) => {
                *number = if legal.is_empty() { self.dice.below(256) as u32 } else { self.dice.pick(legal) };
            }
            Slot::Label(label) => *label = self.dice.pick(self.ground.labels),
        }
        Ok(())
    }

    fn rule(&mut self, holds: bool, message: &str) -> Step {
        if holds { Ok(()) } else { Err(message.to_owned()) }
    }

    fn needs(&mut self, _: &str, needs: Needs) -> Step {
        self.needs.sm = self.needs.sm.max(needs.sm);
        self.needs.version = self.needs.version.max(needs.version);
        Ok(())
    }
}

/// A module with `variables`, ready for entries made by [`stage`].
pub fn empty_module(target: &str, version: Version, dice: &mut Dice) -> Module {
    let mut module = Module::new(version, target);
    module.header = vec!["generated".to_owned(), String::new(), "  for a test".to_owned()];
    module.files.push(super::module::SourceName { index: 1, name: "some folder/a'b.krn".to_owned() });
    for (index, ty) in
        [Type::U8, Type::S16, Type::B32, Type::U64, Type::F32, Type::F64, Type::S64].into_iter().enumerate()
    {
        let space = if index % 2 == 0 { Space::Global } else { Space::Const };
        let mut variable = Variable::array(format!("table{index}"), space, ty, 64);
        variable.align = 16;
        variable.visible = dice.chance(2);
        if dice.chance(2) {
            variable.init = Some((0..variable.bytes()).map(|_| dice.next() as u8).collect());
        }
        module.variables.push(variable);
    }
    let mut counter =
        Variable { length: Length::Scalar, ..Variable::array("counter", Space::Global, Type::U32, 1) };
    counter.init = dice.chance(2).then(|| vec![7, 0, 0, 0]);
    module.variables.push(counter);
    module.variables.push(Variable {
        length: Length::Unsized,
        external: true,
        align: 16,
        ..Variable::array("dynamic", Space::Shared, Type::B8, 0)
    });
    module
}

/// Fills a new entry with instructions by `write`, which gets the builder and what it may refer to.
pub fn stage(
    name: &str,
    module: &Module,
    dice: &mut Dice,
    write: impl FnOnce(&mut EntryBuilder, &mut Dice, &[Label], &[(Space, Symbol)]),
) -> Entry {
    let mut builder = EntryBuilder::new(name);
    builder.keep_off(Arc::new(module.variables.values().map(|variable| variable.name.clone()).collect()));
    let mut symbols: Vec<(Space, Symbol)> = module
        .variables
        .iter()
        .filter(|(_, variable)| variable.length != Length::Unsized || variable.external)
        .map(|(id, variable)| (variable.space, Symbol::Module(id)))
        .filter(|(space, _)| *space != Space::Shared)
        .collect();
    for index in 0..4 {
        let name = format!("p{index}");
        let param = match index {
            0 => Param::global_pointer(name, 16),
            1 => Param { align: Some(16), length: Length::Array(64), ..Param::scalar(name, Type::B8) },
            2 => Param { align: Some(16), length: Length::Array(32), ..Param::scalar(name, Type::B8) },
            _ => Param { align: Some(32), length: Length::Array(32), ..Param::scalar(name, Type::B8) },
        };
        let large = index > 0;
        let id = builder.param(param);
        if large {
            symbols.push((Space::Param, Symbol::Param(id)));
        }
    }
    for space in [Space::Shared, Space::Local] {
        let mut variable = Variable::array(format!("{space}_array"), space, Type::B8, 512);
        variable.align = 16;
        let id = builder.variable(variable);
        symbols.push((space, Symbol::Entry(id)));
    }
    for _ in 0..10 {
        for class in RegClass::ALL {
            if *class != RegClass::B128 {
                let hint = dice.pick(&["", "", "i", "sum_1"]);
                builder.reg(*class, &if hint.is_empty() { String::new() } else { format!("{hint}_{class}") });
            }
        }
    }
    let labels: Vec<Label> = (0..3).map(|_| builder.label("loop")).collect();
    write(&mut builder, dice, &labels, &symbols);
    builder.finish()
}

/// A random module that covers many families at once.
pub fn module(seed: u64) -> Module {
    let dice = &mut Dice(seed);
    let mut module = empty_module("sm_100", Version::new(8, 8), dice);
    let templates = Op::templates();
    for index in 0..1 + dice.below(2) {
        let mut entry = stage(&format!("kernel{index}"), &module, dice, |builder, dice, labels, symbols| {
            builder.reg(RegClass::B128, "wide");
            let mut unplaced = labels.to_vec();
            for _ in 0..60 {
                match dice.below(12) {
                    0 => builder.loc(Loc {
                        file: 1,
                        line: 1 + dice.below(99) as u32,
                        column: dice.below(9) as u32,
                    }),
                    1 => builder.comment(dice.pick(&["a note", "", "  indented", "// twice", "/* odd */"])),
                    2 => builder.blank(),
                    3 => {
                        if let Some(label) = unplaced.pop() {
                            builder.place(label);
                        }
                    }
                    4 if dice.chance(4) => {
                        builder.entry_mut().body.push(Statement::Pragma("nounroll".to_owned()));
                    }
                    _ => {
                        let template = &templates[dice.below(templates.len())];
                        let filled = fill(template, dice, &Ground { builder, labels, symbols });
                        if let Some((op, _)) = filled {
                            let mut instruction = Instruction::new(op);
                            let predicates: Vec<Reg> = builder
                                .entry()
                                .registers
                                .iter()
                                .filter(|(_, register)| register.class == RegClass::Pred)
                                .map(|(reg, _)| reg)
                                .collect();
                            instruction.guard = dice
                                .chance(4)
                                .then(|| Guard { reg: dice.pick(&predicates), negated: dice.chance(2) });
                            instruction.comment = dice.chance(4).then(|| "because".to_owned());
                            builder.push(instruction);
                        }
                    }
                }
            }
            unplaced.into_iter().for_each(|label| builder.place(label));
            builder.emit(super::instruction::Leave::default());
        });
        if dice.chance(2) {
            entry.bounds.max = Some([256, 1, 1]);
            entry.bounds.min_blocks_per_sm = Some(2);
        }
        module.entries.push(entry);
    }
    module
}

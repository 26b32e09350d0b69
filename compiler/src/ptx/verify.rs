//! Checks a module before anything is done with it: what passes here, ptxas takes and the emulator runs.
//!
//! Invariants:
//!
//! - the target is known, the version is high enough for the target and for every instruction;
//! - names are PTX identifiers, and no name is declared twice where it could be mistaken;
//! - alignments are powers of two, initial values fill their variable, static sizes keep the limits;
//! - every register, label, variable and parameter that an instruction names is declared, and its class or
//!   space suits the instruction's types; constants fit their type;
//! - modifiers and types are a combination that exists (the rules of the grammar), on this target;
//! - every label that is jumped to is placed, once; every register that is read is written somewhere;
//! - `.loc` lines name a file of the table.

use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};

use super::grammar::{Needs, Slot, Step, Walk, agrees, agrees_wide, fits, part_type};
use super::instruction::Instruction;
use super::module::{Entry, Length, Module, Statement, Variable, Version};
use super::operand::{Address, Base, Label, Operand, Reg, Symbol};
use super::print::print_instruction;
use super::target::{
    BLOCK_EXTENT, CONST_BYTES, LARGE_PARAM_BYTES, SHARED_DEFAULT, THREADS_PER_BLOCK, Target,
};
use super::types::{Modifier, RegClass, Space, Type};
use super::version::requirements;

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The entry, and the statement's index in its body where it has one.
    pub entry: Option<(String, Option<usize>)>,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.entry {
            Some((entry, Some(at))) => write!(f, "entry `{entry}`, statement {at}: {}", self.message),
            Some((entry, None)) => write!(f, "entry `{entry}`: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Everything that is wrong with a module; nothing where it is sound.
pub fn verify(module: &Module) -> Vec<Problem> {
    let names = module.entries.iter().map(|entry| entry.name.as_str()).collect();
    let frame = Frame::new(module, names, Some(module.version));
    let (mut problems, frame) = frame;
    for (at, entry) in module.entries.iter().enumerate() {
        // A walk may change an instruction, though this one does not.
        problems.extend(frame.entry(at, &mut entry.clone()).0);
    }
    problems
}

/// What entries are checked against: a module without its entries, and what these are called.
pub(super) struct Frame<'m> {
    module: &'m Module,
    target: Option<&'m Target>,
    /// Names outside of entries; of an entry, with its number plus one.
    names: FxHashMap<&'m str, usize>,
    /// What the module says, if it is held to that.
    version: Option<Version>,
}

impl<'m> Frame<'m> {
    /// The frame, and what is wrong with it. `version` is what the module says, where its entries are held to that.
    pub fn new(
        module: &'m Module,
        entries: Vec<&'m str>,
        version: Option<Version>,
    ) -> (Vec<Problem>, Self) {
        let target = Target::find(&module.target);
        let mut frame = Self { module, target, names: FxHashMap::default(), version };
        let mut verifier = Verifier::new(module, version);
        verifier.module(target);
        let variables = module.variables.values().map(|variable| (variable.name.as_str(), 0));
        let entries = entries.into_iter().zip(1..);
        for (name, number) in variables.chain(entries) {
            verifier.place = (number > 0).then_some((name, None));
            let fresh = !frame.names.contains_key(name);
            verifier.name(name, fresh);
            if fresh {
                frame.names.insert(name, number);
            }
        }
        (verifier.problems, frame)
    }

    /// What is wrong with the entry of a number, and the lowest version that knows what it uses. It stays as it is.
    pub fn entry(&self, number: usize, entry: &mut Entry) -> (Vec<Problem>, Version) {
        let mut body = std::mem::take(&mut entry.body);
        let mut verifier = Verifier::new(self.module, self.version);
        let outside = |name: &str| self.names.get(name).is_some_and(|at| *at <= number + 1);
        verifier.place = Some((&entry.name, None));
        verifier.entry(entry, &mut body, self.target, &outside);
        let Verifier { problems, lowest, .. } = verifier;
        entry.body = body;
        (problems, lowest)
    }
}

struct Verifier<'m> {
    module: &'m Module,
    /// What the module says, if it is held to that.
    version: Option<Version>,
    /// What the entries need.
    lowest: Version,
    problems: Vec<Problem>,
    place: Option<(&'m str, Option<usize>)>,
}

impl<'m> Verifier<'m> {
    fn new(module: &'m Module, version: Option<Version>) -> Self {
        Self { module, version, lowest: Version::new(1, 0), problems: Vec::new(), place: None }
    }

    fn problem(&mut self, message: String) {
        let entry = self.place.map(|(entry, at)| (entry.to_owned(), at));
        self.problems.push(Problem { entry, message });
    }

    fn expect(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.problem(message());
        }
    }

    /// Checks what stands outside of entries, names left out.
    fn module(&mut self, target: Option<&Target>) {
        let module = self.module;
        match target {
            None => self.problem(format!("the target `{}` is not known", module.target)),
            Some(target) => {
                let needed = target.version;
                if let Some(version) = self.version.filter(|version| *version < needed) {
                    self.problem(format!("{target} needs PTX {needed}, the module says {version}"));
                }
            }
        }
        for variable in module.variables.values() {
            self.variable(variable);
            let outside = matches!(variable.space, Space::Global | Space::Const)
                || (variable.space == Space::Shared && variable.external);
            self.expect(outside, || {
                format!("`{}` cannot live in .{} space at module level", variable.name, variable.space)
            });
        }
        let constants: u64 = module
            .variables
            .values()
            .filter(|variable| variable.space == Space::Const)
            .fold(0, |sum, variable| sum.saturating_add(variable.bytes()));
        self.expect(constants <= CONST_BYTES.into(), || {
            format!("{constants} bytes of constants, where {CONST_BYTES} are allowed")
        });
    }

    fn name(&mut self, name: &str, fresh: bool) {
        self.expect(is_identifier(name), || format!("`{name}` is not a PTX identifier"));
        self.expect(fresh, || format!("`{name}` is declared twice"));
    }

    /// A name within an entry, which must differ from those outside as well.
    fn inner_name(
        &mut self,
        outside: &impl Fn(&str) -> bool,
        taken: &mut FxHashSet<&'m str>,
        name: &'m str,
    ) {
        let fresh = taken.insert(name);
        self.name(name, fresh);
        self.expect(!outside(name), || format!("`{name}` is declared twice"));
    }

    fn variable(&mut self, variable: &Variable) {
        let name = &variable.name;
        self.expect(variable.align.is_power_of_two(), || {
            format!("the alignment of `{name}` is not a power of two")
        });
        self.expect(variable.align >= variable.ty.bytes(), || {
            format!("`{name}` is aligned to less than one element")
        });
        self.expect(variable.ty != Type::Pred, || format!("`{name}` cannot hold predicates"));
        self.expect((variable.length == Length::Unsized) == variable.external, || {
            format!("`{name}`: exactly the external variables have no size")
        });
        self.expect(!variable.external || variable.space == Space::Shared, || {
            format!("`{name}`: only shared memory is sized at launch")
        });
        self.expect(variable.length == Length::Unsized || variable.bytes() > 0, || {
            format!("`{name}` is empty")
        });
        if let Some(init) = &variable.init {
            self.expect(matches!(variable.space, Space::Global | Space::Const), || {
                format!("`{name}` cannot have an initial value in .{} space", variable.space)
            });
            self.expect(!matches!(variable.ty, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2), || {
                format!("`{name}`: PTX has no initial values of type .{}", variable.ty)
            });
            self.expect(init.len() as u64 == variable.bytes(), || {
                format!("the initial value of `{name}` has {} bytes, not {}", init.len(), variable.bytes())
            });
        }
    }

    fn entry(
        &mut self,
        entry: &'m Entry,
        body: &mut [Statement],
        target: Option<&'m Target>,
        outside: &impl Fn(&str) -> bool,
    ) {
        let count = entry.params.len() + entry.registers.len() + entry.variables.len() + entry.labels.len();
        let mut names = FxHashSet::with_capacity_and_hasher(count, Default::default());
        for param in entry.params.values() {
            self.inner_name(outside, &mut names, &param.name);
            self.expect(param.alignment().is_power_of_two(), || {
                format!("the alignment of `{}` is not a power of two", param.name)
            });
        }
        for register in entry.registers.values() {
            self.inner_name(outside, &mut names, &register.name);
        }
        for variable in entry.variables.values() {
            self.inner_name(outside, &mut names, &variable.name);
            self.variable(variable);
            self.expect(matches!(variable.space, Space::Shared | Space::Local) && !variable.external, || {
                format!("`{}` cannot live in .{} space within an entry", variable.name, variable.space)
            });
        }
        for label in entry.labels.values() {
            self.inner_name(outside, &mut names, label);
        }
        let shared: u64 = entry
            .variables
            .values()
            .filter(|variable| variable.space == Space::Shared)
            .fold(0, |sum, variable| sum.saturating_add(variable.bytes()));
        self.expect(shared <= SHARED_DEFAULT.into(), || {
            format!("{shared} bytes of static shared memory, where {SHARED_DEFAULT} are allowed")
        });
        let params = entry.param_layout().1;
        self.expect(params <= LARGE_PARAM_BYTES.into(), || {
            format!("{params} bytes of parameters, where {LARGE_PARAM_BYTES} are allowed")
        });
        for threads in [entry.bounds.max, entry.bounds.required].into_iter().flatten() {
            let total = threads.iter().fold(1u64, |total, axis| total.saturating_mul((*axis).into()));
            let fits = total <= THREADS_PER_BLOCK.into()
                && threads.iter().zip(BLOCK_EXTENT).all(|(axis, limit)| (1..=limit).contains(axis));
            self.expect(fits, || {
                format!("no block has {} x {} x {} threads", threads[0], threads[1], threads[2])
            });
        }
        let before = self.problems.len();
        let used = self.body(entry, body, target);
        self.place = Some((&entry.name, None));
        let needed = entry.with_declarations(used);
        self.lowest = self.lowest.max(needed);
        if let Some(version) = self.version.filter(|version| *version < needed) {
            self.problem(format!("it needs PTX {needed}, the module says {version}"));
            // Before what is wrong with the statements.
            self.problems[before..].rotate_right(1);
        }
    }

    /// Checks the statements; the lowest version that knows them.
    fn body(&mut self, entry: &'m Entry, body: &mut [Statement], target: Option<&'m Target>) -> Version {
        let module = self.module;
        let mut placed = vec![0u32; entry.labels.len()];
        let mut jumped = FxHashSet::default();
        let mut checker = Checker {
            module,
            entry,
            target,
            lowest: Version::new(1, 0),
            missing: Vec::new(),
            at: 0,
            written: vec![false; entry.registers.len()],
            is_read: vec![false; entry.registers.len()],
            read: Vec::with_capacity(entry.registers.len()),
        };
        for (at, statement) in body.iter_mut().enumerate() {
            self.place = Some((&entry.name, Some(at)));
            match statement {
                Statement::Label(label) => match placed.get_mut(label.as_u32() as usize) {
                    Some(count) => *count += 1,
                    None => self.problem("a label that is not declared".to_owned()),
                },
                Statement::Loc(loc) => self.expect(module.file_name(loc.file).is_some(), || {
                    format!("there is no file {} in the .file table", loc.file)
                }),
                Statement::Instruction(instruction) => {
                    checker.at = at;
                    self.instruction(&mut checker, instruction);
                    if let Some(guard) = instruction.guard {
                        checker.names(guard.reg, false);
                    }
                    instruction.op.each_label_mut(|label| {
                        jumped.insert((*label, at));
                    });
                }
                Statement::Comment(_) | Statement::Pragma(_) | Statement::BlankLine => {}
            }
        }
        let Checker { lowest, written, read, .. } = checker;
        self.place = Some((&entry.name, None));
        for (label, count) in entry.labels.iter().zip(&placed).map(|((_, label), count)| (label, *count)) {
            self.expect(count <= 1, || format!("the label `{label}` is placed {count} times"));
        }
        let mut unplaced: Vec<(Label, usize)> = jumped
            .into_iter()
            .filter(|(label, _)| placed.get(label.as_u32() as usize).is_none_or(|count| *count == 0))
            .collect();
        unplaced.sort_by_key(|(label, at)| (*at, *label));
        for (label, at) in unplaced {
            self.place = Some((&entry.name, Some(at)));
            let name = entry.labels.get(label).map_or("?", String::as_str);
            self.problem(format!("a jump to `{name}`, which is never placed"));
        }
        for (reg, at) in read {
            if !written[reg.as_u32() as usize] {
                self.place = Some((&entry.name, Some(at)));
                self.problem(format!("`{}` is read, but never written", entry.registers[reg].name));
            }
        }
        lowest
    }

    fn instruction(&mut self, checker: &mut Checker<'_>, instruction: &mut Instruction) {
        let (module, entry, target) = (self.module, checker.entry, checker.target);
        let fail = |instruction: &Instruction, message: String| {
            let text = print_instruction(entry, &module.variables, instruction);
            format!("`{}`: {message}", text.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        if let Some(guard) = instruction.guard {
            let class = entry.registers.get(guard.reg).map(|register| register.class);
            self.expect(class == Some(RegClass::Pred), || {
                fail(instruction, "the guard is not a predicate".to_owned())
            });
        }
        if let Err(message) = instruction.op.describe(checker) {
            self.problem(fail(instruction, message));
            // What the walk has not come to.
            checker.missing.clear();
            for (what, needs) in requirements(&instruction.op) {
                let _ = checker.needs(&what, needs);
            }
            instruction.op.each_register(|reg, writes| checker.names(reg, writes));
        }
        for (what, sm) in checker.missing.drain(..) {
            self.problem(fail(
                instruction,
                format!("{what} needs sm_{sm}, not {}", target.map_or("", |target| target.name)),
            ));
        }
    }
}

/// Whether PTX takes this as a name. Mnemonics and types are allowed; `_` and `WARP_SZ` have a meaning.
pub fn is_identifier(name: &str) -> bool {
    let mut letters = name.chars();
    let body = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$');
    match letters.next() {
        Some(first) if first.is_ascii_alphabetic() => name != "WARP_SZ" && letters.all(body),
        Some('_' | '$' | '%') => name.len() > 1 && letters.all(body),
        _ => false,
    }
}

/// The walker that checks what it meets.
struct Checker<'m> {
    module: &'m Module,
    entry: &'m Entry,
    target: Option<&'m Target>,
    /// The lowest version that knows what it has met.
    lowest: Version,
    /// What the instruction needs that the target has not: what for, and which target has it.
    missing: Vec<(String, u32)>,
    /// The statement that it is at.
    at: usize,
    /// Which registers are written.
    written: Vec<bool>,
    /// Which registers are read.
    is_read: Vec<bool>,
    /// Registers that are read, each with the first statement that does.
    read: Vec<(Reg, usize)>,
}

impl Checker<'_> {
    /// Notes a register that the instruction names.
    fn names(&mut self, reg: Reg, writes: bool) {
        let named = if writes { &mut self.written } else { &mut self.is_read };
        let Some(known) = named.get_mut(reg.as_u32() as usize) else { return };
        if !std::mem::replace(known, true) && !writes {
            self.read.push((reg, self.at));
        }
    }

    fn reg(&self, reg: Reg, ty: Type, wide: bool) -> Step {
        let Some(register) = self.entry.registers.get(reg) else {
            return Err("a register that is not declared".to_owned());
        };
        let suits = if wide { agrees_wide(register.class, ty) } else { agrees(register.class, ty) };
        if suits {
            Ok(())
        } else {
            Err(format!("`{}` is a .{} register, which cannot hold .{ty}", register.name, register.class))
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
        let mut classes = regs.map(|reg| self.entry.registers.get(reg).map(|register| register.class));
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

fn undeclared() -> String {
    "a variable that is not declared".to_owned()
}

impl Walk for Checker<'_> {
    fn word(&mut self, _: &'static str) -> Step {
        Ok(())
    }

    fn flag(&mut self, _: &'static str, _: &mut bool) -> Step {
        Ok(())
    }

    fn suffix<M: Modifier>(&mut self, value: &mut Option<M>, required: bool, legal: &[M]) -> Step {
        match value {
            None if required => Err("a modifier is missing".to_owned()),
            Some(word) if !legal.contains(word) => Err(format!("`.{}` is not allowed there", word.text())),
            _ => Ok(()),
        }
    }

    fn more(&mut self, present: bool) -> bool {
        present
    }

    fn more_before_last(&mut self, present: bool) -> bool {
        present
    }

    fn operand(&mut self, mut slot: Slot<'_>) -> Step {
        // The commonest ones first.
        match &slot {
            Slot::Write(reg, ty) => {
                self.names(**reg, true);
                return self.reg(**reg, *ty, false);
            }
            Slot::Source(Operand::Reg(reg), ty) => {
                self.names(*reg, false);
                return self.reg(*reg, *ty, false);
            }
            _ => slot.each_register(&mut |reg, writes| self.names(*reg, writes)),
        }
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

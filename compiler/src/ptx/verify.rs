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

mod checker;

use std::fmt;

use rustc_hash::{FxHashMap, FxHashSet};

use super::grammar::{Slot, Walk};
use super::instruction::Instruction;
use super::module::{Entry, Length, Module, Statement, Variable, Version};
use super::operand::{Label, Reg};
use super::print::print_instruction;
use super::target::{
    BLOCK_EXTENT, CONST_BYTES, LARGE_PARAM_BYTES, SHARED_DEFAULT, THREADS_PER_BLOCK, Target,
};
use super::types::{RegClass, Space, Type};
use super::version::requirements;
use checker::Checker;

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
    let (mut problems, frame) = Frame::new(module, names, Some(module.version));
    for (at, entry) in module.entries.iter().enumerate() {
        problems.extend(frame.entry(at, entry).0);
    }
    problems
}

/// What entries are checked against: a module without its entries, and what these are called.
pub(crate) struct Frame<'m> {
    module: &'m Module,
    target: Option<&'m Target>,
    /// Names outside of entries; of an entry, with its number plus one.
    names: FxHashMap<&'m str, usize>,
    /// What the module says, if it is held to that.
    version: Option<Version>,
}

impl<'m> Frame<'m> {
    /// The frame, and what is wrong with it. `version` is what the module says, where its entries are held to that.
    pub fn new(module: &'m Module, entries: Vec<&'m str>, version: Option<Version>) -> (Vec<Problem>, Self) {
        let target = Target::find(&module.target);
        let mut frame = Self { module, target, names: FxHashMap::default(), version };
        let mut verifier = Verifier::new(module, version);
        verifier.module(target);
        let variables = module.variables.values().map(|variable| (variable.name.as_str(), 0));
        let entries = entries.into_iter().zip(1..);
        for (name, number) in variables.chain(entries) {
            verifier.place = (number > 0).then_some((name, None));
            verifier.name(name, !frame.names.contains_key(name));
            frame.names.entry(name).or_insert(number);
        }
        (verifier.problems, frame)
    }

    /// What is wrong with the entry of a number, and the lowest version that knows what it uses.
    pub fn entry(&self, number: usize, entry: &Entry) -> (Vec<Problem>, Version) {
        let mut verifier = Verifier::new(self.module, self.version);
        verifier.place = Some((&entry.name, None));
        let outside = |name: &str| self.names.get(name).is_some_and(|at| *at <= number + 1);
        verifier.entry(entry, self.target, &outside);
        (verifier.problems, verifier.lowest)
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
    fn inner_name<'e>(
        &mut self,
        outside: &impl Fn(&str) -> bool,
        declared: &mut FxHashSet<&'e str>,
        name: &'e str,
    ) {
        self.name(name, declared.insert(name));
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

    fn entry(&mut self, entry: &'m Entry, target: Option<&'m Target>, outside: &impl Fn(&str) -> bool) {
        let mut names = FxHashSet::default();
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
        let used = self.body(entry, target);
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
    fn body(&mut self, entry: &'m Entry, target: Option<&'m Target>) -> Version {
        let module = self.module;
        let mut placed = vec![0u32; entry.labels.len()];
        let mut checker = Checker::new(module, entry, target);
        for (at, statement) in entry.body.iter().enumerate() {
            checker.at = at;
            self.place = Some((&entry.name, Some(at)));
            match statement {
                Statement::Label(label) => match placed.get_mut(label.as_u32() as usize) {
                    Some(count) => *count += 1,
                    None => self.problem("a label that is not declared".to_owned()),
                },
                Statement::Loc(loc) => self.expect(module.file_name(loc.file).is_some(), || {
                    format!("there is no file {} in the .file table", loc.file)
                }),
                Statement::Instruction(instruction) => self.instruction(&mut checker, instruction),
                Statement::Comment(_) | Statement::Pragma(_) | Statement::BlankLine => {}
            }
        }
        let Checker { lowest, written, first_read, jumped, .. } = checker;
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
        let mut unwritten: Vec<(Reg, usize)> =
            first_read.into_iter().filter(|(reg, _)| !written.contains(reg)).collect();
        unwritten.sort_by_key(|(reg, at)| (*at, *reg));
        for (reg, at) in unwritten {
            if let Some(register) = entry.registers.get(reg) {
                self.place = Some((&entry.name, Some(at)));
                self.problem(format!("`{}` is read, but never written", register.name));
            }
        }
        lowest
    }

    fn instruction(&mut self, checker: &mut Checker<'_>, instruction: &Instruction) {
        let (module, entry, target) = (self.module, checker.entry, checker.target);
        let fail = |message: String| {
            let text = print_instruction(entry, &module.variables, instruction);
            format!("`{}`: {message}", text.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        if let Some(guard) = instruction.guard {
            self.expect(checker.class(guard.reg) == Some(RegClass::Pred), || {
                fail("the guard is not a predicate".to_owned())
            });
            checker.note(&mut Slot::Pred(&mut guard.clone()));
        }
        if let Err(message) = instruction.op.inspect(checker) {
            self.problem(fail(message));
            // What the walk has not come to.
            checker.missing.clear();
            for (what, needs) in requirements(&instruction.op) {
                let _ = checker.needs(&what, needs);
            }
            instruction.op.clone().each_operand(|mut slot| checker.note(&mut slot));
        }
        for (what, sm) in checker.missing.drain(..) {
            self.problem(fail(format!(
                "{what} needs sm_{sm}, not {}",
                target.map_or("", |target| target.name)
            )));
        }
    }
}

/// Whether PTX takes this as a name. Mnemonics and types are allowed; `_` and `WARP_SZ` have a meaning.
pub fn is_identifier(name: &str) -> bool {
    let [first, rest @ ..] = name.as_bytes() else { return false };
    let begins = match first {
        b'_' | b'$' | b'%' => !rest.is_empty(),
        first => first.is_ascii_alphabetic() && name != "WARP_SZ",
    };
    begins && rest.iter().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'$'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::EntryBuilder;
    use crate::ptx::instruction::{Bra, Fma, Guard, Mov};
    use crate::ptx::operand::Operand;

    /// What is wrong with the entry that `build` makes, which has a register of each of these classes.
    fn problems<const COUNT: usize>(
        classes: [RegClass; COUNT],
        build: impl FnOnce(&mut EntryBuilder, [Reg; COUNT]),
    ) -> Vec<String> {
        let mut builder = EntryBuilder::new("k");
        let regs = classes.map(|class| builder.reg(class, "x"));
        build(&mut builder, regs);
        let mut module = Module::new(Version::new(8, 0), "sm_90");
        module.entries.push(builder.finish());
        verify(&module).into_iter().map(|problem| problem.to_string()).collect()
    }

    #[test]
    fn registers_must_be_of_a_class_that_holds_the_type() {
        let found = problems([RegClass::F32, RegClass::F64], |builder, [x, wide]| {
            let fma = Fma { ty: Type::F32, dst: x, a: x.into(), b: x.into(), c: x.into(), ..Fma::default() };
            builder.emit(fma.clone());
            builder.emit(Fma { c: wide.into(), ..fma.clone() });
            builder.emit(Fma { relu: true, ..fma.clone() });
            builder.emit_if(Guard { reg: x, negated: false }, fma);
        });
        let expected = ["cannot hold .f32", ".relu", "not a predicate", "`%x2` is read, but never written"];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found}, not {expected}");
        }
    }

    #[test]
    fn what_is_read_must_be_written_somewhere_and_labels_placed() {
        let found = problems([RegClass::F32, RegClass::F32, RegClass::Pred], |builder, [x, y, p]| {
            let label = builder.label("nowhere");
            builder.emit(Mov { ty: Type::F32, dst: x, a: y.into() });
            builder.emit_if(Guard { reg: p, negated: true }, Bra { target: label, ..Bra::default() });
        });
        assert_eq!(
            found,
            [
                "entry `k`, statement 1: a jump to `nowhere`, which is never placed",
                "entry `k`, statement 0: `%x2` is read, but never written",
                "entry `k`, statement 1: `%x3` is read, but never written",
            ]
        );
        let found = problems([RegClass::F32, RegClass::F32], |builder, [x, y]| {
            builder.emit(Mov { ty: Type::F32, dst: x, a: y.into() });
            builder.emit(Mov { ty: Type::F32, dst: y, a: Operand::F32(0) });
        });
        assert!(found.is_empty(), "{found:#?}");
    }
}

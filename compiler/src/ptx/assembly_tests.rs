//! NVIDIA's own assembler judges the printer, the verifier and the version table.

use std::collections::BTreeMap;

use super::generate::{self, Dice, Ground};
use super::grammar::Needs;
use super::instruction::{Instruction, Op};
use super::module::{Module, Version};
use super::operand::{Label, Symbol};
use super::target::Target;
use super::types::{RegClass, Space, Type};
use super::{EntryBuilder, print, verify};
use crate::targets::TARGETS;
use xtask::ptxas::{Assembler, Job};

/// Every version from 6.3 to 9.0 that ptxas 13.0 knows, in order.
const VERSIONS: &[Version] = &[
    Version::new(6, 3),
    Version::new(6, 4),
    Version::new(6, 5),
    Version::new(7, 0),
    Version::new(7, 1),
    Version::new(7, 2),
    Version::new(7, 3),
    Version::new(7, 4),
    Version::new(7, 5),
    Version::new(7, 6),
    Version::new(7, 7),
    Version::new(7, 8),
    Version::new(8, 0),
    Version::new(8, 1),
    Version::new(8, 2),
    Version::new(8, 3),
    Version::new(8, 4),
    Version::new(8, 5),
    Version::new(8, 6),
    Version::new(8, 7),
    Version::new(8, 8),
    Version::new(9, 0),
];

fn assembler() -> Assembler {
    Assembler::find().unwrap_or_else(|error| panic!("{error}"))
}

/// Random instructions of every family, `count` of each, written with registers that all have a value.
fn write_all(
    builder: &mut EntryBuilder,
    dice: &mut Dice,
    labels: &[Label],
    symbols: &[(Space, Symbol)],
    count: usize,
    accept: impl Fn(&Needs) -> bool,
) {
    labels.iter().for_each(|label| builder.place(*label));
    for template in Op::templates() {
        // A barrier in the middle of dead code, or an exit, is legal: nothing here is meant to be run.
        let mut filled = 0;
        for _ in 0..400 * count {
            let ground = Ground { builder, labels, symbols };
            if let Some((op, needs)) = generate::fill(&template, dice, &ground)
                && accept(&needs)
            {
                builder.push(Instruction::new(op));
                filled += 1;
                if filled == count {
                    break;
                }
            }
        }
    }
}

/// A module for a target with every family that it supports.
fn every_family(target: &Target, seed: u64, count: usize) -> Module {
    let dice = &mut Dice(seed);
    let mut module = generate::empty_module(target.name, Version::new(8, 8), dice);
    let entry = generate::stage("every", &module, dice, |builder, dice, labels, symbols| {
        builder.reg(RegClass::B128, "wide");
        write_all(builder, dice, labels, symbols, count, |needs| needs.sm <= target.sm);
    });
    module.entries.push(entry);
    module
}

#[test]
fn ptxas_takes_every_family_on_every_target() {
    let assembler = assembler();
    let mut modules = Vec::new();
    for name in TARGETS {
        let target = Target::find(name).unwrap();
        for seed in 0..4 {
            let module = every_family(target, seed, 24);
            let problems: Vec<String> = verify(&module).iter().map(ToString::to_string).collect();
            let unsound: Vec<&String> =
                problems.iter().filter(|text| !text.contains("never written")).collect();
            assert!(unsound.is_empty(), "{unsound:#?}");
            modules.push((name, print(&module)));
        }
    }
    let jobs: Vec<Job<'_>> = modules.iter().map(|(target, text)| Job { text, target }).collect();
    let mut complaints = BTreeMap::new();
    for (answer, (target, text)) in assembler.assemble_all(&jobs).into_iter().zip(&modules) {
        if let Err(error) = answer {
            explain(&error.to_string(), target, text, &mut complaints);
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// A module with one instruction, and all that it may refer to.
fn alone(op: &Op, version: Version, target: &str) -> String {
    let dice = &mut Dice(7);
    let mut module = Module::new(version, target);
    module.variables = generate::empty_module(target, version, dice).variables;
    let wide = requires_wide(op);
    let entry = generate::stage("alone", &module, dice, |builder, _, labels, _| {
        if wide {
            builder.reg(RegClass::B128, "wide");
        }
        labels.iter().for_each(|label| builder.place(*label));
        builder.push(Instruction::new(op.clone()));
    });
    module.entries.push(entry);
    print(&module)
}

fn requires_wide(op: &Op) -> bool {
    match op {
        Op::Mov(mov) => mov.ty == Type::B128,
        Op::Pack(pack) => pack.ty == Type::B128,
        Op::Unpack(unpack) => unpack.ty == Type::B128,
        _ => false,
    }
}

#[test]
fn needs_are_enough_and_no_more() {
    // A few instructions for every family and every set of needs that occurs in it.
    let dice = &mut Dice(11);
    let mut samples: Vec<(Op, Needs)> = Vec::new();
    let module = generate::empty_module("sm_100", Version::new(8, 8), dice);
    for template in Op::templates() {
        let mut counts: BTreeMap<(u32, Version), u32> = BTreeMap::new();
        // The same dice for the registers as in `alone`, so that indices mean the same there.
        generate::stage("alone", &module, &mut Dice(7), |builder, _, labels, symbols| {
            builder.reg(RegClass::B128, "wide");
            for _ in 0..2000 {
                let ground = Ground { builder, labels, symbols };
                if let Some((op, needs)) = generate::fill(&template, dice, &ground) {
                    let count = counts.entry((needs.sm, needs.version)).or_default();
                    *count += 1;
                    if *count <= 3 {
                        samples.push((op, needs));
                    }
                }
            }
        });
    }
    // (text, target, whether ptxas must accept it)
    let mut cases: Vec<(String, &str, bool)> = Vec::new();
    for (op, Needs { sm, version }) in &samples {
        let Some(target) =
            TARGETS.iter().filter_map(|name| Target::find(name)).find(|target| target.sm >= *sm)
        else {
            panic!("no target has sm_{sm}");
        };
        let lowest = target.version.max(*version);
        cases.push((alone(op, lowest, target.name), target.name, true));
        if lowest > target.version {
            let before = VERSIONS.iter().rev().find(|version| **version < lowest).unwrap();
            cases.push((alone(op, *before, target.name), target.name, false));
        }
        let older =
            TARGETS.iter().rev().filter_map(|name| Target::find(name)).find(|older| older.sm < target.sm);
        if let Some(older) = older {
            cases.push((alone(op, Version::new(9, 0), older.name), older.name, false));
        }
    }
    let jobs: Vec<Job<'_>> = cases.iter().map(|(text, target, _)| Job { text, target }).collect();
    let mut complaints = BTreeMap::new();
    for (answer, (text, target, legal)) in assembler().assemble_all(&jobs).into_iter().zip(&cases) {
        match answer {
            Ok(_) if !legal => {
                let line = text.lines().rev().nth(1).unwrap_or_default().trim();
                let version = text.lines().next().unwrap_or_default();
                let mnemonic = line.split_whitespace().next().unwrap_or_default();
                complaints
                    .entry(mnemonic.to_owned())
                    .or_insert_with(|| format!("accepted in vain needs: {version} {target}: {line}"));
            }
            Err(error) if *legal => explain(&error.to_string(), target, text, &mut complaints),
            _ => {}
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// One complaint for each mnemonic, with the line it is about.
fn explain(error: &str, target: &str, text: &str, complaints: &mut BTreeMap<String, String>) {
    for line in error.lines().skip(1) {
        let number =
            line.split("line ").nth(1).and_then(|rest| rest.split([';', ',']).next()?.trim().parse().ok());
        let source = number.and_then(|number: usize| text.lines().nth(number.checked_sub(1)?));
        let source = source.unwrap_or_default().trim();
        let mnemonic = source.split_whitespace().next().unwrap_or(line);
        complaints.entry(mnemonic.to_owned()).or_insert_with(|| format!("{target}: {line}: {source}"));
    }
}

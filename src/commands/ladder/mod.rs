//! `krn ladder`: a kernel with the passes added one by one, each step checked and measured.

mod summary;

use super::run::{failure, open};
use crate::arguments::{LadderOptions, MessageFormat};
use crate::exit::{DEVICE, Failure, INPUT, MISMATCH, Result, USAGE};
use crate::measuring::{Chosen, Work, choose, measure_cold, sources};
use crate::progress::Counted;
use crate::ptxas::{Ptxas, Usage};
use crate::request::{Request, directives, pick};
use crate::subject::Subject;
use crate::{files, memory, messages, verdict};
use krn_compiler::data::HostArray;
use krn_compiler::passes::Pipeline;
use krn_compiler::{Compilation, CompileError, CompileOptions, Variants, explain_sizes};
use krn_runtime::verify::{self, Case, CheckOptions, CheckReport, Expectation, RungError, Sizes};
use krn_runtime::{Device, Measured};
use std::collections::{BTreeMap, BTreeSet};

pub fn run(options: &LadderOptions) -> Result<()> {
    let (text, code) = run_with(options, None)?;
    files::print(&text)?;
    if code == 0 { Ok(()) } else { Err(Failure::silent(code)) }
}

/// What there is to say, and the exit code: 0 if all rungs of the pipeline (the target's, unless one is given) are
/// verified.
fn run_with(options: &LadderOptions, pipeline: Option<Pipeline>) -> Result<(String, u8)> {
    let source = messages::load(&options.kernel.file, MessageFormat::Human)?;
    let device = open(options.device)?;
    let mut compile = messages::options_for(&options.kernel, &options.compile, device.capability())?;
    compile.pipeline = pipeline;
    let compilation =
        messages::compile(&source, &compile, options.kernel.kernel.as_deref(), MessageFormat::Human)?;
    let subject = Subject {
        source: &source,
        compilation: &compilation,
        compile: &compile,
        kernel: &options.kernel,
        measure: &options.measure,
    };
    climb(&subject, &device, |ladder| {
        let text = if options.json { format!("{}\n", ladder.json()) } else { ladder.text() };
        (text, ladder.exit_code())
    })
}

/// Climbs the ladder of a kernel, and lets somebody tell of it.
pub fn climb<T>(subject: &Subject<'_>, device: &Device, tell: impl FnOnce(&Ladder<'_>) -> T) -> Result<T> {
    let ptxas = Ptxas::find()?;
    let (typed, manifest) = subject.pick()?;
    let program = &subject.compilation.program;
    let mut compile = subject.compile.clone();
    compile.only = Some(typed.name.clone());
    let mut request = Request::parse(subject.kernel, &[], manifest, directives(subject.source, typed)?)?;
    let seed = subject.seed();
    let Chosen { sizes, files: arrays, work } =
        choose(subject.measure, seed, &request, device, program, typed, manifest)?;
    // What is measured is the code for these sizes, as a launch would make it.
    compile.variants = Variants::For(sizes.symbol_values(manifest));
    // A GPU is measured at sizes that fill it, and checked at smaller ones where the user does not say.
    if device.is_emulator() {
        request.fix(&sizes);
    }
    let (checked, case) = request.case((program, typed, manifest), seed, |sizes| {
        memory::check(manifest, sizes, device.is_emulator(), false)
    })?;
    let mut ladder = Ladder {
        subject: *subject,
        compile: &compile,
        kernel: &typed.name,
        device,
        ptxas: ptxas.as_ref(),
        request: &request,
        sizes: &sizes,
        arrays: &arrays,
        checked: &checked,
        case: &case,
        work,
        made_for: Vec::new(),
        rungs: Vec::new(),
    };
    let rungs = verify::rungs(subject.source, &compile).map_err(|error| Failure::new(USAGE, error))?;
    let mut progress = Counted::new(rungs.count_of_all(), "climbing:");
    let mut expectation = None;
    for rung in rungs {
        let rung = rung.map_err(uncompiled)?;
        let name = rung.added.as_deref().unwrap_or("(none)");
        progress.advance(name);
        let found = if rung.changed {
            let found = ladder.measure(&rung.compilation, &mut expectation);
            Some(found.map_err(|error| {
                let message = error.message();
                if message.is_empty() {
                    error
                } else {
                    Failure::new(error.code, format!("{name}: {message}"))
                }
            })?)
        } else {
            None
        };
        ladder.made_for = explain_sizes(&rung.compilation, &typed.name);
        ladder.rungs.push((rung.added, found));
    }
    drop(progress);
    Ok(tell(&ladder))
}

/// A rung that does not compile: the whole pipeline did, so the file has no mistakes.
pub fn uncompiled(error: RungError) -> Failure {
    let code = if matches!(error.error, CompileError::Select(_)) { INPUT } else { USAGE };
    Failure::new(code, error)
}

/// What a rung was found to be.
struct Found {
    measured: Measured,
    check: CheckReport,
    /// Entries that one launch of the kernel launches.
    entries: usize,
    /// The most that one of these takes, shared memory that is asked for at launch included; spills of all together.
    usage: Option<Usage>,
}

pub struct Ladder<'a> {
    subject: Subject<'a>,
    compile: &'a CompileOptions,
    kernel: &'a str,
    device: &'a Device,
    pub ptxas: Option<&'a Ptxas>,
    request: &'a Request,
    pub sizes: &'a Sizes,
    /// The inputs that are files.
    arrays: &'a BTreeMap<String, HostArray>,
    /// The sizes at which results are checked.
    pub checked: &'a Sizes,
    case: &'a Case,
    work: Work,
    /// What the code of the whole pipeline is made for, line by line.
    made_for: Vec<String>,
    /// The pass that each adds, and what was found; nothing where the code is that of the rung below.
    rungs: Vec<(Option<String>, Option<Found>)>,
}

impl Ladder<'_> {
    /// Checks one rung against the reference, which is evaluated for the first one, and measures it.
    fn measure(&self, compilation: &Compilation, expectation: &mut Option<Expectation>) -> Result<Found> {
        let program = &compilation.program;
        let typed = pick(program, self.subject.kernel)?;
        let module = self.device.load(&compilation.compiled)?;
        let expected = match expectation {
            Some(expected) => expected,
            None => {
                let statics = verify::read_statics(&module)?;
                let check = CheckOptions { seed: self.subject.seed(), ..CheckOptions::default() };
                expectation.insert(Expectation::of(program, typed, self.case, &statics, &check))
            }
        };
        let (_, check) = expected.check(&module, typed, self.case).map_err(failure)?;
        if let Some(refusal) = check.both_refused {
            return Err(Failure::new(DEVICE, refusal.text));
        }
        // What the check has left in the statics is not what is measured.
        let module = self.device.load(&compilation.compiled)?;
        let kernel = module.kernel(self.kernel)?;
        let sources = sources(self.request, &kernel, self.sizes, self.arrays.clone(), self.subject.seed())?;
        let cold = measure_cold(self.subject.measure, self.device, &kernel, self.sizes, &sources)?;
        let usage = match self.ptxas {
            Some(ptxas) => {
                let all = ptxas.assemble(&compilation.compiled.ptx, &self.compile.target)?;
                usage(&all, &cold.entries, cold.dynamic_shared_bytes)
            }
            None => None,
        };
        Ok(Found { measured: cold.measured, check, entries: cold.entries.len(), usage })
    }

    /// 0 if every rung is verified; else the code of the worst.
    pub fn exit_code(&self) -> u8 {
        let codes = self.rungs.iter().filter_map(|(_, found)| {
            found.as_ref().map(|found| verdict::exit_code(&found.check.judgement()))
        });
        let codes: Vec<u8> = codes.filter(|code| *code != 0).collect();
        if codes.contains(&MISMATCH) { MISMATCH } else { codes.first().copied().unwrap_or(0) }
    }

    pub fn agrees(&self) -> bool {
        self.exit_code() == 0
    }
}

/// What the launched entries take; `None` where ptxas said nothing of one of them.
fn usage(all: &BTreeMap<String, Usage>, launched: &[String], dynamic_shared_bytes: u32) -> Option<Usage> {
    let mut total = Usage::default();
    let mut seen = BTreeSet::new();
    for entry in launched {
        let one = all.get(entry)?;
        total.registers = total.registers.max(one.registers);
        total.shared_bytes = total.shared_bytes.max(one.shared_bytes);
        total.stack_bytes = total.stack_bytes.max(one.stack_bytes);
        // An entry that is launched several times has its spills once.
        if seen.insert(entry) {
            total.spill_bytes = total.spill_bytes.saturating_add(one.spill_bytes);
            total.spill_store_bytes = total.spill_store_bytes.saturating_add(one.spill_store_bytes);
        }
    }
    total.shared_bytes = total.shared_bytes.saturating_add(dynamic_shared_bytes);
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::{Arguments, Command};
    use clap::Parser;
    use krn_compiler::ir::kernel::{Kernel, Phases};
    use krn_compiler::ir::op::Opcode;
    use krn_compiler::passes::{Changed, Pass, PassContext, TargetFacts};

    struct MulToAdd;

    impl Pass for MulToAdd {
        fn name(&self) -> &str {
            "mul_to_add"
        }

        fn reason(&self) -> &str {
            "does harm"
        }

        fn needs(&self) -> Phases {
            Phases::ALL
        }

        fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
            let mut changed = false;
            for inst in kernel.insts.keys().collect::<Vec<_>>() {
                let data = &mut kernel.insts[inst];
                if data.opcode == Opcode::Mul {
                    data.opcode = Opcode::Add;
                    changed = true;
                }
            }
            changed.into()
        }
    }

    #[test]
    fn a_rung_that_disagrees_is_marked_and_told_apart_from_those_before() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("square.krn");
        std::fs::write(&path, "kernel square(x: f32[n]) -> y: f32[n] { y[i] = x[i] * x[i] }\n")
            .expect("a file");
        let path = path.display().to_string();
        let arguments = ["krn", "ladder", &path, "--device", "emulator", "-D", "n=100", "--in", "x=iota"];
        let Command::Ladder(options) = Arguments::parse_from(arguments).command else { panic!("a ladder") };
        let target = Pipeline::for_target(&TargetFacts::new(90));
        let pipeline = target.before("fold", MulToAdd).expect("it fits");
        let (text, code) = run_with(&options, Some(pipeline)).expect("it runs");
        assert!(code == MISMATCH && !text.contains("every step agrees"), "{text}");
        let line =
            |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default();
        assert!(line("(none)").ends_with("agrees") && line("+ mul_to_add").ends_with("WRONG"), "{text}");
        assert!(
            text.contains("with all passes up to `mul_to_add`:\n    y: WRONG, 98 of 100 values differ"),
            "{text}"
        );
    }

    #[test]
    fn only_launched_entries_count_and_each_once() {
        let one = |registers, shared_bytes, spill_bytes| Usage {
            registers,
            shared_bytes,
            spill_bytes,
            ..Usage::default()
        };
        let all = [("a", one(32, 100, 8)), ("b", one(40, 16, 4)), ("c", one(255, 9999, 9999))];
        let all: BTreeMap<String, Usage> = all.map(|(name, usage)| (name.to_string(), usage)).into();
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        assert_eq!(usage(&all, &names(&["a", "b", "a"]), 1), Some(one(40, 101, 12)));
        assert_eq!(usage(&all, &names(&["a", "d"]), 0), None);
    }
}

//! Random well-typed kernels, from source to numbers: compiled (for a target and with passes that the program's
//! seed picks), run on the emulator, and every output scalar held against the reference evaluator's bound.
//!
//! The 1500 programs of the ordinary run, the 150 of forms that have launches of their own and as many large reductions of
//! their own, the 200 whose iterations have arrays of their own, the 400 small ones of the forms that passes look for, the 300
//! with reductions of their own and statements that depend on their order, and the 200 whose arrays lie along different axes,
//! are the same every time: the first third of them, unless tests run in full.
//! `KRN_CASES=20000 cargo test --release -p krn-runtime --test all random_kernels::` tries that many new ones;
//! `PROPTEST_RNG_SEED=7` picks which.

use krn_compiler::check::typed::Kernel;
use krn_compiler::data::{HostArray, Scalar};
use krn_compiler::diagnostic::{Diagnostics, Severity};
use krn_compiler::manifest::{ArgumentKind, KernelManifest};
use krn_compiler::passes::{Pipeline, Stage, TargetFacts};
use krn_compiler::reference::{EvalError, bind, can_sample, estimate_cost};
use krn_compiler::source::SourceFile;
use krn_compiler::{Compilation, CompileError, CompileOptions, TARGETS, capability, compile};
use krn_generator::{
    Program, columns, forms, idioms, locals, own_patterns, patterns, permutations, programs,
};
use krn_runtime::verify::{
    Case, CheckOptions, CheckReport, Fill, VerifyError, check, choose_sizes, fill, read_statics,
    reference_inputs,
};
use krn_runtime::{Device, Error, Module};
use proptest::prelude::Strategy;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed, TestCaseError, TestError, TestRunner};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Reference steps that a case may be estimated at; beyond, its sizes shrink.
const STEPS: u128 = 20_000;

/// The same for programs of a form that has launches of its own, whose sizes are chosen for them.
const PATTERN_STEPS: u128 = 3_000_000;

/// The same for large cases, which the device does wholly and the reference in part.
const LARGE_STEPS: u128 = 1_000_000;

/// Sizes of a large case, to begin with, as multiples of the others.
const LARGER: i64 = 9;

/// Reference steps after which a case says nothing: a `while` may be anybody's guess.
const STEP_LIMIT: u64 = 4_000_000;

/// A launch that takes longer does not end.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a run compared.
#[derive(Clone, Copy, Default)]
struct Tally {
    compared: u64,
    uncertain: u64,
    refused: u64,
    skipped: u64,
}

/// Whether the program should run with large arrays, some elements of which are compared.
fn is_large(program: &Program) -> bool {
    program.seed % 16 == 5
}

/// A target, and the passes left out: half of the programs run with the whole pipeline. Every third has the tiles
/// that are meant for matrices of thousands of rows.
fn options(program: &Program) -> CompileOptions {
    let mut options = CompileOptions::for_target(TARGETS[program.seed as usize % TARGETS.len()]);
    if program.seed % 3 == 1 {
        let facts = TargetFacts::new(capability(&options.target).unwrap_or(90));
        let replaced = Pipeline::for_target(&facts).replace("stage", Stage { shape: Some("tiled_large") });
        options.pipeline = Some(replaced.expect("the standard pipeline stages"));
    }
    let mut bits = program.seed / TARGETS.len() as u64;
    if bits % 2 == 1 {
        let pipeline = Pipeline::for_target(&TargetFacts::new(90));
        for name in pipeline.names() {
            bits /= 2;
            // What selection needs cannot be left out.
            if bits % 2 == 1 && pipeline.clone().without(name).is_ok() {
                options.without.push(name.to_string());
            }
        }
    }
    options
}

fn fail(message: impl ToString) -> TestCaseError {
    TestCaseError::fail(message.to_string())
}

/// Makes a signed integer negative: what holds of a positive factor may not hold of it.
fn negate(param: &mut HostArray) {
    if let Some(Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64) = param.element.as_scalar() {
        let value = param.bytes.iter().rev().fold(0i64, |value, byte| value << 8 | i64::from(*byte));
        let size = param.bytes.len();
        param.bytes.copy_from_slice(&(-value).to_le_bytes()[..size]);
    }
}

/// Inputs of the given sizes: mostly small random numbers, some arrays of awkward ones.
fn inputs(
    program: &Program,
    manifest: &KernelManifest,
    dims: &[(String, i64)],
) -> Result<Case, TestCaseError> {
    let dims: BTreeMap<String, i64> = dims.iter().cloned().collect();
    let sizes = choose_sizes(manifest, &dims, &BTreeMap::new(), program.seed, |_| 1).map_err(fail)?;
    let mut case = Case { params: sizes.params, arrays: BTreeMap::new() };
    if program.seed % 2 == 1 {
        case.params.values_mut().for_each(negate);
    }
    for (number, argument) in manifest.arguments.iter().enumerate() {
        let ArgumentKind::Array { buffer, .. } = &argument.kind else { continue };
        let Some(shape) = sizes.shapes.get(&argument.name) else { continue };
        let plan = if (program.seed >> number) % 4 == 3 { Fill::Special } else { Fill::Random };
        let array = fill(&argument.name, &buffer.element, shape, &plan.into(), program.seed).map_err(fail)?;
        case.arrays.insert(argument.name.clone(), array);
    }
    Ok(case)
}

/// The program's sizes, or smaller ones where the reference would take too long.
fn affordable(
    program: &Program,
    compilation: &Compilation,
    kernel: &Kernel,
    module: &Module,
    steps: u128,
) -> Result<Option<Case>, TestCaseError> {
    let manifest = &compilation.compiled.manifest.kernels[0];
    let statics = read_statics(module).map_err(fail)?;
    let mut dims = program.dims.clone();
    let large = steps == STEPS && is_large(program) && can_sample(kernel);
    if large {
        dims.iter_mut().for_each(|(_, size)| *size *= LARGER);
    }
    let limit = if large { LARGE_STEPS } else { steps };
    let mut smaller = false;
    loop {
        let case = match inputs(program, manifest, &dims) {
            // A half of what the program says need not satisfy its facts.
            Err(_) if smaller => return Ok(None),
            case => case?,
        };
        smaller = true;
        let reference = reference_inputs(&compilation.program, kernel, &case, &statics);
        let launch = bind(&reference).map_err(fail)?;
        if estimate_cost(&reference, &launch).total <= limit {
            return Ok(Some(case));
        }
        let Some(most) = dims.iter().map(|(_, size)| *size).max().filter(|most| *most > 2) else {
            return Ok(None);
        };
        for (_, size) in dims.iter_mut().filter(|(_, size)| *size == most) {
            *size = most / 2;
        }
    }
}

fn differences(report: &CheckReport) -> Option<String> {
    let mut text = String::new();
    for output in report.outputs.iter().filter(|output| !output.report.agrees()) {
        let found = &output.report;
        text.push_str(&format!("`{}`: {} of {} differ", output.name, found.mismatches, found.compared));
        if let Some(worst) = &found.worst {
            text.push_str(&format!(
                "; at {:?}{} got {}, expected {} within {:e}",
                worst.index, worst.field, worst.got, worst.expected, worst.bound
            ));
        }
        text.push('\n');
    }
    (!text.is_empty()).then_some(text)
}

/// Runs the check; a launch that does not end is stopped.
fn patiently<T>(interrupted: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> T {
    let (done, waiting) = mpsc::channel::<()>();
    let flag = Arc::clone(interrupted);
    std::thread::spawn(move || {
        if waiting.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            flag.store(true, Ordering::Relaxed);
        }
    });
    let result = work();
    drop(done);
    result
}

/// Whether nothing but directives is refused, for which the kernel has no place.
fn only_schedules(refused: &Diagnostics) -> bool {
    let mut errors = refused.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors.all(|error| matches!(error.code.0, "E0512" | "E0517"))
}

/// Whether device and reference agree, at sizes that take the reference at most so many steps.
fn agrees(program: &Program, steps: u128) -> Result<Tally, TestCaseError> {
    let source = SourceFile::new("random.krn", program.source.as_str());
    let options = options(program);
    let how = format!("for {} without {:?}", options.target, options.without);
    let compilation = match compile(&source, &options) {
        Ok(compilation) => compilation,
        Err(CompileError::Diagnostics(refused)) if only_schedules(&refused) => {
            return agrees(&program.unscheduled(), steps);
        }
        Err(error) => return Err(fail(format!("{how}: {error}"))),
    };
    let interrupted = Arc::new(AtomicBool::new(false));
    let device = Device::interruptible_emulator(Arc::clone(&interrupted));
    let module = device.load(&compilation.compiled).map_err(fail)?;
    let kernel = &compilation.program.kernels[0];
    let Some(case) = affordable(program, &compilation, kernel, &module, steps)? else {
        return Ok(Tally { skipped: 1, ..Tally::default() });
    };
    let limits = CheckOptions {
        full_steps: u128::MAX,
        step_limit: STEP_LIMIT,
        seed: program.seed,
        ..CheckOptions::default()
    };
    let checked = patiently(&interrupted, || check(&module, &compilation.program, kernel, &case, &limits));
    match checked {
        Ok((_, report)) => {
            if let Some(text) = differences(&report) {
                return Err(fail(format!("{how}\n{text}")));
            }
            let mut tally = Tally { refused: u64::from(report.both_refused.is_some()), ..Tally::default() };
            for output in &report.outputs {
                tally.compared += output.report.compared;
                tally.uncertain += output.report.uncertain;
            }
            Ok(tally)
        }
        // Too much work for a test is no fault.
        Err(VerifyError::Reference(EvalError::StepLimit { .. })) => {
            Ok(Tally { skipped: 1, ..Tally::default() })
        }
        Err(VerifyError::Run(Error::Interrupted)) => Err(fail(format!("{how}: the launch does not end"))),
        Err(error) => Err(fail(format!("{how}: {error}"))),
    }
}

/// Tries a share of `cases` programs (`KRN_CASES` in the environment: as many, new ones).
fn try_all(programs: impl Strategy<Value = Program>, cases: u32, steps: u128) {
    let given = std::env::var("KRN_CASES").ok().and_then(|count| count.parse().ok());
    let mut config = Config {
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    match given {
        Some(given) => config.cases = given,
        None => (config.cases, config.rng_seed) = (xtask::share_of_cases(cases), RngSeed::Fixed(1)),
    }
    let total = Cell::new(Tally::default());
    let result = TestRunner::new(config.clone()).run(&programs, |program| {
        let one = agrees(&program, steps)?;
        let sum = total.get();
        total.set(Tally {
            compared: sum.compared + one.compared,
            uncertain: sum.uncertain + one.uncertain,
            refused: sum.refused + one.refused,
            skipped: sum.skipped + one.skipped,
        });
        Ok(())
    });
    match result {
        Ok(()) => {}
        Err(TestError::Fail(reason, program)) => panic!("{reason}\n{program:?}"),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
    let Tally { compared, uncertain, refused, skipped } = total.get();
    println!(
        "{compared} scalars agree, {uncertain} uncertain, {refused} runs refused by both, {skipped} skipped"
    );
    // A test that judges nothing must not pass.
    let cases = u64::from(config.cases);
    assert!(
        skipped * 5 <= cases && refused * 5 <= cases,
        "{skipped} skipped and {refused} refused of {cases}"
    );
    assert!(uncertain <= compared, "{uncertain} of {} scalars are uncertain", compared + uncertain);
}

#[test]
fn the_emulator_agrees_with_the_reference() {
    try_all(programs(), 1500, STEPS);
}

#[test]
fn large_launches_agree_with_the_reference() {
    try_all(patterns(), 150, PATTERN_STEPS);
}

#[test]
fn arrays_of_an_iteration_agree_with_the_reference() {
    try_all(locals(), 200, STEPS);
}

#[test]
fn small_kernels_of_the_forms_that_passes_look_for_agree_with_the_reference() {
    try_all(forms(), 400, STEPS);
}

#[test]
fn own_reductions_and_statements_in_order_agree_with_the_reference() {
    try_all(idioms(), 300, STEPS);
}

#[test]
fn large_own_reductions_agree_with_the_reference() {
    try_all(own_patterns(), 150, PATTERN_STEPS);
}

#[test]
fn arrays_along_different_axes_agree_with_the_reference() {
    try_all(permutations(), 200, STEPS);
}

#[test]
fn axes_that_are_walked_several_times_agree_with_the_reference() {
    try_all(columns(), 200, STEPS);
}

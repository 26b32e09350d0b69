//! Running a kernel on a device and holding every output against the reference evaluator.
//!
//! - `fill.rs`: inputs from a seed.
//! - `sizes.rs`: dimensions and scalars that satisfy the kernel's facts; `facts.rs`: what they ask for.
//! - `rungs.rs`: the passes of a pipeline, added one by one.
//! - `bisect.rs`: the first of them that does harm.
//! - `judgement.rs`: what a comparison amounts to.
//! - here: one case, run on both sides and compared.

mod bisect;
pub mod cases;
mod facts;
mod fill;
mod judgement;
mod rungs;
mod sizes;

pub use bisect::{BisectError, BisectStep, Bisection, Verdict, bisect};
pub use fill::{Fill, FillError, FillPlan, fill};
pub use judgement::Judgement;
pub use rungs::{Rung, RungError, Rungs, rungs};
pub use sizes::{SizeError, Sizes, choose_sizes};

use crate::error::Error;
use crate::launch::module::Module;
use crate::transfer::run::Outputs;
use krn_compiler::check::typed::{Kernel, Program, SignatureItem};
use krn_compiler::data::HostArray;
use krn_compiler::reference::{
    self, BrokenLaw, CompareReport, Elements, EvalError, Evaluations, Inputs, LEAST_EVALUATIONS, Options,
    SampleSpec, can_sample, estimate_cost, evaluate_lawfully,
};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

/// Everything that a run of a kernel needs.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Scalar and struct parameters, as rank-0 arrays.
    pub params: BTreeMap<String, HostArray>,
    /// Inputs and inouts.
    pub arrays: BTreeMap<String, HostArray>,
}

/// How hard to check.
#[derive(Clone, Copy, Debug)]
pub struct CheckOptions {
    /// Estimated reference steps above which only a sample is evaluated (where that is sound).
    pub full_steps: u128,
    /// Iterations of each statement that a sample takes at most.
    pub sample_iterations: u64,
    /// Estimated reference steps that all lawful evaluations of a second judgement may take together.
    pub second_steps: u128,
    /// Reference steps after which the check gives up.
    pub step_limit: u64,
    /// Picks the sampled elements.
    pub seed: u64,
    /// Where the reference's steps so far are written now and then, for whoever waits.
    pub progress: Option<&'static AtomicU64>,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            full_steps: 200_000_000,
            // A sample is a set of places, kept in memory: as many as the steps allow would take minutes.
            sample_iterations: 1 << 20,
            second_steps: 200_000_000,
            step_limit: 20_000_000_000,
            seed: 0,
            progress: None,
        }
    }
}

/// What the check of one output found.
#[derive(Clone, PartialEq, Debug)]
pub struct OutputCheck {
    pub name: String,
    pub report: CompareReport,
    /// Elements that the reference evaluated, where it was not all of them.
    pub sampled: Option<u64>,
}

/// A check that failed on the device and on the reference alike.
#[derive(Clone, PartialEq, Debug)]
pub struct Refusal {
    pub check: FailedCheck,
    /// What the device said.
    pub text: String,
}

/// What a failed check was about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailedCheck {
    /// An access outside its array.
    Bounds,
    /// A fact about the values of an array.
    Fact,
    /// An `assert`.
    Assertion,
}

/// What a checked run found.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckReport {
    pub outputs: Vec<OutputCheck>,
    /// What the device said where it refused, and the reference refused as well.
    pub both_refused: Option<Refusal>,
    /// The reference met a comparison or a conversion to an integer that rounding may decide either way.
    pub undecided: bool,
    /// What was promised of the file's own reductions and does not hold of what they combined.
    pub broken: Vec<BrokenLaw>,
}

impl CheckReport {
    /// No value is outside its bound. That says nothing where nothing was judged: see [`CheckReport::judgement`].
    pub fn agrees(&self) -> bool {
        self.outputs.iter().all(|output| output.report.agrees())
    }
}

/// Why a case could not be checked, or failed beyond differing numbers.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("{0}")]
    Run(#[from] Error),
    /// The reference refused what the device ran.
    #[error("the reference evaluator refuses this run: {0}")]
    Reference(EvalError),
    /// The device reported a failed check that the reference does not have.
    #[error("{0}; the reference evaluator finds that every check holds")]
    OnlyDevice(Error),
    #[error("the outputs cannot be compared: {0}")]
    Compare(String),
}

/// Runs the case on the module's device.
///
/// # Errors
/// Everything in [`Error`].
pub fn run(module: &Module, kernel: &Kernel, case: &Case) -> Result<Outputs, Error> {
    let mut inputs: Vec<(&str, &HostArray)> = Vec::new();
    for item in &kernel.signature {
        let (name, values) = match item {
            SignatureItem::Param(id) => (kernel.params[*id].name.as_str(), &case.params),
            SignatureItem::Array(id) => (kernel.arrays[*id].name.as_str(), &case.arrays),
        };
        if let Some(value) = values.get(name) {
            inputs.push((name, value));
        }
    }
    module.kernel(&kernel.name)?.run(&inputs)
}

/// The statics' values on the device, by name.
///
/// # Errors
/// A failed copy.
pub fn read_statics(module: &Module) -> Result<BTreeMap<String, HostArray>, Error> {
    let names: Vec<String> = module.manifest().statics.iter().map(|s| s.name.clone()).collect();
    names.into_iter().map(|name| module.read_static(&name).map(|value| (name, value))).collect()
}

/// Runs the case on the device and on the reference, and compares every output and static.
///
/// # Errors
/// See [`VerifyError`]. Differing numbers are not an error: see [`CheckReport::agrees`].
pub fn check(
    module: &Module,
    program: &Program,
    kernel: &Kernel,
    case: &Case,
    options: &CheckOptions,
) -> Result<(Option<Outputs>, CheckReport), VerifyError> {
    check_once_more(module, program, kernel, case, options, &mut None)
}

/// What the reference said of a case, and what the statics held before it.
pub type Known = (BTreeMap<String, HostArray>, Expectation);

/// As [`check`], of a case that may have run on another module: what the reference said is `known` then, and is asked again
/// where this module's statics hold something else.
///
/// # Errors
/// As for [`check`].
pub fn check_once_more(
    module: &Module,
    program: &Program,
    kernel: &Kernel,
    case: &Case,
    options: &CheckOptions,
    known: &mut Option<Known>,
) -> Result<(Option<Outputs>, CheckReport), VerifyError> {
    let before = read_statics(module)?;
    let device = run_or_refuse(module, kernel, case)?;
    if known.as_ref().is_some_and(|(statics, _)| *statics != before) {
        *known = None;
    }
    let of_reference = || {
        let expected = Expectation::of(program, kernel, case, &before, options);
        (before, expected)
    };
    known.get_or_insert_with(of_reference).1.judge(module, device)
}

/// Runs the case; what never ran has nothing to be compared with, and is an error.
fn run_or_refuse(
    module: &Module,
    kernel: &Kernel,
    case: &Case,
) -> Result<Result<Outputs, Error>, VerifyError> {
    match run(module, kernel, case) {
        Err(
            error @ (Error::OutOfMemory { .. }
            | Error::Argument { .. }
            | Error::Endless { .. }
            | Error::Interrupted),
        ) => Err(VerifyError::Run(error)),
        device => Ok(device),
    }
}

/// What the reference says of a case: evaluated once, held against as many compilations of the kernel as there are.
pub struct Expectation {
    outputs: Result<reference::Outputs, EvalError>,
    /// For what the bounds do not judge.
    evaluations: Option<Evaluations>,
}

impl Expectation {
    /// `statics` hold what the module's statics hold before the run ([`read_statics`]).
    pub fn of(
        program: &Program,
        kernel: &Kernel,
        case: &Case,
        statics: &BTreeMap<String, HostArray>,
        options: &CheckOptions,
    ) -> Self {
        evaluate(&reference_inputs(program, kernel, case, statics), options)
    }

    /// Runs the case on the module, whose statics hold what they did for the reference, and compares every output
    /// and static.
    ///
    /// # Errors
    /// As for [`check`].
    pub fn check(
        &self,
        module: &Module,
        kernel: &Kernel,
        case: &Case,
    ) -> Result<(Option<Outputs>, CheckReport), VerifyError> {
        self.judge(module, run_or_refuse(module, kernel, case)?)
    }

    fn judge(
        &self,
        module: &Module,
        device: Result<Outputs, Error>,
    ) -> Result<(Option<Outputs>, CheckReport), VerifyError> {
        match (device, &self.outputs) {
            (Ok(outputs), Ok(expected)) => {
                let report = compare(module, &outputs, expected, self.evaluations.as_ref())?;
                Ok((Some(outputs), report))
            }
            (Err(Error::Bounds(failure)), Err(EvalError::OutOfBounds { proved: false, .. })) => {
                Ok((None, refused(FailedCheck::Bounds, failure.to_string())))
            }
            (Err(Error::NotInjective(failure)), Err(EvalError::NotInjective { .. })) => {
                Ok((None, refused(FailedCheck::Fact, failure.to_string())))
            }
            (Err(Error::Assertion(failure)), Err(EvalError::AssertionFailed { .. })) => {
                Ok((None, refused(FailedCheck::Assertion, failure.to_string())))
            }
            // Rounding decides whether it holds.
            (Err(error @ Error::Assertion(_)), Ok(expected)) if expected.undecided => {
                Err(VerifyError::Run(error))
            }
            (Err(error @ (Error::Bounds(_) | Error::NotInjective(_) | Error::Assertion(_))), Ok(_)) => {
                Err(VerifyError::OnlyDevice(error))
            }
            (Err(error), _) => Err(VerifyError::Run(error)),
            (Ok(_), Err(error)) => Err(VerifyError::Reference(error.clone())),
        }
    }
}

fn refused(check: FailedCheck, text: String) -> CheckReport {
    CheckReport {
        outputs: Vec::new(),
        both_refused: Some(Refusal { check, text }),
        undecided: false,
        broken: Vec::new(),
    }
}

/// The reference's view of a case.
pub fn reference_inputs<'a>(
    program: &'a Program,
    kernel: &'a Kernel,
    case: &'a Case,
    statics: &'a BTreeMap<String, HostArray>,
) -> Inputs<'a> {
    let used = |name: &str| kernel.arrays.values().any(|array| array.name == name);
    Inputs {
        program,
        kernel,
        dims: BTreeMap::new(),
        params: case.params.clone(),
        arrays: case.arrays.iter().map(|(name, array)| (name.clone(), array)).collect(),
        statics: statics
            .iter()
            .filter(|(name, _)| used(name))
            .map(|(name, value)| (name.clone(), value))
            .collect(),
    }
}

fn evaluate(inputs: &Inputs<'_>, options: &CheckOptions) -> Expectation {
    let launch = match reference::bind(inputs) {
        Ok(launch) => launch,
        Err(error) => return Expectation { outputs: Err(error), evaluations: None },
    };
    let cost = estimate_cost(inputs, &launch);
    let model = krn_compiler::error_model_of(inputs.kernel);
    let sampled = can_sample(inputs.kernel);
    // A smaller sample is the beginning of a larger one.
    let sample = |iterations: u128| SampleSpec {
        iterations: u64::try_from(iterations.max(64)).unwrap_or(u64::MAX).min(options.sample_iterations),
        seed: options.seed,
    };
    let each = (cost.total / cost.iterations.max(1)).max(1);
    let reference_options = Options {
        step_limit: options.step_limit,
        model,
        progress: options.progress,
        sample: (cost.total > options.full_steps && sampled).then(|| sample(options.full_steps / each)),
        ..Options::default()
    };
    let outputs = match reference::evaluate(inputs, &reference_options) {
        Ok(outputs) => outputs,
        Err(error) => return Expectation { outputs: Err(error), evaluations: None },
    };
    let evaluations = second(inputs, reference_options, options, &outputs);
    let outputs = Ok(outputs);
    Expectation { outputs, evaluations }
}

/// The lawful evaluations of what is open in `outputs`, which `reference_options` gave: of all of it where `steps` allow.
fn second(
    inputs: &Inputs<'_>,
    mut reference_options: Options,
    options: &CheckOptions,
    outputs: &reference::Outputs,
) -> Option<Evaluations> {
    let steps = options.second_steps;
    let arrays = || outputs.arrays.iter().chain(&outputs.statics);
    let mut open: Elements = arrays().map(|(name, array)| (name.clone(), array.open())).collect();
    open.retain(|_, elements| !elements.is_empty());
    if open.is_empty() {
        return None;
    }
    let most = steps / LEAST_EVALUATIONS;
    if !can_sample(inputs.kernel) {
        let possible = u128::from(outputs.steps) <= most;
        return possible.then(|| evaluate_lawfully(inputs, &reference_options, steps)).flatten();
    }
    let all: u128 = arrays().map(|(_, array)| array.bounds.len() as u128).sum();
    // An iteration that writes several elements takes longer.
    let estimate = u128::from(outputs.steps) * count(&open) / all.max(1);
    let mut fewer = estimate.div_ceil(most.max(1)).max(1);
    thin(&mut open, fewer, options.seed);
    loop {
        reference_options.elements = Some(open.clone());
        let evaluations = evaluate_lawfully(inputs, &reference_options, steps);
        let before = count(&open);
        // Eight times as few of all that there were: the same numbers decide.
        fewer = fewer.saturating_mul(8);
        thin(&mut open, fewer, options.seed);
        if evaluations.is_some() || count(&open) == before {
            return evaluations;
        }
    }
}

fn count(open: &Elements) -> u128 {
    open.values().map(|elements| elements.len() as u128).sum()
}

/// Keeps about one of so many elements, by chance: what is wrong may lie in each second place. One of each array at least.
fn thin(open: &mut Elements, step: u128, seed: u64) {
    for elements in open.values_mut() {
        let keeps =
            |element: &u64| u128::from(fill::word(seed, *element)).saturating_mul(step.max(1)) < 1 << 64;
        let first = elements.first().copied();
        elements.retain(keeps);
        elements.extend(first.filter(|_| elements.is_empty()));
    }
}

fn compare(
    module: &Module,
    outputs: &Outputs,
    expected: &reference::Outputs,
    evaluations: Option<&Evaluations>,
) -> Result<CheckReport, VerifyError> {
    let mut report = CheckReport {
        outputs: Vec::new(),
        both_refused: None,
        undecided: expected.undecided,
        broken: expected.broken.clone(),
    };
    let mut one = |name: &str, expected: &reference::OutputArray, got: &HostArray| {
        let evaluated =
            evaluations.map(|all| all.of(|outputs| outputs.arrays.get(name).or(outputs.statics.get(name))));
        let found = reference::compare_with(expected, evaluated, got)
            .map_err(|error| VerifyError::Compare(format!("`{name}`: {error}")))?;
        let chosen = expected.evaluated.as_ref().map(|chosen| chosen.len() as u64);
        let sampled = chosen.filter(|chosen| *chosen < got.len());
        report.outputs.push(OutputCheck { name: name.to_string(), report: found, sampled });
        Ok::<(), VerifyError>(())
    };
    for (name, got) in &outputs.arrays {
        match expected.arrays.get(name) {
            Some(expected) => one(name, expected, got)?,
            None => return Err(VerifyError::Compare(format!("the reference has no output `{name}`"))),
        }
    }
    for (name, expected) in &expected.statics {
        let got = module.read_static(name)?;
        one(name, expected, &got)?;
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_judged_a_second_time_lies_anywhere() {
        let mut open = Elements::from([("x".to_string(), (0..1000).collect()), ("y".to_string(), vec![7])]);
        thin(&mut open, 1, 0);
        assert_eq!(open["x"].len(), 1000);
        thin(&mut open, 2, 0);
        let odd = open["x"].iter().filter(|element| *element % 2 == 1).count();
        assert!((400..600).contains(&open["x"].len()) && (150..350).contains(&odd), "{odd} of {open:?}");
        thin(&mut open, 1 << 70, 0);
        assert_eq!((open["x"].len(), &open["y"]), (1, &vec![7]));
    }
    use crate::device::{Device, Selection};
    use krn_compiler::source::SourceFile;
    use krn_compiler::{CompileOptions, compile};

    /// How many elements a check of `y[i] = x[i] + 1.0` evaluates; `None` for all.
    fn sampled(n: u64, options: &CheckOptions) -> Option<u64> {
        let source = SourceFile::new("t.krn", "kernel add(x: f32[n]) -> y: f32[n] { y[i] = x[i] + 1.0 }\n");
        let target = CompileOptions::for_target(krn_compiler::TARGETS[0]);
        let compilation = compile(&source, &target).expect("well typed");
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let module = device.load(&compilation.compiled).expect("loads");
        let kernel = &compilation.program.kernels[0];
        let element = krn_compiler::data::ElementType::scalar(krn_compiler::data::Scalar::F32);
        let x = fill("x", &element, &[n], &Fill::Random.into(), 1).expect("small");
        let case = Case { params: BTreeMap::new(), arrays: BTreeMap::from([("x".to_string(), x)]) };
        let (_, report) = check(&module, &compilation.program, kernel, &case, options).expect("runs");
        assert!(report.agrees() && report.outputs.len() == 1);
        assert!(report.outputs[0].report.compared > 0);
        report.outputs[0].sampled
    }

    #[test]
    fn a_sample_of_the_second_judgement_finds_what_is_wrong_in_each_second_place() {
        let compiled = |value: &str| {
            let text = format!(
                "kernel chaos(x: f32[n]) -> y: f32[n] {{\n    forall i in n {{\n        var v = x[i]\n        \
                 for k in 0..100 {{ v = 3.9 * v * (1.0 - v) }}\n        y[i] = {value}\n    }}\n}}\n"
            );
            let target = CompileOptions::for_target(krn_compiler::TARGETS[0]);
            compile(&SourceFile::new("t.krn", text), &target).expect("well typed")
        };
        let (right, wrong) = (compiled("v"), compiled("if i % 2 == 1 { 0.5 } else { v }"));
        let element = krn_compiler::data::ElementType::scalar(krn_compiler::data::Scalar::F32);
        let between = Fill::Range { low: 0.1, high: 0.9 };
        let x = fill("x", &element, &[300], &between.into(), 1).expect("small");
        let case = Case { params: BTreeMap::new(), arrays: BTreeMap::from([("x".to_string(), x)]) };
        let options = CheckOptions { second_steps: 1_000_000, ..CheckOptions::default() };
        let device = Device::open_as(Selection::Emulator).expect("always there");
        let judged = |compilation: &krn_compiler::Compilation| {
            let module = device.load(&compilation.compiled).expect("loads");
            check(&module, &right.program, &right.program.kernels[0], &case, &options).expect("runs").1
        };
        let report = judged(&right);
        let second = &report.outputs[0].report.second;
        assert!(second.left_out > 50 && second.judged > 50, "{second:?}");
        assert_eq!(report.judgement(), Judgement::Verified);
        assert!(matches!(judged(&wrong).judgement(), Judgement::NotVerified(_)));
    }

    #[test]
    fn a_sample_has_no_more_than_its_iterations_and_is_one_only_where_elements_are_left_out() {
        let few = CheckOptions { full_steps: 1000, sample_iterations: 20, ..CheckOptions::default() };
        let count = sampled(5000, &few).expect("too many for the steps");
        assert!((2..=20).contains(&count), "{count}");
        assert_eq!(sampled(100, &few), None);
        assert_eq!(sampled(5000, &CheckOptions::default()), None);
        // One element, of which the sample has all.
        let none = CheckOptions { full_steps: 0, ..few };
        assert_eq!(sampled(1, &none), None);
    }
}

//! The quick set: some hundred small random kernels, the same every time, and what each of them computes. Passes are held
//! against it (`mutants.rs`), and how often each does anything in it (`rates.rs`).

use crate::compile::check;
use crate::data::Scalar;
use crate::diagnostic::Severity;
use crate::ir::Specialization;
use crate::ir::entities::Buffer;
use crate::ir::kernel::{BufferKind, Kernel, Payload};
use crate::ir::op::Constant;
use crate::ir::testing::{Outcome, generate, host_values, interpret};
use crate::lower::{LowerOptions, lower};
use crate::manifest::SymbolKind;
use crate::passes::{
    Matricize, Pipeline, PipelineError, PipelineOptions, SeparateWindows, SplitResidues, TargetFacts,
};
use crate::source::SourceFile;
use krn_generator::{
    Program, branches, columns, contractions, folds, forms, idioms, locals, loops, patterns, permutations,
    programs, spaces, strides, time_steps,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;

/// Where kernels come from, and how many of each.
pub const SOURCES: [(&str, usize); 15] = [
    ("forms", 400),
    ("spaces", 120),
    ("locals", 80),
    ("tapes", 120),
    ("programs", 80),
    ("patterns", 60),
    ("permutations", 80),
    ("columns", 200),
    ("idioms", 200),
    ("steps", 40),
    ("strides", 120),
    ("loops", 240),
    ("contractions", 80),
    ("folds", 240),
    ("branches", 160),
];

/// A kernel before all passes.
pub struct Sample {
    /// `forms 17`
    pub name: String,
    pub kernel: Kernel,
    /// The symbols' values.
    symbols: Vec<Constant>,
    /// The text of a `.krn` file, or the tape.
    pub text: String,
}

/// The first `count` values of a strategy, the same every time.
fn sampled<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>, count: usize) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    let mut next = || strategy.new_tree(&mut runner).expect("no filter").current();
    (0..count).map(|_| next()).collect()
}

/// The kernels of a source.
pub fn samples_of(source: &'static str) -> Vec<Sample> {
    if source == "tapes" {
        let tapes = sampled(proptest::collection::vec(any::<u8>(), 100..400), count_of(source));
        let sample = |(number, tape): (usize, Vec<u8>)| {
            let mut kernel = generate(&tape);
            let symbols = symbols(&kernel, &[("n".to_string(), 3), ("m".to_string(), 4)]);
            kernel.specialization = Specialization::for_values(host_values(&symbols));
            Sample { name: format!("{source} {number}"), kernel, symbols, text: format!("{tape:?}") }
        };
        return tapes.into_iter().enumerate().map(sample).collect();
    }
    let samples = programs_of(source).into_iter().enumerate();
    samples.filter_map(|(number, program)| of_program(source, number, &program)).collect()
}

fn count_of(source: &str) -> usize {
    SOURCES.iter().find(|(name, _)| *name == source).map_or(0, |(_, count)| *count)
}

/// The programs of a source of programs.
pub fn programs_of(source: &str) -> Vec<Program> {
    let count = count_of(source);
    match source {
        "forms" => sampled(forms(), count),
        "spaces" => sampled(spaces(), count),
        "locals" => sampled(locals(), count),
        "programs" => sampled(programs(), count),
        "patterns" => sampled(patterns(), count),
        "permutations" => sampled(permutations(), count),
        "columns" => sampled(columns(), count),
        "idioms" => sampled(idioms(), count),
        "steps" => sampled(time_steps(), count),
        "strides" => sampled(strides(), count),
        "loops" => sampled(loops(), count),
        "contractions" => sampled(contractions(), count),
        "folds" => sampled(folds(), count),
        "branches" => sampled(branches(), count),
        _ => unreachable!("`{source}` has no programs"),
    }
}

/// Of a program with directives for which it has no place, the sample is the program without its schedule.
fn of_program(source: &'static str, number: usize, program: &Program) -> Option<Sample> {
    let file = SourceFile::new("random.krn", program.source.as_str());
    let (typed, reports) = check(&file);
    let mut errors = reports.iter().filter(|report| report.severity == Severity::Error).peekable();
    if errors.peek().is_some() {
        assert!(
            errors.all(|error| error.code.0.starts_with("E05")) && *program != program.unscheduled(),
            "{source} {number}: {reports:?}\n{program:?}"
        );
        return of_program(source, number, &program.unscheduled());
    }
    let mut module = lower(&typed, &file, LowerOptions::for_target("sm_90")).ok()?;
    let mut kernel = module.kernels.swap_remove(0);
    let symbols = symbols(&kernel, &program.dims);
    kernel.specialization = Specialization::for_values(host_values(&symbols));
    Some(Sample { name: format!("{source} {number}"), kernel, symbols, text: format!("{program:?}") })
}

/// Values for a kernel's symbols: its sizes, and parameters of which none is 0, and some are negative.
fn symbols(kernel: &Kernel, dims: &[(String, i64)]) -> Vec<Constant> {
    let value = |(number, data): (usize, &crate::ir::kernel::SymbolData)| {
        let dim = dims.iter().find(|(name, _)| *name == data.name).map(|(_, size)| *size);
        let int = match (&data.kind, dim) {
            (SymbolKind::Dim { .. }, Some(size)) => size.into(),
            _ if data.scalar.is_unsigned_integer() => [3, 1, 6][number % 3],
            // The first parameter of most kernels, a factor of many reductions, is negative.
            _ => [5, 2, -3][number % 3],
        };
        let float = [-1.5, 2.0, 0.75][number % 3];
        match data.scalar.widened() {
            Scalar::Bool => Constant::Bool(number % 2 == 0),
            Scalar::F32 => Constant::F32((float as f32).to_bits()),
            Scalar::F64 => Constant::F64(f64::to_bits(float)),
            scalar => Constant::Int(scalar, int),
        }
    };
    kernel.symbols.values().enumerate().map(value).collect()
}

impl Sample {
    /// What a kernel that became of the sample computes: from plain numbers, and from those that careless rules get wrong.
    pub fn outcomes(&self, kernel: &Kernel) -> Vec<Outcome> {
        let spread = |buffer: Buffer, leaf: u32, at: usize| {
            let place = i64::from(buffer.as_u32()) * 101 + i64::from(leaf) * 17 + at as i64 + 1;
            place * 2_654_435_761 % 1009
        };
        // The interpreter takes multiples of 7, and two more of seven numbers, for -0, NaN and infinity.
        let plain = |buffer, leaf, at| {
            let number = spread(buffer, leaf, at) % 28;
            number / 4 * 7 + 3 + number % 4 - 28
        };
        let special = |buffer, leaf, at| spread(buffer, leaf, at) % 50 - 20;
        vec![interpret(kernel, &self.symbols, &plain), interpret(kernel, &self.symbols, &special)]
    }
}

/// A pipeline whose passes do for a few results what pays for many.
pub fn whatever_the_sizes(pipeline: Pipeline) -> Pipeline {
    let pipeline = pipeline.replace("split_residues", SplitResidues { least: 1 });
    pipeline
        .and_then(|pipeline| pipeline.replace("matricize", Matricize { always: true }))
        .and_then(|pipeline| pipeline.replace("separate_windows", SeparateWindows { always: true }))
        .expect("they are known")
}

/// The standard pipeline, as far as threads that run one after another can run what it leaves: no teams, which wait for
/// each other.
pub fn pipeline() -> Pipeline {
    let standard = Pipeline::for_target(&TargetFacts::new(90));
    let standard = whatever_the_sizes(standard);
    let known: Vec<String> = standard.names().map(str::to_string).collect();
    let teams = ["stage", "split_reductions", "privatize"].into_iter();
    teams
        .filter(|name| known.iter().any(|known| known == name))
        .try_fold(standard, |pipeline, name| pipeline.without(name))
        .expect("none is required")
}

/// What becomes of a sample.
pub fn after(sample: &Sample, pipeline: &Pipeline) -> Result<Kernel, PipelineError> {
    let mut kernel = sample.kernel.clone();
    // Verified once, after the last pass.
    let options = PipelineOptions { verify: false, ..PipelineOptions::default() };
    pipeline.run(&mut kernel, &options, &mut |_| {})?;
    Ok(kernel)
}

/// What is wrong with what became of a sample.
pub fn complaint(sample: &Sample, expected: &[Outcome], after: &Kernel) -> Option<String> {
    layouts(&sample.kernel, after).or_else(|| {
        let pairs = expected.iter().zip(sample.outcomes(after));
        pairs.into_iter().find_map(|(expected, found)| difference(expected, &found))
    })
}

/// Layouts are for the passes to choose only of arguments and scratch that something accesses, where nobody has said one.
fn layouts(before: &Kernel, after: &Kernel) -> Option<String> {
    let mut accessed = BTreeSet::new();
    before.walk_all(&mut |_, inst| {
        if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = before.insts[inst].payload {
            accessed.insert(buffer);
        }
    });
    before.buffers.iter().find_map(|(buffer, data)| {
        let free = matches!(data.kind, BufferKind::Argument { .. } | BufferKind::Scratch)
            && !data.layout_fixed
            && accessed.contains(&buffer);
        let kept = free || after.buffers[buffer].layout == data.layout;
        (!kept).then(|| format!("the layout of `{}` changed", data.name))
    })
}

/// How two outcomes differ; floats may differ in their last bits, since sums are reordered and products fused.
fn difference(expected: &Outcome, found: &Outcome) -> Option<String> {
    let (Outcome::Finished(before), Outcome::Finished(after)) = (expected, found) else {
        // A pass may take instructions out of a run that is too long, never put them in without bound.
        let same = expected == found || *expected == Outcome::OutOfFuel || *found == Outcome::OutOfFuel;
        return (!same).then(|| format!("{expected:?} became {found:?}"));
    };
    before.iter().find_map(|(place, before)| {
        let after = after.get(place)?;
        let number = |value: &Constant| match value {
            Constant::F32(bits) => f32::from_bits(*bits).into(),
            Constant::F64(bits) => f64::from_bits(*bits),
            _ => 0.0,
        };
        let largest =
            before.iter().map(number).filter(|value| value.is_finite()).fold(0.0, |a: f64, b| a.max(b.abs()));
        let pairs = before.iter().zip(after).enumerate();
        let differ = |a: &Constant, b: &Constant| match (a, b) {
            (Constant::F32(_), Constant::F32(_)) | (Constant::F64(_), Constant::F64(_)) => {
                let (a, b) = (number(a), number(b));
                let same = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
                let close = a != 0.0 && b != 0.0 && (a - b).abs() <= 1e-3 * largest;
                !same && !close
            }
            _ => a != b,
        };
        pairs
            .into_iter()
            .find_map(|(at, (a, b))| differ(a, b).then(|| format!("{place:?}[{at}] is {b:?}, not {a:?}")))
    })
}

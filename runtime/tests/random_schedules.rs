//! Random schedules change nothing of what a kernel computes: the examples, and random programs, under schedules at
//! random, held against the reference evaluator. What cannot be carried out is refused by a diagnostic; the refused
//! lines are taken out, and what is left is run.
//!
//! `KRN_SCHEDULES=200 cargo test --release -p krn-runtime --test all random_schedules::` tries that many schedules of each
//! example and a hundred times as many random programs; `KRN_SCHEDULE_SEED=7` picks which. With
//! `KRN_SCHEDULE_FILES=folder` the examples with their schedules are written there, for `krn test` on a GPU.

use krn_compiler::check::typed::{Kernel, Program};
use krn_compiler::data::HostArray;
use krn_compiler::diagnostic::Diagnostics;
use krn_compiler::reference::{EvalError, bind, estimate_cost};
use krn_compiler::source::SourceFile;
use krn_compiler::{Compilation, CompileError, CompileOptions, compile};
use krn_generator::{program, random_schedule};
use krn_runtime::verify::cases::{self, Directives, Expected};
use krn_runtime::verify::{
    Case, CheckOptions, Fill, VerifyError, check, choose_sizes, fill, read_statics, reference_inputs,
};
use krn_runtime::{Device, Selection};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Schedules of each example, and random programs, unless the environment says how many.
fn schedules() -> u64 {
    if xtask::tests_run_in_full() { 2 } else { 1 }
}

fn programs() -> u64 {
    xtask::share_of_cases(100).into()
}

/// Cases of each kernel that are run: the first ones, and the last, which is the largest.
const CASES: usize = 3;
/// Reference steps of a case.
const STEPS: u128 = 20_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The names of a kernel's loops, and of its arrays.
fn names(kernel: &Kernel) -> (Vec<String>, Vec<String>) {
    let mut axes: Vec<String> = kernel.indices.values().map(|index| index.name.clone()).collect();
    let mut arrays: Vec<String> = kernel.arrays.values().map(|array| array.name.clone()).collect();
    for names in [&mut axes, &mut arrays] {
        names.sort();
        names.dedup();
    }
    (axes, arrays)
}

/// The text with all schedules blanked out, its lines where they were.
fn without_schedules(text: &str, program: &Program) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for schedule in program.kernels.iter().flat_map(|kernel| &kernel.schedules) {
        for byte in &mut bytes[schedule.span.start as usize..schedule.span.end as usize] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    String::from_utf8(bytes).expect("whole schedules are blanked")
}

/// Compiles a text with schedules behind it; lines of those that are refused are taken out until none is. Anything
/// else that goes wrong is a complaint.
fn compiled(base: &str, schedules: &str) -> Result<(Compilation, String), String> {
    let mut lines: Vec<String> = schedules.lines().map(str::to_string).collect();
    let first = base.lines().count() as u32;
    for _ in 0..=lines.len() {
        let text = format!("{}\n{}\n", base.trim_end_matches('\n'), lines.join("\n"));
        let source = SourceFile::new("k.krn", text.as_str());
        let refused = match compile(&source, &CompileOptions::for_target("sm_90")) {
            Ok(compilation) => return Ok((compilation, lines.join("\n"))),
            Err(CompileError::Diagnostics(refused)) => refused,
            Err(error) => return Err(format!("{error}\n{}", lines.join("\n"))),
        };
        for line in refused_lines(&source, &refused, first)? {
            lines[line].clear();
        }
    }
    Err(format!("lines are refused again and again\n{}", lines.join("\n")))
}

/// Which lines of the schedules are refused, counted from their first.
fn refused_lines(source: &SourceFile, refused: &Diagnostics, first: u32) -> Result<Vec<usize>, String> {
    let mut lines = Vec::new();
    for diagnostic in refused.iter() {
        let line = source.line_column(diagnostic.primary.span.start).0;
        let about_schedules = diagnostic.code.0.starts_with("E05");
        match line.checked_sub(first + 1).filter(|_| about_schedules) {
            Some(line) => lines.push(line as usize),
            None if diagnostic.code.0.starts_with('W') => {}
            None => return Err(format!("{}: {}", diagnostic.code.0, diagnostic.message)),
        }
    }
    Ok(lines)
}

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the examples")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "krn"))
        .collect();
    files.sort();
    files
}

/// What is wrong with the kernels of a file under schedules at random.
fn complaints(path: &Path, device: &Device, seed: u64, wrong: &mut Vec<String>) -> usize {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = fs::read_to_string(path).expect("an example");
    let (whole, _) = compiled(&text, "").unwrap_or_else(|error| panic!("{name}: {error}"));
    let base = without_schedules(&text, &whole.program);
    let schedule = |(at, kernel): (usize, &Kernel)| {
        let (axes, arrays) = names(kernel);
        random_schedule(&kernel.name, &axes, &arrays, seed.wrapping_mul(1009) + at as u64)
    };
    let schedules: Vec<String> = whole.program.kernels.iter().enumerate().map(schedule).collect();
    let (compilation, kept) = match compiled(&base, &schedules.concat()) {
        Ok(found) => found,
        Err(error) => {
            wrong.push(format!("{name}, seed {seed}: {error}"));
            return 0;
        }
    };
    if let Ok(folder) = std::env::var("KRN_SCHEDULE_FILES") {
        let path = Path::new(&folder).join(format!("{seed:x}_{name}"));
        fs::write(path, format!("{base}\n{kept}\n")).expect("the folder can be written to");
    }
    let source = SourceFile::new(name.clone(), base);
    let module = device.load(&compilation.compiled).expect("it loads");
    let mut runs = 0;
    for kernel in &compilation.program.kernels {
        let manifests = &compilation.compiled.manifest.kernels;
        let manifest = manifests.iter().find(|known| known.name == kernel.name).expect("it was compiled");
        let line = source.line_column(kernel.span.start).0;
        let directives = Directives::for_kernel(&source, line).expect("well-formed directives");
        if directives.expected != Expected::Agreement {
            continue;
        }
        let generated =
            cases::generate(&compilation.program, kernel, manifest, &directives, 0).expect("cases");
        let count = generated.cases.len();
        for (_, case) in
            generated.cases.iter().enumerate().filter(|(at, _)| *at + 1 < CASES || at + 1 == count)
        {
            let inputs = case.inputs(manifest).expect("inputs");
            runs += 1;
            let checked = check(&module, &compilation.program, kernel, &inputs, &CheckOptions::default());
            let complaint = match checked {
                Ok((_, report)) if report.both_refused.is_none() && report.agrees() => continue,
                Ok((_, report)) => format!("{report:?}"),
                Err(error) => error.to_string(),
            };
            wrong.push(format!(
                "{name}, seed {seed}: {} with {}: {complaint}\n{kept}",
                kernel.name, case.label
            ));
        }
    }
    runs
}

#[test]
fn examples_agree_with_the_reference_under_random_schedules() {
    let device = Device::open_as(Selection::Emulator).expect("always there");
    let first = number("KRN_SCHEDULE_SEED").unwrap_or(1) << 20;
    let files = examples();
    assert!(files.len() > 20, "the examples are there");
    let mut wrong = Vec::new();
    let mut runs = 0;
    for path in &files {
        for seed in 0..number("KRN_SCHEDULES").unwrap_or_else(schedules) {
            runs += complaints(path, &device, first + seed, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{} of {runs} runs:\n{}", wrong.len(), wrong.join("\n"));
    assert!(runs > files.len(), "{runs} runs of {} files", files.len());
}

/// Lists of choices for a random program.
fn choices(seed: u64) -> Vec<Vec<u32>> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let lists = 2 + next() % 3;
    (0..lists).map(|_| (0..40 + next() % 160).map(|_| next()).collect()).collect()
}

/// Inputs of the program's sizes, or smaller ones where the reference would take too long.
fn affordable(
    compilation: &Compilation,
    dims: &[(String, i64)],
    statics: &BTreeMap<String, HostArray>,
    seed: u64,
) -> Option<Case> {
    let (kernel, manifest) = (&compilation.program.kernels[0], &compilation.compiled.manifest.kernels[0]);
    let mut dims: BTreeMap<String, i64> = dims.iter().cloned().collect();
    loop {
        let sizes = choose_sizes(manifest, &dims, &BTreeMap::new(), seed, |_| 1).ok()?;
        let mut case = Case { params: sizes.params, arrays: BTreeMap::new() };
        for argument in &manifest.arguments {
            let Some(shape) = sizes.shapes.get(&argument.name) else { continue };
            let element = &kernel.arrays.values().find(|array| array.name == argument.name)?.element;
            let array = fill(&argument.name, element, shape, &Fill::Random.into(), seed).ok()?;
            case.arrays.insert(argument.name.clone(), array);
        }
        let reference = reference_inputs(&compilation.program, kernel, &case, statics);
        let launch = bind(&reference).ok()?;
        if estimate_cost(&reference, &launch).total <= STEPS {
            return Some(case);
        }
        let most = dims.values().copied().max().filter(|most| *most > 2)?;
        dims.values_mut().filter(|size| **size == most).for_each(|size| *size = most / 2);
    }
}

#[test]
fn random_programs_agree_with_the_reference_under_random_schedules() {
    let device = Device::open_as(Selection::Emulator).expect("always there");
    let first = number("KRN_SCHEDULE_SEED").unwrap_or(1) << 20;
    let count = number("KRN_SCHEDULES").map_or_else(programs, |schedules| 100 * schedules);
    let (mut wrong, mut runs) = (Vec::new(), 0);
    for seed in first..first + count {
        let program = program(&choices(seed)).unscheduled();
        let (whole, _) = compiled(&program.source, "").unwrap_or_else(|error| panic!("{error}\n{program:?}"));
        let kernel = &whole.program.kernels[0];
        let (axes, arrays) = names(kernel);
        let schedule = random_schedule(&kernel.name, &axes, &arrays, seed);
        let (compilation, kept) = match compiled(&program.source, &schedule) {
            Ok(found) => found,
            Err(error) => {
                wrong.push(format!("{error}\n{program:?}"));
                continue;
            }
        };
        let module = device.load(&compilation.compiled).expect("it loads");
        let statics = read_statics(&module).expect("the emulator's memory");
        let Some(case) = affordable(&compilation, &program.dims, &statics, seed) else { continue };
        let limits =
            CheckOptions { full_steps: u128::MAX, step_limit: 4_000_000, seed, ..CheckOptions::default() };
        let complaint =
            match check(&module, &compilation.program, &compilation.program.kernels[0], &case, &limits) {
                Ok((_, report)) if report.agrees() => None,
                Ok((_, report)) => Some(format!("{report:?}")),
                Err(VerifyError::Reference(EvalError::StepLimit { .. })) => None,
                Err(error) => Some(error.to_string()),
            };
        runs += 1;
        wrong.extend(complaint.map(|complaint| format!("{complaint}\n{program:?}\n{kept}")));
    }
    assert!(wrong.is_empty(), "{} of {runs} programs:\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(runs * 4 > count, "{runs} of {count} programs were run");
}

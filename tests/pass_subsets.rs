//! Every pass can be left out: the examples agree with the reference with each single pass off, and with random
//! selections of passes. Where tests run in full, these are more, and on more cases; else, of the single passes a quarter is
//! off in each file.
//!
//! The reference is evaluated once a case; code that an earlier selection had already is not run again.

use krn_compiler::check::typed::Kernel;
use krn_compiler::passes::{Pipeline, TargetFacts};
use krn_compiler::source::SourceFile;
use krn_compiler::{Compilation, CompileOptions, compile};
use krn_runtime::verify::cases::{self, Directives, Expected};
use krn_runtime::verify::{Case, CheckOptions, Expectation, VerifyError, read_statics};
use krn_runtime::{Device, Error, Selection};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

/// How much is tried.
struct Extent {
    /// Random selections beside those of one pass.
    selections: u64,
    /// Cases of each kernel: the first ones, which have each a size at an edge, and the last, which is the largest.
    cases: usize,
}

fn extent() -> Extent {
    if xtask::tests_run_in_full() {
        Extent { selections: 64, cases: 12 }
    } else {
        Extent { selections: 4, cases: 3 }
    }
}

/// What each selection leaves out, with a name.
fn selections() -> Vec<(String, Vec<String>)> {
    let pipeline = Pipeline::for_target(&TargetFacts::new(90));
    let names: Vec<String> = pipeline.optional_names().map(str::to_string).collect();
    let mut selections = vec![("all".to_string(), Vec::new()), ("none".to_string(), names.clone())];
    selections.extend(names.iter().map(|name| (format!("all but {name}"), vec![name.clone()])));
    for seed in 0..extent().selections {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let without: Vec<String> = names.iter().filter(|_| random.random_bool(0.5)).cloned().collect();
        selections.push((format!("seed {seed}, without {}", without.join(", ")), without));
    }
    selections
}

fn compiled(source: &SourceFile, without: &[String]) -> Result<Compilation, String> {
    let options = CompileOptions { without: without.to_vec(), ..CompileOptions::for_target("sm_90") };
    compile(source, &options).map_err(|error| error.to_string())
}

/// A case of a kernel, and what the reference says of it.
struct Checked<'a> {
    kernel: &'a Kernel,
    label: String,
    case: Case,
    expected: Expectation,
    outcome: Expected,
}

fn checked_cases<'a>(source: &SourceFile, compilation: &'a Compilation, device: &Device) -> Vec<Checked<'a>> {
    let module = device.load(&compilation.compiled).expect("it loads");
    let statics = read_statics(&module).expect("the emulator's memory");
    let mut checked = Vec::new();
    for kernel in &compilation.program.kernels {
        let manifests = &compilation.compiled.manifest.kernels;
        let manifest = manifests.iter().find(|known| known.name == kernel.name).expect("it was compiled");
        let line = source.line_column(kernel.span.start).0;
        let directives = Directives::for_kernel(source, line).expect("well-formed directives");
        let generated =
            cases::generate(&compilation.program, kernel, manifest, &directives, 0).expect("cases");
        let (count, some) = (generated.cases.len(), extent().cases);
        assert!(count > 0, "{}: {} has no case", source.name(), kernel.name);
        for (_, case) in
            generated.cases.iter().enumerate().filter(|(at, _)| *at + 1 < some || at + 1 == count)
        {
            let inputs = case.inputs(manifest).expect("inputs");
            let expected =
                Expectation::of(&compilation.program, kernel, &inputs, &statics, &CheckOptions::default());
            let (label, outcome) = (case.label.clone(), directives.expected);
            checked.push(Checked { kernel, label, case: inputs, expected, outcome });
        }
    }
    checked
}

/// What is wrong with a case on this code.
fn complaint(device: &Device, compilation: &Compilation, checked: &Checked<'_>) -> Option<String> {
    // Loaded anew for each: what a run leaves in statics is not what the reference began with.
    let module = device.load(&compilation.compiled).expect("it loads");
    match (checked.expected.check(&module, checked.kernel, &checked.case), checked.outcome) {
        (Ok((_, report)), Expected::Agreement) => {
            (report.both_refused.is_some() || !report.agrees()).then(|| format!("{report:?}"))
        }
        (Ok((_, report)), Expected::BoundsError | Expected::FactError | Expected::AssertionError) => {
            report.both_refused.is_none().then(|| "no failed check".to_string())
        }
        (Ok(_), Expected::LaunchError) => Some("it was launched".to_string()),
        (Err(VerifyError::Run(Error::Argument { .. })), Expected::LaunchError) => None,
        (Err(error), _) => Some(error.to_string()),
    }
}

#[test]
fn examples_agree_with_the_reference_whatever_passes_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the examples")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "krn"))
        .collect();
    files.sort();
    let count = files.len();
    assert!(count > 20, "the examples are there");
    let (selections, files) = (selections(), Mutex::new(files));
    let found = Mutex::new((Vec::new(), 0));
    let next = || files.lock().expect("no panic with it").pop();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(path) = next() {
                    let (wrong, codes) = tried(&path, &selections);
                    let mut found = found.lock().expect("no panic with it");
                    found.0.extend(wrong);
                    found.1 += codes;
                }
            });
        }
    });
    let (wrong, codes) = found.into_inner().expect("no panic with it");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(codes > 2 * count, "passes change code: {codes} codes of {count} files");
}

/// What is wrong with a file's kernels under the selections, and how many codes they made.
fn tried(path: &Path, selections: &[(String, Vec<String>)]) -> (Vec<String>, usize) {
    let device = Device::open_as(Selection::Emulator).expect("always there");
    let (mut wrong, mut codes) = (Vec::new(), 0);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let source = SourceFile::new(name.clone(), fs::read_to_string(path).expect("an example"));
    let whole = compiled(&source, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
    let checked = checked_cases(&source, &whole, &device);
    let mut seen = BTreeSet::new();
    for (selection, without) in selections {
        // Of the passes, another quarter is off in each file.
        if without.len() == 1 && !xtask::is_in_share(&format!("{name}, {selection}"), 4) {
            continue;
        }
        let compilation = match compiled(&source, without) {
            Ok(compilation) => compilation,
            Err(error) => {
                wrong.push(format!("{name}, {selection}: {error}"));
                continue;
            }
        };
        if !seen.insert(compilation.compiled.ptx.clone()) {
            continue;
        }
        codes += 1;
        for case in &checked {
            if let Some(complaint) = complaint(&device, &compilation, case) {
                let (kernel, label) = (&case.kernel.name, &case.label);
                wrong.push(format!("{name}, {selection}: {kernel} with {label}: {complaint}"));
            }
        }
    }
    (wrong, codes)
}

//! What warnings about speed claim is what the emulator counts at that place of the text, at the sizes that they give.

use crate::support;
use krn_compiler::diagnostic::{Diagnostic, Diagnostics};
use krn_compiler::source::SourceFile;
use krn_compiler::{Compilation, CompileError, CompileOptions, compile};
use krn_runtime::emulator::{Counts, Kind};
use krn_runtime::profile::CountedLaunch;
use krn_runtime::{Argument, Device, Module, Selection};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn reports(source: &SourceFile) -> Diagnostics {
    let options = CompileOptions { advise: krn_compiler::Advise::Everything, ..CompileOptions::default() };
    match compile(source, &options) {
        Ok(compilation) => compilation.warnings,
        Err(CompileError::Diagnostics(reports)) => reports,
        Err(error) => panic!("{}: {error}", source.name()),
    }
}

/// `m = 2048, n = 64` of the note at the end.
fn sizes(warning: &Diagnostic) -> Vec<(String, i64)> {
    let note = warning.notes.last().expect("a note with the sizes");
    let list =
        note.split_once(", for ").and_then(|(_, rest)| rest.split_once(';')).map_or("", |(list, _)| list);
    let pairs = list.split(", ").filter_map(|pair| pair.split_once(" = "));
    pairs.map(|(name, value)| (name.to_string(), value.parse().expect("an integer"))).collect()
}

/// A kernel's text and its sizes.
type Run = (String, Vec<(String, i64)>);

/// A text that is loaded, and what was counted of it.
struct Counted {
    compilation: Compilation,
    device: Device,
    module: Module,
    /// By kernel and sizes: several warnings are about the same run.
    known: BTreeMap<Run, Vec<CountedLaunch>>,
}

impl Counted {
    fn new(source: &SourceFile) -> Self {
        let compilation = support::compiled(source.text(), &[]);
        let device = Device::open_as(Selection::Emulator).expect("an emulator");
        let module = device.load(&compilation.compiled).expect("a module");
        Self { compilation, device, module, known: BTreeMap::new() }
    }

    /// Every launch of the kernel in whose text the warning stands.
    fn launches(&mut self, warning: &Diagnostic) -> &[CountedLaunch] {
        let at = warning.primary.span.start;
        let kernels = &self.compilation.program.kernels;
        let kernel = kernels.iter().find(|kernel| (kernel.span.start..kernel.span.end).contains(&at));
        let run = (kernel.expect("a kernel around it").name.clone(), sizes(warning));
        let (device, module) = (&self.device, &self.module);
        self.known.entry(run).or_insert_with_key(|(name, sizes)| counted(device, module, name, sizes))
    }
}

fn counted(device: &Device, module: &Module, name: &str, sizes: &[(String, i64)]) -> Vec<CountedLaunch> {
    let kernel = module.kernel(name).expect("the kernel");
    let sizes: Vec<(&str, i64)> = sizes.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let case = support::random_case(kernel.manifest(), &sizes);
    let mut arrays = Vec::new();
    for (name, host) in &case.arrays {
        let layout = kernel.layout(name).expect("a layout");
        arrays.push((name.as_str(), device.upload(host, layout).expect("room for it")));
    }
    let mut arguments: Vec<(&str, Argument<'_>)> =
        arrays.iter().map(|(name, array)| (*name, Argument::Array(array))).collect();
    arguments.extend(case.params.iter().map(|(name, value)| (name.as_str(), Argument::Value(value))));
    kernel.bind(&arguments).expect("arguments that fit").count().expect("a run").expect("an emulator counts")
}

/// What the instructions of some kinds did that stand where a place of the text begins.
fn at_place(
    launches: &[CountedLaunch],
    source: &SourceFile,
    start: u32,
    wanted: impl Fn(Kind) -> bool,
) -> Counts {
    let place = source.line_column(start);
    let mut sum = Counts::default();
    for instruction in launches.iter().flat_map(|launch| &launch.counts.instructions) {
        let here = instruction.location.as_ref().is_some_and(|at| (at.line, at.column) == place);
        if here && wanted(instruction.kind) {
            sum += instruction.counts;
        }
    }
    sum
}

/// The number before a word, as in `reads 32 sectors`.
fn claimed(message: &str, word: &str) -> f64 {
    let words: Vec<&str> = message.split_whitespace().collect();
    let at = words.iter().position(|known| *known == word).unwrap_or_else(|| panic!("no {word}: {message}"));
    words[at - 1].parse().unwrap_or_else(|_| panic!("no number of {word}: {message}"))
}

#[test]
fn what_a_warning_claims_is_what_the_emulator_counts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/diagnostics");
    let mut checked = 0;
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !["W0601", "W0602", "W0603", "W0604"].iter().any(|code| name.starts_with(code)) {
            continue;
        }
        // Denied ones do not compile without advice taken.
        let text = fs::read_to_string(&path).expect("a file").replace("deny W0604", "");
        let source = SourceFile::new(name.as_str(), text);
        let mut counted = Counted::new(&source);
        for warning in reports(&source).iter().filter(|warning| warning.code.0.starts_with("W06")) {
            let launches = counted.launches(warning);
            let (start, message) = (warning.primary.span.start, &warning.message);
            let writes = message.contains(" writes ") || message.ends_with("where it writes");
            let (found, claim) = if warning.code.0 == "W0604" {
                let kind = if writes { Kind::SharedStore } else { Kind::SharedLoad };
                let counts = at_place(launches, &source, start, |known| known == kind);
                (counts.wavefronts as f64 / counts.shared_requests as f64, claimed(message, "wavefronts"))
            } else {
                let kind = if writes { Kind::GlobalStore } else { Kind::GlobalLoad };
                let counts = at_place(launches, &source, start, |known| known == kind);
                (counts.sectors as f64 / counts.requests as f64, claimed(message, "sectors"))
            };
            // To the digit that the message shows.
            assert!((found - claim).abs() < 0.051, "{name}: {message}, but {found} are counted");
            checked += 1;
        }
    }
    assert!(checked >= 10, "only {checked} claims");
}

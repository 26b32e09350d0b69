//! What kernels cost, as a text to keep and review: counted by the emulator, so the same on every machine, and different
//! only where the code is.
//!
//! [`costs`] counts each kernel of a file once, at the largest of the sizes that `krn test` runs it with; the text of
//! [`Costs`] can be a snapshot of a user's own tests. [`Costs::parse`] reads the text back, and [`Cost::changes`] tells
//! what became worse.

use crate::device::Device;
use crate::emulator::Kind;
use crate::error::Error;
use crate::launch::argument::Argument;
use crate::launch::counted::CountedLaunch;
use crate::launch::module::Module;
use crate::verify::Case;
use crate::verify::cases::{Directives, Expected, generate};
use krn_compiler::source::SourceFile;
use krn_compiler::{CompileError, CompileOptions, compile};
use std::fmt;

/// One number of a kernel's cost.
struct Measure {
    name: &'static str,
    /// Whether less of it is better.
    less_is_better: bool,
    of: fn(&[CountedLaunch]) -> u64,
}

fn sum(launches: &[CountedLaunch], wanted: fn(Kind) -> bool) -> crate::emulator::Counts {
    launches.iter().fold(Default::default(), |mut sum, launch| {
        sum += launch.counts.total(wanted);
        sum
    })
}

fn is_load(kind: Kind) -> bool {
    matches!(kind, Kind::GlobalLoad | Kind::Copy)
}

fn is_store(kind: Kind) -> bool {
    kind == Kind::GlobalStore
}

fn is_atomic(kind: Kind) -> bool {
    matches!(kind, Kind::GlobalReduction | Kind::GlobalAtomic)
}

fn is_local(kind: Kind) -> bool {
    matches!(kind, Kind::LocalLoad | Kind::LocalStore)
}

fn any(_: Kind) -> bool {
    true
}

/// Bytes that a lane moves at a time, on average over the requests, rounded down.
fn width(launches: &[CountedLaunch], wanted: fn(Kind) -> bool) -> u64 {
    let instructions = launches.iter().flat_map(|launch| &launch.counts.instructions);
    let (mut bytes, mut requests) = (0, 0);
    for instruction in instructions.filter(|instruction| wanted(instruction.kind)) {
        bytes += u64::from(instruction.lane_bytes) * instruction.counts.requests;
        requests += instruction.counts.requests;
    }
    bytes.checked_div(requests).unwrap_or(0)
}

const fn less(name: &'static str, of: fn(&[CountedLaunch]) -> u64) -> Measure {
    Measure { name, less_is_better: true, of }
}

const MEASURES: &[Measure] = &[
    less("launches", |launches| launches.len() as u64),
    less("warp instructions of PTX", |launches| sum(launches, any).warps),
    less("load requests", |launches| sum(launches, is_load).requests),
    less("load sectors", |launches| sum(launches, is_load).sectors),
    Measure { name: "load bytes a lane", less_is_better: false, of: |launches| width(launches, is_load) },
    less("store requests", |launches| sum(launches, is_store).requests),
    less("store sectors", |launches| sum(launches, is_store).sectors),
    Measure { name: "store bytes a lane", less_is_better: false, of: |launches| width(launches, is_store) },
    less("atomic requests", |launches| sum(launches, is_atomic).requests),
    less("local requests", |launches| sum(launches, is_local).requests),
    less("shared wavefronts", |launches| sum(launches, any).wavefronts),
    less("bank conflicts", |launches| sum(launches, any).conflicts),
    less("divergent branches", |launches| sum(launches, any).divergent),
    less("shared bytes a block", |launches| {
        launches.iter().map(|launch| launch.counts.shared_bytes).max().unwrap_or(0)
    }),
    less("registers, estimated", |launches| {
        launches.iter().map(|launch| launch.counts.estimated_registers.into()).max().unwrap_or(0)
    }),
];

/// What one kernel costs at some sizes. Numbers that are zero are left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cost {
    pub kernel: String,
    /// `n = 1000`, with the target: what was counted.
    pub sizes: String,
    pub numbers: Vec<(String, u64)>,
}

/// The costs of a file's kernels.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Costs(pub Vec<Cost>);

/// Why costs cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    #[error("{0}")]
    Compile(CompileError),
    /// No sizes or inputs can be chosen for a kernel, or a kept text is none.
    #[error("{0}")]
    Input(String),
    #[error(transparent)]
    Run(#[from] Error),
}

/// Counts what each kernel of a file costs that is meant to run, on an emulator of its own.
///
/// # Errors
/// Mistakes in the file or in its test directives; what a kernel does wrong.
pub fn costs(source: &SourceFile, options: &CompileOptions) -> Result<Costs, CostError> {
    let compilation = compile(source, options).map_err(CostError::Compile)?;
    let device = Device::open_as(crate::Selection::Emulator)?;
    let module = device.load(&compilation.compiled)?;
    let mut costs = Vec::new();
    for kernel in &compilation.program.kernels {
        let of_kernel = |message: String| CostError::Input(format!("`{}`: {message}", kernel.name));
        let manifest = module.kernel(&kernel.name)?.manifest();
        let line = source.line_column(kernel.span.start).0;
        let directives = Directives::for_kernel(source, line).map_err(of_kernel)?;
        if directives.expected != Expected::Agreement {
            continue;
        }
        let cases = generate(&compilation.program, kernel, manifest, &directives, 0).map_err(of_kernel)?;
        let Some(case) = cases.cases.iter().max_by_key(|case| case.elements()) else {
            return Err(of_kernel("no shape was found that its facts accept".to_string()));
        };
        let launches = count(&module, &kernel.name, &case.inputs(manifest).map_err(of_kernel)?)?;
        let numbers = MEASURES.iter().map(|measure| (measure.name.to_string(), (measure.of)(&launches)));
        costs.push(Cost {
            kernel: kernel.name.clone(),
            sizes: format!("{} for {}", case.label, options.target).trim_start().to_string(),
            numbers: numbers.filter(|(_, number)| *number > 0).collect(),
        });
    }
    Ok(Costs(costs))
}

fn count(module: &Module, kernel: &str, case: &Case) -> Result<Vec<CountedLaunch>, Error> {
    let kernel = module.kernel(kernel)?;
    let mut arrays = Vec::new();
    for (name, host) in &case.arrays {
        arrays.push((name.as_str(), module.device.upload(host, kernel.layout(name)?)?));
    }
    let mut arguments: Vec<(&str, Argument<'_>)> =
        arrays.iter().map(|(name, array)| (*name, Argument::Array(array))).collect();
    arguments.extend(case.params.iter().map(|(name, value)| (name.as_str(), Argument::Value(value))));
    Ok(kernel.bind(&arguments)?.count()?.unwrap_or_default())
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, cost) in self.0.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            writeln!(f, "{}: {}", cost.kernel, cost.sizes)?;
            for (name, number) in &cost.numbers {
                writeln!(f, "  {name:<24} {number:>12}")?;
            }
        }
        Ok(())
    }
}

/// A number that is not what it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    pub kernel: String,
    pub what: String,
    pub before: u64,
    pub after: u64,
    pub worse: bool,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { kernel, what, before, after, worse } = self;
        let verdict = if *worse { "worse" } else { "better" };
        write!(f, "{verdict}: {kernel}: {what} {before} -> {after}")?;
        if *before > 0 {
            let share = (*after as f64 / *before as f64 - 1.0) * 100.0;
            write!(f, " ({share:+.1}%)")?;
        }
        Ok(())
    }
}

impl Costs {
    /// Reads the text of [`Display`](fmt::Display); lines that start with `#` are comments.
    ///
    /// # Errors
    /// The first line that is not of it.
    pub fn parse(text: &str) -> Result<Costs, CostError> {
        let mut costs: Vec<Cost> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = || CostError::Input(format!("line {}: `{line}` is no cost", number + 1));
            if !line.starts_with(' ') {
                let (kernel, sizes) = line.split_once(": ").ok_or_else(bad)?;
                let (kernel, sizes) = (kernel.to_string(), sizes.to_string());
                costs.push(Cost { kernel, sizes, numbers: Vec::new() });
                continue;
            }
            let (name, number) = line.trim().rsplit_once(' ').ok_or_else(bad)?;
            let number = number.parse().map_err(|_| bad())?;
            costs.last_mut().ok_or_else(bad)?.numbers.push((name.trim().to_string(), number));
        }
        Ok(Costs(costs))
    }

    pub fn get(&self, kernel: &str) -> Option<&Cost> {
        self.0.iter().find(|cost| cost.kernel == kernel)
    }
}

impl Cost {
    fn number(&self, name: &str) -> u64 {
        self.numbers.iter().find(|(known, _)| known == name).map_or(0, |(_, number)| *number)
    }

    /// What is other than it was, at the same sizes.
    pub fn changes(&self, before: &Cost) -> Vec<Change> {
        let change = |measure: &Measure| {
            let (old, new) = (before.number(measure.name), self.number(measure.name));
            (old != new).then(|| Change {
                kernel: self.kernel.clone(),
                what: measure.name.to_string(),
                before: old,
                after: new,
                // That nothing is loaded any more makes no load narrower.
                worse: if measure.less_is_better { new > old } else { new < old && new > 0 },
            })
        };
        MEASURES.iter().filter_map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Costs {
        let source = SourceFile::new("k.krn", text);
        costs(&source, &CompileOptions::for_target("sm_90")).expect("it can be counted")
    }

    #[test]
    fn the_text_is_read_back() {
        let found = of("kernel double(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }\n\
                        kernel total(x: i32[n]) -> s: i32 { s = sum(i: x[i]) }\n");
        assert_eq!(found.0.len(), 2);
        let text = found.to_string();
        assert!(text.starts_with("double: n = 1000 for sm_90\n  launches "), "{text}");
        assert_eq!(Costs::parse(&format!("# kept\n{text}")).expect("its own text"), found);
        assert!(Costs::parse("  loads 3\n").is_err() && Costs::parse("double: n\n  loads many\n").is_err());
    }

    #[test]
    fn what_became_worse_is_told() {
        let text = "kernel scale(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i] }\n";
        let narrow = "schedule scale { vectorize i: 1 }\n";
        let (before, after) = (of(text), of(&format!("{text}{narrow}")));
        let changes = after.0[0].changes(&before.0[0]);
        let width = changes.iter().find(|change| change.what == "load bytes a lane").expect("it changed");
        assert_eq!((width.before, width.after, width.worse), (16, 4, true));
        let requests = changes.iter().find(|change| change.what == "load requests").expect("it changed");
        assert!(requests.worse && requests.after > requests.before);
        assert!(requests.to_string().starts_with("worse: scale: load requests "), "{requests}");
        assert!(after.0[0].changes(&after.0[0]).is_empty());
        assert!(before.0[0].changes(&after.0[0]).iter().any(|change| !change.worse));
    }
}

//! What kernels cost, as a table to keep and review: one line a kernel, the same on every machine, and different only where
//! the code is.
//!
//! [`costs`] predicts the time of each kernel of a file ([`Work::seconds`](super::Work::seconds)) from the compiler's model of
//! its launches, at the sizes of the file's `// krn-test: cost` lines or at the model's own. Where the model cannot know
//! (subscripts and ranges that memory holds) the emulator runs the kernel and counts. The time is the verdict; the counts stand beside it for
//! reading. [`Costs::parse`] reads the text back, and [`Costs::against`] tells what became worse.

use super::gpu::Gpu;
use super::predicted::{Work, gpu_for};
use crate::device::Device;
use crate::error::Error;
use crate::launch::argument::Argument;
use crate::launch::counted::CountedLaunch;
use crate::launch::module::Module;
use crate::verify::Case;
use crate::verify::cases::{Directives, Expected, at_sizes};
use krn_compiler::analysis::forms;
use krn_compiler::analysis::model::{LaunchCost, model, model_sizes_at, spell_sizes};
use krn_compiler::ir;
use krn_compiler::ir::kernel::SymbolData;
use krn_compiler::manifest::{SymbolKind, Value};
use krn_compiler::source::SourceFile;
use krn_compiler::{Compilation, CompileError, CompileOptions, SymbolValues, Variants, compile};
use std::fmt;

/// A time may be so many times as long as it was.
const MAY_RISE: f64 = 1.02;
/// The model's counts may differ so much from the emulator's, as a share: it looks at some warps of all.
const MAY_DIFFER: f64 = 0.05;
/// The emulator counts again what the model counted where that is no more than so many instructions of warps: seconds.
const MOST_CHECKED: f64 = 5e6;
/// What stands between the fields of a line.
const BAR: &str = " | ";

/// What one kernel costs at some sizes: a line of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cost {
    /// In a table of several files with the file's path before it: `blur.krn:horizontal`.
    pub kernel: String,
    /// `n = 1000 for sm_90`.
    pub sizes: String,
    /// The predicted time of all launches.
    pub nanoseconds: u64,
    /// How the launches spread their work over threads ([`forms`]).
    pub form: String,
    pub counts: RowCounts,
    pub counted_by: CountedBy,
    /// Why it may cost more than it did: `12.000 us before: the reason`.
    pub because: String,
}

/// What was counted, over all launches.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RowCounts {
    /// Sectors of 32 bytes of global memory, each counted once a request.
    pub sectors: u64,
    /// Wavefronts of shared memory.
    pub wavefronts: u64,
    /// Warps that come to a barrier.
    pub barriers: u64,
    /// Instructions of warps: of the IR where the model counts, of the PTX where the emulator does.
    pub instructions: u64,
    pub threads: u64,
}

/// Who counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CountedBy {
    /// The compiler's model of some warps.
    Model,
    /// The emulator, which ran all of them.
    Emulator,
}

/// The costs of kernels.
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

/// Counts what each kernel of a file costs that is meant to run.
///
/// # Errors
/// Mistakes in the file or in its test directives; what a kernel does wrong.
pub fn costs(source: &SourceFile, options: &CompileOptions) -> Result<Costs, CostError> {
    costs_of(source, options, &|_| true)
}

/// The same of the kernels of whose names `wanted` says so.
///
/// # Errors
/// As for [`costs`].
pub fn costs_of(
    source: &SourceFile,
    options: &CompileOptions,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Costs, CostError> {
    counted(source, options, wanted, &|_| false, &[]).map(|(costs, _)| costs)
}

/// The same at these sizes, in the place of those of directives: of a kernel that has any of the names.
///
/// # Errors
/// As for [`costs`].
pub fn costs_at(
    source: &SourceFile,
    options: &CompileOptions,
    wanted: &dyn Fn(&str) -> bool,
    sizes: &[(String, i64)],
) -> Result<Costs, CostError> {
    counted(source, options, wanted, &|_| false, sizes).map(|(costs, _)| costs)
}

/// The same as [`costs`]; and where `checked` says so of a kernel's name, the emulator counts what the model did, at the same sizes,
/// unless that is very much. The second list tells where the two differ by more than 5 %.
///
/// # Errors
/// As for [`costs`].
pub fn costs_checked(
    source: &SourceFile,
    options: &CompileOptions,
    checked: &dyn Fn(&str) -> bool,
) -> Result<(Costs, Vec<String>), CostError> {
    counted(source, options, &|_| true, checked, &[])
}

fn counted(
    source: &SourceFile,
    options: &CompileOptions,
    wanted: &dyn Fn(&str) -> bool,
    checked: &dyn Fn(&str) -> bool,
    sizes: &[(String, i64)],
) -> Result<(Costs, Vec<String>), CostError> {
    let usual = Variants::For(SymbolValues::new());
    let options = CompileOptions { ir: true, variants: usual, ..options.clone() };
    let compilation = compile(source, &options).map_err(CostError::Compile)?;
    let device = Device::open_as(crate::Selection::Emulator)?;
    let counter = Counter { source, options: &options, gpu: gpu_for(&options.target), device };
    let mut costs = Costs::default();
    let mut differ = Vec::new();
    let has = |kernel: &ir::kernel::Kernel, name: &str| kernel.symbols.values().any(|s| s.name == name);
    for kernel in &compilation.ir().unwrap_or_default().kernels {
        if !wanted(&kernel.name) {
            continue;
        }
        let of_kernel = |message: String| CostError::Input(format!("`{}`: {message}", kernel.name));
        let line = source.line_column(kernel.span.start).0;
        let directives = Directives::for_kernel(source, line).map_err(of_kernel)?;
        if directives.expected != Expected::Agreement {
            continue;
        }
        let given: Vec<_> = sizes.iter().filter(|(name, _)| has(kernel, name)).cloned().collect();
        let (is_given, own) = (!given.is_empty(), vec![given]);
        for fixed in if is_given || directives.costs.is_empty() { &own } else { &directives.costs } {
            let (cost, found) = counter.row(kernel, &directives, fixed, checked(&kernel.name))?;
            costs.0.push(cost);
            differ.extend(found);
        }
    }
    Ok((costs, differ))
}

struct Counter<'a> {
    source: &'a SourceFile,
    options: &'a CompileOptions,
    gpu: &'a Gpu,
    device: Device,
}

impl Counter<'_> {
    /// A line of the table, and where model and emulator differ.
    fn row(
        &self,
        kernel: &ir::kernel::Kernel,
        directives: &Directives,
        fixed: &[(String, i64)],
        checked: bool,
    ) -> Result<(Cost, Vec<String>), CostError> {
        let of_kernel = |message: String| CostError::Input(format!("`{}`: {message}", kernel.name));
        let Some(sizes) = model_sizes_at(kernel, fixed) else {
            let sizes: Vec<String> = fixed.iter().map(|(name, size)| format!("{name} = {size}")).collect();
            return Err(of_kernel(format!(
                "no sizes are found that its facts accept, with {}",
                sizes.join(", ")
            )));
        };
        if let Some((name, _)) =
            fixed.iter().find(|(name, _)| !kernel.symbols.values().any(|s| s.name == *name))
        {
            return Err(of_kernel(format!("there is no dimension or integer parameter `{name}`")));
        }
        let compiled = self.compiled(kernel, &sizes)?;
        let module = compiled.ir().unwrap_or_default();
        let Some(kernel) = module.kernels.first() else {
            return Err(of_kernel("no code is made for it".to_string()));
        };
        let modelled = model(kernel, &sizes);
        let exact: Option<&Vec<LaunchCost>> =
            modelled.as_ref().filter(|launches| launches.iter().all(LaunchCost::is_exact));
        let instructions =
            |launches: &Vec<LaunchCost>| launches.iter().map(|cost| cost.instructions).sum::<f64>();
        let counted = match exact {
            Some(launches) if !checked || instructions(launches) > MOST_CHECKED => None,
            _ => Some(self.run(&compiled, kernel, directives, &sizes).map_err(|error| match error {
                CostError::Input(message) => of_kernel(message),
                error => error,
            })?),
        };
        let by_emulator = counted.as_ref().map(|launches| {
            // What the emulator sees of an instruction is not what it waits for.
            let independent = |entry: &str| {
                let mut known = modelled.iter().flatten();
                known
                    .find(|cost| kernel.launches[cost.launch].name == entry)
                    .map_or(0.0, |cost| cost.independent)
            };
            let work = |launch: &CountedLaunch| Work {
                independent: independent(&launch.entry).min(launch.counts.total(|_| true).warps as f64),
                ..Work::of_counts(launch)
            };
            launches.iter().map(work).collect::<Vec<Work>>()
        });
        let by_model: Option<Vec<Work>> =
            exact.map(|launches| launches.iter().map(|cost| Work::of_model(kernel, &sizes, cost)).collect());
        let spelled = spell_sizes(kernel, &sizes);
        let mut differ = Vec::new();
        if let (Some(model), Some(emulator)) = (&by_model, &by_emulator) {
            let of = |message: String| {
                format!("{}: `{}` with {spelled}: {message}", self.source.name(), kernel.name)
            };
            differ.extend(differences(model, emulator).into_iter().map(of));
        }
        let form = match (exact, &counted) {
            (Some(launches), _) => forms(kernel, launches.iter().map(|cost| cost.launch)),
            (None, Some(counted)) => {
                let launch = |entry: &str| kernel.launches.iter().find(|(_, data)| data.name == entry);
                forms(kernel, counted.iter().filter_map(|counted| Some(launch(&counted.entry)?.0)))
            }
            (None, None) => String::new(),
        };
        let counted_by = if by_model.is_some() { CountedBy::Model } else { CountedBy::Emulator };
        let works = by_model.or(by_emulator).unwrap_or_default();
        let seconds: f64 = works.iter().map(|work| work.seconds(self.gpu)).sum();
        let cost = Cost {
            kernel: kernel.name.clone(),
            sizes: format!("{spelled} for {}", self.options.target).trim_start().to_string(),
            nanoseconds: (seconds * 1e9).round() as u64,
            form,
            counts: RowCounts::of(&works),
            counted_by,
            because: String::new(),
        };
        Ok((cost, differ))
    }

    /// The kernel, compiled for the sizes.
    fn compiled(&self, kernel: &ir::kernel::Kernel, sizes: &[Value]) -> Result<Compilation, CostError> {
        let counted = |symbol: &SymbolData| matches!(symbol.kind, SymbolKind::Counter);
        let values = kernel.symbols.values().zip(sizes);
        let values = values.map(|(symbol, value)| (!counted(symbol)).then_some(*value)).collect();
        let (only, variants) = (Some(kernel.name.clone()), Variants::Only(values));
        let options = CompileOptions { only, variants, ..self.options.clone() };
        compile(self.source, &options).map_err(CostError::Compile)
    }

    fn run(
        &self,
        compiled: &Compilation,
        kernel: &ir::kernel::Kernel,
        directives: &Directives,
        sizes: &[Value],
    ) -> Result<Vec<CountedLaunch>, CostError> {
        let module = self.device.load(&compiled.compiled)?;
        let known = module.kernel(&kernel.name)?;
        let manifest = known.manifest();
        let named: Vec<(String, Value)> =
            kernel.symbols.values().zip(sizes).map(|(symbol, value)| (symbol.name.clone(), *value)).collect();
        let case = at_sizes(manifest, directives, &named).map_err(CostError::Input)?;
        Ok(count(&module, &kernel.name, &case.inputs(manifest).map_err(CostError::Input)?)?)
    }
}

impl RowCounts {
    fn of(works: &[Work]) -> Self {
        let sum = |of: fn(&Work) -> f64| works.iter().map(of).sum::<f64>().round() as u64;
        RowCounts {
            sectors: sum(|work| work.sectors),
            wavefronts: sum(|work| work.wavefronts),
            barriers: sum(|work| work.barriers),
            instructions: sum(|work| work.instructions),
            threads: sum(|work| (work.blocks * work.threads) as f64 * work.repeats),
        }
    }

    fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("sectors", self.sectors),
            ("wavefronts", self.wavefronts),
            ("barriers", self.barriers),
            ("instructions", self.instructions),
            ("threads", self.threads),
        ]
    }
}

/// Where the model's counts are not the emulator's. Instructions are of the IR here and of the PTX there.
fn differences(model: &[Work], emulator: &[Work]) -> Vec<String> {
    let (model, emulator) = (RowCounts::of(model).named(), RowCounts::of(emulator).named());
    let pairs = model.into_iter().zip(emulator).filter(|((name, _), _)| *name != "instructions");
    let far = pairs.filter(|((_, model), (_, emulator))| {
        model.abs_diff(*emulator) as f64 > MAY_DIFFER * (*emulator as f64) + 1.0
    });
    far.map(|((name, model), (_, emulator))| {
        format!("{name}: {model} by the model, {emulator} by the emulator")
    })
    .collect()
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

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = format!("{:.3} us", self.nanoseconds as f64 / 1e3);
        let counts = self.counts.named().map(|(name, number)| format!("{number} {name}")).join(", ");
        let by = match self.counted_by {
            CountedBy::Model => "model",
            CountedBy::Emulator => "emulator",
        };
        let mut fields = vec![&*self.kernel, &*self.sizes, &*time, &*self.form, &*counts, by];
        fields.extend(Some(&*self.because).filter(|because| !because.is_empty()));
        f.write_str(&fields.join(BAR))
    }
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|cost| writeln!(f, "{cost}"))
    }
}

impl Cost {
    fn parse(line: &str) -> Option<Cost> {
        let mut fields = line.splitn(7, BAR);
        let mut next = || fields.next().map(str::to_string);
        let (kernel, sizes, time, form, counted, by) = (next()?, next()?, next()?, next()?, next()?, next()?);
        let because = next().unwrap_or_default();
        let (whole, part) = time.strip_suffix(" us")?.split_once('.').filter(|(_, part)| part.len() == 3)?;
        let nanoseconds = format!("{whole}{part}").parse().ok()?;
        let mut counts = RowCounts::default();
        for (entry, (name, _)) in counted.split(", ").zip(counts.named()) {
            let number = entry.strip_suffix(name)?.trim_end().parse().ok()?;
            match name {
                "sectors" => counts.sectors = number,
                "wavefronts" => counts.wavefronts = number,
                "barriers" => counts.barriers = number,
                "instructions" => counts.instructions = number,
                _ => counts.threads = number,
            }
        }
        let counted_by = match &*by {
            "model" => CountedBy::Model,
            "emulator" => CountedBy::Emulator,
            _ => return None,
        };
        let cost = Cost { kernel, sizes, nanoseconds, form, counts, counted_by, because };
        (cost.to_string() == line).then_some(cost)
    }

    /// How many times as long as it took.
    pub fn ratio(&self, before: &Cost) -> f64 {
        self.nanoseconds as f64 / (before.nanoseconds as f64).max(1.0)
    }

    /// What is other than it was, in words, for people.
    fn changes(&self, before: &Cost) -> Vec<String> {
        let mut changes = Vec::new();
        if self.form != before.form {
            changes.push(format!("{} -> {}", before.form, self.form));
        }
        for ((name, new), (_, old)) in self.counts.named().into_iter().zip(before.counts.named()) {
            if new != old {
                let share = if old == 0 { String::new() } else { percent(new as f64 / old as f64) };
                changes.push(format!("{name} {old} -> {new}{share}"));
            }
        }
        if self.counted_by != before.counted_by {
            changes.push("counted by another than before: times and instructions compare badly".to_string());
        }
        changes
    }
}

fn percent(ratio: f64) -> String {
    format!(" ({:+.1}%)", (ratio - 1.0) * 100.0)
}

/// What became of a line of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    pub kernel: String,
    pub verdict: Verdict,
    /// Whole lines, for people.
    pub text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It takes longer than it did, by more than 2 %.
    Worse,
    /// The table has no such line.
    New,
    /// The table has a line that no kernel stands for any more.
    Gone,
    /// Something is other than it was, and nothing is worse.
    Changed,
}

impl Verdict {
    /// Whether the table has to be accepted anew, by [`Costs::accepted`].
    pub fn fails(self) -> bool {
        self != Verdict::Changed
    }
}

impl Costs {
    /// Reads the text of [`Display`](fmt::Display); empty lines and those that start with `#` are comments.
    ///
    /// # Errors
    /// The first line that is not of it.
    pub fn parse(text: &str) -> Result<Costs, CostError> {
        let lines =
            text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let bad =
            |number: usize, line: &str| CostError::Input(format!("line {}: `{line}` is no cost", number + 1));
        lines
            .map(|(number, line)| Cost::parse(line).ok_or_else(|| bad(number, line)))
            .collect::<Result<_, _>>()
            .map(Costs)
    }

    /// The line of a kernel at some sizes.
    pub fn get(&self, kernel: &str, sizes: &str) -> Option<&Cost> {
        self.0.iter().find(|cost| cost.kernel == kernel && cost.sizes == sizes)
    }

    /// What is other than it was; lines that are as they were say nothing.
    pub fn against(&self, before: &Costs) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut add = |kernel: &str, verdict, lines: &[String]| {
            let text = lines.iter().map(|line| format!("  {line}\n")).collect();
            changes.push(Change { kernel: kernel.to_string(), verdict, text });
        };
        for cost in &self.0 {
            let Some(old) = before.get(&cost.kernel, &cost.sizes) else {
                let line =
                    format!("no line for {}; it takes {:.3} us", cost.sizes, cost.nanoseconds as f64 / 1e3);
                add(&cost.kernel, Verdict::New, &[line]);
                continue;
            };
            let ratio = cost.ratio(old);
            let times = [old, cost].map(|cost| format!("{:.3} us", cost.nanoseconds as f64 / 1e3));
            let mut lines = cost.changes(old);
            if cost.nanoseconds != old.nanoseconds {
                let allowed = if ratio > MAY_RISE { ", 2% are allowed" } else { "" };
                lines.insert(0, format!("predicted time {}{}{allowed}", times.join(" -> "), percent(ratio)));
            }
            if !lines.is_empty() {
                lines.insert(0, format!("for {}", cost.sizes));
                let verdict = if ratio > MAY_RISE { Verdict::Worse } else { Verdict::Changed };
                add(&cost.kernel, verdict, &lines);
            }
        }
        for old in before.0.iter().filter(|old| self.get(&old.kernel, &old.sizes).is_none()) {
            add(
                &old.kernel,
                Verdict::Gone,
                &[format!("a line for {}, which nothing stands for any more", old.sizes)],
            );
        }
        changes
    }

    /// These costs as the new table: what became worse carries the reason, and what did earlier keeps its own until it is
    /// as good as it was.
    ///
    /// # Errors
    /// Where something became worse and no reason is given: what it is.
    pub fn accepted(mut self, before: &Costs, because: Option<&str>) -> Result<Costs, Vec<Change>> {
        let changes = self.against(before);
        let worse: Vec<Change> =
            changes.into_iter().filter(|change| change.verdict == Verdict::Worse).collect();
        if because.is_none() && !worse.is_empty() {
            return Err(worse);
        }
        for cost in &mut self.0 {
            let Some(old) = before.get(&cost.kernel, &cost.sizes) else { continue };
            if cost.ratio(old) > MAY_RISE {
                let reason: String =
                    because.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
                cost.because =
                    format!("{:.3} us before: {}", old.nanoseconds as f64 / 1e3, reason.replace('|', "/"));
            } else if cost.ratio(old) > 1.0 / MAY_RISE {
                cost.because.clone_from(&old.because);
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Costs {
        let source = SourceFile::new("k.krn", text);
        let (costs, differ) = costs_checked(&source, &CompileOptions::for_target("sm_90"), &|_| true)
            .expect("it can be counted");
        assert_eq!(differ, Vec::<String>::new());
        costs
    }

    const SCALE: &str = "// krn-test: cost m=8; n=128\n// krn-test: cost m=1024; n=1024\n\
        kernel scale(x: f32[m, n]) -> y: f32[m, n] { y[i, j] = 2.0 * x[i, j] }\n";

    #[test]
    fn the_text_is_read_back() {
        let found = of(&format!("{SCALE}kernel total(x: i32[n]) -> s: i32 {{ s = sum(i: x[i]) }}\n"));
        let text = found.to_string();
        assert_eq!(text.lines().count(), 3);
        assert!(text.starts_with("scale | m = 8, n = 128 for sm_90 | 1."), "{text}");
        assert!(
            text.contains(" us | 4 elements a thread, ")
                && text.contains(" | 256 sectors, 0 wavefronts, 0 barriers, "),
            "{text}"
        );
        assert_eq!(Costs::parse(&format!("# kept\n\n{text}")).expect("its own text"), found);
        assert!(Costs::parse("scale | n = 1 | 3 us\n").is_err());
        assert!(Costs::parse(&text.replace("256 sectors", "many sectors")).is_err());
    }

    #[test]
    fn what_memory_decides_is_counted_by_the_emulator() {
        let found = of("// krn-test: cost n=4096; m=4096\n// krn-test: in at=random(0, m)\n\
            kernel pick(x: f32[m], at: i32[n]) -> y: f32[n] { y[i] = x[at[i]] }\n");
        assert_eq!(found.0[0].counted_by, CountedBy::Emulator);
        assert!(found.0[0].form.contains("checked") && found.0[0].counts.sectors > 4096, "{found}");
    }

    #[test]
    fn what_became_worse_is_told_and_needs_a_reason() {
        // Small launches differ by what a launch costs: that is no matter of sectors.
        let large = SCALE.replace("// krn-test: cost m=8; n=128\n", "");
        let (before, after) = (of(&large), of(&format!("{large}schedule scale {{ order j, i }}\n")));
        assert!(before.against(&before).is_empty());
        let changes = after.against(&before);
        let worse: Vec<&Change> = changes.iter().filter(|change| change.verdict == Verdict::Worse).collect();
        assert!(!worse.is_empty() && worse.iter().all(|change| change.kernel == "scale"), "{changes:?}");
        assert!(worse[0].text.contains("  4 elements a thread, "), "{worse:?}");
        let back = before.against(&after);
        assert!(back.iter().any(|change| change.verdict == Verdict::Changed), "{back:?}");
        assert!(after.clone().accepted(&before, None).is_err());
        let kept = after.clone().accepted(&before, Some("a |\ntrial")).expect("there is a reason");
        assert!(kept.to_string().contains(" us before: a / trial\n"), "{kept}");
        assert_eq!(Costs::parse(&kept.to_string()).expect("its own text"), kept);
        // The reason stays until the line is as good as it was.
        assert_eq!(after.accepted(&kept, None).expect("nothing is worse"), kept);
        assert_eq!(before.clone().accepted(&kept, None).expect("nothing is worse"), before);
    }

    #[test]
    fn lines_come_and_go() {
        let before = of(SCALE);
        let after = of(&SCALE.replace("m=1024", "m=1025"));
        let verdicts: Vec<Verdict> = after.against(&before).iter().map(|change| change.verdict).collect();
        assert_eq!(verdicts, [Verdict::New, Verdict::Gone]);
    }

    #[test]
    fn a_wrong_directive_is_told() {
        let wrong = |line: &str| {
            let text =
                format!("// krn-test: cost {line}\nkernel scale(x: f32[n]) -> y: f32[n] {{ y[i] = x[i] }}\n");
            costs(&SourceFile::new("k.krn", text), &CompileOptions::default())
                .expect_err("refused")
                .to_string()
        };
        assert_eq!(wrong("m=5"), "`scale`: there is no dimension or integer parameter `m`");
        assert!(wrong("n=5,6").starts_with("`scale`: line 1: `cost n=5,6`: "), "{}", wrong("n=5,6"));
    }
}

//! The pipeline as a table, and the one runner that verifies, times, prints and diffs.
//!
//! ```
//! use krn_compiler::passes::{Pipeline, TargetFacts};
//!
//! let pipeline = Pipeline::for_target(&TargetFacts::new(90)).without("licm")?;
//! println!("{pipeline}");
//! # Ok::<(), krn_compiler::passes::PipelineError>(())
//! ```

use super::diff::diff;
use super::fingerprint::fingerprint;
use super::pass::{Changed, Pass, PassContext, TargetFacts};
use super::past::Past;
use super::pipeline_error::{PipelineError, unknown};
use super::standard;
use crate::clock::Start;
use crate::ir::entities::ConstantArray;
use crate::ir::kernel::{ArrayData, Kernel, Phase, Phases};
use crate::ir::text::{PrintOptions, print_kernel};
use crate::ir::{VerifierError, verify, verify_threads};
use cranelift_entity::PrimaryMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// One row of the table.
#[derive(Clone)]
pub(super) struct Row {
    pub(super) pass: Arc<dyn Pass>,
    /// Selection needs what it leaves: it can be replaced but not left out.
    required: bool,
}

/// Passes in the order in which they run.
#[derive(Clone)]
pub struct Pipeline {
    pub(super) rows: Vec<Row>,
    context: PassContext,
}

/// Which passes something is done for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum PassSelection {
    #[default]
    None,
    All,
    Names(Vec<String>),
}

impl PassSelection {
    fn contains(&self, name: &str) -> bool {
        match self {
            PassSelection::None => false,
            PassSelection::All => true,
            PassSelection::Names(names) => names.iter().any(|known| known == name),
        }
    }

    fn names(&self) -> &[String] {
        if let PassSelection::Names(names) = self { names } else { &[] }
    }
}

/// What the runner does beside running.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PipelineOptions {
    /// Verify the kernel before the first pass and after each that changed it, and that each pass says truly whether it
    /// did: as long again as the passes take. The default in builds with debug assertions. The barriers of explicit threads
    /// are verified too, after the last pass. Else the kernel is verified once, after the last pass, without its barriers.
    /// Where that finds something, all passes run again, with this and `barriers`, so that the guilty one is named.
    pub verify: bool,
    /// Verify the barriers of explicit threads wherever `verify` looks: as long again.
    pub barriers: bool,
    /// Measure each pass.
    pub time: bool,
    pub print_before: PassSelection,
    pub print_after: PassSelection,
    /// Print what each pass changed.
    pub diff: PassSelection,
    /// Whether printed kernels show source spans.
    pub spans: bool,
}

impl Default for PipelineOptions {
    fn default() -> Self {
        let none = PassSelection::None;
        Self {
            verify: cfg!(debug_assertions),
            barriers: false,
            time: false,
            print_before: none.clone(),
            print_after: none.clone(),
            diff: none,
            spans: false,
        }
    }
}

/// What happened, one row a pass.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PipelineReport {
    pub passes: Vec<PassReport>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassReport {
    pub name: String,
    pub changed: bool,
    /// Zero unless timing was asked for.
    pub duration: Duration,
}

impl Pipeline {
    /// The standard pipeline.
    pub fn for_target(target: &TargetFacts) -> Self {
        let rows = standard::rows().into_iter().map(|(pass, required)| Row { pass, required }).collect();
        Self { rows, context: PassContext::new(target.clone()) }
    }

    /// No passes.
    pub fn empty(target: &TargetFacts) -> Self {
        Self { rows: Vec::new(), context: PassContext::new(target.clone()) }
    }

    /// The same passes, for kernels of a module with these constant arrays.
    pub fn with_constants(mut self, constants: PrimaryMap<ConstantArray, ArrayData>) -> Self {
        self.context.constants = Arc::new(constants);
        self
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> + '_ {
        self.rows.iter().map(|row| row.pass.name())
    }

    /// The names, each with what the pass is good for, in one line.
    pub fn passes(&self) -> impl Iterator<Item = (&str, &str)> + '_ {
        self.rows.iter().map(|row| (row.pass.name(), row.pass.reason()))
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn position(&self, name: &str) -> Result<usize, PipelineError> {
        self.names().position(|known| known == name).ok_or_else(|| unknown(name, self.names()))
    }

    fn insert(mut self, at: usize, pass: impl Pass + 'static) -> Result<Self, PipelineError> {
        if self.names().any(|known| known == pass.name()) {
            return Err(PipelineError::Duplicate { name: pass.name().to_string() });
        }
        self.rows.insert(at, Row { pass: Arc::new(pass), required: false });
        self.checked()
    }

    /// Leaves a pass out.
    pub fn without(mut self, name: &str) -> Result<Self, PipelineError> {
        let at = self.position(name)?;
        if self.rows[at].required {
            return Err(PipelineError::Required { name: name.to_string() });
        }
        self.rows.remove(at);
        self.checked()
    }

    /// Adds a pass right before another.
    pub fn before(self, name: &str, pass: impl Pass + 'static) -> Result<Self, PipelineError> {
        let at = self.position(name)?;
        self.insert(at, pass)
    }

    /// Adds a pass right after another.
    pub fn after(self, name: &str, pass: impl Pass + 'static) -> Result<Self, PipelineError> {
        let at = self.position(name)?;
        self.insert(at + 1, pass)
    }

    /// Adds a pass at the end.
    pub fn then(self, pass: impl Pass + 'static) -> Result<Self, PipelineError> {
        let at = self.rows.len();
        self.insert(at, pass)
    }

    /// Puts a pass in the place of another (which may have the same name).
    pub fn replace(mut self, name: &str, pass: impl Pass + 'static) -> Result<Self, PipelineError> {
        let at = self.position(name)?;
        if pass.name() != name && self.names().any(|known| known == pass.name()) {
            return Err(PipelineError::Duplicate { name: pass.name().to_string() });
        }
        self.rows[at].pass = Arc::new(pass);
        self.checked()
    }

    /// The first `count` passes that can be left out, and all that cannot: for finding the first pass that does
    /// harm. `prefix(len())` is the whole pipeline.
    pub fn prefix(&self, count: usize) -> Self {
        let mut left = count;
        let mut keep = |row: &&Row| {
            let kept = row.required || left > 0;
            left -= usize::from(!row.required && left > 0);
            kept
        };
        Self {
            rows: self.rows.iter().filter(|row| keep(row)).cloned().collect(),
            context: self.context.clone(),
        }
    }

    /// How many passes can be left out: `prefix` of this is the whole pipeline.
    pub fn optional_len(&self) -> usize {
        self.optional_names().count()
    }

    /// The names of the passes that can be left out, in order: `prefix(n)` has the first `n` of them.
    pub fn optional_names(&self) -> impl Iterator<Item = &str> + '_ {
        self.rows.iter().filter(|row| !row.required).map(|row| row.pass.name())
    }

    /// The pipeline, if its order and phases fit together for launches in phase `abstract`.
    fn checked(self) -> Result<Self, PipelineError> {
        self.check_order()?;
        self.check_phases(Phase::Abstract)?;
        Ok(self)
    }

    fn check_order(&self) -> Result<(), PipelineError> {
        for (at, row) in self.rows.iter().enumerate() {
            for early in row.pass.runs_after() {
                if self.names().skip(at + 1).any(|name| name == *early) {
                    let late = row.pass.name().to_string();
                    return Err(PipelineError::Order { early: early.to_string(), late });
                }
            }
        }
        Ok(())
    }

    /// Whether the passes work on every launch of a kernel, in the phase in which it comes to them.
    pub(super) fn check_launches(&self, kernel: &Kernel) -> Result<(), PipelineError> {
        kernel.launches.values().try_for_each(|launch| self.check_phases(launch.phase).map(drop))
    }

    /// The phase at the end, for a launch in a phase.
    fn check_phases(&self, mut phase: Phase) -> Result<Phase, PipelineError> {
        let is_tiled = phase == Phase::Tiled;
        for row in &self.rows {
            let needs = row.pass.needs();
            // Launches of loops pass by the passes on tiles, and those of tiles by the passes on loops.
            if (is_tiled && needs.is_before(phase)) || (needs == Phases::TILED && phase != Phase::Tiled) {
                continue;
            }
            if !needs.contains(phase) {
                return Err(PipelineError::Phase { name: row.pass.name().to_string(), needs, found: phase });
            }
            phase = row.pass.leaves().unwrap_or(phase);
        }
        Ok(phase)
    }

    /// Runs every pass. `sink` gets what the options ask to print, piece by piece.
    pub fn run(
        &self,
        kernel: &mut Kernel,
        options: &PipelineOptions,
        sink: &mut dyn FnMut(&str),
    ) -> Result<PipelineReport, PipelineError> {
        for selection in [&options.print_before, &options.print_after, &options.diff] {
            for name in selection.names() {
                self.position(name)?;
            }
        }
        self.check_launches(kernel)?;
        let untouched = (!options.barriers).then(|| kernel.clone());
        if options.verify {
            verified(kernel, None, options.barriers)?;
        }
        let mut report = PipelineReport::default();
        for row in &self.rows {
            report.passes.push(self.step(row, kernel, options, sink)?);
        }
        let broken = self.verified_at_end(kernel, options);
        match untouched.zip(broken.err()) {
            Some((untouched, broken)) => Err(self.guilty(untouched, broken)),
            None => Ok(report),
        }
    }

    /// Runs a pass, with all that the options ask for.
    pub(super) fn step(
        &self,
        row: &Row,
        kernel: &mut Kernel,
        options: &PipelineOptions,
        sink: &mut dyn FnMut(&str),
    ) -> Result<PassReport, PipelineError> {
        let print = |kernel: &Kernel| print_kernel(kernel, PrintOptions { spans: options.spans });
        let name = row.pass.name();
        let wants_diff = options.diff.contains(name);
        let before = (wants_diff || options.print_before.contains(name)).then(|| print(kernel));
        if let Some(before) = before.as_ref().filter(|_| options.print_before.contains(name)) {
            sink(&format!("// before {name}\n{before}"));
        }
        let found = options.verify.then(|| fingerprint(kernel));
        let start = options.time.then(Start::now);
        let needs = row.pass.needs();
        let past = Past::hide(kernel, needs);
        let changed = !past.is_all(kernel) && row.pass.run(kernel, &self.context) == Changed::Yes;
        let duration = start.map_or(Duration::ZERO, Start::elapsed);
        if let Some(phase) = row.pass.leaves() {
            let launches = kernel.launches.values_mut();
            launches.filter(|launch| needs.contains(launch.phase)).for_each(|launch| launch.phase = phase);
        }
        past.show(kernel);
        if let Some(found) = found
            && changed != (found != fingerprint(kernel))
        {
            let (pass, kernel) = (name.to_string(), kernel.name.clone());
            return Err(PipelineError::Report { pass, kernel, changed });
        }
        if options.print_after.contains(name) {
            sink(&format!("// after {name}\n{}", print(kernel)));
        }
        if let Some(before) = before.filter(|_| wants_diff) {
            sink(&format!("// changes of {name}\n{}", diff(&before, &print(kernel))));
        }
        // What did not change holds as before.
        if options.verify && (changed || row.pass.leaves().is_some()) {
            verified(kernel, Some(name), options.barriers)?;
        }
        Ok(PassReport { name: name.to_string(), changed, duration })
    }

    /// What nobody has looked at after each pass.
    pub(super) fn verified_at_end(
        &self,
        kernel: &Kernel,
        options: &PipelineOptions,
    ) -> Result<(), PipelineError> {
        match (options.verify, options.barriers) {
            (false, _) => verified(kernel, self.names().last(), false),
            (true, false) => barriers_verified(kernel, self.names().last()),
            (true, true) => Ok(()),
        }
    }

    /// The error of a kernel that the passes broke, when nobody looked after each: all run again, with that. `broken` is
    /// what stands of one that breaks a kernel at times only.
    pub(super) fn guilty(&self, mut untouched: Kernel, broken: PipelineError) -> PipelineError {
        let one_by_one = PipelineOptions { verify: true, barriers: true, ..PipelineOptions::default() };
        self.run(&mut untouched, &one_by_one, &mut |_| {}).err().unwrap_or(broken)
    }
}

/// The kernel as the verifier accepts it, after a pass; its barriers too, where they are asked for.
pub(super) fn verified(kernel: &Kernel, pass: Option<&str>, barriers: bool) -> Result<(), PipelineError> {
    verify(kernel).map_err(|errors| refused(kernel, pass, errors))?;
    if barriers { barriers_verified(kernel, pass) } else { Ok(()) }
}

fn barriers_verified(kernel: &Kernel, pass: Option<&str>) -> Result<(), PipelineError> {
    verify_threads(kernel).map_err(|errors| refused(kernel, pass, errors))
}

fn refused(kernel: &Kernel, pass: Option<&str>, errors: Vec<VerifierError>) -> PipelineError {
    PipelineError::Verifier { pass: pass.map(str::to_string), kernel: kernel.name.clone(), errors }
}

impl fmt::Display for Pipeline {
    /// The table: one pass a line, with its reason.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.names().map(str::len).max().unwrap_or(0);
        for row in &self.rows {
            writeln!(f, "{:width$}  {}", row.pass.name(), row.pass.reason())?;
        }
        Ok(())
    }
}

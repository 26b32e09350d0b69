//! What code generation says of a text: for each kernel the schedule that was chosen, what accesses cost, and warnings.

use krn_compiler::analysis::model::{Space, model, representative_sizes, spell_sizes};
use krn_compiler::diagnostic::{Diagnostic, Diagnostics};
use krn_compiler::source::{SourceFile, Span};
use krn_compiler::{Advise, CompileError, CompileOptions, Variants, compile, explain_schedules};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// What is known of one kernel.
#[derive(Clone, Default, Debug)]
pub struct Chosen {
    /// A `schedule` block.
    pub schedule: String,
    pub costs: Vec<Cost>,
}

/// What an access costs.
#[derive(Clone, PartialEq, Debug)]
pub struct Cost {
    pub span: Span,
    pub label: String,
    pub tooltip: String,
}

/// Of one text.
#[derive(Default)]
pub struct Generated {
    /// The kernels that the other thread was asked to make hints of.
    pub asked: RefCell<BTreeSet<String>>,
    /// By the name of the kernel; `None` where it does not compile.
    pub kernels: BTreeMap<String, Option<Chosen>>,
    /// By the name of the kernel.
    pub reports: BTreeMap<String, Vec<Diagnostic>>,
}

impl Generated {
    pub fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        let mut seen: Vec<&Diagnostic> = Vec::new();
        for report in self.reports.values().flatten() {
            if !seen.contains(&report) {
                seen.push(report);
            }
        }
        seen.into_iter()
    }
}

fn options(kernel: &str) -> CompileOptions {
    CompileOptions { only: Some(kernel.to_string()), text_only: true, ..CompileOptions::default() }
}

/// Compiles a kernel for representative sizes. Nothing where it does not compile.
pub fn chosen(source: &SourceFile, kernel: &str) -> Option<Chosen> {
    let options = CompileOptions { ir: true, variants: Variants::For(BTreeMap::new()), ..options(kernel) };
    let compilation = compile(source, &options).ok()?;
    let schedule = explain_schedules(&compilation).into_iter().find(|known| known.kernel == kernel)?.text;
    Some(Chosen { schedule, costs: costs(&compilation.ir()?, kernel) })
}

/// What there is to say of a kernel that only compiling it tells: refusals, and what costs speed for nothing.
pub fn reports(source: &SourceFile, kernel: &str) -> Diagnostics {
    let options = CompileOptions { advise: Advise::Everything, ..options(kernel) };
    match compile(source, &options) {
        Ok(compilation) => compilation.warnings,
        Err(CompileError::Diagnostics(diagnostics)) => diagnostics,
        // Of the rest no place in the text is to blame.
        Err(_) => Diagnostics::new(),
    }
}

/// Requests and what they come to, over all copies of the code.
#[derive(Default)]
struct Sum {
    requests: f64,
    sectors: f64,
    shared: f64,
    conflicts: f64,
    unknown: f64,
}

fn costs(module: &krn_compiler::ir::kernel::Module, name: &str) -> Vec<Cost> {
    let Some(kernel) = module.kernels.iter().find(|known| known.name == name) else { return Vec::new() };
    let Some(sizes) = representative_sizes(kernel) else { return Vec::new() };
    let mut sums: BTreeMap<Span, Sum> = BTreeMap::new();
    for access in model(kernel, &sizes).iter().flatten().flat_map(|launch| &launch.accesses) {
        let sum = sums.entry(kernel.insts[access.inst].span).or_default();
        match access.space {
            Space::Global => {
                sum.requests += access.requests;
                sum.sectors += access.sectors;
            }
            Space::Shared => {
                sum.shared += access.requests;
                sum.conflicts += access.conflicts;
            }
            Space::Local => {}
        }
        sum.unknown += access.unknown;
    }
    let spelled = spell_sizes(kernel, &sizes);
    let at = if spelled.is_empty() { String::new() } else { format!(", for {spelled}") };
    let cost = |(span, sum): (Span, Sum)| {
        let mut parts = Vec::new();
        if sum.requests > 0.0 && sum.unknown == 0.0 {
            parts.push(format!("{} sectors", short(sum.sectors / sum.requests)));
        }
        if sum.shared > 0.0 && sum.conflicts > 0.0 {
            parts.push(format!("{} conflicts", short(sum.conflicts / sum.shared)));
        }
        let tooltip = format!(
            "sectors of 32 bytes a request of a warp, and bank conflicts a request of shared memory, computed from \
             layouts and subscripts{at}; `krn profile` counts them"
        );
        (!parts.is_empty() && span.start < span.end).then(|| Cost { span, label: parts.join(", "), tooltip })
    };
    sums.into_iter().filter_map(cost).collect()
}

/// `4`, `4.25`
fn short(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

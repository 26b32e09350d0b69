//! Directives that no pass could carry out, as diagnostics at their spans.

use crate::diagnostic::{Diagnostic, Diagnostics, codes};
use crate::ir::kernel::Kernel;
use crate::ir::schedule::{Directive, Outcome, RefusalKind, Scheduled};
use crate::passes::Pipeline;

/// Reports every directive of the kernels that is carried out, or could be, in no variant of the kernel. Where a pass that might have
/// done so is left out, a directive is left out with it.
pub fn directives(kernels: &[&Kernel], pipeline: &Pipeline) -> Diagnostics {
    let mut diagnostics = Diagnostics::new();
    // Variants of a kernel may follow different schedules.
    let mut seen: Vec<(&str, &Scheduled)> = Vec::new();
    let all = || {
        kernels.iter().flat_map(|kernel| kernel.schedule.directives.iter().map(move |known| (*kernel, known)))
    };
    for (kernel, scheduled) in all() {
        let same = |name: &str, other: &Scheduled| {
            name == kernel.name && other.span == scheduled.span && other.directive == scheduled.directive
        };
        if seen.iter().any(|(name, other)| same(name, other)) {
            continue;
        }
        seen.push((&kernel.name, scheduled));
        if all().any(|(of, other)| {
            same(&of.name, other) && matches!(other.outcome, Outcome::Done | Outcome::Unneeded)
        }) {
            continue;
        }
        let whole =
            carriers(&scheduled.directive).iter().all(|name| pipeline.names().any(|known| known == *name));
        if whole && !at_once(&scheduled.directive) {
            diagnostics.push(diagnostic(kernel, scheduled));
        }
    }
    diagnostics.sort();
    diagnostics
}

/// Whether lowering or selection carries the directive out, for every kernel.
fn at_once(directive: &Directive) -> bool {
    matches!(directive, Directive::FastMath | Directive::Layout { .. } | Directive::Cache { .. })
}

/// The passes that may carry a directive out.
fn carriers(directive: &Directive) -> &'static [&'static str] {
    match directive {
        Directive::Block(_) => &["map", "split_reductions"],
        Directive::Order(_) => &["map", "collapse"],
        Directive::Tile { .. } => &["map", "stage", "collapse"],
        Directive::PerThread { .. } => &["map", "per_thread", "stage", "collapse"],
        Directive::Stage { .. } => &["stage", "collapse", "fold"],
        Directive::Unroll { .. } => &["unroll"],
        Directive::Vectorize { .. } => &["per_thread", "split_reductions", "collapse", "fold", "soa"],
        Directive::Warps { .. } => &["map", "split_reductions", "collapse"],
        Directive::Split { .. } | Directive::Atomic { .. } => &["split_reductions", "collapse", "fold"],
        Directive::Tf32 => &["tile"],
        Directive::FastMath | Directive::Layout { .. } | Directive::Cache { .. } => &[],
    }
}

fn diagnostic(kernel: &Kernel, scheduled: &Scheduled) -> Diagnostic {
    let (directive, name) = (&scheduled.directive, &kernel.name);
    let (code, label, reason, help) = match &scheduled.outcome {
        Outcome::Refused(refusal) => {
            let (code, label) = match refusal.kind {
                RefusalKind::DoesNotFit => (codes::E0512, "no place for it"),
                RefusalKind::TooManyThreads => (codes::E0515, "too many threads"),
                RefusalKind::TooMuchSharedMemory => (codes::E0516, "too much shared memory"),
                RefusalKind::Contradiction => (codes::E0517, "contradicts another directive"),
            };
            (code, label, refusal.reason.clone(), refusal.help.clone())
        }
        _ => {
            let (reason, help) = unused(directive);
            (codes::E0512, "no place for it", reason.to_string(), help.to_string())
        }
    };
    Diagnostic::error(
        code,
        scheduled.span,
        format!("`{directive}` cannot be carried out in `{name}`: {reason}"),
        label,
    )
    .help(help)
}

/// Why a directive that no pass said anything of has no place, and which kernels have one.
fn unused(directive: &Directive) -> (&'static str, &'static str) {
    match directive {
        Directive::Block(_) => (
            "no loop of it is spread over threads",
            "`block` works for kernels with a parallel loop, or a reduction that blocks can share",
        ),
        Directive::Order(_) => {
            ("no loop has these names", "`order` works for the parallel names of one statement or `forall`")
        }
        Directive::Tile { .. } => (
            "no loop over this name is spread over blocks, or staged",
            "`tile` works for the parallel names of a statement, and for those of a product beside `stage`",
        ),
        Directive::PerThread { .. } => (
            "no loop over this name is spread over threads",
            "`per_thread` works for the parallel names of a statement or of an outer `forall`",
        ),
        Directive::Stage { .. } => (
            "its accesses have no form that is staged",
            "`stage` works for arrays that are read across the way they are written (transpositions), and for the \
             factors of products (`sum(p: a[i, p] * b[p, j])`)",
        ),
        Directive::Unroll { .. } => (
            "no thread runs a serial loop over this name",
            "`unroll` works for reductions and `for` loops; for parallel names there is `per_thread`",
        ),
        Directive::Vectorize { .. } => (
            "no access of a thread goes along this name",
            "`vectorize` works for the last parallel name of a statement without loops inside, and for the name of a \
             reduction over neighbours",
        ),
        Directive::Warps { .. } => (
            "no loop over this name is shared by warps",
            "`warps` works for parallel names, and for reductions over rows or over a whole array",
        ),
        Directive::Split { .. } => (
            "the reduction cannot be cut",
            "`split` works for a reduction of one name that stands alone in its statement, and reads nothing that the \
             statement writes",
        ),
        Directive::Atomic { .. } => (
            "no reduction into it is cut into pieces",
            "`atomic` works for reductions that are cut over the grid: say `split` too",
        ),
        Directive::Tf32 => (
            "no sum of it is a product of matrices of `f32`",
            "`tf32` works for sums of products of two factors of `f32` (`sum(p: a[i, p] * b[p, j])`); one that is a \
             product itself stands in parentheses",
        ),
        Directive::FastMath | Directive::Layout { .. } | Directive::Cache { .. } => {
            ("it has no effect", "remove it")
        }
    }
}

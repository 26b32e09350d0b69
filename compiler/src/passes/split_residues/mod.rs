//! `split_residues`: a loop whose indices decide by their remainders which terms of its sums count becomes one launch for each
//! class of indices.
//!
//! ```text
//! forall i = 0..2 * n { y[i] = sum(p in 0..4: if (i + 1 - p) % 2 == 0 { f[p] * x[(i + 1 - p) / 2] } else { 0.0 }) }     before
//!
//! forall i = 0..n { y[2 * i] = sum(p in 0..2: f[2 * p + 1] * x[i - p]) }                                                after
//! forall i = 0..n { y[2 * i + 1] = sum(p in 0..2: f[2 * p] * x[i + 1 - p]) }
//! ```
//!
//! Half of the terms are never visited then, along each axis, and what is left is a convolution. That is how transposed
//! convolutions with strides, gradients of strided ones and resampling are written where each result gathers its terms. Also
//! called polyphase decomposition; index set splitting by residue classes.
//!
//! - `found.rs`: the conditions, and what solves them. - `classes.rs`: the launch for a class. - `quotients.rs`: divisions that
//!   leave nothing over.
//!
//! # Preconditions
//!
//! The launch is one parallel loop with stores. The terms of a reduction add nothing, or a loop (`for`) leaves what it carries
//! as it is, where a sum of multiples of indices, at most one of them its own, is not divided by a literal without remainder.
//! The axes begin at literals. There are so many results that a class is worth a launch, and no more than 32 classes. What the
//! schedule says of the axes holds in each class.
//!
//! # Limits
//!
//! Of several such conditions on one axis of a reduction the first is solved; the others are asked as before.

mod classes;
mod found;
mod quotients;

use super::fold::Fold;
use super::pass::{Changed, Pass, PassContext};
use crate::analysis::{Answer, Conditions, ask};
use crate::ir::entities::Launch;
use crate::ir::kernel::{Kernel, Phase, Phases, Step};
use found::Found;
pub(super) use quotients::divided;

/// The pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SplitResidues {
    /// Results of a class from which on it is worth a launch: fewer in tests, for what the interpreter can afford.
    pub least: i64,
}

impl Default for SplitResidues {
    fn default() -> Self {
        Self { least: 1 << 14 }
    }
}

impl Pass for SplitResidues {
    fn name(&self) -> &str {
        "split_residues"
    }

    fn reason(&self) -> &str {
        "gives indices that differ in which terms count launches of their own"
    }

    fn needs(&self) -> Phases {
        Phases::of(&[Phase::Abstract])
    }

    fn runs_after(&self) -> &[&str] {
        &["collapse"]
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed {
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            let before = kernel.insts.len();
            self.split(kernel, launch);
            changed |= kernel.insts.len() > before;
        }
        if changed {
            // Conditions that are literals now.
            Fold.run(kernel, context);
        }
        changed.into()
    }
}

impl SplitResidues {
    /// Makes the launches of a launch's classes; `None` where it has none.
    fn split(&self, kernel: &mut Kernel, launch: Launch) -> Option<()> {
        let found = Found::in_launch(kernel, launch)?;
        let classes = found.classes();
        let count = i64::try_from(classes.len()).ok()?;
        let results = kernel.symbolic_iterations(found.forall)?;
        let conditions = Conditions::new().prefers_at_least(&results, self.least.saturating_mul(count));
        if ask(kernel, launch, &conditions) != Answer::Yes {
            return None;
        }
        let names = found.names(kernel);
        let name = kernel.launches[launch].name.clone();
        let text = format!(
            "{names}: one launch for each remainder, in which only terms that count are visited ({count} of them)"
        );
        kernel.schedule.remark(&name, text);
        let (own, others) = classes.split_first()?;
        let mut steps = vec![Step::Launch(launch)];
        for (number, class) in others.iter().enumerate() {
            let other = kernel.clone_launch(launch, &format!("class{}", number + 1));
            classes::take(kernel, other, &Found::in_launch(kernel, other)?, class);
            steps.push(Step::Launch(other));
        }
        classes::take(kernel, launch, &found, own);
        kernel.rename_launch(launch, "class0");
        kernel.replace_step(launch, &steps);
        Some(())
    }
}

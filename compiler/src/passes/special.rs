//! Launches that get another form where conditions on sizes hold.

use crate::analysis::{Answer, Conditions, ask};
use crate::ir::entities::Launch;
use crate::ir::kernel::Kernel;

/// Where a launch has its special form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Special {
    /// For all sizes that the kernel is compiled for.
    Always,
    /// In a copy: the plan decides.
    InCopy(Launch),
}

impl Special {
    /// What has the special form, of a launch that was to have it.
    pub fn of(self, launch: Launch) -> Launch {
        match self {
            Self::Always => launch,
            Self::InCopy(copy) => copy,
        }
    }
}

/// Gives a launch another form where the conditions hold, and a suffix to its name; `None` where they do not, or where
/// `form` finds that it cannot and has left the launch as it was.
pub fn specialize(
    kernel: &mut Kernel,
    launch: Launch,
    conditions: &Conditions,
    suffix: &str,
    form: impl FnOnce(&mut Kernel, Launch) -> bool,
) -> Option<Special> {
    match ask(kernel, launch, conditions) {
        Answer::No => None,
        Answer::Yes => {
            if !form(kernel, launch) {
                return None;
            }
            kernel.rename_launch(launch, suffix);
            Some(Special::Always)
        }
        Answer::InPlan(condition) => {
            let launches = kernel.launches.len();
            let copy = kernel.clone_launch(launch, suffix);
            if !form(kernel, copy) {
                kernel.keep_launches(launches);
                return None;
            }
            kernel.prefer(condition, copy, launch);
            Some(Special::InCopy(copy))
        }
    }
}

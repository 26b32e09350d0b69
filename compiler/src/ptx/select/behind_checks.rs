//! Which launches of a plan run behind a check that may have failed.

use crate::ir::entities::Launch;
use crate::ir::kernel::{Kernel, Step};
use crate::ir::op::Opcode;
use cranelift_entity::EntitySet;

/// Of each launch in turn: whether a check may have failed in a run of the plan before it begins.
pub fn behind_checks(kernel: &Kernel) -> Vec<bool> {
    let mut found = BehindChecks { checked: EntitySet::new(), behind: EntitySet::new() };
    for (launch, data) in &kernel.launches {
        let mut has_check = false;
        kernel.walk(data.body, &mut |_, inst| has_check |= kernel.insts[inst].opcode == Opcode::Check);
        if has_check {
            found.checked.insert(launch);
        }
    }
    found.walk(&kernel.plan, false);
    kernel.launches.keys().map(|launch| found.behind.contains(launch)).collect()
}

struct BehindChecks {
    /// Launches that have checks.
    checked: EntitySet<Launch>,
    behind: EntitySet<Launch>,
}

impl BehindChecks {
    /// Whether there has been a check at the end of a plan, if there has been one where it begins, or not.
    fn walk(&mut self, plan: &[Step], mut has_been: bool) -> bool {
        for step in plan {
            match step {
                Step::Launch(launch) => {
                    if has_been {
                        self.behind.insert(*launch);
                    }
                    has_been |= self.checked.contains(*launch);
                }
                Step::Branch { then, otherwise, .. } => {
                    let of_then = self.walk(then, has_been);
                    has_been = self.walk(otherwise, has_been) || of_then;
                }
                // What is at its end comes before what is at its beginning.
                Step::Repeat { .. } | Step::While { .. } => {
                    let inside = step.launches();
                    has_been |= inside.iter().any(|launch| self.checked.contains(*launch));
                    if has_been {
                        self.behind.extend(inside);
                    }
                }
            }
        }
        has_been
    }
}

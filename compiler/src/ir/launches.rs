//! Launches as a whole: copies for special cases, and their places in the plan.

use super::clone::ValueMap;
use super::entities::{Block, Launch};
use super::kernel::{Kernel, LaunchData, Step};
use crate::manifest::Expr;

impl Kernel {
    /// A copy of a launch under the name with a suffix; the plan does not know it yet.
    pub fn clone_launch(&mut self, launch: Launch, suffix: &str) -> Launch {
        let data = self.launches[launch].clone();
        let body = self.clone_block(data.body, &mut ValueMap::default());
        let fresh = self.launch_name(&data.name, suffix);
        self.schedule.copy_choices(&data.name, &fresh);
        self.launches.push(LaunchData { name: fresh, body, ..data })
    }

    /// A launch of a body that a pass has made, under a name with a suffix; it may rely on what `like` relies on. The
    /// plan does not know it yet.
    pub fn add_launch(&mut self, named_after: Launch, suffix: &str, body: Block, like: Launch) -> Launch {
        let name = self.launch_name(&self.launches[named_after].name, suffix);
        let LaunchData { threads, assume, .. } = self.launches[like].clone();
        let streams = Vec::new();
        self.launches.push(LaunchData { name, body, threads, grid: None, assume, resident: None, streams })
    }

    /// A name that no launch has.
    fn launch_name(&self, stem: &str, suffix: &str) -> String {
        let mut fresh = format!("{stem}_{suffix}");
        let mut number = 2;
        while self.launches.values().any(|known| known.name == fresh) {
            fresh = format!("{stem}_{suffix}_{number}");
            number += 1;
        }
        fresh
    }

    /// Puts other steps in the place of a launch's step.
    pub fn replace_step(&mut self, launch: Launch, steps: &[Step]) {
        let mut plan = std::mem::take(&mut self.plan);
        replace(&mut plan, launch, steps);
        self.plan = plan;
    }

    /// Makes the plan run `special` where the condition holds, and `launch` where it does not. The special launch
    /// may rely on the condition.
    pub fn prefer(&mut self, condition: Expr, special: Launch, launch: Launch) {
        self.launches[special].assume.push(condition.clone());
        let branch = Step::Branch {
            condition,
            then: vec![Step::Launch(special)],
            otherwise: vec![Step::Launch(launch)],
        };
        self.replace_step(launch, &[branch]);
    }
}

fn replace(plan: &mut Vec<Step>, launch: Launch, steps: &[Step]) {
    let mut at = 0;
    while at < plan.len() {
        match &mut plan[at] {
            Step::Launch(known) if *known == launch => {
                plan.splice(at..=at, steps.iter().cloned());
                at += steps.len();
                continue;
            }
            Step::Launch(_) => {}
            Step::Repeat { body, .. } => replace(body, launch, steps),
            Step::Branch { then, otherwise, .. } => {
                replace(then, launch, steps);
                replace(otherwise, launch, steps);
            }
        }
        at += 1;
    }
}

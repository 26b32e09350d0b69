//! Launches as a whole: copies for special cases, and their places in the plan.

use super::clone::ValueMap;
use super::entities::{Block, Buffer, Launch};
use super::kernel::{Kernel, LaunchData, Step};
use crate::manifest::{Expr, Value};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, SecondaryMap};

impl Kernel {
    /// A copy of a launch under the name with a suffix; the plan does not know it yet.
    pub fn clone_launch(&mut self, launch: Launch, suffix: &str) -> Launch {
        let data = self.launches[launch].clone();
        let body = self.clone_block(data.body, &mut ValueMap::default());
        let fresh = self.launch_name(&data.name, suffix);
        self.schedule.copy_choices(&data.name, &fresh);
        self.launches.push(LaunchData { name: fresh, body, ..data })
    }

    /// Puts a suffix behind a launch's name.
    pub fn rename_launch(&mut self, launch: Launch, suffix: &str) {
        let old = self.launches[launch].name.clone();
        let fresh = self.launch_name(&old, suffix);
        self.schedule.rename_launch(&old, &fresh);
        self.launches[launch].name = fresh;
    }

    /// A launch of a body that a pass has made, under a name with a suffix; it may rely on what `like` relies on. The
    /// plan does not know it yet.
    pub fn add_launch(&mut self, named_after: &str, suffix: &str, body: Block, like: Launch) -> Launch {
        let name = self.launch_name(named_after, suffix);
        let LaunchData { phase, threads, assume, .. } = self.launches[like].clone();
        let streams = Vec::new();
        self.launches.push(LaunchData {
            name,
            phase,
            body,
            threads,
            tiling: None,
            grid: None,
            assume,
            resident: None,
            streams,
        })
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

    /// Forgets all launches but the first ones, so many: those that were made behind them and that no step names.
    pub fn keep_launches(&mut self, count: usize) {
        let launches = std::mem::take(&mut self.launches);
        self.launches = launches.into_iter().take(count).map(|(_, launch)| launch).collect();
    }

    /// Puts other steps in the place of a launch's step.
    pub fn replace_step(&mut self, launch: Launch, steps: &[Step]) {
        let mut plan = std::mem::take(&mut self.plan);
        replace(&mut plan, launch, steps);
        self.plan = plan;
    }

    /// The conditions of the plan's branches.
    pub fn plan_conditions(&self) -> Vec<&Expr> {
        fn add<'k>(plan: &'k [Step], found: &mut Vec<&'k Expr>) {
            for step in plan {
                if let Step::Branch { condition, .. } = step {
                    found.push(condition);
                }
                step.parts().into_iter().for_each(|part| add(part, found));
            }
        }
        let mut found = Vec::new();
        add(&self.plan, &mut found);
        found
    }

    /// Whether the host reads a buffer, to find out whether steps are repeated.
    pub fn is_read_by_plan(&self, buffer: Buffer) -> bool {
        fn reads(plan: &[Step], buffer: Buffer) -> bool {
            plan.iter().any(|step| {
                matches!(step, Step::While { condition, .. } if *condition == buffer)
                    || step.parts().into_iter().any(|part| reads(part, buffer))
            })
        }
        reads(&self.plan, buffer)
    }

    /// Settles branches of the plan whose conditions are constants or `sure` to hold, and forgets launches that no step
    /// runs; whether anything changed. Launches are numbered anew.
    pub fn settle_plan(&mut self, sure: &[Expr]) -> bool {
        let mut plan = std::mem::take(&mut self.plan);
        let settled = settle(&mut plan, sure);
        let mut numbers: SecondaryMap<Launch, PackedOption<Launch>> = SecondaryMap::new();
        each_launch(&mut plan, &mut |launch| numbers[*launch] = (*launch).into());
        let changed = settled || self.launches.keys().any(|launch| numbers[launch].is_none());
        if changed {
            let mut kept = PrimaryMap::<Launch, LaunchData>::new();
            for (launch, data) in std::mem::take(&mut self.launches) {
                if numbers[launch].is_some() {
                    numbers[launch] = kept.push(data).into();
                }
            }
            self.launches = kept;
            each_launch(&mut plan, &mut |launch| *launch = numbers[*launch].expand().unwrap_or(*launch));
        }
        self.plan = plan;
        changed
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

/// Puts what a branch comes to in the place of one whose condition is a constant or sure; whether there was any.
fn settle(plan: &mut Vec<Step>, sure: &[Expr]) -> bool {
    let mut changed = false;
    for step in std::mem::take(plan) {
        match step {
            Step::Branch { condition, then, otherwise } => {
                let (mut then, mut otherwise) = (then, otherwise);
                changed |= settle(&mut then, sure);
                changed |= settle(&mut otherwise, sure);
                let holds = sure.contains(&condition).then_some(Value::Bool(true));
                match holds.or_else(|| condition.evaluate(&[])) {
                    Some(Value::Bool(holds)) => {
                        changed = true;
                        plan.append(if holds { &mut then } else { &mut otherwise });
                    }
                    _ => plan.push(Step::Branch { condition, then, otherwise }),
                }
            }
            Step::Repeat { symbol, low, high, step, mut body } => {
                changed |= settle(&mut body, sure);
                plan.push(Step::Repeat { symbol, low, high, step, body });
            }
            Step::While { condition, mut test, mut body } => {
                changed |= settle(&mut test, sure);
                changed |= settle(&mut body, sure);
                plan.push(Step::While { condition, test, body });
            }
            step @ Step::Launch(_) => plan.push(step),
        }
    }
    changed
}

/// Calls back for every launch of a plan.
fn each_launch(plan: &mut [Step], each: &mut dyn FnMut(&mut Launch)) {
    for step in plan {
        if let Step::Launch(launch) = step {
            each(launch);
        }
        step.parts_mut().into_iter().for_each(|part| each_launch(part, each));
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
            step => step.parts_mut().into_iter().for_each(|part| replace(part, launch, steps)),
        }
        at += 1;
    }
}

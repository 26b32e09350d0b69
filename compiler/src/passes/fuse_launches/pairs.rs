//! Pairs of launches that may be one: of which one runs directly after the other, or might as well.

use crate::analysis::{Accessed, is_quiet};
use crate::ir::entities::Launch;
use crate::ir::kernel::{Kernel, Step};
use crate::mutants::mutant;
use rustc_hash::FxHashSet;

/// Launches between two that are looked past, at most.
const FARTHEST: usize = 8;

/// Two launches, the first of which runs before the second.
#[derive(Clone, Copy)]
pub struct Pair {
    pub first: Launch,
    pub second: Launch,
    /// Nothing runs between them.
    pub is_beside: bool,
}

/// The first pair that was not tried, the nearest ones first. What stands between has nothing to do with the second launch, which may
/// run before it.
pub fn next(kernel: &Kernel, tried: &FxHashSet<(Launch, Launch)>) -> Option<Pair> {
    (1..=FARTHEST + 1).find_map(|apart| at_distance(kernel, &kernel.plan, apart, tried))
}

fn at_distance(
    kernel: &Kernel,
    steps: &[Step],
    apart: usize,
    tried: &FxHashSet<(Launch, Launch)>,
) -> Option<Pair> {
    let is_one = |part: &[Step]| {
        let launches: Option<Vec<Launch>> = part
            .iter()
            .map(|step| match step {
                Step::Launch(launch) => Some(*launch),
                _ => None,
            })
            .collect();
        let launches = launches?;
        let ([first, between @ .., second], false) =
            (&launches[..], tried.contains(&(launches[0], launches[apart])))
        else {
            return None;
        };
        let is_free = mutant!(
            "fuse_launches: a launch passes what it reads",
            between.is_empty() || may_pass(kernel, *second, between),
            true
        );
        is_free.then_some(Pair { first: *first, second: *second, is_beside: between.is_empty() })
    };
    steps.windows(apart + 1).find_map(is_one).or_else(|| {
        let mut parts = steps.iter().flat_map(Step::parts);
        parts.find_map(|part| at_distance(kernel, part, apart, tried))
    })
}

/// Whether a launch may run before others: neither writes what the other accesses, and nobody can tell but by what it writes.
fn may_pass(kernel: &Kernel, launch: Launch, others: &[Launch]) -> bool {
    let accessed = |launch: Launch| {
        let body = kernel.launches[launch].body;
        is_quiet(kernel, body).then(|| Accessed::of(kernel, &kernel.blocks[body].insts))
    };
    let Some(own) = accessed(launch) else { return false };
    others.iter().all(|other| accessed(*other).is_some_and(|other| own.is_apart_from(&other)))
}

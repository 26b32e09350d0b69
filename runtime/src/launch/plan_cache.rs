//! The plans that a kernel keeps, to be found again by each launch.
//!
//! The first ones without memory of their own stay for good, and are looked up without a lock: most kernels are launched
//! for few shapes, and a lock costs about as much as all else that a launch compares. What comes after them, or holds
//! scratch memory, is evicted: the oldest goes.

use crate::backend::StreamNumber;
use crate::launch::operand::Operand;
use crate::launch::plan::Plan;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How many plans stay for good.
const PERMANENT: usize = 4;
/// How many more, of other shapes and streams: the oldest goes for the next one.
const EVICTABLE: usize = 8;

#[derive(Default)]
pub(crate) struct PlanCache {
    /// Filled from the front.
    permanent: [OnceLock<Plan>; PERMANENT],
    /// The latest at the end.
    evictable: Mutex<Vec<Arc<Plan>>>,
}

/// A plan that was found, or made for one launch.
pub(crate) enum Found<'a> {
    Permanent(&'a Plan),
    Shared(Arc<Plan>),
}

impl Deref for Found<'_> {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        match self {
            Self::Permanent(plan) => plan,
            Self::Shared(plan) => plan,
        }
    }
}

impl PlanCache {
    /// The plan for such operands on that stream, if there is one.
    #[inline]
    pub fn find(&self, stream: StreamNumber, operands: &[Operand<'_>]) -> Option<Found<'_>> {
        for plan in self.permanent.iter().map_while(OnceLock::get) {
            if plan.serves(stream, operands) {
                return Some(Found::Permanent(plan));
            }
        }
        let evictable = self.evictable();
        let known = evictable.iter().rev().find(|plan| plan.serves(stream, operands));
        known.map(|plan| Found::Shared(Arc::clone(plan)))
    }

    /// Keeps a plan, if it is worth keeping.
    pub fn keep(&self, plan: Plan) -> Found<'_> {
        if !plan.is_short() {
            return Found::Shared(Arc::new(plan));
        }
        // Slots are filled under the lock alone: one that is empty stays so until it is filled here.
        let mut evictable = self.evictable();
        let empty = self.permanent.iter().find(|slot| slot.get().is_none());
        if let Some(slot) = empty.filter(|_| plan.scratch.is_empty()) {
            return Found::Permanent(slot.get_or_init(|| plan));
        }
        let plan = Arc::new(plan);
        if evictable.len() == EVICTABLE {
            evictable.remove(0);
        }
        evictable.push(Arc::clone(&plan));
        Found::Shared(plan)
    }

    fn evictable(&self) -> MutexGuard<'_, Vec<Arc<Plan>>> {
        // A panic elsewhere leaves the list whole: it is changed in single steps.
        self.evictable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! `dce`: removes what nothing depends on.
//!
//! ```text
//! v3: f32 = load buf0[v1]            (gone: v4 has no use, so neither has v3)
//! v4: f32 = exp v3              →
//! store buf1[v1], v2                 store buf1[v1], v2
//! ```
//!
//! An instruction stays if it writes memory or checks bounds, if something inside it does, or if one that stays
//! uses its result. Stores to a private buffer that nothing loads count as no writes. A branch of the plan whose
//! condition is a constant, or follows from the kernel's facts, is settled, and launches that no step of the plan runs are
//! forgotten: variants for sizes that the ones given at compile time are not.
//!
//! # Limits
//!
//! All values that a loop carries stay with the loop. A `while` that has no effects is taken to end.

use super::pass::{Changed, Pass, PassContext};
use super::sweep::sweep;
use crate::analysis::Known;
use crate::ir::kernel::{Kernel, Phases};
use crate::manifest::Expr;

pub struct Dce;

impl Pass for Dce {
    fn name(&self) -> &str {
        "dce"
    }

    fn reason(&self) -> &str {
        "removes what nothing depends on"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn begin(&self, kernel: &mut Kernel) -> Changed {
        // What the facts say in other words: `(w % 4) == 0`, of `w == 2 * h, h % 8 == 0`.
        let conditions = kernel.plan_conditions();
        let mut known = (!conditions.is_empty()).then(|| Known::new(kernel, None));
        let mut holds = |condition: &Expr| known.as_mut().is_some_and(|known| known.holds(kernel, condition));
        let sure: Vec<Expr> = conditions.into_iter().filter(|one| holds(one)).cloned().collect();
        kernel.settle_plan(&sure).into()
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let settled = self.begin(kernel) == Changed::Yes;
        (sweep(kernel) || settled).into()
    }
}

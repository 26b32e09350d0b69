//! `scalarize`: private arrays whose subscripts are literals become values.
//!
//! ```text
//! store buf3[v1], v7            (v1 = 2)
//! v9: f32 = load buf3[v1]       →    v7 in the place of v9
//! ```
//!
//! Local memory is memory; values are registers. Slots of rows that a thread holds (`threads`) and small local
//! arrays of unrolled loops end here. What an `if` stores is a result of it then, and what a loop stores is carried.
//!
//! # Preconditions
//!
//! Every access to the array is a load or a store with literal subscripts; no store stands in the condition of a `while`, and
//! those in a parallel loop or in a reduction's terms all stand in one; each load comes after a store to the same place,
//! whatever way the thread took there.

use super::pass::{Changed, Pass, PassContext};
use super::promote::into_values;
use crate::ir::kernel::{BufferKind, Kernel, Phases};

pub struct Scalarize;

impl Pass for Scalarize {
    fn name(&self) -> &str {
        "scalarize"
    }

    fn reason(&self) -> &str {
        "keeps private arrays with literal subscripts in registers"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        if kernel.buffers.values().all(|data| data.kind != BufferKind::Private) {
            return Changed::No;
        }
        let mut changed = false;
        for launch in kernel.launches.keys().collect::<Vec<_>>() {
            changed |= into_values(kernel, kernel.launches[launch].body, |_| true);
        }
        changed.into()
    }
}

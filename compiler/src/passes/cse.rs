//! `cse`: common subexpressions are computed once.
//!
//! ```text
//! v3: i64 = mul v1, v2                  v3: i64 = mul v1, v2
//! if v0 {                               if v0 {
//!     v4: i64 = mul v2, v1      →           (uses of v4 become uses of v3)
//! ```
//!
//! A pure instruction, or a load from a buffer that its launch does not write, is replaced by an equal one that
//! comes before it in the same region or in one around it. Operands of commutative ops match in either order. A load
//! from a buffer that is written is replaced where nothing between the two writes that buffer or waits for other
//! threads: no other thread may write what this one reads (programs have no races), so memory holds the same. So it does
//! behind a store, whose value is what the load gives, unless memory has fewer bits. Of two
//! bounds checks of the same subscript and extent the first stays. Branches on one condition that do the same, and write nothing,
//! are one: guarded loads of an element (`x[i + 1] else 0.0`) that several iterations of a thread have in common.
//!
//! # Limits
//!
//! Equal instructions in two regions of which neither is around the other stay (`licm` brings many of them
//! together). Loads from buffers that the launch writes stay where they are in a loop and the equal one before it, and
//! where the launch changes the buffer by atomics.

use super::equal::share_equal;
use super::pass::{Changed, Pass, PassContext};
use crate::ir::kernel::{Kernel, Phases};

pub struct Cse;

impl Pass for Cse {
    fn name(&self) -> &str {
        "cse"
    }

    fn reason(&self) -> &str {
        "computes common subexpressions once"
    }

    fn needs(&self) -> Phases {
        Phases::ALL
    }

    fn by_launch(&self) -> bool {
        true
    }

    fn run(&self, kernel: &mut Kernel, _: &PassContext) -> Changed {
        let launches: Vec<_> = kernel.launches.keys().collect();
        share_equal(kernel, &launches).into()
    }
}

//! `matricize`: the axes of a contraction's rows, columns and steps that do not lie side by side become one each, in copies.
//!
//! ```text
//! forall i, l, j, m { z[i, l, j, m] = sum(p, q: x[i, p, j, q] * y[q, m, p, l]) }                      before
//!
//! forall i, p, j, q { rows[p * … + q, i * … + j] = x[i, p, j, q] }                                    after
//! forall q, m, p, l { columns[p * … + q, l * … + m] = y[q, m, p, l] }
//! forall r, c { product[r, c] = sum(k: rows[k, r] * columns[k, c]) }
//! forall i, l, j, m { z[i, l, j, m] = product[i * … + j, l * … + m] }
//! ```
//!
//! What is left is a product of matrices, of which `stage` and `tile` make tiles. An operand whose axes lie side by side is read as it
//! is, and a result whose axes do is stored as it is. This is matricization (unfolding) of tensors, and a contraction by
//! transpose-transpose-GEMM-transpose (TTGT).
//!
//! - `found.rs`: the contraction, and how its axes lie. - `plan.rs`: what is copied. - `write.rs`: the launches.
//!
//! # Which order
//!
//! Rows and columns stand as they do in the result, or in their operand, and steps as in either operand: so that the fewest
//! elements are copied. A copy has batches, then steps, then rows or columns: neighbours of a tile in shared memory are then
//! neighbours in memory, so that copies in the background bring vectors, and matrix instructions take either order.
//!
//! # Preconditions
//!
//! The reduction has one result, and stands directly in the one loop of its launch. Its terms are pure code of two loads, or of
//! fields of two elements, whose subscripts are indices of the loop and the reduction, each once, that run over the whole array.
//! Each index of the loop is a row's, a column's or a batch's. The launch does not write the operands. The schedule says nothing
//! of the axes and the operands, of blocks and of the order. A row and a column along one axis are short, or the steps have
//! several axes: else tiles along one axis a side do.
//!
//! # Changes results
//!
//! Terms are added up in another order, roundings aside the same.

mod found;
mod plan;
mod write;

use super::merge_axes::MergeAxes;
use super::pass::{Changed, Pass, PassContext};
use crate::ir::entities::Launch;
use crate::ir::kernel::{Kernel, Phase, Phases};
use found::Found;

/// The pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Matricize {
    /// Whatever the sizes are: in tests, for what the interpreter can afford.
    pub always: bool,
}

impl Pass for Matricize {
    fn name(&self) -> &str {
        "matricize"
    }

    fn reason(&self) -> &str {
        "makes products of matrices of contractions whose axes do not lie side by side"
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
            while let Some(found) = Found::all(kernel, launch)
                .into_iter()
                .find_map(|found| self.matrices(kernel, launch, &found, context))
            {
                *kernel = found;
                changed = true;
            }
        }
        changed.into()
    }
}

impl Matricize {
    /// The kernel with a product of matrices in the place of a contraction; `None` where that does not pay or cannot be.
    fn matrices(
        &self,
        kernel: &mut Kernel,
        launch: Launch,
        found: &Found,
        context: &PassContext,
    ) -> Option<Kernel> {
        let plan = plan::least(kernel, launch, found)?;
        if !self.always && !plan.pays(kernel, launch, found, &context.target) {
            return None;
        }
        // Where axes cannot become one as they are (an array is read elsewhere, too), more is copied.
        plan.larger().into_iter().find_map(|plan| {
            let mut made = kernel.clone();
            let open = write::open(&mut made, launch, found, &plan)?;
            MergeAxes.run(&mut made, context);
            write::close(&mut made, found, open)?;
            Some(made)
        })
    }
}

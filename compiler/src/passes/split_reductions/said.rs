//! What the schedule says of a reduction that more than one thread computes.

use crate::ir::entities::Inst;
use crate::ir::kernel::{Kernel, Payload};
use crate::ir::schedule::{Directive, Refusal, RefusalKind};

/// Directives about a reduction's axis.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// The axis' name.
    pub axis: String,
    /// Pieces over the grid.
    pub pieces: Option<i64>,
    /// Threads of a block, from `warps` of the axis, else from `block`.
    pub threads: Option<i64>,
    /// Neighbours of one access.
    pub vector: Option<i64>,
}

/// What the schedule says of the axis of a loop or reduction.
pub fn said(kernel: &Kernel, inst: Inst) -> Said {
    let (Payload::Loop { axes } | Payload::Reduce { axes, .. }) = &kernel.insts[inst].payload else {
        return Said::default();
    };
    let (Some(first), Some(last)) = (axes.first(), axes.last()) else { return Said::default() };
    // The first axis is cut to pieces, the last one is shared by a team.
    let [first, axis] = [first, last].map(|axis| kernel.axes[*axis].name.clone());
    let schedule = &kernel.schedule;
    let threads = schedule.warps(&axis).map(|warps| 32 * warps).or(schedule.block());
    Said {
        pieces: schedule.split(&first).map(i64::from),
        threads: threads.map(i64::from),
        vector: schedule.vectorize(&axis).map(i64::from),
        axis,
    }
}

impl Said {
    /// Whether a team can have so many threads: whole warps, a power of two of them.
    pub fn team_fits(&self) -> bool {
        self.threads.is_none_or(|threads| threads >= 32 && threads.count_ones() == 1)
    }

    /// The vector that the schedule says, at most the one that fits.
    pub fn vector(&self, fitting: i64) -> i64 {
        self.vector.map_or(fitting, |vector| vector.min(fitting))
    }

    /// Marks what was carried out; `fitting` is the widest vector.
    pub fn done(&self, kernel: &mut Kernel, fitting: i64) {
        let fits = self.vector.is_none_or(|vector| vector <= fitting);
        kernel.schedule.done(|known| match known {
            Directive::Warps { axis, .. } => *axis == self.axis,
            Directive::Vectorize { axis, .. } => *axis == self.axis && fits,
            Directive::Block(_) => true,
            _ => false,
        });
        let refusal = Refusal::new(
            RefusalKind::DoesNotFit,
            format!("one access brings {fitting} neighbours along `{}` at most", self.axis),
            format!("write `vectorize {}: {fitting}`", self.axis),
        );
        let vector =
            |known: &Directive| matches!(known, Directive::Vectorize { axis, .. } if *axis == self.axis);
        kernel.schedule.refuse(vector, &refusal);
    }

    /// Marks `split` as carried out.
    pub fn split_done(&self, kernel: &mut Kernel) {
        kernel.schedule.done(|known| matches!(known, Directive::Split { axis, .. } if *axis == self.axis));
    }
}

//! What holds in a launch by its phase. Runs on kernels whose structure and types hold.

use super::Verifier;
use crate::ir::entities::{Axis, Block, Inst};
use crate::ir::kernel::{BufferKind, Kernel, LaunchData, Level, Payload, Phase, Phases};
use crate::ir::op::Opcode;

impl Level {
    /// Whether different threads have different indices of a factor at this level.
    pub fn is_parallel(self) -> bool {
        matches!(self, Level::Grid | Level::Cluster | Level::Warp | Level::Lane)
    }
}

impl Verifier<'_> {
    pub(super) fn phases(&mut self) {
        for (launch, data) in &self.kernel.launches {
            let place = || format!("`{launch}`");
            let mapped = data.phase >= Phase::Mapped;
            let blocks = Phases::BLOCKS.contains(data.phase);
            if data.grid.is_some() && !blocks {
                self.report(place, "an explicit grid is for the phase `mapped`");
            }
            if data.grid.is_none() && data.phase == Phase::Tiled {
                self.report(place, "a launch of tiles says how many blocks there are");
            }
            match data.threads {
                None if mapped => self.report(place, "a mapped launch says how many threads a block has"),
                Some(_) if !blocks => self.report(place, "threads are for the phase `mapped`"),
                Some(threads) if threads == 0 || threads > 1024 || (threads > 32 && threads % 32 != 0) => {
                    self.report(
                        place,
                        format!("{threads} threads: not 1 to 32 or a multiple of 32 up to 1024"),
                    );
                }
                _ => {}
            }
            self.phase_block(data.body, data, None);
            if self.errors.is_empty() {
                self.tiles(data, &format!("`{launch}`"));
            }
        }
    }

    /// Checks the factors of a loop: the lanes and warps of the outermost loop around what is inside; `None` without one.
    fn spread(&mut self, inst: Inst, launch: &LaunchData, outer: Option<(u64, u64)>) -> Option<(u64, u64)> {
        let kernel = self.kernel;
        let data = &kernel.insts[inst];
        if data.opcode == Opcode::While {
            return Some(outer.unwrap_or((1, 1)));
        }
        let (Payload::Loop { axes } | Payload::Reduce { axes, .. }) = &data.payload else { return outer };
        let (lanes, warps) = (product(kernel, axes, Level::Lane), product(kernel, axes, Level::Warp));
        for (at, axis) in axes.iter().enumerate() {
            self.axis(inst, *axis, at, launch.phase);
        }
        self.levels(inst, axes, launch.threads, outer);
        Some(outer.unwrap_or((lanes, warps)))
    }

    /// Checks a block and what is inside; `outer` are the lanes and warps of the outermost loop around it.
    fn phase_block(&mut self, block: Block, launch: &LaunchData, outer: Option<(u64, u64)>) {
        let kernel = self.kernel;
        for inst in &kernel.blocks[block].insts {
            let data = &kernel.insts[*inst];
            let inner = self.spread(*inst, launch, outer);
            let phases = data.opcode.info().phases;
            if !phases.contains(launch.phase) {
                let (names, found) = (phases.names(), launch.phase.name());
                self.fail(
                    *inst,
                    format!("the op stands in launches that are {names}, this one is `{found}`"),
                );
            }
            if let Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. } = data.payload
                && kernel.buffers[buffer].kind == BufferKind::Shared
                && !Phases::BLOCKS.contains(launch.phase)
            {
                self.fail(*inst, "shared memory is for launches that say what a block does");
            }
            for region in &data.regions {
                self.phase_block(*region, launch, inner);
            }
        }
    }

    /// The factors of one axis.
    fn axis(&mut self, inst: Inst, axis: Axis, position: usize, phase: Phase) {
        let kernel = self.kernel;
        let factors = &kernel.axes[axis].factors;
        if phase < Phase::Mapped {
            if !factors.is_empty() {
                self.fail(inst, format!("`{axis}` has factors in the phase `abstract`"));
            }
            return;
        }
        if factors.is_empty() {
            self.fail(inst, format!("`{axis}` has no factors"));
        }
        if factors.iter().any(|factor| factor.size == Some(0)) {
            self.fail(inst, format!("`{axis}` has a factor of size 0"));
        }
        if factors.iter().skip(1).any(|factor| factor.size.is_none()) {
            self.fail(inst, format!("`{axis}`: only the first factor may be `*`"));
        }
        let (low, high) =
            (kernel.insts[inst].arguments[2 * position], kernel.insts[inst].arguments[2 * position + 1]);
        if let (Some(low), Some(high)) = (kernel.int_of(low), kernel.int_of(high)) {
            let sizes = factors.iter().map(|factor| factor.size);
            let covered = sizes.into_iter().try_fold(1i128, |all, size| all.checked_mul(i128::from(size?)));
            if covered.is_some_and(|covered| covered < high - low) {
                self.fail(inst, format!("the factors of `{axis}` do not cover its extent {}", high - low));
            }
        }
        let starred = factors.first().is_some_and(|first| first.size.is_none() && first.level == Level::Grid);
        if starred && (kernel.symbolic(low).is_none() || kernel.symbolic(high).is_none()) {
            self.fail(
                inst,
                format!("`{axis}` is spread over the grid, but the host cannot compute its bounds"),
            );
        }
    }

    /// Where parallel levels may stand, and that they are the launch's threads: those of the outer `forall`, times
    /// those of each loop within that is shared by a team.
    fn levels(&mut self, inst: Inst, axes: &[Axis], threads: Option<u32>, outer: Option<(u64, u64)>) {
        let kernel = self.kernel;
        let factors = || axes.iter().flat_map(|axis| &kernel.axes[*axis].factors);
        if !factors().any(|factor| factor.level.is_parallel()) {
            return;
        }
        if factors().any(|f| matches!(f.level, Level::Lane | Level::Warp) && f.size.is_none()) {
            self.fail(inst, "lanes and warps have sizes");
        }
        let (lanes, warps) = (product(kernel, axes, Level::Lane), product(kernel, axes, Level::Warp));
        let (mut all_lanes, mut all_warps) = (lanes, warps);
        match outer {
            None if kernel.insts[inst].opcode != Opcode::Forall => {
                self.fail(inst, "only a `forall` is spread over the grid");
            }
            None => {}
            Some((outer_lanes, outer_warps)) => {
                if factors().any(|factor| matches!(factor.level, Level::Grid | Level::Cluster)) {
                    self.fail(inst, "a loop inside another is spread over the grid");
                }
                let is_open =
                    |axis: &Axis| kernel.axes[*axis].factors.iter().all(|factor| factor.size.is_none());
                let around = axes.split_last().is_none_or(|(_, around)| around.iter().all(is_open));
                if !matches!(kernel.insts[inst].opcode, Opcode::Forall | Opcode::Reduce) || !around {
                    self.fail(
                        inst,
                        "a team shares the last axis of a `forall` or a `reduce`, and walks the others",
                    );
                }
                all_lanes = lanes.saturating_mul(outer_lanes);
                all_warps = warps.saturating_mul(outer_warps);
            }
        }
        let threads = u64::from(threads.unwrap_or(1));
        let wanted = threads.min(32);
        let inner_may_follow = outer.is_none() && self.has_team(inst);
        if !inner_may_follow && (all_lanes != wanted || all_warps.saturating_mul(wanted) != threads) {
            self.fail(
                inst,
                format!("{all_warps} warps of {all_lanes} lanes are not the launch's {threads} threads"),
            );
        }
    }

    /// Whether some loop inside is spread over threads too.
    fn has_team(&self, inst: Inst) -> bool {
        let kernel = self.kernel;
        let mut found = false;
        for region in &kernel.insts[inst].regions {
            kernel.walk(*region, &mut |_, inst| {
                if let Payload::Loop { axes } | Payload::Reduce { axes, .. } = &kernel.insts[inst].payload {
                    found |= axes
                        .iter()
                        .flat_map(|axis| &kernel.axes[*axis].factors)
                        .any(|factor| factor.level.is_parallel());
                }
            });
        }
        found
    }
}

/// The product of the sizes of the factors at a level.
fn product(kernel: &Kernel, axes: &[Axis], level: Level) -> u64 {
    let factors = axes.iter().flat_map(|axis| &kernel.axes[*axis].factors);
    factors
        .filter(|factor| factor.level == level)
        .map(|factor| factor.size.unwrap_or(1))
        .fold(1, u64::saturating_mul)
}

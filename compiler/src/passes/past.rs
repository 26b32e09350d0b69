//! Launches that a pass does not look at, since they are past its phases: while it runs, they have nothing in them. What they
//! do can still be asked for ([`Kernel::bodies`]).

use crate::ir::entities::{Block, Launch};
use crate::ir::kernel::{BlockData, Kernel, Phases};

/// What the launches do that are past some phases, and the empty block that each has in its place.
pub struct Past(Vec<(Block, Block)>);

impl Past {
    /// Takes them away.
    pub fn hide(kernel: &mut Kernel, phases: Phases) -> Self {
        let past = kernel.launches.iter().filter(|(_, launch)| phases.is_before(launch.phase));
        let past: Vec<Launch> = past.map(|(launch, _)| launch).collect();
        let hide = |launch: Launch| {
            let empty = kernel.blocks.push(BlockData::default());
            let body = std::mem::replace(&mut kernel.launches[launch].body, empty);
            kernel.past.push(body);
            (empty, body)
        };
        Self(past.into_iter().map(hide).collect())
    }

    /// Whether there is nothing to look at.
    pub fn is_all(&self, kernel: &Kernel) -> bool {
        !self.0.is_empty() && self.0.len() == kernel.launches.len()
    }

    /// Gives them back.
    pub fn show(self, kernel: &mut Kernel) {
        for launch in kernel.launches.values_mut() {
            if let Some((_, body)) = self.0.iter().find(|(empty, _)| *empty == launch.body) {
                launch.body = *body;
            }
        }
        kernel.past.clear();
    }
}

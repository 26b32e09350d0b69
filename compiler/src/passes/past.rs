//! Launches that a pass does not look at, since they are past its phases: while it runs, they have nothing in them.

use crate::ir::entities::{Block, Launch};
use crate::ir::kernel::{BlockData, Kernel, Phases};

/// The launches that are past some phases, and what they do.
pub struct Past(Vec<(Launch, Block)>);

impl Past {
    /// Takes them away.
    pub fn hide(kernel: &mut Kernel, phases: Phases) -> Self {
        let past = kernel.launches.iter().filter(|(_, launch)| phases.is_before(launch.phase));
        let past: Vec<(Launch, Block)> = past.map(|(launch, data)| (launch, data.body)).collect();
        for (launch, _) in &past {
            kernel.launches[*launch].body = kernel.blocks.push(BlockData::default());
        }
        Self(past)
    }

    /// Whether there is nothing to look at.
    pub fn is_all(&self, kernel: &Kernel) -> bool {
        !self.0.is_empty() && self.0.len() == kernel.launches.len()
    }

    /// Gives them back.
    pub fn show(self, kernel: &mut Kernel) {
        for (launch, body) in self.0 {
            kernel.launches[launch].body = body;
        }
    }
}

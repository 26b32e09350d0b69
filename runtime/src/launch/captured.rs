//! What a launch of a kernel is in a graph.

use crate::backend::{DevicePtr, GraphLaunch, GraphSequence, GraphWork, LoopCondition};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::launch::turns::no_memory;
use crate::sequence::{Sequence, Todo};
use krn_compiler::manifest::{KernelManifest, PRINT_ROUND};

/// Where the device says how often launches are repeated, and what they print.
pub(crate) struct GraphPlaces<'a> {
    pub kernel: &'a KernelManifest,
    /// Of the scratch buffer of that number.
    pub scratch: &'a dyn Fn(usize) -> Option<DevicePtr>,
    pub record: Option<DevicePtr>,
}

impl GraphPlaces<'_> {
    /// The work of a graph, each launch as `launch` makes it.
    pub fn work<L>(
        &self,
        launches: &Sequence<L>,
        launch: &mut dyn FnMut(&L) -> Result<GraphLaunch>,
    ) -> Result<GraphSequence> {
        let mut work = Vec::with_capacity(launches.0.len());
        if let Some(record) = self.record.filter(|_| self.kernel.print_bytes() > 0) {
            work.push(Todo::Launch(GraphWork::Round(record + PRINT_ROUND)));
        }
        for todo in &launches.0 {
            work.push(match todo {
                Todo::Launch(one) => Todo::Launch(GraphWork::Launch(launch(one)?)),
                Todo::While { condition, test, body } => {
                    let holds = (self.scratch)(*condition).ok_or_else(|| no_memory(&self.kernel.name))?;
                    let condition = LoopCondition { holds, record: self.record };
                    Todo::While { condition, test: self.work(test, launch)?, body: self.work(body, launch)? }
                }
            });
        }
        Ok(Sequence(work))
    }
}

/// That a `while` of a kernel can be captured on the device.
pub(crate) fn check_loops(device: &Device, kernel: &str) -> Result<()> {
    device.backend.takes_loops().map_err(|why| {
        let message = format!(
            "has a `while` at kernel level, which cannot be captured into a graph here, because {why}; launch it outside of the \
             capture, or count its turns with a `for`"
        );
        Error::Argument { kernel: kernel.to_string(), message }
    })
}

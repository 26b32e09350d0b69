//! Launches that the device repeats by itself: a graph, kept for the next launch of the same.

use crate::backend::{GraphNode, GraphSequence, LoadedGraph, RawStream, StreamNumber};
use crate::device::Device;
use crate::error::Result;
use std::sync::{Mutex, PoisonError};

/// Whether the device repeats the launches of a `while` by itself. It does so without end: where turns are limited, the host
/// counts them.
pub(crate) fn on_device(device: &Device) -> bool {
    let backend = &device.backend;
    !backend.is_emulator() && device.shared.turn_limit().is_none() && backend.takes_loops().is_ok()
}

/// The graph of the latest launch.
#[derive(Default)]
pub(crate) struct KeptGraph(Mutex<Option<Kept>>);

struct Kept {
    // Before the nodes, whose modules have its code.
    loaded: Box<dyn LoadedGraph>,
    nodes: Vec<GraphNode>,
}

impl KeptGraph {
    /// Queues the work on a stream, or on somebody else's. It is made ready anew where it is not that of the launch before.
    ///
    /// # Errors
    /// A failed driver call.
    pub fn launch(
        &self,
        device: &Device,
        work: GraphSequence,
        (stream, theirs): (StreamNumber, Option<RawStream>),
    ) -> Result<()> {
        let backend = &device.backend;
        let after = |at: usize| at.checked_sub(1).into_iter().collect();
        let nodes = work.0.into_iter().enumerate().map(|(at, todo)| GraphNode { todo, after: after(at) });
        let nodes: Vec<GraphNode> = nodes.collect();
        // What a panic left behind is whole: it is set at once.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = match &mut *kept {
            Some(kept) if kept.nodes == nodes => kept,
            other => other.insert(Kept { loaded: backend.load_graph(&nodes)?, nodes }),
        };
        backend.launch_graph(kept.loaded.as_ref(), &kept.nodes, (stream, theirs))
    }
}

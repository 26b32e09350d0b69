//! What a stream that captures was given.

use crate::backend::{GraphNode, GraphSequence};
use crate::memory::storage::Storage;
use crate::stream::record::ErrorRecord;
use std::sync::Arc;

/// What is captured so far.
#[derive(Default)]
pub(crate) struct Capture {
    pub nodes: Vec<GraphNode>,
    pub calls: Vec<Call>,
    pub records: Vec<Arc<ErrorRecord>>,
}

/// One launch of a kernel: several parts of the graph, perhaps.
pub(crate) struct Call {
    pub uses: Vec<(Arc<Storage>, bool)>,
    /// The position of its last part.
    last: usize,
}

impl Capture {
    /// Adds one launch of a kernel: what it does on the device, and all that this uses.
    pub fn add(
        &mut self,
        work: GraphSequence,
        uses: &[(Arc<Storage>, bool)],
        record: Option<&Arc<ErrorRecord>>,
    ) {
        if work.0.is_empty() {
            return;
        }
        // A part that is used apart now will be none when the graph is launched.
        let uses: Vec<(Arc<Storage>, bool)> =
            uses.iter().map(|(storage, write)| (Arc::clone(Storage::owner(storage)), *write)).collect();
        let in_the_way = |earlier: &&Call| {
            earlier.uses.iter().any(|(there, written)| {
                uses.iter().any(|(here, write)| (*write || *written) && Arc::ptr_eq(here, there))
            })
        };
        let mut after: Vec<usize> = self.calls.iter().filter(in_the_way).map(|call| call.last).collect();
        for todo in work.0 {
            let after = std::mem::replace(&mut after, vec![self.nodes.len()]);
            self.nodes.push(GraphNode { todo, after });
        }
        self.calls.push(Call { uses, last: self.nodes.len() - 1 });
        if let Some(record) = record
            && !self.records.iter().any(|known| Arc::ptr_eq(known, record))
        {
            self.records.push(Arc::clone(record));
        }
    }
}

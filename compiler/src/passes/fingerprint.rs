//! A kernel as one number, which tells whether a pass changed it: what [`Changed`](super::Changed) says is checked by it.

use crate::ir::entities::Block;
use crate::ir::kernel::Kernel;
use rustc_hash::FxHasher;
use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};

/// A hash of all that code is generated from: declarations, plan and reachable instructions. Spans, readable names of values,
/// the schedule's choices and remarks, and entities that nothing reaches are no part of it.
pub(super) fn fingerprint(kernel: &Kernel) -> u64 {
    let mut print = Fingerprint(FxHasher::default());
    let Kernel { symbols, buffers, launches, plan, .. } = kernel;
    // Writing to a hasher does not fail.
    let _ = write!(print, "{symbols:?}{buffers:?}{launches:?}{plan:?}");
    for launch in launches.values() {
        print.block(kernel, launch.body);
    }
    print.0.finish()
}

struct Fingerprint(FxHasher);

impl Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl Fingerprint {
    fn block(&mut self, kernel: &Kernel, block: Block) {
        let hasher = &mut self.0;
        block.hash(hasher);
        kernel.blocks[block].params.hash(hasher);
        kernel.blocks[block].insts.len().hash(hasher);
        for inst in &kernel.blocks[block].insts {
            let data = &kernel.insts[*inst];
            (data.opcode as u8).hash(&mut self.0);
            (&data.payload, &data.arguments, &data.results).hash(&mut self.0);
            for axis in data.payload.axes() {
                let _ = write!(self, "{:?}", kernel.axes[*axis]);
            }
            for region in &data.regions {
                self.block(kernel, *region);
            }
        }
    }
}

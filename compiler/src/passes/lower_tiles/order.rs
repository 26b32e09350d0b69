//! Where the threads of a block wait between accesses of one array in global memory: where one may touch what another one
//! wrote, or write what another one has yet to read.

use super::coordinates::thread_replicas;
use crate::ir::entities::{Block, Buffer, Inst, Value};
use crate::ir::kernel::{Kernel, Payload, Tile, Tiling};
use crate::ir::op::{Effect, Opcode};
use rustc_hash::{FxHashMap, FxHashSet};

/// An access of an array that the launch both reads and writes.
#[derive(Clone, PartialEq, Debug)]
struct Access {
    buffer: Buffer,
    writes: bool,
    subscripts: Vec<Value>,
    tile: Tile,
    /// Whether each element is touched by one thread.
    is_own: bool,
}

impl Access {
    /// Whether threads may meet: not where each touches elements of its own, the same ones in both.
    fn meets(&self, other: &Access) -> bool {
        let same = self.subscripts == other.subscripts && self.tile == other.tile && self.is_own;
        self.buffer == other.buffer && (self.writes || other.writes) && !same
    }
}

/// What accesses there are, and which of them no barrier separates yet from those that come.
pub struct Order {
    accesses: FxHashMap<Inst, Access>,
    open: Vec<Access>,
}

impl Order {
    pub fn new(kernel: &Kernel, tiling: &Tiling, body: Block) -> Self {
        let mut accesses = FxHashMap::default();
        let [mut read, mut written] = [FxHashSet::default(), FxHashSet::default()];
        kernel.walk(body, &mut |_, inst| {
            let data = &kernel.insts[inst];
            let (Payload::Access { buffer, .. } | Payload::Atomic { buffer, .. }) = data.payload else {
                return;
            };
            let writes = data.opcode.info().effect == Effect::Write;
            // An atomic alone meets atomics in any order.
            if writes {
                written.insert(buffer)
            } else {
                read.insert(buffer)
            };
            let tile = kernel.whole_tile(data.arguments.iter().chain(&data.results));
            let tile = tile.unwrap_or(Tile::SCALAR);
            let is_own = tiling.layout(tile).is_some_and(|layout| thread_replicas(layout).is_empty())
                && data.opcode != Opcode::Atomic;
            let subscripts = kernel.subscripts(data).to_vec();
            accesses.insert(inst, Access { buffer, writes, subscripts, tile, is_own });
        });
        accesses.retain(|_, access| read.contains(&access.buffer) && written.contains(&access.buffer));
        Self { accesses, open: Vec::new() }
    }

    /// Whether a barrier stands before an instruction, the next one in the order of the program. In a loop the accesses of
    /// the turn before are in front of those of this one, with other subscripts.
    pub fn needs_barrier(&mut self, inst: Inst, in_loop: bool) -> bool {
        let Some(access) = self.accesses.get(&inst) else { return false };
        let meets = in_loop || self.open.iter().any(|open| open.meets(access));
        if meets {
            self.open.clear();
        }
        self.open.push(access.clone());
        meets
    }
}

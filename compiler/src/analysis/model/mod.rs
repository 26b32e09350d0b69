//! A model of a launch: warps of it, lane by lane, at sizes chosen for the purpose. What the accesses and branches of the IR
//! cost follows from layouts and subscripts alone; nothing is run, and what comes from memory is unknown.
//!
//! Where all warps do alike, the numbers are those that the emulator counts at the same sizes.
//!
//! - `sizes.rs`: the sizes. - `candidates.rs`: what they are looked for among. - `lanes.rs`: values. - `address.rs`: where accesses go. - `touched.rs`: what they touch.
//! - `walk.rs`: one warp's way through a launch. - `plan.rs`: which launches a kernel takes, and samples of their warps.

mod address;
mod candidates;
mod lanes;
mod plan;
mod sizes;
#[cfg(test)]
mod tests;
mod touched;
mod walk;

pub use lanes::LANES;
pub use plan::model;
pub use sizes::{
    model_sizes_at, representative_sizes, representative_sizes_where, sizes_made_for, spell_sizes,
};

use crate::ir::entities::{Buffer, Inst, Launch};

/// Which memory an access goes to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Space {
    Global,
    Shared,
    /// One array a thread.
    Local,
}

/// What one access of the IR costs, over all warps of a launch. A copy from global to shared memory is two accesses.
#[derive(Clone, PartialEq, Debug)]
pub struct AccessCost {
    pub inst: Inst,
    pub buffer: Buffer,
    pub leaf: u32,
    pub space: Space,
    pub writes: bool,
    pub atomic: bool,
    /// Bytes of a lane.
    pub width: u32,
    /// Warps that come to it with any lane.
    pub requests: f64,
    /// Of global memory: sectors of 32 bytes, and different bytes, each counted once a request.
    pub sectors: f64,
    pub bytes: f64,
    /// The sectors if the bytes of each request lay together, from the start of a sector.
    pub least_sectors: f64,
    /// Of shared memory: wavefronts, and how many of them are for conflicts.
    pub wavefronts: f64,
    pub conflicts: f64,
    /// Requests whose addresses are not known.
    pub unknown: f64,
    /// The first request of which the addresses are known.
    pub sample: Option<Request>,
    /// Whether every request with known addresses cost as much as the first one.
    pub even: bool,
}

/// One warp's request.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    /// Lanes that take part.
    pub mask: u32,
    /// Bytes from the start of the allocation, of each lane.
    pub offsets: [i64; LANES],
    /// One a subscript, of each lane.
    pub subscripts: Vec<[i64; LANES]>,
}

impl Request {
    /// The first two lanes that take part.
    pub fn neighbours(&self) -> Option<(usize, usize)> {
        let mut lanes = (0..LANES).filter(|lane| self.mask >> lane & 1 == 1);
        Some((lanes.next()?, lanes.next()?))
    }
}

/// An `if` or a loop at which lanes of a warp may part.
#[derive(Clone, PartialEq, Debug)]
pub struct BranchCost {
    pub inst: Inst,
    /// Warps that come to it.
    pub runs: f64,
    /// Those whose lanes part: of an `if`, to both sides; of a loop, after different numbers of rounds.
    pub divergent: f64,
    /// Instructions of whole warps, times the lanes that wait meanwhile, over 32.
    pub lost: f64,
}

/// A division or remainder of 64-bit integers by what is no literal: no GPU has an instruction for it.
#[derive(Clone, PartialEq, Debug)]
pub struct DivisionCost {
    pub inst: Inst,
    /// Warps that come to it.
    pub runs: f64,
}

/// What one launch costs.
#[derive(Clone, PartialEq, Debug)]
pub struct LaunchCost {
    pub launch: Launch,
    /// Blocks in x, y and z.
    pub blocks: [u64; 3],
    pub threads: u32,
    /// How often the plan comes to it.
    pub repeats: f64,
    /// Static and dynamic shared memory of a block, in bytes.
    pub shared_bytes: u64,
    pub accesses: Vec<AccessCost>,
    pub branches: Vec<BranchCost>,
    /// Divisions of 64 bits by what is no literal.
    pub divisions: Vec<DivisionCost>,
    /// Warps that come to a barrier of their block, each time counted.
    pub barriers: f64,
    /// Instructions of the IR that warps come to, constants left out; a division counts as many as it takes.
    pub instructions: f64,
    /// Those among them of which none needs what the others give: an outer product's.
    pub independent: f64,
    /// Whether all branches and loops were decided: the numbers count, they do not estimate.
    pub exact: bool,
}

impl LaunchCost {
    pub fn block_count(&self) -> u64 {
        self.blocks.iter().product()
    }

    /// Whether every branch, loop and address is known: nothing depends on what memory holds.
    pub fn is_exact(&self) -> bool {
        self.exact && self.accesses.iter().all(|access| access.unknown == 0.0)
    }
}

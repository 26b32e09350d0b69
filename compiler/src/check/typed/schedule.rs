//! Schedules, their names resolved.

use super::ids::{ArrayId, IndexId};
pub use crate::data::{CacheMode, Layout, Placement};
use crate::diagnostic::Code;
use crate::diagnostic::levels::Level;
use crate::source::Span;

/// `allow W0601`: one code of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LevelDirective {
    pub level: Level,
    pub code: Code,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Directive {
    pub kind: DirectiveKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum DirectiveKind {
    /// `block 256`: threads a block, 1 to 1024.
    Block(u32),
    /// `order j, i`: nesting of the parallel names of the loops that have them all, outermost first (the last
    /// one gets the lanes).
    Order(Vec<IndexId>),
    /// `layout body: soa`: how the array's structs lie in device memory.
    Layout { array: ArrayId, layout: Layout },
    /// `cache x: cs`: the cache operator of the array's loads (and, where it has one, stores).
    Cache { array: ArrayId, mode: CacheMode },
    /// `tile i: 32`: iterations of every loop over that name that one block computes; of a reduced name, one step.
    Tile { axis: String, size: u32 },
    /// `per_thread i: 4`: iterations that one thread computes side by side.
    PerThread { axis: String, count: u32 },
    /// `stage a pad 1 depth 2`: through shared memory.
    Stage { array: ArrayId, place: Option<Placement>, depth: Option<u32> },
    /// `unroll p: 4`; without a number the whole loop.
    Unroll { axis: String, factor: Option<u32> },
    /// `vectorize i: 4`: neighbours that one access brings.
    Vectorize { axis: String, width: u32 },
    /// `warps i: 4`: warps of a block along a name.
    Warps { axis: String, count: u32 },
    /// `split p: 64`: pieces of a reduction over the grid.
    Split { axis: String, pieces: u32 },
    /// `atomic c`: pieces of a reduction meet in the array, in any order.
    Atomic { array: ArrayId },
    /// `fast_math`: approximate forms of f32 functions.
    FastMath,
    /// `tf32`: factors of sums of products of f32 may be rounded to 10 bits behind the point.
    Tf32,
}

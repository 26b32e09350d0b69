//! Loads, stores, atomics, asynchronous copies and fences.

use super::modifier::*;
use crate::ptx::operand::{Address, Operand, Reg};
use crate::ptx::types::{Space, Type};
use smallvec::SmallVec;

/// What a load writes: up to four registers lie in place.
pub type Registers = SmallVec<[Reg; 4]>;

/// What a store writes: one value lies in place.
pub type Values = SmallVec<[Operand; 1]>;

/// How a load or a store is ordered with those of other threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AccessOrder {
    #[default]
    Weak,
    Volatile,
    Relaxed(Scope),
    /// Loads only.
    Acquire(Scope),
    /// Stores only.
    Release(Scope),
}

/// `ld`: one, two, four or eight values into registers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ld {
    pub order: AccessOrder,
    pub space: Space,
    pub cache: Option<CacheOp>,
    /// Through the read-only cache (`ld.global.nc`).
    pub nc: bool,
    pub evict: Option<Eviction>,
    pub prefetch: Option<PrefetchSize>,
    pub ty: Type,
    /// One register, or the lanes of a vector. Registers may be wider than `ty`: the value is extended.
    pub dst: Registers,
    pub address: Address,
}

/// `st`: one, two, four or eight values to memory.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct St {
    pub order: AccessOrder,
    pub space: Space,
    pub cache: Option<CacheOp>,
    pub evict: Option<Eviction>,
    pub ty: Type,
    pub address: Address,
    /// One value, or the lanes of a vector. Registers may be wider than `ty`: the low bits are stored.
    pub src: Values,
}

/// `atom`: read, combine, write back, as one step; yields the old value.
///
/// Narrow float types print with the `.noftz` that PTX asks for.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Atom {
    pub order: Option<AtomOrder>,
    pub scope: Option<Scope>,
    pub space: Space,
    pub op: AtomOp,
    pub ty: Type,
    pub dst: Reg,
    pub address: Address,
    /// The operand; for `cas` the value compared with.
    pub a: Operand,
    /// For `cas` only: the new value.
    pub b: Option<Operand>,
}

/// `red`: as [`Atom`], without the old value; never `exch` or `cas`. `order` is `Relaxed` or `Release`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Red {
    pub order: Option<AtomOrder>,
    pub scope: Option<Scope>,
    pub space: Space,
    pub op: AtomOp,
    pub ty: Type,
    pub address: Address,
    pub a: Operand,
}

/// `cvta`: between generic addresses and those of one state space.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Cvta {
    /// `cvta.to.space`: from generic to the space; otherwise from the space to generic.
    pub to: bool,
    pub space: Space,
    /// `U64`.
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
}

/// `prefetch`: bring a line into a cache.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Prefetch {
    /// `Global`, `Local` or `Generic`.
    pub space: Space,
    pub level: CacheLevel,
    pub address: Address,
}

/// `cp.async`: copy global to shared memory without going through registers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CpAsync {
    /// `Ca` (4, 8 or 16 bytes) or `Cg` (16 bytes).
    pub cache: CacheOp,
    pub prefetch: Option<PrefetchSize>,
    /// In shared memory.
    pub dst: Address,
    /// In global memory.
    pub src: Address,
    /// 4, 8 or 16.
    pub bytes: u32,
    /// How many bytes to read; the rest of `bytes` is written as zero. Absent means all.
    pub src_bytes: Option<Operand>,
}

/// `cp.async.commit_group`: close the group of copies begun so far.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CpAsyncCommit {}

/// Wait until at most `groups` groups are pending; all copies where absent (`cp.async.wait_all`).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CpAsyncWait {
    pub groups: Option<u32>,
}

/// `fence`: order this thread's memory operations.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Fence {
    pub order: FenceOrder,
    pub scope: Scope,
}

/// `membar`: the older spelling of a sequentially consistent fence.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Membar {
    pub level: MembarLevel,
}

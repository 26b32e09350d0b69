//! The grammar of loads, stores, atomics, asynchronous copies and fences.

use super::{Family, MEMORY, Needs, Range, Slot, Step, Walk, is_bf16, is_narrow, needs};
use crate::ptx::instruction::*;
use crate::ptx::types::{Modifier, Space, Type};
use smallvec::{Array, SmallVec};

const CLUSTERS: Needs = needs(90, 7, 8);
const EVICTION: Needs = needs(75, 7, 4);

/// The order of a load or a store, with its scope.
fn access_order<W: Walk>(walk: &mut W, order: &mut AccessOrder, legal: &[AccessOrderWord]) -> Step {
    use AccessOrderWord as Word;
    let (mut word, mut scope) = match *order {
        AccessOrder::Weak => (None, Scope::Cta),
        AccessOrder::Volatile => (Some(Word::Volatile), Scope::Cta),
        AccessOrder::Relaxed(scope) => (Some(Word::Relaxed), scope),
        AccessOrder::Acquire(scope) => (Some(Word::Acquire), scope),
        AccessOrder::Release(scope) => (Some(Word::Release), scope),
    };
    walk.option(&mut word, legal)?;
    if matches!(word, Some(Word::Relaxed | Word::Acquire | Word::Release)) {
        walk.choice(&mut scope, Scope::ALL)?;
        if scope == Scope::Cluster {
            walk.needs("the cluster scope", CLUSTERS)?;
        }
    }
    *order = match word {
        None | Some(Word::Weak) => AccessOrder::Weak,
        Some(Word::Volatile) => AccessOrder::Volatile,
        Some(Word::Relaxed) => AccessOrder::Relaxed(scope),
        Some(Word::Acquire) => AccessOrder::Acquire(scope),
        Some(Word::Release) => AccessOrder::Release(scope),
    };
    Ok(())
}

/// A state space; absent means generic.
fn state_space<W: Walk>(walk: &mut W, space: &mut Space, legal: &[Space]) -> Step {
    let mut word = (*space != Space::Generic).then_some(*space);
    walk.option(&mut word, legal)?;
    *space = word.unwrap_or(Space::Generic);
    if *space == Space::SharedCluster {
        walk.needs("shared memory of the cluster", CLUSTERS)?;
    }
    Ok(())
}

/// The rules that loads and stores share.
struct Access {
    order: AccessOrder,
    space: Space,
    cached: bool,
    evict: bool,
    lanes: usize,
    ty: Type,
}

impl Access {
    fn rules<W: Walk>(&self, walk: &mut W) -> Step {
        let lanes = self.lanes;
        walk.rule(matches!(lanes, 1 | 2 | 4 | 8), "a vector has 2, 4 or 8 values")?;
        let bits = lanes as u32 * self.ty.bits();
        let far = matches!(self.space, Space::Global | Space::Generic);
        let weak = self.order == AccessOrder::Weak;
        if bits > 128 {
            walk.rule(
                bits == 256 && self.ty.bits() >= 32,
                "a vector has at most 128 bits, or 256 of 32 or 64 each",
            )?;
            walk.rule(self.space == Space::Global, "a vector of 256 bits lives in global memory")?;
            // Untyped ones would take registers of several kinds, which the assembler does not.
            walk.rule(
                !matches!(self.ty, Type::B32 | Type::B64),
                "a vector of 256 bits has values of a type",
            )?;
            walk.needs("vectors of 256 bits", needs(100, 8, 8))?;
        } else {
            walk.rule(lanes < 8, "a vector of 8 has values of 32 bits")?;
        }
        walk.rule(
            weak || !matches!(self.space, Space::Const | Space::Param),
            "constants and parameters are never ordered",
        )?;
        walk.rule(weak || self.space != Space::Local, "local memory is never ordered")?;
        walk.rule(!self.cached || weak, "an ordered access takes no cache operator")?;
        walk.rule(
            !self.cached || far || self.space == Space::Local,
            "cache operators are for global and local memory",
        )?;
        walk.rule(!self.evict || far, "eviction priorities are for global memory")?;
        walk.rule(
            !self.evict || self.order != AccessOrder::Volatile,
            "a volatile access takes no eviction priority",
        )?;
        walk.rule(!(self.evict && self.cached), "an eviction priority excludes a cache operator")?;
        if self.evict {
            walk.needs("eviction priorities", EVICTION)?;
        }
        Ok(())
    }
}

/// Sizes a vector by its `.v2 .v4 .v8`.
fn vector<W: Walk, L: Array<Item: Clone + Default>>(walk: &mut W, values: &mut SmallVec<L>) -> Step {
    let filling = walk.fills();
    let count = values.len();
    walk.rule(filling || matches!(count, 1 | 2 | 4 | 8), "a vector has 2, 4 or 8 values")?;
    let mut width = VectorWidth::for_lanes(count);
    walk.option(&mut width, VectorWidth::ALL)?;
    if filling {
        values.resize(width.map_or(1, VectorWidth::lanes), L::Item::default());
    }
    Ok(())
}

impl Family for Ld {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        use AccessOrderWord::{Acquire, Relaxed, Volatile, Weak};
        walk.word("ld")?;
        access_order(walk, &mut self.order, &[Weak, Volatile, Relaxed, Acquire])?;
        state_space(walk, &mut self.space, &Space::ALL[1..])?;
        walk.option(&mut self.cache, &[CacheOp::Ca, CacheOp::Cg, CacheOp::Cs, CacheOp::Lu, CacheOp::Cv])?;
        walk.flag("nc", &mut self.nc)?;
        walk.option(&mut self.evict, Eviction::ALL)?;
        walk.option(&mut self.prefetch, PrefetchSize::ALL)?;
        vector(walk, &mut self.dst)?;
        walk.choice(&mut self.ty, MEMORY)?;
        let access = Access {
            order: self.order,
            space: self.space,
            cached: self.cache.is_some(),
            evict: self.evict.is_some(),
            lanes: self.dst.len(),
            ty: self.ty,
        };
        access.rules(walk)?;
        if self.nc {
            walk.rule(self.space == Space::Global, ".nc is for global memory")?;
            walk.rule(
                self.order == AccessOrder::Weak,
                "an ordered access does not go through the read-only cache",
            )?;
            walk.rule(!matches!(self.cache, Some(CacheOp::Lu | CacheOp::Cv)), ".nc takes .ca, .cg or .cs")?;
        }
        if let Some(size) = self.prefetch {
            walk.rule(
                matches!(self.space, Space::Global | Space::Generic),
                "prefetch sizes are for global memory",
            )?;
            let sm = if size == PrefetchSize::L2B256 { 80 } else { 75 };
            walk.needs("prefetch sizes", needs(sm, 7, 4))?;
        }
        walk.operand(Slot::WriteVector(&mut self.dst, self.ty))?;
        walk.operand(Slot::Address(&mut self.address, self.space))
    }
}

impl Family for St {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        use AccessOrderWord::{Relaxed, Release, Volatile, Weak};
        walk.word("st")?;
        access_order(walk, &mut self.order, &[Weak, Volatile, Relaxed, Release])?;
        state_space(
            walk,
            &mut self.space,
            &[Space::Global, Space::Shared, Space::SharedCluster, Space::Local],
        )?;
        walk.option(&mut self.cache, &[CacheOp::Wb, CacheOp::Cg, CacheOp::Cs, CacheOp::Wt])?;
        walk.option(&mut self.evict, Eviction::ALL)?;
        vector(walk, &mut self.src)?;
        walk.choice(&mut self.ty, MEMORY)?;
        let access = Access {
            order: self.order,
            space: self.space,
            cached: self.cache.is_some(),
            evict: self.evict.is_some(),
            lanes: self.src.len(),
            ty: self.ty,
        };
        access.rules(walk)?;
        walk.operand(Slot::Address(&mut self.address, self.space))?;
        walk.operand(Slot::SourceVector(&mut self.src, self.ty))
    }
}

/// The order and scope of an atomic operation.
fn atomic_order<W: Walk>(
    walk: &mut W,
    order: &mut Option<AtomOrder>,
    scope: &mut Option<Scope>,
    legal: &[AtomOrder],
) -> Step {
    walk.option(order, legal)?;
    walk.option(scope, Scope::ALL)?;
    if *scope == Some(Scope::Cluster) {
        walk.needs("the cluster scope", CLUSTERS)?;
    }
    Ok(())
}

/// The operation and type of an atomic operation.
fn atomic_op<W: Walk>(walk: &mut W, op: &mut AtomOp, ty: &mut Type, legal: &[AtomOp]) -> Step {
    use AtomOp::*;
    walk.choice(op, legal)?;
    let mut noftz = is_narrow(*ty);
    if *op == Add {
        walk.flag("noftz", &mut noftz)?;
    }
    let types: &[Type] = match op {
        Add => &[
            Type::U32,
            Type::S32,
            Type::U64,
            Type::F16,
            Type::F16x2,
            Type::Bf16,
            Type::Bf16x2,
            Type::F32,
            Type::F64,
        ],
        Min | Max => &[Type::U32, Type::S32, Type::U64, Type::S64],
        And | Or | Xor | Exch => &[Type::B32, Type::B64],
        Cas => &[Type::B16, Type::B32, Type::B64],
        Inc | Dec => &[Type::U32],
    };
    walk.choice(ty, types)?;
    walk.rule(noftz == is_narrow(*ty), "add on narrow floats needs .noftz, and only there")?;
    if is_bf16(*ty) {
        walk.needs("atomic addition of bf16", needs(90, 7, 8))?;
    }
    Ok(())
}

const ATOMIC_SPACES: &[Space] = &[Space::Global, Space::Shared, Space::SharedCluster];

impl Family for Atom {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("atom")?;
        atomic_order(walk, &mut self.order, &mut self.scope, AtomOrder::ALL)?;
        state_space(walk, &mut self.space, ATOMIC_SPACES)?;
        atomic_op(walk, &mut self.op, &mut self.ty, AtomOp::ALL)?;
        walk.operand(Slot::Write(&mut self.dst, self.ty))?;
        walk.operand(Slot::Address(&mut self.address, self.space))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))?;
        if self.op == AtomOp::Cas {
            let filling = walk.fills();
            walk.rule(filling || self.b.is_some(), "cas needs a new value")?;
            let mut b = self.b.unwrap_or_default();
            walk.operand(Slot::Source(&mut b, self.ty))?;
            self.b = Some(b);
        } else {
            walk.rule(self.b.is_none(), "only cas has a second value")?;
        }
        Ok(())
    }
}

impl Family for Red {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        use AtomOp::*;
        walk.word("red")?;
        atomic_order(walk, &mut self.order, &mut self.scope, &[AtomOrder::Relaxed, AtomOrder::Release])?;
        state_space(walk, &mut self.space, ATOMIC_SPACES)?;
        atomic_op(walk, &mut self.op, &mut self.ty, &[Add, Min, Max, And, Or, Xor, Inc, Dec])?;
        walk.operand(Slot::Address(&mut self.address, self.space))?;
        walk.operand(Slot::Source(&mut self.a, self.ty))
    }
}

impl Family for Cvta {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("cvta")?;
        walk.flag("to", &mut self.to)?;
        walk.choice(&mut self.space, &Space::ALL[1..])?;
        walk.choice(&mut self.ty, &[Type::U64])?;
        match self.space {
            Space::Param => walk.needs("generic addresses of parameters", needs(75, 7, 7))?,
            Space::SharedCluster => walk.needs("shared memory of the cluster", CLUSTERS)?,
            _ => {}
        }
        walk.operand(Slot::Write(&mut self.dst, self.ty))?;
        if self.to {
            walk.operand(Slot::Source(&mut self.a, self.ty))
        } else {
            walk.operand(Slot::SourceSymbol(&mut self.a, self.space))
        }
    }
}

impl Family for Prefetch {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("prefetch")?;
        state_space(walk, &mut self.space, &[Space::Global, Space::Local])?;
        walk.choice(&mut self.level, CacheLevel::ALL)?;
        walk.operand(Slot::Address(&mut self.address, self.space))
    }
}

const ASYNC: Needs = needs(80, 7, 0);

impl Family for CpAsync {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("cp")?;
        walk.word("async")?;
        walk.choice(&mut self.cache, &[CacheOp::Ca, CacheOp::Cg])?;
        walk.word("shared")?;
        walk.word("global")?;
        walk.option(&mut self.prefetch, PrefetchSize::ALL)?;
        walk.needs("cp.async", ASYNC)?;
        if self.prefetch.is_some() {
            walk.needs("prefetch sizes", needs(80, 7, 4))?;
        }
        walk.operand(Slot::Address(&mut self.dst, Space::Shared))?;
        walk.operand(Slot::Address(&mut self.src, Space::Global))?;
        walk.operand(Slot::Number(&mut self.bytes, &[4, 8, 16]))?;
        walk.rule(self.cache != CacheOp::Cg || self.bytes == 16, "cp.async.cg copies 16 bytes")?;
        walk.trailing(&mut self.src_bytes, Range::upto(self.bytes))
    }
}

impl Family for CpAsyncCommit {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("cp")?;
        walk.word("async")?;
        walk.word("commit_group")?;
        walk.needs("cp.async", ASYNC)
    }
}

impl Family for CpAsyncWait {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("cp")?;
        walk.word("async")?;
        let mut all = self.groups.is_none();
        walk.flag("wait_all", &mut all)?;
        walk.needs("cp.async", ASYNC)?;
        if all {
            self.groups = None;
        } else {
            walk.word("wait_group")?;
            let mut groups = self.groups.unwrap_or(0);
            walk.operand(Slot::Number(&mut groups, &[]))?;
            self.groups = Some(groups);
        }
        Ok(())
    }
}

impl Family for Fence {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("fence")?;
        walk.choice(&mut self.order, FenceOrder::ALL)?;
        walk.choice(&mut self.scope, Scope::ALL)?;
        if self.scope == Scope::Cluster {
            walk.needs("the cluster scope", CLUSTERS)?;
        }
        Ok(())
    }
}

impl Family for Membar {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("membar")?;
        walk.choice(&mut self.level, MembarLevel::ALL)
    }
}

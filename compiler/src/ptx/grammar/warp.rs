//! The grammar of barriers and warp-wide collectives.

use super::{Family, Range, Slot, Step, Walk, needs};
use crate::ptx::instruction::*;
use crate::ptx::types::{Modifier, Type};

/// Barriers are numbered from 0 to 15.
const BARRIERS: Range = Range::upto(15);

/// Whole warps take part in a barrier.
const THREADS: Range = Range { min: 32, max: 1024, step: 32 };

/// `bar.x` or `barrier.x{.aligned}`, with the optional `.cta` that newer manuals write.
fn barrier_name<W: Walk>(walk: &mut W, aligned: &mut bool, rest: &'static str) -> Step {
    let mut word = if *aligned { BarrierWord::Bar } else { BarrierWord::Barrier };
    walk.choice(&mut word, BarrierWord::ALL)?;
    // The spelling `.cta` and `barrier….aligned` are read, never written.
    walk.flag("cta", &mut false)?;
    walk.word(rest)?;
    *aligned = word == BarrierWord::Bar;
    Ok(())
}

/// The `.aligned` of the long spelling.
fn aligned_flag<W: Walk>(walk: &mut W, aligned: &mut bool) -> Step {
    let mut stated = false;
    if !*aligned {
        walk.flag("aligned", &mut stated)?;
    }
    *aligned |= stated;
    Ok(())
}

impl Family for BarrierSync {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        barrier_name(walk, &mut self.aligned, "sync")?;
        aligned_flag(walk, &mut self.aligned)?;
        walk.operand(Slot::SourceRange(&mut self.barrier, BARRIERS))?;
        walk.trailing(&mut self.threads, THREADS)
    }
}

impl Family for BarrierArrive {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        barrier_name(walk, &mut self.aligned, "arrive")?;
        aligned_flag(walk, &mut self.aligned)?;
        walk.operand(Slot::SourceRange(&mut self.barrier, BARRIERS))?;
        walk.operand(Slot::SourceRange(&mut self.threads, THREADS))
    }
}

impl Family for BarrierRed {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        barrier_name(walk, &mut self.aligned, "red")?;
        walk.choice(&mut self.op, BarrierRedOp::ALL)?;
        aligned_flag(walk, &mut self.aligned)?;
        let result = if self.op == BarrierRedOp::Popc { Type::U32 } else { Type::Pred };
        walk.word(if self.op == BarrierRedOp::Popc { "u32" } else { "pred" })?;
        walk.operand(Slot::Write(&mut self.dst, result))?;
        walk.operand(Slot::SourceRange(&mut self.barrier, BARRIERS))?;
        // The thread count stands before the predicate, so its presence shows only by the operand count.
        if walk.more_before_last(self.threads.is_some()) {
            let mut threads = self.threads.unwrap_or_default();
            walk.operand(Slot::SourceRange(&mut threads, THREADS))?;
            self.threads = Some(threads);
        } else {
            self.threads = None;
        }
        walk.operand(Slot::Pred(&mut self.p))
    }
}

impl Family for WarpSync {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("bar")?;
        walk.word("warp")?;
        walk.word("sync")?;
        walk.operand(Slot::Source(&mut self.mask, Type::U32))
    }
}

impl Family for Shfl {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("shfl")?;
        walk.word("sync")?;
        walk.choice(&mut self.mode, ShflMode::ALL)?;
        walk.word("b32")?;
        walk.operand(Slot::WritePair(&mut self.dst, Type::B32, &mut self.p))?;
        walk.operand(Slot::Source(&mut self.a, Type::B32))?;
        walk.operand(Slot::Source(&mut self.b, Type::U32))?;
        walk.operand(Slot::Source(&mut self.c, Type::U32))?;
        walk.operand(Slot::Source(&mut self.mask, Type::U32))
    }
}

impl Family for Vote {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("vote")?;
        walk.word("sync")?;
        walk.choice(&mut self.mode, VoteMode::ALL)?;
        let ballot = self.mode == VoteMode::Ballot;
        walk.word(if ballot { "b32" } else { "pred" })?;
        walk.operand(Slot::Write(&mut self.dst, if ballot { Type::U32 } else { Type::Pred }))?;
        walk.operand(Slot::Pred(&mut self.p))?;
        walk.operand(Slot::Source(&mut self.mask, Type::U32))
    }
}

impl Family for Match {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("match")?;
        walk.choice(&mut self.mode, MatchMode::ALL)?;
        walk.word("sync")?;
        walk.choice(&mut self.ty, &[Type::B32, Type::B64])?;
        walk.operand(Slot::WritePair(&mut self.dst, Type::U32, &mut self.p))?;
        walk.rule(self.mode == MatchMode::All || self.p.is_none(), "only match.all tells whether all agree")?;
        walk.operand(Slot::Source(&mut self.a, self.ty))?;
        walk.operand(Slot::Source(&mut self.mask, Type::U32))
    }
}

impl Family for Redux {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("redux")?;
        walk.word("sync")?;
        walk.choice(&mut self.op, ReduxOp::ALL)?;
        let legal: &[Type] = match self.op {
            ReduxOp::Add | ReduxOp::Min | ReduxOp::Max => &[Type::U32, Type::S32],
            ReduxOp::And | ReduxOp::Or | ReduxOp::Xor => &[Type::B32],
        };
        walk.choice(&mut self.ty, legal)?;
        walk.needs("redux.sync", needs(80, 7, 0))?;
        walk.operand(Slot::Write(&mut self.dst, Type::U32))?;
        // Signed constants are as good as unsigned ones; float registers are refused even for `.b32`.
        walk.operand(Slot::Source(&mut self.a, Type::U32))?;
        walk.operand(Slot::Source(&mut self.mask, Type::U32))
    }
}

impl Family for Activemask {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("activemask")?;
        walk.word("b32")?;
        walk.operand(Slot::Write(&mut self.dst, Type::U32))
    }
}

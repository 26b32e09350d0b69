//! Barriers and warp-wide collectives.

use super::modifier::*;
use crate::ptx::operand::{Operand, PredOperand, Reg};
use crate::ptx::types::Type;

/// `bar.sync` (aligned: all threads of a warp arrive together) or `barrier.sync`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BarrierSync {
    pub aligned: bool,
    /// Which of the sixteen barriers.
    pub barrier: Operand,
    /// How many threads take part, a multiple of 32; absent means all.
    pub threads: Option<Operand>,
}

/// `bar.arrive`: be counted, but do not wait.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BarrierArrive {
    pub aligned: bool,
    pub barrier: Operand,
    pub threads: Operand,
}

/// `bar.red`: a barrier that also reduces a predicate over the threads that take part.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BarrierRed {
    pub aligned: bool,
    pub op: BarrierRedOp,
    /// A 32-bit count for `Popc`, a predicate otherwise.
    pub dst: Reg,
    pub barrier: Operand,
    pub threads: Option<Operand>,
    pub p: PredOperand,
}

/// `bar.warp.sync`: wait for the lanes in the mask.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WarpSync {
    pub mask: Operand,
}

/// `shfl.sync`: 32 bits from another lane.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Shfl {
    pub mode: ShflMode,
    pub dst: Reg,
    /// Whether the source lane was in range.
    pub p: Option<Reg>,
    pub a: Operand,
    /// The lane, or the distance to it.
    pub b: Operand,
    /// Clamp (bits 0..5) and segment mask (bits 8..13).
    pub c: Operand,
    pub mask: Operand,
}

/// `vote.sync`: a question about a predicate over the lanes in the mask.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Vote {
    pub mode: VoteMode,
    /// A 32-bit mask for `Ballot`, a predicate otherwise.
    pub dst: Reg,
    pub p: PredOperand,
    pub mask: Operand,
}

/// `match.sync`: which lanes hold the same value.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Match {
    pub mode: MatchMode,
    /// `B32` or `B64`.
    pub ty: Type,
    pub dst: Reg,
    /// `All` only: whether all lanes agree.
    pub p: Option<Reg>,
    pub a: Operand,
    pub mask: Operand,
}

/// `redux.sync`: reduce 32-bit values over the lanes in the mask.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Redux {
    pub op: ReduxOp,
    pub ty: Type,
    pub dst: Reg,
    pub a: Operand,
    pub mask: Operand,
}

/// `activemask`: which lanes are here.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Activemask {
    pub dst: Reg,
}

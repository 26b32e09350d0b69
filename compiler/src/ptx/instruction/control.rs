//! Branches and ways to stop.

use super::modifier::{GridDepAction, LeaveOp};
use crate::ptx::operand::{Label, Operand};

/// `bra`: jump to a label; with a guard, where the guard holds.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bra {
    /// All active threads agree on the guard.
    pub uni: bool,
    pub target: Label,
}

/// `ret exit trap brkpt`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Leave {
    pub op: LeaveOp,
}

/// `nanosleep`: pause for about so many nanoseconds.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Nanosleep {
    pub duration: Operand,
}

/// `griddepcontrol`: wait until the grids that this one was launched behind are done and their writes are seen, or let the
/// next one start.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct GridDep {
    pub action: GridDepAction,
}

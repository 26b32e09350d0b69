//! The grammar of branches and ways to stop.

use super::{Family, Slot, Step, Walk};
use crate::ptx::instruction::*;
use crate::ptx::types::{Modifier, Type};

impl Family for Bra {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("bra")?;
        walk.flag("uni", &mut self.uni)?;
        walk.operand(Slot::Label(&mut self.target))
    }
}

impl Family for Leave {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.choice(&mut self.op, LeaveOp::ALL)
    }
}

impl Family for Nanosleep {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("nanosleep")?;
        walk.word("u32")?;
        walk.operand(Slot::Source(&mut self.duration, Type::U32))
    }
}

//! The grammar of branches and ways to stop.

use super::{Family, Needs, Slot, Step, Walk, needs};
use crate::ptx::instruction::*;
use crate::ptx::types::{Modifier, Type};

const DEPENDENT_GRIDS: Needs = needs(90, 7, 8);

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

impl Family for GridDep {
    fn describe<W: Walk>(&mut self, walk: &mut W) -> Step {
        walk.word("griddepcontrol")?;
        walk.choice(&mut self.action, GridDepAction::ALL)?;
        walk.needs("control of dependent grids", DEPENDENT_GRIDS)
    }
}

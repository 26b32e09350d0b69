//! The frame of a counted loop: a test in front, where the loop may have nothing to do; a step and a test at the end.

use super::super::instruction::*;
use super::super::operand::{Label, Operand, Reg};
use super::super::types::Type;
use super::selector::Selector;
use crate::ir::kernel::AxisData;

/// A loop that has been opened and must be closed after the body.
pub(super) struct OpenLoop {
    counter: Reg,
    step: Operand,
    limit: Operand,
    head: Label,
    done: Label,
    ty: Type,
}

impl Selector<'_> {
    /// `while counter < limit`, from `first` on, over an axis.
    pub fn open_loop(
        &mut self,
        counter: Reg,
        first: Operand,
        limit: Operand,
        step: Operand,
        ty: Type,
        axis: &AxisData,
    ) -> OpenLoop {
        let hint = &axis.name;
        let head = self.builder.label(&format!("loop_{hint}"));
        let done = self.builder.label(&format!("end_{hint}"));
        self.copy(counter, Type::B64, first);
        let runs = matches!((first, limit), (Operand::Int(first), Operand::Int(limit)) if first < limit);
        if !runs {
            let p = self.setp(Compare::Ge, ty, counter.into(), limit);
            self.builder.emit_if(p, Bra { uni: false, target: done });
        }
        self.builder.place(head);
        if axis.nounroll {
            self.builder.pragma("nounroll");
        }
        OpenLoop { counter, step, limit, head, done, ty }
    }

    pub fn close_loop(&mut self, open: OpenLoop) {
        let OpenLoop { counter, step, limit, head, done, ty } = open;
        self.builder.emit(IntBinary {
            op: IntBinaryOp::Add,
            ty,
            dst: counter,
            a: counter.into(),
            b: step,
            ..Default::default()
        });
        let p = self.setp(Compare::Lt, ty, counter.into(), limit);
        self.builder.emit_if(p, Bra { uni: false, target: head });
        self.builder.place(done);
    }
}

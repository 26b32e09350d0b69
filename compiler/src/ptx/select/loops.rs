//! The frame of a counted loop: a test in front, where the loop may have nothing to do; a step and a test at the end.

use super::super::instruction::*;
use super::super::operand::{Label, Operand, PredOperand, Reg};
use super::super::types::Type;
use super::checks::EndsOnFailure;
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
    failed: Option<EndsOnFailure>,
}

impl Selector<'_> {
    /// `while counter < limit`, from `first` on, by `step`, over an axis; it may end too where a check has failed.
    pub fn open_loop(
        &mut self,
        counter: Reg,
        (first, limit, step): (Operand, Operand, Operand),
        ty: Type,
        axis: &AxisData,
        failed: Option<EndsOnFailure>,
    ) -> OpenLoop {
        let hint = &axis.name;
        let head = self.builder.label(&format!("loop_{hint}"));
        let done = self.builder.label(&format!("end_{hint}"));
        self.copy(counter, Type::B64, first);
        let runs = matches!((first, limit), (Operand::Int(first), Operand::Int(limit)) if first < limit);
        if !runs {
            let failed_now = failed.map(|failed| self.meet_on_failure(failed));
            let combine =
                failed_now.map(|reg| Combine { op: BoolOp::Or, with: PredOperand { reg, negated: false } });
            let p = self.pred("");
            let (compare, a) = (Compare::Ge, counter.into());
            self.builder.emit(Setp { compare, combine, ty, p, a, b: limit, ..Default::default() });
            self.builder.emit_if(p, Bra { uni: false, target: done });
        }
        self.builder.place(head);
        if axis.nounroll {
            self.builder.pragma("nounroll");
        }
        OpenLoop { counter, step, limit, head, done, ty, failed }
    }

    pub fn close_loop(&mut self, open: OpenLoop) {
        let OpenLoop { counter, step, limit, head, done, ty, failed } = open;
        self.builder.emit(IntBinary {
            op: IntBinaryOp::Add,
            ty,
            dst: counter,
            a: counter.into(),
            b: step,
            ..Default::default()
        });
        let failed_now = failed.map(|failed| self.meet_on_failure(failed));
        let combine =
            failed_now.map(|reg| Combine { op: BoolOp::And, with: PredOperand { reg, negated: true } });
        let p = self.pred("");
        let (compare, a) = (Compare::Lt, counter.into());
        self.builder.emit(Setp { compare, combine, ty, p, a, b: limit, ..Default::default() });
        self.builder.emit_if(p, Bra { uni: false, target: head });
        self.builder.place(done);
    }
}

//! Bounds checks: a branch that is not taken, and at the end of the entry what records a failure.
//!
//! ```text
//! check site0 v3, v1, v2                @!%p bra failed;          failed:
//!                                  →    checked:                      atom.exch claimed, [record], 1
//!                                                                     …
//!                                                                     bra checked;
//! ```
//!
//! Checks of one block share the branch, behind the loads between them. A thread whose check has failed goes on, since
//! others may wait for it; what is behind the check's condition does not happen for it. Its loops end, those that may run
//! for ever on what it invented: at once for all the threads that meet in them.

use super::super::instruction::*;
use super::super::operand::{Address, Base, Label, Operand, PredOperand, Reg};
use super::super::types::{Space, Type};
use super::SelectError;
use super::selector::Selector;
use crate::analysis::is_predicated;
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{Definition, Payload};
use crate::ir::op::Opcode;
use cranelift_entity::{EntityRef, EntitySet};
use smallvec::smallvec;

/// What is done where some of a group of checks fail.
pub struct Recording {
    failed: Label,
    back: Label,
    checks: Vec<Check>,
}

pub struct Check {
    holds: Reg,
    site: usize,
    index: Operand,
    extent: Operand,
    /// What else the report says.
    value: Option<Operand>,
}

/// A loop that ends where a check has failed.
#[derive(Clone, Copy)]
pub struct EndsOnFailure {
    flag: Reg,
    scope: Scope,
}

/// Who ends a loop together: those that meet in it.
#[derive(Clone, Copy)]
enum Scope {
    Thread,
    Warp,
    Block,
}

/// Checks that share a branch, at most: each keeps a predicate until then.
const MOST: usize = 4;

impl Selector<'_> {
    /// Keeps a check until the block is over, or something comes that it must not pass. Nothing uses what it does, and
    /// loads behind it do not wait for its branch.
    pub fn check(&mut self, inst: Inst) -> Result<(), SelectError> {
        let data = &self.kernel.insts[inst];
        let (Payload::Site(site), [holds, index, extent, more @ ..]) = (&data.payload, &data.arguments[..])
        else {
            return Err(self.error(format!("{inst} has no site")));
        };
        let holds = self.register(*holds);
        let (index, extent) = (self.operand(*index), self.operand(*extent));
        let value = more.first().map(|value| self.operand(*value));
        self.checks.push(Check { holds, site: site.index(), index, extent, value });
        if self.checks.len() == MOST {
            self.settle_checks();
        }
        Ok(())
    }

    /// Settles the checks before an instruction that they must not pass: one that may run something several times or not
    /// at all, or end.
    pub fn settle_checks_before(&mut self, inst: Inst) {
        let straight = self.kernel.insts[inst].regions.is_empty() || is_predicated(self.kernel, inst);
        if !straight {
            self.settle_checks();
        }
    }

    /// One branch for the checks that have been kept.
    pub fn settle_checks(&mut self) {
        let checks = std::mem::take(&mut self.checks);
        let Some(first) = checks.first() else { return };
        let mut all = first.holds;
        for check in &checks[1..] {
            all = self.logic(LogicBinaryOp::And, Type::Pred, all.into(), check.holds.into());
        }
        let failed = self.builder.label("failed");
        let back = self.builder.label("checked");
        self.builder.emit_if(PredOperand { reg: all, negated: true }, Bra { uni: false, target: failed });
        self.builder.place(back);
        self.recordings.push(Recording { failed, back, checks });
    }

    /// What the entry's checks do where they fail: the first thread to come fills the record, and all go on.
    pub fn record_failures(&mut self) {
        let Some(record) = self.error_record else { return };
        let at = |offset: i64| Address::new(Base::Reg(record), offset);
        for Recording { failed, back, checks } in std::mem::take(&mut self.recordings) {
            self.builder.place(failed);
            let alone = checks.len() == 1;
            for Check { holds, site, index, extent, value } in checks {
                let next = if alone { back } else { self.builder.label("next") };
                if !alone {
                    self.builder.emit_if(holds, Bra { uni: false, target: next });
                }
                if let Some(flag) = self.failed {
                    self.builder.emit(Mov { ty: Type::Pred, dst: flag, a: Operand::Int(-1) });
                }
                let claimed = self.temp(Type::B32);
                self.builder.emit(Atom {
                    space: Space::Global,
                    op: AtomOp::Exch,
                    ty: Type::B32,
                    dst: claimed,
                    address: at(0),
                    a: Operand::Int(1),
                    ..Default::default()
                });
                let late = self.setp(Compare::Ne, Type::U32, claimed.into(), Operand::Int(0));
                self.builder.emit_if(late, Bra { uni: false, target: next });
                let mut numbers = vec![
                    (Type::U32, 4, Operand::Int(site as i64)),
                    (Type::S64, 8, index),
                    (Type::S64, 16, extent),
                ];
                numbers.extend(value.map(|value| (Type::S64, 24, value)));
                for (ty, offset, value) in numbers {
                    let (address, src) = (at(offset), smallvec![value]);
                    self.builder.emit(St { space: Space::Global, ty, address, src, ..Default::default() });
                }
                if !alone {
                    self.builder.place(next);
                }
            }
            self.builder.emit(Bra { uni: false, target: back });
        }
    }

    /// Keeps in mind whether a check has failed, where a loop ends on it.
    pub fn note_failures(&mut self, loops: &[Inst]) {
        if loops.iter().any(|inst| self.may_run_on(*inst)) {
            let flag = self.pred("has_failed");
            self.builder.emit(Mov { ty: Type::Pred, dst: flag, a: Operand::Int(0) });
            self.failed = Some(flag);
        }
    }

    /// What a loop ends on, beside its own condition.
    pub fn ends_on_failure(&self, inst: Inst) -> Option<EndsOnFailure> {
        let flag = self.failed.filter(|_| self.may_run_on(inst))?;
        let (mut of_warp, mut of_block) = (false, false);
        for region in &self.kernel.insts[inst].regions {
            self.kernel.walk(*region, &mut |_, inst| {
                of_warp |= self.kernel.insts[inst].opcode == Opcode::ShuffleXor;
                of_block |= self.kernel.insts[inst].opcode == Opcode::Barrier;
            });
        }
        let scope = match (of_block, of_warp) {
            (true, _) => Scope::Block,
            (false, true) => Scope::Warp,
            (false, false) => Scope::Thread,
        };
        Some(EndsOnFailure { flag, scope })
    }

    /// Lets the threads that meet in a loop end it together; the predicate on which they do.
    pub fn meet_on_failure(&mut self, EndsOnFailure { flag, scope }: EndsOnFailure) -> Reg {
        let p = PredOperand { reg: flag, negated: false };
        match scope {
            Scope::Thread => {}
            Scope::Warp => {
                let mask = Operand::Int(0xffff_ffff);
                self.builder.emit(Vote { mode: VoteMode::Any, dst: flag, p, mask });
            }
            Scope::Block => {
                let (op, barrier) = (BarrierRedOp::Or, Operand::Int(0));
                let threads = None;
                self.builder.emit(BarrierRed { aligned: true, op, dst: flag, barrier, threads, p });
            }
        }
        flag
    }

    /// Whether memory decides how often a loop runs, so that it may go on and on with what a failed check left.
    fn may_run_on(&self, inst: Inst) -> bool {
        let data = &self.kernel.insts[inst];
        let bounds = match data.opcode {
            Opcode::While => return true,
            Opcode::For => &data.arguments[..3],
            _ => &data.arguments[..],
        };
        let mut seen = EntitySet::new();
        bounds.iter().any(|value| self.is_of_memory(*value, &mut seen))
    }

    /// Whether a value is made of something that has been loaded, as far as can be seen.
    fn is_of_memory(&self, value: Value, seen: &mut EntitySet<Value>) -> bool {
        if !seen.insert(value) {
            return false;
        }
        let kernel = self.kernel;
        let arguments = match kernel.values[value].definition {
            Definition::Result(inst, _) => {
                let data = &kernel.insts[inst];
                if data.opcode.is_load() || !data.regions.is_empty() {
                    return true;
                }
                &data.arguments[..]
            }
            Definition::Param(block, at) => {
                let Some(owner) = self.maps.owner[block].expand() else { return false };
                let data = &kernel.insts[owner];
                let indices = kernel.loop_bounds(owner).len();
                if usize::from(at) >= indices {
                    return true;
                }
                &data.arguments[2 * usize::from(at)..2 * usize::from(at) + 2]
            }
        };
        arguments.iter().any(|value| self.is_of_memory(*value, seen))
    }
}

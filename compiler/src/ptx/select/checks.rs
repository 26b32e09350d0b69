//! Bounds checks: a branch that is not taken, and at the end of the entry what records a failure.
//!
//! ```text
//! check site0 v3, v1, v2                @!%p bra failed;          failed:
//!                                  →    checked:                      atom.exch claimed, [record], 1
//!                                                                     …
//!                                                                     bra checked;
//! ```
//!
//! Checks of one block share the branch, at its end: no load waits for it, and those of all its checks are under way
//! together. Which of them failed is found out where one did, from the index and the extent. A thread whose check has failed goes
//! on, since others may wait for it; what is behind the check's condition does not happen for it. Its loops end, those
//! that may run for ever on what it invented: at once for all the threads that meet in them. Such loops of a later launch
//! of the plan end too: it reads in the record whether a check has failed.

use super::super::instruction::*;
use super::super::operand::{Address, Base, Label, Operand, PredOperand, Reg};
use super::super::types::{Space, Type};
use super::SelectError;
use super::selector::Selector;
use crate::analysis::{Endless, is_predicated};
use crate::ir::entities::{Inst, Value};
use crate::ir::kernel::{Payload, Short};
use crate::ir::op::Opcode;
use cranelift_entity::EntityRef;
use smallvec::smallvec;

/// Checks that are settled together.
#[derive(Default)]
pub struct Pending {
    checks: Vec<Check>,
    /// Whether all of them hold.
    all: Option<Reg>,
}

/// What is done where some of a group of checks fail.
pub struct Recording {
    failed: Label,
    back: Label,
    checks: Vec<Check>,
}

struct Check {
    holds: Holds,
    site: usize,
    /// What the report says: of an access the index and the extent first.
    numbers: Short<Operand>,
}

/// What says whether a check holds.
#[derive(Clone, Copy)]
enum Holds {
    Kept(Reg),
    /// Index and extent: the one lies below the other, and is not negative.
    Below(Operand, Operand),
}

/// Where the numbers of a report stand in the record: each 8 bytes behind the one before.
const FIRST_NUMBER: i64 = 8;
/// The number that checks of one extent have in common.
const EXTENT: usize = 1;

/// A loop that ends where a check has failed.
#[derive(Clone, Copy)]
pub struct EndsOnFailure {
    flag: Reg,
    scope: Meeting,
}

/// Who ends a loop together: those that meet in it.
#[derive(Clone, Copy)]
enum Meeting {
    Thread,
    Warp,
    Block,
}

/// Checks that share a branch, at most: each keeps its index until then.
const MOST: usize = 16;
/// The same of those that keep a predicate, of which a thread has seven.
const MOST_KEPT: usize = 4;

impl Selector<'_> {
    /// Keeps a check until the block is over, or something comes that it must not pass. Nothing uses what it does, and
    /// loads behind it do not wait for its branch.
    pub fn check(&mut self, inst: Inst) -> Result<(), SelectError> {
        let data = &self.kernel.insts[inst];
        let (Payload::Site(site), [holds, numbers @ ..]) = (&data.payload, &data.arguments[..]) else {
            return Err(self.error(format!("{inst} has no site")));
        };
        let plain = matches!(numbers, [index, extent, ..] if self.tests_index(*holds, *index, *extent));
        let holds = self.register(*holds);
        let numbers: Short<Operand> = numbers.iter().map(|number| self.operand(*number)).collect();
        let all = match self.checks.all {
            Some(all) => self.logic(LogicBinaryOp::And, Type::Pred, all.into(), holds.into()),
            None => holds,
        };
        self.checks.all = Some(all);
        let holds = match numbers[..] {
            [index, extent, ..] if plain => Holds::Below(index, extent),
            _ => Holds::Kept(holds),
        };
        self.checks.checks.push(Check { holds, site: site.index(), numbers });
        let checks = &self.checks.checks;
        let kept = checks.iter().filter(|check| matches!(check.holds, Holds::Kept(_))).count();
        // A debugger stops at a check that fails before anything behind it has happened.
        if checks.len() == MOST || kept == MOST_KEPT || self.options.names {
            self.settle_checks();
        }
        Ok(())
    }

    /// Whether a condition is no more than that an index lies below an extent and is not negative.
    fn tests_index(&mut self, holds: Value, index: Value, extent: Value) -> bool {
        if self.kernel.int_of(index).is_some() || self.interval(extent).low < 0 {
            return false;
        }
        let Some(data) = self.kernel.definition_data(holds) else { return false };
        let below = |value: Value| {
            self.kernel
                .definition_data(value)
                .is_some_and(|data| data.opcode == Opcode::Lt && data.arguments[..] == [index, extent])
        };
        let above = |value: Value| {
            self.kernel.definition_data(value).is_some_and(|data| {
                data.opcode == Opcode::Ge
                    && data.arguments[0] == index
                    && self.kernel.int_of(data.arguments[1]) == Some(0)
            })
        };
        match (data.opcode, &data.arguments[..]) {
            (Opcode::And, [a, b]) => (above(*a) && below(*b)) || (above(*b) && below(*a)),
            _ => below(holds),
        }
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
        let Pending { checks, all } = std::mem::take(&mut self.checks);
        let Some(all) = all else { return };
        let failed = self.builder.label("failed");
        let back = self.builder.label("checked");
        self.builder.emit_if(PredOperand { reg: all, negated: true }, Bra { uni: false, target: failed });
        self.builder.place(back);
        self.recordings.push(Recording { failed, back, checks });
    }

    /// What the entry's checks do where they fail: the first thread to come fills the record, and all go on. Of several
    /// that failed the first is told: what it writes comes last.
    pub fn record_failures(&mut self) {
        let Some(record) = self.error_record else { return };
        for Recording { failed, back, checks } in std::mem::take(&mut self.recordings) {
            self.builder.place(failed);
            if let Some(flag) = self.failed {
                self.builder.emit(Mov { ty: Type::Pred, dst: flag, a: Operand::Int(-1) });
            }
            let claimed = self.temp(Type::B32);
            self.builder.emit(Atom {
                space: Space::Global,
                op: AtomOp::Exch,
                ty: Type::B32,
                dst: claimed,
                address: Address::new(Base::Reg(record), 0),
                a: Operand::Int(1),
                ..Default::default()
            });
            let late = self.setp(Compare::Ne, Type::U32, claimed.into(), Operand::Int(0));
            self.builder.emit_if(late, Bra { uni: false, target: back });
            let alone = checks.len() == 1;
            let first = &checks[0];
            let one_site = checks.iter().all(|check| check.site == first.site);
            let one_extent =
                checks.iter().all(|check| check.numbers.get(EXTENT) == first.numbers.get(EXTENT));
            // What all of them have in common is written once.
            let site = |check: &Check| (Type::U32, 4, Operand::Int(check.site as i64));
            let number = |check: &Check, at: usize| {
                check.numbers.get(at).map(|number| (Type::S64, FIRST_NUMBER + 8 * at as i64, *number))
            };
            let common = [one_site.then(|| site(first)), one_extent.then(|| number(first, EXTENT)).flatten()];
            self.report(record, common.into_iter().flatten(), None);
            for check in checks.iter().rev() {
                let own = [
                    number(check, 0),
                    (!one_site).then(|| site(check)),
                    (!one_extent).then(|| number(check, EXTENT)).flatten(),
                ];
                let more = (EXTENT + 1..check.numbers.len()).filter_map(|at| number(check, at));
                let holds = (!alone).then(|| match check.holds {
                    Holds::Kept(holds) => holds,
                    Holds::Below(index, extent) => self.setp(Compare::Lt, Type::U64, index, extent),
                });
                self.report(record, own.into_iter().flatten().chain(more), holds);
            }
            self.builder.emit(Bra { uni: false, target: back });
        }
    }

    /// Writes numbers into the error record, each with its type and its offset, unless something holds.
    fn report(
        &mut self,
        record: Reg,
        numbers: impl Iterator<Item = (Type, i64, Operand)>,
        holds: Option<Reg>,
    ) {
        for (ty, offset, value) in numbers {
            let (address, src) = (Address::new(Base::Reg(record), offset), smallvec![value]);
            let store = St { space: Space::Global, ty, address, src, ..Default::default() };
            match holds {
                Some(reg) => self.builder.emit_if(PredOperand { reg, negated: true }, store),
                None => self.builder.emit(store),
            }
        }
    }

    /// Keeps in mind whether a check has failed, since a loop ends on it; from the record what failed before the launch.
    pub fn note_failures(&mut self, record: Option<Reg>) {
        let flag = self.pred("has_failed");
        self.failed = Some(flag);
        let Some(record) = record else {
            self.builder.emit(Mov { ty: Type::Pred, dst: flag, a: Operand::Int(0) });
            return;
        };
        let claimed = self.temp(Type::B32);
        self.builder.emit(Ld {
            // Checks of this launch may fail meanwhile.
            order: AccessOrder::Relaxed(Scope::Gpu),
            space: Space::Global,
            ty: Type::B32,
            dst: smallvec![claimed],
            address: Address::new(Base::Reg(record), 0),
            ..Default::default()
        });
        let (compare, ty, a, b) = (Compare::Ne, Type::U32, claimed.into(), Operand::Int(0));
        self.builder.emit(Setp { compare, ty, p: flag, a, b, ..Default::default() });
    }

    /// What a loop ends on, beside its own condition.
    pub fn ends_on_failure(&self, inst: Inst) -> Option<EndsOnFailure> {
        let flag = self.failed.filter(|_| Endless::of_loops(self.kernel).may_run_on(inst))?;
        let (mut of_warp, mut of_block) = (false, false);
        for region in &self.kernel.insts[inst].regions {
            self.kernel.walk(*region, &mut |_, inst| {
                of_warp |= self.kernel.insts[inst].opcode.is_of_warp();
                of_block |= self.kernel.insts[inst].opcode == Opcode::Barrier;
            });
        }
        let scope = match (of_block, of_warp) {
            (true, _) => Meeting::Block,
            (false, true) => Meeting::Warp,
            (false, false) => Meeting::Thread,
        };
        Some(EndsOnFailure { flag, scope })
    }

    /// Lets the threads that meet in a loop end it together; the predicate on which they do.
    pub fn meet_on_failure(&mut self, EndsOnFailure { flag, scope }: EndsOnFailure) -> Reg {
        let p = PredOperand { reg: flag, negated: false };
        match scope {
            Meeting::Thread => {}
            Meeting::Warp => {
                let mask = Operand::Int(0xffff_ffff);
                self.builder.emit(Vote { mode: VoteMode::Any, dst: flag, p, mask });
            }
            Meeting::Block => {
                let (op, barrier) = (BarrierRedOp::Or, Operand::Int(0));
                let threads = None;
                self.builder.emit(BarrierRed { aligned: true, op, dst: flag, barrier, threads, p });
            }
        }
        flag
    }
}

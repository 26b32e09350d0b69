//! The loop that runs a warp: fetch, apply the guard, execute, until the warp waits or ends.

use super::control::WarpState;
use super::copy::Pending;
use super::lanes::FULL;
use super::runner::Runner;
use super::{
    Outcome, atomic, bits, collective, compare, convert, fault, float, integer, matrix, memory, moves,
};
use crate::emulator::fault::FaultKind;
use crate::emulator::observe::{Event, Observer};
use crate::emulator::opcodes::{Control, CopyOp, MemorySpace};
use crate::emulator::program::Code;

/// Why a warp stopped running.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// Its time is up: other warps may have to move before it can.
    Slice,
    /// It is at a barrier.
    Barrier,
    /// All its lanes have exited.
    Done,
    /// The launch is being given up.
    Abandoned,
}

impl<O: Observer> Runner<'_, O> {
    /// Runs one warp until it pauses.
    pub fn run_warp(&mut self, at: usize) -> Outcome<Pause> {
        let (isa, program) = (self.isa, self.program);
        let warp = &mut self.warps[at];
        let r = &mut self.registers[at];
        let stop = (warp.executed + O::SLICE).min(self.limit);
        loop {
            if !warp.settle() {
                warp.state = WarpState::Done;
                return Ok(Pause::Done);
            }
            let pc = warp.pc as usize;
            let i = &program.code[pc];
            let mask = warp.active & (r.predicates[i.guard as usize] ^ i.guard_flip);
            if warp.executed >= stop {
                if warp.executed >= self.limit {
                    return fault(warp.active, FaultKind::InstructionLimit { limit: self.limit });
                }
                return Ok(Pause::Slice);
            }
            warp.executed += 1;
            warp.lane_executed += u64::from(if mask == FULL { 32 } else { mask.count_ones() });
            if O::ENABLED {
                let active = warp.active;
                let view = &self.view;
                let event = Event { pc, inst: i, warp: at, active, mask, registers: r, view };
                self.observer.instruction(&event)?;
            }
            if let Code::Control(Control::Branch) = i.code {
                warp.branch(mask, i.d, i.a);
                continue;
            }
            if mask == 0 {
                warp.pc += 1;
                continue;
            }
            match i.code {
                Code::Nop => {}
                Code::Int16(op) => integer::int16(isa, op, r, i, mask),
                Code::Int32(op) => integer::int32(isa, op, r, i, mask),
                Code::Int64(op) => integer::int64(isa, op, r, i, mask),
                Code::Wide(op) => integer::wide(isa, op, r, i, mask),
                Code::Bit(op) => bits::bits(isa, op, r, i, mask),
                Code::F32(op) => float::f32_ops(isa, op, r, i, mask),
                Code::F64(op) => float::f64_ops(isa, op, r, i, mask),
                Code::Float => program.formulas[i.imm as usize].run(r, i, mask),
                Code::Convert(op) => convert::convert(isa, op, r, i, mask),
                Code::ConvertAny => program.conversions[i.imm as usize].run(r, i, mask),
                Code::Move(op) => moves::moves(isa, op, r, &program.lists, i, mask, warp.executed),
                Code::Setp(ty, op) => {
                    let holds = compare::compare(isa, ty, op, r, i.a, i.b);
                    compare::setp(r, i, mask, holds);
                }
                Code::Set(ty, op) => {
                    let holds = compare::compare(isa, ty, op, r, i.a, i.b);
                    compare::set(r, i, mask, holds);
                }
                Code::Select(op) => compare::select(isa, op, r, i, mask),
                Code::Load(form) => {
                    if form.ordered && program.ordered_atomics && !self.has_turn {
                        if !self.turns.wait(self.worker, self.block) {
                            return Ok(Pause::Abandoned);
                        }
                        self.has_turn = true;
                    }
                    memory::load(isa, form, r, &mut self.view, &program.lists, i, mask, pc, at)?;
                }
                Code::Store(form) => {
                    memory::store(isa, form, r, &mut self.view, &program.lists, i, mask, pc, at)?;
                }
                Code::Atomic(form) => {
                    let crosses_blocks = matches!(form.space, MemorySpace::Global | MemorySpace::Generic);
                    if program.ordered_atomics && crosses_blocks && !self.has_turn {
                        if !self.turns.wait(self.worker, self.block) {
                            return Ok(Pause::Abandoned);
                        }
                        self.has_turn = true;
                    }
                    atomic::run(form, r, &mut self.view, i, mask, pc, at)?;
                }
                Code::Copy(CopyOp::Begin) => {
                    let form = &program.copies[i.imm as usize];
                    warp.copies.begin(form, r, &mut self.view, mask, pc, at)?;
                }
                Code::Copy(CopyOp::Commit) => warp.copies.commit(mask),
                Code::Copy(CopyOp::Wait) => warp.copies.wait(mask, i.imm, Pending::carry_out),
                Code::Collective(op) => collective::run(op, r, i, mask, warp.live)?,
                Code::LoadMatrix(form) => {
                    matrix::load(form, r, &mut self.view, &program.lists, i, mask, pc, at)?;
                }
                Code::Mma(form) => matrix::mma(form, r, &program.lists, i, mask)?,
                Code::Control(op) => match op {
                    Control::Branch => {}
                    Control::Exit => {
                        warp.exit(mask);
                        continue;
                    }
                    Control::Trap => return fault(mask, FaultKind::Trap),
                    Control::Breakpoint => return fault(mask, FaultKind::Breakpoint),
                    Control::WarpSync => {
                        collective::members(r, i.a, mask, warp.live)?;
                    }
                    Control::Unsupported => {
                        let reason = program.unsupported[i.imm as usize].clone();
                        return fault(mask, FaultKind::Unsupported { reason });
                    }
                    Control::BarrierSync | Control::BarrierArrive | Control::BarrierReduce(_) => {
                        let waits = self.barriers.arrive(op, at, warp, r, i, mask)?;
                        warp.pc += 1;
                        if waits {
                            return Ok(Pause::Barrier);
                        }
                        continue;
                    }
                },
            }
            warp.pc += 1;
        }
    }
}

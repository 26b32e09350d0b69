//! Decoding of branches, exits, barriers and warp-wide operations.

use cranelift_entity::EntityRef;
use krn_compiler::ptx::instruction::*;
use krn_compiler::ptx::{Operand, RegClass};

use super::decoder::{Decoded, Decoder, width};
use crate::emulator::opcodes::{Collective, Control};
use crate::emulator::program::{Code, Inst, NEVER, NOWHERE};

/// The target is the label's number until all labels are known.
pub(super) fn bra(op: &Bra) -> Inst {
    Inst { d: op.target.index() as u32, a: NEVER, ..Inst::new(Code::Control(Control::Branch)) }
}

/// `imm` is 1 for `ret`, as against `exit`.
pub(super) fn leave(op: &Leave) -> Inst {
    let code = match op.op {
        LeaveOp::Ret | LeaveOp::Exit => Control::Exit,
        LeaveOp::Trap => Control::Trap,
        LeaveOp::Brkpt => Control::Breakpoint,
    };
    Inst { imm: (op.op == LeaveOp::Ret).into(), ..Inst::new(Code::Control(code)) }
}

impl Decoder<'_> {
    fn threads(&mut self, threads: Option<Operand>) -> Decoded<u32> {
        threads.map_or(Ok(NOWHERE), |threads| self.src(threads, 32))
    }

    pub(super) fn barrier_sync(&mut self, op: &BarrierSync) -> Decoded {
        let (a, b) = (self.src(op.barrier, 32)?, self.threads(op.threads)?);
        Ok(Inst::with(Code::Control(Control::BarrierSync), 0, [a, b, 0]))
    }

    pub(super) fn barrier_arrive(&mut self, op: &BarrierArrive) -> Decoded {
        let (a, b) = (self.src(op.barrier, 32)?, self.src(op.threads, 32)?);
        Ok(Inst::with(Code::Control(Control::BarrierArrive), 0, [a, b, 0]))
    }

    pub(super) fn barrier_red(&mut self, op: &BarrierRed) -> Decoded {
        let (a, b) = (self.src(op.barrier, 32)?, self.threads(op.threads)?);
        let (c, imm) = self.predicate_operand(op.p)?;
        let d = match op.op {
            BarrierRedOp::Popc => self.dst(op.dst, 32)?,
            _ => self.dst_predicate(op.dst)?,
        };
        Ok(Inst { imm, ..Inst::with(Code::Control(Control::BarrierReduce(op.op)), d, [a, b, c]) })
    }

    pub(super) fn warp_sync(&mut self, op: &WarpSync) -> Decoded {
        let a = self.src(op.mask, 32)?;
        Ok(Inst::with(Code::Control(Control::WarpSync), 0, [a, 0, 0]))
    }

    pub(super) fn shfl(&mut self, op: &Shfl) -> Decoded {
        let sources = self.sources([op.a, op.b, op.c], 32)?;
        let mask = self.src(op.mask, 32)?;
        let d = self.dst(op.dst, 32)?;
        let p = self.dst_predicate_or_nowhere(op.p)?;
        let imm = i64::from(p) << 32 | i64::from(mask);
        Ok(Inst { imm, ..Inst::with(Code::Collective(Collective::Shfl(op.mode)), d, sources) })
    }

    pub(super) fn vote(&mut self, op: &Vote) -> Decoded {
        let (a, imm) = self.predicate_operand(op.p)?;
        let b = self.src(op.mask, 32)?;
        let d = match op.mode {
            VoteMode::Ballot => self.dst(op.dst, 32)?,
            _ => self.dst_predicate(op.dst)?,
        };
        Ok(Inst { imm, ..Inst::with(Code::Collective(Collective::Vote(op.mode)), d, [a, b, 0]) })
    }

    pub(super) fn match_(&mut self, op: &Match) -> Decoded {
        let bits = width(op.ty)?;
        let (a, b) = (self.src(op.a, bits)?, self.src(op.mask, 32)?);
        let c = self.dst_predicate_or_nowhere(op.p)?;
        let code = if bits == 64 { Collective::Match64(op.mode) } else { Collective::Match32(op.mode) };
        Ok(Inst::with(Code::Collective(code), self.dst(op.dst, 32)?, [a, b, c]))
    }

    pub(super) fn redux(&mut self, op: &Redux) -> Decoded {
        let (a, b) = (self.src(op.a, 32)?, self.src(op.mask, 32)?);
        let code = if op.ty.is_signed() { Collective::ReduxS(op.op) } else { Collective::ReduxU(op.op) };
        Ok(Inst::with(Code::Collective(code), self.dst(op.dst, 32)?, [a, b, 0]))
    }

    pub(super) fn activemask(&mut self, op: &Activemask) -> Decoded {
        let RegClass::B32 = self.class(op.dst)? else {
            return Err("activemask yields 32 bits".to_owned());
        };
        Ok(Inst::with(Code::Collective(Collective::Activemask), self.dst(op.dst, 32)?, [0; 3]))
    }
}

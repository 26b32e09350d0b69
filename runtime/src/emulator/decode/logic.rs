//! Decoding of moves, bit operations, comparison and selection.

use krn_compiler::ptx::instruction::*;
use krn_compiler::ptx::{Operand, RegClass, SpecialReg, Type};

use super::decoder::{Decoded, Decoder, width};
use crate::emulator::opcodes::{BitOp, Compared, MoveOp, Selection, combine};
use crate::emulator::program::Place;
use crate::emulator::program::{ALWAYS, Code, Inst, NOWHERE};

impl Decoder<'_> {
    pub(super) fn mov(&mut self, op: &Mov) -> Decoded {
        let class = self.class(op.dst)?;
        if let Operand::Special(SpecialReg::Clock | SpecialReg::Clock64 | SpecialReg::GlobalTimer) = op.a {
            let code = if class.bits() == 64 { MoveOp::Clock64 } else { MoveOp::Clock32 };
            return Ok(Inst::with(Code::Move(code), self.dst(op.dst, class.bits())?, [0; 3]));
        }
        match class {
            RegClass::Pred => {
                let a = match op.a {
                    Operand::Reg(reg) => self.predicate(reg)?,
                    Operand::Int(0) => {
                        let code = Code::Move(MoveOp::ClearPredicate);
                        return Ok(Inst::with(code, self.dst_predicate(op.dst)?, [0; 3]));
                    }
                    Operand::Int(_) => ALWAYS,
                    _ => {
                        return Err(
                            "a predicate can only be moved from a predicate or a truth value".to_owned()
                        );
                    }
                };
                Ok(Inst::with(Code::Move(MoveOp::MovePredicate), self.dst_predicate(op.dst)?, [a, 0, 0]))
            }
            RegClass::B128 => {
                let Operand::Reg(from) = op.a else {
                    return Err("128 bits can only be moved from a register".to_owned());
                };
                let (to, from) = (self.pair(op.dst)?, self.pair(from)?);
                self.current.reads.extend(from.map(Place::Wide64));
                self.current.writes.extend(to.map(Place::Wide64));
                Ok(self.many(Code::Move(MoveOp::Many64), &[(to[0], from[0]), (to[1], from[1])]))
            }
            class => {
                let a = self.src(op.a, class.bits())?;
                let code = if class.bits() == 64 { MoveOp::Move64 } else { MoveOp::Move32 };
                Ok(Inst::with(Code::Move(code), self.dst(op.dst, class.bits())?, [a, 0, 0]))
            }
        }
    }

    /// The two columns of a 128-bit register.
    pub(super) fn pair(&self, reg: krn_compiler::ptx::Reg) -> Decoded<[u32; 2]> {
        let column = self.column(reg, 128)?;
        Ok([column, column + 1])
    }

    /// Several moves in one instruction: destination and source of each.
    pub(super) fn many(&mut self, code: Code, pairs: &[(u32, u32)]) -> Inst {
        let start = self.program.lists.len() as u32;
        self.program.lists.extend(pairs.iter().flat_map(|(to, from)| [*to, *from]));
        Inst::with(code, 0, [start, pairs.len() as u32, 0])
    }

    pub(super) fn pack(&mut self, op: &Pack) -> Decoded {
        match (op.ty.bits(), op.parts.as_slice()) {
            (32, [a, b]) => {
                let sources = self.sources([*a, *b], 16)?;
                Ok(Inst::with(Code::Move(MoveOp::Pack32), self.dst(op.dst, 32)?, sources))
            }
            (64, [a, b]) => {
                let sources = self.sources([*a, *b], 32)?;
                Ok(Inst::with(Code::Move(MoveOp::Pack64), self.dst(op.dst, 64)?, sources))
            }
            (64, [a, b, c, d]) => {
                let sources = self.sources([*a, *b, *c], 16)?;
                let last = self.src(*d, 16)?;
                let inst = Inst::with(Code::Move(MoveOp::Pack64x4), self.dst(op.dst, 64)?, sources);
                Ok(Inst { imm: last.into(), ..inst })
            }
            (128, [a, b]) => {
                let [a, b, _] = self.sources([*a, *b], 64)?;
                let to = self.pair(op.dst)?;
                self.current.writes.extend(to.map(Place::Wide64));
                Ok(self.many(Code::Move(MoveOp::Many64), &[(to[0], a), (to[1], b)]))
            }
            (bits, parts) => Err(format!("packing {} parts into {bits} bits is not modelled", parts.len())),
        }
    }

    pub(super) fn unpack(&mut self, op: &Unpack) -> Decoded {
        match (op.ty.bits(), op.parts.as_slice()) {
            (bits @ (32 | 64), [d, e]) => {
                let a = self.src(op.a, bits)?;
                let mut to = [NOWHERE; 2];
                for (to, part) in to.iter_mut().zip([d, e]) {
                    if let Some(reg) = part {
                        *to = self.dst(*reg, bits / 2)?;
                    }
                }
                let code = if bits == 64 { MoveOp::Unpack64 } else { MoveOp::Unpack32 };
                Ok(Inst::with(Code::Move(code), to[0], [a, to[1], 0]))
            }
            (64, parts) if parts.len() == 4 => {
                let a = self.src(op.a, 64)?;
                let mut to = Vec::new();
                for part in parts {
                    to.push(match part {
                        Some(reg) => self.dst(*reg, 16)?,
                        None => NOWHERE,
                    });
                }
                let start = self.program.lists.len() as u32;
                self.program.lists.extend(to);
                Ok(Inst::with(Code::Move(MoveOp::Unpack64x4), 0, [a, start, 0]))
            }
            (128, [d, e]) => {
                let Operand::Reg(from) = op.a else {
                    return Err("128 bits can only be unpacked from a register".to_owned());
                };
                let from = self.pair(from)?;
                self.current.reads.extend(from.map(Place::Wide64));
                let mut pairs = Vec::new();
                for (part, from) in [d, e].into_iter().zip(from) {
                    if let Some(reg) = part {
                        pairs.push((self.dst(*reg, 64)?, from));
                    }
                }
                Ok(self.many(Code::Move(MoveOp::Many64), &pairs))
            }
            (bits, parts) => Err(format!("unpacking {bits} bits into {} parts is not modelled", parts.len())),
        }
    }

    pub(super) fn logic_binary(&mut self, op: &LogicBinary) -> Decoded {
        if op.ty == Type::Pred {
            let (Operand::Reg(a), Operand::Reg(b)) = (op.a, op.b) else {
                return Err("predicates can only be combined with predicates".to_owned());
            };
            let code = match op.op {
                LogicBinaryOp::And => BitOp::PredAnd,
                LogicBinaryOp::Or => BitOp::PredOr,
                LogicBinaryOp::Xor => BitOp::PredXor,
            };
            let sources = [self.predicate(a)?, self.predicate(b)?, 0];
            return Ok(Inst::with(Code::Bit(code), self.dst_predicate(op.dst)?, sources));
        }
        let bits = width(op.ty)?;
        let code = match (op.op, bits) {
            (LogicBinaryOp::And, 64) => BitOp::And64,
            (LogicBinaryOp::Or, 64) => BitOp::Or64,
            (LogicBinaryOp::Xor, 64) => BitOp::Xor64,
            (LogicBinaryOp::And, _) => BitOp::And,
            (LogicBinaryOp::Or, _) => BitOp::Or,
            (LogicBinaryOp::Xor, _) => BitOp::Xor,
        };
        let sources = self.sources([op.a, op.b], bits)?;
        Ok(Inst::with(Code::Bit(code), self.dst(op.dst, bits)?, sources))
    }

    pub(super) fn logic_unary(&mut self, op: &LogicUnary) -> Decoded {
        if op.ty == Type::Pred {
            let (Operand::Reg(a), LogicUnaryOp::Not) = (op.a, op.op) else {
                return Err("only `not` of a predicate register exists".to_owned());
            };
            let a = self.predicate(a)?;
            return Ok(Inst::with(Code::Bit(BitOp::PredNot), self.dst_predicate(op.dst)?, [a, 0, 0]));
        }
        let bits = width(op.ty)?;
        let code = match (op.op, bits) {
            (LogicUnaryOp::Not, 16) => BitOp::Not16,
            (LogicUnaryOp::Not, 32) => BitOp::Not,
            (LogicUnaryOp::Not, _) => BitOp::Not64,
            (LogicUnaryOp::Cnot, 64) => BitOp::Cnot64,
            (LogicUnaryOp::Cnot, _) => BitOp::Cnot,
        };
        let sources = self.sources([op.a], bits)?;
        Ok(Inst::with(Code::Bit(code), self.dst(op.dst, bits)?, sources))
    }

    pub(super) fn shift(&mut self, op: &Shift) -> Decoded {
        let bits = width(op.ty)?;
        let code = match (op.op, bits, op.ty.is_signed()) {
            (ShiftOp::Left, 16, _) => BitOp::Shl16,
            (ShiftOp::Left, 32, _) => BitOp::Shl,
            (ShiftOp::Left, ..) => BitOp::Shl64,
            (ShiftOp::Right, 16, true) => BitOp::ShrS16,
            (ShiftOp::Right, 32, true) => BitOp::ShrS,
            (ShiftOp::Right, 64, true) => BitOp::ShrS64,
            (ShiftOp::Right, 64, false) => BitOp::ShrU64,
            (ShiftOp::Right, ..) => BitOp::ShrU,
        };
        let sources = [self.src(op.a, bits)?, self.src(op.b, 32)?, 0];
        Ok(Inst::with(Code::Bit(code), self.dst(op.dst, bits)?, sources))
    }

    pub(super) fn funnel_shift(&mut self, op: &FunnelShift) -> Decoded {
        let code = match (op.direction, op.mode) {
            (FunnelDirection::Left, FunnelMode::Wrap) => BitOp::FunnelLeftWrap,
            (FunnelDirection::Left, FunnelMode::Clamp) => BitOp::FunnelLeftClamp,
            (FunnelDirection::Right, FunnelMode::Wrap) => BitOp::FunnelRightWrap,
            (FunnelDirection::Right, FunnelMode::Clamp) => BitOp::FunnelRightClamp,
        };
        let sources = self.sources([op.lo, op.hi, op.amount], 32)?;
        Ok(Inst::with(Code::Bit(code), self.dst(op.dst, 32)?, sources))
    }

    pub(super) fn bit_count(&mut self, op: &BitCount) -> Decoded {
        let bits = width(op.ty)?;
        let code = match (op.op, bits, op.ty.is_signed()) {
            (BitCountOp::Popc, 64, _) => BitOp::Popc64,
            (BitCountOp::Popc, ..) => BitOp::Popc,
            (BitCountOp::Clz, 64, _) => BitOp::Clz64,
            (BitCountOp::Clz, ..) => BitOp::Clz,
            (BitCountOp::Brev, 64, _) => BitOp::Brev64,
            (BitCountOp::Brev, ..) => BitOp::Brev,
            (BitCountOp::Bfind, 64, true) => BitOp::BfindS64,
            (BitCountOp::Bfind, 64, false) => BitOp::BfindU64,
            (BitCountOp::Bfind, _, true) => BitOp::BfindS,
            (BitCountOp::Bfind, _, false) => BitOp::BfindU,
        };
        let sources = self.sources([op.a], bits)?;
        let d = self.dst(op.dst, if op.op == BitCountOp::Brev { bits } else { 32 })?;
        Ok(Inst { imm: op.shift_amount.into(), ..Inst::with(Code::Bit(code), d, sources) })
    }

    pub(super) fn bit_extract(&mut self, op: &BitExtract) -> Decoded {
        let bits = width(op.ty)?;
        let code = match (bits, op.ty.is_signed()) {
            (64, true) => BitOp::BfeS64,
            (64, false) => BitOp::BfeU64,
            (_, true) => BitOp::BfeS,
            (_, false) => BitOp::BfeU,
        };
        let sources = [self.src(op.a, bits)?, self.src(op.position, 32)?, self.src(op.length, 32)?];
        Ok(Inst::with(Code::Bit(code), self.dst(op.dst, bits)?, sources))
    }

    pub(super) fn bit_insert(&mut self, op: &BitInsert) -> Decoded {
        let bits = width(op.ty)?;
        let code = if bits == 64 { BitOp::Bfi64 } else { BitOp::Bfi };
        let sources = [self.src(op.a, bits)?, self.src(op.b, bits)?, self.src(op.position, 32)?];
        let imm = self.src(op.length, 32)?.into();
        Ok(Inst { imm, ..Inst::with(Code::Bit(code), self.dst(op.dst, bits)?, sources) })
    }

    pub(super) fn prmt(&mut self, op: &Prmt) -> Decoded {
        let sources = self.sources([op.a, op.b, op.selector], 32)?;
        Ok(Inst::with(Code::Bit(BitOp::Prmt(op.mode)), self.dst(op.dst, 32)?, sources))
    }

    pub(super) fn lop3(&mut self, op: &Lop3) -> Decoded {
        let sources = self.sources([op.a, op.b, op.c], 32)?;
        let inst = Inst::with(Code::Bit(BitOp::Lop3), self.dst(op.dst, 32)?, sources);
        Ok(Inst { imm: op.table.into(), ..inst })
    }

    fn combine(&mut self, with: Option<Combine>) -> Decoded<i64> {
        let Some(with) = with else { return Ok(combine::NONE) };
        let (column, negated) = self.predicate_operand(with.with)?;
        let operation = match with.op {
            BoolOp::And => combine::AND,
            BoolOp::Or => combine::OR,
            BoolOp::Xor => combine::XOR,
        };
        Ok(combine::pack(operation, column, negated == 1))
    }

    pub(super) fn setp(&mut self, op: &Setp) -> Decoded {
        let ty = compared(op.ty, op.ftz)?;
        let [a, b, _] = self.sources([op.a, op.b], width(op.ty)?)?;
        let imm = self.combine(op.combine)?;
        let d = self.dst_predicate(op.p)?;
        let q = self.dst_predicate_or_nowhere(op.q)?;
        Ok(Inst { imm, ..Inst::with(Code::Setp(ty, op.compare), d, [a, b, q]) })
    }

    pub(super) fn set(&mut self, op: &Set) -> Decoded {
        let ty = compared(op.ty, op.ftz)?;
        let [a, b, _] = self.sources([op.a, op.b], width(op.ty)?)?;
        let float = if op.dst_ty == Type::F32 { combine::FLOAT } else { 0 };
        let imm = self.combine(op.combine)? | float;
        if op.dst_ty.bits() != 32 {
            return Err(format!("set with a result of .{} is not modelled", op.dst_ty));
        }
        Ok(Inst { imm, ..Inst::with(Code::Set(ty, op.compare), self.dst(op.dst, 32)?, [a, b, 0]) })
    }

    pub(super) fn selp(&mut self, op: &Selp) -> Decoded {
        let bits = width(op.ty)?;
        let [a, b, _] = self.sources([op.a, op.b], bits)?;
        let p = self.predicate(op.p)?;
        let code = if bits == 64 { Selection::Selp64 } else { Selection::Selp32 };
        Ok(Inst::with(Code::Select(code), self.dst(op.dst, bits)?, [a, b, p]))
    }

    pub(super) fn slct(&mut self, op: &Slct) -> Decoded {
        let bits = width(op.ty)?;
        let [a, b, _] = self.sources([op.a, op.b], bits)?;
        let c = self.src(op.c, 32)?;
        let code = match (bits, op.c_ty) {
            (64, Type::F32) => Selection::Slct64F,
            (64, _) => Selection::Slct64S,
            (_, Type::F32) => Selection::Slct32F,
            _ => Selection::Slct32S,
        };
        Ok(Inst::with(Code::Select(code), self.dst(op.dst, bits)?, [a, b, c]))
    }
}

fn compared(ty: Type, ftz: bool) -> Decoded<Compared> {
    Ok(match ty {
        Type::B16 | Type::U16 => Compared::U16,
        Type::S16 => Compared::S16,
        Type::B32 | Type::U32 => Compared::U32,
        Type::S32 => Compared::S32,
        Type::B64 | Type::U64 => Compared::U64,
        Type::S64 => Compared::S64,
        Type::F16 => Compared::F16,
        Type::Bf16 => Compared::Bf16,
        Type::F32 if ftz => Compared::F32Ftz,
        Type::F32 => Compared::F32,
        Type::F64 => Compared::F64,
        other => return Err(format!("comparison of .{other} is not modelled")),
    })
}

//! Turns a PTX entry into a [`Program`]: registers become columns, labels become positions, operands that are known
//! at launch become columns that are filled once.
//!
//! Decoding never fails. An instruction that makes no sense or is not modelled becomes one that faults when it is
//! reached, with the reason.

mod arithmetic;
mod cfg;
mod control;
mod decoder;
mod logic;
mod matrix;
mod memory;
mod pressure;

use cranelift_entity::EntityRef;
use krn_compiler::ptx::{Entry, Module, Op, RegClass, Register, Statement};

use super::opcodes::Control;
use super::program::{ALWAYS, Code, Effects, Inst, Place, Program};
use cfg::Graph;
pub use decoder::Addresses;
use decoder::{Decoded, Decoder, Reason};

/// Decodes an entry of `module`.
pub fn decode(module: &Module, entry: &Entry, addresses: &Addresses) -> Program {
    let mut decoder = Decoder::new(module, entry, addresses);
    decoder.body();
    decoder.finish()
}

/// How many registers a thread of a decoded entry takes, estimated ([`pressure`]): no more than the assembler may give
/// it in blocks of so many threads.
pub fn estimate_registers(entry: &Entry, program: &Program, threads: u64) -> u32 {
    let needed = pressure::registers(&Graph::new(&program.code), &program.code, &program.effects);
    pressure::allowed(&entry.bounds, threads).min(needed)
}

impl Decoder<'_> {
    fn body(&mut self) {
        let mut location = None;
        let mut labels = vec![u32::MAX; self.entry.labels.len()];
        for (at, statement) in self.entry.body.iter().enumerate() {
            match statement {
                Statement::Label(label) => labels[label.index()] = self.program.code.len() as u32,
                Statement::Loc(loc) => location = Some(*loc),
                Statement::Instruction(instruction) => {
                    let decoded = self.op(&instruction.op).and_then(|inst| {
                        let Some(guard) = instruction.guard else { return Ok(inst) };
                        let column = self.predicate(guard.reg)?;
                        let guard_flip = if guard.negated { u32::MAX } else { 0 };
                        Ok(Inst { guard: column, guard_flip, ..inst })
                    });
                    let inst = decoded.unwrap_or_else(|reason| self.unsupported(reason));
                    self.push(inst, at, location);
                }
                _ => {}
            }
        }
        self.push(Inst::new(Code::Control(Control::Exit)), self.entry.body.len(), location);
        for inst in &mut self.program.code {
            if inst.code == Code::Control(Control::Branch) {
                match labels.get(inst.d as usize) {
                    Some(target) if *target != u32::MAX => inst.d = *target,
                    _ => {
                        let row = self.program.unsupported.len() as i64;
                        self.program.unsupported.push("its label is nowhere".to_owned());
                        *inst = Inst { imm: row, ..Inst::new(Code::Control(Control::Unsupported)) };
                    }
                }
            }
        }
    }

    fn push(&mut self, inst: Inst, statement: usize, location: Option<krn_compiler::ptx::Loc>) {
        self.program.code.push(inst);
        self.program.statements.push(statement as u32);
        self.program.locations.push(location);
        self.effects.push(std::mem::take(&mut self.current));
    }

    fn unsupported(&mut self, reason: Reason) -> Inst {
        self.current = Effects::default();
        let row = self.program.unsupported.len() as i64;
        self.program.unsupported.push(reason);
        Inst { imm: row, ..Inst::new(Code::Control(Control::Unsupported)) }
    }

    fn finish(mut self) -> Program {
        let graph = Graph::new(&self.program.code);
        graph.joins(&mut self.program.code);
        for place in graph.read_first(&self.program.code, &self.effects) {
            match place {
                Place::Wide32(column) => self.program.cleared32.push(column),
                Place::Wide64(column) => self.program.cleared64.push(column),
                Place::Predicate(column) => self.program.cleared_predicates.push(column),
            }
        }
        // Columns that are filled at launch count as read first; they must not be cleared.
        self.program.cleared32.retain(|column| !self.fixed32.values().any(|fixed| fixed == column));
        self.program.cleared64.retain(|column| !self.fixed64.values().any(|fixed| fixed == column));
        self.program.cleared_predicates.retain(|column| *column != ALWAYS);
        self.program.ordered_atomics = self.order_shows();
        self.program.effects = self.effects;
        let place = |(register, column): (&Register, &u32)| match register.class {
            RegClass::Pred => Place::Predicate(*column),
            RegClass::B16 | RegClass::B32 | RegClass::F32 => Place::Wide32(*column),
            RegClass::B64 | RegClass::F64 | RegClass::B128 => Place::Wide64(*column),
        };
        self.program.registers = self.entry.registers.values().zip(&self.columns).map(place).collect();
        self.program.variables = self.offsets;
        self.program
    }

    /// Whether the order in which blocks do their atomics can show in the result.
    fn order_shows(&self) -> bool {
        let Some((first, _)) = self.atomics.first() else { return false };
        let is_read = |place: &Place| self.effects.iter().any(|effect| effect.reads.contains(place));
        !self
            .atomics
            .iter()
            .all(|(op, result)| op == first && op.commutes() && !result.as_ref().is_some_and(is_read))
    }

    /// Decodes one operation, without its guard.
    fn op(&mut self, op: &Op) -> Decoded {
        match op {
            Op::IntBinary(op) => self.int_binary(op),
            Op::IntMad(op) => self.int_mad(op),
            Op::IntUnary(op) => self.int_unary(op),
            Op::Dp4a(op) => self.dp4a(op),
            Op::FloatBinary(op) => self.float_binary(op),
            Op::Fma(op) => self.fma(op),
            Op::FloatUnary(op) => self.float_unary(op),
            Op::Copysign(op) => self.copysign(op),
            Op::Testp(op) => self.testp(op),
            Op::Cvt(op) => self.cvt(op),
            Op::CvtPack(op) => self.cvt_pack(op),
            Op::CvtPackBytes(op) => self.cvt_pack_bytes(op),
            Op::Mov(op) => self.mov(op),
            Op::Pack(op) => self.pack(op),
            Op::Unpack(op) => self.unpack(op),
            Op::LogicBinary(op) => self.logic_binary(op),
            Op::LogicUnary(op) => self.logic_unary(op),
            Op::Shift(op) => self.shift(op),
            Op::FunnelShift(op) => self.funnel_shift(op),
            Op::BitCount(op) => self.bit_count(op),
            Op::BitExtract(op) => self.bit_extract(op),
            Op::BitInsert(op) => self.bit_insert(op),
            Op::Prmt(op) => self.prmt(op),
            Op::Lop3(op) => self.lop3(op),
            Op::Setp(op) => self.setp(op),
            Op::Set(op) => self.set(op),
            Op::Selp(op) => self.selp(op),
            Op::Slct(op) => self.slct(op),
            Op::Ld(op) => self.ld(op),
            Op::St(op) => self.st(op),
            Op::Atom(op) => self.atom(op),
            Op::Red(op) => self.red(op),
            Op::Cvta(op) => self.cvta(op),
            Op::CpAsync(op) => self.cp_async(op),
            Op::CpAsyncCommit(_) => Ok(memory::commit()),
            Op::CpAsyncWait(op) => Ok(memory::wait(op)),
            // Memory is always coherent here, nothing is cached or slow, and one grid runs after the other.
            Op::Prefetch(_) | Op::Fence(_) | Op::Membar(_) | Op::Nanosleep(_) | Op::GridDep(_) => {
                Ok(Inst::new(Code::Nop))
            }
            Op::BarrierSync(op) => self.barrier_sync(op),
            Op::BarrierArrive(op) => self.barrier_arrive(op),
            Op::BarrierRed(op) => self.barrier_red(op),
            Op::WarpSync(op) => self.warp_sync(op),
            Op::Shfl(op) => self.shfl(op),
            Op::Vote(op) => self.vote(op),
            Op::Match(op) => self.match_(op),
            Op::Redux(op) => self.redux(op),
            Op::Activemask(op) => self.activemask(op),
            Op::Mma(op) => self.mma(op),
            Op::LdMatrix(op) => self.ld_matrix(op),
            Op::Bra(op) => Ok(control::bra(op)),
            Op::Leave(op) => Ok(control::leave(op)),
        }
    }
}

//! Turns a PTX entry into a [`Program`]: registers become columns, labels become positions, operands that are known
//! at launch become columns that are filled once.
//!
//! Decoding never fails. An instruction that makes no sense or is not modelled becomes one that faults when it is
//! reached, with the reason.

mod arithmetic;
mod cfg;
mod control;
mod logic;
mod memory;
mod pressure;

use cranelift_entity::EntityRef;
use krn_compiler::ptx::{
    Entry, Length, Module, ModuleVariable, Op, Operand, PredOperand, Reg, RegClass, Space, SpecialReg,
    Statement, Symbol, Type,
};
use rustc_hash::FxHashMap;

use super::exec::atomic::AtomicOp;
use super::exec::control::Control;
use super::program::{ALWAYS, Code, Fixed, Inst, NOWHERE, Program};
pub use cfg::Effects;
use cfg::{Graph, Place};

/// The reason why an instruction cannot be decoded.
type Reason = String;
type Decoded<T = Inst> = Result<T, Reason>;

/// Where the module-level variables are: addresses within their own state space, in order of the variables.
pub type Addresses = Vec<u64>;

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

/// The state of decoding one entry.
struct Decoder<'a> {
    module: &'a Module,
    entry: &'a Entry,
    addresses: &'a Addresses,
    program: Program,
    /// For each register, its column.
    columns: Vec<u32>,
    fixed32: FxHashMap<Fixed, u32>,
    fixed64: FxHashMap<Fixed, u32>,
    /// For each variable of the entry, its offset in shared or local memory.
    offsets: Vec<u64>,
    /// For each module-level `.shared` variable of fixed size, its offset.
    shared_offsets: FxHashMap<ModuleVariable, u64>,
    param_offsets: Vec<u64>,
    param_bytes: u64,
    /// What the instruction being decoded reads and writes.
    current: Effects,
    effects: Vec<Effects>,
    /// Atomics that other blocks can see, with the result's column if there is one.
    atomics: Vec<(AtomicOp, Option<Place>)>,
}

impl<'a> Decoder<'a> {
    fn new(module: &'a Module, entry: &'a Entry, addresses: &'a Addresses) -> Self {
        let mut program = Program { predicates: ALWAYS + 1, ..Program::default() };
        let columns =
            entry.registers.values().map(|register| allocate(&mut program, register.class)).collect();
        let (param_offsets, param_bytes) = entry.param_layout();
        let mut decoder = Decoder {
            module,
            entry,
            addresses,
            program,
            columns,
            fixed32: FxHashMap::default(),
            fixed64: FxHashMap::default(),
            offsets: Vec::new(),
            shared_offsets: FxHashMap::default(),
            param_offsets,
            param_bytes,
            current: Effects::default(),
            effects: Vec::new(),
            atomics: Vec::new(),
        };
        decoder.lay_out_variables();
        decoder
    }

    /// Places shared and local variables; dynamic shared memory follows the fixed part, aligned to 16 bytes.
    fn lay_out_variables(&mut self) {
        let (mut shared, mut local) = (0u64, 0u64);
        for (id, variable) in &self.module.variables {
            if variable.space == Space::Shared && variable.length != Length::Unsized {
                let offset = shared.next_multiple_of(variable.align.max(1).into());
                shared = offset.saturating_add(variable.bytes());
                self.shared_offsets.insert(id, offset);
            }
        }
        for variable in self.entry.variables.values() {
            let end = if variable.space == Space::Local { &mut local } else { &mut shared };
            let offset = end.next_multiple_of(variable.align.max(1).into());
            *end = offset.saturating_add(variable.bytes());
            self.offsets.push(offset);
        }
        let dynamic = self.module.variables.values().any(|variable| variable.length == Length::Unsized);
        self.program.shared_bytes = if dynamic { shared.next_multiple_of(16) } else { shared };
        self.program.local_bytes = local;
    }

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
            Op::Bra(op) => Ok(control::bra(op)),
            Op::Leave(op) => Ok(control::leave(op)),
        }
    }

    fn class(&self, reg: Reg) -> Decoded<RegClass> {
        let register = self.entry.registers.get(reg);
        register.map(|register| register.class).ok_or_else(|| format!("it has no register {reg}"))
    }

    fn name(&self, reg: Reg) -> &str {
        self.entry.registers.get(reg).map_or("?", |register| register.name.as_str())
    }

    /// The column of a register that must have so many bits; 16-bit and 32-bit registers share a kind of column.
    fn column(&self, reg: Reg, bits: u32) -> Decoded<u32> {
        let class = self.class(reg)?;
        let fits = match bits {
            16 | 32 => class.bits() == bits,
            bits => class.bits() == bits && class != RegClass::Pred,
        };
        if fits {
            Ok(self.columns[reg.index()])
        } else {
            Err(format!("{} is a .{class} register where {bits} bits are wanted", self.name(reg)))
        }
    }

    fn predicate(&mut self, reg: Reg) -> Decoded<u32> {
        let column = self.predicate_column(reg)?;
        self.current.reads.push(Place::Predicate(column));
        Ok(column)
    }

    fn predicate_column(&self, reg: Reg) -> Decoded<u32> {
        match self.class(reg)? {
            RegClass::Pred => Ok(self.columns[reg.index()]),
            _ => Err(format!("{} is no predicate", self.name(reg))),
        }
    }

    /// A predicate and whether it is complemented, as 1 or 0.
    fn predicate_operand(&mut self, operand: PredOperand) -> Decoded<(u32, i64)> {
        Ok((self.predicate(operand.reg)?, operand.negated.into()))
    }

    fn dst_predicate(&mut self, reg: Reg) -> Decoded<u32> {
        let column = self.predicate_column(reg)?;
        self.current.writes.push(Place::Predicate(column));
        Ok(column)
    }

    fn dst_predicate_or_nowhere(&mut self, reg: Option<Reg>) -> Decoded<u32> {
        reg.map_or(Ok(NOWHERE), |reg| self.dst_predicate(reg))
    }

    /// A destination of so many bits: 16, 32 or 64.
    fn dst(&mut self, reg: Reg, bits: u32) -> Decoded<u32> {
        let column = self.column(reg, bits)?;
        let place = if bits == 64 { Place::Wide64(column) } else { Place::Wide32(column) };
        self.current.writes.push(place);
        Ok(column)
    }

    /// A source of so many bits: 16, 32 or 64.
    fn src(&mut self, operand: Operand, bits: u32) -> Decoded<u32> {
        if let Operand::Reg(reg) = operand {
            let column = self.column(reg, bits)?;
            let place = if bits == 64 { Place::Wide64(column) } else { Place::Wide32(column) };
            self.current.reads.push(place);
            return Ok(column);
        }
        let fixed = self.fixed_value(operand, bits)?;
        Ok(if bits == 64 { self.fixed_column64(fixed) } else { self.fixed_column32(fixed) })
    }

    /// The three usual sources of one width.
    fn sources<const N: usize>(&mut self, operands: [Operand; N], bits: u32) -> Decoded<[u32; 3]> {
        let mut columns = [0; 3];
        for (column, operand) in columns.iter_mut().zip(operands) {
            *column = self.src(operand, bits)?;
        }
        Ok(columns)
    }

    fn fixed_value(&mut self, operand: Operand, bits: u32) -> Decoded<Fixed> {
        let value = match operand {
            Operand::Int(value) => value as u64,
            Operand::F32(value) if bits == 64 => f64::from(f32::from_bits(value)).to_bits(),
            Operand::F32(value) => value.into(),
            Operand::F64(value) if bits == 64 => value,
            Operand::F64(value) => (f64::from_bits(value) as f32).to_bits().into(),
            Operand::Symbol(symbol, offset) => {
                let (_, address) = self.symbol(symbol)?;
                address.wrapping_add(offset as u64)
            }
            Operand::Special(
                special @ (SpecialReg::Clock | SpecialReg::Clock64 | SpecialReg::GlobalTimer),
            ) => return Err(format!("{} can only be moved to a register", special.name())),
            Operand::Special(special) => return Ok(Fixed::Special(special)),
            Operand::Reg(_) => return Err("a constant is wanted".to_owned()),
        };
        let keep = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        Ok(Fixed::Value(value & keep))
    }

    fn fixed_column32(&mut self, fixed: Fixed) -> u32 {
        *self.fixed32.entry(fixed).or_insert_with(|| {
            let column = allocate(&mut self.program, RegClass::B32);
            self.program.fixed32.push((column, fixed));
            column
        })
    }

    fn fixed_column64(&mut self, fixed: Fixed) -> u32 {
        *self.fixed64.entry(fixed).or_insert_with(|| {
            let column = allocate(&mut self.program, RegClass::B64);
            self.program.fixed64.push((column, fixed));
            column
        })
    }

    /// A symbol's state space and its address in it.
    fn symbol(&self, symbol: Symbol) -> Decoded<(Space, u64)> {
        match symbol {
            Symbol::Param(param) => {
                let offset = self.param_offsets.get(param.index());
                Ok((Space::Param, *offset.ok_or("it names a parameter that does not exist")?))
            }
            Symbol::Entry(variable) => {
                let offset =
                    self.offsets.get(variable.index()).ok_or("it names a variable that does not exist")?;
                Ok((self.entry.variables[variable].space, *offset))
            }
            Symbol::Module(id) => {
                let variable =
                    self.module.variables.get(id).ok_or("it names a variable that does not exist")?;
                let address = match (variable.space, variable.length) {
                    (Space::Shared, Length::Unsized) => Some(self.program.shared_bytes),
                    (Space::Shared, _) => self.shared_offsets.get(&id).copied(),
                    _ => self.addresses.get(id.index()).copied(),
                };
                Ok((variable.space, address.ok_or("it names a variable without an address")?))
            }
        }
    }
}

/// A new column, or two for 128 bits.
fn allocate(program: &mut Program, class: RegClass) -> u32 {
    let (counter, columns) = match class {
        RegClass::Pred => (&mut program.predicates, 1),
        RegClass::B16 | RegClass::B32 | RegClass::F32 => (&mut program.columns32, 1),
        RegClass::B64 | RegClass::F64 => (&mut program.columns64, 1),
        RegClass::B128 => (&mut program.columns64, 2),
    };
    let column = *counter;
    *counter += columns;
    column
}

/// The bits of a type that arithmetic is done in.
fn width(ty: Type) -> Decoded<u32> {
    match ty.bits() {
        bits @ (16 | 32 | 64) => Ok(bits),
        _ => Err(format!("there is no such operation on .{ty}")),
    }
}

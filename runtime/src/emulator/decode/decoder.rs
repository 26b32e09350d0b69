//! The state of decoding an entry: which columns and addresses its registers and variables have.

use cranelift_entity::EntityRef;
use krn_compiler::ptx::{
    Entry, Length, Module, ModuleVariable, Operand, PredOperand, Reg, RegClass, Space, SpecialReg, Symbol,
    Type,
};
use rustc_hash::FxHashMap;

use crate::emulator::opcodes::AtomicOp;
use crate::emulator::program::{ALWAYS, Effects, Fixed, Inst, NOWHERE, Place, Program};

/// Where the module-level variables are: addresses within their own state space, in order of the variables.
pub type Addresses = Vec<u64>;

/// The reason why an instruction cannot be decoded.
pub(super) type Reason = String;
pub(super) type Decoded<T = Inst> = Result<T, Reason>;

/// The state of decoding one entry.
pub(super) struct Decoder<'a> {
    pub(super) module: &'a Module,
    pub(super) entry: &'a Entry,
    pub(super) addresses: &'a Addresses,
    pub(super) program: Program,
    /// For each register, its column.
    pub(super) columns: Vec<u32>,
    pub(super) fixed32: FxHashMap<Fixed, u32>,
    pub(super) fixed64: FxHashMap<Fixed, u32>,
    /// For each variable of the entry, its offset in shared or local memory.
    pub(super) offsets: Vec<u64>,
    /// For each module-level `.shared` variable of fixed size, its offset.
    pub(super) shared_offsets: FxHashMap<ModuleVariable, u64>,
    pub(super) param_offsets: Vec<u64>,
    pub(super) param_bytes: u64,
    /// What the instruction being decoded reads and writes.
    pub(super) current: Effects,
    pub(super) effects: Vec<Effects>,
    /// Atomics that other blocks can see, with the result's column if there is one.
    pub(super) atomics: Vec<(AtomicOp, Option<Place>)>,
}

impl<'a> Decoder<'a> {
    pub fn new(module: &'a Module, entry: &'a Entry, addresses: &'a Addresses) -> Self {
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
                let offset = aligned(shared, variable.align.into());
                shared = offset.saturating_add(variable.bytes());
                self.shared_offsets.insert(id, offset);
            }
        }
        for variable in self.entry.variables.values() {
            let end = if variable.space == Space::Local { &mut local } else { &mut shared };
            let offset = aligned(*end, variable.align.into());
            *end = offset.saturating_add(variable.bytes());
            self.offsets.push(offset);
        }
        let dynamic = self.module.variables.values().any(|variable| variable.length == Length::Unsized);
        self.program.shared_bytes = if dynamic { aligned(shared, 16) } else { shared };
        self.program.local_bytes = local;
    }

    pub(super) fn class(&self, reg: Reg) -> Decoded<RegClass> {
        let register = self.entry.registers.get(reg);
        register.map(|register| register.class).ok_or_else(|| format!("it has no register {reg}"))
    }

    pub(super) fn name(&self, reg: Reg) -> &str {
        self.entry.registers.get(reg).map_or("?", |register| register.name.as_str())
    }

    /// The column of a register that must have so many bits; 16-bit and 32-bit registers share a kind of column.
    pub(super) fn column(&self, reg: Reg, bits: u32) -> Decoded<u32> {
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

    pub(super) fn predicate(&mut self, reg: Reg) -> Decoded<u32> {
        let column = self.predicate_column(reg)?;
        self.current.reads.push(Place::Predicate(column));
        Ok(column)
    }

    pub(super) fn predicate_column(&self, reg: Reg) -> Decoded<u32> {
        match self.class(reg)? {
            RegClass::Pred => Ok(self.columns[reg.index()]),
            _ => Err(format!("{} is no predicate", self.name(reg))),
        }
    }

    /// A predicate and whether it is complemented, as 1 or 0.
    pub(super) fn predicate_operand(&mut self, operand: PredOperand) -> Decoded<(u32, i64)> {
        Ok((self.predicate(operand.reg)?, operand.negated.into()))
    }

    pub(super) fn dst_predicate(&mut self, reg: Reg) -> Decoded<u32> {
        let column = self.predicate_column(reg)?;
        self.current.writes.push(Place::Predicate(column));
        Ok(column)
    }

    pub(super) fn dst_predicate_or_nowhere(&mut self, reg: Option<Reg>) -> Decoded<u32> {
        reg.map_or(Ok(NOWHERE), |reg| self.dst_predicate(reg))
    }

    /// A destination of so many bits: 16, 32 or 64.
    pub(super) fn dst(&mut self, reg: Reg, bits: u32) -> Decoded<u32> {
        let column = self.column(reg, bits)?;
        let place = if bits == 64 { Place::Wide64(column) } else { Place::Wide32(column) };
        self.current.writes.push(place);
        Ok(column)
    }

    /// A source of so many bits: 16, 32 or 64.
    pub(super) fn src(&mut self, operand: Operand, bits: u32) -> Decoded<u32> {
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
    pub(super) fn sources<const N: usize>(&mut self, operands: [Operand; N], bits: u32) -> Decoded<[u32; 3]> {
        let mut columns = [0; 3];
        for (column, operand) in columns.iter_mut().zip(operands) {
            *column = self.src(operand, bits)?;
        }
        Ok(columns)
    }

    pub(super) fn fixed_value(&mut self, operand: Operand, bits: u32) -> Decoded<Fixed> {
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

    pub(super) fn fixed_column32(&mut self, fixed: Fixed) -> u32 {
        *self.fixed32.entry(fixed).or_insert_with(|| {
            let column = allocate(&mut self.program, RegClass::B32);
            self.program.fixed32.push((column, fixed));
            column
        })
    }

    pub(super) fn fixed_column64(&mut self, fixed: Fixed) -> u32 {
        *self.fixed64.entry(fixed).or_insert_with(|| {
            let column = allocate(&mut self.program, RegClass::B64);
            self.program.fixed64.push((column, fixed));
            column
        })
    }

    /// A symbol's state space and its address in it.
    pub(super) fn symbol(&self, symbol: Symbol) -> Decoded<(Space, u64)> {
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
pub(super) fn width(ty: Type) -> Decoded<u32> {
    match ty.bits() {
        bits @ (16 | 32 | 64) => Ok(bits),
        _ => Err(format!("there is no such operation on .{ty}")),
    }
}

/// The next multiple of an alignment; what has no such place has no end, and no launch.
fn aligned(end: u64, alignment: u64) -> u64 {
    end.checked_next_multiple_of(alignment.max(1)).unwrap_or(u64::MAX)
}

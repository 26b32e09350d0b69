//! Registers, labels, symbols and everything else that an instruction can name.

use cranelift_entity::entity_impl;

/// A register of one entry: an index into [`Entry::registers`](super::Entry::registers).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Reg(u32);
entity_impl!(Reg, "reg");

/// A label of one entry: an index into [`Entry::labels`](super::Entry::labels).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Label(u32);
entity_impl!(Label, "label");

/// A kernel parameter: an index into [`Entry::params`](super::Entry::params).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParamId(u32);
entity_impl!(ParamId, "param");

/// A `.shared` or `.local` variable of one entry: an index into [`Entry::variables`](super::Entry::variables).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryVariable(u32);
entity_impl!(EntryVariable, "entryvar");

/// A module-level variable: an index into [`Module::variables`](super::Module::variables).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleVariable(u32);
entity_impl!(ModuleVariable, "modulevar");

/// A named place in memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Symbol {
    Param(ParamId),
    Entry(EntryVariable),
    Module(ModuleVariable),
}

/// A source operand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Operand {
    Reg(Reg),
    /// An integer constant. Constants above `i64::MAX` are kept by their bit pattern.
    Int(i64),
    /// The bits of a single-precision constant (`0f3F800000`).
    F32(u32),
    /// The bits of a double-precision constant (`0d3FF0000000000000`).
    F64(u64),
    Special(SpecialReg),
    /// The address of a symbol plus a byte offset, within the symbol's own state space.
    Symbol(Symbol, i64),
}

impl Default for Operand {
    fn default() -> Self {
        Operand::Int(0)
    }
}

impl Operand {
    /// A single-precision constant.
    pub fn f32(value: f32) -> Self {
        Operand::F32(value.to_bits())
    }

    /// A double-precision constant.
    pub fn f64(value: f64) -> Self {
        Operand::F64(value.to_bits())
    }

    /// The register, if it is one.
    pub fn reg(self) -> Option<Reg> {
        match self {
            Operand::Reg(reg) => Some(reg),
            _ => None,
        }
    }
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Self {
        Operand::Reg(reg)
    }
}

impl From<SpecialReg> for Operand {
    fn from(special: SpecialReg) -> Self {
        Operand::Special(special)
    }
}

impl From<i64> for Operand {
    fn from(value: i64) -> Self {
        Operand::Int(value)
    }
}

impl From<i32> for Operand {
    fn from(value: i32) -> Self {
        Operand::Int(value.into())
    }
}

impl From<u32> for Operand {
    fn from(value: u32) -> Self {
        Operand::Int(value.into())
    }
}

impl From<f32> for Operand {
    fn from(value: f32) -> Self {
        Operand::f32(value)
    }
}

impl From<f64> for Operand {
    fn from(value: f64) -> Self {
        Operand::f64(value)
    }
}

/// A predicate read by an instruction, possibly complemented: `%p` or `!%p`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PredOperand {
    pub reg: Reg,
    pub negated: bool,
}

impl From<Reg> for PredOperand {
    fn from(reg: Reg) -> Self {
        PredOperand { reg, negated: false }
    }
}

/// What an address starts from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Base {
    Reg(Reg),
    Symbol(Symbol),
    /// No base: the offset is the address.
    Absolute,
}

/// A memory address: `[base + offset]`, the offset in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address {
    pub base: Base,
    pub offset: i64,
}

impl Default for Address {
    fn default() -> Self {
        Address { base: Base::Absolute, offset: 0 }
    }
}

impl Address {
    pub fn new(base: Base, offset: i64) -> Self {
        Address { base, offset }
    }
}

impl From<Reg> for Address {
    fn from(reg: Reg) -> Self {
        Address { base: Base::Reg(reg), offset: 0 }
    }
}

impl From<Symbol> for Address {
    fn from(symbol: Symbol) -> Self {
        Address { base: Base::Symbol(symbol), offset: 0 }
    }
}

impl From<ParamId> for Address {
    fn from(param: ParamId) -> Self {
        Symbol::Param(param).into()
    }
}

/// An axis of the grid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Axis {
    X,
    Y,
    Z,
}

impl Axis {
    pub const ALL: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];
}

/// A read-only special register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SpecialReg {
    Tid(Axis),
    Ntid(Axis),
    Ctaid(Axis),
    Nctaid(Axis),
    LaneId,
    WarpId,
    NumWarps,
    SmId,
    NumSms,
    GridId,
    LaneMaskEq,
    LaneMaskLe,
    LaneMaskLt,
    LaneMaskGe,
    LaneMaskGt,
    /// The low 32 bits of the cycle counter.
    Clock,
    Clock64,
    GlobalTimer,
    DynamicSharedSize,
    TotalSharedSize,
}

impl SpecialReg {
    /// Every special register, in a fixed order.
    pub fn all() -> impl Iterator<Item = SpecialReg> {
        use SpecialReg::*;
        Axis::ALL.into_iter().flat_map(|axis| [Tid(axis), Ntid(axis), Ctaid(axis), Nctaid(axis)]).chain([
            LaneId,
            WarpId,
            NumWarps,
            SmId,
            NumSms,
            GridId,
            LaneMaskEq,
            LaneMaskLe,
            LaneMaskLt,
            LaneMaskGe,
            LaneMaskGt,
            Clock,
            Clock64,
            GlobalTimer,
            DynamicSharedSize,
            TotalSharedSize,
        ])
    }

    /// The PTX name, with its percent sign.
    pub const fn name(self) -> &'static str {
        use SpecialReg::*;
        match self {
            Tid(Axis::X) => "%tid.x",
            Tid(Axis::Y) => "%tid.y",
            Tid(Axis::Z) => "%tid.z",
            Ntid(Axis::X) => "%ntid.x",
            Ntid(Axis::Y) => "%ntid.y",
            Ntid(Axis::Z) => "%ntid.z",
            Ctaid(Axis::X) => "%ctaid.x",
            Ctaid(Axis::Y) => "%ctaid.y",
            Ctaid(Axis::Z) => "%ctaid.z",
            Nctaid(Axis::X) => "%nctaid.x",
            Nctaid(Axis::Y) => "%nctaid.y",
            Nctaid(Axis::Z) => "%nctaid.z",
            LaneId => "%laneid",
            WarpId => "%warpid",
            NumWarps => "%nwarpid",
            SmId => "%smid",
            NumSms => "%nsmid",
            GridId => "%gridid",
            LaneMaskEq => "%lanemask_eq",
            LaneMaskLe => "%lanemask_le",
            LaneMaskLt => "%lanemask_lt",
            LaneMaskGe => "%lanemask_ge",
            LaneMaskGt => "%lanemask_gt",
            Clock => "%clock",
            Clock64 => "%clock64",
            GlobalTimer => "%globaltimer",
            DynamicSharedSize => "%dynamic_smem_size",
            TotalSharedSize => "%total_smem_size",
        }
    }

    /// The special register with that name.
    pub fn from_name(name: &str) -> Option<SpecialReg> {
        SpecialReg::all().find(|special| special.name() == name)
    }

    /// The width in bits: 64 for the wide counters and the grid's identity, 32 for the rest.
    pub const fn bits(self) -> u32 {
        match self {
            SpecialReg::Clock64 | SpecialReg::GlobalTimer | SpecialReg::GridId => 64,
            _ => 32,
        }
    }
}

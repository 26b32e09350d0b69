//! A kernel entry as the emulator runs it: one flat list of decoded instructions over numbered columns.
//!
//! A *column* holds one register of all 32 lanes. Registers of up to 32 bits live in 32-bit columns (16-bit values
//! with their upper half zero), 64-bit registers in 64-bit columns, 128-bit registers in two neighbouring 64-bit
//! columns (low half first), predicates in one 32-bit mask each. Constants, special registers and parameters are
//! columns too, filled once a launch or once a block: so an instruction has one form whatever its operands are.

use krn_compiler::ptx::{Loc, SpecialReg, instruction as ptx};

use super::opcodes::{
    AnyConversion, AtomicForm, BitOp, Collective, Compared, Control, Conversion, CopyForm, CopyOp, F32Op,
    F64Op, FloatFormula, IntOp, LoadForm, MatrixForm, MmaForm, MoveOp, Selection, StoreForm, WideOp,
};

/// The predicate column that is always true: the guard of unguarded instructions.
pub const ALWAYS: u32 = 0;
/// Stands for a result that is not wanted.
pub const NOWHERE: u32 = u32::MAX;
/// A reconvergence point that is never reached.
pub const NEVER: u32 = u32::MAX;

/// One decoded instruction. What `d a b c imm` mean depends on the code; each family's file says it.
#[derive(Clone, Copy, Debug)]
pub struct Inst {
    pub code: Code,
    /// The predicate column of the guard.
    pub guard: u32,
    /// All ones where the guard is complemented.
    pub guard_flip: u32,
    pub d: u32,
    pub a: u32,
    pub b: u32,
    pub c: u32,
    pub imm: i64,
}

impl Inst {
    pub fn new(code: Code) -> Self {
        Inst { code, guard: ALWAYS, guard_flip: 0, d: 0, a: 0, b: 0, c: 0, imm: 0 }
    }

    /// With the usual places: destination and up to three sources.
    pub fn with(code: Code, d: u32, sources: [u32; 3]) -> Self {
        let [a, b, c] = sources;
        Inst { d, a, b, c, ..Inst::new(code) }
    }
}

/// What an instruction does: its family and, within it, the exact operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// Fences, prefetches, pragmas: nothing to do.
    Nop,
    Int16(IntOp),
    Int32(IntOp),
    Int64(IntOp),
    Wide(WideOp),
    Bit(BitOp),
    F32(F32Op),
    F64(F64Op),
    /// Any other float instruction, through the table of formulas: `imm` is the row.
    Float,
    Convert(Conversion),
    /// Any other conversion, through the table: `imm` is the row.
    ConvertAny,
    Move(MoveOp),
    Setp(Compared, ptx::Compare),
    Set(Compared, ptx::Compare),
    Select(Selection),
    Load(LoadForm),
    Store(StoreForm),
    Atomic(AtomicForm),
    /// `cp.async`, commit and wait.
    Copy(CopyOp),
    Collective(Collective),
    LoadMatrix(MatrixForm),
    Mma(MmaForm),
    Control(Control),
}

/// What fills a column that no instruction writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fixed {
    Value(u64),
    Special(SpecialReg),
    /// Bytes of the parameter buffer.
    Param {
        offset: u32,
        bytes: u32,
        signed: bool,
    },
}

/// A column that an instruction reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Place {
    Wide32(u32),
    Wide64(u32),
    Predicate(u32),
}

/// What an instruction reads and writes.
#[derive(Debug, Default)]
pub struct Effects {
    pub reads: Vec<Place>,
    pub writes: Vec<Place>,
}

/// A decoded entry.
#[derive(Debug, Default)]
pub struct Program {
    pub code: Vec<Inst>,
    /// For each instruction, the statement of the entry's body that it came from.
    pub statements: Vec<u32>,
    /// For each instruction, where in the source it came from.
    pub locations: Vec<Option<Loc>>,
    /// The column of each register, the first of two for 128 bits.
    pub registers: Vec<Place>,
    /// Where each variable of the entry starts in shared or local memory.
    pub variables: Vec<u64>,
    /// How many columns of each kind a warp has.
    pub columns32: u32,
    pub columns64: u32,
    pub predicates: u32,
    pub fixed32: Vec<(u32, Fixed)>,
    pub fixed64: Vec<(u32, Fixed)>,
    /// Columns that may be read before they are written: zeroed for each block, so that results never depend on
    /// what ran before.
    pub cleared32: Vec<u32>,
    pub cleared64: Vec<u32>,
    pub cleared_predicates: Vec<u32>,
    /// Operand lists of instructions with many operands.
    pub lists: Vec<u32>,
    pub formulas: Vec<FloatFormula>,
    pub conversions: Vec<AnyConversion>,
    pub copies: Vec<CopyForm>,
    /// What each instruction reads and writes.
    pub effects: Vec<Effects>,
    /// Reasons why an instruction cannot run, reported when it is reached.
    pub unsupported: Vec<String>,
    /// Shared memory of fixed size, in bytes; dynamic shared memory starts there.
    pub shared_bytes: u64,
    /// Local memory of one thread, in bytes.
    pub local_bytes: u64,
    /// The atomics of different blocks give another result in another order, so blocks take turns at them.
    pub ordered_atomics: bool,
}

//! Instructions: a guard predicate and one operation out of the families below.
//!
//! The struct of each family holds its typed modifiers and operands. Families are split by what they do:
//! `arithmetic`, `logic` (bits, comparison, selection), `memory`, `warp` (collectives and barriers), `matrix` and
//! `control`; `modifier` holds the words that stand after the dots.

pub mod arithmetic;
pub mod control;
pub mod logic;
pub mod matrix;
pub mod memory;
pub mod modifier;
pub mod warp;

pub use arithmetic::*;
pub use control::*;
pub use logic::*;
pub use matrix::*;
pub use memory::*;
pub use modifier::*;
pub use warp::*;

use super::operand::PredOperand;

/// The predicate under which an instruction takes effect: `@%p` or `@!%p`.
pub type Guard = PredOperand;

/// One instruction.
#[derive(Clone, PartialEq, Debug)]
pub struct Instruction {
    pub guard: Option<Guard>,
    pub op: Op,
    /// A comment at the end of the line, without the slashes.
    pub comment: Option<String>,
}

impl Instruction {
    pub fn new(op: impl Into<Op>) -> Self {
        Instruction { guard: None, op: op.into(), comment: None }
    }

    pub fn guarded(guard: Guard, op: impl Into<Op>) -> Self {
        Instruction { guard: Some(guard), op: op.into(), comment: None }
    }
}

/// Declares [`Op`] and the conversion from each family's struct.
macro_rules! families {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {
        /// What an instruction does: one variant a family.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Op { $($(#[$meta])* $name($name)),* }

        $(impl From<$name> for Op {
            fn from(op: $name) -> Op {
                Op::$name(op)
            }
        })*

        /// Calls another macro with the name of every family.
        macro_rules! with_families {
            ($callback:ident) => { $callback!{ $($name)* } };
        }
    };
}

families! {
    // arithmetic
    /// `add sub mul.lo mul.hi mul.wide div rem min max` on integers.
    IntBinary,
    /// `mad.lo mad.hi mad.wide`.
    IntMad,
    /// `neg abs` on integers.
    IntUnary,
    /// `dp4a`.
    Dp4a,
    /// `add sub mul div min max` on floats.
    FloatBinary,
    /// `fma`.
    Fma,
    /// `neg abs sqrt rsqrt rcp sin cos lg2 ex2 tanh` on floats.
    FloatUnary,
    /// `copysign`.
    Copysign,
    /// `testp`.
    Testp,
    /// `cvt`.
    Cvt,
    /// `cvt` of two floats into one packed register.
    CvtPack,
    /// `cvt.pack`.
    CvtPackBytes,
    // logic
    /// `mov` of one value.
    Mov,
    /// `mov` of several values into one wider register.
    Pack,
    /// `mov` of one register into several narrower ones.
    Unpack,
    /// `and or xor`.
    LogicBinary,
    /// `not cnot`.
    LogicUnary,
    /// `shl shr`.
    Shift,
    /// `shf.l shf.r`.
    FunnelShift,
    /// `popc clz brev bfind`.
    BitCount,
    /// `bfe`.
    BitExtract,
    /// `bfi`.
    BitInsert,
    /// `prmt`.
    Prmt,
    /// `lop3`.
    Lop3,
    /// `setp`.
    Setp,
    /// `set`.
    Set,
    /// `selp`.
    Selp,
    /// `slct`.
    Slct,
    // memory
    /// `ld`.
    Ld,
    /// `st`.
    St,
    /// `atom`.
    Atom,
    /// `red`.
    Red,
    /// `cvta`.
    Cvta,
    /// `prefetch`.
    Prefetch,
    /// `cp.async`.
    CpAsync,
    /// `cp.async.commit_group`.
    CpAsyncCommit,
    /// `cp.async.wait_group`, `cp.async.wait_all`.
    CpAsyncWait,
    /// `fence`.
    Fence,
    /// `membar`.
    Membar,
    // warp
    /// `bar.sync`, `barrier.sync`.
    BarrierSync,
    /// `bar.arrive`, `barrier.arrive`.
    BarrierArrive,
    /// `bar.red`, `barrier.red`.
    BarrierRed,
    /// `bar.warp.sync`.
    WarpSync,
    /// `shfl.sync`.
    Shfl,
    /// `vote.sync`.
    Vote,
    /// `match.sync`.
    Match,
    /// `redux.sync`.
    Redux,
    /// `activemask`.
    Activemask,
    // matrix
    /// `mma.sync`.
    Mma,
    /// `ldmatrix`.
    LdMatrix,
    // control
    /// `bra`.
    Bra,
    /// `ret exit trap brkpt`.
    Leave,
    /// `nanosleep`.
    Nanosleep,
    /// `griddepcontrol`.
    GridDep,
}
pub(crate) use with_families;

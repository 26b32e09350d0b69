//! The op table: every operation of the IR in one place.
//!
//! | op | operands | payload | regions | results |
//! |---|---|---|---|---|
//! | `forall` | low, high of each axis | loop | body(index of each axis) yields nothing | none |
//! | `reduce` | low, high of each axis | reduce | body(index of each axis) yields one contribution a combiner (two for argmin/argmax: value, i64 index; as many as it has of one's own) | as many |
//! | `for` | low, high, step, initial values | loop (one axis) | body(index, carried…) yields carried… | carried… |
//! | `while` | initial values | none | condition(carried…) yields one bool; body(carried…) yields carried… | carried… |
//! | `if` | condition | none | then() and else(), each yields the results | any |
//! | `yield` | values | none | – | none |
//! | `reduce_along` | one value a part of each combiner, and perhaps a mask | along | – | as many, without the axes |
//!
//! The columns of a row: the mnemonic, the shape of operands and results, the payload, the effect, and the phases of the
//! launches in which the op may stand.
//!
//! `forall` iterations are unordered and free of conflicts; a `reduce` combines its contributions in any order
//! from the combiner's identity; argmin/argmax follow the rules of `check/typed.rs`.

use super::entities::OwnCombiner;
use super::phase::Phases;
use crate::builtins::{MathFunction, math_functions};
use crate::data::Scalar;

/// A literal, exact in its type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Constant {
    Bool(bool),
    /// Fits the type.
    Int(Scalar, i128),
    F32(u32),
    F64(u64),
}

impl Constant {
    pub fn is_nan(self) -> bool {
        match self {
            Constant::F32(bits) => f32::from_bits(bits).is_nan(),
            Constant::F64(bits) => f64::from_bits(bits).is_nan(),
            Constant::Bool(_) | Constant::Int(..) => false,
        }
    }
}

/// How contributions meet: in a reduction, and in an atomic.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Combiner {
    Add,
    Mul,
    Min,
    Max,
    /// Bitwise; logical on bool.
    And,
    Or,
    Xor,
    /// On (value, index) pairs; not for atomics.
    ArgMin,
    ArgMax,
    /// The user's, by its number in the kernel's table, and how many values one contribution has; not for atomics.
    Own(OwnCombiner, u8),
}

impl std::fmt::Display for Combiner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Combiner::Own(own, _) => write!(f, "{own}"),
            known => f.write_str(known.name()),
        }
    }
}

impl Combiner {
    /// The built-in ones.
    pub const ALL: [Combiner; 9] = [
        Combiner::Add,
        Combiner::Mul,
        Combiner::Min,
        Combiner::Max,
        Combiner::And,
        Combiner::Or,
        Combiner::Xor,
        Combiner::ArgMin,
        Combiner::ArgMax,
    ];

    /// What it is; of the user's own its text form says more.
    pub fn name(self) -> &'static str {
        match self {
            Combiner::Add => "add",
            Combiner::Mul => "mul",
            Combiner::Min => "min",
            Combiner::Max => "max",
            Combiner::And => "and",
            Combiner::Or => "or",
            Combiner::Xor => "xor",
            Combiner::ArgMin => "argmin",
            Combiner::ArgMax => "argmax",
            Combiner::Own(..) => "own",
        }
    }

    /// How many values one contribution has.
    pub fn width(self) -> usize {
        match self {
            Combiner::Own(_, width) => usize::from(width),
            known => 1 + usize::from(known.is_position()),
        }
    }

    /// Whether contributions are a value and the position that it has.
    pub fn is_position(self) -> bool {
        matches!(self, Combiner::ArgMin | Combiner::ArgMax)
    }
}

/// What an operand list looks like, and what comes out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// No operands; one result of the payload's type.
    Leaf,
    /// One operand of a class; result of its type.
    Unary(Class),
    /// Two operands of one type of a class; result of that type.
    Binary(Class),
    /// Value of an integer type, count of any integer type; result of the value's type.
    Shift,
    /// Two operands of one type of a class; bool result.
    Compare(Class),
    /// One float operand; bool result.
    Test,
    /// bool, then two of one type; result of that type.
    Select,
    /// Three floats of one type.
    Ternary,
    /// One operand; result of the payload's (widened) type.
    Cast,
    /// One operand of the same width in the other kind (f32 <-> u32, f64 <-> u64).
    Bits,
    /// Two u64; u32 or f32 result.
    Random,
    /// See the table in the module's header.
    Special,
}

impl Shape {
    /// So many floats of one type; result of that type.
    const fn floats(count: usize) -> Shape {
        match count {
            1 => Shape::Unary(Class::Float),
            2 => Shape::Binary(Class::Float),
            3 => Shape::Ternary,
            _ => panic!("an op of floats has one to three operands"),
        }
    }
}

/// Which types an operand may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    Float,
    /// `f32` alone.
    Single,
    Integer,
    Numeric,
    /// Integers and bool.
    Bits,
    Any,
}

/// Whether an op may be removed, duplicated or moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Depends on its operands only.
    Pure,
    /// Reads memory.
    Read,
    /// Writes memory, or waits for other threads.
    Write,
    /// Moves data between threads, or lets them wait for each other: all that it names must come, so it may not be
    /// moved to where only some of them do, nor be left out, nor be repeated by some.
    Collective,
    /// Records that a check fails: touches nothing else, and where it has happened, once more changes nothing.
    Record,
    /// What its regions do.
    Regions,
    /// Ends a block.
    Terminator,
}

impl Effect {
    /// Whether what the op itself does shows elsewhere: in memory, in other threads, or in that the thread ends.
    pub fn shows(self) -> bool {
        matches!(self, Effect::Write | Effect::Collective)
    }

    /// Whether anybody can tell whether the op was done: it shows, or leaves a record of a failed check.
    pub fn is_observable(self) -> bool {
        self.shows() || self == Effect::Record
    }
}

/// Which payload an op takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PayloadKind {
    None,
    Constant,
    Symbol,
    Cast,
    Access,
    Atomic,
    Site,
    Loop,
    Reduce,
    Grid,
    Lanes,
    Outer,
    Index,
    Along,
    Contract,
    Mma,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    pub opcode: Opcode,
    pub mnemonic: &'static str,
    pub shape: Shape,
    pub payload: PayloadKind,
    pub effect: Effect,
    /// Of the launches in which it may stand.
    pub phases: Phases,
}

/// The table of ops: those of the IR alone, in two parts, and between them the elementary functions.
macro_rules! ops {
    (
        { $($(#[$doc:meta])* $name:ident $mnemonic:literal $shape:expr, $payload:ident, $effect:ident, $phases:ident;)* }
        { $($(#[$later_doc:meta])* $later:ident $later_mnemonic:literal $later_shape:expr, $later_payload:ident, $later_effect:ident, $later_phases:ident;)* }
        $($math:ident $math_mnemonic:literal ($($arg:ident),+) $host:path, $narrow:literal, $wide:literal, $meaning:literal;)*
    ) => {
        /// Every operation of the IR.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Opcode { $($(#[$doc])* $name,)* $(#[doc = $meaning] $math,)* $($(#[$later_doc])* $later,)* }

        /// The op table, in the order of [`Opcode`].
        pub const OPS: &[OpInfo] = &[
            $(OpInfo {
                opcode: Opcode::$name,
                mnemonic: $mnemonic,
                shape: $shape,
                payload: PayloadKind::$payload,
                effect: Effect::$effect,
                phases: Phases::$phases,
            },)*
            $(OpInfo {
                opcode: Opcode::$math,
                mnemonic: $math_mnemonic,
                shape: Shape::floats(MathFunction::$math.arity()),
                payload: PayloadKind::None,
                effect: Effect::Pure,
                phases: Phases::ALL,
            },)*
            $(OpInfo {
                opcode: Opcode::$later,
                mnemonic: $later_mnemonic,
                shape: $later_shape,
                payload: PayloadKind::$later_payload,
                effect: Effect::$later_effect,
                phases: Phases::$later_phases,
            },)*
        ];

        impl Opcode {
            /// The op of an elementary function.
            pub const fn of(function: MathFunction) -> Opcode {
                match function { $(MathFunction::$math => Opcode::$math),* }
            }

            /// The elementary function that it computes, if it is one.
            pub const fn math(self) -> Option<MathFunction> {
                match self {
                    $(Opcode::$math => Some(MathFunction::$math),)*
                    $(Opcode::$name)|* | $(Opcode::$later)|* => None,
                }
            }
        }
    };
}

/// The opcodes of the elementary functions, as a pattern, by `math_functions!(math_opcode_pattern)`: for a `match` that
/// names every opcode.
macro_rules! math_opcode_pattern {
    ($($math:ident $name:literal ($($arg:ident),+) $host:path, $narrow:literal, $wide:literal, $meaning:literal;)*) => {
        $($crate::ir::op::Opcode::$math)|*
    };
}
pub(crate) use math_opcode_pattern;

math_functions! { ops {
    Const "const" Shape::Leaf, Constant, Pure, ALL;
    /// The value of a symbol, widened.
    Symbol "symbol" Shape::Leaf, Symbol, Pure, ALL;

    Add "add" Shape::Binary(Class::Numeric), None, Pure, ALL;
    /// a + b, of which nothing is rounded: parts of a number that a pass has taken apart.
    AddExact "add_exact" Shape::Binary(Class::Float), None, Pure, ALL;
    Sub "sub" Shape::Binary(Class::Numeric), None, Pure, ALL;
    Mul "mul" Shape::Binary(Class::Numeric), None, Pure, ALL;
    Div "div" Shape::Binary(Class::Numeric), None, Pure, ALL;
    Rem "rem" Shape::Binary(Class::Numeric), None, Pure, ALL;
    Min "min" Shape::Binary(Class::Numeric), None, Pure, ALL;
    Max "max" Shape::Binary(Class::Numeric), None, Pure, ALL;
    And "and" Shape::Binary(Class::Bits), None, Pure, ALL;
    Or "or" Shape::Binary(Class::Bits), None, Pure, ALL;
    Xor "xor" Shape::Binary(Class::Bits), None, Pure, ALL;
    Shl "shl" Shape::Shift, None, Pure, ALL;
    Shr "shr" Shape::Shift, None, Pure, ALL;
    Neg "neg" Shape::Unary(Class::Numeric), None, Pure, ALL;
    Not "not" Shape::Unary(Class::Bits), None, Pure, ALL;
    Abs "abs" Shape::Unary(Class::Numeric), None, Pure, ALL;
    Sign "sign" Shape::Unary(Class::Numeric), None, Pure, ALL;
    Popcount "popcount" Shape::Unary(Class::Integer), None, Pure, ALL;
    LeadingZeros "leading_zeros" Shape::Unary(Class::Integer), None, Pure, ALL;
    TrailingZeros "trailing_zeros" Shape::Unary(Class::Integer), None, Pure, ALL;

    Eq "eq" Shape::Compare(Class::Any), None, Pure, ALL;
    Ne "ne" Shape::Compare(Class::Any), None, Pure, ALL;
    Lt "lt" Shape::Compare(Class::Numeric), None, Pure, ALL;
    Le "le" Shape::Compare(Class::Numeric), None, Pure, ALL;
    Gt "gt" Shape::Compare(Class::Numeric), None, Pure, ALL;
    Ge "ge" Shape::Compare(Class::Numeric), None, Pure, ALL;
    IsNan "isnan" Shape::Test, None, Pure, ALL;
    IsInf "isinf" Shape::Test, None, Pure, ALL;
    IsFinite "isfinite" Shape::Test, None, Pure, ALL;
    Select "select" Shape::Select, None, Pure, ALL;
    Cast "cast" Shape::Cast, Cast, Pure, ALL;
    /// Reinterprets a float as its bits.
    ToBits "to_bits" Shape::Bits, None, Pure, ALL;
    FromBits "from_bits" Shape::Bits, None, Pure, ALL;

    /// a * b + c, rounded once.
    Fma "fma" Shape::Ternary, None, Pure, ALL;
    /// Rows, columns, and a sum for each pair of them, row by row; all floats of one type. The results are the sums, each
    /// with the product of its row and its column added. `outer` rounds the product, then the sum.
    Outer "outer" Shape::Special, Outer, Pure, SCALAR;
    /// The same, each sum rounded once.
    OuterFma "outer_fma" Shape::Special, Outer, Pure, SCALAR;
    Floor "floor" Shape::Unary(Class::Float), None, Pure, ALL;
    Ceil "ceil" Shape::Unary(Class::Float), None, Pure, ALL;
    Round "round" Shape::Unary(Class::Float), None, Pure, ALL;
    Trunc "trunc" Shape::Unary(Class::Float), None, Pure, ALL;
    /// The nearest number of 10 bits behind the point, ties away from zero: what the atom `tf32` takes a factor for.
    RoundTf32 "round_tf32" Shape::Unary(Class::Single), None, Pure, ALL;
    Sqrt "sqrt" Shape::Unary(Class::Float), None, Pure, ALL;
} {
    Copysign "copysign" Shape::Binary(Class::Float), None, Pure, ALL;
    /// (seed, counter): the generators of `check/typed.rs`.
    RandU32 "rand_u32" Shape::Random, None, Pure, ALL;
    Rand "rand" Shape::Random, None, Pure, ALL;
    RandNormal "rand_normal" Shape::Random, None, Pure, ALL;

    Load "load" Shape::Special, Access, Read, ALL;
    /// A load where a condition holds, which is the last operand, and 0 elsewhere: of one element, or of as many as
    /// `load_vector` brings.
    LoadIf "load_if" Shape::Special, Access, Read, ALL;
    Store "store" Shape::Special, Access, Write, ALL;
    /// A store to global memory where a condition holds, which is the last operand.
    StoreIf "store_if" Shape::Special, Access, Write, ALL;
    /// Stores to several places of global memory that differ in the last subscript, each where a condition holds: the first
    /// place's subscripts, the last ones of the other places, as many values, as many conditions.
    StoreEach "store_each" Shape::Special, Access, Write, SCALAR;
    /// Combines the last operand into memory; no result.
    Atomic "atomic" Shape::Special, Atomic, Write, ALL;
    /// (condition, index, extent), a bool and two i64, and perhaps an i64 for the report: where the condition does not
    /// hold, these are recorded as a failure at the site, unless there is one already. The thread goes on; what the check is
    /// for stands behind the same condition. Of an assertion, behind the condition are the values of its index names.
    Check "check" Shape::Special, Site, Record, ALL;
    /// Tells the host values, of the index names and the operands of the site, a scalar each: once for each time that an
    /// iteration comes to it. It counts as a write to memory that nothing reads.
    Print "print" Shape::Special, Site, Write, SCALAR;

    /// As many consecutive scalars of one type as there are results: 2, 4, 8 or 16, at most 16 bytes, from an address
    /// that is a multiple of their size. After the last leaf of an AoS element come those of the next element.
    LoadVector "load_vector" Shape::Special, Access, Read, EXPLICIT;
    /// Stores the operands after the subscripts, likewise.
    StoreVector "store_vector" Shape::Special, Access, Write, EXPLICIT;

    /// Where an element lies in global memory, in bytes: what `copy_async` reads from. Reads nothing itself.
    Address "address" Shape::Special, Access, Pure, ALL;
    /// Begins a copy from global to shared memory, in the background. After the subscripts: the source's address, and
    /// how many bytes (4, 8 or 16, a literal), of which both addresses are multiples. The thread itself sees the
    /// bytes after it has waited for their group, other threads after a barrier that follows.
    CopyAsync "copy_async" Shape::Special, Access, Write, BLOCKS;
    /// The same where a condition holds, which is the last operand; elsewhere zeros come to the place, and nothing is read.
    CopyAsyncIf "copy_async_if" Shape::Special, Access, Write, BLOCKS;
    /// Makes a group of the copies that the thread has begun since the last one; there may be none.
    CopyCommit "copy_commit" Shape::Special, None, Write, BLOCKS;
    /// Waits until at most so many of the thread's groups, the latest, are still under way.
    CopyWait "copy_wait" Shape::Special, Lanes, Write, BLOCKS;

    /// The block's number along a grid axis, from 0.
    BlockIndex "block_index" Shape::Special, Grid, Pure, BLOCKS;
    /// How many blocks the grid has along an axis.
    GridSize "grid_size" Shape::Special, Grid, Pure, BLOCKS;
    /// The thread's number in its block, from 0; 32 neighbours are a warp.
    ThreadIndex "thread_index" Shape::Special, None, Pure, EXPLICIT;
    /// All threads of the block wait for each other; what each wrote before, the others see after.
    Barrier "barrier" Shape::Special, None, Collective, EXPLICIT;
    /// All lanes of the warp wait for each other; what each wrote before, the others see after.
    WarpBarrier "warp_barrier" Shape::Special, None, Collective, EXPLICIT;
    /// The operand of the lane whose number differs in the mask's bits. All lanes of the warp must come.
    ShuffleXor "shuffle_xor" Shape::Special, Lanes, Collective, EXPLICIT;

    /// So many elements of a storage type as one word of 32 bits, the first one lowest: 2 of 16 bits, or 4 of 8.
    Pack "pack" Shape::Special, Cast, Pure, SCALAR;
    /// Fragments of a matrix instruction from shared memory, as 1, 2 or 4 words: word n is of 8 rows of 8 neighbours of 16 bits,
    /// which begin where the subscripts of lanes 8n to 8n + 7 say, at multiples of 16 bytes. Lane 4r + c gets elements 2c and
    /// 2c + 1 of row r. All lanes of the warp must come.
    LoadMatrix "load_matrix" Shape::Special, Access, Collective, EXPLICIT;
    /// The same of the transposed matrix: lane 4c + r gets element c of rows 2r and 2r + 1.
    LoadMatrixTransposed "load_matrix_transposed" Shape::Special, Access, Collective, EXPLICIT;
    /// A matrix instruction: the words of the left factor and of the right one, and the sums, to which the products are added.
    /// All lanes of the warp must come.
    Mma "mma" Shape::Special, Mma, Collective, EXPLICIT;

    /// The coordinate of each element along an axis of its launch's tiles.
    Index "index" Shape::Leaf, Index, Pure, TILED;
    /// The same elements in another layout, or with more axes, along which they are repeated.
    Convert "convert" Shape::Unary(Class::Any), None, Pure, TILED;
    /// Combines the elements of tiles along axes, which the results lack: those where the mask holds, if there is one. Of
    /// none of them it is the combiner's identity.
    ReduceAlong "reduce_along" Shape::Special, Along, Collective, TILED;
    /// Two factors and a sum, of one type: the sum, with the products along axes added that both factors have and the result
    /// lacks. Axes of both factors that it keeps are a batch. Along no axis it is one step. Products are rounded, then sums.
    /// Of a matrix atom, factors have storage types, and steps are those of its instruction, along the last axis first.
    Contract "contract" Shape::Special, Contract, Pure, TILED;

    Forall "forall" Shape::Special, Loop, Regions, SCALAR;
    Reduce "reduce" Shape::Special, Reduce, Regions, SCALAR;
    For "for" Shape::Special, Loop, Regions, ALL;
    While "while" Shape::Special, None, Regions, ALL;
    If "if" Shape::Special, None, Regions, ALL;
    Yield "yield" Shape::Special, None, Terminator, ALL;
} }

impl Opcode {
    pub fn info(self) -> &'static OpInfo {
        &OPS[self as usize]
    }

    /// Whether it brings elements from memory into values.
    pub fn is_load(self) -> bool {
        matches!(self, Opcode::Load | Opcode::LoadIf | Opcode::LoadVector) || self.loads_matrices()
    }

    /// Whether threads wait at it for others of their warp or block.
    pub fn is_barrier(self) -> bool {
        matches!(self, Opcode::Barrier | Opcode::WarpBarrier)
    }

    /// Whether it brings fragments of a matrix instruction from shared memory.
    pub fn loads_matrices(self) -> bool {
        matches!(self, Opcode::LoadMatrix | Opcode::LoadMatrixTransposed)
    }

    /// Whether all lanes of a warp must come to it.
    pub fn is_of_warp(self) -> bool {
        matches!(self, Opcode::WarpBarrier | Opcode::ShuffleXor | Opcode::Mma) || self.loads_matrices()
    }

    /// Whether its results may be tiles of a storage type.
    pub fn makes_storage(self) -> bool {
        use Opcode::{Cast, For, If, Load, LoadIf, While};
        matches!(self, Load | LoadIf | Cast | For | While | If)
    }

    /// Whether its operands may be tiles of a storage type.
    pub fn takes_storage(self) -> bool {
        use Opcode::{Contract, For, While, Yield};
        matches!(self, Contract | For | While | Yield)
    }

    /// Whether its regions may run several times.
    pub fn is_loop(self) -> bool {
        matches!(self, Opcode::Forall | Opcode::Reduce | Opcode::For | Opcode::While)
    }

    pub fn from_mnemonic(mnemonic: &str) -> Option<Opcode> {
        OPS.iter().find(|info| info.mnemonic == mnemonic).map(|info| info.opcode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_opcodes_and_mnemonics_are_unique() {
        for (at, info) in OPS.iter().enumerate() {
            assert_eq!(info.opcode as usize, at);
            assert_eq!(Opcode::from_mnemonic(info.mnemonic), Some(info.opcode));
        }
    }
}

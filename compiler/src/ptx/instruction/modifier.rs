//! The words that stand after the dots of a mnemonic.

use crate::ptx::types::modifiers;

modifiers! {
    /// How a floating-point result is rounded, or how good an approximation it is.
    Rounding {
        Rn = "rn", Rz = "rz", Rm = "rm", Rp = "rp",
        // To an integral value, for cvt.
        Rni = "rni", Rzi = "rzi", Rmi = "rmi", Rpi = "rpi",
        // To nearest, ties away from zero.
        Rna = "rna",
        // Fast, with the error that the PTX manual states.
        Approx = "approx", Full = "full",
    }

    /// Operations of [`IntBinary`](super::IntBinary) (the part of `mul` that is kept is its own modifier).
    IntBinaryOp { Add = "add", Sub = "sub", Mul = "mul", Div = "div", Rem = "rem", Min = "min", Max = "max" }

    /// Which half of a product is kept, or all of it.
    MulPart { Lo = "lo", Hi = "hi", Wide = "wide" }

    /// Operations of [`IntUnary`](super::IntUnary).
    IntUnaryOp { Neg = "neg", Abs = "abs" }

    /// Operations of [`FloatBinary`](super::FloatBinary).
    FloatBinaryOp { Add = "add", Sub = "sub", Mul = "mul", Div = "div", Min = "min", Max = "max" }

    /// Operations of [`FloatUnary`](super::FloatUnary).
    FloatUnaryOp {
        Neg = "neg", Abs = "abs", Sqrt = "sqrt", Rsqrt = "rsqrt", Rcp = "rcp", Sin = "sin", Cos = "cos",
        Lg2 = "lg2", Ex2 = "ex2", Tanh = "tanh",
    }

    /// Questions of [`Testp`](super::Testp).
    FloatTest {
        Finite = "finite", Infinite = "infinite", Number = "number", NotANumber = "notanumber",
        Normal = "normal", Subnormal = "subnormal",
    }

    /// Operations of [`LogicBinary`](super::LogicBinary).
    LogicBinaryOp { And = "and", Or = "or", Xor = "xor" }

    /// Operations of [`LogicUnary`](super::LogicUnary).
    LogicUnaryOp { Not = "not", Cnot = "cnot" }

    /// Directions of [`Shift`](super::Shift).
    ShiftOp { Left = "shl", Right = "shr" }

    /// Directions of [`FunnelShift`](super::FunnelShift).
    FunnelDirection { Left = "l", Right = "r" }

    /// What a funnel shift does with amounts above 32.
    FunnelMode { Wrap = "wrap", Clamp = "clamp" }

    /// Operations of [`BitCount`](super::BitCount).
    BitCountOp { Popc = "popc", Clz = "clz", Brev = "brev", Bfind = "bfind" }

    /// Special byte selections of [`Prmt`](super::Prmt).
    PrmtMode { F4e = "f4e", B4e = "b4e", Rc8 = "rc8", Ecl = "ecl", Ecr = "ecr", Rc16 = "rc16" }

    /// Comparisons. `Lo Ls Hi Hs` are unsigned; those ending in `u` are true for NaN; `Num` and `Nan` ask
    /// whether both are numbers, or either is not.
    Compare {
        Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge",
        Lo = "lo", Ls = "ls", Hi = "hi", Hs = "hs",
        Equ = "equ", Neu = "neu", Ltu = "ltu", Leu = "leu", Gtu = "gtu", Geu = "geu",
        Num = "num", Nan = "nan",
    }

    /// How a comparison is combined with a further predicate.
    BoolOp { And = "and", Or = "or", Xor = "xor" }

    /// Caching of a load or a store.
    CacheOp { Ca = "ca", Cg = "cg", Cs = "cs", Lu = "lu", Cv = "cv", Wb = "wb", Wt = "wt" }

    /// How soon the first-level cache should let a line go.
    Eviction {
        Normal = "L1::evict_normal", Unchanged = "L1::evict_unchanged", First = "L1::evict_first",
        Last = "L1::evict_last", NoAllocate = "L1::no_allocate",
    }

    /// How many values one load or store moves, when more than one.
    VectorWidth { V2 = "v2", V4 = "v4", V8 = "v8" }

    /// The spelling of [`AccessOrder`](super::AccessOrder), without the scope.
    AccessOrderWord {
        Weak = "weak", Volatile = "volatile", Relaxed = "relaxed", Acquire = "acquire", Release = "release",
    }

    /// The two spellings of the block-wide barrier: `bar` is `barrier` with `.aligned`.
    BarrierWord { Bar = "bar", Barrier = "barrier" }

    /// How much the second-level cache should fetch beyond the request.
    PrefetchSize { L2B64 = "L2::64B", L2B128 = "L2::128B", L2B256 = "L2::256B" }

    /// Which threads a memory operation is ordered with.
    Scope { Cta = "cta", Cluster = "cluster", Gpu = "gpu", Sys = "sys" }

    /// Memory ordering of an atomic operation.
    AtomOrder { Relaxed = "relaxed", Acquire = "acquire", Release = "release", AcqRel = "acq_rel" }

    /// Operations of [`Atom`](super::Atom) and [`Red`](super::Red).
    AtomOp {
        Add = "add", Min = "min", Max = "max", And = "and", Or = "or", Xor = "xor", Exch = "exch", Cas = "cas",
        Inc = "inc", Dec = "dec",
    }

    /// Memory ordering of a fence.
    FenceOrder { Sc = "sc", AcqRel = "acq_rel" }

    /// Levels of the older `membar`.
    MembarLevel { Cta = "cta", Gl = "gl", Sys = "sys" }

    /// Cache levels that can be prefetched into.
    CacheLevel { L1 = "L1", L2 = "L2" }

    /// Reductions of [`BarrierRed`](super::BarrierRed).
    BarrierRedOp { Popc = "popc", And = "and", Or = "or" }

    /// How lanes are paired by [`Shfl`](super::Shfl).
    ShflMode { Up = "up", Down = "down", Bfly = "bfly", Idx = "idx" }

    /// Questions of [`Vote`](super::Vote).
    VoteMode { All = "all", Any = "any", Uni = "uni", Ballot = "ballot" }

    /// Questions of [`Match`](super::Match).
    MatchMode { Any = "any", All = "all" }

    /// Operations of [`Redux`](super::Redux).
    ReduxOp { Add = "add", Min = "min", Max = "max", And = "and", Or = "or", Xor = "xor" }

    /// Rows, columns and steps of [`Mma`](super::Mma).
    MmaShape { M16n8k16 = "m16n8k16", M16n8k8 = "m16n8k8", M16n8k32 = "m16n8k32" }

    /// How many matrices [`LdMatrix`](super::LdMatrix) loads.
    MatrixCount { X1 = "x1", X2 = "x2", X4 = "x4" }

    /// What [`GridDep`](super::GridDep) does.
    GridDepAction { Wait = "wait", LaunchDependents = "launch_dependents" }

    /// Ways to stop, for [`Leave`](super::Leave).
    LeaveOp { Ret = "ret", Exit = "exit", Trap = "trap", Brkpt = "brkpt" }
}

impl VectorWidth {
    /// How many values.
    pub const fn lanes(self) -> usize {
        match self {
            VectorWidth::V2 => 2,
            VectorWidth::V4 => 4,
            VectorWidth::V8 => 8,
        }
    }

    /// The width for so many values; `None` for any other number than 2, 4 and 8.
    pub const fn for_lanes(lanes: usize) -> Option<VectorWidth> {
        match lanes {
            2 => Some(VectorWidth::V2),
            4 => Some(VectorWidth::V4),
            8 => Some(VectorWidth::V8),
            _ => None,
        }
    }
}

impl MatrixCount {
    /// How many registers they fill.
    pub const fn registers(self) -> usize {
        match self {
            MatrixCount::X1 => 1,
            MatrixCount::X2 => 2,
            MatrixCount::X4 => 4,
        }
    }

    /// The count for so many registers; `None` for any other number than 1, 2 and 4.
    pub const fn for_registers(registers: usize) -> Option<MatrixCount> {
        match registers {
            1 => Some(MatrixCount::X1),
            2 => Some(MatrixCount::X2),
            4 => Some(MatrixCount::X4),
            _ => None,
        }
    }
}

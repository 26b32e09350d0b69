//! What an instruction is, before it runs: its kind, its floating-point operations, and whether L1 keeps what it reads.

use super::l1::Stay;
use crate::emulator::opcodes::MatrixForm;
use krn_compiler::ptx::instruction::{
    AccessOrder, CacheOp, Eviction, FloatBinaryOp, FloatUnaryOp, IntBinaryOp, Op,
};
use krn_compiler::ptx::{Entry, Space, Statement, Type};

/// What an instruction of a PTX entry does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Integer arithmetic.
    Integer,
    /// Floating-point arithmetic that has its own instruction on every GPU.
    Float,
    /// Roots, quotients and approximate functions.
    Special,
    Convert,
    /// Logic, shifts and bit fields.
    Bits,
    /// Comparison and selection.
    Compare,
    Move,
    GlobalLoad,
    GlobalStore,
    /// `red`, whose result nobody wants.
    GlobalReduction,
    /// `atom`.
    GlobalAtomic,
    /// `cp.async`, from global to shared memory.
    Copy,
    SharedLoad,
    SharedStore,
    SharedAtomic,
    LocalLoad,
    LocalStore,
    ConstLoad,
    /// Products of matrices.
    Matrix,
    /// Shuffles, votes, matches and reductions within a warp.
    Warp,
    Barrier,
    Branch,
    /// Fences, waits, prefetches, exits.
    Other,
}

impl Kind {
    pub const ALL: [Kind; 23] = [
        Kind::Integer,
        Kind::Float,
        Kind::Special,
        Kind::Convert,
        Kind::Bits,
        Kind::Compare,
        Kind::Move,
        Kind::GlobalLoad,
        Kind::GlobalStore,
        Kind::GlobalReduction,
        Kind::GlobalAtomic,
        Kind::Copy,
        Kind::SharedLoad,
        Kind::SharedStore,
        Kind::SharedAtomic,
        Kind::LocalLoad,
        Kind::LocalStore,
        Kind::ConstLoad,
        Kind::Matrix,
        Kind::Warp,
        Kind::Barrier,
        Kind::Branch,
        Kind::Other,
    ];

    /// `global_load`: for tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Integer => "integer",
            Kind::Float => "float",
            Kind::Special => "special",
            Kind::Convert => "convert",
            Kind::Bits => "bits",
            Kind::Compare => "compare",
            Kind::Move => "move",
            Kind::GlobalLoad => "global_load",
            Kind::GlobalStore => "global_store",
            Kind::GlobalReduction => "global_reduction",
            Kind::GlobalAtomic => "global_atomic",
            Kind::Copy => "copy",
            Kind::SharedLoad => "shared_load",
            Kind::SharedStore => "shared_store",
            Kind::SharedAtomic => "shared_atomic",
            Kind::LocalLoad => "local_load",
            Kind::LocalStore => "local_store",
            Kind::ConstLoad => "const_load",
            Kind::Matrix => "matrix",
            Kind::Warp => "warp",
            Kind::Barrier => "barrier",
            Kind::Branch => "branch",
            Kind::Other => "other",
        }
    }
}

/// What is known of an instruction before it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    pub kind: Kind,
    /// Floating-point operations of a lane: one each, a fused multiply-add two; minima, absolute values and negations
    /// none. Of 64 bits, and of fewer.
    pub flops64: u8,
    pub flops: u8,
    /// What becomes in L1 of what it reads from global memory.
    pub in_l1: Stay,
    /// Bytes that a lane loads, stores or copies.
    pub lane_bytes: u32,
}

impl Known {
    const EXIT: Known = Known { kind: Kind::Other, flops64: 0, flops: 0, in_l1: Stay::None, lane_bytes: 0 };

    /// Of the statement of an entry's body; the end of the body counts as an exit.
    pub fn of(entry: &Entry, statement: u32) -> Known {
        match entry.body.get(statement as usize) {
            Some(Statement::Instruction(instruction)) => Known::of_op(&instruction.op),
            _ => Known::EXIT,
        }
    }

    fn of_op(op: &Op) -> Known {
        let flops = |ty: Type, count: u8| match ty {
            Type::F64 => (count, 0),
            Type::F16x2 | Type::Bf16x2 => (0, 2 * count),
            _ => (0, count),
        };
        let (flops64, flops) = match op {
            Op::Fma(op) => flops(op.ty, 2),
            Op::FloatBinary(op) if !matches!(op.op, FloatBinaryOp::Min | FloatBinaryOp::Max) => {
                flops(op.ty, 1)
            }
            Op::FloatUnary(op) if !matches!(op.op, FloatUnaryOp::Neg | FloatUnaryOp::Abs) => flops(op.ty, 1),
            // 16 rows, 8 columns and as many steps as 32 bytes have elements, over 32 lanes.
            Op::Mma(op) if op.left.is_float() => (0, (2 * 16 * 8 * (256 / op.left.bits()) / 32) as u8),
            _ => (0, 0),
        };
        let in_l1 = match op {
            Op::Ld(op) if op.order != AccessOrder::Weak => Stay::None,
            Op::Ld(op) if op.evict == Some(Eviction::NoAllocate) => Stay::Short,
            Op::Ld(op) => match op.cache {
                None | Some(CacheOp::Ca) => Stay::Long,
                Some(CacheOp::Cs) => Stay::Short,
                Some(_) => Stay::None,
            },
            Op::CpAsync(op) if op.cache == CacheOp::Ca => Stay::Long,
            _ => Stay::None,
        };
        let lane_bytes = match op {
            Op::Ld(op) => op.ty.bytes() * op.dst.len() as u32,
            Op::St(op) => op.ty.bytes() * op.src.len() as u32,
            Op::CpAsync(op) => op.bytes,
            Op::LdMatrix(_) => MatrixForm::ROW,
            _ => 0,
        };
        Known { kind: kind(op), flops64, flops, in_l1, lane_bytes }
    }
}

fn kind(op: &Op) -> Kind {
    match op {
        Op::IntBinary(op) if matches!(op.op, IntBinaryOp::Div | IntBinaryOp::Rem) => Kind::Special,
        Op::IntBinary(_) | Op::IntMad(_) | Op::IntUnary(_) | Op::Dp4a(_) => Kind::Integer,
        Op::FloatBinary(op) if op.op == FloatBinaryOp::Div => Kind::Special,
        Op::FloatUnary(op) if !matches!(op.op, FloatUnaryOp::Neg | FloatUnaryOp::Abs) => Kind::Special,
        Op::FloatBinary(_) | Op::Fma(_) | Op::FloatUnary(_) | Op::Copysign(_) => Kind::Float,
        Op::Cvt(_) | Op::CvtPack(_) | Op::CvtPackBytes(_) => Kind::Convert,
        Op::Mov(_) | Op::Pack(_) | Op::Unpack(_) | Op::Cvta(_) => Kind::Move,
        Op::LogicBinary(_)
        | Op::LogicUnary(_)
        | Op::Shift(_)
        | Op::FunnelShift(_)
        | Op::BitCount(_)
        | Op::BitExtract(_)
        | Op::BitInsert(_)
        | Op::Prmt(_)
        | Op::Lop3(_) => Kind::Bits,
        Op::Testp(_) | Op::Setp(_) | Op::Set(_) | Op::Selp(_) | Op::Slct(_) => Kind::Compare,
        Op::Ld(op) => match op.space {
            Space::Shared => Kind::SharedLoad,
            Space::Local => Kind::LocalLoad,
            Space::Const => Kind::ConstLoad,
            Space::Param => Kind::Move,
            _ => Kind::GlobalLoad,
        },
        Op::St(op) => match op.space {
            Space::Shared => Kind::SharedStore,
            Space::Local => Kind::LocalStore,
            _ => Kind::GlobalStore,
        },
        Op::Atom(op) if op.space == Space::Shared => Kind::SharedAtomic,
        Op::Red(op) if op.space == Space::Shared => Kind::SharedAtomic,
        Op::Atom(_) => Kind::GlobalAtomic,
        Op::Red(_) => Kind::GlobalReduction,
        Op::CpAsync(_) => Kind::Copy,
        Op::LdMatrix(_) => Kind::SharedLoad,
        Op::Mma(_) => Kind::Matrix,
        Op::BarrierSync(_) | Op::BarrierArrive(_) | Op::BarrierRed(_) => Kind::Barrier,
        Op::WarpSync(_) | Op::Shfl(_) | Op::Vote(_) | Op::Match(_) | Op::Redux(_) | Op::Activemask(_) => {
            Kind::Warp
        }
        Op::Bra(_) => Kind::Branch,
        Op::Prefetch(_)
        | Op::CpAsyncCommit(_)
        | Op::CpAsyncWait(_)
        | Op::Fence(_)
        | Op::Membar(_)
        | Op::Leave(_)
        | Op::Nanosleep(_)
        | Op::GridDep(_) => Kind::Other,
    }
}

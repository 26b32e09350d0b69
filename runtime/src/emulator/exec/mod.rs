//! Executes decoded instructions, a warp at a time. One file a family of instructions; each holds the family's
//! operations and the lane loops that carry them out.
//!
//! A lane loop computes all 32 lanes, active or not, and then writes the active ones: without branches in it the
//! compiler turns it into a handful of vector instructions. Inactive lanes compute on stale values, which is
//! harmless since no lane operation can fail; what can fail (memory) looks at the active lanes only.

pub mod approximate;
pub mod atomic;
pub mod barrier;
pub mod bits;
pub mod block;
pub mod collective;
pub mod compare;
pub mod control;
pub mod convert;
pub mod copy;
pub mod float;
pub mod formula;
pub mod integer;
pub mod lanes;
pub mod matrix;
pub mod memory;
pub mod moves;
pub mod round;
pub mod runner;
pub mod warp;

use super::fault::FaultKind;

/// Which instruction set of the host the lane loops use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isa {
    /// Whatever the crate was compiled for.
    Baseline,
    /// AVX2 with fused multiply-add, on x86-64.
    Avx2,
}

impl Isa {
    /// The best that this machine has.
    pub fn detect() -> Isa {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let needed = [
                has!("avx2"),
                has!("fma"),
                has!("f16c"),
                has!("bmi1"),
                has!("bmi2"),
                has!("lzcnt"),
                has!("popcnt"),
            ];
            if needed.iter().all(|has| *has) {
                return Isa::Avx2;
            }
        }
        Isa::Baseline
    }
}

/// Compiles a function twice, for AVX2 and for the baseline, and picks by its first parameter.
///
/// What the body calls must be `#[inline(always)]` to take part.
macro_rules! multiversioned {
    ($(#[$meta:meta])* pub fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        #[allow(clippy::too_many_arguments, reason = "a family's operands, forwarded to each version")]
        pub fn $name(isa: $crate::emulator::exec::Isa, $($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments, reason = "a family's operands, forwarded to each version")]
            fn body($($arg: $ty),*) $(-> $ret)? $body

            #[inline(never)]
            #[allow(clippy::too_many_arguments, reason = "a family's operands, forwarded to each version")]
            fn baseline($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }

            #[cfg(target_arch = "x86_64")]
            {
                #[inline(never)]
                #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
                #[allow(clippy::too_many_arguments, reason = "a family's operands, forwarded to each version")]
                fn avx2($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }

                if isa == $crate::emulator::exec::Isa::Avx2 {
                    // SAFETY: `Isa::Avx2` is made by `Isa::detect` alone, which asks the processor for each of
                    // these features.
                    return unsafe { avx2($($arg),*) };
                }
            }
            let _ = isa;
            baseline($($arg),*)
        }
    };
}
pub(crate) use multiversioned;

/// A fault, before block, thread and place are known: which lane, and what.
#[derive(Debug)]
pub struct LaneFault {
    pub lane: u32,
    pub kind: FaultKind,
}

/// The result of an instruction that can fault. Boxed: faults are rare, and the good case should be small.
pub type Outcome<T = ()> = Result<T, Box<LaneFault>>;

/// A fault of the lowest lane in a mask.
#[cold]
pub fn fault<T>(lanes: u32, kind: FaultKind) -> Outcome<T> {
    Err(Box::new(LaneFault { lane: lanes.trailing_zeros().min(31), kind }))
}

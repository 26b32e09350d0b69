//! What can go wrong while a kernel runs, said so that a person can act on it: what, where in the source, and
//! which thread.

use std::fmt;

/// A place in a `.krn` file, from the `.loc` lines of the PTX.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceLocation {
    pub file: String,
    /// One-based.
    pub line: u32,
    /// One-based; zero where the column is unknown.
    pub column: u32,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.column > 0 {
            write!(f, ":{}", self.column)?;
        }
        Ok(())
    }
}

/// The end of a launch that went wrong. Of several faults the one in the lowest block is reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub kind: FaultKind,
    /// The kernel entry that ran.
    pub entry: String,
    /// Where in the source, as far as the PTX says.
    pub location: Option<SourceLocation>,
    /// The PTX instruction as text.
    pub instruction: String,
    /// Block and thread, x y z.
    pub block: [u32; 3],
    pub thread: [u32; 3],
}

/// The state space of a faulting access, as people name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryKind {
    Global,
    Shared,
    Local,
    Const,
    Param,
    Generic,
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryKind::Global => "global",
            MemoryKind::Shared => "shared",
            MemoryKind::Local => "local",
            MemoryKind::Const => "constant",
            MemoryKind::Param => "parameter",
            MemoryKind::Generic => "generic",
        })
    }
}

/// Whether memory was read, written or both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    Load,
    Store,
    Atomic,
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::Atomic => "atomic access",
        })
    }
}

/// The allocation that an access was probably meant for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Near {
    pub name: String,
    pub base: u64,
    pub size: u64,
}

/// The other access of a race.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OtherAccess {
    pub access: AccessKind,
    /// Block and thread, x y z.
    pub block: [u32; 3],
    pub thread: [u32; 3],
    /// Position in the decoded program.
    pub pc: usize,
    /// Where in the source, as far as the PTX says.
    pub location: Option<SourceLocation>,
    /// The PTX instruction as text.
    pub instruction: String,
}

/// What went wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The bytes do not lie in memory that exists.
    OutOfBounds { access: AccessKind, memory: MemoryKind, address: u64, bytes: u32, near: Option<Near> },
    /// The address is no multiple of the access' size.
    Misaligned { access: AccessKind, memory: MemoryKind, address: u64, bytes: u32 },
    /// A store or an atomic on constant memory or parameters.
    ReadOnly { memory: MemoryKind, address: u64 },
    /// Only some threads of a warp reached an aligned barrier.
    DivergentBarrier { barrier: u32, arrived: u32, missing: u32 },
    /// Barrier operands that the hardware does not allow.
    BadBarrier { reason: String },
    /// All remaining warps wait at barriers that can no longer fill.
    Deadlock { waiting: u32, barrier: u32 },
    /// The member mask of a warp-wide operation does not fit the threads that execute it.
    CollectiveMask { mask: u32, active: u32, reason: &'static str },
    /// Two threads touch the same bytes, one of them writes, and nothing orders them. Found by the sanitizer only.
    Race { access: AccessKind, memory: MemoryKind, address: u64, near: Option<Near>, other: Box<OtherAccess> },
    /// A read of bytes that neither the host nor any thread has written. Found by the sanitizer only.
    Uninitialised { access: AccessKind, memory: MemoryKind, address: u64, bytes: u32, near: Option<Near> },
    /// `trap`.
    Trap,
    /// `brkpt`.
    Breakpoint,
    /// One warp executed more instructions than the launch allows.
    InstructionLimit { limit: u64 },
    /// An instruction that the emulator does not model.
    Unsupported { reason: String },
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::OutOfBounds { access, memory, address, bytes, near } => {
                write!(f, "out-of-bounds {access} of {bytes} bytes in {memory} memory at {address:#x}")?;
                let Some(near) = near else { return Ok(()) };
                if *address >= near.base {
                    let offset = address - near.base;
                    if offset < near.size {
                        write!(f, ", byte {offset} of the {} bytes of `{}`", near.size, near.name)
                    } else {
                        let past = offset - near.size;
                        write!(f, ", {past} bytes past the end of `{}` ({} bytes)", near.name, near.size)
                    }
                } else {
                    let before = near.base - address;
                    write!(f, ", {before} bytes before the start of `{}` ({} bytes)", near.name, near.size)
                }
            }
            FaultKind::Misaligned { access, memory, address, bytes } => {
                write!(f, "misaligned {access} of {bytes} bytes in {memory} memory at {address:#x}")
            }
            FaultKind::ReadOnly { memory, address } => {
                write!(f, "store to read-only {memory} memory at {address:#x}")
            }
            FaultKind::DivergentBarrier { barrier, arrived, missing } => {
                let (arrived, missing) = (arrived.count_ones(), missing.count_ones());
                write!(
                    f,
                    "divergent barrier {barrier}: {arrived} threads of the warp arrived, {missing} did not"
                )
            }
            FaultKind::BadBarrier { reason } => write!(f, "illegal barrier: {reason}"),
            FaultKind::Deadlock { waiting, barrier } => write!(
                f,
                "deadlock: {waiting} warps wait for threads that never arrive, the first at barrier {barrier}"
            ),
            FaultKind::CollectiveMask { mask, active, reason } => write!(
                f,
                "warp-wide operation with mask {mask:#010x} while threads {active:#010x} are here: {reason}"
            ),
            FaultKind::Race { access, memory, address, near, other } => {
                write!(f, "race: a {access} in {memory} memory at {address:#x}")?;
                write_place(f, *address, near.as_ref())?;
                let ([bx, by, bz], [tx, ty, tz]) = (other.block, other.thread);
                write!(f, ", and nothing orders it after a {} there", other.access)?;
                write!(f, " by block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})")?;
                if let Some(location) = &other.location {
                    write!(f, "\n  the other at {location}")?;
                }
                write!(f, "\n  the other instruction: {}", other.instruction)
            }
            FaultKind::Uninitialised { access, memory, address, bytes, near } => {
                write!(f, "uninitialised {access} of {bytes} bytes in {memory} memory at {address:#x}")?;
                write_place(f, *address, near.as_ref())?;
                f.write_str(", which nobody has written so far")
            }
            FaultKind::Trap => f.write_str("trap"),
            FaultKind::Breakpoint => f.write_str("breakpoint"),
            FaultKind::InstructionLimit { limit } => {
                write!(f, "runaway loop: a warp executed more than {limit} instructions")
            }
            FaultKind::Unsupported { reason } => {
                write!(f, "instruction that the emulator cannot run: {reason}")
            }
        }
    }
}

/// Where in its allocation an address lies.
fn write_place(f: &mut fmt::Formatter<'_>, address: u64, near: Option<&Near>) -> fmt::Result {
    match near {
        Some(near) => write!(f, ", byte {} of `{}`", address.saturating_sub(near.base), near.name),
        None => Ok(()),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(location) = &self.location {
            write!(f, "\n  at {location}")?;
        }
        let [bx, by, bz] = self.block;
        let [tx, ty, tz] = self.thread;
        write!(f, "\n  in `{}`, block ({bx}, {by}, {bz}), thread ({tx}, {ty}, {tz})", self.entry)?;
        write!(f, "\n  instruction: {}", self.instruction)
    }
}

impl std::error::Error for Fault {}

//! What a pass is, and what it is told.

use crate::ir::kernel::{Kernel, Phase, Phases};

/// Facts about the machine that passes decide by. Passes know no more of the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TargetFacts {
    /// The compute capability as 10 × major + minor: 75, 90, 120.
    pub capability: u32,
    /// Threads that run in lockstep.
    pub warp_size: u32,
    /// Threads that a block can have.
    pub max_threads: u32,
    /// Threads that a block gets where nobody says.
    pub default_threads: u32,
    /// Blocks that fill the machine a few times over: the grid of a loop whose length only the device knows.
    pub resident_blocks: u32,
    /// Multiprocessors of the largest part of that capability.
    pub multiprocessors: u32,
    /// Bytes of shared memory that a block can have.
    pub shared_bytes: u32,
    /// Whether global memory can be copied to shared memory in the background.
    pub async_copies: bool,
}

impl TargetFacts {
    /// The facts of a compute capability, as 10 × major + minor.
    pub fn new(capability: u32) -> Self {
        let multiprocessors = match capability {
            ..80 => 72,
            80..86 => 108,
            86..89 => 84,
            89 => 142,
            90..100 => 132,
            100..120 => 148,
            _ => 170,
        };
        let shared_kib = match capability {
            ..80 => 64,
            80 | 87 => 163,
            81..90 => 99,
            90..120 => 227,
            _ => 99,
        };
        Self {
            capability,
            warp_size: 32,
            max_threads: 1024,
            default_threads: 256,
            resident_blocks: 1024,
            multiprocessors,
            shared_bytes: shared_kib * 1024,
            async_copies: capability >= 80,
        }
    }
}

/// What a pass may look at beside the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassContext {
    pub target: TargetFacts,
}

impl PassContext {
    pub fn new(target: TargetFacts) -> Self {
        Self { target }
    }
}

/// Whether a pass did anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Changed {
    No,
    Yes,
}

impl From<bool> for Changed {
    fn from(changed: bool) -> Self {
        if changed { Changed::Yes } else { Changed::No }
    }
}

/// A change to a kernel that keeps its meaning. A pass gets a kernel that the verifier accepts and leaves one.
pub trait Pass: Send + Sync {
    /// As the command line and pipelines call it: lower-case, unique in a pipeline.
    fn name(&self) -> &str;

    /// One line for a person: why the pipeline has it.
    fn reason(&self) -> &str;

    /// The phases of the launches that it works on.
    fn needs(&self) -> Phases;

    /// The phase in which it leaves those launches; `None` where that is the one that it found them in.
    fn leaves(&self) -> Option<Phase> {
        None
    }

    /// Names of passes that must not come after this one, where the pipeline has them.
    fn runs_after(&self) -> &[&str] {
        &[]
    }

    /// Whether it looks at each launch by itself, and changes nothing but bodies: what is declared and the plan stay, and
    /// what a launch becomes does not depend on the others. The runner may then run it for each launch of a kernel in a
    /// kernel of its own.
    fn by_launch(&self) -> bool {
        false
    }

    /// What a pass that goes by launch does for the kernel as a whole, before it comes to the launches; its
    /// [`run`](Self::run) does this too.
    fn begin(&self, _: &mut Kernel) -> Changed {
        Changed::No
    }

    fn run(&self, kernel: &mut Kernel, context: &PassContext) -> Changed;
}

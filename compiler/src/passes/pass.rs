//! What a pass is, and what it is told.

pub use super::target::TargetFacts;
use crate::ir::entities::ConstantArray;
use crate::ir::kernel::{ArrayData, Kernel, Phase, Phases};
use cranelift_entity::PrimaryMap;
use std::sync::Arc;

/// What a pass may look at beside the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassContext {
    pub target: TargetFacts,
    /// The module's constant arrays, where they are known.
    pub constants: Arc<PrimaryMap<ConstantArray, ArrayData>>,
}

impl PassContext {
    pub fn new(target: TargetFacts) -> Self {
        Self { target, constants: Arc::default() }
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

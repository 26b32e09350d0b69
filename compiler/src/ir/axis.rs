//! Loop axes and their factorisation over the levels of the machine.

/// One axis of a loop: its name in the source, and its factorisation, outermost factor first. The axis' extent
/// is the product of its factors, rounded up: iterations past the end are guarded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AxisData {
    pub name: String,
    /// Empty in phase `abstract`.
    pub factors: Vec<Factor>,
    /// The assembler shall leave the loop as it stands: it is unrolled as far as it shall be.
    pub nounroll: bool,
}

impl AxisData {
    pub fn new(name: impl Into<String>, factors: Vec<Factor>) -> Self {
        Self { name: name.into(), factors, nounroll: false }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Factor {
    pub level: Level,
    /// `None`: what is left of the extent; at most one of an axis, and its first.
    pub size: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    Grid,
    Cluster,
    Warp,
    Lane,
    Serial,
    Vector,
}

//! How far a launch has come on its way to code, and sets of phases.

/// What the verifier holds a launch to; a pass states the phases that it works on and the one that it leaves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// No axis has factors; every buffer is global or private. What lowering produces.
    Abstract,
    /// Every axis has factors; layouts are final.
    Mapped,
    /// The code is that of one thread: block and thread numbers, copies into shared buffers, barriers, shuffles.
    Staged,
}

impl Phase {
    pub const ALL: [Phase; 3] = [Phase::Abstract, Phase::Mapped, Phase::Staged];

    pub fn name(self) -> &'static str {
        match self {
            Phase::Abstract => "abstract",
            Phase::Mapped => "mapped",
            Phase::Staged => "staged",
        }
    }
}

/// A set of phases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Phases(u8);

impl Phases {
    /// Every phase.
    pub const ALL: Phases = Phases(u8::MAX);
    /// Those in which what threads do may be explicit.
    pub const EXPLICIT: Phases = Phases::of(&[Phase::Mapped, Phase::Staged]);

    pub const fn of(phases: &[Phase]) -> Phases {
        let (mut bits, mut at) = (0, 0);
        while at < phases.len() {
            bits |= 1 << phases[at] as u8;
            at += 1;
        }
        Phases(bits)
    }

    pub const fn contains(self, phase: Phase) -> bool {
        self.0 & (1 << phase as u8) != 0
    }

    /// The names of those that it has, for a message: "`mapped` or `staged`".
    pub fn names(self) -> String {
        let names = Phase::ALL.into_iter().filter(|phase| self.contains(*phase));
        names.map(|phase| format!("`{}`", phase.name())).collect::<Vec<_>>().join(" or ")
    }
}

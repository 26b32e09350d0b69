//! How far a launch has come on its way to code, and sets of phases.

/// What the verifier holds a launch to; a pass states the phases that it works on and the one that it leaves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// No axis has factors; every buffer is global or private. What lowering produces.
    Abstract,
    /// The launch is the program of one block, whose values are tiles (`tiles.rs`).
    Tiled,
    /// Every axis has factors; layouts are final.
    Mapped,
    /// The code is that of one thread: block and thread numbers, copies into shared buffers, barriers, shuffles.
    Staged,
}

impl Phase {
    pub const ALL: [Phase; 4] = [Phase::Abstract, Phase::Tiled, Phase::Mapped, Phase::Staged];

    pub fn name(self) -> &'static str {
        match self {
            Phase::Abstract => "abstract",
            Phase::Tiled => "tiled",
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
    /// Those in which the code is that of one block, or of one thread.
    pub const BLOCKS: Phases = Phases::of(&[Phase::Tiled, Phase::Mapped, Phase::Staged]);
    /// Those in which values are scalars, of one iteration or of one thread.
    pub const SCALAR: Phases = Phases::of(&[Phase::Abstract, Phase::Mapped, Phase::Staged]);
    /// That in which values are tiles.
    pub const TILED: Phases = Phases::of(&[Phase::Tiled]);

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

    /// Whether all of them come before a phase.
    pub fn is_before(self, phase: Phase) -> bool {
        Phase::ALL.into_iter().all(|known| known < phase || !self.contains(known))
    }

    /// The names of those that it has, for a message: "`mapped` or `staged`".
    pub fn names(self) -> String {
        let names = Phase::ALL.into_iter().filter(|phase| self.contains(*phase));
        let names: Vec<String> = names.map(|phase| format!("`{}`", phase.name())).collect();
        match names.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            _ => names.join(""),
        }
    }
}

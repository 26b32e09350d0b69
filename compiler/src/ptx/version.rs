//! The lowest PTX version that a module needs.

use super::grammar::{Needs, Slot, Step, Walk};
use super::instruction::Op;
use super::module::{Entry, Module, Version};
use super::target::{LARGE_PARAMS, PARAM_BYTES, Target};
use super::types::{Modifier, RegClass};

/// What an instruction needs of the target and of the PTX version, and for what.
pub(crate) fn requirements(op: &Op) -> Vec<(String, Needs)> {
    let mut collector = Collector(Vec::new());
    // A rule that does not hold is the verifier's business; what was needed up to there still counts.
    let _ = op.clone().describe(&mut collector);
    collector.0
}

impl Entry {
    /// The lowest version that knows everything in this entry.
    pub fn minimum_version(&self) -> Version {
        let mut lowest = Lowest(Version::new(1, 0));
        for instruction in self.instructions() {
            let _ = instruction.op.clone().describe(&mut lowest);
        }
        self.with_declarations(lowest.0)
    }

    /// That version, or the lowest that knows the entry's registers and parameters.
    pub(super) fn with_declarations(&self, mut version: Version) -> Version {
        if self.registers.values().any(|register| register.class == RegClass::B128) {
            version = version.max(Version::new(8, 3));
        }
        if self.param_layout().1 > PARAM_BYTES.into() {
            version = version.max(LARGE_PARAMS);
        }
        version
    }
}

impl Module {
    /// The lowest version that knows the target and everything in the module.
    pub fn minimum_version(&self, target: &Target) -> Version {
        let entries = self.entries.iter().map(Entry::minimum_version);
        entries.max().map_or(target.version, |version| version.max(target.version))
    }
}

/// The walker that finds the lowest version.
struct Lowest(Version);

impl Walk for Lowest {
    fn word(&mut self, _: &'static str) -> Step {
        Ok(())
    }

    fn flag(&mut self, _: &'static str, _: &mut bool) -> Step {
        Ok(())
    }

    fn suffix<M: Modifier>(&mut self, _: &mut Option<M>, _: bool, _: &[M]) -> Step {
        Ok(())
    }

    fn more(&mut self, present: bool) -> bool {
        present
    }

    fn more_before_last(&mut self, present: bool) -> bool {
        present
    }

    fn operand(&mut self, _: Slot<'_>) -> Step {
        Ok(())
    }

    fn rule(&mut self, _: bool, _: &str) -> Step {
        Ok(())
    }

    fn needs(&mut self, _: &str, needs: Needs) -> Step {
        self.0 = self.0.max(needs.version);
        Ok(())
    }
}

/// The walker that collects needs.
struct Collector(Vec<(String, Needs)>);

impl Walk for Collector {
    fn word(&mut self, _: &'static str) -> Step {
        Ok(())
    }

    fn flag(&mut self, _: &'static str, _: &mut bool) -> Step {
        Ok(())
    }

    fn suffix<M: Modifier>(&mut self, _: &mut Option<M>, _: bool, _: &[M]) -> Step {
        Ok(())
    }

    fn more(&mut self, present: bool) -> bool {
        present
    }

    fn more_before_last(&mut self, present: bool) -> bool {
        present
    }

    fn operand(&mut self, _: Slot<'_>) -> Step {
        Ok(())
    }

    fn rule(&mut self, _: bool, _: &str) -> Step {
        Ok(())
    }

    fn needs(&mut self, what: &str, needs: Needs) -> Step {
        self.0.push((what.to_owned(), needs));
        Ok(())
    }
}

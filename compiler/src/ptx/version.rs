//! The lowest PTX version that a module needs.

use super::grammar::{Needs, Step, Walk};
use super::instruction::Op;
use super::module::{Entry, Module, Version};
use super::target::{LARGE_PARAMS, PARAM_BYTES, Target};
use super::types::RegClass;

/// What an instruction needs of the target and of the PTX version, and for what.
pub(crate) fn requirements(op: &Op) -> Vec<(String, Needs)> {
    let mut found = Vec::new();
    each_need(op, |what, needs| found.push((what.to_owned(), needs)));
    found
}

fn each_need(op: &Op, mut visit: impl FnMut(&str, Needs)) {
    // A rule that does not hold is the verifier's business; what was needed up to there still counts.
    let _ = op.inspect(&mut EachNeed(&mut visit));
}

impl Entry {
    /// The lowest version that knows everything in this entry.
    pub fn minimum_version(&self) -> Version {
        let mut lowest = Version::new(1, 0);
        for instruction in self.instructions() {
            each_need(&instruction.op, |_, needs| lowest = lowest.max(needs.version));
        }
        self.with_declarations(lowest)
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

/// A walker that only looks at what an instruction needs.
struct EachNeed<'f>(&'f mut dyn FnMut(&str, Needs));

impl Walk for EachNeed<'_> {
    fn needs(&mut self, what: &str, needs: Needs) -> Step {
        (self.0)(what, needs);
        Ok(())
    }
}

//! What a comparison amounts to: a run is *verified* only if values were judged.

use super::{CheckReport, OutputCheck};
use krn_compiler::reference::CompareReport;

/// A sample of fewer values says nothing of the others.
const LEAST_SAMPLE: u64 = 32;

/// What is known of a run after its check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Judgement {
    /// At least half of the values of every output were judged, and all of these are right.
    Verified,
    /// No value is outside its bound, but that says too little: why.
    NotVerified(String),
    /// A reduction of the file's own does not do what the user promised of it: why. What it gives is then anybody's
    /// guess.
    Broken(String),
    /// A value is outside its bound.
    Wrong,
    /// Device and reference refused the run alike.
    Refused,
}

impl CheckReport {
    pub fn judgement(&self) -> Judgement {
        if self.both_refused.is_some() {
            return Judgement::Refused;
        }
        if !self.broken.is_empty() {
            let laws: Vec<String> = self.broken.iter().map(ToString::to_string).collect();
            return Judgement::Broken(laws.join("; "));
        }
        if !self.agrees() {
            return Judgement::Wrong;
        }
        if self.is_empty() {
            return Judgement::NotVerified("the outputs are empty: there was nothing to compare".to_string());
        }
        let reasons: Vec<String> = self
            .outputs
            .iter()
            .filter_map(|output| Some(format!("`{}`: {}", output.name, self.objection(output)?)))
            .collect();
        if reasons.is_empty() { Judgement::Verified } else { Judgement::NotVerified(reasons.join("; ")) }
    }

    /// There was no value that could have been compared.
    pub fn is_empty(&self) -> bool {
        self.outputs.iter().all(|output| output.report.values == 0)
    }

    /// Values that were judged, of all outputs together.
    pub fn judged(&self) -> u64 {
        self.outputs.iter().map(|output| output.report.judged()).sum()
    }

    /// Values that could be judged, of all outputs together: of a sample, where the reference evaluated one.
    pub fn values(&self) -> u64 {
        self.outputs.iter().map(|output| output.report.values).sum()
    }

    /// Why an output without a wrong value is not verified; `None` where it is, or is empty.
    pub fn objection(&self, output: &OutputCheck) -> Option<String> {
        let found = &output.report;
        let second = &found.second;
        if let (1.., Some(farthest)) = (second.deviating, &second.farthest) {
            let [low, high] = &farthest.between;
            let given = if low == high { low.clone() } else { format!("{low} to {high}") };
            return Some(format!(
                "{} {} far from what {} lawful evaluations give (got {}, they give {given}), though inside the \
                 worst case of rounding errors",
                values(second.deviating),
                if second.deviating == 1 { "is" } else { "are" },
                second.evaluations,
                farthest.got
            ));
        }
        let tried = found.uncertain + found.loose - second.left_out;
        if second.left_out > 0 && tried < LEAST_SAMPLE && 2 * found.judged() < found.values {
            return Some(format!(
                "{} have no error bound that says anything, and lawful evaluations of more than {tried} of them would \
                 take too long",
                values(found.uncertain + found.loose)
            ));
        }
        (2 * found.judged() < found.considered())
            .then(|| format!("{} could be judged: {}", share(found), self.open_because(found)))
    }

    /// How many values of an output were judged: `12 of 64 values (18.7%)`.
    pub fn share(&self, output: &OutputCheck) -> String {
        share(&output.report)
    }

    /// Why some values of an output could not be judged.
    pub fn open_because(&self, found: &CompareReport) -> String {
        let mut causes = Vec::new();
        if found.uncertain > 0 {
            causes.push(if self.undecided {
                "a comparison or a conversion to an integer is closer than its rounding errors"
            } else {
                "the worst case of rounding errors has no bound"
            });
        }
        if found.loose > 0 {
            causes.push("the error bound exceeds the value itself");
        }
        let second = if found.second.evaluations == 0 {
            "lawful evaluations to compare with would take too long"
        } else {
            "lawful evaluations differ as much among themselves"
        };
        format!("{}, and {second}", causes.join(", or "))
    }
}

impl OutputCheck {
    /// Values that nothing is known of.
    pub fn open(&self) -> u64 {
        self.report.considered() - self.report.judged()
    }
}

/// `12 of 64 values (18.7%)`; `none of 64 values`.
fn share(found: &CompareReport) -> String {
    let (judged, all) = (found.judged(), found.considered());
    if found.second.left_out > 0 {
        return format!("{judged} of {all} values of a sample, of {} in all,", values(found.values));
    }
    match judged {
        0 => format!("none of {}", values(all)),
        // Never 100.0% of what is not all.
        _ => format!(
            "{judged} of {} ({:.1}%)",
            values(all),
            (judged as f64 / all as f64 * 1000.0).floor() / 10.0
        ),
    }
}

fn values(count: u64) -> String {
    if count == 1 { "1 value".to_string() } else { format!("{count} values") }
}

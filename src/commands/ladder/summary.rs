//! What `krn ladder` says, for people and for programs.

use super::super::run::show_value;
use super::{Found, Ladder};
use crate::measuring::Quantiles;
use crate::ptxas::ADVICE;
use crate::table::{align, with};
use crate::{numbers, verdict};
use krn_runtime::Measured;
use krn_runtime::verify::Judgement;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// The cost of a launch.
#[derive(Clone, Copy)]
enum Cost {
    /// The median, in seconds.
    Time(f64),
    Instructions(u64),
}

impl Found {
    fn cost(&self) -> Option<Cost> {
        match &self.measured {
            Measured::Time { runs, .. } => Quantiles::of(runs).map(|times| Cost::Time(times.median)),
            Measured::Instructions(count) => Some(Cost::Instructions(*count)),
        }
    }
}

impl Ladder<'_> {
    pub fn text(&self) -> String {
        let device = self.device.description();
        let mut text =
            format!("{}: {}{} on {device}\n", self.subject.source.name(), self.kernel, with(self.sizes));
        if self.checked.dims != self.sizes.dims {
            text.push_str(&format!("  results are checked{}\n", with(self.checked)));
        }
        for line in &self.made_for {
            text.push_str(&format!("  {line}\n"));
        }
        if self.device.is_emulator() {
            text.push_str("  NO TIME: the emulator counts lane instructions, it does not measure\n");
        }
        text.push_str(&align(&self.table()));
        let same = self.same();
        if !same.is_empty() {
            text.push_str(&format!("  changed nothing here: {}\n", same.join(", ")));
        }
        if self.ptxas.is_none() {
            text.push_str(&format!("  {ADVICE}\n"));
        }
        if self.agrees() {
            text.push_str("  every step agrees with the reference\n");
        }
        for (name, found) in &self.rungs {
            let is_bad = |found: &&Found| verdict::exit_code(&found.check.judgement()) != 0;
            let Some(found) = found.as_ref().filter(is_bad) else { continue };
            let with = name.as_ref().map_or("with no pass that can be left out".to_string(), |name| {
                format!("with all passes up to `{name}`")
            });
            text.push_str(&format!("  {with}:\n"));
            for line in verdict::text(&found.check).lines() {
                text.push_str(&format!("  {line}\n"));
            }
        }
        text
    }

    /// The passes that changed nothing.
    pub fn same(&self) -> Vec<String> {
        let same = |(name, found): &(Option<String>, Option<Found>)| {
            found.is_none().then(|| name.clone().unwrap_or_default())
        };
        self.rungs.iter().filter_map(same).collect()
    }

    /// The head, and a row for each rung with code of its own.
    pub fn table(&self) -> Vec<Vec<String>> {
        let mut head = vec!["pass"];
        if self.device.is_emulator() {
            head.push("lane instructions");
        } else {
            head.extend(["time", "GB/s"]);
            head.extend(self.work.flops.map(|_| "TFLOP/s"));
        }
        head.extend(["of the first", "entries", "registers", "shared", "spills", "result"]);
        let mut rows = vec![head.into_iter().map(str::to_string).collect()];
        let first = self.rungs.first().and_then(|(_, found)| found.as_ref()?.cost());
        let none = || "-".to_string();
        for (name, found) in &self.rungs {
            let Some(found) = found else { continue };
            let mut row = vec![name.as_ref().map_or("(none)".to_string(), |name| format!("+ {name}"))];
            match found.cost() {
                Some(Cost::Instructions(count)) => row.push(numbers::grouped(count)),
                Some(Cost::Time(seconds)) => {
                    row.push(numbers::duration(Duration::from_secs_f64(seconds)));
                    row.push(format!("{:.1}", self.work.bytes / seconds / 1e9));
                    row.extend(self.work.flops.map(|flops| format!("{:.2}", flops / seconds / 1e12)));
                }
                None => row.extend((1..rows_before(self)).map(|_| none())),
            }
            row.push(
                first.zip(found.cost()).and_then(share).map_or_else(none, |share| format!("{share:.2}")),
            );
            row.push(found.entries.to_string());
            match found.usage {
                Some(usage) => row.extend([
                    usage.registers.to_string(),
                    numbers::bytes(u64::from(usage.shared_bytes)),
                    numbers::bytes(u64::from(usage.spill_bytes)),
                ]),
                None => row.extend([none(), none(), none()]),
            }
            let word = match found.check.judgement() {
                Judgement::Verified | Judgement::Refused => "agrees",
                Judgement::NotVerified(_) => "NOT VERIFIED",
                Judgement::Broken(_) => "BROKEN PROMISE",
                Judgement::Wrong => "WRONG",
            };
            row.push(word.to_string());
            rows.push(row);
        }
        rows
    }

    pub fn json(&self) -> serde_json::Value {
        let rungs: Vec<_> =
            self.rungs.iter().map(|(name, found)| self.rung_json(name, found.as_ref())).collect();
        let params: BTreeMap<&str, String> =
            self.sizes.params.iter().map(|(name, value)| (name.as_str(), show_value(value))).collect();
        json!({
            "file": self.subject.source.name(),
            "kernel": self.kernel,
            "device": self.device.description(),
            "emulator": self.device.is_emulator(),
            "target": self.compile.target,
            "dims": self.sizes.dims,
            "checked_dims": self.checked.dims,
            "params": params,
            "bytes": self.work.bytes,
            "flops": self.work.flops,
            "ptxas": self.ptxas.map(|ptxas| ptxas.path()),
            "made_for": self.made_for,
            "agrees": self.agrees(),
            "rungs": rungs,
        })
    }

    fn rung_json(&self, name: &Option<String>, found: Option<&Found>) -> serde_json::Value {
        let cost = found.and_then(Found::cost);
        let seconds = cost.and_then(|cost| if let Cost::Time(seconds) = cost { Some(seconds) } else { None });
        let count =
            cost.and_then(|cost| if let Cost::Instructions(count) = cost { Some(count) } else { None });
        let usage = found.and_then(|found| found.usage);
        json!({
            "pass": name,
            "changed": found.is_some(),
            "agrees": found.map(|found| found.check.judgement() == Judgement::Verified),
            "median_s": seconds,
            "gb_per_s": seconds.map(|seconds| self.work.bytes / seconds / 1e9),
            "tflop_per_s": seconds.zip(self.work.flops).map(|(seconds, flops)| flops / seconds / 1e12),
            "lane_instructions": count,
            "entries": found.map(|found| found.entries),
            "registers": usage.map(|usage| usage.registers),
            "shared_bytes": usage.map(|usage| usage.shared_bytes),
            "spill_bytes": usage.map(|usage| usage.spill_bytes),
        })
    }
}

/// The columns from the name to the share of the first row's cost.
fn rows_before(ladder: &Ladder<'_>) -> usize {
    match (ladder.device.is_emulator(), ladder.work.flops) {
        (true, _) => 2,
        (false, None) => 3,
        (false, Some(_)) => 4,
    }
}

/// What is left of the first cost.
fn share((first, now): (Cost, Cost)) -> Option<f64> {
    match (first, now) {
        (Cost::Time(first), Cost::Time(now)) if first > 0.0 => Some(now / first),
        (Cost::Instructions(first), Cost::Instructions(now)) if first > 0 => Some(now as f64 / first as f64),
        _ => None,
    }
}

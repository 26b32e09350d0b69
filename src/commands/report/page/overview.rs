//! What matters most, at the top.

use crate::commands::profile::found::{Profile, used};
use crate::commands::profile::text::{of_roofline, seconds};
use crate::commands::report::contents::Report;
use crate::numbers::grouped;
use krn_runtime::emulator::{Counts, Kind};
use krn_runtime::profile::Bound;
use maud::{Markup, html};

/// A number with its name, and a line about it.
struct Card {
    name: &'static str,
    value: String,
    /// Not counted or measured.
    estimated: bool,
    note: String,
}

pub fn overview(report: &Report<'_>) -> Markup {
    let cards = cards(&report.profile);
    html! {
        section id="overview" aria-label="Overview" {
            dl.cards {
                @for card in &cards {
                    div.card {
                        dt { (card.name) }
                        dd.value {
                            (card.value)
                            @if card.estimated { " " span.est { "estimated" } }
                        }
                        dd.note { (card.note) }
                    }
                }
            }
        }
    }
}

fn total(profile: &Profile<'_>, wanted: impl Fn(Kind) -> bool + Copy) -> Counts {
    profile.launches.iter().fold(Counts::default(), |mut sum, launch| {
        sum += launch.counted.counts.total(wanted);
        sum
    })
}

fn cards(profile: &Profile<'_>) -> Vec<Card> {
    let mut cards = Vec::new();
    if let Some((bound, times)) = profile.roofline.verdict() {
        let value = match bound {
            Bound::Memory => "memory-bound",
            Bound::Compute => "compute-bound",
        };
        let note = if times.is_finite() {
            format!("takes {times:.1} times as long as the other")
        } else {
            "there is nothing else to do".to_string()
        };
        cards.push(Card { name: "Limit", value: value.to_string(), estimated: false, note });
        cards.push(Card {
            name: "Least time",
            value: seconds(profile.roofline.time),
            estimated: true,
            note: match &profile.time {
                Some(time) => format!("measured {} on {}", seconds(time.median), time.device),
                None => format!("a bound for one {}; nothing was measured", profile.gpu.title),
            },
        });
    }
    let global = total(profile, |kind| {
        matches!(kind, Kind::GlobalLoad | Kind::GlobalStore | Kind::Copy)
            || matches!(kind, Kind::GlobalAtomic | Kind::GlobalReduction)
    });
    if let Some(share) = used(&global) {
        cards.push(Card {
            name: "Sectors used",
            value: format!("{:.0} %", share * 100.0),
            estimated: false,
            note: format!(
                "{} sectors of 32 bytes in {} requests",
                grouped(global.sectors),
                grouped(global.requests)
            ),
        });
    }
    let all = total(profile, |_| true);
    if all.shared_requests > 0 {
        cards.push(Card {
            name: "Bank conflicts",
            value: grouped(all.conflicts),
            estimated: false,
            note: format!(
                "{} wavefronts for {} requests to shared memory",
                grouped(all.wavefronts),
                grouped(all.shared_requests)
            ),
        });
    }
    let largest = profile.launches.iter().max_by(|a, b| a.roofline.time.total_cmp(&b.roofline.time));
    if let Some(launch) = largest {
        let (value, note) = match &launch.occupancy {
            Some(found) => (
                format!("{:.0} %", found.share() * 100.0),
                format!("{} of {} warps, limited by {}", found.warps, found.most_warps, found.limiter.name()),
            ),
            None => ("none".to_string(), "not one block fits".to_string()),
        };
        cards.push(Card { name: "Occupancy", value, estimated: launch.registers_estimated, note });
        cards.push(Card {
            name: "Registers a thread",
            value: launch.registers.to_string(),
            estimated: launch.registers_estimated,
            note: match launch.spill_bytes {
                Some(0) => "by ptxas; nothing is spilled".to_string(),
                Some(bytes) => format!("by ptxas; {bytes} bytes spilled"),
                None => "from the values alive together in the PTX".to_string(),
            },
        });
    }
    if profile.launches.is_empty() {
        let note = of_roofline(&profile.roofline);
        cards.push(Card { name: "Launches", value: "0".to_string(), estimated: false, note });
    }
    cards
}

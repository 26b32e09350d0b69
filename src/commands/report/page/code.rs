//! The source beside its PTX.

use super::section::{self, Section};
use crate::commands::report::contents::Report;
use crate::commands::report::fragments::Fragment;
use crate::commands::report::listing::{Entry, Place};
use crate::commands::report::variants::Variant;
use crate::numbers::grouped;
use maud::{Markup, html};
use std::collections::BTreeMap;

pub fn section(report: &Report<'_>) -> Section {
    let lines = lines_by_place(report);
    let body = html! {
        div.code {
            div.source role="group" aria-label="Source" {
                @for (at, pieces) in report.source.iter().enumerate() {
                    (source_line(at as u32 + 1, pieces, &lines))
                }
            }
            div.ptx {
                @for (entry, variant) in report.listing.entries.iter().zip(&report.variants) {
                    (entry_details(entry, variant, is_shown(report, variant)))
                }
                details.head {
                    summary { "What stands in front of the entries" }
                    pre { (report.listing.head) }
                }
            }
        }
    };
    let lead = html! {
        p {
            "Point at a piece of the source, or move to it by Tab, and the PTX that comes from it lights up; point at PTX, or "
            "walk through it with " kbd { "↑" } " " kbd { "↓" } ", and its source does. " kbd { "Enter" }
            " holds on to a piece and scrolls to its first line, " kbd { "Esc" } " lets go."
        }
    };
    section::section("code", "Source and PTX", lead, body)
}

/// Lines of PTX from each place.
fn lines_by_place(report: &Report<'_>) -> BTreeMap<Place, usize> {
    let mut lines = BTreeMap::new();
    for run in report.listing.entries.iter().flat_map(|entry| &entry.runs) {
        if let Some(place) = run.place {
            *lines.entry(place).or_default() += run.lines;
        }
    }
    lines
}

/// Whether an entry is open from the start: those that ran, or all where there is only one.
fn is_shown(report: &Report<'_>, variant: &Variant) -> bool {
    variant.launches > 0 || report.variants.len() == 1
}

fn at(place: Place) -> String {
    format!("{}:{}", place.line, place.column)
}

fn source_line(number: u32, pieces: &[Fragment], lines: &BTreeMap<Place, usize>) -> Markup {
    let of_line: usize =
        lines.iter().filter(|(place, _)| place.line == number).map(|(_, lines)| *lines).sum();
    html! {
        div.line data-line=(number) {
            @if of_line > 0 {
                button.number type="button" data-line=(number) aria-pressed="false"
                    aria-label={ "line " (number) ": " (grouped(of_line as u64)) " lines of PTX" } { (number) }
            } @else {
                span.number { (number) }
            }
            code {
                @for piece in pieces {
                    @match piece.place {
                        Some(place) => {
                            button.piece type="button" data-at=(at(place)) aria-pressed="false"
                                title={ (grouped(lines.get(&place).copied().unwrap_or(0) as u64)) " lines of PTX" } {
                                (piece.text)
                            }
                        }
                        None => { span { (piece.text) } }
                    }
                }
            }
        }
    }
}

fn entry_details(entry: &Entry<'_>, variant: &Variant, shown: bool) -> Markup {
    html! {
        details.entry open[shown] {
            summary {
                code { (entry.name) }
                span.facts {
                    " " (grouped(entry.lines() as u64)) " lines"
                    @match variant.launches {
                        0 => { ", not taken at these sizes" }
                        1 => { ", " strong { "ran" } }
                        times => { ", " strong { "ran " (times) " times" } }
                    }
                }
            }
            @if !variant.conditions.is_empty() {
                p.conditions {
                    "Taken where "
                    @for (at, condition) in variant.conditions.iter().enumerate() {
                        @if at > 0 { " and " }
                        code { (condition) }
                    }
                }
            }
            pre.listing tabindex="0" role="region" aria-label={ "PTX of " (entry.name) } {
                @for run in &entry.runs {
                    @match run.place {
                        Some(place) => { span.run data-at=(at(place)) { (run.text) } }
                        None => { (run.text) }
                    }
                }
            }
        }
    }
}

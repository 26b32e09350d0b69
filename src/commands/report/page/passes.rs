//! The schedule, and the IR from pass to pass.

use super::section::{self, Section};
use crate::commands::report::contents::Report;
use crate::commands::report::diff::{Diff, Hunk, Run, diff};
use crate::commands::report::stages::{Part, Stage};
use crate::numbers::grouped;
use maud::{Markup, html};

pub fn schedule(report: &Report<'_>) -> Section {
    let lead = html! {
        p {
            "What the compiler chose, with its reasons, as " code { "krn explain" }
            " prints it: paste it into the file to hold on to it, or to change it."
        }
    };
    let body = html! {
        pre.schedule tabindex="0" role="region" aria-label="Schedule" {
            @for line in report.schedule.lines() { (schedule_line(line)) "\n" }
        }
    };
    section::section("schedule", "Schedule", lead, body)
}

fn schedule_line(line: &str) -> Markup {
    match line.find("//") {
        Some(at) => html! { (line[..at]) span.comment { (line[at..]) } },
        None => html! { (line) },
    }
}

/// What a pass did to one part of the kernel.
enum Change<'t> {
    New(&'t Part),
    Gone(&'t Part),
    Changed(&'t Part, Diff<'t>),
}

fn changes<'t>(before: &'t Stage, after: &'t Stage) -> Vec<Change<'t>> {
    let find = |stage: &'t Stage, name: &str| stage.parts.iter().find(|part| part.name == name);
    let mut changes = Vec::new();
    for part in &after.parts {
        match find(before, &part.name) {
            None => changes.push(Change::New(part)),
            Some(old) if old.text != part.text => {
                changes.push(Change::Changed(part, diff(&old.text, &part.text)));
            }
            Some(_) => {}
        }
    }
    let gone = before.parts.iter().filter(|part| find(after, &part.name).is_none());
    changes.extend(gone.map(Change::Gone));
    changes
}

pub fn section(report: &Report<'_>) -> Section {
    let lead = html! {
        p {
            "The kernel's intermediate representation, from what lowering makes of the source to what instructions are "
            "selected from. Left what a pass found, right what it left; lines that stay are shown around changes only."
        }
    };
    let body = html! {
        @if let Some(first) = report.stages.first() {
            details.pass {
                summary { span.name { "lowered" } span.reason { "what the source means, before any pass" } }
                pre.ir tabindex="0" role="region" aria-label="IR before the first pass" {
                    @for part in &first.parts { (part.text) }
                }
            }
        }
        @for pair in report.stages.windows(2) {
            @if let [before, after] = pair { (stage(before, after)) }
        }
        @if let Some(last) = report.stages.last() {
            details.pass {
                summary { span.name { "result" } span.reason { "the whole of it after the last pass" } }
                @for part in &last.parts {
                    (whole(part, "ir"))
                }
            }
        }
    };
    section::section("passes", "IR, pass by pass", lead, body)
}

fn stage(before: &Stage, after: &Stage) -> Markup {
    let name = after.pass.as_deref().unwrap_or_default();
    let changes = changes(before, after);
    let (mut added, mut removed) = (0, 0);
    for change in &changes {
        let (more, less) = match change {
            Change::New(part) => (part.text.lines().count(), 0),
            Change::Gone(part) => (0, part.text.lines().count()),
            Change::Changed(_, diff) => (diff.added, diff.removed),
        };
        added += more;
        removed += less;
    }
    if changes.is_empty() {
        return html! {
            p.pass.same { span.name { (name) } span.reason { (after.reason) } span.facts { "changed nothing" } }
        };
    }
    html! {
        details.pass {
            summary {
                span.name { (name) }
                span.reason { (after.reason) }
                span.facts {
                    ins { "+" (grouped(added as u64)) } " " del { "−" (grouped(removed as u64)) } " lines"
                }
            }
            @for change in &changes { (change_details(change)) }
        }
    }
}

fn change_details(change: &Change<'_>) -> Markup {
    match change {
        Change::New(part) => html! {
            details.part {
                summary { "new: " code { (part.name) } ", " (grouped(part.text.lines().count() as u64)) " lines" }
                pre.ir tabindex="0" role="region" aria-label={ "new: " (part.name) } { ins { (part.text) } }
            }
        },
        Change::Gone(part) => html! {
            p.part { "gone: " code { (part.name) } ", " (grouped(part.text.lines().count() as u64)) " lines" }
        },
        Change::Changed(part, diff) => html! {
            details.part open[diff.added + diff.removed < 60] {
                summary {
                    code { (part.name) } " "
                    span.facts {
                        ins { "+" (grouped(diff.added as u64)) } " " del { "−" (grouped(diff.removed as u64)) }
                    }
                }
                @for each in &diff.hunks { (hunk(each)) }
            }
        },
    }
}

fn whole(part: &Part, class: &str) -> Markup {
    html! {
        details.part {
            summary { code { (part.name) } ", " (grouped(part.text.lines().count() as u64)) " lines" }
            pre class=(class) tabindex="0" role="region" aria-label=(part.name) { (part.text) }
        }
    }
}

/// Two columns of as many lines: where one side has fewer, it is filled up with empty ones.
fn hunk(hunk: &Hunk<'_>) -> Markup {
    let side = |old: bool| {
        html! {
            @for run in &hunk.runs {
                @match run {
                    Run::Same(lines) => { @for line in lines { (line) "\n" } }
                    Run::Changed(before, after) => {
                        @let (own, other) = if old { (before, after) } else { (after, before) };
                        @if !own.is_empty() {
                            @if old {
                                del { @for line in own { (line) "\n" } }
                            } @else {
                                ins { @for line in own { (line) "\n" } }
                            }
                        }
                        @for _ in own.len()..other.len() { "\n" }
                    }
                }
            }
        }
    };
    html! {
        div.hunk {
            pre tabindex="0" role="region" aria-label={ "before, from line " (hunk.old_line) } { (side(true)) }
            pre tabindex="0" role="region" aria-label={ "after, from line " (hunk.new_line) } { (side(false)) }
        }
    }
}

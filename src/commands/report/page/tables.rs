//! Tables: counters by source line, and the ladder.

use super::section::{Section, section};
use crate::commands::profile::table::columns;
use crate::commands::profile::text;
use crate::commands::report::contents::Report;
use crate::commands::report::steps::Steps;
use crate::table::with;
use maud::{Markup, html};

pub fn counters(report: &Report<'_>) -> Section {
    let profile = &report.profile;
    let lead = html! {
        p {
            "Counted by the emulator" (with(&profile.sizes)) ": instructions are PTX's, memory is counted as the hardware "
            "counts it. Sectors that go on to L2 are " span.est { "modelled" } "."
        }
    };
    let columns = columns(profile);
    let rows = columns.first().map_or(0, Vec::len);
    let texts: Vec<&str> = profile.lines.keys().map(|line| profile.text_of(*line)).collect();
    let body = html! {
        div.scroll tabindex="0" role="region" aria-label="Counters by source line" {
            table {
                caption { "By source line" }
                thead { tr { @for column in &columns { th scope="col" { (column[0]) } } th.left scope="col" { "source" } } }
                tbody {
                    @for row in 1..rows {
                        tr {
                            @for (at, column) in columns.iter().enumerate() {
                                @if at == 0 { th scope="row" { (column[row]) } } @else { td { (column[row]) } }
                            }
                            td.left { code { (texts[row - 1]) } }
                        }
                    }
                }
            }
        }
        @for (launch, count) in text::grouped_launches(profile) {
            details.launch {
                summary { "Launch " code { (launch.counted.entry) } ", in numbers" }
                pre tabindex="0" role="region" aria-label={ "launch " (launch.counted.entry) } { (text::of_launch(launch, count)) }
            }
        }
        details.launch {
            summary { "All launches, and what was assumed of the GPU" }
            pre tabindex="0" role="region" aria-label="all launches" { (text::summary(profile)) }
        }
    };
    section("counters", "Counters", lead, body)
}

pub fn ladder(report: &Report<'_>) -> Section {
    let steps = &report.steps;
    let lead = html! {
        p {
            "The compiler's passes added one by one; each step is checked against the reference evaluator"
            @if let Some(checked) = &steps.checked { (checked) }
            ". "
            @match &steps.device {
                Some(device) => { strong { "Measured" } " on " (device) (steps.sizes) "." }
                None => {
                    strong { "Counted" } " on the emulator" (steps.sizes)
                    ": instructions of all lanes, " strong { "no time" } "."
                }
            }
        }
    };
    section("ladder", "The ladder of passes", lead, ladder_table(steps))
}

fn ladder_table(steps: &Steps) -> Markup {
    let (head, rows) = steps.rows.split_first().map_or((&[][..], &[][..]), |(head, rows)| (&head[..], rows));
    html! {
        div.scroll tabindex="0" role="region" aria-label="The ladder of passes" {
            table.ladder {
                caption { "What each pass brings" }
                thead { tr { @for cell in head { th scope="col" { (cell) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                @if at == 0 { th.left scope="row" { code { (cell) } } }
                                @else if cell == "WRONG" { td.wrong { (cell) } }
                                @else { td { (cell) } }
                            }
                        }
                    }
                }
            }
        }
        @if !steps.same.is_empty() { p { "Changed nothing here: " (steps.same.join(", ")) "." } }
        @if !steps.has_ptxas {
            p.est { "No ptxas was found: registers, shared memory and spills of the steps are not known." }
        }
        @if steps.agrees {
            p { "Every step agrees with the reference." }
        } @else {
            p.wrong { "Not every step is known to agree with the reference: `krn ladder` tells where." }
        }
    }
}

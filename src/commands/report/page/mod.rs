//! The page: one document, its style and script inside, nothing to fetch.

mod code;
mod machine;
mod memory;
mod overview;
mod passes;
mod section;
mod tables;

use crate::commands::report::contents::Report;
use crate::table::with;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use section::Section;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

fn sections(report: &Report<'_>) -> Vec<Section> {
    vec![
        code::section(report),
        passes::schedule(report),
        machine::axes(report),
        memory::global(report),
        memory::shared(report),
        machine::limits(report),
        tables::counters(report),
        tables::ladder(report),
        passes::section(report),
    ]
}

pub fn page(report: &Report<'_>) -> Markup {
    let profile = &report.profile;
    let title = format!("{} · {}", profile.kernel, profile.source.name());
    let sections = sections(report);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to the report" }
                header.top {
                    h1 { span.kind { "kernel " } code { (profile.kernel) } }
                    p.where {
                        code { (profile.source.name()) } (with(&profile.sizes)) ", compiled for "
                        code { (profile.target) }
                    }
                    nav aria-label="Contents" {
                        ul {
                            @for section in &sections {
                                li { a href={ "#" (section.id) } { (section.title) } }
                            }
                        }
                    }
                }
                main id="main" tabindex="-1" {
                    (overview::overview(report))
                    @for section in &sections {
                        section id=(section.id) aria-labelledby={ (section.id) "-title" } {
                            h2 id={ (section.id) "-title" } { (section.title) }
                            div.lead { (section.lead) }
                            (section.body)
                        }
                    }
                }
                footer {
                    p {
                        "Made by " code { "krn report" } ". Counters are those of Krn's emulator, which counts what the "
                        "hardware counts; " span.est { "what is estimated or predicted is marked so" } "."
                    }
                }
                div #said role="status" aria-live="polite" {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

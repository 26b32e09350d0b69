//! What the memory system sees: accesses to global memory over its sectors, accesses to shared memory over its banks.

use super::section::{Section, section};
use crate::commands::report::accesses::{Alike, verb};
use crate::commands::report::contents::Report;
use crate::commands::report::svg::bank_map::{Shape, bank_map};
use crate::commands::report::svg::{self, lanes};
use krn_compiler::SharedArray;
use krn_runtime::emulator::TracedAccess;
use krn_runtime::emulator::count::sectors::{LINE, SECTOR};
use maud::{Markup, html};

/// Pictures of a kind that are open from the start.
const OPEN: usize = 8;

pub fn global(report: &Report<'_>) -> Section {
    let lead = html! {
        p {
            "The addresses of one warp, as the emulator saw them: each row is a line of " (LINE) " bytes in four sectors of "
            (SECTOR) ". " (key("used", "asked for by the lanes in it")) " " (key("wasted", "brought for nothing")) " "
            (key("empty", "not touched"))
        }
    };
    let all: Vec<&Alike> = report.accesses.iter().filter(|alike| !alike.access.shared).collect();
    let body = html! {
        @if all.is_empty() { p { "No warp accessed global memory." } }
        (figures(&all, |alike| global_figure(report, alike)))
    };
    section("memory", "Global memory", lead, body)
}

/// A figure of each: the first ones open, the rest behind a word.
fn figures(all: &[&Alike], figure: impl Fn(&Alike) -> Markup) -> Markup {
    let (open, more) = all.split_at(all.len().min(OPEN));
    html! {
        div.figures { @for alike in open { (figure(alike)) } }
        @if !more.is_empty() {
            details.more {
                summary { (more.len()) " more" }
                div.figures { @for alike in more { (figure(alike)) } }
            }
        }
    }
}

pub fn key(class: &str, words: &str) -> Markup {
    html! { span.key { span.swatch.(class) {} (words) } }
}

/// `load of a`, and where it stands in the source.
fn title(report: &Report<'_>, alike: &Alike) -> (String, Markup) {
    let place = alike.place.map_or_else(String::new, |place| format!(" in line {}", place.line));
    let title = format!("{} of {}{place}", verb(alike.access.kind), alike.array);
    let text = alike.place.and_then(|place| report.texts.get(&place));
    let markup = html! {
        strong { (verb(alike.access.kind)) " of " code { (alike.array) } }
        @if let Some(place) = alike.place {
            " in line " (place.line)
            @if let Some(text) = text { ": " code { (text) } }
        }
    };
    (title, markup)
}

/// Whose access it is.
fn who(alike: &Alike) -> Markup {
    let access = &alike.access;
    let by = |extents: [u32; 3]| extents.map(|extent| extent.to_string()).join(", ");
    html! {
        "Warp " (access.warp) " of block (" (by(access.block)) ") in " code { (alike.entry) }
        @if access.mask != u32::MAX { ", lanes " (lanes(access.mask)) }
        ", " (access.lane_bytes) " bytes a lane"
        @if alike.instructions > 1 { "; " (alike.instructions) " instructions look like this" }
        "."
    }
}

fn global_figure(report: &Report<'_>, alike: &Alike) -> Markup {
    let (title, caption) = title(report, alike);
    let touched = alike.access.touched();
    let used = f64::from(touched.bytes) / (f64::from(touched.sectors.max(1)) * SECTOR as f64) * 100.0;
    let words = format!("{} sectors, {used:.1} % of their bytes used", touched.sectors);
    html! {
        figure {
            figcaption {
                p.title { (caption) }
                p.verdict { (words) }
                p.who { (who(alike)) }
            }
            (svg::access::access(&alike.access, &format!("{title}: {words}")))
        }
    }
}

pub fn shared(report: &Report<'_>) -> Section {
    let lead = html! {
        p {
            "Shared memory has 32 banks of four bytes; two words of one bank take a turn each. A wavefront is a turn: each row of "
            "the pictures is one. " (key("used", "no conflict")) " "
            (key("conflict", "a turn more, because of a bank conflict")) " " (key("empty", "idle"))
        }
    };
    let all: Vec<&Alike> = report.accesses.iter().filter(|alike| alike.access.shared).collect();
    let body = html! {
        @if report.shared.is_empty() && all.is_empty() { p { "Nothing of what ran uses shared memory." } }
        div.figures { @for array in &report.shared { (tile_figure(array)) } }
        @if !all.is_empty() {
            h3 { "Accesses, one warp of each" }
            (figures(&all, |alike| shared_figure(report, alike)))
        }
    };
    section("shared", "Shared memory and its banks", lead, body)
}

/// The bank map of a tile, before and after padding; of what is no tile, a line.
fn tile_figure(array: &SharedArray) -> Markup {
    let Some(tile) = array.tile else {
        return html! {
            p.who { code { (array.name) } " in " code { (array.entry) } ": " (array.bytes) " bytes, no tile." }
        };
    };
    let rows = array.bytes / (tile.pitch * array.element_bytes).max(1);
    let shape = Shape {
        rows,
        row: tile.row * array.element_bytes,
        pitch: tile.pitch * array.element_bytes,
        element: array.element_bytes,
        swizzle: tile.swizzle,
    };
    let words = |shape: Shape| match shape.degree() {
        0 | 1 => "the first elements of 32 rows lie in different banks".to_string(),
        degree => format!("of the first elements of 32 rows, {degree} lie in one bank"),
    };
    let map = |title: &str, shape: Shape| {
        let words = words(shape);
        html! {
            div.half {
                p.verdict { strong { (title) } ": " (words) }
                (bank_map(shape, &format!("{} {title}: {words}", array.name)))
            }
        }
    };
    let how = match (tile.pitch - tile.row, tile.swizzle) {
        (0, 0) => "not padded".to_string(),
        (0, _) => "places exchanged (swizzle)".to_string(),
        (pad, _) => format!("padded by {pad} after each row of {}", tile.row),
    };
    html! {
        figure.tile {
            figcaption {
                p.title { strong { "tile " code { (array.name) } } " in " code { (array.entry) } ": " (how) }
                p.who {
                    (rows) " rows in all, " (array.bytes) " bytes from byte " (array.offset) ". Marked are the first elements of rows: they meet where lanes go down a column. "
                    (key("conflict", "in a bank that has one already")) " " (key("wasted", "padding"))
                }
            }
            div.halves {
                @if shape.plain() != shape { (map("without", shape.plain())) }
                (map(if shape.plain() == shape { "as it lies" } else { "with" }, shape))
            }
        }
    }
}

fn shared_figure(report: &Report<'_>, alike: &Alike) -> Markup {
    let (title, caption) = title(report, alike);
    let words = |access: &TracedAccess| {
        let banked = access.banked();
        let plural = if banked.wavefronts == 1 { "" } else { "s" };
        format!("{} wavefront{plural}, {} for bank conflicts", banked.wavefronts, banked.conflicts)
    };
    let drawn = |which: &str, access: &TracedAccess| {
        let words = words(access);
        html! {
            div.half {
                p.verdict { @if !which.is_empty() { strong { (which) } ": " } (words) }
                (svg::wavefronts::drawn(access, &format!("{title} {which}: {words}")))
            }
        }
    };
    html! {
        figure {
            figcaption {
                p.title { (caption) }
                p.who { (who(alike)) }
            }
            @match &alike.plain {
                Some(plain) if plain.banked() == alike.access.banked() => {
                    (drawn("with padding and without", &alike.access))
                }
                Some(plain) => {
                    (drawn("without padding", plain))
                    (drawn("with padding", &alike.access))
                }
                None => { (drawn("", &alike.access)) }
            }
        }
    }
}

//! How an axis is spread over the machine: a bar for each level, which enlarges one piece of the bar above.

use super::{line, number, picture, rect, text};
use maud::{Markup, html};

/// One level of an axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Level {
    /// `block`, `warp`, `lane`, `serial`, `vector`: also the class of its colour.
    pub name: &'static str,
    /// Pieces; `None` where the sizes of the page do not say it.
    pub count: Option<u64>,
    /// Iterations of one piece.
    pub each: u64,
}

impl Level {
    /// `8 warps of 32`.
    pub fn words(&self) -> String {
        let count = self.count.map_or_else(|| "some".to_string(), |count| count.to_string());
        let name = match (self.name, self.count) {
            ("serial", Some(1)) => "turn",
            ("serial", _) => "turns",
            ("vector", Some(1)) => "neighbour",
            ("vector", _) => "neighbours",
            (name, Some(1)) => name,
            ("block", _) => "blocks",
            ("warp", _) => "warps",
            (_, _) => "lanes",
        };
        match self.each {
            1 => format!("{count} {name}"),
            each => format!("{count} {name} of {each}"),
        }
    }
}

const LEFT: f64 = 58.0;
const WIDTH: f64 = 372.0;
const ROW: f64 = 20.0;
const GAP: f64 = 14.0;
/// Pieces that are drawn at most.
const MOST: u64 = 64;

pub fn hierarchy(levels: &[Level], label: &str) -> Markup {
    let height = levels.len() as f64 * (ROW + GAP);
    let body = html! {
        @for (at, level) in levels.iter().enumerate() {
            @let y = at as f64 * (ROW + GAP);
            (bar(y, level))
            @if at + 1 < levels.len() {
                @let piece = WIDTH / pieces(level) as f64;
                (line("zoom", (LEFT, y + ROW), (LEFT, y + ROW + GAP)))
                (line("zoom", (LEFT + piece, y + ROW), (LEFT + WIDTH, y + ROW + GAP)))
            }
        }
    };
    picture("hierarchy", label, ((LEFT + WIDTH + 150.0) as u32, height as u32), body)
}

/// How many pieces are drawn.
fn pieces(level: &Level) -> u64 {
    level.count.unwrap_or(6).clamp(1, MOST)
}

fn bar(y: f64, level: &Level) -> Markup {
    let pieces = pieces(level);
    let width = WIDTH / pieces as f64;
    let gap = if pieces > 1 { 1.0 } else { 0.0 };
    html! {
        (text("address", (LEFT - 8.0, y + 14.0), level.name))
        (rect(&format!("level-{}", level.name), (LEFT, y), (width - gap, ROW), ""))
        @if pieces > 1 {
            // The others, as one path: there may be many.
            path class={ "level-" (level.name) " faint" } d=(others(y, pieces, width, gap)) {}
        }
        (text("words", (LEFT + WIDTH + 8.0, y + 14.0), &level.words()))
    }
}

fn others(y: f64, pieces: u64, width: f64, gap: f64) -> String {
    let piece = |at: u64| {
        let x = number(LEFT + at as f64 * width);
        format!("M{x} {}h{}v{}h-{}z", number(y), number(width - gap), number(ROW), number(width - gap))
    };
    (1..pieces).map(piece).collect()
}

//! A warp's addresses over the lines and sectors of global memory.

use super::{lanes, picture, rect, text};
use krn_runtime::emulator::TracedAccess;
use krn_runtime::emulator::count::sectors::{LINE, SECTOR};
use maud::{Markup, html};
use std::collections::BTreeMap;

const LEFT: f64 = 72.0;
/// Of one byte.
const WIDTH: f64 = 4.0;
const ROW: f64 = 18.0;
const GAP: f64 = 3.0;

/// The bytes of one line: for each the lanes that ask for it.
type Line = [u32; LINE as usize];

/// The lines that an access touches, in rising order.
fn lines(access: &TracedAccess) -> BTreeMap<u64, Line> {
    let mut lines: BTreeMap<u64, Line> = BTreeMap::new();
    for (lane, address) in access.lanes() {
        for byte in address..address + u64::from(access.lane_bytes) {
            lines.entry(byte / LINE).or_insert([0; LINE as usize])[(byte % LINE) as usize] |= 1 << lane;
        }
    }
    lines
}

/// A row for each line: sectors that are not touched are empty, bytes that no lane wants are wasted.
pub fn access(access: &TracedAccess, label: &str) -> Markup {
    let lines = lines(access);
    let base = access.allocation.as_ref().map_or(0, |(_, base)| *base);
    let height = lines.len() as f64 * (ROW + GAP) + 16.0;
    let body = html! {
        (text("address", (LEFT - 6.0, 10.0), "from byte"))
        @for sector in 0..LINE / SECTOR {
            (text("axis", (LEFT + (sector * SECTOR) as f64 * WIDTH, 10.0), &format!("sector {sector}")))
        }
        @for (at, (line, bytes)) in lines.iter().enumerate() {
            (row(16.0 + at as f64 * (ROW + GAP), (line * LINE).wrapping_sub(base) as i64, bytes))
        }
    };
    picture("access", label, ((LEFT + LINE as f64 * WIDTH) as u32 + 1, height as u32 + 1), body)
}

fn row(y: f64, offset: i64, bytes: &Line) -> Markup {
    let x = |byte: usize| LEFT + byte as f64 * WIDTH;
    // Bytes of the touched sectors that the same lanes want.
    let mut runs: Vec<(usize, usize, u32)> = Vec::new();
    for (sector, part) in bytes.chunks(SECTOR as usize).enumerate() {
        let first = sector * SECTOR as usize;
        let touched = part.iter().any(|lanes| *lanes != 0);
        for (at, lanes) in part.iter().enumerate().filter(|_| touched) {
            let at = first + at;
            match runs.last_mut() {
                Some((_, end, known)) if *known == *lanes && *end == at && (*lanes != 0 || at != first) => {
                    *end += 1;
                }
                _ => runs.push((at, at + 1, *lanes)),
            }
        }
    }
    html! {
        (text("address", (LEFT - 6.0, y + 13.0), &format!("{offset:+}")))
        @for (sector, part) in bytes.chunks(SECTOR as usize).enumerate() {
            @if part.iter().all(|lanes| *lanes == 0) {
                @let x = x(sector * SECTOR as usize);
                (rect("empty", (x, y), (SECTOR as f64 * WIDTH - 1.5, ROW), "not touched"))
            }
        }
        @for (from, to, mask) in runs {
            // Neighbours are told apart by a gap, sectors by a wider one.
            @let gap = if to % SECTOR as usize == 0 { 1.5 } else { 0.7 };
            @let width = (to - from) as f64 * WIDTH - gap;
            @let title = if mask == 0 { "asked for by no lane".to_string() } else { format!("lanes {}", lanes(mask)) };
            (rect(if mask == 0 { "wasted" } else { "used" }, (x(from), y), (width, ROW), &title))
            @let shown = shown(mask, width);
            @if !shown.is_empty() { (text("lane", (x(from) + width / 2.0, y + 13.0), &shown)) }
        }
    }
}

/// The lanes, as far as there is room.
fn shown(mask: u32, width: f64) -> String {
    if mask == 0 {
        return String::new();
    }
    let all = lanes(mask);
    let fits = |text: &str| text.chars().count() as f64 * 6.2 <= width;
    let count = format!("{}×", mask.count_ones());
    if fits(&all) {
        all
    } else if fits(&count) {
        count
    } else {
        String::new()
    }
}

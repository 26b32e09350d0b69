//! The wavefronts in which shared memory serves a warp: a row for each, its 32 banks side by side.

use super::{lanes, picture, rect, text};
use krn_runtime::emulator::TracedAccess;
use krn_runtime::emulator::count::banks::{Wavefront, wavefronts};
use maud::{Markup, html};

const LEFT: f64 = 30.0;
const BANK: f64 = 17.0;
const ROW: f64 = 15.0;
const BANKS: u32 = 32;

pub fn drawn(access: &TracedAccess, label: &str) -> Markup {
    let all = wavefronts(&access.addresses, access.mask, access.lane_bytes, access.is_load);
    let size = (LEFT + f64::from(BANKS) * BANK + 1.0, 14.0 + all.len() as f64 * (ROW + 2.0) + 1.0);
    let body = html! {
        (text("axis", (0.0, 9.0), "bank"))
        @for bank in (0..BANKS).step_by(4) {
            (text("axis", (LEFT + f64::from(bank) * BANK + 2.0, 9.0), &bank.to_string()))
        }
        @for (at, wavefront) in all.iter().enumerate() {
            (row(at, wavefront))
        }
    };
    picture("wavefronts", label, (size.0 as u32, size.1 as u32), body)
}

fn row(at: usize, wavefront: &Wavefront) -> Markup {
    let y = 14.0 + at as f64 * (ROW + 2.0);
    let class = if wavefront.conflict { "conflict" } else { "used" };
    html! {
        (text("address", (LEFT - 6.0, y + 11.0), &(at + 1).to_string()))
        (rect("empty", (LEFT, y), (f64::from(BANKS) * BANK - 1.0, ROW), ""))
        @for (bank, mask, banks) in &wavefront.pieces {
            @let (x, width) = (LEFT + f64::from(*bank) * BANK, f64::from(*banks) * BANK - 1.0);
            (rect(class, (x, y), (width, ROW), &format!("lanes {}", lanes(*mask))))
            @let shown = if mask.count_ones() == 1 { lanes(*mask) } else { format!("{}×", mask.count_ones()) };
            (text("lane", (x + width / 2.0, y + 11.0), &shown))
        }
    }
}

//! What limits how many blocks a multiprocessor holds: a bar for each limit.

use super::{line, picture, rect, text};
use krn_runtime::profile::{Gpu, Limiter, Needs, limits};
use maud::{Markup, html};

const LEFT: f64 = 168.0;
const WIDTH: f64 = 280.0;
const ROW: f64 = 20.0;
const STEP: f64 = 28.0;

pub fn drawn(gpu: &Gpu, needs: &Needs, limiter: Option<Limiter>, label: &str) -> Markup {
    let all = limits(gpu, needs);
    let most = gpu.multiprocessor.blocks;
    let least = all.iter().map(|(blocks, _)| *blocks).min().unwrap_or(0);
    let x = |blocks: u64| blocks.min(most) as f64 / most.max(1) as f64 * WIDTH;
    let height = all.len() as f64 * STEP + 20.0;
    let body = html! {
        @for (at, (blocks, limit)) in all.iter().enumerate() {
            @let y = at as f64 * STEP;
            @let class = if Some(*limit) == limiter || *blocks == 0 { "conflict" } else { "used" };
            (text("address", (LEFT - 8.0, y + 14.0), limit.name()))
            (rect("empty", (LEFT, y), (WIDTH, ROW), ""))
            (rect(class, (LEFT, y), (x(*blocks), ROW), ""))
            @let more = if *blocks > most { format!("{blocks}, more than fit") } else { blocks.to_string() };
            (text("words", (LEFT + WIDTH + 8.0, y + 14.0), &more))
        }
        (line("mark", (LEFT + x(least), -2.0), (LEFT + x(least), height - 18.0)))
        (text("axis", (LEFT, height - 4.0), "blocks that a multiprocessor would hold if this were the only limit"))
    };
    picture("occupancy", label, ((LEFT + WIDTH + 130.0) as u32, height as u32), body)
}

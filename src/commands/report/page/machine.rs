//! The kernel on the machine: how its axes are spread, what limits it.

use super::memory::key;
use super::section::{Section, section};
use crate::commands::profile::found::{Launch, Profile};
use crate::commands::profile::text::{grouped_launches, seconds};
use crate::commands::report::axes::Axis;
use crate::commands::report::contents::Report;
use crate::commands::report::svg::hierarchy::hierarchy;
use crate::commands::report::svg::occupancy;
use crate::commands::report::svg::roofline::{Point, Roof, roofline};
use maud::{Markup, html};

pub fn axes(report: &Report<'_>) -> Section {
    let lead = html! {
        p {
            "How each axis is cut, from the grid down to what one instruction takes: every bar enlarges one piece of the bar "
            "above. " (key("level-block", "blocks of the grid")) " " (key("level-warp", "warps of a block")) " "
            (key("level-lane", "lanes of a warp")) " " (key("level-serial", "turns of a thread")) " "
            (key("level-vector", "neighbours of a thread, side by side"))
        }
    };
    let mut entries: Vec<&str> = report.axes.iter().map(|axis| axis.entry.as_str()).collect();
    entries.dedup();
    let body = html! {
        @if entries.is_empty() { p { "What ran is not spread over threads: one does all of it." } }
        @for entry in entries {
            h3 { code { (entry) } }
            div.figures {
                @for axis in report.axes.iter().filter(|axis| axis.entry == entry) { (axis_figure(axis)) }
            }
        }
    };
    section("axes", "Axes on the machine", lead, body)
}

fn axis_figure(axis: &Axis) -> Markup {
    let words: Vec<String> = axis.levels.iter().map(|level| level.words()).collect();
    let words = words.join(", ");
    html! {
        figure {
            figcaption {
                p.title {
                    strong { "axis " code { (axis.name) } }
                    @if let Some(extent) = axis.extent { ", " (extent) " iterations" }
                }
                p.verdict { (words) }
            }
            (hierarchy(&axis.levels, &format!("axis {}: {words}", axis.name)))
        }
    }
}

pub fn limits(report: &Report<'_>) -> Section {
    let profile = &report.profile;
    let gpu = profile.gpu;
    let lead = html! {
        p {
            "Held against one " (gpu.title) ": " (gpu.multiprocessors) " multiprocessors at " (gpu.clock) " GHz, "
            (gpu.bandwidth) " GB/s. The lines are the data sheet's; that every sector moves once is "
            span.est { "assumed" } "."
        }
    };
    let body = html! {
        div.figures {
            (roofline_figure(profile))
            @for (launch, count) in grouped_launches(profile) { (occupancy_figure(profile, launch, count)) }
        }
    };
    section("limits", "Roofline and occupancy", lead, body)
}

/// Where the kernel stands: each of its launches as a bound, all of it as measured.
fn points(profile: &Profile<'_>) -> Vec<Point> {
    let mut points = Vec::new();
    for (launch, _) in grouped_launches(profile) {
        let line = &launch.roofline;
        let flops = line.flops + line.flops64;
        if let Some(intensity) = line.intensity().filter(|intensity| *intensity > 0.0) {
            let name = format!("{}: predicted at most", launch.counted.entry);
            points.push(Point { name, intensity, rate: flops / line.time, measured: false });
        }
    }
    let line = &profile.roofline;
    if let Some(time) = &profile.time
        && let Some(intensity) = line.intensity().filter(|intensity| *intensity > 0.0)
    {
        let name = format!("{}: measured on {}", profile.kernel, time.device);
        let rate = (line.flops + line.flops64) / time.median;
        points.push(Point { name, intensity, rate, measured: true });
    }
    points
}

fn roofline_figure(profile: &Profile<'_>) -> Markup {
    let points = points(profile);
    let gpu = profile.gpu;
    let only_wide = profile.roofline.flops64 > 0.0 && profile.roofline.flops == 0.0;
    let rate = if only_wide { gpu.flops().1 } else { gpu.flops().0 };
    let roof = Roof { bandwidth: gpu.bandwidth * 1e9, rate };
    let label = format!("Roofline of one {} with {} points", gpu.title, points.len());
    html! {
        figure {
            figcaption {
                p.title { strong { "Roofline" } @if only_wide { ", of 64-bit operations" } }
                @if points.is_empty() {
                    p.verdict { "Nothing that ran does floating-point arithmetic on bytes of DRAM: there is no point to draw." }
                }
                ol.points {
                    @for point in &points {
                        li {
                            @if point.measured { strong { (point.name) } } @else { span.est { (point.name) } }
                            ": " (format!("{:.2}", point.intensity)) " flop/byte, " (format!("{:.3}", point.rate / 1e12)) " TFLOP/s"
                        }
                    }
                }
                p.who {
                    (key("predicted", "predicted: a bound that follows from the counters")) " "
                    @match &profile.time {
                        Some(time) => {
                            (key("measured", "measured:"))
                            (seconds(time.median)) ", " (format!("{:.1}", profile.roofline.time / time.median * 100.0))
                            " % of the limit"
                        }
                        None => { "Nothing was measured: there is no GPU." }
                    }
                }
            }
            (roofline(roof, &points, &label))
        }
    }
}

fn occupancy_figure(profile: &Profile<'_>, launch: &Launch, count: usize) -> Markup {
    let words = match &launch.occupancy {
        Some(found) => format!(
            "{} of {} warps ({:.0} %), limited by {}",
            found.warps,
            found.most_warps,
            found.share() * 100.0,
            found.limiter.name()
        ),
        None => "not one block fits".to_string(),
    };
    let entry = &launch.counted.entry;
    html! {
        figure {
            figcaption {
                p.title {
                    strong { "Occupancy" } " of " code { (entry) }
                    @if count > 1 { ", " (count) " times" }
                }
                p.verdict { (words) }
                p.who {
                    (launch.needs.blocks) " blocks of " (launch.needs.threads) " threads, " (launch.registers) " registers a thread "
                    @if launch.registers_estimated { span.est { "(estimated from the PTX)" } } @else { "(by ptxas)" }
                    ", " (launch.needs.shared_bytes) " bytes of shared memory a block."
                }
            }
            (occupancy::drawn(
                profile.gpu,
                &launch.needs,
                launch.occupancy.map(|found| found.limiter),
                &format!("Occupancy of {entry}: {words}"),
            ))
        }
    }
}

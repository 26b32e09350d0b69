//! The roofline: what a GPU can compute at most, by the operations that are done for each byte of its memory; and where
//! the kernel stands.

use super::{line, number, picture, text};
use maud::{Markup, html};

/// A kernel, or one of its launches.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    pub name: String,
    /// Floating-point operations a byte of DRAM.
    pub intensity: f64,
    /// Operations a second.
    pub rate: f64,
    /// Timed on a GPU; else a bound that follows from counters.
    pub measured: bool,
}

/// A GPU's limits: bytes a second, operations a second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Roof {
    pub bandwidth: f64,
    pub rate: f64,
}

const LEFT: f64 = 74.0;
const TOP: f64 = 16.0;
const WIDTH: f64 = 486.0;
const HEIGHT: f64 = 260.0;

/// From the lowest to the highest power of ten on an axis.
#[derive(Clone, Copy)]
struct Scale {
    low: i32,
    high: i32,
}

impl Scale {
    fn around(values: impl Iterator<Item = f64>) -> Self {
        let logs: Vec<f64> = values.filter(|value| *value > 0.0).map(f64::log10).collect();
        let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
        let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return Scale { low: 0, high: 1 };
        }
        Scale { low: low.floor() as i32, high: (high.floor() as i32 + 1).max(low.floor() as i32 + 1) }
    }

    fn part(&self, value: f64) -> f64 {
        (value.log10() - f64::from(self.low)) / f64::from(self.high - self.low)
    }
}

pub fn roofline(roof: Roof, points: &[Point], label: &str) -> Markup {
    let balance = roof.rate / roof.bandwidth;
    let xs = Scale::around(points.iter().map(|point| point.intensity).chain([balance / 30.0, balance * 8.0]));
    let lowest = roof.bandwidth * 10f64.powi(xs.low);
    let ys = Scale::around(points.iter().map(|point| point.rate).chain([lowest * 1.01, roof.rate]));
    let x = |value: f64| LEFT + xs.part(value) * WIDTH;
    let y = |value: f64| TOP + (1.0 - ys.part(value)) * HEIGHT;
    let start = 10f64.powi(xs.low).max(10f64.powi(ys.low) / roof.bandwidth);
    let path = format!(
        "M{} {}L{} {}L{} {}",
        number(x(start)),
        number(y(roof.bandwidth * start)),
        number(x(balance)),
        number(y(roof.rate)),
        number(LEFT + WIDTH),
        number(y(roof.rate))
    );
    let body = html! {
        @for power in xs.low..=xs.high {
            @let at = x(10f64.powi(power));
            (line("grid", (at, TOP), (at, TOP + HEIGHT)))
            (text("tick", (at, TOP + HEIGHT + 15.0), &plain(power)))
        }
        @for power in ys.low..=ys.high {
            @let at = y(10f64.powi(power));
            (line("grid", (LEFT, at), (LEFT + WIDTH, at)))
            (text("address", (LEFT - 6.0, at + 4.0), &flops(power)))
        }
        path class="roof" d=(path) {}
        @let middle = (start * balance).sqrt();
        (text("axis", (x(middle) + 10.0, y(roof.bandwidth * middle) + 12.0), &format!("{:.0} GB/s", roof.bandwidth / 1e9)))
        (text("right", (LEFT + WIDTH, y(roof.rate) - 6.0), &format!("{:.1} TFLOP/s", roof.rate / 1e12)))
        @for (at, point) in points.iter().enumerate() {
            (marked(x(point.intensity), y(point.rate), at, point))
        }
        (text("tick", (LEFT + WIDTH / 2.0, TOP + HEIGHT + 32.0), "floating-point operations a byte of DRAM"))
    };
    picture("roofline", label, ((LEFT + WIDTH + 20.0) as u32, (TOP + HEIGHT + 40.0) as u32), body)
}

/// Predictions are hollow, measurements filled; the number stands in the list beside the picture.
fn marked(x: f64, y: f64, at: usize, point: &Point) -> Markup {
    let class = if point.measured { "point measured" } else { "point predicted" };
    html! {
        circle class=(class) cx=(number(x)) cy=(number(y)) r="6" { title { (point.name) } }
        (text("lane-name", (x + 9.0, y + 14.0), &(at + 1).to_string()))
    }
}

fn plain(power: i32) -> String {
    if power < 0 {
        format!("0.{}1", "0".repeat((-power - 1) as usize))
    } else {
        format!("1{}", "0".repeat(power as usize))
    }
}

/// A power of ten of operations a second.
fn flops(power: i32) -> String {
    let (unit, base) = match power {
        15.. => ("PFLOP/s", 15),
        12..15 => ("TFLOP/s", 12),
        9..12 => ("GFLOP/s", 9),
        _ => ("MFLOP/s", 6),
    };
    format!("{} {unit}", plain(power - base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_looks_other_than_what_is_predicted() {
        let roof = Roof { bandwidth: 4.8e12, rate: 6.7e13 };
        let point = |rate, measured| Point { name: "k".to_string(), intensity: 32.0, rate, measured };
        let drawn = roofline(roof, &[point(6.7e13, false), point(2e12, true)], "roof").into_string();
        assert_eq!(drawn.matches("point predicted").count(), 1, "{drawn}");
        assert_eq!(drawn.matches("point measured").count(), 1, "{drawn}");
    }

    #[test]
    fn scales_hold_their_values() {
        let scale = Scale::around([0.5, 30.0, 0.0].into_iter());
        assert_eq!((scale.low, scale.high), (-1, 2));
        assert!(scale.part(0.5) > 0.0 && scale.part(30.0) < 1.0);
        assert_eq!((plain(2), plain(0), plain(-2)), ("100".into(), "1".into(), "0.01".into()));
        assert_eq!((flops(13), flops(9)), ("10 TFLOP/s".into(), "1 GFLOP/s".into()));
    }
}

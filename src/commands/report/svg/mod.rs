//! Pictures, drawn as SVG within the page. Colours are the page's variables, so they follow its light and dark; whatever
//! a picture says stands in words beside it, too.

pub mod access;
pub mod bank_map;
pub mod hierarchy;
pub mod occupancy;
pub mod roofline;
pub mod wavefronts;

use maud::{Markup, html};

/// A picture with what it shows in words, in units of its own.
pub fn picture(class: &str, label: &str, (width, height): (u32, u32), body: Markup) -> Markup {
    html! {
        div.drawing {
            svg class=(class) role="img" aria-label=(label) viewBox={ "0 0 " (width) " " (height) }
                width=(width) height=(height) { (body) }
        }
    }
}

/// A filled rectangle, with a word for pointers that rest on it.
pub fn rect(class: &str, at: (f64, f64), size: (f64, f64), title: &str) -> Markup {
    html! {
        rect class=(class) x=(number(at.0)) y=(number(at.1)) width=(number(size.0)) height=(number(size.1)) {
            @if !title.is_empty() { title { (title) } }
        }
    }
}

pub fn text(class: &str, at: (f64, f64), content: &str) -> Markup {
    html! { text class=(class) x=(number(at.0)) y=(number(at.1)) { (content) } }
}

pub fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> Markup {
    html! {
        line class=(class) x1=(number(from.0)) y1=(number(from.1)) x2=(number(to.0)) y2=(number(to.1)) {}
    }
}

/// A coordinate: at most two digits after the point, the same on every machine.
pub fn number(value: f64) -> String {
    let rounded = (value * 100.0).round() / 100.0;
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}

/// Lanes as a person says them: `0–31`, `0, 4, 8`.
pub fn lanes(mask: u32) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut lane = 0;
    while lane < 32 {
        if mask >> lane & 1 == 0 {
            lane += 1;
            continue;
        }
        let first = lane;
        while lane < 32 && mask >> lane & 1 == 1 {
            lane += 1;
        }
        parts.push(match lane - first {
            1 => first.to_string(),
            _ => format!("{first}–{}", lane - 1),
        });
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lanes_are_short() {
        assert_eq!([1.0, 0.126, -0.001, 12.5].map(number), ["1", "0.13", "0", "12.5"]);
        assert_eq!(lanes(u32::MAX), "0–31");
        assert_eq!(lanes(0b1011), "0–1, 3");
    }
}

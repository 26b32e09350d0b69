//! Making an input that fails small: tokens are taken away as long as it fails in the same way.

use crate::mutate::tokens;
use std::time::{Duration, Instant};

/// Shrinking stops here.
const PATIENCE: Duration = Duration::from_secs(60);

/// A part of the text that still `fails`, from which no piece of a power-of-two length can be taken.
pub fn shrink(text: &str, fails: impl Fn(&str) -> bool) -> String {
    let start = Instant::now();
    let mut list = tokens(text);
    let mut length = list.len().next_power_of_two();
    while length > 0 {
        let mut at = 0;
        let mut smaller = false;
        while at < list.len() && start.elapsed() < PATIENCE {
            let end = (at + length).min(list.len());
            let rest: Vec<String> = list[..at].iter().chain(&list[end..]).cloned().collect();
            if fails(&rest.concat()) {
                list = rest;
                smaller = true;
            } else {
                at = end;
            }
        }
        // Single tokens again, as long as that helps.
        if length > 1 || !smaller || start.elapsed() >= PATIENCE {
            length /= 2;
        }
    }
    list.concat()
}

#[test]
fn only_what_matters_stays() {
    let text = "kernel k(x: f32[n]) -> y: f32[n] { y[i] = x[i] / 0 }";
    assert_eq!(shrink(text, |text| text.contains('/') && text.contains("n]")), "n]/");
}

//! Sums of squared deviations from a mean, small ones: from text to numbers, as `whole.rs` has it.

use super::whole::Whole;
use krn_generator::Program;

/// Texts, with the size of `n`.
const TEXTS: [(&str, i64); 4] = [
    (
        "kernel p(x: f32[n]) -> mean: f32, squares: f32 {
            mean = sum(i: x[i]) / n as f32
            squares = sum(i: (x[i] - mean) * (x[i] - mean))
        }",
        77,
    ),
    (
        "kernel p(x: f32[n]) -> mean: f32, squares: f32 {
            mean = sum(i: x[i]) / n as f32
            squares = sum(i: (x[i] - mean) * (x[i] - mean))
        }",
        0,
    ),
    (
        "kernel p(x: f32[n]) -> mean: f32, squares: f32 {
            mean = sum(i: x[i]) / (n + 5) as f32
            squares = sum(i: (x[i] - mean) * (x[i] - mean))
        }",
        77,
    ),
    (
        "kernel p(x: f32[n], y: f32[n]) -> mean: f32, squares: f32 {
            mean = sum(i: x[i] * y[i]) / n as f32
            squares = sum(i: (x[i] * x[i] - mean) * (x[i] * y[i] - mean))
        }",
        77,
    ),
];

/// All of them with what they compute.
pub fn deviations() -> Vec<Whole> {
    let programs = TEXTS.iter().zip(0..).map(|((text, size), number)| {
        let dims = vec![("n".to_string(), *size)];
        (format!("deviations {number}"), Program { source: (*text).to_string(), dims, seed: 0 })
    });
    programs.filter_map(|(name, program)| Whole::of(name, &program)).collect()
}

#[test]
fn squared_deviations_are_what_the_reference_says() {
    let all = deviations();
    assert_eq!(all.len(), TEXTS.len(), "all of them are judged");
    for one in all {
        assert_eq!(one.difference_of_the_right(), None, "{}", one.text);
    }
}

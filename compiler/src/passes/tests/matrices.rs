//! Products whose factors a matrix instruction takes, and convolutions, small ones: from text to numbers, as `whole.rs` has it.

use super::whole::Whole;
use krn_generator::Program;

/// Texts, with the sizes of `m`, `n` and `k`. Facts say what makes vectors.
const PRODUCTS: [(&str, [i64; 3]); 4] = [
    (
        "kernel p(a: bf16[m, k], b: bf16[k, n]) -> c: f32[m, n] where k % 8 == 0, n % 8 == 0 {
            c[i, j] = sum(p: a[i, p] * b[p, j])
        }",
        [17, 8, 264],
    ),
    (
        "kernel p(a: bf16[m, k], b: bf16[n, k]) -> c: f32[m, n] where k % 8 == 0 { c[i, j] = sum(p: a[i, p] * b[j, p]) }",
        [21, 8, 232],
    ),
    (
        "kernel p(a: f16[m, k], b: f16[k, n]) -> c: f32[m, n] { c[i, j] = sum(p: a[i, p] * b[p, j]) }",
        [33, 33, 35],
    ),
    (
        "kernel p(a: bf16[m, k], b: bf16[k, n]) -> c: f32[m, n] {
            c[i, j] = sum(p: (1.0 / a[i, p]) as bf16 as f32 * b[p, j])
        }",
        [33, 24, 41],
    ),
];

/// Texts of sizes that are known, so that nothing is compiled at launch.
const CONVOLUTIONS: [&str; 3] = [
    "kernel p(x: f32[2, 3, 5, 6], f: f32[18, 3, 3, 3]) -> y: f32[2, 18, 5, 6] {
        y[s, u, i, j] = sum(k in 0..3, p in 0..3, q in 0..3: f[u, k, p, q] * (x[s, k, i + p - 1, j + q - 1] else 0.0))
    }",
    "kernel p(x: f32[2, 5, 6, 3], f: f32[3, 3, 3, 18]) -> y: f32[2, 5, 6, 18] {
        y[s, i, j, u] = sum(p in 0..3, q in 0..3, k in 0..3: (x[s, i + p - 1, j + q - 1, k] else 0.0) * f[p, q, k, u])
    }",
    "kernel p(x: f32[2, 3, 5, 6], f: f32[18, 3, 3, 3]) -> y: f32[2, 18, 5, 6] {
        y[s, u, i, j] = sum(k in 0..3, p in 0..3, q in 0..3: f[u, k, p, q] * x[s, k, (i + p) % 5, (j + q) % 6])
    }",
];

/// Reference steps that each of them takes at most.
const CONVOLUTION_STEPS: u64 = 4_000_000;

/// The convolutions with what they compute.
pub fn convolutions() -> Vec<Whole> {
    let of_text = |(number, text): (usize, &&str)| {
        let program = Program { source: (*text).to_string(), dims: Vec::new(), seed: 0 };
        Whole::within(format!("convolution {number}"), &program, CONVOLUTION_STEPS)
    };
    CONVOLUTIONS.iter().enumerate().filter_map(of_text).collect()
}

/// The products with what they compute.
pub fn products() -> Vec<Whole> {
    let programs = PRODUCTS.iter().zip(0..).map(|((text, sizes), number)| {
        let dims = ["m", "n", "k"].map(str::to_string).into_iter().zip(*sizes).collect();
        // Without infinities: they hide what is not there.
        (format!("product {number}"), Program { source: (*text).to_string(), dims, seed: 0 })
    });
    programs.filter_map(|(name, program)| Whole::of(name, &program)).collect()
}

#[test]
fn convolutions_are_what_the_reference_says() {
    let all = convolutions();
    assert_eq!(all.len(), CONVOLUTIONS.len(), "all of them are judged");
    for convolution in all {
        assert_eq!(convolution.difference_of_the_right(), None, "{}", convolution.text);
    }
}

#[test]
fn products_of_matrix_instructions_are_what_the_reference_says() {
    let all = products();
    assert_eq!(all.len(), PRODUCTS.len(), "all of them are judged");
    for product in all {
        assert!(product.text.contains("sum("));
        assert_eq!(product.difference_of_the_right(), None, "{}", product.text);
    }
}

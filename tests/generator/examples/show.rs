//! Prints the program of a seed: `cargo run -p krn-generator --example show 7`, with `patterns` behind it a product, a
//! transpose or the like at a larger size, with `locals` iterations that have arrays of their own, with `forms` small kernels
//! of the forms that passes look for, with `idioms` those with reductions of their own, arrays in place and loops that the
//! device ends, with `own` larger reductions of one's own.

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

fn main() {
    let seed: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut bytes = [0u8; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let programs = match std::env::args().nth(2).as_deref() {
        Some("patterns") => krn_generator::patterns().boxed(),
        Some("columns") => krn_generator::columns().boxed(),
        Some("permutations") => krn_generator::permutations().boxed(),
        Some("locals") => krn_generator::locals().boxed(),
        Some("forms") => krn_generator::forms().boxed(),
        Some("own") => krn_generator::own_patterns().boxed(),
        Some("idioms") => krn_generator::idioms().boxed(),
        _ => krn_generator::programs().boxed(),
    };
    match programs.new_tree(&mut runner) {
        Ok(tree) => print!("{:?}", tree.current()),
        Err(reason) => eprintln!("{reason}"),
    }
}

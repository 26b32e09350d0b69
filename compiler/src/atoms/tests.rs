//! The tables against the formulas of the PTX manual, by enumeration; the arithmetic against examples.

use super::numerics::{NAN, Number, dot};
use super::*;
use crate::layout::{Dimension, ValueLayout};
use std::collections::BTreeSet;

/// The coordinates of what a register of a lane holds, by the names of the axes.
fn at(layout: &ValueLayout, axes: [&str; 2], register: u64, lane: u64) -> [u64; 2] {
    let element = layout.apply([register, lane, 0, 0]);
    axes.map(|axis| element[layout.axes().iter().position(|(name, _)| *name == axis).unwrap()])
}

#[test]
fn fragments_are_those_of_the_manual() {
    for atom in MATRIX_ATOMS {
        let [left, right, sums] = atom.layouts();
        let per_word = atom.left.per_word() as u64;
        // Steps of a row that a lane has in a word, and in the other word of the row.
        let half = atom.steps / 2;
        for lane in 0..32 {
            let (g, t) = (lane / 4, lane % 4);
            for register in 0..4 * per_word {
                let (word, part) = (register / per_word, register % per_word);
                let expected = [g + word % 2 * 8, t * per_word + part + word / 2 * half];
                assert_eq!(at(&left, ["m", "k"], register, lane), expected, "{}", atom.shape());
            }
            for register in 0..2 * per_word {
                let (word, part) = (register / per_word, register % per_word);
                let expected = [t * per_word + part + word * half, g];
                assert_eq!(at(&right, ["k", "n"], register, lane), expected, "{}", atom.shape());
            }
            for register in 0..4 {
                let expected = [g + register / 2 * 8, 2 * t + register % 2];
                assert_eq!(at(&sums, ["m", "n"], register, lane), expected, "{}", atom.shape());
            }
        }
        assert_eq!(left.axes().iter().map(|(_, extent)| extent).product::<u64>(), ROWS * atom.steps);
        assert_eq!(right.axes().iter().map(|(_, extent)| extent).product::<u64>(), COLUMNS * atom.steps);
        let registers = [&left, &right, &sums].map(|it| it.extent(Dimension::Register) as usize);
        assert_eq!(registers, [4 * per_word as usize, 2 * per_word as usize, 4]);
        assert_eq!(atom.steps * atom.left.scalar().size() * 8, 256);
    }
    let types: BTreeSet<_> = MATRIX_ATOMS.iter().map(|atom| (atom.left.name(), atom.right.name())).collect();
    assert_eq!(types.len(), MATRIX_ATOMS.len());
}

#[test]
fn contractions_are_fragments_times_whole_digits() {
    let layout = |text: &str| -> ValueLayout { text.parse().unwrap() };
    let left = layout(
        "i = warp:2@1 · register:2@8 · register:2@2 · lane:8@4, p = register:2@4 · lane:4@1 · register:2@1",
    );
    let right = layout("p = register:2@2 · lane:4@1 · register:2@1, j = register:2@4 · lane:8@4, _ = warp:2");
    let sums = layout(
        "i = warp:2@1 · register:2@8 · register:2@2 · lane:8@4, j = register:2@4 · lane:4@1 · register:2@1",
    );
    let types = (Scalar::BF16, Scalar::BF16);
    let fit = Fit::find(Atom::Mma, types, [&left, &right, &sums], "p").expect("it fits");
    assert_eq!((fit.atom.shape().as_str(), fit.swapped), ("m16n8k16", false));
    assert_eq!(fit.outer[2], layout("i = warp:2 · register:2@2, j = register:2@1"));
    // The other way round, the right factor has the rows.
    let fit = Fit::find(Atom::Mma, types, [&right, &left, &sums], "p").expect("it fits");
    assert!(fit.swapped);
    // Not for other types, nor where the lanes lie otherwise.
    assert_eq!(Fit::find(Atom::Mma, (Scalar::F32, Scalar::F32), [&left, &right, &sums], "p"), None);
    assert_eq!(Fit::find(Atom::Mma, (Scalar::BF16, Scalar::F16), [&left, &right, &sums], "p"), None);
    let other = layout("p = register:2@2 · lane:4@8 · register:2@1, j = register:2@4 · lane:8@1, _ = warp:2");
    assert_eq!(Fit::find(Atom::Mma, types, [&left, &other, &sums], "p"), None);
}

fn bf16(values: &[f32]) -> Vec<Number> {
    values.iter().map(|value| Number::of(FactorType::Bf16, value.to_bits() >> 16)).collect()
}

fn sum(left: &[f32], right: &[f32], before: f32) -> f32 {
    f32::from_bits(dot(&bf16(left), &bf16(right), before.to_bits()))
}

#[test]
fn products_meet_at_the_largest_exponent() {
    assert_eq!(sum(&[1.0, 2.0], &[3.0, 4.0], 5.0), 16.0);
    // 2^-25 is kept beside 1, and what is below is cut off.
    let small = f32::from_bits((127 - 12) << 23);
    assert_eq!(sum(&[1.0, small], &[1.0, small * 0.5], -1.0), small * small * 0.5);
    assert_eq!(sum(&[1.0, small], &[1.0, small * 0.25], -1.0), 0.0);
    // The exponent of 1.5 · 1.5 is that of 1: no bit is lost for its size.
    assert_eq!(sum(&[1.5, -1.5, small], &[1.5, 1.5, small * 0.5], 0.0), small * small * 0.5);
    // Cut off, not rounded.
    let next = f32::from_bits(1.0f32.to_bits() + 1);
    assert_eq!(sum(&[1.0, 1.0], &[1.0, 2f32.powi(-24)], 2f32.powi(-25)), 1.0);
    assert_eq!(sum(&[1.0, 1.0], &[1.0, 2f32.powi(-24)], 2f32.powi(-24)), next);
    assert_eq!(sum(&[-1.0, -1.0], &[1.0, 2f32.powi(-24)], -2f32.powi(-25)), -1.0);
}

#[test]
fn ends_of_the_range() {
    let large = f32::from_bits(0x7f00_0000);
    assert_eq!(sum(&[large, large], &[1.0, 1.0], 0.0), f32::INFINITY);
    assert_eq!(sum(&[large, -large], &[2.0, 2.0], 1.0), 0.0);
    assert_eq!(sum(&[f32::INFINITY], &[1.0], f32::NEG_INFINITY).to_bits(), NAN);
    assert_eq!(sum(&[f32::INFINITY], &[0.0], 0.0).to_bits(), NAN);
    assert_eq!(sum(&[f32::INFINITY], &[-2.0], 7.0), f32::NEG_INFINITY);
    assert_eq!(sum(&[1.0], &[f32::NAN], 7.0).to_bits(), NAN);
    // Zero has no sign, subnormal numbers count.
    assert_eq!(sum(&[-0.0], &[1.0], -0.0).to_bits(), 0);
    let least = f32::from_bits(1);
    assert_eq!(sum(&[0.0], &[0.0], least), least);
    let tiny = f32::from_bits(1 << 16);
    assert_eq!(sum(&[tiny], &[-1.0], 0.0), -tiny);
    let half = Number::of(FactorType::F16, 1);
    assert_eq!(f32::from_bits(dot(&[half], &[Number::of(FactorType::F16, 0x3c00)], 0)), 2f32.powi(-24));
    // The lower bits of a tf32 do not count.
    let one = Number::of(FactorType::Tf32, 1.0f32.to_bits() | 0x1fff);
    assert_eq!(one, Number::of(FactorType::Tf32, 1.0f32.to_bits()));
}

#[test]
fn a_warp_multiplies_matrices() {
    for atom in MATRIX_ATOMS {
        let [left, right, sums] = atom.layouts();
        let (per_word, steps) = (atom.left.per_word(), atom.steps);
        // Small integers: all of it is exact.
        let value = |row: u64, step: u64| (row * 5 + step * 3) % 7;
        let bits = |factor: FactorType, value: u64| match factor {
            FactorType::I8 | FactorType::U8 => value as u32,
            FactorType::Tf32 => (value as f32).to_bits(),
            FactorType::Bf16 => (value as f32).to_bits() >> 16,
            FactorType::F16 => half::f16::from_f32(value as f32).to_bits().into(),
        };
        let words = |layout: &ValueLayout, axes: [&str; 2], factor: FactorType| -> Vec<[u32; WARP]> {
            let registers = layout.extent(Dimension::Register) as usize;
            let mut words = vec![[0; WARP]; registers / per_word];
            for register in 0..registers {
                for (lane, word) in words[register / per_word].iter_mut().enumerate() {
                    let [row, step] = at(layout, axes, register as u64, lane as u64);
                    let shift = 32 / per_word * (register % per_word);
                    *word |= bits(factor, value(row, step)) << shift;
                }
            }
            words
        };
        let result = atom.run(
            &words(&left, ["m", "k"], atom.left),
            &words(&right, ["n", "k"], atom.right),
            &[[0; WARP]; 4],
        );
        for (register, lanes) in result.iter().enumerate() {
            for (lane, found) in lanes.iter().enumerate() {
                let [row, column] = at(&sums, ["m", "n"], register as u64, lane as u64);
                let expected: u64 = (0..steps).map(|step| value(row, step) * value(column, step)).sum();
                let found = *found;
                let found = if atom.left.is_float() { f32::from_bits(found) as u64 } else { found.into() };
                assert_eq!(found, expected, "{} {}", atom.shape(), atom.left.name());
            }
        }
    }
}

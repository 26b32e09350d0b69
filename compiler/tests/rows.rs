//! What the code of row kernels is made of: each element is read once and costs few instructions, and what only awkward
//! numbers need stands behind a branch.

use crate::support::{compiled, compiled_at, compiled_for};

/// The PTX of one entry of a kernel that is compiled for rows of a length.
fn entry(source: &str, cols: i64, name: &str) -> String {
    let ptx = compiled_at(source, &[("cols", cols)]).compiled.ptx;
    let start = ptx.find(&format!(".entry {name}(")).unwrap_or_else(|| panic!("no entry {name}"));
    let rest = &ptx[start..];
    rest[..rest.find("\n}").expect("the entry ends")].to_string()
}

fn count(entry: &str, mnemonic: &str) -> usize {
    entry.lines().filter(|line| line.split_whitespace().any(|word| word == mnemonic)).count()
}

const SOFTMAX: &str = "
kernel softmax(x: bf16[rows, cols]) -> y: bf16[rows, cols] {
    forall r in rows {
        let peak = max(c: x[r, c])
        let e[c] = exp(x[r, c] - peak)
        let total = sum(c: e[c])
        y[r, c] = e[c] / total
    }
}";

#[test]
fn a_softmax_takes_one_visit_to_memory_and_to_the_special_function_unit_an_element() {
    // 128 threads hold a row of 4096: 32 elements each, in four vectors.
    let softmax = entry(SOFTMAX, 4096, "softmax_row_128");
    assert_eq!(count(&softmax, "ld.global.cs.v4.b32"), 4);
    assert_eq!(count(&softmax, "st.global.cs.v4.b32"), 4);
    assert_eq!(count(&softmax, "ex2.approx.ftz.f32"), 32);
    // Three for each exponential but the one that clamps, two for each quotient.
    assert_eq!(count(&softmax, "fma.rn.sat.f32"), 32);
    assert_eq!(count(&softmax, "fma.rn.f32"), 32 * (3 + 2));
    // As many blocks as leave a thread 64 registers.
    assert!(softmax.contains(".minnctapersm 8"), "{softmax}");
}

#[test]
fn quotients_by_one_divisor_share_its_reciprocal() {
    let softmax = entry(SOFTMAX, 4096, "softmax_row_128");
    assert_eq!(count(&softmax, "rcp.rn.f32"), 1);
    // The divisions are there for awkward numbers, each eight behind a branch that is usually taken, and one that zeros take.
    assert_eq!(count(&softmax, "div.rn.f32"), 32);
    let skips = softmax.lines().filter(|line| line.contains(" bra ") && line.contains("divided")).count();
    assert_eq!(skips, 2 * (32 / 8));
}

#[test]
fn several_short_rows_are_one_warps_and_loaded_once() {
    let source = "
kernel unit(x: f32[rows, cols]) -> y: f32[rows, cols] {
    forall r in rows {
        let norm = sqrt(sum(c: x[r, c] * x[r, c]))
        forall c in cols { y[r, c] = x[r, c] / max(norm, 1e-12) }
    }
}";
    // Sixteen lanes have a vector each; the lanes of a row that is there no more load the last one again.
    for (cols, name) in [(64, "unit_row_16"), (44, "unit_row_16"), (32, "unit_row_8"), (128, "unit_row_warp")]
    {
        let unit = entry(source, cols, name);
        assert_eq!(count(&unit, "ld.global.cs.v4.f32"), 1, "{unit}");
        assert_eq!(count(&unit, "st.global.cs.v4.f32"), 1, "{unit}");
    }
    // Of zeros, which stand for what lies behind a row's end, the quotient takes no division.
    let unit = entry(source, 64, "unit_row_16");
    assert_eq!(count(&unit, "setp.eq.f32"), 4, "{unit}");
    assert_eq!(unit.lines().filter(|line| line.contains(" bra ") && line.contains("divided")).count(), 2);
}

#[test]
fn a_mean_over_a_row_of_known_length_divides_nothing() {
    let source = "
kernel centre(x: f32[rows, cols]) -> y: f32[rows, cols] where cols >= 1 {
    forall r in rows {
        let mean = sum(c: x[r, c]) / cols as f32
        y[r, c] = x[r, c] - mean
    }
}";
    let known = entry(source, 2048, "centre_row_128");
    assert_eq!(count(&known, "div.rn.f32"), 0, "{known}");
    assert!(!known.contains("p_cols"), "{known}");
    let any = entry(source, 2044, "centre_row_128_masked");
    assert_eq!(count(&any, "div.rn.f32"), 1, "{any}");
}

#[test]
fn all_threads_of_a_team_walk_a_row_as_often() {
    let source = "kernel sums(x: f32[rows, cols]) -> y: f32[rows] { y[r] = sum(c: x[r, c]) }";
    let walk = entry(source, 1000, "sums_row_warp_walk");
    // The thread's own start stands on both sides of the test; 511 and 127 are one less than the elements of a turn.
    assert_eq!(count(&walk, "-511;"), 1, "{walk}");
    assert_eq!(count(&walk, "-127;"), 1, "{walk}");
    // What is left: a last group behind a test of the thread's own, and single elements.
    assert_eq!(count(&walk, "-3;"), 1, "{walk}");
    let loops = walk.lines().filter(|line| line.starts_with("loop_c")).count();
    assert_eq!(loops, 3, "{walk}");
}

#[test]
fn a_thread_that_looks_for_the_largest_does_not_compare_positions() {
    let source = "kernel largest(x: f32[cols]) -> at: i64 { at = argmax(i: x[i]) }";
    let pieces = entry(source, 1 << 24, "largest_pieces");
    // Positions rise along a thread's way: only when threads meet are they compared.
    let compared = count(&pieces, "setp.lt.u64");
    // Values are, by what becomes of the largest: -0 is below +0.
    let values = count(&pieces, "max.NaN.f32");
    assert_eq!((values, compared), (36, 11), "{pieces}");
}

/// The assembler ignores a number of blocks for which a multiprocessor has no threads.
#[test]
fn a_multiprocessor_is_not_asked_for_more_blocks_than_it_has_threads_for() {
    let text = "kernel log_sum(x: f64[r, c]) -> y: f64[r] {
        forall i in r { let m = max(j: x[i, j]); y[i] = m + log(sum(j: exp(x[i, j] - m))) }
    }";
    for (target, threads) in [("sm_75", 1024), ("sm_86", 1536), ("sm_90", 2048)] {
        let module = compiled_for(text, target, &[]).compiled.ptx;
        let number = |line: &str, word: &str| -> Option<u32> {
            line.trim().strip_prefix(word)?.split(',').next()?.trim().parse().ok()
        };
        let (mut block, mut asked) = (0, 0);
        for line in module.lines() {
            block = number(line, ".reqntid").unwrap_or(block);
            if let Some(blocks) = number(line, ".minnctapersm") {
                assert!(blocks * block <= threads, "{blocks} blocks of {block} threads for {target}");
                asked += 1;
            }
        }
        assert!(asked > 0, "{target}");
    }
}

/// A temporary is memory that other launches have written: a row of it is shared as one of an argument is.
#[test]
fn rows_of_a_temporary_are_shared_by_teams() {
    let source = "
kernel twice(x: f32[rows, cols], idx: i32[cols]) -> y: f32[rows], z: f32[rows, cols] {
    let t[r, c] = x[r, idx[c]] * 2.0
    z[r, c] = t[r, idx[c]]
    y[r] = sum(c: t[r, c])
}";
    let ptx = compiled(source, &[]).compiled.ptx;
    assert!(ptx.contains("_row_"), "no launch shares rows:\n{ptx}");
}

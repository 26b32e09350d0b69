//! What iterations side by side compute, against the same iterations one after the other.

use crate::ir::entities::Buffer;
use crate::ir::kernel::{BufferKind, Kernel};
use crate::ir::op::Opcode;
use crate::ir::testing::{Outcome, interpret, symbol_values};
use crate::ir::text::parse_module;
use crate::passes::{Pipeline, PipelineOptions, TargetFacts};

/// A kernel of one loop, `[grid:*, lane:32, vector:4]`, over `n` elements of `x` (in) and of `y` and `z` (out),
/// with a private array `own` of two.
fn kernel(body: &str) -> Kernel {
    let text = format!(
        r#"kernel "k" {{
    symbol sym0 "n" i64 dim 0 0
    symbol sym1 "m" i64 dim 0 1
    buffer buf0 "x" i64 [sym0, sym1] argument 0 in, aos
    buffer buf1 "y" i64 [sym0] argument 1 out, aos
    buffer buf2 "z" i64 [sym0] argument 2 out, aos
    buffer buf3 "own" i64 [2] private, aos
    argument buf0
    argument buf1
    argument buf2
    launch launch0 "k" mapped threads 32 {{
        v0: i64 = const 0
        v1: i64 = const 1
        v2: i64 = symbol sym0
        v3: i64 = symbol sym1
        forall axis0 "i" = v0..v2 [grid:*, lane:32, vector:4] (v4 "i": i64) {{
{body}
            yield
        }}
    }}
    plan {{ launch0 }}
}}"#
    );
    let module = parse_module(&text).unwrap_or_else(|error| panic!("{error}"));
    module.kernels.into_iter().next().expect("one kernel")
}

fn outcome(kernel: &Kernel, n: i128, m: i128) -> Outcome {
    // Equal numbers, so that ties are met.
    let fill = |buffer: Buffer, _: u32, at: usize| (at as i64 * 7 + i64::from(buffer.as_u32())) % 5 - 2;
    interpret(kernel, &symbol_values(n, m), &fill)
}

/// Runs `threads`, compares what the kernel does for sizes that end within a vector and at its end, and gives the
/// kernel back.
fn jammed(body: &str) -> Kernel {
    let before = kernel(body);
    let mut after = before.clone();
    let pipeline = Pipeline::of_names(&["threads"], &TargetFacts::new(90)).expect("a pass");
    let options = PipelineOptions { verify: true, ..PipelineOptions::default() };
    pipeline.run(&mut after, &options, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    for (n, m) in [(0, 3), (1, 2), (4, 0), (5, 4), (8, 1), (131, 3)] {
        let expected = outcome(&before, n, m);
        assert!(matches!(expected, Outcome::Finished(_)), "{expected:?}");
        assert_eq!(outcome(&after, n, m), expected, "n = {n}, m = {m}");
    }
    after
}

fn count(kernel: &Kernel, opcode: Opcode) -> usize {
    let mut count = 0;
    kernel.walk_all(&mut |_, inst| count += usize::from(kernel.insts[inst].opcode == opcode));
    count
}

#[test]
fn pairs_stay_together() {
    // A sum, an argmax and a product that is the same for all iterations, in one reduction.
    let after = jammed(
        "            v5: i64, v6: i64, v7: i64, v8: i64 = reduce [add, argmax, mul] axis1 \"j\" = v0..v3 [serial:*] (v9: i64) {
                v10: i64 = load buf0[v4, v9]
                v11: i64 = add v9, v1
                yield v10, v10, v9, v11
            }
            v12: i64 = add v5, v8
            v13: i64 = add v6, v7
            store buf1[v4], v12
            store buf2[v4], v13",
    );
    // One loop for the four, one for the edge.
    assert_eq!(count(&after, Opcode::Reduce), 2);
    let mut widths = Vec::new();
    after.walk_all(&mut |_, inst| {
        if after.insts[inst].opcode == Opcode::Reduce {
            widths.push(after.insts[inst].results.len());
        }
    });
    // Four sums, four pairs, one product.
    assert_eq!(widths, [4 + 8 + 1, 4]);
}

#[test]
fn a_loop_with_one_condition_for_all_is_one_loop() {
    let after = jammed(
        "            v6: i64, v7: i64 = while [v0, v4] (v8: i64, v9: i64) {
                v10: bool = lt v8, v3
                yield v10
            } do (v11: i64, v12: i64) {
                v13: i64 = add v11, v1
                v14: i64 = add v12, v4
                yield v13, v14
            }
            store buf1[v4], v6
            store buf2[v4], v7",
    );
    assert_eq!(count(&after, Opcode::While), 2);
}

#[test]
fn a_loop_with_a_condition_of_each_is_a_loop_for_each() {
    // The second value that goes round becomes different only after a turn, and the condition with it.
    let after = jammed(
        "            v6: i64, v7: i64 = while [v0, v0] (v8: i64, v9: i64) {
                v10: bool = lt v9, v4
                yield v10
            } do (v11: i64, v12: i64) {
                v13: i64 = add v12, v1
                v14: i64 = add v11, v4
                yield v14, v13
            }
            store buf1[v4], v6
            store buf2[v4], v7",
    );
    assert_eq!(count(&after, Opcode::While), 4 + 1);
}

#[test]
fn values_that_cross_over_in_a_loop_become_different_turn_by_turn() {
    // b takes what a was, a what c was, c the index: all differ, the last one after three turns.
    jammed(
        "            v5: i64, v6: i64, v7: i64 = for axis1 \"j\" = v0..v3 [serial:*] step v1 carry [v0, v0, v0] (v8: i64, v9: i64, v10: i64, v11: i64) {
                yield v11, v9, v4
            }
            v12: i64 = add v5, v7
            store buf1[v4], v12
            store buf2[v4], v6",
    );
}

#[test]
fn each_iteration_has_its_own_private_array() {
    let after = jammed(
        "            store buf3[v0], v4
            store buf3[v1], v1
            for axis1 \"j\" = v0..v3 [serial:*] step v1 (v5: i64) {
                v6: i64 = load buf3[v0]
                v7: i64 = load buf0[v4, v5]
                v8: i64 = add v6, v7
                store buf3[v0], v8
                yield
            }
            v9: i64 = load buf3[v0]
            v10: i64 = load buf3[v1]
            store buf1[v4], v9
            store buf2[v4], v10",
    );
    let privates = after.buffers.values().filter(|data| data.kind == BufferKind::Private).count();
    assert_eq!(privates, 4);
}

#[test]
fn branches_on_different_conditions_are_copied_and_on_the_same_shared() {
    let after = jammed(
        "            v5: bool = lt v1, v3
            v6: i64 = if v5 {
                v7: i64 = load buf0[v4, v1]
                yield v7
            } else {
                yield v1
            }
            v8: bool = lt v6, v1
            v9: i64 = if v8 {
                yield v0
            } else {
                yield v6
            }
            store buf1[v4], v9
            store buf2[v4], v6",
    );
    // The guard of the four and the guard at the edge; the shared branch there and here; four copies and one.
    assert_eq!(count(&after, Opcode::If), 2 + 2 + 5);
}

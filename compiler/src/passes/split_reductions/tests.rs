//! What split reductions compute, on the interpreter, which runs factors as plain loops and follows the plan.

use crate::ir::Specialization;
use crate::ir::entities::Buffer;
use crate::ir::kernel::Kernel;
use crate::ir::testing::{Outcome, host_values, interpret, symbol_values};
use crate::ir::text::parse_module;
use crate::passes::{Pipeline, PipelineOptions, TargetFacts};

/// A mapped kernel with `x [n, m]` (in), `y [m]` (inout) and `z [2]` (inout), of i64, and an array of each thread.
fn kernel(threads: u32, body: &str) -> Kernel {
    let text = format!(
        r#"kernel "k" {{
    symbol sym0 "n" i64 dim 0 0
    symbol sym1 "m" i64 dim 0 1
    buffer buf0 "x" i64 [sym0, sym1] argument 0 in, aos
    buffer buf1 "y" i64 [sym1] argument 1 inout, aos
    buffer buf2 "z" i64 [2] argument 2 inout, aos
    buffer buf3 "own" i64 [2] private, aos
    argument buf0
    argument buf1
    argument buf2
    launch launch0 "k" mapped threads {threads} {{
        v0: i64 = const 0
        v1: i64 = symbol sym0
        v2: i64 = symbol sym1
{body}
    }}
    plan {{ launch0 }}
}}"#
    );
    let module = parse_module(&text).unwrap_or_else(|error| panic!("{error}"));
    module.kernels.into_iter().next().expect("one kernel")
}

/// Runs the pass for each of the sizes, compares what the kernel does, and gives back the names of all launches.
fn split(threads: u32, body: &str, sizes: &[(i128, i128)]) -> Vec<String> {
    let before = kernel(threads, body);
    let pipeline = Pipeline::of_names(&["split_reductions"], &TargetFacts::new(90)).expect("a pass");
    let options = PipelineOptions { verify: true, ..PipelineOptions::default() };
    let mut names = Vec::new();
    let fill =
        |buffer: Buffer, _: u32, at: usize| (at as i64 * 7919 + i64::from(buffer.as_u32())) % 1000 - 400;
    for (n, m) in sizes {
        let mut after = before.clone();
        after.specialization = Specialization::for_values(host_values(&symbol_values(*n, *m)));
        pipeline.run(&mut after, &options, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
        names.extend(after.launches.values().map(|launch| launch.name.clone()));
        // Scratch buffers are no part of what a kernel does.
        let memory = |kernel: &Kernel| match interpret(kernel, &symbol_values(*n, *m), &fill) {
            Outcome::Finished(memory) => {
                let arguments = memory.into_iter().filter(|((buffer, _), _)| buffer.as_u32() < 3);
                arguments.collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(memory(&before), memory(&after), "n = {n}, m = {m}");
    }
    names.sort_unstable();
    names.dedup();
    names
}

const COLUMNS: [(i128, i128); 4] = [(4096, 3), (4097, 2), (5000, 1), (7, 3)];

#[test]
fn columns_that_share_the_value_of_a_bound_with_the_outer_loop() {
    let body = "        forall axis0 \"j\" = v0..v2 [grid:*, warp:8, lane:32] (v3 \"j\": i64) {
            v6: i64 = reduce [add] axis1 \"i\" = v0..v1 [serial:*] (v4 \"i\": i64) {
                v5: i64 = load buf0[v4, v3]
                yield v5
            }
            store buf1[v3], v6
            yield
        }";
    assert_eq!(split(256, body, &COLUMNS), ["k", "k_combine", "k_pieces"]);
}

#[test]
fn a_body_that_uses_the_bounds_of_its_loop() {
    let body = "        forall axis0 \"j\" = v0..v2 [grid:*, warp:8, lane:32] (v3 \"j\": i64) {
            v6: i64 = reduce [add] axis1 \"i\" = v0..v1 [serial:*] (v4 \"i\": i64) {
                v5: i64 = load buf0[v4, v3]
                v7: i64 = mul v5, v1
                v8: i64 = sub v7, v0
                yield v8
            }
            store buf1[v3], v6
            yield
        }";
    assert_eq!(split(256, body, &COLUMNS), ["k", "k_combine", "k_pieces"]);
}

#[test]
fn a_reduction_that_reads_what_was_written_before_it_is_not_cut() {
    let body = "        forall axis0 \"j\" = v0..v2 [grid:*, warp:8, lane:32] (v3 \"j\": i64) {
            store buf1[v3], v3
            v6: i64 = reduce [add] axis1 \"i\" = v0..v1 [serial:*] (v4 \"i\": i64) {
                v5: i64 = load buf0[v4, v3]
                v7: i64 = load buf1[v3]
                v8: i64 = mul v5, v7
                yield v8
            }
            store buf1[v3], v6
            yield
        }";
    assert_eq!(split(256, body, &COLUMNS), ["k"]);
    let own = "        v3: i64 = const 3
        store buf3[v0], v3
        v6: i64 = reduce [add] axis1 \"i\" = v0..v1 [serial:*] (v4 \"i\": i64) {
            v5: i64 = load buf0[v4, v0]
            v7: i64 = load buf3[v0]
            v8: i64 = mul v5, v7
            yield v8
        }
        store buf2[v0], v6";
    assert_eq!(split(1, own, &[(70_000, 1), (5, 1)]), ["k"]);
}

#[test]
fn single_reductions_of_any_length() {
    // The end of the pieces, a piece of its own, and none; the second reduction starts at 1 and has an index.
    let body = "        v3: i64 = const 1
        v6: i64 = reduce [add] axis1 \"i\" = v0..v1 [serial:*] (v4 \"i\": i64) {
            v5: i64 = load buf0[v4, v0]
            v7: i64 = mul v5, v1
            yield v7
        }
        v8: i64, v9: i64 = reduce [argmin] axis2 \"i\" = v3..v1 [serial:*] (v10 \"i\": i64) {
            v11: i64 = load buf0[v10, v0]
            yield v11, v10
        }
        v12: i64 = add v6, v8
        store buf2[v0], v12
        store buf2[v3], v9";
    let names = split(1, body, &[(65_537, 1), (70_000, 1), (2, 1), (300, 2)]);
    assert_eq!(names, ["k_combine", "k_one_block", "k_pieces", "k_pieces_2"]);
}

#[test]
fn rows_are_shared_by_length() {
    let body = "        forall axis0 \"i\" = v0..v1 [grid:*, warp:8, lane:32] (v3 \"i\": i64) {
            v6: i64 = reduce [add] axis1 \"j\" = v0..v2 [serial:*] (v4 \"j\": i64) {
                v5: i64 = load buf0[v3, v4]
                yield v5
            }
            v7: i64 = const 1
            v8: bool = eq v3, v7
            if v8 {
                store buf2[v0], v6
                yield
            } else {
                yield
            }
            yield
        }";
    let names = split(256, body, &[(3, 31), (3, 32), (2, 33), (2, 256), (2, 300), (2, 1024), (2, 1027)]);
    assert_eq!(names, ["k_row_16", "k_row_8", "k_row_walk", "k_row_warp_4", "k_row_warp_walk"]);
}

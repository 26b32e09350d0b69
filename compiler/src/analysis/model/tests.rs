//! What small launches cost, worked out by hand. Sums are of weighted samples: whole but for rounding.

use super::{AccessCost, LaunchCost, Space, model, representative_sizes, spell_sizes};
use crate::ir::kernel::Kernel;
use crate::ir::text::parse_kernel;
use crate::manifest::Value;

/// A kernel of one launch of four blocks of 256 threads, in which `v0` is the thread's number in its block, `v1` in the launch,
/// `v2` is `n` and `v3` a number from memory.
fn kernel(lines: &str) -> Kernel {
    let text = format!(
        "kernel \"k\" {{
    symbol sym0 \"n\" i64 dim 0 0
    buffer buf0 \"x\" f32 [sym0] argument 0 in, aos
    buffer buf1 \"y\" f32 [sym0] argument 1 out, aos
    buffer buf2 \"tile\" f32 [32, 32] shared, aos
    buffer buf3 \"padded\" f32 [32, 33] shared, aos
    buffer buf4 \"own\" f32 [64] private, aos
    buffer buf5 \"at\" i64 [sym0] argument 2 in, aos
    argument buf0
    argument buf1
    argument buf5
    launch launch0 \"k\" staged threads 256 grid [4, 1, 1] {{
        v0: i64 = thread_index
        v90: i64 = block_index 0
        v91: i64 = const 256
        v92: i64 = mul v90, v91
        v1: i64 = add v92, v0
        v2: i64 = symbol sym0
        v3: i64 = load buf5[v1]
        {lines}
    }}
    plan {{ launch0 }}
}}"
    );
    parse_kernel(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// With `n` = 1,048,576.
fn cost(lines: &str) -> LaunchCost {
    let mut launches = model(&kernel(lines), &[Value::Int(1 << 20)]).expect("it can be modelled");
    assert_eq!(launches.len(), 1);
    launches.remove(0)
}

/// The access to one kind of memory that comes last.
fn access(cost: &LaunchCost, space: Space) -> &AccessCost {
    cost.accesses.iter().rfind(|access| access.space == space).expect("such an access")
}

#[test]
fn a_request_is_one_of_a_warp() {
    let cost = cost("v4: f32 = load buf0[v1]");
    assert_eq!((cost.blocks, cost.block_count(), cost.threads, cost.exact), ([4, 1, 1], 4, 256, true));
    let load = access(&cost, Space::Global);
    let counts = [load.requests, load.sectors, load.least_sectors, load.bytes].map(f64::round);
    assert_eq!(counts, [32.0, 128.0, 128.0, 4096.0]);
    assert!(load.even && !load.writes && !load.atomic && load.width == 4 && load.unknown == 0.0);
    let sample = load.sample.as_ref().expect("known addresses");
    assert_eq!(sample.neighbours(), Some((0, 1)));
    assert_eq!(sample.offsets[1] - sample.offsets[0], 4);
}

#[test]
fn steps_and_shifts_cost_sectors() {
    let strided = cost("v4: i64 = const 8\n v5: i64 = mul v1, v4\n v6: f32 = load buf0[v5]");
    assert_eq!(access(&strided, Space::Global).sectors.round(), 32.0 * 32.0);
    let shifted = cost("v4: i64 = const 1\n v5: i64 = add v1, v4\n v6: f32 = load buf0[v5]");
    let load = access(&shifted, Space::Global);
    assert_eq!((load.sectors.round(), load.least_sectors.round()), (32.0 * 5.0, 32.0 * 4.0));
    let same = cost("v4: i64 = const 0\n v5: f32 = load buf0[v4]");
    assert_eq!(access(&same, Space::Global).bytes.round(), 32.0 * 4.0);
}

#[test]
fn stores_to_several_places_are_several() {
    let several = cost(
        "v4: f32 = load buf0[v1]
        v5: bool = const true
        v6: i64 = const 16
        v7: bool = lt v0, v6
        v8: i64 = add v1, v6
        store_each buf1[v1], v8, v4, v4, v5, v7",
    );
    let apart = cost(
        "v4: f32 = load buf0[v1]
        v6: i64 = const 16
        v7: bool = lt v0, v6
        v8: i64 = add v1, v6
        store buf1[v1], v4
        store_if buf1[v8], v4, v7",
    );
    assert_eq!(several.instructions, apart.instructions);
    let stored = |cost: &LaunchCost| {
        let stores = cost.accesses.iter().filter(|access| access.writes);
        stores.fold([0.0; 3], |sum, access| {
            [sum[0] + access.requests, sum[1] + access.sectors, sum[2] + access.bytes]
        })
    };
    assert_eq!(stored(&several).map(f64::round), stored(&apart).map(f64::round));
    // Of the second stores one warp of a block takes part, with half of its lanes.
    assert_eq!(stored(&several).map(f64::round), [36.0, 136.0, 4096.0 + 256.0]);
}

#[test]
fn what_comes_from_memory_has_no_address() {
    let cost = cost("v4: f32 = load buf0[v3]");
    let load = access(&cost, Space::Global);
    assert_eq!([load.requests, load.unknown, load.sectors].map(f64::round), [32.0, 32.0, 0.0]);
    assert!(load.sample.is_none());
}

#[test]
fn banks_are_counted_with_and_without_a_pad() {
    let column = |buffer: u32| {
        let lines = format!(
            "v4: i64 = const 31
        v5: i64 = and v0, v4
        v6: i64 = const 0
        v7: f32 = load buf{buffer}[v5, v6]"
        );
        let cost = cost(&lines);
        let load = access(&cost, Space::Shared);
        (load.wavefronts.round(), load.conflicts.round(), cost.shared_bytes)
    };
    assert_eq!(column(2), (32.0 * 32.0, 32.0 * 31.0, 4096));
    assert_eq!(column(3), (32.0, 0.0, 4224));
}

#[test]
fn local_memory_lies_interleaved() {
    let together = cost("v4: i64 = const 2\n v5: f32 = load buf4[v4]");
    let load = access(&together, Space::Local);
    assert_eq!([load.sectors, load.bytes].map(f64::round), [32.0 * 4.0, 32.0 * 128.0]);
    let apart = cost("v4: i64 = const 31\n v5: i64 = and v0, v4\n v6: f32 = load buf4[v5]");
    assert_eq!(access(&apart, Space::Local).sectors.round(), 32.0 * 32.0);
}

#[test]
fn lanes_wait_for_each_other_at_a_branch() {
    let lines = |mask: u32| {
        format!(
            "v4: i64 = const {mask}
        v5: i64 = and v0, v4
        v6: i64 = const 0
        v7: bool = eq v5, v6
        if v7 {{
            v8: i64 = add v1, v2
            v9: i64 = add v8, v2
            yield
        }} else {{
            yield
        }}"
        )
    };
    // Every second lane; then whole warps.
    let parted = cost(&lines(1));
    let [branch] = parted.branches.as_slice() else { panic!("{:?}", parted.branches) };
    // Two instructions, of which half the lanes see nothing.
    assert_eq!((branch.runs.round(), branch.divergent.round()), (32.0, 32.0));
    assert_eq!(branch.lost.round(), 32.0 * 2.0 / 2.0);
    let whole = cost(&lines(32));
    assert_eq!((whole.branches[0].divergent, whole.branches[0].lost), (0.0, 0.0));
    assert!(whole.instructions < parted.instructions && whole.exact);
}

#[test]
fn rounds_are_those_of_the_longest_lane() {
    let cost = cost(
        "v4: i64 = const 31
        v5: i64 = and v0, v4
        v6: i64 = const 0
        v7: i64 = const 1
        for axis0 \"j\" = v6..v5 step v7 (v8 \"j\": i64) {
            v9: f32 = load buf0[v8]
            yield
        }",
    );
    let load = access(&cost, Space::Global);
    // 31 rounds of each warp, of which a part is looked at.
    assert_eq!(load.requests.round(), 32.0 * 31.0);
    assert_eq!(cost.branches[0].divergent.round(), 32.0);
    assert!(cost.branches[0].lost > 0.0);
}

/// A ring of copies has nothing more to copy in its last rounds.
#[test]
fn the_last_rounds_are_looked_at_one_by_one() {
    let cost = cost(
        "v4: i64 = const 100
        v5: i64 = const 97
        v6: i64 = const 0
        v7: i64 = const 1
        for axis0 \"chunk\" = v6..v4 step v7 (v8 \"chunk\": i64) {
            v9: bool = lt v8, v5
            if v9 {
                v10: f32 = load buf0[v8]
                yield
            } else {
                yield
            }
            yield
        }",
    );
    assert_eq!(access(&cost, Space::Global).requests.round(), 32.0 * 97.0);
}

/// An address that a loop carries on, as rings of copies do: the place and the rounds with nothing to copy are known.
#[test]
fn copies_from_carried_addresses_are_counted() {
    let cost = cost(
        "v4: i64 = const 100
        v5: i64 = const 97
        v6: i64 = const 0
        v7: i64 = const 1
        v8: i64 = address buf0[v1]
        v9: i64 = const 4
        v10: i64 = const 1024
        v11: i64 = const 31
        v12: i64 = and v0, v11
        v13: i64 = for axis0 \"chunk\" = v6..v4 step v7 carry [v8] (v14 \"chunk\": i64, v15: i64) {
            v16: bool = lt v14, v5
            if v16 {
                copy_async buf2[v6, v12], v15, v9
                yield
            } else {
                yield
            }
            v17: i64 = add v15, v10
            yield v17
        }",
    );
    let read = access(&cost, Space::Global);
    assert!(cost.is_exact());
    assert_eq!([read.requests.round(), read.sectors.round()], [32.0 * 97.0, 4.0 * 32.0 * 97.0]);
}

#[test]
fn wide_divisions_are_told_from_others() {
    let wide = cost("v4: i64 = rem v1, v2");
    assert_eq!(wide.divisions.iter().map(|division| division.runs).sum::<f64>().round(), 32.0);
    let literal = cost("v4: i64 = const 7\n v5: i64 = rem v1, v4");
    let narrow = cost("v4: u32 = cast u32 v1\n v5: u32 = cast u32 v2\n v6: u32 = rem v4, v5");
    assert!(literal.divisions.is_empty() && narrow.divisions.is_empty());
    assert!(literal.instructions < narrow.instructions && narrow.instructions < wide.instructions);
}

/// A kernel whose plan has a launch for each of two cases, and a fact about its sizes.
const CASES: &str = "kernel \"k\" {
    symbol sym0 \"m\" i64 dim 0 0
    symbol sym1 \"n\" i64 dim 0 1
    buffer buf0 \"x\" f32 [sym0, sym1] argument 0 in, aos
    argument buf0
    fact \"n < m\" line 1: sym1 < sym0
    launch launch0 \"other\" staged threads 64 grid [1, 1, 1] {
        v0: i64 = const 0
    }
    launch launch1 \"even\" staged threads 64 grid [sym1, 2, 1] {
        v1: i64 = const 0
    }
    plan { if (sym1 % 2) == 0 { launch1 } else { launch0 } }
}";

#[test]
fn the_plan_is_taken_at_the_sizes() {
    let kernel = parse_kernel(CASES).unwrap_or_else(|error| panic!("{error}"));
    let taken = |m, n| {
        let launches = model(&kernel, &[Value::Int(m), Value::Int(n)]).expect("it can be modelled");
        launches
            .iter()
            .map(|cost| (kernel.launches[cost.launch].name.clone(), cost.blocks))
            .collect::<Vec<_>>()
    };
    assert_eq!(taken(9, 4), [("even".to_string(), [4, 2, 1])]);
    assert_eq!(taken(9, 5), [("other".to_string(), [1, 1, 1])]);
}

#[test]
fn sizes_fulfil_the_facts() {
    let kernel = parse_kernel(CASES).unwrap_or_else(|error| panic!("{error}"));
    let sizes = representative_sizes(&kernel).expect("there are such sizes");
    let [Value::Int(m), Value::Int(n)] = sizes.as_slice() else { panic!("{sizes:?}") };
    assert!(n < m && *n > 0, "{sizes:?}");
    assert_eq!(spell_sizes(&kernel, &sizes), format!("m = {m}, n = {n}"));
    let impossible = CASES.replace("sym1 < sym0", "sym1 < sym1");
    let kernel = parse_kernel(&impossible).unwrap_or_else(|error| panic!("{error}"));
    assert!(representative_sizes(&kernel).is_none());
}

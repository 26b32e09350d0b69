use super::verify_threads;
use crate::ir::text::parse_kernel;
use crate::ir::verify;

/// The complaints about a launch of 64 threads with a shared buffer of 64 elements, two tiles of 64 and a matrix.
fn complaints(body: &str) -> Vec<String> {
    let text = format!(
        "kernel \"k\" {{
    symbol sym0 \"n\" i64 dim 0 0
    buffer buf0 \"x\" f32 [sym0] argument 0 in, aos
    buffer buf1 \"row\" f32 [64] shared, aos
    buffer buf2 \"tiles\" f32 [2, 64] shared, aos
    buffer buf3 \"matrix\" u32 [12, 24] shared, aos
    buffer buf4 \"pairs\" struct \"Pair\" size 8 align 4 {{ \"a\" f32 at 0, \"b\" f32 at 4 }} [64] shared, aos
    buffer buf5 \"halves\" bf16 [64, 8] shared, aos
    argument buf0
    launch launch0 \"k\" staged threads 64 grid [sym0, 1, 1] {{
        v0: i64 = const 0
        v1: i64 = const 1
        v2: i64 = symbol sym0
        v3: i64 = thread_index
        v4: i64 = const 63
        v5: i64 = sub v4, v3
        v6: i64 = const 32
        v7: i64 = block_index 0
        v8: f32 = const 1.0
        v9: bool = lt v3, v6
        {body}
    }}
    plan {{ launch0 }}
}}
"
    );
    let kernel = parse_kernel(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(verify(&kernel), Ok(()));
    verify_threads(&kernel).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

fn assert_accepted(body: &str) {
    assert_eq!(complaints(body), Vec::<String>::new(), "{body}");
}

fn assert_refused(body: &str, part: &str) {
    let found = complaints(body);
    assert!(found.iter().any(|complaint| complaint.contains(part)), "{part}: {found:?}\n{body}");
}

#[test]
fn what_another_thread_wrote_is_behind_a_barrier() {
    assert_accepted("store buf1[v3], v8\nbarrier\nv10: f32 = load buf1[v5]");
    assert_accepted("store buf1[v3], v8\nv10: f32 = load buf1[v3]");
    let found = complaints("store buf1[v3], v8\nv10: f32 = load buf1[v5]");
    insta::assert_snapshot!(found.join("\n"), @"`store buf1[v3], v8`: races with `v10: f32 = load buf1[v5]`: threads 63 and 0 may touch the same element of `row` (buf1), and no barrier stands on the way to it");
    // Written after it was read, and by two threads at once.
    assert_refused("v10: f32 = load buf1[v5]\nstore buf1[v3], v8", "races with");
    assert_refused("store buf1[v0], v8", "in threads side by side");
    assert_accepted("v10: bool = eq v3, v0\nif v10 {\nstore buf1[v0], v8\nyield\n} else {\nyield\n}");
    // Lanes of one warp are no exception.
    assert_refused("v10: i64 = xor v3, v1\nstore buf1[v3], v8\nv11: f32 = load buf1[v10]", "races with");
}

#[test]
fn matrices_are_read_by_way_of_other_lanes() {
    let body = |between: &str| {
        format!(
            "store_vector buf5[v3, v0], v8, v8, v8, v8, v8, v8, v8, v8\n{between}\nv10: u32, v11: u32 = load_matrix buf5[v3, v0]"
        )
    };
    assert_accepted(&body("barrier"));
    // Not even what the thread itself has written.
    assert_refused(&body(""), "races with");
}

#[test]
fn all_lanes_come_to_an_instruction_of_the_warp() {
    let words = "v10: u32 = const 0\n";
    let operands = "v10, v10, v10, v10, v10, v10, v8, v8, v8, v8";
    let mma = |from: u32| {
        let results: Vec<String> = (from..from + 4).map(|number| format!("v{number}: f32")).collect();
        format!("{} = mma bf16 bf16: {operands}\n", results.join(", "))
    };
    assert_accepted(&format!("{words}{}", mma(11)));
    let branch = |what: &str| format!("if v9 {{\n{what}yield\n}} else {{\nyield\n}}");
    // Whole warps may stay away, lanes may not.
    assert_accepted(&format!("{words}{}", branch(&mma(11))));
    let lanes = "v20: bool = lt v3, v1\n";
    let inside = branch(&mma(11)).replace("if v9", "if v20");
    assert_refused(&format!("{words}{lanes}{inside}"), "all lanes of the warp");
    let load = branch("v11: u32 = load_matrix_transposed buf5[v3, v0]\n").replace("if v9", "if v20");
    assert_refused(&format!("{lanes}{load}"), "all lanes of the warp");
}

#[test]
fn vectors_of_a_struct_s_fields_are_one_element() {
    assert_accepted("store_vector buf4.a[v3], v8, v8");
    // Fields that a vector touches beside its own; the element behind it.
    assert_accepted("store_vector buf4.a[v3], v8, v8\nv10: f32 = load buf4.b[v3]");
    assert_refused("store_vector buf4.a[v3], v8, v8\nv10: f32 = load buf4.b[v5]", "races with");
    assert_refused("store_vector buf4.b[v3], v8, v8", "in threads side by side");
    assert_refused("store_vector buf4.a[v3], v8, v8, v8, v8", "in threads side by side");
}

#[test]
fn turns_of_a_loop_meet_the_next() {
    let turn = |body: &str| {
        format!("for axis0 \"t\" = v0..v2 [serial:*] step v1 carry [] (v20 \"t\": i64) {{\n{body}\nyield\n}}")
    };
    assert_accepted(&turn("store buf1[v3], v8\nbarrier\nv10: f32 = load buf1[v5]\nbarrier"));
    let found = complaints(&turn("store buf1[v3], v8\nbarrier\nv10: f32 = load buf1[v5]"));
    insta::assert_snapshot!(found.join("\n"), @r#"`v11: f32 = load buf1[v5]`: races with `store buf1[v3], v8`: threads 63 and 0 may touch the same element of `row` (buf1), and no barrier stands on the way to it through the next turn of `for axis0 "t" = v0..v2 [serial:*] step v1`"#);
    // A barrier in some turns only.
    let sometimes = "v10: bool = lt v20, v6\nif v10 {\nbarrier\nyield\n} else {\nyield\n}";
    assert_refused(
        &turn(&format!("store buf1[v3], v8\nbarrier\nv11: f32 = load buf1[v5]\n{sometimes}")),
        "next turn",
    );
    // Without barriers each thread is in a turn of its own.
    assert_refused(
        &turn("v10: i64 = add v3, v20\nv11: i64 = rem v10, v6\nstore buf1[v11], v8"),
        "side by side",
    );
}

#[test]
fn two_buffers_by_turns_need_one_barrier() {
    let swap = |store: &str| {
        format!(
            "store buf2[v0, v3], v8\nbarrier\n\
             v19: i64 = for axis0 \"t\" = v0..v2 [serial:*] step v1 carry [v0] (v20 \"t\": i64, v21: i64) {{\n\
             v22: i64 = sub v1, v21\nv23: f32 = load buf2[v21, v5]\nstore buf2[{store}, v3], v8\nbarrier\nyield v22\n}}"
        )
    };
    assert_accepted(&swap("v22"));
    assert_refused(&swap("v21"), "races with");
}

#[test]
fn copies_in_the_background_are_waited_for() {
    // Each thread brings its own four bytes; the others read them.
    let copy = |wait: &str| {
        format!(
            "v10: i64 = const 4\nv11: i64 = address buf0[v0]\ncopy_async buf1[v3], v11, v10\n{wait}\n\
             v12: f32 = load buf1[v5]"
        )
    };
    assert_accepted(&copy("copy_commit\ncopy_wait 0\nbarrier"));
    for wait in
        ["barrier", "copy_commit\nbarrier", "copy_commit\ncopy_wait 1\nbarrier", "copy_commit\ncopy_wait 0"]
    {
        assert_refused(&copy(wait), "races with");
    }
    // A barrier in front of the wait tells the others nothing, and a thread has to wait for its own copy too.
    assert_refused(&copy("copy_commit\nbarrier\ncopy_wait 0"), "races with");
    let own =
        |wait: &str| copy(&format!("copy_commit\n{wait}\nv13: f32 = load buf1[v3]\ncopy_wait 0\nbarrier"));
    assert_accepted(&own("copy_wait 0"));
    assert_refused(&own(""), "races with");
    // Sixteen bytes are four elements.
    let wide = "v10: i64 = const 16\nv11: i64 = address buf0[v0]\ncopy_async buf1[v3], v11, v10";
    assert_refused(wide, "side by side");
}

#[test]
fn elements_shared_out_among_the_threads_are_their_own() {
    let elements = "v10: i64 = const 288\nv11: i64 = const 64\nv12: i64 = const 24\nv13: u32 = const 0";
    let each = |step: &str| {
        format!(
            "{elements}\nfor axis0 \"e\" = v3..v10 [serial:*] step {step} carry [] (v20 \"e\": i64) {{\n\
             v21: i64 = rem v20, v12\nv22: i64 = div v20, v12\nstore buf3[v22, v21], v13\nyield\n}}"
        )
    };
    assert_accepted(&each("v11"));
    assert_refused(&each("v6"), "side by side");
    assert_refused(&format!("{}\natomic add buf3[v0, v0], v13", each("v11")), "races with `atomic");
    assert_accepted(&format!(
        "{}\nbarrier\natomic add buf3[v0, v0], v13\natomic add buf3[v0, v1], v13",
        each("v11")
    ));
}

#[test]
fn all_threads_come_to_a_barrier() {
    let under = |condition: &str| format!("if {condition} {{\nbarrier\nyield\n}} else {{\nyield\n}}");
    let found = complaints(&under("v9"));
    insta::assert_snapshot!(found.join("\n"), @"`barrier`: must be reached by all threads of the block, but the condition of `if v9` may differ among them");
    assert_accepted(&format!("v10: bool = lt v7, v2\n{}", under("v10")));
    // What was read for all, and what was read for each.
    assert_accepted(&format!("v10: f32 = load buf0[v7]\nv11: bool = lt v10, v8\n{}", under("v11")));
    assert_refused(
        &format!("v10: f32 = load buf0[v3]\nv11: bool = lt v10, v8\n{}", under("v11")),
        "the condition",
    );
    let turns = "for axis0 \"t\" = v0..v3 [serial:*] step v1 carry [] (v20 \"t\": i64) {\nbarrier\nyield\n}";
    assert_refused(turns, "the number of turns");
    // A value that goes round a loop and comes to depend on the thread.
    let carried = "v19: i64 = for axis0 \"t\" = v0..v2 [serial:*] step v1 carry [v0] (v20 \"t\": i64, v21: i64) {\n\
                   v22: bool = lt v21, v6\nif v22 {\nbarrier\nyield\n} else {\nyield\n}\n\
                   v23: i64 = add v21, v3\nyield v23\n}";
    assert_refused(carried, "the condition");
}

#[test]
fn all_lanes_come_to_a_shuffle() {
    let shuffle = |condition: &str, mask: u8| {
        format!("if {condition} {{\nv30: i64 = shuffle_xor {mask}: v3\nyield\n}} else {{\nyield\n}}")
    };
    // Whole warps go one way or the other.
    assert_accepted(&shuffle("v9", 16));
    assert_refused(&format!("v10: bool = lt v3, v1\n{}", shuffle("v10", 1)), "all lanes of the warp");
    // What lanes have combined with each other is the same for them.
    let met = |masks: &[u8]| {
        let mut text = String::from("v10: i64 = rem v3, v6\n");
        let mut last = 10;
        for mask in masks {
            let other = last + 1;
            text += &format!(
                "v{other}: i64 = shuffle_xor {mask}: v{last}\nv{}: i64 = add v{last}, v{other}\n",
                other + 1
            );
            last = other + 1;
        }
        format!("{text}v40: bool = lt v{last}, v6\nif v40 {{\nbarrier\nyield\n}} else {{\nyield\n}}")
    };
    assert_accepted(&met(&[16, 8, 4, 2, 1]));
    assert_refused(&met(&[16, 8, 4, 2]), "all threads of the block");
    // So is what both compute of the lower one's value and the upper one's, unless both choose their own.
    let chosen = |literal: &str| {
        let mut text = String::from("v100: i64 = rem v3, v6\n");
        let mut last = 100;
        for mask in [16, 8, 4, 2, 1] {
            let at = last;
            let literal = if mask == 8 { literal.to_string() } else { mask.to_string() };
            text += &format!(
                "v{}: i64 = shuffle_xor {mask}: v{at}\nv{}: i64 = const {literal}\nv{}: i64 = and v3, v{}\n\
                 v{}: bool = eq v{}, v0\nv{}: i64 = select v{}, v{at}, v{}\nv{}: i64 = select v{}, v{}, v{at}\n\
                 v{}: i64 = sub v{}, v{}\n",
                at + 1,
                at + 2,
                at + 3,
                at + 2,
                at + 4,
                at + 3,
                at + 5,
                at + 4,
                at + 1,
                at + 6,
                at + 4,
                at + 1,
                at + 7,
                at + 5,
                at + 6
            );
            last = at + 7;
        }
        format!(
            "{text}v10: bool = lt v{last}, v6\nif v10 {{\nv30: i64 = shuffle_xor 1: v3\nyield\n}} else {{\nyield\n}}"
        )
    };
    assert_accepted(&chosen("8"));
    assert_refused(&chosen("32"), "all lanes of the warp");
}

//! `krn profile` as a user runs it.

use crate::tool_support::{command, ended};
use serde_json::Value;

/// Standard output and error of a run that ends with this exit code.
fn run(arguments: &[&str], code: i32) -> (String, String) {
    ended(&mut command(&[&["profile"], arguments].concat()), code)
}

fn json(arguments: &[&str]) -> Value {
    let mut all = arguments.to_vec();
    all.push("--json");
    serde_json::from_str(&run(&all, 0).0).expect("one JSON object")
}

const PADDED: [&str; 6] = ["examples/schedules.krn", "--kernel", "transpose_padded", "-D", "m=255", "n=1001"];

#[test]
fn the_table_says_what_each_line_does() {
    let (out, err) = run(&[&PADDED[..], &["--device", "emulator"]].concat(), 0);
    assert_eq!(err, "");
    assert!(
        out.starts_with("examples/schedules.krn: transpose_padded with m = 255, n = 1001 for one H200 SXM")
    );
    let row = out.lines().find(|line| line.ends_with("b[j, i] = a[i, j]")).expect("the line of the copy");
    for count in ["39,200", "38,907", "81.7%", "82.0%"] {
        assert!(row.contains(count), "{row}");
    }
    assert!(!out.contains("conflicts  "), "a column of nothing is left out\n{out}");
    for part in
        ["limited by ", "estimated from the PTX", "memory-bound", "NO TIME", "4800 GB/s", "no ptxas found"]
    {
        assert!(out.contains(part), "{part}\n{out}");
    }
    assert_eq!(out, run(&[&PADDED[..], &["--device", "emulator"]].concat(), 0).0);
}

#[test]
fn json_has_lines_launches_and_limits() {
    let value = json(&[&PADDED[..], &["--gpu", "a100"]].concat());
    assert_eq!(value["target"], "sm_80");
    assert_eq!(value["instructions_are"], "ptx");
    let launch = &value["launches"][0];
    // As an H200 counts them.
    assert_eq!(launch["global_loads"]["sectors"], 39_200);
    assert_eq!(launch["global_stores"]["requests"], 8_008);
    assert_eq!(launch["shared_stores"]["wavefronts"], 8_192);
    assert_eq!(launch["shared_loads"]["conflicts"], 0);
    assert_eq!(launch["registers_estimated"], true);
    assert_eq!(launch["roofline"]["bound"], "memory");
    // Every element is read once and written once.
    assert_eq!(
        value["roofline"]["dram_bytes_at_least"],
        2.0 * (255.0f64 * 1001.0 * 4.0 / 32.0).ceil() * 32.0
    );
    assert_eq!(value["measured"], Value::Null);
    let sectors = |value: &Value| value["global_loads"]["sectors"].as_u64().unwrap_or(0);
    let lines = value["lines"].as_array().expect("an array");
    assert_eq!(lines.iter().map(sectors).sum::<u64>(), sectors(launch));
}

#[test]
fn swizzles_conflicts_and_structs_show() {
    let of = |kernel: &str| json(&["examples/struct_update.krn", "--kernel", kernel, "-D", "n=4096"]);
    let efficiency =
        |value: &Value| value["launches"][0]["global_loads"]["efficiency"].as_f64().expect("loads");
    let (together, apart) = (efficiency(&of("one_field_aos")), efficiency(&of("one_field_soa")));
    assert!(together < 0.51 && apart > 0.99, "{together} {apart}");
    let value = json(&["examples/matmul.krn", "-D", "m=128", "n=128", "k=128"]);
    assert_eq!(value["launches"][0]["flops"], 2 * 128 * 128 * 128);
    assert_eq!(value["roofline"]["bound"], "compute");
}

#[test]
fn what_cannot_be_profiled_is_told() {
    let (_, err) = run(&["examples/saxpy.krn", "--gpu", "h300"], 2);
    assert!(err.contains("there are h200, h100, a100"), "{err}");
    let (_, err) = run(&["examples/sum.krn"], 2);
    assert!(err.contains("pick one of"), "{err}");
    let (_, err) = run(&["examples/nothing.krn"], 5);
    assert!(err.contains("cannot read"), "{err}");
    let (_, err) = run(&["examples/saxpy.krn", "-D", "n=1000000000000"], 2);
    assert!(err.contains("2^36"), "{err}");
}

#[test]
fn nothing_to_do_is_a_profile_too() {
    let (out, _) = run(&["examples/vector_add.krn", "-D", "n=0"], 0);
    assert!(out.contains("moves nothing and computes nothing"), "{out}");
    let value = json(&["examples/vector_add.krn", "-D", "n=0"]);
    assert_eq!(value["launches"].as_array().map(Vec::len), Some(0));
}

/// An estimate of registers is no more than the assembler may give: blocks always fit.
#[test]
fn large_blocks_fit() {
    let value = json(&["examples/argmax.krn", "--kernel", "whole", "-D", "rows=64", "cols=512"]);
    for launch in value["launches"].as_array().expect("an array") {
        assert!(launch["occupancy"]["blocks"].as_u64() > Some(0), "{launch}");
    }
}

#[test]
fn launches_that_did_the_same_are_told_once() {
    let (out, _) = run(&["examples/stencil_3d.krn", "-D", "d=8", "h=8", "w=32", "--set", "steps=6"], 0);
    assert!(out.contains("3 times"), "{out}");
}

/// Every command of the page, with what it prints. INSTA_UPDATE=always writes it anew.
#[test]
fn the_page_shows_what_the_tool_prints() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/profile.md");
    let page = std::fs::read_to_string(&path).expect("the page can be read");
    let (mut anew, mut commands, mut inside) = (String::new(), 0, false);
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        }
        if inside && line.starts_with("$ krn profile ") {
            commands += 1;
            let arguments: Vec<&str> = line["$ krn profile ".len()..].split(' ').collect();
            let (out, _) = run(&[&arguments[..], &["--device", "emulator"]].concat(), 0);
            anew += &format!("{line}\n{out}");
        } else if !inside || line.starts_with("```") {
            anew += &format!("{line}\n");
        }
    }
    assert_eq!(commands, 3);
    if std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always") {
        std::fs::write(&path, &anew).expect("the page can be written");
    } else {
        assert!(anew == page, "docs/profile.md is out of date; INSTA_UPDATE=always writes it anew");
    }
}

/// As an H200's counters say of `scatter`, for the seeds 0 to 5, which the profiler gave in no order.
#[test]
fn scattered_reductions_are_joined_as_on_an_h200() {
    for (size, read) in [
        ("n=5000,m=5000", [4893, 4897, 4899, 4902, 4916, 4924]),
        ("n=20001,m=20001", [19_890, 19_893, 19_899, 19_900, 19_910, 19_920]),
    ] {
        let sectors = |seed: u32| {
            let (n, m) = size.split_once(',').expect("two sizes");
            let seed = seed.to_string();
            let arguments = ["examples/gather_scatter.krn", "--kernel", "scatter", "-D", n, m];
            let inputs = ["--in", "to=permutation", "--seed", &seed, "--device", "emulator"];
            json(&[&arguments[..], &inputs].concat())["launches"][0]["global_atomics"]["sectors"].as_u64()
        };
        let mut counted: Vec<u64> = (0..6).filter_map(sectors).collect();
        counted.sort_unstable();
        assert_eq!(counted, read, "{size}");
    }
}

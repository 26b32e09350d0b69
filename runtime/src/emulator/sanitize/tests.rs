use crate::emulator::tests::kernel;
use crate::emulator::{ArgValue, Emulator, LaunchConfig, LaunchError};
use krn_compiler::ptx;

const HEADER: &str = ".version 8.0\n.target sm_90\n.address_size 64\n.file 1 \"some.krn\"\n";
const REGS: &str = ".shared .align 16 .b8 tile[512];\n.reg .pred %p; .reg .b32 %v, %w, %s; .reg .b64 %q;\n";

/// The thread's own word of the tile, its own word of `out`, and the tile's word of the thread on the other side.
const PLACES: &str = "mov.u32 %s, tile;
    mad.lo.u32 %w, %t, 4, %s;
    mad.wide.u32 %q, %t, 4, %out;
    mov.u32 %v, %ntid.x;
    sub.u32 %v, %v, 1;
    sub.u32 %v, %v, %t;
    mad.lo.u32 %s, %v, 4, %s;";

/// Runs over an array `out` of 128 words of which the host has written the first 64; the fault's text.
fn complaint(body: &str, config: LaunchConfig<'_>) -> Option<String> {
    let text = format!("{HEADER}{}", kernel(&["out"], REGS, &format!("{PLACES}\n{body}")));
    let module = ptx::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut device = Emulator::tracking();
    let module = device.load_module(&module).unwrap();
    let out = device.alloc(512, "out").unwrap();
    device.copy_in(out, &[0; 256]).unwrap();
    // None of this ends a launch that is not sanitized.
    let arguments = [ArgValue::from(out)];
    assert!(device.launch(&module, "k", &config, &arguments).is_ok());
    match device.launch_sanitized(&module, "k", &config, &arguments) {
        Ok(_) => None,
        Err(LaunchError::Fault(fault)) => Some(fault.to_string()),
        Err(other) => panic!("{other}"),
    }
}

fn assert_clean(body: &str, config: LaunchConfig<'_>) {
    assert_eq!(complaint(body, config), None, "{body}");
}

fn assert_race(body: &str, config: LaunchConfig<'_>) {
    let text = complaint(body, config).unwrap_or_default();
    assert!(text.starts_with("race: "), "{text}\n{body}");
}

#[test]
fn a_race_names_both_lines_and_threads() {
    let body = |between: &str| {
        let store = "st.shared.u32 [%w], %t;";
        format!("{store}\nbar.sync 0;\n.loc 1 3 5\n{store}\n{between}\n.loc 1 4 9\nld.shared.u32 %v, [%s];")
    };
    assert_clean(&body("bar.sync 0;"), LaunchConfig::linear(2, 64));
    insta::assert_snapshot!(complaint(&body(""), LaunchConfig::linear(1, 64)).unwrap_or_default(), @"
    race: a store in shared memory at 0x80, and nothing orders it after a load there by block (0, 0, 0), thread (31, 0, 0)
      the other at some.krn:4:9
      the other instruction: ld.shared.u32 %v, [%s]
      at some.krn:3:5
      in `k`, block (0, 0, 0), thread (32, 0, 0)
      instruction: st.shared.u32 [%w], %t
    ");
    // Lanes of a warp have no order without a word; a warp's word does for the warp alone.
    assert_race(&body(""), LaunchConfig::linear(1, 32));
    assert_clean(&body("bar.warp.sync 0xffffffff;"), LaunchConfig::linear(1, 32));
    assert_race(&body("bar.warp.sync 0xffffffff;\nmov.u32 %v, 0;"), LaunchConfig::linear(1, 64));
}

#[test]
fn turns_of_a_loop_race_too() {
    let turns = |last: &str| {
        format!(
            "mov.u32 %v, 0;\nLOOP:\nst.shared.u32 [%w], %t;\nbar.sync 0;\nld.shared.u32 %t, [%s];\n{last}\n\
             add.u32 %v, %v, 1;\nsetp.lt.u32 %p, %v, 3;\n@%p bra LOOP;"
        )
    };
    assert_clean(&turns("bar.sync 0;"), LaunchConfig::linear(1, 64));
    assert_race(&turns(""), LaunchConfig::linear(1, 64));
    // Another barrier orders as well, and one that half of the warps only pass by does not hold them up.
    assert_clean(&turns("bar.sync 1;"), LaunchConfig::linear(1, 64));
}

#[test]
fn two_writes_race_and_atomics_do_not() {
    assert_race("st.shared.u32 [tile], %t;", LaunchConfig::linear(1, 2));
    let zero = "setp.eq.u32 %p, %t, 0;\n@%p st.shared.u32 [tile], %t;\nbar.sync 0;\n";
    let atomic = "atom.shared.add.u32 %v, [tile], 1;";
    assert_clean(&format!("{zero}{atomic}"), LaunchConfig::linear(1, 64));
    assert_race(&format!("{zero}{atomic}\n@%p st.shared.u32 [tile], %t;"), LaunchConfig::linear(1, 64));
    assert_race(&format!("{zero}{atomic}\nld.shared.u32 %v, [tile];"), LaunchConfig::linear(1, 64));
    // Bytes of one word are different places.
    assert_clean(
        "add.u32 %w, %t, 64;\nmov.u32 %s, tile;\nadd.u32 %w, %w, %s;\nst.shared.u8 [%w], %t;",
        LaunchConfig::linear(1, 64),
    );
}

#[test]
fn blocks_have_no_order() {
    assert_clean("st.global.u32 [%q], %t;", LaunchConfig::linear(1, 64));
    assert_race("st.global.u32 [%q], %t;", LaunchConfig::linear(2, 64));
    assert_race("st.global.u32 [%q], %t;\nbar.sync 0;", LaunchConfig::linear(2, 64));
    assert_clean("ld.global.u32 %v, [%out];", LaunchConfig::linear(2, 64));
    assert_clean("red.global.add.u32 [%out], 1;", LaunchConfig::linear(2, 64));
    assert_race("ld.global.u32 %v, [%out];\nred.global.add.u32 [%out], 1;", LaunchConfig::linear(2, 64));
}

#[test]
fn what_nobody_has_written_is_not_read() {
    let (one, all) = (LaunchConfig::linear(1, 64), LaunchConfig::linear(1, 128));
    insta::assert_snapshot!(complaint("ld.shared.u32 %v, [%w];", one).unwrap_or_default(), @"
    uninitialised load of 4 bytes in shared memory at 0x0, which nobody has written so far
      in `k`, block (0, 0, 0), thread (0, 0, 0)
      instruction: ld.shared.u32 %v, [%w]
    ");
    assert_clean("st.shared.u32 [%w], %t;\nld.shared.u32 %v, [%w];", one);
    assert_clean("ld.global.u32 %v, [%q];", one);
    insta::assert_snapshot!(complaint("ld.global.u32 %v, [%q];", all).unwrap_or_default(), @"
    uninitialised load of 4 bytes in global memory at 0x700000000100, byte 256 of `out`, which nobody has written so far
      in `k`, block (0, 0, 0), thread (64, 0, 0)
      instruction: ld.global.u32 %v, [%q]
    ");
    assert_clean("st.global.u32 [%q], %t;\nld.global.u32 %v, [%q];", all);
    // A block sees nothing of what the block before had in shared memory.
    let first =
        "mov.u32 %v, %ctaid.x;\nsetp.eq.u32 %p, %v, 0;\n@%p st.shared.u32 [%w], %t;\nld.shared.u32 %v, [%w];";
    let text = complaint(first, LaunchConfig::linear(2, 64)).unwrap_or_default();
    assert!(text.starts_with("uninitialised load") && text.contains("block (1, 0, 0)"), "{text}");
}

#[test]
fn a_copy_in_the_background_races_until_its_group_is_waited_for() {
    let one = LaunchConfig::linear(1, 64);
    let copy = "cp.async.ca.shared.global [%w], [%q], 4;";
    let own = "ld.shared.u32 %v, [%w];";
    let others = "bar.sync 0;\nld.shared.u32 %v, [%s];";
    let commit = "cp.async.commit_group;";
    // What a thread waits for is there for itself; for the others behind a barrier that comes after the wait.
    assert_clean(&format!("{copy}\n{commit}\ncp.async.wait_group 0;\n{own}\n{others}"), one);
    assert_clean(&format!("{copy}\ncp.async.wait_all;\n{own}\n{others}"), one);
    assert_race(&format!("{copy}\n{commit}\n{own}"), one);
    assert_race(&format!("{copy}\n{commit}\n{others}"), one);
    assert_race(
        &format!("{copy}\n{commit}\nbar.sync 0;\ncp.async.wait_group 0;\nld.shared.u32 %v, [%s];"),
        one,
    );
    // A copy that is in no group is not waited for with the groups.
    assert_race(&format!("{commit}\n{copy}\ncp.async.wait_group 0;\n{others}"), one);
    // The group before the latest one is there, the latest is not.
    let next = "cp.async.ca.shared.global [%w+256], [%q], 4;";
    let two = format!("{copy}\n{commit}\n{next}\n{commit}\ncp.async.wait_group 1;\nbar.sync 0;");
    assert_clean(&format!("{two}\nld.shared.u32 %v, [%s];"), one);
    assert_race(&format!("{two}\nld.shared.u32 %v, [%s+256];"), one);
    // Whoever reads what the next copy overwrites must be done.
    let again = format!("{copy}\n{commit}\ncp.async.wait_group 0;\n{others}");
    assert_race(&format!("{again}\n{copy}"), one);
    assert_clean(&format!("{again}\nbar.sync 0;\n{copy}"), one);
}

#[test]
fn rows_of_a_matrix_are_read_by_the_lanes_that_name_them() {
    let body = |between: &str| {
        format!(
            "mov.u32 %w, tile;\nmad.lo.u32 %w, %t, 4, %w;\nst.shared.u32 [%w], %t;\n{between}\n\
             and.b32 %v, %t, 7;\nmov.u32 %s, tile;\nmad.lo.u32 %s, %v, 16, %s;\n\
             ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%v}}, [%s];"
        )
    };
    assert_clean(&body("bar.warp.sync 0xffffffff;"), LaunchConfig::linear(1, 32));
    assert_race(&body(""), LaunchConfig::linear(1, 32));
    assert_clean(&body("bar.sync 0;"), LaunchConfig::linear(1, 64));
    assert_race(&body(""), LaunchConfig::linear(1, 64));
}

//! Everything that ends a launch: what, where, and which thread.

use super::{Bench, bench, kernel};
use crate::emulator::{FaultKind, LaunchConfig, LaunchError};

/// A kernel over an array `out` of 64 words.
fn device(declarations: &str, body: &str) -> (Bench, u64) {
    let text = format!(".file 1 \"some.krn\"\n{}", kernel(&["out"], declarations, body));
    let mut bench = bench(&text);
    let out = bench.alloc("out", &[0; 64]);
    (bench, out)
}

/// The text of the fault of a kernel over 64 words.
fn fault(declarations: &str, body: &str, config: LaunchConfig<'_>) -> String {
    let (bench, out) = device(declarations, body);
    bench.fault(config, &[out]).to_string()
}

const REGS: &str = ".reg .pred %p; .reg .b32 %v, %w; .reg .b64 %q;";

#[test]
fn out_of_bounds_names_line_thread_and_array() {
    let body = "mov.u32 %w, %ctaid.x;
        mad.lo.u32 %w, %w, 32, %t;
        .loc 1 12 5
        mad.wide.u32 %q, %w, 4, %out;
        st.global.u32 [%q], %w;";
    insta::assert_snapshot!(fault(REGS, body, LaunchConfig::linear(5, 32)), @"
    out-of-bounds store of 4 bytes in global memory at 0x700000000100, 0 bytes past the end of `out` (256 bytes)
      at some.krn:12:5
      in `k`, block (2, 0, 0), thread (0, 0, 0)
      instruction: st.global.u32 [%q], %w
    ");
    insta::assert_snapshot!(fault(REGS, "ld.global.u32 %v, [%out+-4];", LaunchConfig::linear(1, 1)), @"
    out-of-bounds load of 4 bytes in global memory at 0x6ffffffffffc, 4 bytes before the start of `out` (256 bytes)
      in `k`, block (0, 0, 0), thread (0, 0, 0)
      instruction: ld.global.u32 %v, [%out+-4]
    ");
    // A vector that begins inside and ends outside.
    insta::assert_snapshot!(fault(REGS, "ld.global.v2.u64 {%q, %q}, [%out+248];", LaunchConfig::linear(1, 1)), @"
    out-of-bounds load of 16 bytes in global memory at 0x7000000000f8, byte 248 of the 256 bytes of `out`
      in `k`, block (0, 0, 0), thread (0, 0, 0)
      instruction: ld.global.v2.u64 {%q, %q}, [%out+248]
    ");
}

#[test]
fn other_spaces_have_bounds_too() {
    let shared = format!(".shared .align 4 .b8 tile[64];\n{REGS}");
    let body = "mad.lo.u32 %w, %t, 4, 16;\nst.shared.u32 [%w], %t;";
    insta::assert_snapshot!(fault(&shared, body, LaunchConfig::linear(1, 32)), @"
    out-of-bounds store of 4 bytes in shared memory at 0x40, 0 bytes past the end of `shared memory` (64 bytes)
      in `k`, block (0, 0, 0), thread (12, 0, 0)
      instruction: st.shared.u32 [%w], %t
    ");
    let (bench, out) = device(REGS, "ld.local.u32 %v, [16];");
    assert!(matches!(bench.fault(LaunchConfig::linear(1, 1), &[out]).kind, FaultKind::OutOfBounds { .. }));
    // A constant is not global memory, and cannot be written.
    let text = format!(
        ".const .align 4 .u32 c = 1;\n{}",
        kernel(&["out"], REGS, "mov.u64 %q, c;\ncvta.const.u64 %q, %q;\nst.u32 [%q], 1;")
    );
    let bench = self::bench(&text);
    let kind = bench.fault(LaunchConfig::linear(1, 1), &[0]).kind;
    assert!(matches!(kind, FaultKind::ReadOnly { .. }), "{kind}");
}

#[test]
fn freed_memory_is_gone() {
    let (mut bench, out) = device(REGS, "st.global.u32 [%out], 1;");
    bench.launch(LaunchConfig::linear(1, 1), &[out]).unwrap();
    bench.device.free(out).unwrap();
    let kind = bench.fault(LaunchConfig::linear(1, 1), &[out]).kind;
    assert!(matches!(kind, FaultKind::OutOfBounds { .. }), "{kind}");
}

#[test]
fn misaligned_access() {
    let body = "mad.wide.u32 %q, %t, 3, %out;\nld.global.u16 %v, [%q];";
    insta::assert_snapshot!(fault(".reg .b32 %v; .reg .b64 %q;", body, LaunchConfig::linear(1, 32)), @"
    misaligned load of 2 bytes in global memory at 0x700000000003
      in `k`, block (0, 0, 0), thread (1, 0, 0)
      instruction: ld.global.u16 %v, [%q]
    ");
}

#[test]
fn divergent_barrier() {
    let body = "setp.lt.u32 %p, %t, 40;\n@!%p bra skip;\nbar.sync 0;\nskip: mov.u32 %v, 1;";
    insta::assert_snapshot!(fault(REGS, body, LaunchConfig::linear(1, 64)), @"
    divergent barrier 0: 8 threads of the warp arrived, 24 did not
      in `k`, block (0, 0, 0), thread (32, 0, 0)
      instruction: bar.sync 0
    ");
}

#[test]
fn barriers_that_never_fill() {
    let body = "setp.lt.u32 %p, %t, 32;\n@%p bra one;\nbar.sync 1;\nbra done;\none: bar.sync 2, 64;\ndone: mov.u32 %v, 1;";
    insta::assert_snapshot!(fault(REGS, body, LaunchConfig::linear(1, 64)), @"
    deadlock: 2 warps wait for threads that never arrive, the first at barrier 2
      in `k`, block (0, 0, 0), thread (0, 0, 0)
      instruction: bar.sync 2, 64
    ");
    let (bench, out) = device(REGS, "bar.sync 0, 33;");
    assert!(matches!(bench.fault(LaunchConfig::linear(1, 64), &[out]).kind, FaultKind::BadBarrier { .. }));
    let (bench, out) = device(REGS, "bar.sync %t;");
    assert!(matches!(
        bench.fault(LaunchConfig::linear(1, 64), &[out]).kind,
        FaultKind::BadBarrier { .. } | FaultKind::Deadlock { .. }
    ));
}

#[test]
fn collectives_with_the_wrong_mask() {
    let outside = "shfl.sync.idx.b32 %v, %t, 0, 31, 0x0000ffff;";
    insta::assert_snapshot!(fault(REGS, outside, LaunchConfig::linear(1, 32)), @"
    warp-wide operation with mask 0x0000ffff while threads 0xffffffff are here: a thread executes it that is not in its mask
      in `k`, block (0, 0, 0), thread (16, 0, 0)
      instruction: shfl.sync.idx.b32 %v, %t, 0, 31, 65535
    ");
    let diverged = "setp.lt.u32 %p, %t, 8;\n@!%p bra skip;\nshfl.sync.idx.b32 %v, %t, 0, 31, 0xffffffff;\nskip: mov.u32 %w, 1;";
    let (bench, out) = device(REGS, diverged);
    assert!(matches!(
        bench.fault(LaunchConfig::linear(1, 32), &[out]).kind,
        FaultKind::CollectiveMask { .. }
    ));
    // Threads that do not exist, or have exited, may be named.
    bench.launch(LaunchConfig::linear(1, 8), &[out]).unwrap();
}

#[test]
fn traps_and_runaway_loops() {
    insta::assert_snapshot!(fault(REGS, "setp.eq.u32 %p, %t, 3;\n@%p trap;", LaunchConfig::linear(1, 32)), @"
    trap
      in `k`, block (0, 0, 0), thread (3, 0, 0)
      instruction: @%p trap
    ");
    let config = LaunchConfig { instruction_limit: 100_000, ..LaunchConfig::linear(1, 32) };
    insta::assert_snapshot!(fault(REGS, "loop: bra loop;", config), @"
    runaway loop: a warp executed more than 100000 instructions
      in `k`, block (0, 0, 0), thread (0, 0, 0)
      instruction: bra loop
    ");
}

#[test]
fn what_is_not_modelled_says_so_when_it_is_reached() {
    let (bench, out) =
        device(".reg .b32 %v; .reg .b64 %q;", "bra over;\nadd.u32 %v, %v, %q;\nover: mov.u32 %v, 1;");
    bench.launch(LaunchConfig::linear(1, 1), &[out]).unwrap();
    insta::assert_snapshot!(fault(".reg .b32 %v; .reg .b64 %q;", "add.u32 %v, %v, %q;", LaunchConfig::linear(1, 1)), @"
    instruction that the emulator cannot run: %q is a .b64 register where 32 bits are wanted
      in `k`, block (0, 0, 0), thread (0, 0, 0)
      instruction: add.u32 %v, %v, %q
    ");
}

#[test]
fn the_fault_of_the_lowest_block_is_reported() {
    let body = "mov.u32 %w, %ctaid.x;\nsetp.gt.u32 %p, %w, 70;\n@%p trap;";
    for _ in 0..20 {
        let (bench, out) = device(REGS, body);
        let fault = bench.fault(LaunchConfig::linear(5000, 32), &[out]);
        assert_eq!(fault.block, [71, 0, 0]);
    }
}

#[test]
fn impossible_launches_are_refused() {
    let (bench, out) = device(REGS, "");
    let refused = |config: LaunchConfig<'_>, args: &[u64]| match bench.launch(config, args) {
        Err(LaunchError::Refused { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    insta::assert_snapshot!(refused(LaunchConfig::linear(0, 32), &[out]), @"the grid has 0 in x, but 1 to 2147483647 are possible");
    insta::assert_snapshot!(refused(LaunchConfig::linear(1, 2000), &[out]), @"the block has 2000 in x, but 1 to 1024 are possible");
    insta::assert_snapshot!(refused(LaunchConfig::new([1; 3], [64, 64, 1]), &[out]), @"4096 threads in a block, but at most 1024 are possible");
    insta::assert_snapshot!(refused(LaunchConfig::linear(1, 32).shared(300_000), &[out]), @"300000 bytes of shared memory, but at most 232448 are possible");
    for (bytes, said) in [(524_296u64, "524296"), (u64::MAX - 8, "18446744073709551607")] {
        let (bench, out) =
            device(&format!("{REGS} .local .align 8 .b8 %many[{bytes}];"), "mov.u64 %out, %many;");
        let Err(LaunchError::Refused { reason, .. }) = bench.launch(LaunchConfig::linear(1, 32), &[out])
        else {
            panic!("{bytes} bytes are too many")
        };
        assert_eq!(reason, format!("{said} bytes of local memory a thread, but at most 524288 are possible"));
    }
    insta::assert_snapshot!(refused(LaunchConfig::linear(1, 32), &[]), @"parameters: 1, arguments: 0");
    let no_entry = bench.device.launch(&bench.module, "nothing", &LaunchConfig::linear(1, 1), &[]);
    assert_eq!(no_entry.unwrap_err().to_string(), "cannot launch `nothing`: the module has no such entry");
}

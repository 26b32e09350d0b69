//! Grids of every shape, several host threads, cancelling and counting.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{bench, kernel, run};
use crate::emulator::{ArgValue, LaunchConfig, LaunchError};

#[test]
fn three_dimensions_of_blocks_and_threads() {
    // The linear number of every thread, at its place.
    let body = "mov.u32 %a, %ctaid.z; mov.u32 %b, %nctaid.y; mov.u32 %c, %ctaid.y;
        mad.lo.u32 %a, %a, %b, %c;
        mov.u32 %b, %nctaid.x; mov.u32 %c, %ctaid.x;
        mad.lo.u32 %a, %a, %b, %c;
        mov.u32 %b, %ntid.z; mov.u32 %c, %tid.z;
        mad.lo.u32 %a, %a, %b, %c;
        mov.u32 %b, %ntid.y; mov.u32 %c, %tid.y;
        mad.lo.u32 %a, %a, %b, %c;
        mov.u32 %b, %ntid.x;
        mad.lo.u32 %a, %a, %b, %t;
        mad.wide.u32 %at, %a, 4, %out;
        st.global.u32 [%at], %a;";
    let declarations = ".reg .b32 %a, %b, %c; .reg .b64 %at;";
    let words = 2 * 3 * 4 * 5 * 6 * 7;
    let out = run(declarations, body, LaunchConfig::new([2, 3, 4], [5, 6, 7]), words);
    assert_eq!(out, (0..words as u32).collect::<Vec<_>>());
}

#[test]
fn partial_warps_run_only_their_threads() {
    for threads in [1, 31, 32, 33, 100] {
        let out = run("", "red.global.add.u32 [%out], 1;", LaunchConfig::linear(3, threads), 1);
        assert_eq!(out, [3 * threads]);
    }
}

#[test]
fn grids_are_not_kept_in_memory() {
    // Two billion blocks: the first one that matters stops the launch.
    let body = "mov.u32 %w, %ctaid.x;\nsetp.eq.u32 %p, %w, 20000;\n@%p trap;";
    let mut bench = bench(&kernel(&["out"], ".reg .pred %p; .reg .b32 %w;", body));
    let out = bench.alloc("out", &[0]);
    let fault = bench.fault(LaunchConfig::linear(i32::MAX as u32, 1), &[out]);
    assert_eq!(fault.block[0], 20_000);
}

#[test]
fn counts_do_not_depend_on_the_number_of_host_threads() {
    let body = "and.b32 %v, %t, 7;\nloop: sub.u32 %v, %v, 1;\nsetp.gt.s32 %p, %v, 0;\n@%p bra loop;";
    let mut bench = bench(&kernel(&["out"], ".reg .pred %p; .reg .b32 %v;", body));
    let out = bench.alloc("out", &[0]);
    let report = |threads_at_most| {
        let config = LaunchConfig { threads_at_most, ..LaunchConfig::linear(100, 64) };
        bench.launch(config, &[out]).unwrap()
    };
    let one = report(1);
    // Per warp: three, then seven rounds of three, and the return.
    assert_eq!(one.warp_instructions, 200 * (3 + 7 * 3 + 1));
    let rounds: u64 = (0..8).map(|v: u64| v.max(1)).sum::<u64>() * 4;
    // A branch counts the lanes that take it.
    assert_eq!(one.lane_instructions, 200 * (32 * 4 + rounds * 3 - 32));
    for threads in [0, 2, 3] {
        assert_eq!(report(threads), one);
    }
}

#[test]
fn a_launch_can_be_cancelled_and_watched() {
    let mut bench = bench(&kernel(&["out"], "", "red.global.add.u32 [%out], 1;"));
    let out = bench.alloc("out", &[0]);
    let cancel = AtomicBool::new(false);
    let seen = AtomicU64::new(0);
    let progress = |done: u64| {
        seen.fetch_max(done, Ordering::Relaxed);
        if done > 1000 {
            cancel.store(true, Ordering::Relaxed);
        }
    };
    let config = LaunchConfig {
        cancel: Some(&cancel),
        progress: Some(&progress),
        ..LaunchConfig::linear(i32::MAX as u32, 32)
    };
    let outcome = bench.device.launch(&bench.module, "k", &config, &[ArgValue::from(out)]);
    assert!(matches!(outcome, Err(LaunchError::Cancelled { .. })));
    assert!(seen.load(Ordering::Relaxed) > 1000);
    // A loop without end is cancelled, too.
    let bench = super::bench(&kernel(&["out"], "", "loop: bra loop;"));
    let cancel = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            cancel.store(true, Ordering::Relaxed);
        });
        let config = LaunchConfig { cancel: Some(&cancel), ..LaunchConfig::linear(1, 32) };
        assert!(matches!(bench.launch(config, &[0]), Err(LaunchError::Cancelled { .. })));
    });
}

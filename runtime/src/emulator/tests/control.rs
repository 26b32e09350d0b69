//! Divergence, reconvergence, loops, exits and barriers.

use super::{run, store};
use crate::emulator::LaunchConfig;

/// Runs 32 threads and gives what each stores of `%v`.
fn lanes(body: &str) -> Vec<u32> {
    let declarations = ".reg .pred %p, %q;\n.reg .b32 %v, %w, %x, %m;";
    run(declarations, &format!("{body}\n{}", store("%v")), LaunchConfig::linear(1, 32), 32)
}

fn expect(body: &str, value: impl Fn(u32) -> u32) {
    assert_eq!(lanes(body), (0..32).map(value).collect::<Vec<_>>());
}

#[test]
fn nested_branches_join() {
    // After each join, the mask of those who are here shows whether lanes came together again.
    expect(
        "mov.u32 %v, 0;
        setp.lt.u32 %p, %t, 16;
        @!%p bra else;
        and.b32 %w, %t, 1;
        setp.eq.u32 %q, %w, 0;
        @%q bra even;
        mov.u32 %v, 1;
        bra inner;
        even: mov.u32 %v, 2;
        inner: activemask.b32 %m;
        popc.b32 %m, %m;
        mad.lo.u32 %v, %m, 10, %v;
        bra join;
        else: mov.u32 %v, 3;
        join: activemask.b32 %m;
        popc.b32 %m, %m;
        mad.lo.u32 %v, %m, 1000, %v;",
        |t| match t {
            16.. => 32_003,
            t if t % 2 == 0 => 32_162,
            _ => 32_161,
        },
    );
}

#[test]
fn loops_with_different_trip_counts_join_after_the_loop() {
    expect(
        "mov.u32 %v, 0;
        mov.u32 %w, 0;
        loop: setp.ge.u32 %p, %w, %t;
        @%p bra done;
        add.u32 %v, %v, %w;
        add.u32 %w, %w, 1;
        bra loop;
        done: activemask.b32 %m;
        popc.b32 %m, %m;
        mad.lo.u32 %v, %m, 1000, %v;",
        |t| 32_000 + t * t.saturating_sub(1) / 2,
    );
}

#[test]
fn breaks_and_continues() {
    expect(
        "mov.u32 %v, 0;
        mov.u32 %w, 0;
        loop: add.u32 %w, %w, 1;
        setp.gt.u32 %p, %w, 20;
        @%p bra done;
        and.b32 %x, %w, 1;
        setp.eq.u32 %q, %x, 1;
        @%q bra loop;
        setp.gt.u32 %q, %w, %t;
        @%q bra done;
        add.u32 %v, %v, %w;
        bra loop;
        done: activemask.b32 %m;
        popc.b32 %m, %m;
        mad.lo.u32 %v, %m, 1000, %v;",
        |t| 32_000 + (1..=20).filter(|w| w % 2 == 0 && *w <= t).sum::<u32>(),
    );
}

#[test]
fn early_exits_do_not_keep_the_rest_apart() {
    // Lanes from 8 on may exit inside the loop; the others join after it nevertheless.
    let out = lanes(
        "mov.u32 %v, 0;
        mov.u32 %w, 0;
        loop: setp.lt.u32 %q, %t, 24;
        @%q bra fine;
        exit;
        fine: add.u32 %w, %w, 1;
        setp.lt.u32 %p, %w, %t;
        @%p bra loop;
        activemask.b32 %m;
        popc.b32 %v, %m;",
    );
    assert_eq!(out, (0..32).map(|t| if t < 24 { 24 } else { 0 }).collect::<Vec<_>>());
}

#[test]
fn guarded_exits_and_guarded_instructions() {
    let out = lanes(
        "setp.lt.u32 %p, %t, 10;\n@%p exit;\nsetp.lt.u32 %p, %t, 20;\nmov.u32 %v, 5;\n@%p mov.u32 %v, 6;",
    );
    let expected: Vec<u32> = (0..32)
        .map(|t| {
            if t < 10 {
                0
            } else if t < 20 {
                6
            } else {
                5
            }
        })
        .collect();
    assert_eq!(out, expected);
}

#[test]
fn registers_start_at_zero_in_every_block() {
    // Each block adds to a register that nobody has set.
    let body = ".reg .b64 %at;
        add.u32 %v, %v, 1;
        mov.u32 %w, %ctaid.x;
        mad.wide.u32 %at, %w, 4, %out;
        st.global.u32 [%at], %v;";
    let out = run(".reg .b32 %v, %w;", body, LaunchConfig::linear(50, 32), 50);
    assert_eq!(out, [1; 50]);
}

#[test]
fn block_sum_in_shared_memory() {
    let body = "mov.u32 %a, part;
        mad.lo.u32 %b, %t, 4, %a;
        add.u32 %v, %t, 1;
        st.shared.u32 [%b], %v;
        mov.u32 %s, 128;
        loop: bar.sync 0;
        setp.ge.u32 %p, %t, %s;
        @%p bra skip;
        mad.lo.u32 %c, %s, 4, %b;
        ld.shared.u32 %v, [%b];
        ld.shared.u32 %w, [%c];
        add.u32 %v, %v, %w;
        st.shared.u32 [%b], %v;
        skip: shr.u32 %s, %s, 1;
        setp.ne.u32 %p, %s, 0;
        @%p bra loop;
        setp.ne.u32 %p, %t, 0;
        @%p exit;
        mov.u32 %w, %ctaid.x;
        mad.wide.u32 %at, %w, 4, %out;
        st.global.u32 [%at], %v;";
    let declarations = ".shared .align 4 .b8 part[1024];
        .reg .pred %p; .reg .b32 %a, %b, %c, %s, %v, %w; .reg .b64 %at;";
    let out = run(declarations, body, LaunchConfig::linear(7, 256), 7);
    assert_eq!(out, [256 * 257 / 2; 7]);
}

#[test]
fn barriers_count_predicates_and_let_others_pass() {
    let body = format!(
        "setp.lt.u32 %p, %t, 40;
        bar.red.popc.u32 %v, 0, %p;
        bar.red.and.pred %q, 0, %p;
        selp.u32 %w, 1000, 0, %q;
        add.u32 %v, %v, %w;
        bar.red.or.pred %q, 0, !%p;
        selp.u32 %w, 100, 0, %q;
        add.u32 %v, %v, %w;
        {}",
        store("%v")
    );
    let out = run(".reg .pred %p, %q; .reg .b32 %v, %w;", &body, LaunchConfig::linear(1, 96), 96);
    assert_eq!(out, [140; 96]);
    // A producer warp arrives at barrier 1 without waiting; a consumer waits for it.
    let body = format!(
        "setp.lt.u32 %p, %t, 32;
        @%p bra consume;
        st.shared.u32 [box], 9;
        bar.arrive 1, 64;
        mov.u32 %v, 1;
        bra done;
        consume: bar.sync 1, 64;
        ld.shared.u32 %v, [box];
        done: {}",
        store("%v")
    );
    let declarations = ".shared .align 4 .b8 box[4];\n.reg .pred %p; .reg .b32 %v;";
    let out = run(declarations, &body, LaunchConfig::linear(1, 64), 64);
    assert_eq!(out, [[9; 32], [1; 32]].concat());
}

#[test]
fn warps_that_have_exited_do_not_hold_a_barrier_up() {
    let body = format!("setp.ge.u32 %p, %t, 32;\n@%p exit;\nbar.sync 0;\nmov.u32 %v, 4;\n{}", store("%v"));
    let out = run(".reg .pred %p; .reg .b32 %v;", &body, LaunchConfig::linear(1, 96), 96);
    assert_eq!(out, [[4; 32], [0; 32], [0; 32]].concat());
}

#[test]
fn a_warp_may_wait_for_another_in_a_loop() {
    // Warp 0 spins on a flag that warp 1 sets: turns are taken even without a barrier.
    let body = format!(
        "setp.ge.u32 %p, %t, 32;
        @%p bra set;
        spin: ld.volatile.shared.u32 %v, [flag];
        setp.eq.u32 %p, %v, 0;
        @%p bra spin;
        bra done;
        set: mov.u32 %v, 3;
        st.volatile.shared.u32 [flag], %v;
        done: {}",
        store("%v")
    );
    let declarations = ".shared .align 4 .b8 flag[4];\n.reg .pred %p; .reg .b32 %v;";
    assert_eq!(run(declarations, &body, LaunchConfig::linear(1, 64), 64), [3; 64]);
}

//! Shuffles, votes, matches and reductions of a warp.

use super::{run, store};
use crate::emulator::LaunchConfig;

fn expect(body: &str, value: impl Fn(u32) -> u32) {
    let declarations = ".reg .pred %p, %q;\n.reg .b32 %v, %w, %x;\n.reg .b64 %l;";
    let out = run(declarations, &format!("{body}\n{}", store("%v")), LaunchConfig::linear(1, 32), 32);
    assert_eq!(out, (0..32).map(value).collect::<Vec<_>>(), "{body}");
}

const ALL: &str = "0xffffffff";

#[test]
fn shuffles_of_every_mode() {
    let shuffle = |mode: &str, distance: u32, control: u32| {
        format!(
            "mul.lo.u32 %w, %t, 7;\nshfl.sync.{mode}.b32 %v|%p, %w, {distance}, {control}, {ALL};\n@!%p add.u32 %v, %v, 1000;"
        )
    };
    expect(&shuffle("down", 3, 31), |t| if t + 3 < 32 { (t + 3) * 7 } else { t * 7 + 1000 });
    expect(&shuffle("up", 3, 0), |t| if t >= 3 { (t - 3) * 7 } else { t * 7 + 1000 });
    expect(&shuffle("bfly", 5, 31), |t| (t ^ 5) * 7);
    expect(&shuffle("idx", 9, 31), |_| 63);
    // Segments of eight lanes: the mask has the upper bits of the lane number set.
    let segment = 0x18 << 8 | 0x1f;
    expect(&shuffle("down", 3, segment), |t| if t % 8 + 3 < 8 { (t + 3) * 7 } else { t * 7 + 1000 });
    expect(&shuffle("up", 3, 0x18 << 8), |t| if t % 8 >= 3 { (t - 3) * 7 } else { t * 7 + 1000 });
    expect(&shuffle("idx", 2, segment), |t| (t / 8 * 8 + 2) * 7);
    expect(
        &shuffle("bfly", 8, segment),
        |t| if t ^ 8 <= (t / 8 * 8 + 7) { (t ^ 8) * 7 } else { t * 7 + 1000 },
    );
    // Each lane may ask for another.
    expect(&format!("sub.u32 %x, 31, %t;\nshfl.sync.idx.b32 %v, %t, %x, 31, {ALL};"), |t| 31 - t);
}

#[test]
fn shuffles_within_half_a_warp() {
    expect(
        "mov.u32 %v, 77;
        setp.ge.u32 %p, %t, 16;
        @%p bra done;
        shfl.sync.bfly.b32 %v, %t, 1, 31, 0x0000ffff;
        done: bar.warp.sync 0xffffffff;",
        |t| if t < 16 { t ^ 1 } else { 77 },
    );
}

#[test]
fn a_sum_by_butterfly() {
    let mut body = "mov.u32 %v, %t;\n".to_owned();
    for distance in [16, 8, 4, 2, 1] {
        body += &format!("shfl.sync.bfly.b32 %w, %v, {distance}, 31, {ALL};\nadd.u32 %v, %v, %w;\n");
    }
    expect(&body, |_| 496);
}

#[test]
fn votes() {
    let vote = |mode: &str| {
        format!("setp.lt.u32 %p, %t, 20;\nvote.sync.{mode}.pred %q, %p, {ALL};\nselp.u32 %v, 1, 0, %q;")
    };
    expect(&vote("all"), |_| 0);
    expect(&vote("any"), |_| 1);
    expect(&vote("uni"), |_| 0);
    expect(&format!("setp.lt.u32 %p, %t, 20;\nvote.sync.ballot.b32 %v, !%p, {ALL};"), |_| 0xfff0_0000);
    expect(
        &format!("setp.lt.u32 %p, %t, 40;\nvote.sync.all.pred %q, %p, {ALL};\nselp.u32 %v, 1, 0, %q;"),
        |_| 1,
    );
}

#[test]
fn matches() {
    expect(&format!("and.b32 %w, %t, 3;\nmatch.any.sync.b32 %v, %w, {ALL};"), |t| 0x1111_1111 << (t % 4));
    expect(&format!("mov.u64 %l, 5;\nmatch.all.sync.b64 %v|%p, %l, {ALL};\n@!%p mov.u32 %v, 1;"), |_| {
        u32::MAX
    });
    expect(&format!("match.all.sync.b32 %v|%p, %t, {ALL};\n@!%p add.u32 %v, %v, 9;"), |_| 9);
}

#[test]
fn reductions() {
    let redux = |op: &str| format!("sub.u32 %w, %t, 5;\nredux.sync.{op} %v, %w, {ALL};");
    expect(&redux("add.u32"), |_| 496u32.wrapping_sub(160));
    expect(&redux("min.s32"), |_| -5i32 as u32);
    expect(&redux("min.u32"), |_| 0);
    expect(&redux("max.s32"), |_| 26);
    expect(&redux("max.u32"), |_| u32::MAX);
    expect(&redux("or.b32"), |_| u32::MAX);
    expect(&format!("redux.sync.xor.b32 %v, %t, {ALL};"), |_| 0);
}

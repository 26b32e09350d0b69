//! Integer arithmetic.

use super::{n, table};

const M: u64 = u32::MAX as u64;

fn binary(code: &str, class: &str, rows: &[(u64, u64, u64)]) {
    let rows: Vec<_> = rows.iter().map(|(a, b, d)| ([*a, *b, 0], *d)).collect();
    table([class; 4], code, &rows);
}

#[test]
fn addition_and_multiplication_wrap() {
    binary("add.u32 %d, %a, %b;", "b32", &[(1, 2, 3), (M, 1, 0), (n(-5), 3, n(-2))]);
    binary("sub.s64 %d, %a, %b;", "b64", &[(0, 1, u64::MAX), (1 << 40, 1, (1 << 40) - 1)]);
    binary("add.u16 %d, %a, %b;", "b16", &[(0xffff, 2, 1)]);
    binary("mul.lo.u32 %d, %a, %b;", "b32", &[(1 << 31, 2, 0), (n(-3), 5, n(-15))]);
    binary("mul.lo.s16 %d, %a, %b;", "b16", &[(0xffff, 3, 0xfffd), (300, 300, 90_000 & 0xffff)]);
    binary("mul.lo.u64 %d, %a, %b;", "b64", &[(1 << 33, 1 << 31, 0), (3, 1 << 40, 3 << 40)]);
}

#[test]
fn high_and_wide_products() {
    binary("mul.hi.u32 %d, %a, %b;", "b32", &[(M, M, M - 1), (1 << 31, 2, 1)]);
    binary("mul.hi.s32 %d, %a, %b;", "b32", &[(M, M, 0), (n(-1), 1, M), (n(i32::MIN), 2, M)]);
    binary("mul.hi.u64 %d, %a, %b;", "b64", &[(u64::MAX, u64::MAX, u64::MAX - 1), (1 << 63, 6, 3)]);
    binary("mul.hi.s64 %d, %a, %b;", "b64", &[(u64::MAX, 7, u64::MAX)]);
    binary("mul.hi.u16 %d, %a, %b;", "b16", &[(0xffff, 0xffff, 0xfffe)]);
    let wide = ["b32", "b32", "b64", "b64"];
    table(wide, "mul.wide.u32 %d, %a, %b;", &[([M, M, 0], M * M)]);
    table(wide, "mul.wide.s32 %d, %a, %b;", &[([M, 7, 0], (-7i64) as u64)]);
    table(wide, "mad.wide.u32 %d, %a, %b, %c;", &[([M, 2, 5], 2 * M + 5)]);
    table(wide, "mad.wide.s32 %d, %a, %b, %c;", &[([M, 2, 1 << 40], (1 << 40) - 2)]);
    let half = ["b16", "b16", "b32", "b32"];
    table(half, "mul.wide.s16 %d, %a, %b;", &[([0xffff, 2, 0], n(-2))]);
    table(half, "mul.wide.u16 %d, %a, %b;", &[([0xffff, 2, 0], 0x1fffe)]);
    table(half, "mad.wide.u16 %d, %a, %b, %c;", &[([0xffff, 2, 2], 0x20000)]);
}

#[test]
fn multiply_add() {
    let words = ["b32"; 4];
    table(words, "mad.lo.s32 %d, %a, %b, %c;", &[([n(-3), 4, 5], n(-7)), ([M, M, M], 0)]);
    table(words, "mad.hi.u32 %d, %a, %b, %c;", &[([M, M, 3], 1)]);
    table(words, "mad.hi.s32 %d, %a, %b, %c;", &[([n(-1), 1, 3], 2)]);
    table(words, "mad.hi.sat.s32 %d, %a, %b, %c;", &[([1 << 30, 8, n(i32::MAX)], n(i32::MAX))]);
    table(["b64"; 4], "mad.lo.u64 %d, %a, %b, %c;", &[([1 << 33, 1 << 30, 7], (1 << 63) + 7)]);
}

#[test]
fn division_by_zero_yields_what_the_hardware_does() {
    binary("div.u32 %d, %a, %b;", "b32", &[(7, 2, 3), (7, 0, M)]);
    binary("div.s32 %d, %a, %b;", "b32", &[(n(-7), 2, n(-3)), (7, 0, M), (n(i32::MIN), M, n(i32::MIN))]);
    binary("rem.s32 %d, %a, %b;", "b32", &[(n(-7), 2, n(-1)), (7, 0, 7), (n(i32::MIN), M, 0)]);
    binary("rem.u64 %d, %a, %b;", "b64", &[(1 << 40, 1000, (1 << 40) % 1000), (9, 0, 9)]);
    binary("div.s64 %d, %a, %b;", "b64", &[((-9i64) as u64, 2, (-4i64) as u64)]);
    binary("div.u16 %d, %a, %b;", "b16", &[(9, 2, 4), (9, 0, 0xffff)]);
}

#[test]
fn extremes_and_signs() {
    binary("min.s32 %d, %a, %b;", "b32", &[(M, 1, M)]);
    binary("min.u32 %d, %a, %b;", "b32", &[(M, 1, 1)]);
    binary("max.s64 %d, %a, %b;", "b64", &[(u64::MAX, 1, 1)]);
    binary("max.u16 %d, %a, %b;", "b16", &[(0xffff, 1, 0xffff)]);
    binary("max.s16 %d, %a, %b;", "b16", &[(0xffff, 1, 1)]);
    binary("abs.s32 %d, %a;", "b32", &[(n(-3), 0, 3), (n(i32::MIN), 0, n(i32::MIN))]);
    binary("neg.s64 %d, %a;", "b64", &[(1, 0, u64::MAX)]);
    binary("neg.s16 %d, %a;", "b16", &[(1, 0, 0xffff)]);
    binary("add.sat.s32 %d, %a, %b;", "b32", &[(n(i32::MAX), 1, n(i32::MAX)), (n(i32::MIN), M, n(i32::MIN))]);
    binary("sub.sat.s32 %d, %a, %b;", "b32", &[(n(i32::MIN), 1, n(i32::MIN))]);
}

#[test]
fn products_of_bytes() {
    let words = ["b32"; 4];
    table(words, "dp4a.u32.u32 %d, %a, %b, %c;", &[([0x0102_03ff, 0x0101_0102, 10], 10 + 1 + 2 + 3 + 510)]);
    table(words, "dp4a.s32.s32 %d, %a, %b, %c;", &[([0xff, 2, 10], 8)]);
    table(words, "dp4a.s32.u32 %d, %a, %b, %c;", &[([0xff, 0xff, 0], n(-255))]);
}

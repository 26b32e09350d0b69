//! Bits, moves, comparison and selection.

use super::{f, g, n, table};

const M: u64 = u32::MAX as u64;

#[test]
fn bitwise_operations() {
    table(["b32"; 4], "and.b32 %d, %a, %b;", &[([0b1100, 0b1010, 0], 0b1000)]);
    table(["b64"; 4], "or.b64 %d, %a, %b;", &[([1 << 40, 1, 0], 1 << 40 | 1)]);
    table(["b16"; 4], "xor.b16 %d, %a, %b;", &[([0xffff, 0xff, 0], 0xff00)]);
    table(["b16"; 4], "not.b16 %d, %a;", &[([0xff, 0, 0], 0xff00)]);
    table(["b64"; 4], "not.b64 %d, %a;", &[([0, 0, 0], u64::MAX)]);
    table(["b32"; 4], "cnot.b32 %d, %a;", &[([0, 0, 0], 1), ([5, 0, 0], 0)]);
    let predicates = ["pred", "pred", "pred", "pred"];
    table(predicates, "and.pred %d, %a, %b;", &[([1, 0, 0], 0), ([1, 1, 0], 1)]);
    table(predicates, "xor.pred %d, %a, %b;", &[([1, 0, 0], 1), ([1, 1, 0], 0)]);
    table(predicates, "not.pred %d, %a;", &[([1, 0, 0], 0), ([0, 1, 0], 1)]);
    // Every table of lop3 on every combination of bits.
    for op in [0x80, 0xe8, 0x96, 0xca, 0x00, 0xff, 0x1d] {
        let expected = (0..8).fold(0u64, |bits, case| bits | ((op >> case & 1) << case));
        let rows = [([0b1111_0000, 0b1100_1100, 0b1010_1010], expected)];
        let code = format!("lop3.b32 %d, %a, %b, %c, {op};\nand.b32 %d, %d, 255;");
        table(["b32"; 4], &code, &rows);
    }
}

#[test]
fn shifts_past_the_width_are_clamped() {
    let words = ["b32"; 4];
    table(words, "shl.b32 %d, %a, %b;", &[([1, 31, 0], 1 << 31), ([1, 32, 0], 0), ([1, M, 0], 0)]);
    table(words, "shr.u32 %d, %a, %b;", &[([1 << 31, 31, 0], 1), ([M, 32, 0], 0)]);
    table(words, "shr.s32 %d, %a, %b;", &[([1 << 31, 31, 0], M), ([1 << 31, 99, 0], M), ([8, 2, 0], 2)]);
    let wide = ["b64", "b32", "b32", "b64"];
    table(wide, "shl.b64 %d, %a, %b;", &[([1, 40, 0], 1 << 40), ([1, 64, 0], 0)]);
    table(wide, "shr.s64 %d, %a, %b;", &[([1 << 63, 99, 0], u64::MAX)]);
    let half = ["b16", "b32", "b32", "b16"];
    table(half, "shl.b16 %d, %a, %b;", &[([0xffff, 4, 0], 0xfff0), ([1, 16, 0], 0)]);
    table(half, "shr.s16 %d, %a, %b;", &[([0x8000, 4, 0], 0xf800), ([0x8000, 77, 0], 0xffff)]);
    table(words, "shf.l.wrap.b32 %d, %a, %b, %c;", &[([0xf000_0000, 1, 4], 0x1f), ([7, 9, 32], 9)]);
    table(words, "shf.l.clamp.b32 %d, %a, %b, %c;", &[([7, 9, 32], 7), ([7, 9, 40], 7)]);
    table(words, "shf.r.wrap.b32 %d, %a, %b, %c;", &[([0xf0, 1, 4], 0x1000_000f), ([7, 9, 32], 7)]);
    table(words, "shf.r.clamp.b32 %d, %a, %b, %c;", &[([7, 9, 33], 9)]);
}

#[test]
fn counting_and_fields() {
    let words = ["b32"; 4];
    table(words, "popc.b32 %d, %a;", &[([0xf0f0, 0, 0], 8)]);
    table(words, "clz.b32 %d, %a;", &[([1, 0, 0], 31), ([0, 0, 0], 32)]);
    table(words, "brev.b32 %d, %a;", &[([1, 0, 0], 1 << 31)]);
    table(["b64", "b32", "b32", "b32"], "clz.b64 %d, %a;", &[([1, 0, 0], 63), ([0, 0, 0], 64)]);
    table(["b64", "b32", "b32", "b32"], "popc.b64 %d, %a;", &[([u64::MAX, 0, 0], 64)]);
    table(words, "bfind.u32 %d, %a;", &[([0, 0, 0], M), ([0x100, 0, 0], 8)]);
    table(words, "bfind.s32 %d, %a;", &[([M, 0, 0], M), ([n(-3), 0, 0], 1)]);
    table(words, "bfind.shiftamt.u32 %d, %a;", &[([0x100, 0, 0], 23)]);
    table(words, "bfe.u32 %d, %a, %b, %c;", &[([0xabcd, 4, 8], 0xbc), ([M, 28, 8], 15), ([M, 3, 0], 0)]);
    table(
        words,
        "bfe.s32 %d, %a, %b, %c;",
        &[([0xabcd, 4, 8], n(0xbcu8 as i8 as i32)), ([1 << 31, 28, 8], n(-8)), ([1 << 31, 40, 4], M)],
    );
    table(
        words,
        "bfi.b32 %d, %a, %b, 4, %c;",
        &[([0xff, 0, 8], 0xff0), ([0, M, 4], 0xffff_ff0f), ([M, 0, 40], 0xffff_fff0)],
    );
    table(["b64", "b32", "b32", "b64"], "bfe.u64 %d, %a, %b, %c;", &[([u64::MAX, 60, 8], 15)]);
    table(["b64", "b64", "b32", "b64"], "bfi.b64 %d, %a, %b, %c, 8;", &[([0xff, 0, 40], 0xff << 40)]);
}

#[test]
fn bytes_are_permuted() {
    let words = ["b32"; 4];
    let (a, b) = (0x3322_1180, 0x7766_5544);
    table(
        words,
        "prmt.b32 %d, %a, %b, %c;",
        &[
            ([a, b, 0x3210], a),
            ([a, b, 0x7654], b),
            ([a, b, 0x0008], 0x8080_80ff),
            ([a, b, 0x5041], 0x5580_4411),
        ],
    );
    table(words, "prmt.b32.f4e %d, %a, %b, %c;", &[([a, b, 1], 0x4433_2211)]);
    table(words, "prmt.b32.b4e %d, %a, %b, %c;", &[([a, b, 1], 0x6677_8011)]);
    table(words, "prmt.b32.rc8 %d, %a, %b, %c;", &[([a, b, 1], 0x1111_1111)]);
    table(words, "prmt.b32.ecl %d, %a, %b, %c;", &[([a, b, 1], 0x3322_1111)]);
    table(words, "prmt.b32.ecr %d, %a, %b, %c;", &[([a, b, 1], 0x1111_1180)]);
    table(words, "prmt.b32.rc16 %d, %a, %b, %c;", &[([a, b, 1], 0x3322_3322)]);
}

#[test]
fn packing_and_unpacking() {
    table(["b32", "b32", "b32", "b64"], "mov.b64 %d, {%a, %b};", &[([1, 2, 0], 2 << 32 | 1)]);
    table(["b64", "b32", "b32", "b32"], "mov.b64 {%b, %d}, %a;", &[([7 << 32 | 1, 0, 0], 7)]);
    table(["b16", "b16", "b32", "b32"], "mov.b32 %d, {%a, %b};", &[([1, 2, 0], 2 << 16 | 1)]);
    table(["b32", "b16", "b16", "b16"], "mov.b32 {%d, %b}, %a;", &[([7 << 16 | 9, 0, 0], 9)]);
    table(
        ["b16", "b16", "b16", "b64"],
        "mov.b64 %d, {%a, %b, %c, %a};",
        &[([1, 2, 3], 1 << 48 | 3 << 32 | 2 << 16 | 1)],
    );
    // A swap reads both before it writes either.
    table(
        ["b32", "b32", "b64", "b64"],
        "mov.b64 %c, {%a, %b};\nmov.b64 {%b, %a}, %c;\nmov.b64 %d, {%a, %b};",
        &[([1, 2, 0], 1 << 32 | 2)],
    );
}

#[test]
fn comparisons_and_nan() {
    let words = ["b32", "b32", "b32", "pred"];
    table(words, "setp.lt.s32 %d, %a, %b;", &[([M, 1, 0], 1), ([1, 1, 0], 0)]);
    table(words, "setp.lt.u32 %d, %a, %b;", &[([M, 1, 0], 0)]);
    table(words, "setp.lo.u32 %d, %a, %b;", &[([1, M, 0], 1)]);
    table(["b64", "b64", "b32", "pred"], "setp.ge.s64 %d, %a, %b;", &[([u64::MAX, 0, 0], 0)]);
    table(["b16", "b16", "b32", "pred"], "setp.gt.s16 %d, %a, %b;", &[([0xffff, 1, 0], 0), ([2, 1, 0], 1)]);
    let nan = f(f32::NAN);
    let floats = ["f32", "f32", "b32", "pred"];
    for (compare, ordered, equal, unordered) in [
        ("eq", 0, 1, 0),
        ("ne", 1, 0, 0),
        ("lt", 1, 0, 0),
        ("le", 1, 1, 0),
        ("gt", 0, 0, 0),
        ("ge", 0, 1, 0),
        ("equ", 0, 1, 1),
        ("neu", 1, 0, 1),
        ("ltu", 1, 0, 1),
        ("leu", 1, 1, 1),
        ("gtu", 0, 0, 1),
        ("geu", 0, 1, 1),
        ("num", 1, 1, 0),
        ("nan", 0, 0, 1),
    ] {
        let code = format!("setp.{compare}.f32 %d, %a, %b;");
        let rows =
            [([f(1.0), f(2.0), 0], ordered), ([f(0.0), f(-0.0), 0], equal), ([nan, f(1.0), 0], unordered)];
        table(floats, &code, &rows);
        let rows = [
            ([g(1.0), g(2.0), 0], ordered),
            ([g(0.0), g(-0.0), 0], equal),
            ([g(f64::NAN), g(1.0), 0], unordered),
        ];
        table(["f64", "f64", "b32", "pred"], &code.replace("f32", "f64"), &rows);
    }
    table(floats, "setp.eq.ftz.f32 %d, %a, %b;", &[([1, f(-0.0), 0], 1)]);
    let combined = ["b32", "b32", "pred", "pred"];
    table(combined, "setp.lt.and.u32 %d, %a, %b, %c;", &[([1, 2, 1], 1), ([1, 2, 0], 0)]);
    table(combined, "setp.lt.and.u32 %d|%q, %a, %b, !%c;", &[([1, 2, 1], 0), ([1, 2, 0], 1)]);
    table(combined, "setp.lt.xor.u32 %q|%d, %a, %b, %c;", &[([1, 2, 1], 1), ([3, 2, 1], 0)]);
}

#[test]
fn selection() {
    table(["b32", "b32", "pred", "b32"], "selp.b32 %d, %a, %b, %c;", &[([1, 2, 1], 1), ([1, 2, 0], 2)]);
    table(["b64", "b64", "pred", "b64"], "selp.b64 %d, %a, %b, %c;", &[([1, 2, 1], 1), ([1, 2, 0], 2)]);
    table(["b32"; 4], "slct.b32.s32 %d, %a, %b, %c;", &[([1, 2, 0], 1), ([1, 2, M], 2)]);
    table(
        ["b32", "b32", "f32", "b32"],
        "slct.b32.f32 %d, %a, %b, %c;",
        &[([1, 2, f(-0.0)], 1), ([1, 2, f(f32::NAN)], 2)],
    );
    table(["b32"; 4], "set.lt.u32.u32 %d, %a, %b;", &[([1, 2, 0], M), ([2, 2, 0], 0)]);
    table(["b32", "b32", "b32", "f32"], "set.lt.f32.u32 %d, %a, %b;", &[([1, 2, 0], f(1.0)), ([2, 2, 0], 0)]);
}

#[test]
fn special_registers() {
    table(["b32"; 4], "mov.u32 %d, %lanemask_lt;", &[([0; 3], 0), ([0; 3], 1), ([0; 3], 3)]);
    table(["b32"; 4], "mov.u32 %d, %lanemask_ge;", &[([0; 3], M), ([0; 3], M - 1)]);
    table(["b32"; 4], "mov.u32 %d, %laneid;", &[([0; 3], 0), ([0; 3], 1), ([0; 3], 2)]);
    table(
        ["b32"; 4],
        "mov.u32 %a, %ntid.x;\nmov.u32 %b, %tid.x;\nmad.lo.u32 %d, %a, 10, %b;",
        &[([0; 3], 20), ([0; 3], 21)],
    );
}

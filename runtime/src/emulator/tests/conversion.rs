//! `cvt` between all kinds of types.

use super::{f, g, n, table};

fn cvt(from: &str, to: &str, code: &str, rows: &[(u64, u64)]) {
    let rows: Vec<_> = rows.iter().map(|(a, d)| ([*a, 0, 0], *d)).collect();
    table([from, "b32", "b32", to], &format!("cvt.{code} %d, %a;"), &rows);
}

#[test]
fn integers_extend_and_truncate() {
    cvt("b32", "b64", "s64.s32", &[(n(-2), (-2i64) as u64)]);
    cvt("b32", "b64", "u64.u32", &[(n(-2), n(-2))]);
    cvt("b64", "b32", "u32.u64", &[(7 << 32 | 5, 5)]);
    cvt("b16", "b32", "s32.s16", &[(0xfffe, n(-2))]);
    cvt("b32", "b32", "s32.s8", &[(0x1fe, n(-2))]);
    cvt("b32", "b16", "u8.u32", &[(0x1fe, 0xfe)]);
    cvt("b32", "b16", "s8.s32", &[(0x1fe, 0xfffe)]);
    cvt("b32", "b16", "u16.u32", &[(0x12345, 0x2345)]);
    cvt("b16", "b64", "s64.s16", &[(0xffff, u64::MAX)]);
    cvt("b32", "b32", "sat.u8.s32", &[(n(-5), 0), (300, 255)]);
    cvt("b32", "b32", "sat.s8.s32", &[(n(-500), n(-128)), (300, 127)]);
    cvt("b32", "b32", "sat.s32.u32", &[(u32::MAX.into(), n(i32::MAX))]);
}

#[test]
fn floats_to_integers_saturate() {
    cvt(
        "f32",
        "b32",
        "rzi.s32.f32",
        &[(f(-1.9), n(-1)), (f(1e20), n(i32::MAX)), (f(-1e20), n(i32::MIN)), (f(f32::NAN), 0)],
    );
    cvt("f32", "b32", "rni.s32.f32", &[(f(2.5), 2), (f(3.5), 4), (f(-2.5), n(-2))]);
    cvt("f32", "b32", "rmi.s32.f32", &[(f(-1.1), n(-2)), (f(1.9), 1)]);
    cvt("f32", "b32", "rpi.s32.f32", &[(f(-1.9), n(-1)), (f(1.1), 2)]);
    cvt("f32", "b32", "rzi.u32.f32", &[(f(-1.0), 0), (f(5e9), u32::MAX.into())]);
    cvt("f32", "b64", "rzi.s64.f32", &[(f(1e10), 10_000_000_000), (f(f32::NAN), 1 << 63)]);
    cvt("f64", "b32", "rzi.s32.f64", &[(g(f64::NAN), n(i32::MIN)), (g(7.9), 7)]);
    cvt("f64", "b64", "rzi.u64.f64", &[(g(1.8e19), 18_000_000_000_000_000_000), (g(-1.0), 0)]);
    cvt("f32", "b16", "rzi.u8.f32", &[(f(300.0), 255), (f(7.7), 7)]);
    cvt("f32", "b16", "rzi.s8.f32", &[(f(-300.0), 0xff80)]);
}

#[test]
fn integers_to_floats_round_once() {
    cvt(
        "b32",
        "f32",
        "rn.f32.s32",
        &[(n(-3), f(-3.0)), (16_777_217, f(16_777_216.0)), (16_777_219, f(16_777_220.0))],
    );
    cvt("b32", "f32", "rn.f32.u32", &[(u32::MAX.into(), f(4_294_967_296.0))]);
    cvt("b32", "f32", "rz.f32.u32", &[(u32::MAX.into(), f(4_294_967_040.0))]);
    cvt("b32", "f32", "rp.f32.s32", &[(16_777_217, f(16_777_218.0))]);
    // Rounding to f64 first would make this a tie.
    let tricky = (1u64 << 62) + (1 << 38) + 1;
    cvt("b64", "f32", "rn.f32.s64", &[(tricky, f(tricky as f32))]);
    cvt("b64", "f32", "rn.f32.u64", &[(u64::MAX, f(u64::MAX as f32))]);
    cvt("b64", "f64", "rn.f64.s64", &[((-1i64) as u64, g(-1.0))]);
    cvt("b64", "f64", "rz.f64.u64", &[(u64::MAX, g(18_446_744_073_709_549_568.0))]);
    cvt("b32", "f64", "rn.f64.u32", &[(u32::MAX.into(), g(4_294_967_295.0))]);
    cvt("b32", "b16", "rn.f16.s32", &[(70_000, 0x7c00), (2049, 0x6800)]);
}

#[test]
fn float_formats() {
    cvt("f32", "f64", "f64.f32", &[(f(1.5), g(1.5)), (1, g(f64::from(f32::from_bits(1))))]);
    cvt("f64", "f32", "rn.f32.f64", &[(g(0.1), f(0.1)), (g(1e300), f(f32::INFINITY))]);
    cvt("f64", "f32", "rz.f32.f64", &[(g(1e300), f(f32::MAX))]);
    cvt("f64", "f32", "rp.f32.f64", &[(g(1.0 + 1e-12), f(1f32.next_up()))]);
    cvt("b16", "f32", "f32.f16", &[(0x3c00, f(1.0)), (1, f(5.960_464_5e-8)), (0xfc00, f(f32::NEG_INFINITY))]);
    cvt(
        "f32",
        "b16",
        "rn.f16.f32",
        &[(f(1.0), 0x3c00), (f(65520.0), 0x7c00), (f(6e-8), 1), (f(2.9e-8), 0), (f(-0.0), 0x8000)],
    );
    cvt("f32", "b16", "rz.f16.f32", &[(f(65535.0), 0x7bff)]);
    cvt(
        "f32",
        "b16",
        "rn.bf16.f32",
        &[(f(1.0), 0x3f80), (0x3f80_8000, 0x3f80), (0x3f81_8000, 0x3f82), (0x7f80_0001, 0x7fff)],
    );
    cvt("b16", "f32", "f32.bf16", &[(0x3f80, f(1.0)), (0x0001, 0x0001_0000)]);
    cvt("f32", "b32", "rna.tf32.f32", &[(0x3f80_1000, 0x3f80_2000), (0x3f80_0fff, 0x3f80_0000)]);
    cvt("f32", "b32", "rna.tf32.f32", &[(0xff80_0001, 0xff80_0000), (0x7fff_ffff, 0x7fff_e000)]);
    let pack = [([f(1.0), f(2.0), 0], 0x3c00_4000)];
    table(["f32", "f32", "b32", "b32"], "cvt.rn.f16x2.f32 %d, %a, %b;", &pack);
    let pack = [([f(-1.0), f(2.0), 0], 0x0000_4000)];
    table(["f32", "f32", "b32", "b32"], "cvt.rn.relu.bf16x2.f32 %d, %a, %b;", &pack);
}

#[test]
fn floats_round_to_integral_floats() {
    cvt("f32", "f32", "rni.f32.f32", &[(f(2.5), f(2.0)), (f(-0.4), f(-0.0))]);
    cvt("f32", "f32", "rmi.f32.f32", &[(f(-2.5), f(-3.0))]);
    cvt("f32", "f32", "rpi.f32.f32", &[(f(2.1), f(3.0))]);
    cvt("f64", "f64", "rzi.f64.f64", &[(g(-2.9), g(-2.0))]);
    cvt("f32", "f32", "sat.f32.f32", &[(f(2.0), f(1.0)), (f(-2.0), 0), (f(f32::NAN), 0)]);
    cvt("f32", "f32", "ftz.f32.f32", &[(1, 0)]);
}

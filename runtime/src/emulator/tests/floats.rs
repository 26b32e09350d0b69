//! Float arithmetic in all types and modes.

use super::{f, g, table};

const NAN: u64 = 0x7fff_ffff;

fn halves(code: &str, rows: &[(f32, f32, f32, f32)]) {
    let h = |value: f32| u64::from(half::f16::from_f32(value).to_bits());
    let rows: Vec<_> = rows.iter().map(|(a, b, c, d)| ([h(*a), h(*b), h(*c)], h(*d))).collect();
    table(["b16"; 4], code, &rows);
}

#[test]
fn single_precision() {
    let class = ["f32"; 4];
    table(
        class,
        "add.f32 %d, %a, %b;",
        &[([f(1.5), f(2.0), 0], f(3.5)), ([f(f32::INFINITY), f(f32::NEG_INFINITY), 0], NAN)],
    );
    table(class, "sub.f32 %d, %a, %b;", &[([f(1.5), f(2.0), 0], f(-0.5))]);
    table(
        class,
        "mul.f32 %d, %a, %b;",
        &[([f(1.5), f(-2.0), 0], f(-3.0)), ([1, f(0.5), 0], 0), ([3, f(0.5), 0], 2)],
    );
    table(
        class,
        "div.rn.f32 %d, %a, %b;",
        &[([f(1.0), f(3.0), 0], f(1.0 / 3.0)), ([f(1.0), 0, 0], f(f32::INFINITY))],
    );
    table(
        class,
        "fma.rn.f32 %d, %a, %b, %c;",
        &[(
            [f(1.0 + f32::EPSILON), f(1.0 + f32::EPSILON), f(-1.0)],
            f((1.0 + f32::EPSILON).mul_add(1.0 + f32::EPSILON, -1.0)),
        )],
    );
    table(class, "sqrt.rn.f32 %d, %a;", &[([f(2.0), 0, 0], f(2f32.sqrt())), ([f(-1.0), 0, 0], NAN)]);
    table(
        class,
        "rcp.rn.f32 %d, %a;",
        &[([f(3.0), 0, 0], f(1.0 / 3.0)), ([f(-0.0), 0, 0], f(f32::NEG_INFINITY))],
    );
    table(class, "neg.f32 %d, %a;", &[([f(0.0), 0, 0], f(-0.0))]);
    table(class, "abs.f32 %d, %a;", &[([f(-3.0), 0, 0], f(3.0))]);
    table(class, "copysign.f32 %d, %a, %b;", &[([f(-1.0), f(3.0), 0], f(-3.0))]);
}

#[test]
fn flushing_and_saturation() {
    let class = ["f32"; 4];
    let least = f(f32::MIN_POSITIVE);
    table(
        class,
        "add.ftz.f32 %d, %a, %b;",
        &[([1, 0, 0], 0), ([0x8000_0001, f(-0.0), 0], f(-0.0)), ([least, 1, 0], least)],
    );
    table(class, "mul.ftz.f32 %d, %a, %b;", &[([least, f(-0.5), 0], f(-0.0))]);
    table(class, "fma.rn.ftz.f32 %d, %a, %b, %c;", &[([least, f(0.5), 0], 0), ([f(1.0), f(1.0), 1], f(1.0))]);
    table(
        class,
        "add.sat.f32 %d, %a, %b;",
        &[
            ([f(1.0), f(1.0), 0], f(1.0)),
            ([f(-1.0), 0, 0], 0),
            ([NAN, 0, 0], 0),
            ([f(0.25), f(0.5), 0], f(0.75)),
        ],
    );
    let nan = f(f32::NAN);
    let clamped = [
        ([f(0.5), f(0.5), f(0.25)], f(0.5)),
        ([f(2.0), f(3.0), f(0.5)], f(1.0)),
        ([f(-2.0), f(3.0), f(0.5)], 0),
        ([f(f32::NEG_INFINITY), f(3.0), f(0.5)], 0),
        ([f(f32::INFINITY), f(3.0), f(0.5)], f(1.0)),
        ([nan, f(3.0), f(0.5)], 0),
        ([0, f(-1.0), 0], 0),
    ];
    table(class, "fma.rn.sat.f32 %d, %a, %b, %c;", &clamped);
}

#[test]
fn directed_rounding() {
    let class = ["f32"; 4];
    let (one, tiny) = (f(1.0), f(1e-20));
    let above = f(1f32.next_up());
    table(class, "add.rp.f32 %d, %a, %b;", &[([one, tiny, 0], above)]);
    table(class, "add.rm.f32 %d, %a, %b;", &[([one, tiny, 0], one), ([one, f(-1.0), 0], f(-0.0))]);
    table(
        class,
        "add.rz.f32 %d, %a, %b;",
        &[([f(-1.0), f(-1e-20), 0], f(-1.0)), ([f(f32::MAX), f(f32::MAX), 0], f(f32::MAX))],
    );
    table(class, "sub.rp.f32 %d, %a, %b;", &[([one, tiny, 0], one)]);
    table(class, "sub.rm.f32 %d, %a, %b;", &[([one, tiny, 0], f(1f32.next_down()))]);
    table(
        class,
        "mul.rz.f32 %d, %a, %b;",
        &[([f(1.0 + f32::EPSILON), f(1.0 + f32::EPSILON), 0], f(1.0 + 2.0 * f32::EPSILON))],
    );
    table(
        class,
        "mul.rp.f32 %d, %a, %b;",
        &[([f(1.0 + f32::EPSILON), f(1.0 + f32::EPSILON), 0], f((1.0 + 2.0 * f32::EPSILON).next_up()))],
    );
    table(class, "div.rp.f32 %d, %a, %b;", &[([one, f(3.0), 0], 0x3eaaaaab)]);
    table(class, "div.rm.f32 %d, %a, %b;", &[([one, f(3.0), 0], 0x3eaaaaaa)]);
    table(class, "fma.rp.f32 %d, %a, %b, %c;", &[([one, one, tiny], above)]);
    table(class, "sqrt.rm.f32 %d, %a;", &[([f(2.0), 0, 0], 0x3fb504f3), ([f(4.0), 0, 0], f(2.0))]);
    table(class, "sqrt.rp.f32 %d, %a;", &[([f(2.0), 0, 0], 0x3fb504f4)]);
    let wide = ["f64"; 4];
    table(wide, "add.rp.f64 %d, %a, %b;", &[([g(1.0), g(1e-30), 0], g(1f64.next_up()))]);
    table(wide, "mul.rm.f64 %d, %a, %b;", &[([g(0.1), g(0.1), 0], g((0.1f64 * 0.1).next_down()))]);
    table(wide, "div.rz.f64 %d, %a, %b;", &[([g(1.0), g(10.0), 0], g((1.0f64 / 10.0).next_down()))]);
    table(
        wide,
        "fma.rz.f64 %d, %a, %b, %c;",
        &[([g(1.0), g(1.0), g(1e-30)], g(1.0)), ([g(1.0), g(1.0), g(-1e-30)], g(1f64.next_down()))],
    );
}

#[test]
fn extremes_of_floats() {
    let class = ["f32"; 4];
    table(
        class,
        "min.f32 %d, %a, %b;",
        &[
            ([f(1.0), f(2.0), 0], f(1.0)),
            ([NAN, f(2.0), 0], f(2.0)),
            ([f(1.0), NAN, 0], f(1.0)),
            ([NAN, 0x7fc0_0001, 0], NAN),
            ([f(0.0), f(-0.0), 0], f(-0.0)),
            ([f(-0.0), f(0.0), 0], f(-0.0)),
        ],
    );
    table(
        class,
        "max.f32 %d, %a, %b;",
        &[([f(-0.0), f(0.0), 0], f(0.0)), ([f(0.0), f(-0.0), 0], f(0.0)), ([NAN, f(2.0), 0], f(2.0))],
    );
    table(
        class,
        "min.NaN.f32 %d, %a, %b;",
        &[([f(1.0), NAN, 0], NAN), ([NAN, f(1.0), 0], NAN), ([f(3.0), f(1.0), 0], f(1.0))],
    );
    table(
        ["f64"; 4],
        "max.f64 %d, %a, %b;",
        &[([g(1.0), g(f64::NAN), 0], g(1.0)), ([g(-1.0), g(3.0), 0], g(3.0))],
    );
}

#[test]
fn double_precision() {
    let class = ["f64"; 4];
    table(class, "add.f64 %d, %a, %b;", &[([g(0.1), g(0.2), 0], g(0.1 + 0.2))]);
    table(
        class,
        "fma.rn.f64 %d, %a, %b, %c;",
        &[([g(0.1), g(0.1), g(-0.01)], g(0.1f64.mul_add(0.1, -0.01)))],
    );
    table(class, "sqrt.rn.f64 %d, %a;", &[([g(2.0), 0, 0], g(2f64.sqrt()))]);
    table(class, "neg.f64 %d, %a;", &[([g(2.0), 0, 0], g(-2.0))]);
}

#[test]
fn half_precision() {
    halves(
        "add.rn.f16 %d, %a, %b;",
        &[(1.0, 2.0, 0.0, 3.0), (2048.0, 1.0, 0.0, 2048.0), (65504.0, 65504.0, 0.0, f32::INFINITY)],
    );
    halves("mul.rn.f16 %d, %a, %b;", &[(1.5, 2.0, 0.0, 3.0)]);
    // The product is not rounded on its own.
    halves("fma.rn.f16 %d, %a, %b, %c;", &[(1.001_953_1, 1.001_953_1, -1.0, 0.003_910_064_7)]);
    halves("min.f16 %d, %a, %b;", &[(1.0, -2.0, 0.0, -2.0)]);
    halves("neg.f16 %d, %a;", &[(1.0, 0.0, 0.0, -1.0)]);
    let packed = ["b32"; 4];
    table(packed, "add.rn.f16x2 %d, %a, %b;", &[([0x3c00_4000, 0x4000_3c00, 0], 0x4200_4200)]);
    table(packed, "fma.rn.bf16x2 %d, %a, %b, %c;", &[([0x3f80_4000, 0x4000_4000, 0x3f80_3f80], 0x4040_40a0)]);
    table(["b16"; 4], "fma.rn.relu.bf16 %d, %a, %b, %c;", &[([0xbf80, 0x3f80, 0], 0)]);
}

#[test]
fn approximations_are_close() {
    let close = |code: &str, x: f32, expected: f32| {
        table(["f32"; 4], code, &[([f(x), 0, 0], f(expected))]);
    };
    close("ex2.approx.f32 %d, %a;", 3.0, 8.0);
    close("ex2.approx.ftz.f32 %d, %a;", -140.0, 0.0);
    close("lg2.approx.f32 %d, %a;", 8.0, 3.0);
    close("sin.approx.f32 %d, %a;", 0.5, 0.5f64.sin() as f32);
    close("cos.approx.f32 %d, %a;", 0.5, 0.5f64.cos() as f32);
    close("tanh.approx.f32 %d, %a;", 0.5, 0.5f64.tanh() as f32);
    close("rsqrt.approx.f32 %d, %a;", 4.0, 0.5);
    close("rcp.approx.f32 %d, %a;", 4.0, 0.25);
    close("sqrt.approx.f32 %d, %a;", 9.0, 3.0);
    table(
        ["f32"; 4],
        "div.approx.f32 %d, %a, %b;",
        &[([f(6.0), f(3.0), 0], f(2.0)), ([f(1.0), f(1e38), 0], 0)],
    );
    table(["f32"; 4], "div.full.f32 %d, %a, %b;", &[([f(6.0), f(3.0), 0], f(2.0))]);
}

#[test]
fn kinds_of_floats() {
    let class = ["f32", "b32", "b32", "pred"];
    let rows = |answers: [u64; 5]| {
        let values = [f(1.0), 0, 1, f(f32::INFINITY), NAN];
        values.into_iter().zip(answers).map(|(value, answer)| ([value, 0, 0], answer)).collect::<Vec<_>>()
    };
    table(class, "testp.finite.f32 %d, %a;", &rows([1, 1, 1, 0, 0]));
    table(class, "testp.infinite.f32 %d, %a;", &rows([0, 0, 0, 1, 0]));
    table(class, "testp.number.f32 %d, %a;", &rows([1, 1, 1, 1, 0]));
    table(class, "testp.notanumber.f32 %d, %a;", &rows([0, 0, 0, 0, 1]));
    table(class, "testp.normal.f32 %d, %a;", &rows([1, 0, 0, 0, 0]));
    table(class, "testp.subnormal.f32 %d, %a;", &rows([0, 0, 1, 0, 0]));
}

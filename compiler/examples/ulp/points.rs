//! Where the functions are measured: deterministic random arguments.

use krn_compiler::ptx::math::MathFunction;

/// splitmix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// In [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * 2f64.powi(-53)
    }

    /// In [lo, hi).
    pub fn within(&mut self, lo: f64, hi: f64) -> f64 {
        lo + (hi - lo) * self.unit()
    }

    /// Either sign, with an exponent drawn evenly.
    pub fn magnitude(&mut self, lowest: i32, highest: i32) -> f64 {
        let exponent = self.within(f64::from(lowest), f64::from(highest)).floor() as i32;
        let sign = if self.bits() & 1 == 0 { 1.0 } else { -1.0 };
        sign * (1.0 + self.unit()) * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2)
    }
}

/// The range in which the function is neither trivial nor saturated.
fn range(function: MathFunction) -> (f64, f64) {
    use MathFunction::*;
    match function {
        Exp | Expm1 | Sinh | Cosh => (-745.2, 710.5),
        Exp2 => (-1075.0, 1024.0),
        Exp10 => (-323.0, 308.3),
        Log | Log2 | Log10 | Rsqrt | Cbrt => (0.0, 4.0),
        Log1p => (-1.0, 4.0),
        Sin | Cos | Tan | Sinpi | Cospi => (-100.0, 100.0),
        Asin | Acos => (-1.0, 1.0),
        Atan | Atan2 | Hypot => (-5.0, 5.0),
        Tanh => (-20.0, 20.0),
        Erf => (-6.0, 6.0),
        Pow => (0.0, 3.0),
    }
}

pub fn arguments_f64(function: MathFunction, random: &mut Random) -> Vec<f64> {
    let (lo, hi) = range(function);
    let x = match random.bits() % 8 {
        0 => f64::from_bits(random.bits()),
        1 => random.magnitude(-1074, 1023),
        2 | 3 => random.magnitude(-30, 10),
        4 => random.within(-2.0, 2.0),
        5 => 1.0 + random.magnitude(-50, -2),
        _ => random.within(lo, hi),
    };
    if function.arity() == 1 {
        return vec![x];
    }
    let y = match (function, random.bits() % 8) {
        // Exponents that bring the power anywhere into the range.
        (MathFunction::Pow, 0..6) => random.within(-1075.0, 1024.0) / x.abs().log2(),
        (MathFunction::Pow, 6) => random.within(-300.0, 300.0).round(),
        (_, 0..4) => x * random.magnitude(-4, 4),
        _ => random.magnitude(-20, 10),
    };
    vec![x, y]
}

pub fn arguments_f32(function: MathFunction, random: &mut Random) -> Vec<f32> {
    let (lo, hi) = range(function);
    let x = match random.bits() % 4 {
        0 => f32::from_bits(random.bits() as u32),
        1 => random.magnitude(-149, 127) as f32,
        2 => 1.0 + random.magnitude(-22, -2) as f32,
        _ => random.within(lo, hi) as f32,
    };
    let y = match (function, random.bits() % 8) {
        (MathFunction::Pow, 0..6) => (random.within(-150.0, 128.0) / f64::from(x.abs()).log2()) as f32,
        (MathFunction::Pow, 6) => random.within(-60.0, 60.0).round() as f32,
        (_, 0..2) => f32::from_bits(random.bits() as u32),
        (_, 2..5) => x * random.magnitude(-4, 4) as f32,
        _ => random.magnitude(-20, 10) as f32,
    };
    vec![x, y]
}

//! `erf`: an odd polynomial near zero; 1 - erfc(x) elsewhere, where log2(erfc(x)) is a polynomial.

use super::arith::Arith;
use super::exponential::exp2_small;

// Fitted by xtask/math/fit.py: erf(x)/x - 1 in x², up to |x| = 0.92 (f32) and 1 (f64).
const ERF32: [f64; 7] = [
    0.12837916612625122,
    -0.37612631916999817,
    0.11283678561449051,
    -0.02685873582959175,
    0.005199781619012356,
    -0.0008131411159411073,
    8.33097510621883e-05,
];
const ERF64: [f64; 16] = [
    0.1283791670955126,
    -0.3761263890318395,
    0.11283791670964301,
    -0.026866170647148743,
    0.005223977650690767,
    -0.0008548329021514616,
    0.00012055439518622679,
    -1.4929632676094263e-05,
    1.6568999906542374e-06,
    -1.8450514193293766e-07,
    4.438587013016672e-08,
    -3.1435849836141155e-08,
    2.1717288910982705e-08,
    -1.0300696168185318e-08,
    2.926913224190177e-09,
    -3.758769216631821e-10,
];
// -log2(erfc(x)) in x, from there to 3.95 (f32) and 5.95 (f64), above which erf rounds to one.
const ERFC32: [f64; 8] = [
    -0.00025825685588642955,
    1.6295768022537231,
    0.9136608242988586,
    0.1562902331352234,
    -0.03629014268517494,
    0.006037483923137188,
    -0.0006310640019364655,
    3.08166527247522e-05,
];
const ERFC64: [f64; 19] = [
    2.7172679368444913e-07,
    1.6279042528303034,
    0.9184613362243342,
    0.14823132014892698,
    -0.027520736296947602,
    -0.0004093520354417781,
    0.0025573389343882696,
    -0.0009295294249922028,
    6.775523172035833e-05,
    9.983239505380104e-05,
    -6.424158559548525e-05,
    2.3570284184178502e-05,
    -6.1729438586708555e-06,
    1.212245543369642e-06,
    -1.7893284677618508e-07,
    1.9369288534650487e-08,
    -1.4557291345000575e-09,
    6.795933950934139e-11,
    -1.4848723372317627e-12,
];

pub fn erf<A: Arith>(a: &A, x: A::F) -> A::F {
    let size = a.abs(x);
    let small = a.lt(size, A::float(A::pick(0.92, 1.0)));
    let z = a.mul(size, size);
    let near = a.fma(size, a.polynomial(z, A::pick(&ERF32, &ERF64)), size);
    // NaN passes the comparison and goes through the polynomial.
    let limit = A::float(A::pick(3.95, 5.95));
    let clamped = a.select(a.lt(limit, size), limit, size);
    let exponent = a.neg(a.polynomial(clamped, A::pick(&ERFC32, &ERFC64)));
    let (n, i) = a.nearest_multiple(exponent, 1.0);
    let p = exp2_small(a, a.sub(exponent, n));
    let far = a.fma(a.neg(p), a.power_of_two(i), A::float(1.0));
    a.with_sign(a.select(small, near, far), x)
}

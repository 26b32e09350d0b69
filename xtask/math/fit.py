#!/usr/bin/env python3
"""Fits the polynomials of compiler/src/ptx/math and prints them as Rust arrays.

Each row of FITS names a function g, the weight that turns its error into the relative error of the final
result, an interval and a degree. The fit is near minimax, then coefficients are rounded to the format one
by one from the lowest order, the rest being fitted again around those already rounded.
Usage: python3 fit.py [NAME ...]   (needs mpmath)
"""
import sys
from mpmath import mp, mpf, matrix, lu_solve, log, exp, sin, cos, tanh, sinh, atan, asin, atanh, erf, erfc, sqrt, pi, expm1, log1p, cosh

mp.prec = 240
LN2 = log(mpf(2))
# The quotients below lose all digits at zero itself.
NEAR_ZERO = mpf(2) ** -40


def rounded(value, bits):
    """Rounds to a float of the given precision (no range limits: coefficients are far from them)."""
    old = mp.prec
    mp.prec = bits
    out = +value
    mp.prec = old
    return out


def chebyshev_fit(g, w, lo, hi, powers, fixed):
    """Coefficients for `powers`, given `fixed` = {power: coefficient}, and the largest weighted error.

    Least squares over Chebyshev nodes: within a factor of two of minimax, and it never fails to converge.
    """
    count = 6 * (len(powers) + len(fixed)) + 60
    nodes = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * (i + mpf(0.5)) / count) for i in range(count)]
    nodes = [t for t in nodes if abs(t) > NEAR_ZERO]
    left = [w(t) * (g(t) - sum(c * t**p for p, c in fixed.items())) for t in nodes]
    if not powers:
        return {}, max(abs(e) for e in left)
    rows = [[w(t) * t**p for p in powers] for t in nodes]
    size = len(powers)
    a, b = matrix(size, size), matrix(size, 1)
    for i in range(size):
        for j in range(i, size):
            a[i, j] = a[j, i] = sum(row[i] * row[j] for row in rows)
        b[i] = sum(row[i] * e for row, e in zip(rows, left))
    return dict(zip(powers, lu_solve(a, b))), None


def fit(g, w, lo, hi, degree, bits):
    lo, hi = mpf(lo), mpf(hi)
    powers, fixed = list(range(degree + 1)), {}
    while powers:
        coef, _ = chebyshev_fit(g, w, lo, hi, powers, fixed)
        p = powers.pop(0)
        fixed[p] = rounded(coef[p], bits)
    _, error = chebyshev_fit(g, w, lo, hi, [], fixed)
    return [fixed[p] for p in range(degree + 1)], error


root = sqrt
half = LN2 / 2 * mpf("1.003")
quarter = (pi / 4 * mpf("1.003")) ** 2
TINY = mpf(2) ** -30
FITS = {}


def row(name, bits, degree, g, w, lo, hi):
    FITS[name] = (bits, degree, g, w, lo, hi)


for bits, d in ((24, {"exp": 4, "exp2": 5, "expm1": 5, "sin": 3, "cos": 3, "tanh": 5, "sinh": 4, "asin": 5, "atan": 9, "erf": 6, "erfc": 7, "pow": 2}),
                (53, {"exp": 10, "exp2": 11, "expm1": 10, "sin": 6, "cos": 6, "tanh": 10, "sinh": 8, "asin": 12, "atan": 20, "erf": 15, "erfc": 18, "pow": 6})):
    n = "32" if bits == 24 else "64"
    row("exp" + n, bits, d["exp"], lambda r: (exp(r) - 1 - r) / r**2, lambda r: r**2 / exp(r), -half, half)
    row("exp2_" + n, bits, d["exp2"], lambda r: (exp(r * LN2) - 1) / r, lambda r: r / exp(r * LN2), -mpf("0.5015"), mpf("0.5015"))
    row("expm1_" + n, bits, d["expm1"], lambda r: (expm1(r) - r) / r**2, lambda r: r**2 / expm1(r), -mpf("0.42"), mpf("0.42"))
    row("sin" + n, bits, d["sin"], lambda z: (sin(root(z)) / root(z) - 1) / z, lambda z: z, TINY, quarter)
    row("cos" + n, bits, d["cos"], lambda z: (cos(root(z)) - 1 + z / 2) / z**2, lambda z: z**2, TINY, quarter)
    row("tanh" + n, bits, d["tanh"], lambda z: (tanh(root(z)) / root(z) - 1) / z, lambda z: z, TINY, mpf("0.71" if bits == 24 else "0.56") ** 2)
    row("sinh" + n, bits, d["sinh"], lambda z: (sinh(root(z)) / root(z) - 1) / z, lambda z: z, TINY, mpf(1))
    row("asin" + n, bits, d["asin"], lambda z: (asin(root(z)) / root(z) - 1) / z, lambda z: z, TINY, mpf("0.2501"))
    row("atan" + n, bits, d["atan"], lambda z: (atan(root(z)) / root(z) - 1) / z, lambda z: z * root(z) / atan(root(z)), TINY, mpf(1))
    e0 = mpf("0.92") if bits == 24 else mpf(1)
    e1 = mpf("3.95") if bits == 24 else mpf("5.95")
    row("erf" + n, bits, d["erf"], lambda z: erf(root(z)) / root(z) - 1, lambda z: root(z) / erf(root(z)), TINY, e0**2)
    row("erfc" + n, bits, d["erfc"], lambda a: -log(erfc(a)) / LN2, lambda a: erfc(a), e0, e1)
    if bits == 24:
        row("log32", 24, 7, lambda f: (log1p(f) - f + f * f / 2) / f**3, lambda f: f**3 / log1p(f), -mpf("0.3334"), mpf("0.3334"))
        row("pow32", 24, d["pow"], lambda u: (atanh(root(u)) / root(u) - 1 - u / 3) / u**2, lambda u: u**2, TINY, mpf("0.02945"))
    else:
        row("log64", 53, 6, lambda z: (2 * atanh(root(z)) / root(z) - 2) / z, lambda z: z, TINY, mpf("0.02945"))
        row("pow64", 53, d["pow"], lambda u: (atanh(root(u)) / root(u) - 1 - u / 3 - u * u / 5) / u**3, lambda u: u**3, TINY, mpf("0.02945"))

if __name__ == "__main__":
    for name in sys.argv[1:] or FITS:
        bits, degree, g, w, lo, hi = FITS[name]
        coef, error = fit(g, w, lo, hi, degree, bits)
        print(f"// {name}: error 2^{float(log(error) / LN2):.1f}")
        print(f"pub const {name.upper()}: [f64; {len(coef)}] = [{', '.join(repr(float(c)) for c in coef)}];", flush=True)

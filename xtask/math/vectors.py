#!/usr/bin/env python3
"""Prints reference values of the f64 functions for compiler/src/ptx/math/tests/vectors.csv (needs mpmath).

Each line: function, the bits of the arguments, and the exact value as two doubles (their bits), to 106 bits;
values beyond the range of f64 are left out.
"""
import math
import random
import struct
from mpmath import mp, mpf
import mpmath as m

mp.prec = 1400
random.seed(20240601)


def bits(x):
    return f"{struct.unpack('<Q', struct.pack('<d', x))[0]:016x}"


def unbits(i):
    return struct.unpack("<d", struct.pack("<Q", i))[0]


def between(lo, hi):
    return lambda: random.uniform(lo, hi)


def magnitude(lo, hi):
    return lambda: random.choice((-1, 1)) * math.ldexp(random.uniform(1, 2), random.randint(lo, hi))


# x close to multiples of π/2: the hardest for reduction (the last is the nearest of all doubles).
HARD = [unbits(0x7506AC5B262CA1FF), 6381956970095103.0 * 2.0**797, 2.0**1023, 1.7976931348623157e308, 1e22, 1e5, 1.6e6, 1600001.0,
        math.pi, math.pi / 2, math.pi / 4, 3 * math.pi / 4, 355.0, 103993.0, 2.0**60, 5e-324, 1e-310]
ENDS = [5e-324, 1e-310, 2.2250738585072014e-308, 1.7976931348623157e308, 1.0000000000000002, 0.9999999999999999]
FUNCTIONS = {
    "exp": (m.exp, [between(-745.1, 709.7), magnitude(-60, 5)], [709.782712893384, -745.1332191019411, -708.4]),
    "exp2": (lambda x: mpf(2) ** x, [between(-1074, 1024), magnitude(-60, 5)], [1023.9999999999999, -1074.0, 10.0]),
    "expm1": (m.expm1, [between(-40, 709.7), magnitude(-60, 1)], [0.4, 0.3466, 5e-324, -1e-310]),
    "log": (m.log, [magnitude(-1074, 1023), between(0.5, 2)], ENDS),
    "log2": (lambda x: m.log(x) / m.log(2), [magnitude(-1074, 1023), between(0.5, 2)], ENDS),
    "log10": (lambda x: m.log(x) / m.log(10), [magnitude(-1074, 1023), between(0.5, 2)], ENDS),
    "log1p": (m.log1p, [magnitude(-60, 60), between(-1, 1)], [5e-324, 1.7976931348623157e308, -0.9999999999999999]),
    "sin": (m.sin, [magnitude(-30, 30), magnitude(20, 1023)], HARD),
    "cos": (m.cos, [magnitude(-30, 30), magnitude(20, 1023)], HARD),
    "tan": (m.tan, [magnitude(-30, 30), magnitude(20, 1023)], HARD),
    "asin": (m.asin, [between(-1, 1), magnitude(-60, -1)], [0.9999999999999999, 1.0, -0.5]),
    "acos": (m.acos, [between(-1, 1), magnitude(-60, -1)], [0.9999999999999999, -1.0, 0.5]),
    "atan": (m.atan, [magnitude(-60, 60), between(-3, 3)], [1.0, 5e-324, 1e300]),
    "atan2": (m.atan2, [magnitude(-10, 10), magnitude(-500, 500)], []),
    "sinh": (m.sinh, [between(-710.4, 710.4), magnitude(-60, 1)], [710.4758600739439, 1.0, 5e-324]),
    "cosh": (m.cosh, [between(-710.4, 710.4), magnitude(-60, 1)], [710.4758600739439]),
    "tanh": (m.tanh, [between(-20, 20), magnitude(-60, 1)], [0.55, 5e-324]),
    "erf": (m.erf, [between(-6, 6), magnitude(-60, 1)], [1.0, 5e-324, 5.9]),
    "rsqrt": (lambda x: 1 / m.sqrt(x), [magnitude(-1074, 1023)], ENDS),
    "cbrt": (lambda x: m.cbrt(x), [magnitude(-1074, 1023)], ENDS),
    "pow": (m.power, [magnitude(-1000, 1000), between(0.1, 4)], []),
    "exp10": (lambda x: mpf(10) ** x, [between(-323, 308.2), magnitude(-60, 5)], [308.25471555991674, -323.3, 22.0, -1.0]),
    "sinpi": (m.sinpi, [magnitude(-60, 40), between(-100, 100)], [5e-324, 1e-310, 0.25, 1e15 + 0.25, 0.9999999999999999]),
    "cospi": (m.cospi, [magnitude(-20, 40), between(-100, 100)], [0.25, 1e15 + 0.125, 0.49999999999999994, 0.5000000000000001]),
    "hypot": (m.hypot, [magnitude(-10, 10), magnitude(-500, 500)], []),
}
POSITIVE = {"log", "log2", "log10", "rsqrt", "cbrt", "pow"}

for name, (function, draws, fixed) in FUNCTIONS.items():
    points = [(x,) for x in fixed]
    while len(points) < 40:
        x = random.choice(draws)()
        x = abs(x) if name in POSITIVE else x
        if name == "pow":
            points.append((x, random.uniform(-1074, 1023) / math.log2(x)))
        elif name in ("atan2", "hypot"):
            points.append((x, random.choice(draws)()))
        else:
            points.append((x,))
    for args in points:
        if name == "log1p" and args[0] <= -1:
            continue
        value = function(*(mpf(x) for x in args))
        hi = float(value)
        if hi == 0 or math.isinf(hi):
            continue
        print(",".join([name, " ".join(bits(x) for x in args), bits(hi), bits(float(value - mpf(hi)))]))

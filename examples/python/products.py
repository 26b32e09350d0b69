"""A matrix product, a sum and a softmax written in Krn, called from Python and held against CuPy.

    for f in matmul sum softmax gather_scatter; do krn build examples/$f.krn --emit fat -o $f.json; done
    python3 examples/python/products.py .

Needs a GPU and CuPy, and nothing of Krn but the four documents.
"""
import pathlib
import sys

import cupy

import krn

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
cupy.random.seed(1)


def close(name, got, wanted, tolerance):
    error = float(cupy.abs(got.astype("f8") - wanted).max())
    print(f"{name:12} {str(got.shape):14} largest difference {error:.2e}")
    if not error <= tolerance:
        sys.exit(f"{name}: more than {tolerance}")


product = krn.load(folder / "matmul.json")
for m, k, n in [(1, 1, 1), (33, 65, 31), (1024, 512, 2048), (4095, 777, 1023)]:
    a, b = cupy.random.rand(m, k, dtype="f4"), cupy.random.rand(k, n, dtype="f4")
    close("matmul", product.matmul(a=a, b=b), a.astype("f8") @ b.astype("f8"), 1e-6 * k)

sums = krn.load(folder / "sum.json")
for n in [1, 1000, 40_000, 10_000_001]:
    x = cupy.random.rand(n, dtype="f4")
    close("total", sums.total(x=x), x.astype("f8").sum(), 1e-6 * n)

rows = cupy.random.rand(300, 1001, dtype="f4")
wanted = cupy.exp(rows.astype("f8"))
close("softmax", krn.load(folder / "softmax.json").softmax(x=rows), wanted / wanted.sum(axis=1, keepdims=True), 1e-6)

gather = krn.load(folder / "gather_scatter.json").gather
x = cupy.random.rand(100, dtype="f4")
at = cupy.arange(99, -1, -1, dtype="i4")
close("gather", gather(x=x, **{"from": at}), x[::-1].astype("f8"), 0.0)
at[7] = 100
try:
    gather(x=x, **{"from": at})
    sys.exit("an index outside went unnoticed")
except krn.KrnError as error:
    print(error)

"""Kernels on arrays of JAX, and in its programs."""

from __future__ import annotations

import krn
import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="no JAX here")

import jax.numpy as jnp  # noqa: E402
import krn.jax as krn_jax  # noqa: E402

TEXT = """
kernel scale(x: f32[n], by: f32) -> y: f32[n] { y[i] = by * x[i] }
kernel add_into(x: f32[n], y: inout f32[n]) -> s: f32 { y[i] += x[i]
 s = sum(i: y[i]) }
kernel gather(x: f32[n], at: i32[m]) -> y: f32[m] { y[i] = x[at[i]] }
kernel total(x: f32[n]) -> s: f32 { s = sum(i: x[i]) }
"""


@pytest.fixture(scope="module")
def kernels() -> krn.Module:
    return krn.compile(TEXT, name="jax.krn")


def test_calls_in_programs(kernels: krn.Module) -> None:
    @jax.jit
    def program(x):
        y = krn_jax.call(kernels.scale, x + 1, by=2.0)
        return krn_jax.call(kernels.scale, y, 3.0) - 1

    for n in (3, 1000):
        x = jnp.arange(n, dtype=jnp.float32)
        assert jnp.array_equal(program(x), 6 * (x + 1) - 1)
    assert abs(float(krn_jax.call(kernels.total, jnp.ones(70_000, jnp.float32))) - 70_000) < 1


def test_what_is_written_comes_back_and_nothing_changes(kernels: krn.Module) -> None:
    x, y = jnp.ones(100, jnp.float32), jnp.arange(100, dtype=jnp.float32)
    for call in (krn_jax.call, jax.jit(krn_jax.call, static_argnums=0)):
        new, s = call(kernels.add_into, x, y)
        assert jnp.array_equal(new, y + 1) and float(s) == float((y + 1).sum())
        assert float(y[0]) == 0


def test_batches(kernels: krn.Module) -> None:
    x = jnp.arange(64, dtype=jnp.float32).reshape(4, 16)
    assert jnp.array_equal(jax.vmap(lambda row: krn_jax.call(kernels.scale, row, by=2.0))(x), 2 * x)


def test_errors(kernels: krn.Module) -> None:
    x = jnp.ones(10, jnp.float32)
    with pytest.raises(krn.ArgumentError, match="elements of type `f32`, but `int32`"):
        krn_jax.call(kernels.scale, x.astype(jnp.int32), 2.0)
    with pytest.raises(krn.ArgumentError, match="static_argnames"):
        jax.jit(lambda x, by: krn_jax.call(kernels.scale, x, by))(x, 2.0)
    with pytest.raises(Exception, match="axis 0 of `y` must have extent 10"):
        jax.block_until_ready(krn_jax.call(kernels.add_into, x, jnp.ones(4, jnp.float32)))
    if jax.default_backend() == "cpu":
        with pytest.raises(Exception, match="index 12 is outside axis 0 of `x`"):
            jax.block_until_ready(krn_jax.call(kernels.gather, x, jnp.array([12], jnp.int32)))


def test_arrays_as_they_are(kernels: krn.Module) -> None:
    if jax.default_backend() != "cpu":
        pytest.skip("on a GPU, `krn.jax.call` is the way")
    x = jnp.arange(1000, dtype=jnp.float32)
    y = kernels.scale(x, 2.0)
    assert isinstance(y, jax.Array) and jnp.array_equal(y, 2 * x)
    out = np.zeros(1000, np.float32)
    kernels.scale(x, 2.0, out)
    assert (out == 2 * np.asarray(x)).all()
    with pytest.raises(krn.ArgumentError, match="arrays of JAX cannot be"):
        kernels.add_into(x, x + 0)
    x.delete()
    with pytest.raises((RuntimeError, TypeError)):  # As JAX has it.
        kernels.scale(x, 2.0)

"""Threads, forked processes, other interpreters."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import krn
import numpy as np
import pytest

TEXT = "kernel total(x: f32[n]) -> s: f32 { s = sum(i: x[i]) }"


def test_threads_share_a_kernel() -> None:
    total = krn.compile(TEXT).total
    arrays = [np.full(1000 + 16 * (number % 3), number, np.float32) for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        sums = list(pool.map(total, arrays))
    assert [float(s) for s in sums] == [float(x.sum()) for x in arrays]


def test_other_threads_run_meanwhile() -> None:
    """The emulator holds no lock of Python's."""
    kernel = krn.compile(
        "kernel spin(x: inout i32[n]) { forall i in n { for _ in 0..200000 { x[i] = x[i] * 3 + 1 } } }"
    ).spin
    x = np.zeros(256, np.int32)
    kernel(np.zeros(0, np.int32))
    counted, done = 0, threading.Event()

    def launch() -> None:
        kernel(x)
        done.set()

    thread = threading.Thread(target=launch)
    thread.start()
    while not done.wait(0.001):
        counted += 1
    thread.join()
    assert counted > 3


FORKED = f"""
import os, numpy as np, krn
kernel = krn.compile({TEXT!r}).total
if USED: kernel(np.ones(8, np.float32))
pid = os.fork()
if pid == 0:
    try:
        print("sum", float(krn.compile({TEXT!r}).total(np.ones(8, np.float32))), flush=True)
    except krn.Error as error:
        print("refused", error, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_is_refused_and_told_what_to_do() -> None:
    said = run("USED = True" + FORKED)
    assert said.startswith("refused") and 'multiprocessing.get_context("spawn")' in said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_may_fork_before_krn_is_used() -> None:
    program = FORKED.replace(f"kernel = krn.compile({TEXT!r}).total", "")
    assert run("USED = False" + program) == "sum 8.0\n"


def test_other_interpreters_are_refused() -> None:
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    program = f"""
import {name} as interpreters, sys
import krn
made = interpreters.create()
try:
    failed = interpreters.run_string(made, "import sys; sys.path = " + repr(sys.path) + "; import krn")
    print("failed", failed)
except Exception as error:
    print("failed", error)
"""
    said = run(program)
    assert "subinterpreters" in said, said


def test_spawned_processes_are_fine() -> None:
    program = f"""
import multiprocessing, numpy as np, krn
if __name__ == "__main__":
    total = krn.compile({TEXT!r}).total
    total(np.ones(4, np.float32))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(float(pool.apply(total, (np.ones(8, np.float32),))))
"""
    assert run(program) == "8.0\n"

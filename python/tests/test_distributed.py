"""Kernels split among processes: gloo and the emulator here, NCCL and GPUs by `bench/python.sh`."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys

import krn
import pytest

torch = pytest.importorskip("torch", reason="no torch here; bench/python.sh runs these on a GPU machine")

PROGRAM = pathlib.Path(__file__).with_name("sharded.py")


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_results_are_those_of_one_process(size: int) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = []
    for rank in range(size):
        environment = {
            **os.environ,
            "RANK": str(rank),
            "WORLD_SIZE": str(size),
            "LOCAL_RANK": str(rank),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "KRN_DEVICE": "cpu",
            "OMP_NUM_THREADS": "1",
        }
        line = [sys.executable, str(PROGRAM)]
        processes.append(
            subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        )
    said = [process.communicate(timeout=600)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes), "\n".join(said)
    assert f"{size} processes on cpu: all results are one process' own" in said[0]


def test_what_cannot_be_split_is_refused() -> None:
    from krn import distributed

    kernels = krn.compile(PROGRAM.read_text().split('TEXT = """')[1].split('"""')[0])
    assert {dim: rule.how for dim, rule in distributed.rules(kernels.attention).items()} == {
        "t": "parallel",
        "e": "parallel",
    }
    with pytest.raises(krn.ArgumentError, match="`cols` cannot be split among processes; what can: `rows`"):
        distributed.shard(kernels.softmax, None, "cols")  # type: ignore[arg-type]

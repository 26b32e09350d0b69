"""Kernels split among processes: gloo and the emulator here, NCCL and GPUs by `bench/python.sh`."""

from __future__ import annotations

import json
import multiprocessing
import pathlib
import socket

import krn
import pytest
from conftest import ROOT

torch = pytest.importorskip("torch", reason="no torch here")

import sharded  # noqa: E402

# Forked from a process that has imported torch and used nothing: importing it takes seconds, and there are 15 of them.
FORKED = "forkserver" in multiprocessing.get_all_start_methods()
PROCESSES = multiprocessing.get_context("forkserver" if FORKED else "spawn")
if FORKED:
    PROCESSES.set_forkserver_preload(["torch.distributed.tensor", "torch._dynamo", "krn.distributed", "krn.torch"])


def run(size: int, folder: pathlib.Path, script: tuple[str, ...] = ()) -> list[str]:
    """Runs some processes, and gives what each said."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    files = [folder / f"{rank}.txt" for rank in range(size)]
    processes = [
        PROCESSES.Process(target=sharded.one_of, args=(rank, size, port, file, script)) for rank, file in enumerate(files)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(600)
        process.kill()
        process.join()
    said = [file.read_text(encoding="utf-8") for file in files]
    assert all(process.exitcode == 0 for process in processes), "\n".join(said)
    return said


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_results_are_those_of_one_process(size: int, tmp_path: pathlib.Path) -> None:
    said = run(size, tmp_path)
    assert f"{size} processes on cpu: all results are one process' own" in said[0]


@pytest.mark.skipif(torch.cuda.is_available(), reason="bench/python.sh runs it on GPUs")
@pytest.mark.parametrize("size", [2, 4])
def test_the_script_that_measures_scaling_runs(size: int, tmp_path: pathlib.Path) -> None:
    figures = tmp_path / "scaling.json"
    run(size, tmp_path, (str(ROOT / "bench" / "python_scaling.py"), "--small", "--json", str(figures)))
    rows = json.loads(figures.read_text(encoding="utf-8"))
    assert len(rows) == 5 and all(row["gpus"] == size and row["gain"] > 0 and row["off"] < 1e-5 for row in rows)


def test_what_cannot_be_split_is_refused() -> None:
    from krn import distributed

    kernels = krn.compile(sharded.TEXT)
    assert {dim: rule.how for dim, rule in distributed.rules(kernels.attention).items()} == {
        "t": "parallel",
        "e": "parallel",
    }
    with pytest.raises(krn.ArgumentError, match="`cols` cannot be split among processes; what can: `rows`"):
        distributed.shard(kernels.softmax, None, "cols")  # type: ignore[arg-type]

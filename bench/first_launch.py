#!/usr/bin/env python3
"""What a first launch costs: Krn's (runtime/examples/first_launch.rs) with nothing in the driver's cache and from it, and
beside it Triton's of a softmax and a matrix product with its own cache empty and full.

    cargo build --release -p krn-runtime --example first_launch
    bench/first_launch.py target/release/examples/first_launch

Host milliseconds from the call to the end of the work, in a process that has a context and has run a kernel before. Needs a
GPU, PyTorch and Triton. Each side is a process of its own; all of it three times.
"""

import os
import subprocess
import sys
import tempfile
import time


def triton_rows():
    import torch
    import triton
    import triton.language as tl
    from triton_peers import matmul, softmax

    @triton.jit
    def nothing(x):
        tl.store(x, 0.0)

    x, y, z = (torch.zeros(4096, 4096, device="cuda") for _ in range(3))
    for name, call in {
        "context": lambda: nothing[(1,)](x),
        "softmax": lambda: softmax(x, y, 8),
        "matmul": lambda: matmul(x, y, z),
    }.items():
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        print(f"triton {name:12} {(time.perf_counter() - start) * 1e3:8.2f}")


def main():
    program = sys.argv[1]
    if program == "--triton":
        return triton_rows()
    with tempfile.TemporaryDirectory() as folder:
        for run in range(3):
            cold = {"CUDA_CACHE_DISABLE": "1", "TRITON_CACHE_DIR": os.path.join(folder, f"triton{run}")}
            warm = {"CUDA_CACHE_PATH": os.path.join(folder, "cuda"), "TRITON_CACHE_DIR": os.path.join(folder, "triton0")}
            for what, more in (("no cache", cold), ("filling", warm), ("cache", warm)):
                print(f"run {run + 1}, {what}", flush=True)
                for command in ([program], [sys.executable, __file__, "--triton"]):
                    subprocess.run(command, check=True, env={**os.environ, **more})
    return None


if __name__ == "__main__":
    main()

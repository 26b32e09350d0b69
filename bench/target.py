#!/usr/bin/env python3
"""Prints the row of the GPU at hand for the table of targets, `Multiprocessor::of` in compiler/src/analysis/multiprocessor.rs:

    bench/target.py

What the passes know of a target stands there and nowhere else. It is read through the driver's library, so nothing but a
driver is needed. The largest part of a capability gives the number of multiprocessors.
"""

import ctypes
import sys

# Numbers of `CUdevice_attribute` in the driver's header.
ATTRIBUTES = {
    "major": 75,
    "minor": 76,
    "count": 16,
    "threads": 39,
    "blocks": 106,
    "shared": 81,
    "reserved": 111,
    "of_block": 97,
    "registers": 82,
    "threads_of_block": 1,
    "warp": 10,
}
# The same for all targets, and constants in the compiler.
SAME = {"registers": 65536, "threads_of_block": 1024, "warp": 32}


def row(facts):
    """A row of the table, from the attributes."""
    sizes = (facts["shared"] >> 10, facts["reserved"], facts["of_block"] >> 10)
    numbers = ", ".join(str(number) for number in (facts["count"], facts["threads"], facts["blocks"], *sizes))
    return f"{10 * facts['major'] + facts['minor']} => ({numbers}),"


def attributes():
    driver = ctypes.CDLL("libcuda.so.1")
    device = ctypes.c_int()
    for error in (driver.cuInit(0), driver.cuDeviceGet(ctypes.byref(device), 0)):
        if error != 0:
            sys.exit(f"the driver says error {error}: is there a GPU?")
    facts = {}
    for name, number in ATTRIBUTES.items():
        value = ctypes.c_int()
        if driver.cuDeviceGetAttribute(ctypes.byref(value), number, device) != 0:
            sys.exit(f"the driver does not know attribute {number}, {name}")
        facts[name] = value.value
    return facts


def main():
    facts = attributes()
    print("// (count, threads, blocks, KiB of shared memory, bytes of it reserved a block, KiB that a block can have)")
    print(row(facts))
    for name, expected in SAME.items():
        if facts[name] != expected:
            print(f"{name}: {facts[name]}, where the compiler takes {expected} for granted", file=sys.stderr)


if __name__ == "__main__":
    main()

"""The tool `krn`, as `python -m krn` and as the command `krn`."""

from __future__ import annotations

import sys

from . import _krn


def main() -> None:
    sys.exit(_krn.tool(["krn", *sys.argv[1:]]))


if __name__ == "__main__":
    main()

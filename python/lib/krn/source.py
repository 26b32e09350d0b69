"""What a file says for people: the comment in front of each kernel."""

from __future__ import annotations

import re

_KERNEL = re.compile(r"^\s*kernel\s+([A-Za-z_]\w*)")


def docstrings(text: str) -> dict[str, str]:
    """By kernel: the lines of `//` right above it."""
    found: dict[str, str] = {}
    comment: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("//"):
            comment.append(stripped.lstrip("/").strip())
            continue
        kernel = _KERNEL.match(line)
        if kernel is not None and comment:
            found[kernel.group(1)] = "\n".join(comment).strip()
        comment = []
    return found


def signatures(text: str) -> dict[str, str]:
    """By kernel: its head as the file has it, on one line."""
    found: dict[str, str] = {}
    for match in re.finditer(r"^\s*(kernel\s+([A-Za-z_]\w*)[^{]*)\{", text, re.MULTILINE):
        found[match.group(2)] = " ".join(match.group(1).split())
    return found

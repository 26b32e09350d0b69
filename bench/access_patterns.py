"""Patterns of 32 addresses for access_patterns.cu: operation, name and byte offsets a line; -1 is a lane switched off.

usage: access_patterns.py > patterns.txt
"""
import random

LANES = range(32)


def shapes():
    """Element indices by name; None is a lane switched off."""
    yield "linear", [lane for lane in LANES]
    yield "uniform", [5 for _ in LANES]
    for step in (2, 3, 4, 8, 16, 32, 33):
        yield f"step{step}", [lane * step for lane in LANES]
    for mask in (1, 5, 16, 31):
        yield f"xor{mask}", [lane ^ mask for lane in LANES]
    for share in (2, 4, 8, 16):
        yield f"over{share}", [lane // share for lane in LANES]
        yield f"mod{share}", [lane % share for lane in LANES]
        yield f"far{share}", [lane // share * 32 for lane in LANES]
        yield f"pad{share}", [lane // share * 33 + lane % share for lane in LANES]
    for start in (1, 3, 7):
        yield f"from{start}", [lane + start for lane in LANES]
    yield "first", [0 if lane == 0 else None for lane in LANES]
    yield "ends", [lane if lane in (0, 31) else None for lane in LANES]
    for count in (4, 8, 12, 16, 24):
        yield f"lanes{count}", [lane if lane < count else None for lane in LANES]
    yield "odd", [lane if lane % 2 else None for lane in LANES]
    yield "even8", [lane * 8 if lane % 2 == 0 else None for lane in LANES]
    yield "quads", [lane if lane % 4 == 0 else None for lane in LANES]
    yield "last8", [lane if lane >= 24 else None for lane in LANES]
    dice = random.Random(1)
    for span in (4, 16, 64, 256):
        for turn in range(3):
            yield f"random{span}.{turn}", [dice.randrange(span) for _ in LANES]
    for turn in range(4):
        yield f"sparse{turn}", [dice.randrange(128) if dice.random() < 0.5 else None for _ in LANES]


OPERATIONS = {
    "lds1": 4, "lds2": 8, "lds4": 16, "sts1": 4, "sts2": 8, "sts4": 16, "lds8": 1, "lds16": 2,
    "ldg1": 4, "ldg2": 8, "ldg4": 16, "ldgnc4": 16, "stg1": 4, "stg2": 8, "stg4": 16, "ldg8": 1, "stg8": 1,
    "redg": 4, "redgf": 4, "atomg": 4, "reds": 4, "reds1": 4, "atoms": 4,
    "copyca1": 4, "copyca2": 8, "copyca4": 16, "copycg4": 16, "tocopyca1": 4, "tocopycg4": 16,
}
# Every shape where vectors and broadcasts meet banks; elsewhere some will do.
FULL = ("lds2", "lds4", "sts2", "sts4", "lds1", "atoms", "redg", "ldg4")

for operation, width in OPERATIONS.items():
    for number, (name, places) in enumerate(shapes()):
        if operation not in FULL and number % 4 != 0:
            continue
        offsets = [-1 if place is None else place * width for place in places]
        if max(offsets) + width <= 16384:
            print(operation, name, *offsets)

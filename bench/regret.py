#!/usr/bin/env python3
"""What the compiler's choices cost beside others: times of schedules of many kernels, for `tests/regret.rs`.

    bench/regret.py propose --krn KRN [--table FILE] [--bodies 64] [--seed 1] [--use fit|held]
    bench/regret.py time --krn KRN [--table FILE] [--only KERNEL ...] [--best 6]

`propose` draws kernels of `bench/breadth/` that are one launch, and for each of them up to 24 schedules that differ in what
becomes of them: threads of a block, vectors, elements and warps along each name, pieces, tiles. They join those that the table
has. What the `fit` ones say may be looked at when rules of the compiler are changed; the `held` ones are for the test alone. It
needs no GPU.

`time` measures all of them, with `krn bench --schedules`, and writes the table anew: a row a schedule, its median in
microseconds, what was asked for and what the compiler made of it. Schedules that are refused, or the same code as another one,
leave the table; with `--best` so many are measured that were the fastest, and the others stay. It says nothing of kernels that
are `held`. Needs a GPU, half a second a row.
"""

import argparse
import concurrent.futures
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAD = """\
# Times of schedules on {device}: `bench/regret.py` says how to write this anew, `tests/regret.rs` what it is for.
# file:kernel | sizes | parameters | fit, or held
#     microseconds | what was asked for | forms of the launches | directives
"""
MOST = 24


def kernel_text(text, kernel):
    """A kernel's source, from its word to the brace that ends it."""
    begin = re.search(rf"^kernel {kernel}\b", text, re.M).start()
    end = re.compile(r"^}", re.M).search(text, begin).end()
    return text[begin:end]


def names(text):
    """Names that loops may be over, and arrays; more than there are does no harm."""
    head, body = text.split("{", 1)
    arrays = re.findall(r"(\w+)\s*:\s*(?:inout\s+)?\w+\[", head)
    reduced = re.findall(r"\b(?:sum|max|min|product|any|all|argmax|argmin|count)\(\s*(\w+)(?:\s+in\b[^:]*)?\s*:", body)
    loops = re.findall(r"\bfor(?:all)?\s+(\w+)\s+in", body) + re.findall(r",\s*(\w+)\s+in\b", body)
    subscripts = re.findall(r"^\s*\w+(?:\.\w+)?\[([\w, ]+)\]\s*\+?=", body, re.M)
    written = [name.strip() for part in subscripts for name in part.split(",")]
    parallel = [name for name in dict.fromkeys(written + loops) if not name.isdigit() and name not in reduced]
    return parallel, list(dict.fromkeys(reduced)), arrays


def schedules(kernel, text):
    """Directives to try, in an order that is drawn but always the same."""
    parallel, reduced, arrays = names(text)
    single = [[f"block {threads}"] for threads in (64, 128, 256, 512, 1024)]
    for name in parallel:
        single += [[f"vectorize {name}: {width}"] for width in (1, 2, 4, 8)]
        single += [[f"per_thread {name}: {count}"] for count in (1, 2, 4, 8)]
    for name in reduced:
        single += [[f"warps {name}: {warps}"] for warps in (1, 2, 4, 8, 16)]
        single += [[f"unroll {name}: {times}"] for times in (1, 4, 8)]
        single += [[f"split {name}: {pieces}"] for pieces in (1, 8, 32)]
        single += [[f"vectorize {name}: {width}"] for width in (1, 2, 4)]
    for name in arrays:
        single += [[f"cache {name}: {mode}"] for mode in ("cs",)]
    several = [one + other for one, other in itertools.combinations(single, 2) if one[0].split(":")[0] != other[0].split(":")[0]]
    for one, other in itertools.permutations(parallel, 2):
        single.append([f"order {one}, {other}"])
        for sizes in itertools.product((8, 32, 64, 128), repeat=2):
            tile = f"tile {one}: {sizes[0]}, {other}: {sizes[1]}"
            several += [[tile], [tile, f"per_thread {one}: 4"], [tile, f"per_thread {one}: 4, {other}: 4"]]
    drawn = random.Random(kernel)
    drawn.shuffle(single)
    drawn.shuffle(several)
    # Two of the simple ones to one of the others.
    mixed = [part for row in itertools.zip_longest(single[::2], single[1::2], several[: len(single)]) for part in row if part]
    return ["; ".join(part) for part in mixed[:90]]


def block(kernel, schedule):
    lines = "\n".join(f"    {directive}" for directive in schedule.split("; "))
    return f"schedule {kernel} {{\n{lines}\n}}\n"


def explained(krn, file, kernel, dims, schedule):
    """What becomes of a schedule, `None` where it is refused."""
    text = (ROOT / file).read_text() + ("\n" + block(kernel, schedule) if schedule else "")
    with tempfile.NamedTemporaryFile("w", suffix=".krn") as changed:
        changed.write(text)
        changed.flush()
        sizes = ",".join(f"{name}={size}" for name, size in dims.items())
        command = [krn, "explain", changed.name, "--kernel", kernel] + (["--for", sizes] if sizes else [])
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            return None
    if run.returncode:
        return None
    lines = [line.split("//")[0].strip() if not line.startswith("//") else line for line in run.stdout.splitlines()]
    return "\n".join(line for line in lines if not line.startswith(("// made", "// relies", "// chosen", "// faster", "//   ")))


def propose(krn, bodies, seed, table, use):
    sys.path.insert(0, str(ROOT / "bench" / "breadth"))
    sys.path.append(str(ROOT / "bench"))
    from unseen23_workloads import WORKLOADS

    drawn = sorted(WORKLOADS, key=lambda workload: workload.name)
    random.Random(seed).shuffle(drawn)
    found, device = read(table)
    wanted = len(found) + bodies
    there = [head.split(" | ")[0] for head, _ in found]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for workload in drawn:
            file = f"bench/breadth/{workload.file}"
            if f"{file}:{workload.name}" in there:
                continue
            own = explained(krn, file, workload.name, workload.dims, None)
            forms = [line for line in (own or "").splitlines() if line.startswith("//")]
            if len(forms) != 1 or "," in forms[0].split(":")[0]:
                continue
            asked = schedules(workload.name, kernel_text((ROOT / file).read_text(), workload.name))
            became = pool.map(lambda schedule: explained(krn, file, workload.name, workload.dims, schedule), asked)
            rows, seen = [""], {own}
            for schedule, text in zip(asked, became):
                if text is not None and text not in seen and len(rows) <= MOST:
                    seen.add(text)
                    rows.append(schedule)
            if len(rows) < 12:
                continue
            sizes = ",".join(f"{name}={size}" for name, size in workload.dims.items())
            values = ",".join(f"{name}={value}" for name, value in workload.values.items())
            found.append((f"{file}:{workload.name} | {sizes} | {values or '-'} | {use}", [["?", row, "", ""] for row in rows]))
            print(f"{workload.name}: {len(rows)}", file=sys.stderr)
            if len(found) == wanted:
                break
    write(table, device, found)


def write(table, device, found):
    text = HEAD.format(device=device)
    for head, rows in found:
        lines = [f"    {' | '.join(part or '-' for part in row)}\n" for row in rows]
        text += "\n" + head + "\n" + "".join(lines)
    pathlib.Path(table).write_text(text)


def read(table):
    found, device = [], "no GPU yet"
    lines = pathlib.Path(table).read_text().splitlines() if pathlib.Path(table).exists() else []
    for line in lines:
        if named := re.match(r"# Times of schedules on (.*?): ", line):
            device = named[1]
        if line.startswith("    "):
            found[-1][1].append(["" if part.strip() == "-" else part.strip() for part in line.split(" | ")])
        elif line and not line.startswith("#"):
            found.append((line, []))
    return found, device


def again(krn, head, rows, best):
    """The rows with the compiler's own choice, and so many of the best ones, measured anew."""
    known = sorted((row for row in rows if row[1] and row[0] != "?"), key=lambda row: float(row[0]))
    device, new = measured(krn, head, [["?", "", "", ""], *known[:best]])
    choices = [row[2:] for row in new]
    return device, new + [row for row in known if row[2:] not in choices]


def measured(krn, head, rows):
    place, sizes, values, _ = ["" if part.strip() == "-" else part.strip() for part in head.split(" | ")]
    file, kernel = place.split(":")
    with tempfile.NamedTemporaryFile("w", suffix=".krn") as asked:
        asked.write("\n".join(block(kernel, row[1]) for row in rows if row[1]))
        asked.flush()
        command = [krn, "bench", str(ROOT / file), "--kernel", kernel, "--schedules", asked.name, "--runs", "9", "--json"]
        command += ["--warmup", "2"]
        for option, given in (("-D", sizes), ("--set", values)):
            command += [part for pair in given.split(",") if pair for part in (option, pair)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if run.returncode:
        raise ValueError(run.stderr[-300:])
    result = json.loads(run.stdout)
    timed = []
    for row in result["schedules"]:
        if row["median_s"] is not None and row["same_as"] is None:
            forms, _, directives = row["choice"].partition(" |")
            asked = "" if not timed else row["schedule"]
            timed.append([f"{row['median_s'] * 1e6:.1f}", asked, forms, directives.strip()])
    return result["device"], timed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["propose", "time"])
    parser.add_argument("--krn", required=True)
    parser.add_argument("--table", default=str(ROOT / "tests" / "regret.table"))
    parser.add_argument("--bodies", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--use", choices=["fit", "held"], default="fit")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--best", type=int)
    options = parser.parse_args()
    if options.what == "propose":
        return propose(options.krn, options.bodies, options.seed, options.table, options.use)
    found, device = read(options.table)
    for at, (head, rows) in enumerate(found):
        if options.only and head.split(" | ")[0].split(":")[1] not in options.only:
            continue
        try:
            wanted = (options.krn, head, rows)
            device, rows = again(*wanted, options.best) if options.best else measured(*wanted)
        except (ValueError, KeyError, subprocess.TimeoutExpired) as error:
            print(f"{head}: {error}", file=sys.stderr)
            continue
        found[at] = (head, rows)
        best = min(float(row[0]) for row in rows)
        if not head.endswith("| held"):
            print(f"{head}: {float(rows[0][0]):.1f}, best of {len(rows)} {best:.1f}, {best / float(rows[0][0]):.3f}", flush=True)
        write(options.table, device, found)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Times, on a GPU, the rows of the recognition table that a change touches: those whose PTX two tools write differently.

usage: changed.py --krn NEW --parent OLD [--table tests/recognition.costs] [--target sm_90] [--rounds 5] [--list]

The two tools measure each row in turn, OLD NEW NEW OLD …, so that what a GPU does as it warms up falls on both alike. Run it in the
repository's root: rows name files from there. --list says which rows differ and measures nothing. Ends with 1 where a row became slower by
more than 2 %, or could not be measured.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

SLOWER = 1.02


def rows(table, target):
    """(file, kernel, {name: number}) of each line that is for the target."""
    found = []
    for line in table.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, sizes = line.split(" | ")[:2]
        file, kernel = name.rsplit(":", 1)
        sizes, _, of = (" " + sizes).rpartition(" for ")
        if of == target:
            pairs = [pair.split(" = ") for pair in sizes.strip().split(", ") if pair]
            found.append((file, kernel, {name: int(number) for name, number in pairs}))
    return found


def entries(plan):
    """Names of the entries that a plan of a manifest launches, in order."""
    if isinstance(plan, list):
        return [entry for step in plan for entry in entries(step)]
    if isinstance(plan, dict):
        own = [plan["entry"]] if isinstance(plan.get("entry"), str) else []
        return own + [entry for key, step in plan.items() if key != "entry" for entry in entries(step)]
    return []


def code(ptx):
    """The text of each entry, without comments and without where its lines come from."""
    texts, name = {}, None
    for line in ptx.splitlines():
        line = line.split("//")[0].rstrip()
        start = re.search(r"\.entry\s+([\w$]+)", line)
        if start:
            name = start[1]
        if name and line.strip() and not line.strip().startswith(".loc"):
            texts[name] = texts.get(name, "") + line + "\n"
    return texts


def built(krn, file, target):
    """PTX and manifest that a tool writes of a file; None where it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        out = []
        for emit in ("ptx", "manifest"):
            path = pathlib.Path(folder) / emit
            command = [krn, "build", file, "--emit", emit, "--target", target, "-o", str(path)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{' '.join(command)}: {done.stderr.strip()}", file=sys.stderr)
                return None
            out.append(path.read_text())
    return out[0], json.loads(out[1])


def kernels(ptx, manifest):
    """All that each kernel launches, as one text: guards and plans of its variants, and the code of their entries."""
    texts = code(ptx)
    return {
        kernel["name"]: json.dumps([[variant["guard"], variant["plan"]] for variant in kernel["variants"]], sort_keys=True)
        + "".join(
            texts.get(entry, "")
            for entry in dict.fromkeys(entry for variant in kernel["variants"] for entry in entries(variant["plan"]))
        )
        for kernel in manifest["kernels"]
    }


def touched(found, old, new):
    """The rows whose kernels differ; `old` and `new` map a file to what `kernels` says, or to None."""
    def differs(file, kernel):
        one, other = old[file], new[file]
        return one is None or other is None or one.get(kernel) != other.get(kernel)

    return [row for row in found if differs(row[0], row[1])]


def contents(source, kernel, sizes):
    """The `in` directives above a kernel, with numbers for names, as `krn bench --in` takes them."""
    lines = source.splitlines()
    at = next(number for number, line in enumerate(lines) if re.match(rf"kernel {kernel}\b", line))
    above = []
    while at > 0 and (not lines[at - 1].strip() or lines[at - 1].startswith("//")):
        at -= 1
        above.append(lines[at])
    directives = [line.split("krn-test: in ", 1)[1] for line in above if "krn-test: in " in line]
    given = [entry.strip() for line in reversed(directives) for entry in line.split(";") if entry.strip()]
    number = lambda match: str(sizes.get(match[0], match[0]))
    return [re.sub(r"\b[a-z]\w*\b(?=\s*[,)])", number, entry) for entry in given]


def command(krn, row, manifest, source, target):
    """The call of `krn bench` for a row."""
    file, kernel, sizes = row
    symbols = next(known for known in manifest["kernels"] if known["name"] == kernel)["symbols"]
    is_dim = {symbol["name"]: "dim" in symbol["kind"] for symbol in symbols}
    words = [krn, "bench", file, "--kernel", kernel, "--target", target, "--device", "cuda", "--json"]
    for name, number in sizes.items():
        words += ["-D" if is_dim.get(name, False) else "--set", f"{name}={number}"]
    for entry in contents(source, kernel, sizes):
        words += ["--in", entry]
    return words


def measured(words):
    """The median in seconds; None where there is none."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{' '.join(words)}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(done.stdout)["median_s"]


def interleaved(measure, rounds):
    """Medians of what `measure` gives for 0 (old) and 1 (new), each taken `rounds` times; None where one fails."""
    times = ([], [])
    for turn in range(rounds):
        for which in ((0, 1) if turn % 2 == 0 else (1, 0)):
            time = measure(which)
            if time is None:
                return None
            times[which].append(time)
    return tuple(statistics.median(of) for of in times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--krn", required=True, help="the tool with the change")
    parser.add_argument("--parent", required=True, help="the tool without it")
    parser.add_argument("--table", default="tests/recognition.costs")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--list", action="store_true", help="say which rows differ, measure nothing")
    options = parser.parse_args()
    found = rows(pathlib.Path(options.table).read_text(), options.target)
    files = dict.fromkeys(file for file, _, _ in found)
    builds = [{file: built(krn, file, options.target) for file in files} for krn in (options.parent, options.krn)]
    texts = [{file: both and kernels(*both) for file, both in build.items()} for build in builds]
    differ = touched(found, *texts)
    print(f"{len(differ)} of {len(found)} rows differ")
    failed = False
    for row in differ:
        file, kernel, sizes = row
        name = f"{file}:{kernel} {', '.join(f'{size} = {number}' for size, number in sizes.items())}".strip()
        if options.list:
            print(name)
            continue
        if builds[0][file] is None or builds[1][file] is None:
            print(f"FAILED  {name}: one of the tools does not compile it")
            failed = True
            continue
        source = pathlib.Path(file).read_text()
        calls = [
            command(krn, row, build[file][1], source, options.target)
            for krn, build in zip((options.parent, options.krn), builds)
        ]
        times = interleaved(lambda which: measured(calls[which]), options.rounds)
        if times is None:
            print(f"FAILED  {name}")
            failed = True
            continue
        ratio = times[1] / times[0]
        word = "SLOWER" if ratio > SLOWER else "ok"
        failed |= ratio > SLOWER
        print(f"{word:<7} {ratio:6.3f}  {times[0] * 1e6:10.2f} us -> {times[1] * 1e6:10.2f} us  {name}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

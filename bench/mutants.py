#!/usr/bin/env python3
"""Broken PTX: what the emulator's sanitizer finds in it, beside what compute-sanitizer finds. And wrong versions of
lowering, passes and selection (`mutant!` in compiler/src), which the quick set of random kernels must notice.

usage: mutants.py passes               tries every wrong version, and counts those that were caught, a pass; fails where one was not
       mutants.py make KRN OUT       writes mutants of good PTX to OUT, and their list
       mutants.py emulator KRN OUT   runs each with `krn run --ptx FILE --sanitize`
       mutants.py device KRN OUT     runs each under the four tools of compute-sanitizer, on a GPU
       mutants.py table OUT          both, as CSV; fails where the emulator missed what a tool found

JOBS in the environment says how many run at a time (default: one a processor).
"""
import concurrent.futures
import csv
import json
import os
import pathlib
import re
import subprocess
import sys

# File, kernel, sizes: shared tiles, reductions over lanes and warps, copies in the background, atomics, plain guards.
CASES = [
    ("transpose", "transpose", ["m=70", "n=90"]),
    ("sum", "total", ["n=40000"]),
    ("sum", "row_sums", ["rows=9", "cols=3000"]),
    ("softmax", "softmax", ["rows=5", "cols=1500"]),
    ("layer_norm", "layer_norm", ["rows=5", "cols=1000"]),
    ("matmul", "matmul", ["m=70", "n=90", "k=40"]),
    ("histogram", "histogram", ["n=5000"]),
    ("stencil_2d", "stencil_2d", ["h=40", "w=70"]),
    ("saxpy", "saxpy", ["n=1001"]),
    ("gather_scatter", "gather", ["n=700", "m=500", "--in", "from=permutation"]),
]
TOOLS = ["memcheck", "racecheck", "initcheck", "synccheck"]
# At most so many mutants of one kind a kernel, taken from all over its code.
EACH = 2


def offset(line, more):
    """The line with the address of its memory access moved."""
    return re.sub(r"\[(%\w+)(?:\+(\d+))?\]", lambda m: f"[{m[1]}+{int(m[2] or 0) + more}]", line, count=1)


def mutate_mask(line):
    return re.sub(r"(?:0xffffffff|4294967295|-1);", "0x0000ffff;", line, flags=re.I)


# Name, lines that it applies to, what becomes of one (None: it is dropped).
KINDS = [
    ("barrier dropped", r"^\s*bar\.sync", lambda line: None),
    ("barrier for some threads", r"^\s*bar\.sync", lambda line: line.replace("bar.sync", "@%p bar.sync", 1)),
    ("wait for copies dropped", r"cp\.async\.wait_group", lambda line: None),
    ("half a mask", r"shfl\.sync", mutate_mask),
    ("guard dropped", r"^\s*@!?%p\d* bra\s+(?:end_if|else)", lambda line: None),
    ("global address + 4", r"^\s*(?:ld|st|red|atom)\.global", lambda line: offset(line, 4)),
    ("global address + 1 MiB", r"^\s*(?:ld|st|red|atom)\.global", lambda line: offset(line, 1 << 20)),
    ("global address + 1", r"^\s*(?:ld|st|red|atom)\.global\S*[fsbu](?:32|64)", lambda line: offset(line, 1)),
    ("shared address + 4", r"^\s*(?:ld|st|red|atom)\.shared", lambda line: offset(line, 4)),
    ("shared address + 64 KiB", r"^\s*(?:ld|st|red|atom)\.shared", lambda line: offset(line, 65536)),
    ("shared store dropped", r"^\s*st\.shared", lambda line: None),
    ("copy dropped", r"^\s*(?:@!?%p\d* )?cp\.async\.c[ag]", lambda line: None),
]


def arguments(case):
    file, kernel, sizes = case
    return [f"examples/{file}.krn", "--kernel", kernel, "-D", *sizes]


def spread(items, count):
    if len(items) <= count:
        return items
    return [items[at * (len(items) - 1) // (count - 1)] for at in range(count)]


def make(krn, out):
    listed = []
    for case in CASES:
        file, kernel, _ = case
        ptx = subprocess.run([krn, "build", f"examples/{file}.krn"], capture_output=True, text=True, check=True).stdout
        profile = subprocess.run([krn, "profile", *arguments(case), "--device", "emulator", "--json"],
                                 capture_output=True, text=True, check=True).stdout
        launched = {launch["entry"] for launch in json.loads(profile)["launches"]}
        lines = ptx.splitlines(keepends=True)
        entry, inside, predicates = None, [], set()
        for at, line in enumerate(lines):
            if found := re.match(r"\.visible \.entry (\w+)\(", line):
                entry = found[1]
            if entry in launched:
                inside.append(at)
        for name, pattern, change in KINDS:
            places = [at for at in inside if re.search(pattern, lines[at]) and change(lines[at]) != lines[at]]
            for number, at in enumerate(spread(places, EACH)):
                changed = change(lines[at])
                text = lines[:at] + ([changed] if changed else []) + lines[at + 1:]
                path = out / f"{kernel}-{name.replace(' ', '_').replace('+', 'plus')}-{number}.ptx"
                path.write_text("".join(text))
                listed.append({"case": case, "kind": name, "line": at + 1, "text": lines[at].strip(), "ptx": path.name})
    (out / "mutants.json").write_text(json.dumps(listed, indent=1))
    print(f"{len(listed)} mutants of {len(CASES)} kernels")


def everywhere(out, work):
    listed = json.loads((out / "mutants.json").read_text())
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count()))) as pool:
        return list(pool.map(work, listed))


def command(krn, out, mutant):
    return [krn, "run", *arguments(mutant["case"]), "--ptx", str(out / mutant["ptx"])]


def run(arguments, limit):
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=limit)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return 124, "it ran past the limit of time"


def emulator(krn, out):
    def work(mutant):
        code, text = run([*command(krn, out, mutant), "--device", "emulator", "--sanitize"], 120)
        said = next((line for line in text.splitlines() if line.startswith("error")), "")
        return {"code": code, "said": said.removeprefix("error: ")}
    (out / "emulator.json").write_text(json.dumps(everywhere(out, work), indent=1))


def device(krn, out):
    def work(mutant):
        found = {}
        for tool in TOOLS:
            code, text = run(["compute-sanitizer", "--tool", tool, "--error-exitcode", "99",
                              *command(krn, out, mutant), "--device", "cuda:0", "--no-check"], 60)
            errors = [line.split("=========", 1)[1].strip() for line in text.splitlines()
                      if re.match(r"=+ (?:Error|Invalid|Uninit|Barrier|Divergent|Race|.*hazard|Program hit)", line)]
            found[tool] = {"code": code, "said": errors[0] if errors else ""}
        return found
    (out / "device.json").write_text(json.dumps(everywhere(out, work), indent=1))


# What the emulator's messages say, and what the table calls it.
FOUND = {
    "race:": "race",
    "uninitialised": "uninitialised read",
    "out-of-bounds": "out of bounds",
    "misaligned": "misaligned",
    "barrier": "barrier",
    "mask": "mask",
}


def kind_of(result):
    """What the emulator found, in a word or two."""
    code, said = result["code"], result["said"]
    if code == 0:
        return ""
    for word, kind in FOUND.items():
        if word in said:
            return kind
    return "wrong result" if code == 3 else said[:60] or f"exit code {code}"


def table(out):
    listed, on_emulator, on_device = (json.loads((out / f"{name}.json").read_text())
                                      for name in ("mutants", "emulator", "device"))
    missed, totals = [], {"emulator": 0, "results": 0, **{tool: 0 for tool in TOOLS}}
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(["kernel", "what was broken", "line of PTX", "emulator", *TOOLS])
    for mutant, here, there in zip(listed, on_emulator, on_device):
        found = [tool for tool in TOOLS if there[tool]["code"] == 99]
        emulator_says = kind_of(here)
        totals["emulator"] += here["code"] not in (0, 3)
        totals["results"] += here["code"] == 3
        for tool in found:
            totals[tool] += 1
        if found and here["code"] == 0:
            missed.append(mutant["ptx"])
        cells = [there[tool]["said"][:48] or "yes" if tool in found else "" for tool in TOOLS]
        rows.writerow([mutant["case"][1], mutant["kind"], " ".join(mutant["text"].split()), emulator_says, *cells])
    print(f"{len(listed)} mutants. Found: emulator {totals['emulator']}, and {totals['results']} more by their wrong results; "
          + ", ".join(f"{tool} {totals[tool]}" for tool in TOOLS) + ".", file=sys.stderr)
    if missed:
        print("Missed by the emulator:", ", ".join(missed), file=sys.stderr)
        sys.exit(1)


def counted(text):
    """What the tests say of the wrong versions of each pass: how many there are, how many were caught, and which were not."""
    passes, missed = {}, []
    for line in text.splitlines():
        if found := re.match(r"(caught|missed) \| (\w+): (.*?) \|", line):
            said, name, _ = found.groups()
            row = passes.setdefault(name, [0, 0])
            row[0] += 1
            row[1] += said == "caught"
            if said == "missed":
                missed.append(f"{name}: {found[3]}")
    return passes, missed


def passes():
    done = subprocess.run(["cargo", "test", "-p", "krn-compiler", "--lib", "every_mutant_is_caught", "--", "--nocapture"],
                          stdout=subprocess.PIPE, text=True)
    found, missed = counted(done.stdout)
    print("| pass | wrong versions | caught |\n|---|---|---|")
    for name, (tried, caught) in sorted(found.items()):
        print(f"| {name} | {tried} | {caught} |")
    print(f"| all | {sum(row[0] for row in found.values())} | {sum(row[1] for row in found.values())} |")
    if missed:
        print("Missed:", "; ".join(missed))
    sys.exit(done.returncode)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["passes"]:
            passes()
        case ["make", krn, out]:
            pathlib.Path(out).mkdir(parents=True, exist_ok=True)
            make(os.path.abspath(krn), pathlib.Path(out))
        case ["emulator", krn, out]:
            emulator(os.path.abspath(krn), pathlib.Path(out))
        case ["device", krn, out]:
            device(os.path.abspath(krn), pathlib.Path(out))
        case ["table", out]:
            table(pathlib.Path(out))
        case _:
            sys.exit(__doc__)

#!/usr/bin/env python3
"""The launches of counters.txt, and what the hardware counted for them beside what the emulator counts.

usage: counters.py launches              one launch a line, as arguments of `krn run`
       counters.py table KRN OUT         as CSV: the readings that counters.sh left in OUT beside
                                         `KRN profile --json`; OUT2 … may follow, whose readings are added
       counters.py l2 KRN OUT            sectors that L1 reads from L2, and what the model of L1 says, where the two are more
                                         than 5 % apart
"""
import collections
import csv
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LSU = "l1tex__{}_pipe_lsu_mem_{}.sum"
# Title, metrics of the hardware that add up to it, and where the profile has it; what LDGSTS (cp.async) reads, the
# hardware counts among the loads.
COUNTERS = [
    ("load requests", [LSU.format("t_requests", "global_op_ld")], [("global_loads", "requests"), ("copies", "requests")]),
    ("load sectors", [LSU.format("t_sectors", "global_op_ld")], [("global_loads", "sectors"), ("copies", "sectors")]),
    ("store requests", [LSU.format("t_requests", "global_op_st")], [("global_stores", "requests")]),
    ("store sectors", [LSU.format("t_sectors", "global_op_st")], [("global_stores", "sectors")]),
    ("atomic requests", [LSU.format("t_requests", "global_op_red"), LSU.format("t_requests", "global_op_atom")],
     [("global_atomics", "requests")]),
    ("atomic sectors", [LSU.format("t_sectors", "global_op_red"), LSU.format("t_sectors", "global_op_atom")],
     [("global_atomics", "sectors")]),
    ("local requests", [LSU.format("t_requests", "local_op_ld"), LSU.format("t_requests", "local_op_st")],
     [("local_loads", "requests"), ("local_stores", "requests")]),
    ("shared load wavefronts", ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"], [("shared_loads", "wavefronts")]),
    ("shared store wavefronts", ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"], [("shared_stores", "wavefronts")]),
    ("shared atomic wavefronts", ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"], [("shared_atomics", "wavefronts")]),
]
# The hardware's arbitration adds to these: as many as one in a hundred, or some few.
NOISY = ("shared load wavefronts", "shared store wavefronts", "shared atomic wavefronts")


def launches():
    for line in (HERE / "counters.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        what, shared, *sizes = [part.strip() for part in line.split("|")]
        file, kernel = what.split()
        for size in sizes:
            yield f"examples/{file}.krn --kernel {kernel} {shared} {size}".split()


def number(text):
    return int(float(text.replace(",", ""))) if text else 0


def readings(folder):
    """By launch of a kernel: its entries in order, each with its counters."""
    text = (folder / "counters.csv").read_text()
    rows = [row for row in csv.reader(text.splitlines()) if len(row) > 20]
    head, rows = rows[0], rows[2:]
    command = dict(line.split(" ", 1) for line in (folder / "processes.txt").read_text().splitlines())
    found = collections.defaultdict(list)
    for row in rows:
        row = dict(zip(head, row))
        found[" ".join(command[row["Process ID"]].split())].append(row)
    return found


def triple(text):
    return [int(part) for part in text.strip("()").split(",")]


def compare(name, hardware, emulator):
    if name not in NOISY:
        return "exact" if hardware == emulator else "differs"
    if hardware == emulator:
        return "exact"
    return "noise" if 0 < hardware - emulator <= max(emulator / 100, 300) else "differs"


def table(krn, folders):
    found = {}
    for folder in folders:
        found.update(readings(pathlib.Path(folder)))
    device = next(iter(found.values()))[0].get("device__attribute_display_name", "a GPU")
    print(f"Read on {device}; {len(found)} of {len(list(launches()))} runs.", file=sys.stderr)
    titles = [title for title, *_ in COUNTERS]
    rows_out = csv.writer(sys.stdout, lineterminator="\n")
    rows_out.writerow(["kernel and sizes", "launch", *titles])
    tally = collections.Counter()
    for launch in launches():
        rows = found.get(" ".join(launch))
        if rows is None:
            continue
        profile = json.loads(subprocess.run([krn, "profile", *launch, "--json"], stdout=subprocess.PIPE, check=True).stdout)
        title = " ".join(launch).replace("examples/", "").replace(".krn --kernel", "").replace("-D ", "").replace("--set ", "")
        shapes = [(row["Kernel Name"], triple(row["Grid Size"]), triple(row["Block Size"])) for row in rows]
        counted = [(each["entry"], each["grid"], each["block"]) for each in profile["launches"]]
        if shapes != counted:
            rows_out.writerow([title, f"other launches: {shapes} and {counted}", *[""] * len(titles)])
            tally["other launches"] += 1
            continue
        for row, each in zip(rows, profile["launches"]):
            cells = []
            for name, metrics, places in COUNTERS:
                hardware = sum(number(row.get(metric, "")) for metric in metrics)
                emulator = sum(each.get(sort, {}).get(field, 0) for sort, field in places)
                if hardware == emulator == 0:
                    cells.append("")
                    continue
                verdict = compare(name, hardware, emulator)
                tally[f"{name}: {verdict}"] += 1
                if verdict == "exact":
                    cells.append(emulator)
                else:
                    cells.append(f"hardware {hardware} emulator {emulator}")
            rows_out.writerow([title, each["entry"], *cells])
    for what, count in sorted(tally.items()):
        print(f"{what}: {count}", file=sys.stderr)


def from_l2(krn, folder):
    found = readings(pathlib.Path(folder))
    compared, exact, near = 0, 0, 0
    for launch in launches():
        rows = found.get(" ".join(launch), [])
        if not rows:
            continue
        profile = json.loads(subprocess.run([krn, "profile", *launch, "--json"], stdout=subprocess.PIPE, check=True).stdout)
        if [row["Kernel Name"] for row in rows] != [each["entry"] for each in profile["launches"]]:
            continue
        for row, each in zip(rows, profile["launches"]):
            total = lambda field: sum(each.get(sort, {}).get(field, 0) for sort in ("global_loads", "copies"))
            hardware = number(row.get("l1tex__m_xbar2l1tex_read_sectors_mem_lg_op_ld.sum", ""))
            if hardware == 0 or total("sectors") != number(row.get(LSU.format("t_sectors", "global_op_ld"), "")):
                continue
            apart = abs(total("l2_sectors") / hardware - 1)
            compared, exact, near = compared + 1, exact + (apart <= 0.001), near + (apart <= 0.05)
            if apart > 0.05:
                print(f"{' '.join(launch)}, {each['entry']}: h {hardware:,} e {total('l2_sectors'):,}")
    print(f"{compared} launches: {exact} within 0.1 %, {near} within 5 %")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["launches"]:
            for launch in launches():
                print(*launch)
        case ["table", krn, *folders] if folders:
            table(krn, folders)
        case ["l2", krn, folder]:
            from_l2(krn, folder)
        case _:
            sys.exit(__doc__)

#!/usr/bin/env python3
"""Makes a Markdown table of what compare.py measured: python3 bench/table.py OUT/results.json > table.md"""

import json
import sys

import workloads


def best(peers, names=()):
    """The fastest peer, of these names if there are any."""
    known = [peer for peer in peers if "rate" in peer and (not names or peer["peer"] in names)]
    return max(known, key=lambda peer: peer["rate"], default=None)


def floor_of(workload, floors):
    """The rate that the machine was measured to allow: the better of the readings before and after."""
    key = "ffma_tflop_per_s" if workload.flops else "copy_gb_per_s"
    return max((reading[key] for reading in floors if key in reading), default=None)


def number(value, unit):
    return f"{value:.1f}" if unit == "TFLOP/s" else f"{value:.0f}"


def aim_text(workload):
    aim = workload.aim
    if aim.rate is not None:
        return f"≥ {number(aim.rate, workload.unit)} {workload.unit}"
    return f"≥ {aim.factor:.2f} × {' or '.join(aim.peers) or 'the best'}"


def met(workload, rate, peers):
    if workload.aim.rate is not None:
        return "yes" if rate >= workload.aim.rate else "no"
    peer = best(peers, workload.aim.peers)
    if peer is None:
        return "no peer"
    return "yes" if rate >= workload.aim.factor * peer["rate"] else "no"


def row_of(row, floors):
    """The cells of one row."""
    workload = workloads.BY_NAME[row["workload"]]
    entry, peers, unit = row["krn"], row["peers"], workload.unit
    peer = best(peers)
    peer_text = f"{peer['peer']} {number(peer['rate'], unit)}" if peer else "none"
    if "error" in entry:
        return [workload.title, "**failed**", peer_text, "", "", aim_text(workload), "no"]
    if entry["median_s"] is None:
        count = f"no time; {entry['lane_instructions']:,} lane instructions"
        return [workload.title, count, peer_text, "", "", aim_text(workload), ""]
    rate = workload.rate(entry["median_s"])
    ratio = f"{rate / peer['rate']:.3f}" if peer else ""
    floor = floor_of(workload, floors)
    share = f"{100 * rate / floor:.0f}%" if floor else ""
    warm = "" if entry["cold"] else " (warm)"
    krn = f"{number(rate, unit)} {unit}{warm}"
    return [workload.title, krn, peer_text, ratio, share, aim_text(workload), met(workload, rate, peers)]


def notes(results):
    """What went wrong, and what was not there."""
    lines = []
    if not results["correct"]["ok"]:
        lines.append(f"**`krn test` on this device failed**: {results['correct']['says']}")
    for row in results["rows"]:
        name = row["workload"]
        if "error" in row["krn"]:
            lines.append(f"{name}: Krn failed: {row['krn']['error']}")
        if row.get("peers_failed"):
            lines.append(f"{name}: no peers: {row['peers_failed']}")
        for peer in row["peers"]:
            if "missing" in peer:
                lines.append(f"{name}: {peer['peer']} is missing: {peer['missing']}")
            elif "error" in peer:
                lines.append(f"{name}: {peer['peer']} failed: {peer['error']}")
        passes = row["krn"].get("passes_s") or []
        if len(passes) == 2 and None not in passes and max(passes) > 1.03 * min(passes):
            lines.append(f"{name}: Krn's two passes differ by {100 * (max(passes) / min(passes) - 1):.0f}%")
    return [" ".join(line.split())[:600] for line in lines]


def floor_text(floors):
    lines = []
    for when, reading in zip(("before", "after"), floors):
        if "copy_gb_per_s" not in reading:
            lines.append(f"Floor {when}: not measured: {reading.get('error') or reading.get('missing')}.")
            continue
        text = f"Floor {when}: copy {reading['copy_gb_per_s']:.0f} GB/s"
        if "ffma_tflop_per_s" in reading:
            text += (
                f"; 128 lanes × 2 × {reading['multiprocessors']} multiprocessors × {reading['clock_hz'] / 1e9:.3f} GHz = "
                f"{reading['ffma_tflop_per_s']:.1f} TFLOP/s ({reading['ffma_reached_tflop_per_s']:.1f} reached by a "
                "kernel of nothing but multiply-adds)"
            )
        elif "ffma_error" in reading:
            text += f"; multiply-adds not measured: {reading['ffma_error']}"
        lines.append(" ".join(text.split()) + ".")
    return lines


def render(results):
    header = ["workload", "Krn", "best peer", "ratio", "share of floor", "aim", "met"]
    rows = [row_of(row, results["floors"]) for row in results["rows"]]
    lines = ["# Krn beside its peers", "", f"Machine: {results['machine']}. Made by `bench/run.sh`.", ""]
    emulated = results["device"] == "emulator"
    if emulated:
        lines += ["Nothing was timed: instructions counted by the emulator, at small sizes, not those of the titles.", ""]
    if results["quick"]:
        lines += ["A quick run: one pass of few measurements.", ""]
    lines += ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    clean = lambda cell: " ".join(str(cell).split()).replace("|", "/")
    lines += ["| " + " | ".join(clean(cell) for cell in cells) + " |" for cells in rows]
    lines.append("")
    if not emulated:
        reached = sum(cells[-1] == "yes" for cells in rows)
        lines += [f"{reached} of {len(rows)} aims met.", "", *floor_text(results["floors"]), ""]
    if any(row["peers"] for row in results["rows"]):
        lines += peer_table(results["rows"])
    found = notes(results)
    if found:
        lines += ["## Notes", "", *(f"- {note}" for note in found), ""]
    return "\n".join(lines)


def peer_table(rows):
    lines = ["## All peers", "", "| workload | peer | rate | median | least | measurements |", "|---|---|---|---|---|---|"]
    for row in rows:
        title = workloads.BY_NAME[row["workload"]].title
        for peer in sorted((p for p in row["peers"] if "rate" in p), key=lambda p: -p["rate"]):
            rate = f"{number(peer['rate'], peer['unit'])} {peer['unit']}"
            times = f"{peer['median_s'] * 1e3:.4f} ms | {peer['min_s'] * 1e3:.4f} ms"
            lines.append(f"| {title} | {peer['peer']} | {rate} | {times} | {peer['runs']} |")
    return [*lines, ""]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    with open(sys.argv[1]) as file:
        sys.stdout.write(render(json.load(file)))

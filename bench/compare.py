#!/usr/bin/env python3
"""Times Krn beside its peers, workload by workload, and writes OUT/results.json; table.py makes the table of it.

Krn runs in processes of its own, before and after the peers of the same workload, so that both meet the same machine.
Whatever fails is recorded and the rest goes on.
"""

import argparse
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import time

import workloads

HERE = os.path.dirname(os.path.abspath(__file__))
# Seconds after which a process is given up.
KRN_LIMIT = 90
PEERS_LIMIT = 150


def log(*words):
    print(f"[{time.monotonic() - START:6.1f} s]", *words, file=sys.stderr, flush=True)


START = time.monotonic()


def krn(options, workload):
    """What `krn bench --json` says, or {"error": …}."""
    command = [options.krn, "bench", os.path.join(HERE, "workloads.krn"), "--kernel", workload.kernel, "--json"]
    command += ["--device", options.device]
    # The emulator chooses sizes of its own: these would take it days.
    if options.device != "emulator":
        command += [word for name, size in workload.dims.items() for word in ("-D", f"{name}={size}")]
        command += ["--bytes", str(workload.bytes)]
        command += ["--flops", str(workload.flops)] if workload.flops else []
    command += [word for name, value in workload.set.items() for word in ("--set", f"{name}={value}")]
    command += [word for name, what in workload.inputs.items() for word in ("--in", f"{name}={what}")]
    command += ["--runs", "10"] if options.quick else []
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=KRN_LIMIT)
    except subprocess.TimeoutExpired:
        return {"error": f"no end after {KRN_LIMIT} s"}
    except OSError as error:
        return {"error": f"cannot run {options.krn}: {error}"}
    if done.returncode != 0:
        return {"error": f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-2000:]}"}
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"error": f"no JSON: {done.stdout[:500]}"}


def pooled(passes):
    """One entry for Krn from its passes: the median over all their measurements."""
    failed = [found["error"] for found in passes if "error" in found]
    if failed:
        return {"error": failed[0]}
    runs = [seconds for found in passes for seconds in found["runs_s"]]
    entry = {**passes[0], "passes_s": [found["median_s"] for found in passes]}
    if runs:
        entry.update(runs_s=runs, median_s=statistics.median(runs), min_s=min(runs))
    return entry


class Peers:
    """The process that times the peers; started again where it dies."""

    def __init__(self, quick):
        self.quick = quick
        self.process = None
        self.code = None

    def ask(self, what):
        """The answer to one request, or {"error": …}."""
        if self.process is None:
            command = [sys.executable, os.path.join(HERE, "peers.py"), "--serve"]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            print(json.dumps({"what": what, "quick": self.quick}), file=self.process.stdin, flush=True)
            ready, _, _ = select.select([self.process.stdout], [], [], PEERS_LIMIT)
            line = self.process.stdout.readline() if ready else None
        except OSError as error:
            line = str(error)
        if line:
            try:
                return json.loads(line)
            except ValueError:
                pass
        self.stop()
        reason = f"gave no answer within {PEERS_LIMIT} s" if line is None else f"died (exit code {self.code})"
        return {"error": f"the peers' process {reason}"}

    def stop(self):
        if self.process is None:
            return
        try:
            self.process.stdin.close()
        except OSError:
            pass  # It has ended already.
        try:
            self.code = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.code = self.process.wait()
        self.process = None


def machine():
    """What there is to say of the GPU."""
    query = shutil.which("nvidia-smi")
    if query is None:
        return "no nvidia-smi"
    fields = "name,driver_version,clocks.max.sm,clocks.max.mem,power.limit"
    done = subprocess.run([query, f"--query-gpu={fields}", "--format=csv,noheader"], capture_output=True, text=True)
    return done.stdout.strip() or done.stderr.strip()


def correct(options):
    """Whether every kernel agrees with the reference evaluator on this device; the last line that says so."""
    command = [options.krn, "test", os.path.join(HERE, "workloads.krn"), "--device", options.device]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=KRN_LIMIT)
    except (subprocess.TimeoutExpired, OSError) as error:
        return {"ok": False, "says": str(error)}
    text = (done.stdout + done.stderr).strip()
    return {"ok": done.returncode == 0, "says": text.splitlines()[-1] if done.returncode == 0 and text else text[-3000:]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("krn", help="the built tool")
    parser.add_argument("out", help="a folder for results.json")
    parser.add_argument("--only", help="workloads, comma-separated; a prefix selects several")
    parser.add_argument("--quick", action="store_true", help="one pass of 10 measurements, no torch.compile")
    parser.add_argument("--device", default="cuda:0", help="cuda:N, or emulator (instruction counts, no time, no peers)")
    parser.add_argument("--no-peers", action="store_true", help="time Krn alone")
    options = parser.parse_args()
    options.krn = os.path.abspath(options.krn)
    chosen = workloads.select(options.only)
    os.makedirs(options.out, exist_ok=True)
    alone = options.no_peers or options.device == "emulator"
    peers = Peers(options.quick)
    results = {"machine": machine(), "device": options.device, "quick": options.quick, "rows": []}
    log("machine:", results["machine"])
    results["correct"] = correct(options)
    log("krn test:", results["correct"]["says"])
    floors = [] if alone else [peers.ask("floor")]
    log("floor:", floors)
    for workload in chosen:
        passes = [krn(options, workload)]
        answer = {} if alone else peers.ask(workload.name)
        if not options.quick and "error" not in passes[0] and options.device != "emulator":
            passes.append(krn(options, workload))
        row = {"workload": workload.name, "krn": pooled(passes), "peers": answer.get("peers", [])}
        row["peers_failed"] = answer.get("error") or answer.get("missing")
        results["rows"].append(row)
        describe(workload, row)
        save(options, results, floors)
    if not alone:
        floors.append(peers.ask("floor"))
        log("floor:", floors[-1])
    save(options, results, floors)
    peers.stop()
    failed = [row["workload"] for row in results["rows"] if "error" in row["krn"]]
    if failed or not results["correct"]["ok"]:
        log("FAILED:", ", ".join(failed) or "krn test")
        sys.exit(1)


def describe(workload, row):
    """One line a result, while it runs."""
    entry = row["krn"]
    if "error" in entry:
        log(f"{workload.name}: Krn FAILED: {entry['error']}")
    elif entry["median_s"] is None:
        log(f"{workload.name}: {entry['lane_instructions']} lane instructions (no time)")
    else:
        log(f"{workload.name}: Krn {workload.rate(entry['median_s']):.1f} {workload.unit}; {entry['caches']}")
    for peer in row["peers"]:
        says = f"{peer['rate']:.1f} {peer['unit']}" if "rate" in peer else peer.get("missing") or peer.get("error")
        log(f"    {peer['peer']}: {says}")
    if row["peers_failed"]:
        log(f"    no peers: {row['peers_failed']}")


def save(options, results, floors):
    """After every row: what is there stays there."""
    path = os.path.join(options.out, "results.json")
    with open(path + ".part", "w") as file:
        json.dump({**results, "floors": floors}, file, indent=1)
    os.replace(path + ".part", path)


if __name__ == "__main__":
    main()

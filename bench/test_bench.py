"""Tests of the benchmark scripts that need no GPU: python3 -m unittest discover bench"""

import math
import re
import tempfile
import unittest

import changed
import mutants
import rates
import regret
import sizes
import table
import timing
import workloads


class FakeEvents:
    """A device on which each call takes as long as it says."""

    def __init__(self, seconds):
        self.seconds, self.calls = seconds, 0

    def time_each(self, runs, work):
        times = []
        for _ in range(runs):
            before = self.calls
            work()
            times.append((self.calls - before) * self.seconds)
        return times


class Sizes(unittest.TestCase):
    def test_sizes_are_the_same_for_a_seed_and_within_bounds(self):
        drawn = [sizes.sizes_for(sizes.random.Random(seed), ["m", "n"]) for seed in (1, 1, 2)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        numbers = [int(text.split("=")[1]) for row in drawn for text in row]
        self.assertTrue(all(4 <= number <= 2**14 for number in numbers), numbers)

    def test_the_mean_is_geometric(self):
        self.assertAlmostEqual(timing.geometric_mean([2, 8]), 4)
        self.assertAlmostEqual(timing.geometric_mean([2, float("nan"), 8]), 4)
        self.assertTrue(math.isnan(timing.geometric_mean([])))


class Timing(unittest.TestCase):
    def measure(self, seconds, calls=1):
        events = FakeEvents(seconds)
        turns = []

        def call(which):
            events.calls += 1
            turns.append(which)

        runs = timing.measure(events, [lambda which=which: call(which) for which in range(calls)])
        return runs, turns

    def test_short_calls_are_measured_in_batches(self):
        runs, turns = self.measure(2e-6)
        self.assertEqual(len(runs), 50)
        self.assertAlmostEqual(runs[0], 2e-6)
        self.assertGreaterEqual(len(turns), 20_000 + 50 * 100)

    def test_long_calls_are_few_and_sets_take_turns(self):
        runs, turns = self.measure(0.5, calls=3)
        self.assertEqual(len(runs), 5)
        self.assertEqual(turns[:4], [1, 2, 0, 1])

    def test_sets_are_more_than_twice_the_cache(self):
        for size in (1 << 20, 48 << 20, 100 << 20, 3 << 30):
            count = timing.sets_wanted(size, 50 << 20)
            self.assertGreater(count * size, 100 << 20)
        self.assertEqual(timing.sets_wanted(3 << 30, 50 << 20), 1)

    def test_quantiles(self):
        found = timing.quantiles([float(n) for n in range(10, 0, -1)])
        self.assertEqual((found["median_s"], found["min_s"], found["p90_s"]), (5.5, 1.0, 9.0))


def timed(name, rate, **more):
    """Krn's entry at that rate."""
    workload = workloads.BY_NAME[name]
    seconds = workload.flops / rate / 1e12 if workload.flops else workload.bytes / rate / 1e9
    return {"median_s": seconds, "cold": True, "lane_instructions": None, **more}


def peer(name, rate, unit="GB/s"):
    return {"peer": name, "rate": rate, "unit": unit, "median_s": 1e-3, "min_s": 1e-3, "runs": 50}


class Table(unittest.TestCase):
    FLOORS = [
        {"copy_gb_per_s": 4200.0, "ffma_tflop_per_s": 60.0, "ffma_reached_tflop_per_s": 59.0, "clock_hz": 1.8e9,
         "multiprocessors": 132},
        {"error": "the peers' process died"},
    ]

    def render(self, *rows, correct=True, device="cuda:0"):
        return table.render({
            "machine": "a GPU", "device": device, "quick": False, "correct": {"ok": correct, "says": "1 failed"}, "floors": self.FLOORS,
            "rows": [{"peers_failed": None, "peers": [], **row} for row in rows],
        })

    def line(self, text, title):
        return next(line for line in text.splitlines() if line.startswith(f"| {title}"))

    def test_rows_have_ratio_share_and_verdict(self):
        text = self.render(
            {"workload": "add", "krn": timed("add", 4100), "peers": [peer("ATen", 4000.0), peer("nvcc", 4200.0)]},
            {"workload": "transpose", "krn": timed("transpose", 2100), "peers": [peer("Triton", 4200.0)]},
            {"workload": "n_body", "krn": timed("n_body", 45), "peers": [peer("nvcc", 30.0, "TFLOP/s")]},
        )
        self.assertEqual(
            self.line(text, "add"), "| add, f32, 2^28 | 4100 GB/s | nvcc 4200 | 0.976 | 98% | ≥ 1.00 × ATen | yes |"
        )
        self.assertIn("| 2100 GB/s | Triton 4200 | 0.500 | 50% | ≥ 4150 GB/s | no |", text)
        self.assertIn("| 45.0 TFLOP/s | nvcc 30.0 | 1.500 | 75% | ≥ 44.0 TFLOP/s | yes |", text)
        self.assertIn("2 of 3 aims met", text)
        self.assertIn("Floor after: not measured: the peers' process died.", text)

    def test_what_failed_or_is_missing_is_said(self):
        text = self.render(
            {"workload": "copy", "krn": {"error": "exit code 4:\nboom | bang"}, "peers": [{"peer": "ATen", "missing": "torch"}]},
            {"workload": "matmul_2048", "krn": timed("matmul_2048", 50, passes_s=[1.0, 1.1]), "peers_failed": "no torch"},
            {"workload": "gelu", "krn": timed("gelu", 4000, cold=False), "peers": [{"peer": "ATen", "error": "oops"}]},
            correct=False,
        )
        self.assertIn("| **failed** | none |", self.line(text, "copy"))
        self.assertIn("| no peer |", self.line(text, "matmul"))
        self.assertIn("4000 GB/s (warm)", self.line(text, "gelu"))
        for note in (
            "copy: Krn failed: exit code 4: boom | bang", "copy: ATen is missing: torch", "gelu: ATen failed: oops",
            "matmul_2048: no peers: no torch", "two passes differ by 10%", "**`krn test` on this device failed**: 1 failed",
        ):
            self.assertIn(note, text)

    def test_instruction_counts_are_no_time(self):
        entry = {"median_s": None, "lane_instructions": 12345, "cold": True}
        text = self.render({"workload": "sum_f32", "krn": entry}, device="emulator")
        self.assertIn("no time; 12,345 lane instructions", self.line(text, "sum"))
        self.assertIn("Nothing was timed", text)
        self.assertNotIn("aims met", text)


class Workloads(unittest.TestCase):
    def test_names_select_alone_or_as_prefixes(self):
        names = lambda only: [workload.name for workload in workloads.select(only)]
        self.assertEqual(names("copy"), ["copy"])
        self.assertEqual(names("matmul,copy,copy"), ["matmul_2048", "matmul_4096", "matmul_8192", "matmul_odd", "copy"])
        self.assertEqual(len(names(None)), len(workloads.BY_NAME))
        self.assertRaises(SystemExit, names, "nothing")


class Mutants(unittest.TestCase):
    LINES = """
    bar.sync                0;
    cp.async.wait_group     0;
    shfl.sync.bfly.b32      %f, %f2, 1, 31, 0xffffffff;
    @%p bra                 end_if;
    ld.global.f32           %x, [%x_at+4];
    st.shared.f32           [%tile_at], %x;
    cp.async.ca.shared.global [%tile_at], [%x_at], 4;
    """.splitlines()

    def test_every_kind_changes_or_drops_a_line(self):
        for name, pattern, change in mutants.KINDS:
            places = [line for line in self.LINES if mutants.re.search(pattern, line)]
            self.assertTrue(places, name)
            self.assertTrue(any(change(line) != line for line in places), name)

    def test_an_offset_is_added_to_the_address(self):
        self.assertEqual(mutants.offset("ld.global.f32 %x, [%at+4];", 4), "ld.global.f32 %x, [%at+8];")
        self.assertEqual(mutants.offset("ld.global.f32 %x, [%at];", 1), "ld.global.f32 %x, [%at+1];")

    def test_what_the_emulator_says_has_a_name(self):
        kind = lambda code, said: mutants.kind_of({"code": code, "said": said})
        self.assertEqual(kind(0, ""), "")
        self.assertEqual(kind(3, ""), "wrong result")
        self.assertEqual(kind(4, "race: two threads"), "race")
        self.assertEqual(kind(4, "something new"), "something new")


class Changed(unittest.TestCase):
    TABLE = (
        "# kernel | sizes\n\n"
        "a.krn:scale | n = 1000, k = 2 for sm_90 | 1.000 us | …\n"
        "a.krn:scale | n = 1000, k = 2 for sm_80 | 1.000 us | …\n"
        "b.krn:tick | for sm_90 | 1.000 us | …\n"
    )
    PTX = (
        "// made\n.version 7.8\n.visible .entry scale(\n)\n{\n.loc 1 3\nadd.f32 %a; // line 3\n}\n"
        ".visible .entry scale_2()\n{\nret;\n}\n.visible .entry tick()\n{\nret;\n}\n"
    )
    PLAN = [{"branch": {"then": [{"launch": {"entry": "scale", "grid": []}}], "otherwise": [{"launch": {"entry": "scale_2"}}]}}]
    MANIFEST = {
        "kernels": [
            {"name": "scale", "variants": [{"guard": {}, "plan": PLAN}], "symbols": [{"name": "n", "kind": {"dim": {}}}, {"name": "k", "kind": {"parameter": {}}}]},
            {"name": "tick", "variants": [{"guard": {}, "plan": [{"launch": {"entry": "tick"}}]}], "symbols": []},
        ]
    }

    def test_rows_of_the_target_are_read(self):
        self.assertEqual(
            changed.rows(self.TABLE, "sm_90"), [("a.krn", "scale", {"n": 1000, "k": 2}), ("b.krn", "tick", {})]
        )

    def test_only_what_a_kernel_launches_counts(self):
        self.assertEqual(changed.entries(self.PLAN), ["scale", "scale_2"])
        old = changed.kernels(self.PTX, self.MANIFEST)
        moved = changed.kernels(self.PTX.replace(".loc 1 3", ".loc 1 9").replace("line 3", "line 9"), self.MANIFEST)
        self.assertEqual(old, moved)
        new = changed.kernels(self.PTX.replace("add.f32", "mul.f32"), self.MANIFEST)
        rows = [("a.krn", "scale", {}), ("a.krn", "tick", {}), ("b.krn", "tick", {})]
        self.assertEqual(changed.touched(rows, {"a.krn": old, "b.krn": old}, {"a.krn": new, "b.krn": None}), [rows[0], rows[2]])

    def test_a_row_is_measured_at_its_sizes(self):
        source = "// krn-test: in at=random(0, n); x=iota\n// krn-test: cost n=5\nkernel scale(x: f32[n]) {}\n"
        row = ("a.krn", "scale", {"n": 1000, "k": 2})
        words = changed.command("krn", row, self.MANIFEST, source, "sm_90")
        self.assertEqual(words[:3], ["krn", "bench", "a.krn"])
        self.assertEqual(words[-8:], ["-D", "n=1000", "--set", "k=2", "--in", "at=random(0, 1000)", "--in", "x=iota"])

    def test_both_tools_take_turns(self):
        turns = []

        def measure(which):
            turns.append(which)
            return 1.0 + which

        self.assertEqual(changed.interleaved(measure, 3), (1.0, 2.0))
        self.assertEqual(turns, [0, 1, 1, 0, 0, 1])
        self.assertIsNone(changed.interleaved(lambda which: None, 3))


class PassMutants(unittest.TestCase):
    def test_what_the_tests_say_is_counted(self):
        text = "caught | licm: a load | forms 3: x\nnoise\nmissed | licm: a bound | reached 7 times\ncaught | cse: one | tapes 1\n"
        passes, missed = mutants.counted(text)
        self.assertEqual(passes, {"licm": [2, 1], "cse": [1, 1]})
        self.assertEqual(missed, ["licm: a bound"])


class Regret(unittest.TestCase):
    TEXT = """kernel other(x: f32[n]) -> y: f32[n] { y[i] = x[i] }
kernel rows(x: f32[m, n], g: f32[n]) -> y: f32[m] {
    forall r in m {
        y[r] = sum(c: x[r, c] * g[c])
    }
}
"""

    def test_a_kernels_names_are_those_of_its_loops_and_arrays(self):
        text = regret.kernel_text(self.TEXT, "rows")
        self.assertTrue(text.startswith("kernel rows") and text.endswith("}"))
        self.assertEqual(regret.names(text), (["r"], ["c"], ["x", "g", "y"]))
        schedules = regret.schedules("rows", text)
        self.assertEqual(schedules, regret.schedules("rows", text))
        self.assertIn("warps c: 4", schedules)

    def test_a_table_is_written_as_it_was_read(self):
        rows = [["12.5", "", "team of 32 threads, 16 bytes", "block 256"], ["?", "warps c: 2", "", ""]]
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/t.table"
            regret.write(path, "a GPU", [("bench/a.krn:rows | m=4 | - | fit", rows)])
            self.assertEqual(regret.read(path), ([("bench/a.krn:rows | m=4 | - | fit", rows)], "a GPU"))


class Rates(unittest.TestCase):
    def test_each_rate_that_is_measured_stands_in_the_compiler(self):
        known = rates.constants(rates.FILE.read_text())
        source = rates.HERE.joinpath("rates.cu").read_text()
        measured = re.findall(r'(?:rate|wait)\("(\w+)"', source)
        self.assertEqual(len(measured), 10)
        self.assertEqual([name for name in measured if name not in known], [])

    def test_what_was_measured_stands_beside_what_is_known(self):
        lines = rates.table("MEMORY 17.00\nWAIT 8.00\n", {"MEMORY": 16, "WAIT": 16}).splitlines()
        rows = [["MEMORY", "17.0", "16", "1.06"], ["WAIT", "8.0", "16", "0.50"]]
        self.assertEqual([line.split() for line in lines[1:]], rows)
        with self.assertRaises(KeyError):
            rates.table("SPEED 1.0", {"MEMORY": 16})


if __name__ == "__main__":
    unittest.main()

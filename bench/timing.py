"""Timing by device events, by the same rules as `krn bench` (runtime/src/launch/timing.rs): a warm-up of a tenth of a second,
short calls measured in batches, nothing but calls between two events, no waiting in between, arrays rotated so that all
sets together are more than twice the cache."""

import math
import statistics

WARM_UP = 0.1
WARM_UP_CALLS = (3, 20_000)
MEASUREMENT = 200e-6
BATCH_LIMIT = 1000
SETS_LIMIT = 1024


class Events:
    """Events of PyTorch, or of CuPy where there is no PyTorch."""

    def __init__(self):
        try:
            import torch

            self.make = lambda: torch.cuda.Event(enable_timing=True)
            self.seconds = lambda start, end: start.elapsed_time(end) / 1e3
            self.wait = torch.cuda.synchronize
        except ImportError:
            import cupy

            self.make = cupy.cuda.Event
            self.seconds = lambda start, end: cupy.cuda.get_elapsed_time(start, end) / 1e3
            self.wait = cupy.cuda.Device().synchronize

    def time_each(self, runs, work):
        """Device seconds of each of `runs` calls of work()."""
        pairs = [(self.make(), self.make()) for _ in range(runs)]
        for start, end in pairs:
            start.record()
            work()
            end.record()
        self.wait()
        return [self.seconds(start, end) for start, end in pairs]


def sets_wanted(set_bytes, cache_bytes):
    """How many sets of arrays are together more than twice the cache."""
    return min(2 * cache_bytes // max(set_bytes, 1) + 1, SETS_LIMIT)


def measure(events, calls, total=1.0, limits=(5, 50)):
    """Seconds of one call, one a measurement. Calls go round the list `calls`; measurements take about `total` seconds
    together, and their number stays within `limits`."""
    turn = 0

    def go(count):
        nonlocal turn
        for _ in range(count):
            turn = (turn + 1) % len(calls)
            calls[turn]()

    done, spent = 0, 0.0
    while True:
        count = max(done, 1)
        (seconds,) = events.time_each(1, lambda: go(count))
        each = max(seconds / count, 1e-9)
        done += count
        spent += seconds
        if (done >= WARM_UP_CALLS[0] and spent >= WARM_UP) or done >= WARM_UP_CALLS[1]:
            break
    batch = int(min(max(-(-MEASUREMENT // each), 1), BATCH_LIMIT))
    runs = int(min(max(total / (batch * each), limits[0]), limits[1]))
    return [seconds / batch for seconds in events.time_each(runs, lambda: go(batch))]


def quantiles(runs):
    ordered = sorted(runs)
    return {
        "median_s": statistics.median(ordered),
        "min_s": ordered[0],
        "p90_s": ordered[-(-len(ordered) * 9 // 10) - 1],
        "runs": len(ordered),
    }


def geometric_mean(ratios):
    """Of those that are numbers; NaN where there is none."""
    known = [ratio for ratio in ratios if not math.isnan(ratio)]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else math.nan

"""``python -m benchmarks.compare OTHER [job ...]``: this checkout against another one, in one run.

Jobs use public names only, so that they run in both. Each checkout has a process of one thread; the two take turns at
a job, which has run before, so that compiled code is loaded. What counts is the ratio of the least times, and whether
both end at the same certified value. :mod:`benchmarks.threads` times several threads.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(1, str(ROOT))  # for processes of the other checkout, whose first entry is this file's folder

from benchmarks import report  # noqa: E402
from benchmarks.__main__ import PAGE  # noqa: E402
from benchmarks.compare_jobs import JOBS, Job  # noqa: E402
from benchmarks.measure import Worker  # noqa: E402

TURNS = 5  # of each checkout at a job
MORE = 3  # times as many where the ratio is above LIMIT
LONG, FEW = 8.0, 2  # turns of a job that takes so many seconds
LEAST = 0.1  # seconds of a turn, filled by as many calls as it takes
LIMIT = 1.0
# One thread, and the same instructions for compilers that would take all that the processor has.
SETTINGS = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"),
    "NUMBA_CPU_NAME": "haswell",
    "NASHLEARN_CPU": "v3",
}

Seen = dict[str, Any]


def _judge(found: Any) -> tuple[float, float]:
    """A number by which two runs can be compared, and the certified gap where there is one."""
    if hasattr(found, "objective_"):
        return float(found.objective_), float(found.dual_gap_)
    if hasattr(found, "value"):
        return float(np.sum(found.value)), float(np.max(found.gap))
    arrays = found if isinstance(found, (tuple, list)) else (found,)
    arrays = [one.detach().double().numpy() if hasattr(one, "detach") else np.asarray(one) for one in arrays]
    # Weighted, since what is returned often sums to a constant.
    return float(sum(np.sin(np.arange(one.size)) @ one.ravel() for one in arrays if one.dtype.kind in "biuf")), math.nan


def _turn(job: Job, calls: int) -> tuple[float, float]:
    """CPU and wall seconds of a call."""
    began, clock = time.perf_counter(), time.process_time()
    for _ in range(calls):
        job()
    return (time.process_time() - clock) / calls, (time.perf_counter() - began) / calls


def work() -> None:
    """Make and time the jobs that are asked for, a name in JSON a line."""
    import nashlearn

    warnings.simplefilter("ignore")
    print(json.dumps(str(Path(nashlearn.__file__).parent)), flush=True)
    made: dict[str, tuple[Job, int]] = {}
    for line in sys.stdin:
        if line not in made:
            made = {}
            try:
                job = JOBS[json.loads(line)]()
                began = time.process_time()
                value, gap = _judge(job())
            except (ImportError, FileNotFoundError) as missing:
                print(json.dumps({"missing": str(missing)}), flush=True)
                continue
            seconds = time.process_time() - began
            if seconds < LONG:  # else the first call will do, whatever it compiled
                seconds, _ = _turn(job, 1)
            made[line] = job, max(1, math.ceil(LEAST / max(seconds, 1e-6)))
            print(json.dumps({"value": value, "gap": gap, "seconds": seconds}), flush=True)
        else:
            cpu, wall = _turn(*made[line])
            print(json.dumps({"cpu": cpu, "wall": wall}), flush=True)


def _worker(root: Path) -> Worker:
    """A process of a checkout."""
    environment = {**SETTINGS, "PYTHONPATH": str(root / "src")}
    worker = Worker([str(Path(__file__)), "--work"], environment)
    where = worker.said()
    if not where.startswith(str(root)):
        raise RuntimeError(f"another nashlearn than that of {root} was imported: {where}")
    return worker


def _in_turns(pair: dict[str, Worker], name: str) -> dict[str, Seen]:
    """Least times of two; more turns where the second's is above the limit. Nothing where a package or data miss."""
    found = {side: worker.told(name) for side, worker in pair.items()}
    missing = [one["missing"] for one in found.values() if "missing" in one]
    if missing:
        print(f"{name}: not run: {missing[0]}", flush=True)
        return {}
    turns = FEW if max(one["seconds"] for one in found.values()) > LONG else TURNS
    for one in found.values():
        one["cpu"] = one["wall"] = math.inf
    for _ in range(MORE):
        for turn in range(turns):
            for side in sorted(pair, reverse=bool(turn % 2)):
                seen = pair[side].told(name)
                found[side] |= {clock: min(seen[clock], found[side][clock]) for clock in ("cpu", "wall")}
        before, now = found.values()
        if now["cpu"] <= LIMIT * before["cpu"]:
            break
    return found


def _compared(pair: dict[str, Worker], name: str) -> Seen:
    found = _in_turns(pair, name)
    if not found:
        return found
    before, now = found["before"], found["now"]
    print(f"{name:60s} {before['cpu']:9.3g} s {now['cpu']:9.3g} s {now['cpu'] / before['cpu']:6.2f}", flush=True)
    return {"job": name, "ratio": now["cpu"] / before["cpu"], **found}


def _mean(records: list[Seen]) -> float:
    return math.exp(sum(math.log(one["ratio"]) for one in records) / len(records))


def _tables(records: list[Seen], other: str) -> list[dict[str, Any]]:
    def certified(one: Seen) -> str:
        return f"{one['value']:.8g}" + ("" if math.isnan(one["gap"]) else f", {one['gap']:.0e}")

    parts = list(dict.fromkeys(one["job"].partition(":")[0] for one in records))
    summary = []
    for part in parts:
        own = [one for one in records if one["job"].startswith(f"{part}:")]
        ratios = [one["ratio"] for one in own]
        summary.append([part, str(len(own)), f"{_mean(own):.2f}", f"{min(ratios):.2f}", f"{max(ratios):.2f}"])
    ratios = [one["ratio"] for one in records]
    summary.append(["all", str(len(records)), f"{_mean(records):.2f}", f"{min(ratios):.2f}", f"{max(ratios):.2f}"])
    note = (
        f"CPU time of this version over that of {other}, one thread, AVX2 for both, least of interleaved turns of warm "
        "processes; geometric means of the rows below."
    )
    rows = [
        [
            one["job"],
            report.seconds(one["before"]["cpu"]),
            report.seconds(one["now"]["cpu"]),
            f"{one['ratio']:.2f}",
            certified(one["before"]),
            certified(one["now"]),
        ]
        for one in records
    ]
    columns = ["row", "before", "now", "now / before", "value and gap before", "now"]
    each = "Values are objectives, sums of games' values, or weighted sums of what is returned, with the largest gap."
    return [
        report.table("Against the version before", note, ["part", "rows", "mean", "least", "most"], summary),
        report.table("Row by row", each, columns, rows),
    ]


def _run(root: Path, names: list[str], at_once: int) -> list[Seen]:
    """All jobs, so many at a time, each by a pair of processes."""
    pairs: SimpleQueue[dict[str, Worker]] = SimpleQueue()
    for _ in range(at_once):
        pairs.put({"before": _worker(root), "now": _worker(ROOT)})

    def one(name: str) -> Seen:
        pair = pairs.get()
        try:
            return _compared(pair, name)
        finally:
            pairs.put(pair)

    with ThreadPoolExecutor(at_once) as pool:
        found = [seen for seen in pool.map(one, names) if seen]
    for _ in range(at_once):
        for worker in pairs.get().values():
            worker.close()
    return found


def main() -> None:
    """Compare, print, and store the ratios where all jobs were run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("other", type=Path, nargs="?", help="root of the other checkout")
    parser.add_argument("jobs", nargs="*", metavar="job", help="beginnings of their names; all by default")
    parser.add_argument("--called", default="the other checkout", help="what the other one is called in the tables")
    parser.add_argument("--at-once", type=int, default=1, help="jobs at a time, on a machine with cores to spare")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        return work()
    if arguments.other is None:
        parser.error("the root of the other checkout is missing")
    wanted = tuple(arguments.jobs) or ("",)
    names = [name for name in JOBS if name.startswith(wanted)]
    records = _run(arguments.other.resolve(), names, arguments.at_once)
    tables = _tables(records, arguments.called)
    for one in tables:
        print(report.show(one))
    if not arguments.jobs:
        everything = {"other": arguments.called, "at_once": arguments.at_once, "load": os.getloadavg()[0]}
        report.save("compare", tables, {**everything, "rows": records})
        report.write_page(PAGE)
    return None


if __name__ == "__main__":
    main()

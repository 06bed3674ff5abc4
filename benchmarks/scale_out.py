"""Training on a cluster of processes: rounds, traffic and memory at 10,000,000 rows, and what they say of more."""

from __future__ import annotations

import logging
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measure, report, scale_page
from nashlearn import NashClassifier, games
from nashlearn.dask.reduction import Partitions, shared
from nashlearn.training import Problem
from nashlearn.training.designs.rows import PerClass

__all__ = ["run"]

ROWS, PART, D, K = 10_000_000, 100_000, 50, 5
WORKERS, LIMIT = 2, 1_000_000_000
TOL = 1e-2
EXACT: dict[str, Any] = {"smoothing": 0.0, "intercept_scaling": 1.0}


def generate(seed: int, rows: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """A partition: standard normal features, labels of the largest of noisy linear scores."""
    rng = np.random.default_rng([seed, 1])
    W = np.random.default_rng(7).standard_normal((k, d)) * 2 / np.sqrt(d)
    X = rng.standard_normal((rows, d))
    scores = X @ W.T
    scores += rng.gumbel(size=(rows, k))
    return X, scores.argmax(axis=1)


def collection(rows: int, part: int, d: int, k: int) -> tuple[Any, Any]:
    """Rows and labels as Dask arrays, made partition by partition wherever they are read."""
    import dask
    import dask.array as da

    make = dask.delayed(generate, nout=2, pure=True)
    pairs = [make(seed, part, d, k) for seed in range(rows // part)]
    X = da.concatenate([da.from_delayed(X, (part, d), dtype=float) for X, _ in pairs])
    return X, da.concatenate([da.from_delayed(y, (part,), dtype=np.int64) for _, y in pairs])


def count_bytes() -> None:
    """Make this process count the bytes that it sends to others, but for heartbeats: those go with time, not work."""
    from distributed.comm import tcp

    plain = tcp.TCP.write
    tcp.TCP.sent = 0

    async def write(self: Any, message: Any, *args: Any, **kwargs: Any) -> int:
        size = await plain(self, message, *args, **kwargs)
        beat = isinstance(message, dict) and (
            "heartbeat-interval" in message or str(message.get("op", "")).startswith("heartbeat")
        )
        if not beat:
            tcp.TCP.sent += size
        return size

    tcp.TCP.write = write


def sent() -> int:
    """Bytes that this process has sent."""
    from distributed.comm import tcp

    return tcp.TCP.sent


def peak() -> int:
    """The most memory that this process ever held, in bytes."""
    return measure.resident("VmHWM")


class Watch:
    """Seconds and bytes of every pass over the data: client, scheduler and workers, each byte counted once."""

    def __init__(self, client: Any):
        self.client, self.passes = client, []  # type: ignore[var-annotated]
        self.traffic()  # connections are made
        self._own = -self.traffic() + self.traffic()

    def traffic(self) -> int:
        return sent() + sum(self.client.run(sent).values())

    @contextmanager
    def watching(self) -> Iterator[list[tuple[float, int]]]:
        """List the passes that are made inside."""
        plain, passes = Partitions.reduce, []

        def reduce(parts: Partitions, *arguments: Any) -> Any:
            before, began = self.traffic(), time.perf_counter()
            result = plain(parts, *arguments)
            seconds = time.perf_counter() - began
            passes.append((seconds, self.traffic() - before - self._own))
            return result

        Partitions.reduce = reduce  # type: ignore[method-assign, assignment]
        try:
            yield passes
        finally:
            Partitions.reduce = plain  # type: ignore[method-assign]


@contextmanager
def cluster() -> Iterator[Any]:
    """Two worker processes of one thread and 1 GB each, whose traffic is counted."""
    from distributed import Client, LocalCluster

    count_bytes()
    options = {"n_workers": WORKERS, "threads_per_worker": 1, "memory_limit": LIMIT, "dashboard_address": None}
    with LocalCluster(silence_logs=logging.ERROR, **options) as workers, Client(workers) as client:
        client.run(count_bytes)
        yield client


def train(client: Any, rows: int, part: int, d: int, k: int, **options: Any) -> dict[str, Any]:
    """Train on the cluster and report what it took; the first pass is the survey of labels."""
    watch = Watch(client)
    began = time.perf_counter()

    def say(now: Any) -> None:
        print(f"  {time.perf_counter() - began:7.1f} s  iteration {now.n_iter}  gap {now.gap:.2e}", flush=True)

    with watch.watching() as passes:
        model = NashClassifier(**EXACT, tol=TOL, callback=say, **options).fit(*collection(rows, part, d, k))
    return {
        "rows": rows,
        "partitions": rows // part,
        "d": d,
        "k": k,
        "seconds": time.perf_counter() - began,
        "iterations": model.n_iter_,
        "passes": len(passes),
        "pass_seconds": [seconds for seconds, _ in passes],
        "pass_bytes": [size for _, size in passes],
        "objective": model.objective_,
        "gap": model.dual_gap_,
        "peak_bytes": max(client.run(peak).values()),
    }


def one_machine(rows: int, part: int, d: int, k: int) -> dict[str, float]:
    """The same rows in memory, trained by the in-memory methods."""
    pairs = [generate(seed, part, d, k) for seed in range(rows // part)]
    model = NashClassifier(**EXACT, tol=1e-3, random_state=0)
    model.fit(np.concatenate([X for X, _ in pairs]), np.concatenate([y for _, y in pairs]))
    return {"objective": model.objective_, "gap": model.dual_gap_}


def per_row(d: int, k: int, rows: int = 50_000) -> dict[str, float]:
    """CPU seconds of one thread to generate a row, and to evaluate it in a pass."""
    X, y = generate(0, rows, d, k)
    problem = Problem(X, y, np.full(rows, 1.0 / rows), 1e-3, games.zero_one(k), PerClass(k, d, 1.0))
    w = 0.1 * np.random.default_rng(0).standard_normal(problem.design.size)
    return {
        "generate": measure.per_call(lambda: generate(0, rows, d, k), least=0.5) / rows,
        "evaluate": measure.per_call(lambda: problem.evaluate(w, 0.02), least=0.5) / rows,
    }


def scheduling() -> dict[str, float]:
    """CPU seconds of this process, client and scheduler, for a pass: those of any, and those of a task more."""
    few, many = 16, 512
    took = {}
    for tasks in (few, many):
        parts = Partitions([(shared(i),) for i in range(tasks)], bundled=False)
        took[tasks] = measure.per_call(lambda parts=parts: parts.reduce(abs, max), least=1.0)  # type: ignore[misc]
    task = (took[many] - took[few]) / (many - few)
    return {"task": task, "pass": max(took[few] - few * task, 0.0)}


def _growth(client: Any) -> list[dict[str, Any]]:
    """Traffic as rows grow, then as weights do."""
    grid = [(20_000, 50), (80_000, 50), (320_000, 50), (20_000, 200), (20_000, 800)]
    return [train(client, rows, 1_000, d, K, max_iter=4) for rows, d in grid]


def _row(r: dict[str, Any]) -> list[str]:
    return [
        f"{r['rows']:,}",
        f"{r['k'] * (r['d'] + 1):,}",
        f"{r['partitions']:,}",
        str(r["passes"]),
        f"{statistics.median(r['pass_bytes'][1:]) / 1e3:.0f} kB",
        f"{sum(r['pass_bytes']) / 1e6:.2f} MB",
        f"{r['rows'] * r['d'] * 8 / 1e6:,.0f} MB",
    ]


def run(rows: int = ROWS, part: int = PART) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The large run, the same on a size that fits one machine, traffic, and the page of projections."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    rates = per_row(D, K)
    with cluster() as client:
        large = train(client, rows, part, D, K)
        load = os.getloadavg()[1]
        sending = scheduling()
        fits = train(client, rows // 20, part // 5, D, K)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # stopped after a few rounds on purpose
            growth = _growth(client)
    alone = one_machine(rows // 20, part // 5, D, K)
    records = {
        "workers": WORKERS,
        "limit_bytes": LIMIT,
        "tol": TOL,
        "large": large,
        "fits": fits,
        "one_machine": alone,
        "growth": growth,
        "cpu_seconds_per_row": rates,
        "scheduling": sending,
        "load": load,
        "cores": os.cpu_count(),
    }
    Path(__file__).resolve().parents[1].joinpath("docs/scale.md").write_text(scale_page.page(records))
    return _tables(records), records


def _tables(records: dict[str, Any]) -> list[dict[str, Any]]:
    large, fits, alone = records["large"], records["fits"], records["one_machine"]
    columns = ["rows", "objective", "certified gap", "passes", "seconds", "largest worker", "objective, one machine"]
    rows = [
        [
            f"{r['rows']:,}",
            f"{r['objective']:.6f}",
            f"{r['gap']:.1e}",
            str(r["passes"]),
            f"{r['seconds']:.0f}",
            f"{r['peak_bytes'] / 1e6:.0f} MB",
            f"{alone['objective']:.6f} (gap {alone['gap']:.0e})" if r is fits else "does not fit 1 GB",
        ]
        for r in (large, fits)
    ]
    note = (
        f"Two worker processes of one thread and 1 GB each on one host of {os.cpu_count()} cores; d = {D}, k = {K}, "
        f"rows generated by partition in every pass. Wall-clock seconds; load average {records['load']:.1f}."
    )
    traffic = (
        "All bytes that client, scheduler and workers sent, tasks included, heartbeats not; the first pass, which also "
        "sends the recipes of partitions, is left out of the median."
    )
    return [
        report.table("Training on a cluster", note, columns, rows),
        report.table(
            "Traffic",
            traffic,
            ["rows", "weights", "partitions", "passes", "bytes a pass", "bytes in all", "data"],
            [_row(r) for r in (large, fits, *records["growth"])],
        ),
    ]

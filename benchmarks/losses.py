"""Closed-form games against the published algorithms: nanoseconds a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import measure, report, thesis
from nashlearn import games

__all__ = ["run"]

ABSTAIN_COST = 0.3


def _abstain(scores: np.ndarray) -> Any:
    return thesis.abstain(scores, ABSTAIN_COST)


def _cases(k: int) -> dict[str, tuple[Any, dict[str, Callable[[np.ndarray], Any]], int]]:
    """For each loss its game, its published algorithms, and how many rows they are timed on."""
    sorts: dict[str, Callable[[np.ndarray], Any]] = {
        "sort": thesis.zero_one,
        "sort, NumPy": thesis.zero_one_numpy,
    }
    many, few = 200_000 // k, max(20, 2_000_000 // k**3)
    return {
        "zero_one": (games.zero_one(k), sorts, many),
        "absolute": (games.absolute(k), {"pairs": thesis.absolute}, many),
        "squared": (games.squared(k), {"triples": thesis.squared}, few),
        "abstain": (games.abstain(k, ABSTAIN_COST), {"two best": _abstain}, many),
    }


def _compare(loss: str, k: int, repeats: int) -> list[dict[str, Any]]:
    game, peers, peer_rows = _cases(k)[loss]
    scores = np.random.default_rng(k).standard_normal((200_000 // k, k))
    few = scores[:peer_rows]
    runs: dict[str, Callable[[], float | None]] = {
        "ours": lambda: measure.per_call(lambda: game.solve(scores)) / len(scores)
    }
    for name, peer in peers.items():
        runs[name] = lambda peer=peer: measure.per_call(lambda: peer(few)) / len(few)  # type: ignore[misc]
    took = measure.interleaved(runs, repeats)
    ours = game.solve(few)
    return [
        {
            "loss": loss,
            "k": k,
            "peer": name,
            "ours_s": took["ours"],
            "peer_s": took[name],
            "difference": float(np.abs(ours.value - peer(few)[0]).max()),
            "gap": float(ours.gap.max()),
        }
        for name, peer in peers.items()
    ]


def run(repeats: int = 5) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Tables and records of all losses at k = 10 and 100, scores drawn from N(0, 1)."""
    losses = ("zero_one", "absolute", "squared", "abstain")
    records = [record for k in (10, 100) for loss in losses for record in _compare(loss, k, repeats)]
    rows = [
        [
            r["loss"],
            str(r["k"]),
            r["peer"],
            report.seconds(r["ours_s"]),
            report.seconds(r["peer_s"]),
            report.ratio(r["peer_s"], r["ours_s"]),
            f"{r['difference']:.1e}",
            f"{r['gap']:.1e}",
        ]
        for r in records
    ]
    note = (
        "Time a row. Ours: value, p, q and gap of `game.solve` on a batch; the published algorithms, "
        "compiled: value and q only."
    )
    columns = ["loss", "k", "published", "ours", "theirs", "theirs / ours"]
    columns += ["largest difference", "largest gap"]
    return [report.table("Closed forms and published algorithms", note, columns, rows)], records

"""What the evidence for the defaults says, as the README prints it."""

from __future__ import annotations

from benchmarks import evidence
from benchmarks.evidence_tasks import FRESH
from benchmarks.quoted import read

__all__ = ["costs_row", "deep_row", "log_loss", "tempered_times"]

Figures = dict[str, dict[str, float]]


def _figures(part: str) -> Figures:
    return read("benchmarks/results/evidence.json")["figures"][part]


def _mean(figures: Figures, model: str) -> str:
    return f"{sum(of_set[model] for of_set in figures.values()) / len(figures):.3f}"


def costs_row(model: str) -> tuple[str, ...]:
    """Means over all sets and over the fresh ones; then how often ours costs less or more, and the p-value."""
    everything = _figures("costs")
    fresh = {name: everything[name] for name in FRESH}
    means = _mean(everything, model), _mean(fresh, model)
    if model == "nashlearn":
        return means
    row = evidence.compared(everything, "nashlearn", model)
    return *means, str(row["wins"]), str(row["losses"]), f"{row['p']:.1g}"


def log_loss() -> tuple[str, ...]:
    """Mean log losses over logistic regression's on the sets of Table II, at smoothings 1 and 3."""
    table = _figures("table II")
    own = (float(_mean(table, f"smoothing={m}, log loss")) for m in (1, 3))
    return tuple(f"{one / float(_mean(table, 'logistic, log loss')):.2f}" for one in own)


def tempered_times(loss: str) -> tuple[str, ...]:
    """Times over LogisticRegression's at its default ``C = 1``: the least and the largest, and on bad features."""
    found = [r for r in read("benchmarks/results/tempered.json")["records"] if abs(r["C"] - 1.0) < 1e-6]
    ratios = {r["data"]: r["seconds"][loss] / r["seconds"]["logistic"] for r in found}
    bad = ratios.pop("ill-conditioned")
    return f"{min(ratios.values()):.2f}", f"{max(ratios.values()):.2f}", f"{bad:.2f}"


def deep_row(row: int) -> tuple[str, ...]:
    """Top-1 of cross-entropy, and those of label smoothing, the exact and the tempered loss with their intervals."""
    cells = read("benchmarks/results/deep.json")["tables"][0]["rows"][row]
    return tuple(cells[i].rstrip(" ▲▼") for i in (1, 2, 3, 5))

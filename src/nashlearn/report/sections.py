"""Sections that reports of every task share: comparison, confusion, certificate, worst case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nashlearn.certificates import Losses, mean_bounds

__all__ = [
    "Measure", "Unit", "certificate", "comparison", "confusion", "likely", "new_data", "positions", "present", "risk",
    "smoothing_of", "strings", "thinned",
]  # fmt: skip

_REPLICATES = 2000
_BLOCK = 1 << 21  # numbers in a block of replicates
_POINTS = 400  # of a curve: more than a screen shows
_RADII = 101  # at which the worst case is shown
_CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99)
_SAID = 0.95  # at which the worst case has to say something
_EXAMPLES = 4  # of a cell that costs something
_SHOWN = 24  # classes of a matrix that still reads as one


class Unit(NamedTuple):
    """In what losses are said: in words, whether as shares of 100 %, and what a mean over examples is a mean of.

    Bounds for new data are about examples that are drawn, so that a short sentence counts as much as a long one. What
    is measured of tokens is another number, and ``each`` tells the two apart.
    """

    name: str
    percent: bool = False
    each: str = ""


@dataclass(frozen=True)
class Measure:
    """A ratio of sums over examples, for each model: mean cost, error rate, F1.

    Attributes
    ----------
    name : str
    top, bottom : ndarrays (n, models)
        The measure of a model is ``sum(top) / sum(bottom)``.
    lower_is_better, percent : bool
    """

    name: str
    top: np.ndarray
    bottom: np.ndarray
    lower_is_better: bool = True
    percent: bool = False

    def of(self, weights: np.ndarray) -> np.ndarray:
        """The measure of every model, for each row of ``weights`` of the examples."""
        return _ratio(weights @ self.top, weights @ self.bottom)


def _ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    return np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=bottom != 0)


def _replicates(measure: Measure, rng: np.random.Generator) -> np.ndarray:
    """The measure (replicates, models) on examples drawn with replacement.

    Examples that are alike in all columns are counted, not drawn one by one: a replicate's counts are multinomial.
    """
    m = measure.top.shape[1]
    kinds, counts = np.unique(np.hstack([measure.top, measure.bottom]), axis=0, return_counts=True)
    n, step = int(counts.sum()), max(1, _BLOCK // counts.size)
    sizes = [min(step, _REPLICATES - start) for start in range(0, _REPLICATES, step)]
    sums = np.vstack([rng.multinomial(n, counts / n, size=size).astype(np.float64) @ kinds for size in sizes])
    return _ratio(sums[:, :m], sums[:, m:])


def _interval(values: np.ndarray, confidence: float) -> dict[str, float]:
    tail = 50.0 * (1.0 - confidence)
    known = values[np.isfinite(values)]
    low, high = np.percentile(known, [tail, 100.0 - tail]).tolist() if known.size else [float("nan")] * 2
    return {"low": low, "high": high}


def comparison(
    names: Sequence[str],
    measures: Sequence[Measure],
    unit: str,
    confidence: float,
    random_state: int,
    absent: Sequence[str] = (),
) -> dict[str, Any]:
    """Measures of the model, which comes first, and of its baselines, with bootstrap intervals.

    ``absent`` are the names of baselines whose packages are not installed.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1; got {confidence!r}.")
    tables = []
    for measure in measures:
        values = measure.of(np.ones((1, len(measure.top))))[0]
        drawn = _replicates(measure, np.random.default_rng(random_state))
        rows: list[dict[str, Any]] = []
        for j, name in enumerate(names):
            rows.append({"name": name, "value": values[j], **_interval(drawn[:, j], confidence)})
            if j:  # this model minus the baseline, on the same draws
                apart = _interval(drawn[:, 0] - drawn[:, j], confidence)
                rows[j]["difference"] = {"value": values[0] - values[j], **apart}
        tables.append(
            {"name": measure.name, "lower": measure.lower_is_better, "percent": measure.percent, "rows": rows}
        )
    return {
        "type": "comparison",
        "title": "Against the baselines" if len(names) > 1 else "How it does",
        "unit": unit,
        "n": len(measures[0].top),
        "confidence": confidence,
        "replicates": _REPLICATES,
        "measures": tables,
        "absent": list(absent),
    }


def confusion(
    options: np.ndarray,
    labels: np.ndarray,
    answers: Sequence[str],
    names: Sequence[str],
    costs: np.ndarray,
    unit: str,
    examples: Any,
    aligned: bool = True,
) -> dict[str, Any]:
    """Counts of answers against labels with what each pair costs.

    Parameters
    ----------
    options, labels : ndarrays (n,)
        Positions of answers and of true labels.
    answers, names : sequences of str
        Their names.
    costs : ndarray (answers, names)
    unit : str
        What is counted.
    examples : callable
        Maps positions of examples to what is shown of them.
    aligned : bool
        Whether the first answers are the labels, in their order.
    """
    m, k = costs.shape
    counts = np.bincount(options * k + labels, minlength=m * k).reshape(m, k)
    paid = counts * costs
    shared = min(m, k) if aligned else 0
    per_class = [
        {
            "name": names[j],
            "count": counts[:, j].sum(),
            "right": counts[j, j] if j < shared else None,
            "given": counts[j].sum() if j < shared else None,
            "cost": paid[:, j].sum(),
        }
        for j in range(k)
    ]
    rows, columns = np.arange(m), np.arange(k)
    if max(m, k) > _SHOWN:  # the classes that cost or occur most, in their own order
        worth = paid.sum(axis=0) + 1e-9 * counts.sum(axis=0)
        worth[:shared] += paid.sum(axis=1)[:shared]
        columns = np.sort(np.argsort(-worth, kind="stable")[:_SHOWN])
        rows = np.concatenate([columns[columns < shared], np.arange(shared, m)])
    shown = {}
    order = np.argsort(options * k + labels, kind="stable")
    bounds = np.concatenate([[0], np.cumsum(counts.ravel())])
    for a, i in enumerate(rows):
        for b, j in enumerate(columns):
            cell = order[bounds[i * k + j] : bounds[i * k + j + 1]]
            if cell.size:
                shown[f"{a},{b}"] = examples(cell[: _EXAMPLES if costs[i, j] > 0 else _EXAMPLES // 2])
    return {
        "type": "confusion",
        "title": "Answers and what they cost",
        "unit": unit,
        "answers": [answers[i] for i in rows.tolist()],
        "labels": [names[j] for j in columns.tolist()],
        "counts": counts[np.ix_(rows, columns)],
        "costs": costs[np.ix_(rows, columns)],
        "total": {"count": counts.sum(), "cost": paid.sum(), "hidden": k - columns.size},
        "classes": per_class,
        "examples": shown,
    }


def certificate(estimator: Any) -> dict[str, Any]:
    """Objective and bound over time, and where training ended."""
    return {
        "type": "certificate",
        "title": "The certificate of training",
        "history": thinned(getattr(estimator, "history_", [])),
        "objective": estimator.objective_,
        "gap": estimator.dual_gap_,
        "tol": estimator.tol,
        "n_iter": estimator.n_iter_,
        "smoothing": smoothing_of(estimator),
    }


def smoothing_of(estimator: Any) -> float:
    """The smoothing that a model was trained with; those of rows had none before there was a choice."""
    return float(getattr(estimator, "smoothing_", getattr(estimator, "smoothing", 0.0)))


def risk(estimator: Any, unit: Unit, measured: float | None) -> dict[str, Any] | None:
    """Worst-case risk at radii, those of confidences among them; None where that would say nothing.

    It says something where the bound at the radius that chance stays within, with 95 % confidence, is below what can be
    secured without looking at any data, which is the value of the game at scores 0, and not below what was measured.

    Parameters
    ----------
    measured : float, optional
        What the randomised answers cost on the evaluated data.
    """
    if not hasattr(estimator, "moment_radius"):
        return None
    radii = [float(estimator.moment_radius(c)) for c in _CONFIDENCES]
    bound = float(estimator.worst_case_risk(radii[_CONFIDENCES.index(_SAID)])) if np.isfinite(radii).all() else np.inf
    secured = float(estimator._game.solve(np.zeros((1, len(estimator.classes_)))).value[0])
    if not (0.0 if measured is None else measured) <= bound < secured:
        return None
    every = np.unique([*np.linspace(0.0, 1.15 * radii[-1], _RADII), *radii])
    return {
        "type": "risk",
        "title": "Other labels at the same inputs",
        "unit": unit.name,
        "percent": unit.percent,
        "points": [[r, float(estimator.worst_case_risk(r))] for r in every.tolist()],
        "marks": [[c, r] for c, r in zip(_CONFIDENCES, radii, strict=True)],
        "measured": measured,
        "secured": secured,
    }


def new_data(losses: Losses, confidence: float, unit: Unit, examples: str) -> dict[str, Any]:
    """Bounds of the true mean loss, from the examples of the report, which the model was not trained on."""
    return {
        "type": "new_data",
        "title": "On new data",
        "unit": f"{unit.name} {unit.each}".strip(),
        "percent": unit.percent,
        "examples": examples,
        "confidence": confidence,
        "largest": losses.high,
        **mean_bounds(losses.values, losses.low, losses.high, confidence, binary=losses.binary)._asdict(),
    }


def thinned(points: list[Any]) -> list[Any]:
    """As many of the points as a curve shows, first and last included."""
    if len(points) <= _POINTS:
        return points
    return [points[i] for i in np.unique(np.linspace(0, len(points) - 1, _POINTS).astype(int))]


def positions(answers: Sequence[Any], possible: Sequence[Any], who: str, why: str) -> np.ndarray:
    """Where answers stand among the possible ones; else an error says who gave one that is not, and why it is none."""
    position = {answer: i for i, answer in enumerate(possible)}
    try:
        return np.array([position[answer] for answer in answers], dtype=np.int64)
    except KeyError as error:
        raise ValueError(f"{who} {error.args[0]!r}, which {why}: {possible}.") from None


def present(baselines: Mapping[str, Any] | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The baselines that there are, and the names of those that are None: their packages are not installed."""
    given = dict(baselines or {})
    return {name: one for name, one in given.items() if one is not None}, tuple(
        name for name, one in given.items() if one is None
    )


def strings(names: Mapping[Any, str] | None, labels: Sequence[Any]) -> list[str]:
    """Labels as text, by ``names`` where it has them."""
    return [str((names or {}).get(label, label)) for label in labels]


def likely(p: np.ndarray, names: Sequence[str]) -> list[Any]:
    """The three likeliest answers under a strategy, with their probabilities."""
    return [[names[j], round(float(p[j]), 3)] for j in np.argsort(-p, kind="stable")[:3] if p[j] > 5e-4]

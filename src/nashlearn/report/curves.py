"""What probabilities are worth: rates and costs at every threshold, and whether what is said to be likely happens.

Both sections are about *events*: that a row has one label and no other, or, where labels are ordered, that its grade
is one or a higher one. A threshold ``t`` answers a row from the event where the probability of the event is at least
``t``, and from outside it elsewhere; on each side with the answer of least expected cost. At each threshold stand

- recall (the true positive rate) and false alarms (the false positive rate), whose curve is the ROC;
- precision, whose curve over recall is the precision-recall curve, with the average precision as its area;
- the mean cost of all rows, under the costs that the model was trained for.

The *operating point* is what the model really answers. The area under the ROC has DeLong's interval [delong1988]_.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaincinv, ndtri

from nashlearn.report.page import short

__all__ = ["Event", "Opinion", "area", "events_of", "reliability", "thresholds"]

_EVENTS = 8  # that are shown, at most
_POINTS = 80  # of a curve, of which a report has many
_ALIKE = 9  # digits after the point in which probabilities are compared
_BINS, _LEAST = 10, 10  # bins of the reliability curve, and rows in each, at least


class Event(NamedTuple):
    """What may be true of a row: its name, which labels mean it, and which answers claim it."""

    name: str
    labels: np.ndarray
    answers: np.ndarray


class Opinion(NamedTuple):
    """What one model thinks of rows.

    Attributes
    ----------
    name : str
    options : ndarray (n,)
        Positions of its answers.
    q : ndarray (n, labels) or None
        Its probabilities, where it has some.
    scores : ndarray (n, labels)
        What it ranks labels by: probabilities, or scores of any scale.
    p : ndarray (n, options) or None
        The strategy that tells rows of the same probability apart. Where costs differ, a model of this library gives
        many rows the very probability at which two answers cost the same, and its strategy says which way they lean.
    """

    name: str
    options: np.ndarray
    q: np.ndarray | None
    scores: np.ndarray
    p: np.ndarray | None = None

    def belief(self, event: Event) -> np.ndarray:
        """The probability of the event, or without probabilities how far its scores lead."""
        if self.q is not None:
            return np.asarray(self.q[:, event.labels].sum(axis=1))
        return np.asarray(self.scores[:, event.labels].max(axis=1) - self.scores[:, ~event.labels].max(axis=1))

    def rank(self, event: Event) -> np.ndarray:
        """Whole numbers by which rows are answered with the event, largest first: by belief, then by strategy."""
        keys = [np.round(self.belief(event), _ALIKE)]
        if self.p is not None:
            keys.append(self.p[:, event.answers].sum(axis=1))
        return np.unique(np.column_stack(keys), axis=0, return_inverse=True)[1].ravel()

    def best(self, costs: np.ndarray, among: np.ndarray) -> np.ndarray:
        """The answer of least expected cost, or without probabilities of the largest score, among some of them."""
        places = np.flatnonzero(among)
        if self.q is not None:
            return places[(self.q @ costs[places].T).argmin(axis=1)]
        places = places[places < self.scores.shape[1]]
        return places[self.scores[:, places].argmax(axis=1)]


def events_of(names: Sequence[str], labels: np.ndarray, n_answers: int, ordered: bool) -> list[Event]:
    """The events of a report: each label, or each grade and those above it; the most frequent of them if many."""
    k = len(names)
    grades = np.arange(k)
    if ordered:
        masks = {f"{names[g]} or higher": grades >= g for g in range(1, k)}
    else:
        masks = {str(names[c]): grades == c for c in range(k)}
    counts = np.bincount(labels, minlength=k)
    held = [min(counts[mask].sum(), counts[~mask].sum()) for mask in masks.values()]
    kept = np.sort(np.argsort(-np.array(held), kind="stable")[:_EVENTS])
    every = [Event(name, mask, np.resize(mask, n_answers)) for name, mask in masks.items()]
    found = [every[i] for i in kept if held[i] > 0]
    for event in found:
        event.answers[k:] = False  # answers that are no labels, as abstaining, claim nothing
    return found


def area(rank: np.ndarray, positive: np.ndarray, confidence: float) -> dict[str, float | None]:
    """The area under the ROC, and its interval by the normal law of DeLong's variance; none where that is 0."""
    inside, outside = np.sort(rank[positive]), np.sort(rank[~positive])

    def below(values: np.ndarray, others: np.ndarray) -> np.ndarray:
        left, right = (np.searchsorted(others, values, side=side) for side in ("left", "right"))
        return (left + right) / (2.0 * others.size)

    won, lost = below(inside, outside), 1.0 - below(outside, inside)
    value = float(won.mean())
    variance = sum(float(v.var(ddof=1)) / v.size if v.size > 1 else np.inf for v in (won, lost))
    half = -float(ndtri((1.0 - confidence) / 2.0)) * float(np.sqrt(variance))
    if not 0.0 < half < np.inf:
        return {"value": value, "low": None, "high": None}
    return {"value": value, "low": max(0.0, value - half), "high": min(1.0, value + half)}


def _curve(opinion: Opinion, event: Event, labels: np.ndarray, costs: np.ndarray) -> tuple[np.ndarray, float]:
    """Rows of threshold, share answered with the event, recall, false alarms, precision and mean cost; the area of
    precision over recall."""
    rank, belief, positive = opinion.rank(event), opinion.belief(event), event.labels[labels]
    order = np.argsort(-rank, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(rank[order]) != 0, True)) + 1  # rows in at each threshold
    hits = np.cumsum(positive[order])[ends - 1]
    n, n_positive = labels.size, int(positive.sum())
    inside, outside = (costs[opinion.best(costs, a), labels][order] for a in (event.answers, ~event.answers))
    cost = (np.cumsum(inside)[ends - 1] + outside.sum() - np.cumsum(outside)[ends - 1]) / n
    precision, recall = hits / ends, hits / n_positive
    points = np.column_stack(
        [belief[order][ends - 1], ends / n, recall, (ends - hits) / max(n - n_positive, 1), precision, cost]
    )
    first = [[np.inf, 0.0, 0.0, 0.0, np.nan, outside.mean()]]
    return np.vstack([first, points]), float(np.sum(np.diff(recall, prepend=0.0) * precision))


def _even(points: np.ndarray) -> np.ndarray:
    """As many of the points as a curve shows, as far apart along the ROC as possible, the ends included."""
    if len(points) <= _POINTS:
        return points
    along = points[:, 2] + points[:, 3]
    return points[np.unique(np.searchsorted(along, np.linspace(0.0, 2.0, _POINTS)).clip(max=len(points) - 1))]


def _operating(options: np.ndarray, event: Event, labels: np.ndarray, costs: np.ndarray) -> list[float]:
    """The same numbers for the answers that a model gives; their threshold is nan."""
    claimed, positive = event.answers[options], event.labels[labels]
    hits = float(np.sum(claimed & positive))
    precision = hits / claimed.sum() if claimed.any() else np.nan
    alarms = float(np.sum(claimed & ~positive)) / max(int(np.sum(~positive)), 1)
    return [np.nan, claimed.mean(), hits / positive.sum(), alarms, precision, costs[options, labels].mean()]


def thresholds(
    opinions: Sequence[Opinion], events: Sequence[Event], labels: np.ndarray, costs: np.ndarray, confidence: float
) -> dict[str, Any]:
    """ROC, precision-recall and cost curves of each event, with operating points and areas."""
    shown = []
    for event in events:
        positive = event.labels[labels]
        curves = []
        for one in opinions:
            points, precision = _curve(one, event, labels, costs)
            curves.append(
                {
                    "name": one.name,
                    "points": short(_even(points)),
                    "own": _operating(one.options, event, labels, costs),
                    "area": area(one.rank(event), positive, confidence),
                    "average_precision": precision,
                }
            )
        shown.append({"name": event.name, "share": positive.mean(), "n": positive.sum(), "curves": curves})
    hard = min(range(len(shown)), key=lambda i: (round(shown[i]["curves"][0]["area"]["value"], 9), shown[i]["n"]))
    return {
        "type": "thresholds",
        "title": "At other thresholds",
        "n": labels.size,
        "confidence": confidence,
        "probabilities": opinions[0].q is not None,
        "chosen": hard,  # the event that the model tells apart worst; the rarer one of two
        "events": shown,
    }


def reliability(
    opinions: Sequence[Opinion], events: Sequence[Event], labels: np.ndarray, confidence: float
) -> dict[str, Any]:
    """How often what is said to have a probability happens, with exact binomial intervals [clopper1934]_, in bins of
    about as many rows each; and proper scores of each model that has probabilities."""
    own = opinions[0].q
    if own is None:
        raise ValueError("reliability needs a model with probabilities.")
    likeliest = own.argmax(axis=1)
    said: dict[str, tuple[np.ndarray, np.ndarray]] = {
        "the likeliest label": (own.max(axis=1), likeliest == labels),
        **{event.name: (own[:, event.labels].sum(axis=1), event.labels[labels]) for event in events},
    }
    return {
        "type": "reliability",
        "title": "Are the probabilities right?",
        "n": labels.size,
        "confidence": confidence,
        "events": [{"name": name, **_bins(*pair, confidence)} for name, pair in said.items()],
        "scores": [{"name": one.name, **_proper(one.q, labels)} for one in opinions if one.q is not None],
    }


def _bins(said: np.ndarray, happened: np.ndarray, confidence: float) -> dict[str, Any]:
    """Bins with as many rows in each as ties allow: mean probability, frequency, its interval, rows."""
    wanted = max(1, min(_BINS, said.size // _LEAST))
    inner = np.unique(np.quantile(said, np.linspace(0.0, 1.0, wanted + 1)[1:-1]))
    which = np.searchsorted(inner, said, side="right")
    tail = (1.0 - confidence) / 2.0
    rows, apart = [], 0.0
    for b in np.unique(which):
        inside = which == b
        n, hits = int(inside.sum()), int(happened[inside].sum())
        low = float(betaincinv(hits, n - hits + 1, tail)) if hits else 0.0
        high = float(betaincinv(hits + 1, n - hits, 1.0 - tail)) if hits < n else 1.0
        rows.append([float(said[inside].mean()), hits / n, low, high, n])
        apart += n / said.size * abs(hits / n - rows[-1][0])
    return {"bins": rows, "apart": apart}


def _proper(q: np.ndarray, labels: np.ndarray) -> Mapping[str, float]:
    truth = np.eye(q.shape[1])[labels]
    least = np.finfo(float).tiny
    return {
        "brier": float(np.square(q - truth).sum(axis=1).mean()),
        "log_loss": float(-np.log(np.maximum(q[np.arange(labels.size), labels], least)).mean()),
    }

"""The fixed point of a score: the ``t`` at which training for ``t`` yields ``t``.

A metric of a whole sample that is a ratio of sums is at least ``t`` where some cost that depends on ``t`` is at most 0
(:mod:`nashlearn.games.rows.fscore`). Training for the costs of ``t`` gives strategies of all rows, and these the ratio
``R(t)``; Dinkelbach's step [dinkelbach1967]_ goes from ``t`` to ``R(t)``. The residual ``R(t) - t`` is
continuous, not negative at 0 and not positive at 1, so there is a root, and every fit moves one end of a bracket of it.
Steps are those of Dinkelbach first, then of the secant through the last two residuals, and a bisection where either
leaves the bracket or where three steps have not halved the residual. Three to eight fits are usual. There may be
several roots, since regularisation lets the adversary's radius depend on ``t``; one of them is found.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nashlearn.training.checkpoint import Checkpoint, Saved
from nashlearn.training.driver import Trained

__all__ = ["FixedPoints", "Search", "Step", "fixed_points"]

_PATIENCE = 3  # steps in which the residual must be halved
_CLOSEST = 1e-15  # numbers around 1 that there is nothing between


@dataclass
class Search:
    """Where a fixed point in [0, 1] is looked for.

    Attributes
    ----------
    t : float
        Where to train next, or where training was that ended the search.
    lower, upper : float
        The bracket.
    residual : float
        ``R(t) - t`` as last seen, NaN before.
    t_before, residual_before : float
        The ``t`` before and its residual.
    fits : int
        Fits so far.
    best, since : float and int
        The residual when it was last halved, and steps since.
    """

    t: float
    lower: float = 0.0
    upper: float = 1.0
    residual: float = np.nan
    t_before: float = np.nan
    residual_before: float = np.nan
    fits: int = 0
    best: float = np.inf
    since: int = 0

    def settled(self, tol: float) -> bool:
        """Whether ``t`` is a fixed point to within ``tol``, or known to within it."""
        return abs(self.residual) <= tol or self.upper - self.lower <= max(tol, _CLOSEST)

    def tell(self, ratio: float) -> None:
        """Training for ``t`` gave ``ratio``: one end of the bracket moves."""
        self.residual = ratio - self.t
        self.fits += 1
        if self.residual >= 0.0:
            self.lower = max(self.lower, self.t)
        if self.residual <= 0.0:
            self.upper = min(self.upper, self.t)

    def advance(self) -> None:
        """Go to the next ``t``, inside the bracket."""
        t = self._step()
        self.t_before, self.residual_before, self.t = self.t, self.residual, t

    def _step(self) -> float:
        self.since += 1
        if abs(self.residual) <= 0.5 * self.best:
            self.best, self.since = abs(self.residual), 0
        middle = 0.5 * (self.lower + self.upper)
        if self.since >= _PATIENCE:
            return middle
        slope = (self.residual - self.residual_before) / (self.t - self.t_before) if self.fits > 1 else np.nan
        for step in (-self.residual / slope if slope < 0.0 else np.nan, self.residual):
            if self.lower < self.t + step < self.upper:
                return self.t + step
        return middle


class Step(NamedTuple):
    """One fit, or one of each label of a group, on the way to a fixed point.

    Attributes
    ----------
    group, fit : int
        Which fixed point, and which of its fits.
    t, ratio : float
        What was trained for, and what it gave; equal at the fixed point.
    n_iter : int
        Iterations of training.
    seconds : float
        Time since the beginning, that of interrupted runs before it included.
    dual_gap : float
        The certificate of training, the worst of the group.
    """

    group: int
    fit: int
    t: float
    ratio: float
    n_iter: int
    seconds: float
    dual_gap: float


class Played(Protocol):
    """Games of several labels, trained for one ``t`` at a time."""

    def fit(
        self, label: int, t: float, start: Trained | None, max_time: float | None, checkpoint: Checkpoint | None
    ) -> Trained:
        """Train the game of a label."""
        ...

    def ratio(self, t: float, trained: dict[int, Trained]) -> float:
        """What the strategies of these labels, trained for ``t``, give together."""
        ...


@dataclass
class FixedPoints:
    """What is known so far: where each group of labels is, the last result of each label, and all steps."""

    searches: list[Search]
    trained: dict[int, Trained] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    interrupted: bool = False

    @property
    def seconds(self) -> float:
        """Time that the steps took."""
        return self.steps[-1].seconds if self.steps else 0.0

    @property
    def state(self) -> dict[str, np.ndarray]:
        """All but dual points, for :meth:`restore`."""
        labels = sorted(self.trained)
        results = [self.trained[label] for label in labels]
        facts = [(one.alpha, one.norm, one.objective, one.dual_gap, one.n_iter, one.error) for one in results]
        return {
            "searches": np.array([astuple(search) for search in self.searches]),
            "steps": np.array(self.steps, dtype=np.float64).reshape(-1, len(Step._fields)),
            "labels": np.array(labels, dtype=np.int64),
            "facts": np.array(facts).reshape(-1, 6),
            **{f"w{label}": one.w for label, one in zip(labels, results, strict=True)},
        }

    def restore(self, saved: Saved) -> None:
        """Know what :attr:`state` said."""
        searches = []
        names = [one.name for one in fields(Search)]
        for row in saved["searches"].tolist():
            known: dict[str, Any] = dict(zip(names, row, strict=True))
            searches.append(Search(**{**known, "fits": int(known["fits"]), "since": int(known["since"])}))
        self.searches = searches
        self.steps = [Step(int(g), int(i), t, r, int(n), s, gap) for g, i, t, r, n, s, gap in saved["steps"].tolist()]
        for label, (alpha, norm, objective, gap, n_iter, error) in zip(
            saved["labels"].tolist(), saved["facts"].tolist(), strict=True
        ):
            w = saved[f"w{label}"]
            self.trained[label] = Trained(w, np.empty((0, 0)), alpha, norm, objective, gap, int(n_iter), [], error)


def fixed_points(
    games: Played,
    groups: Sequence[Sequence[int]],
    found: FixedPoints,
    *,
    tol: float,
    max_time: float | None = None,
    verbose: int = 0,
    checkpoint: Checkpoint | None = None,
) -> FixedPoints:
    """The fixed point of each group of labels, to within ``tol``; labels of a group have one ``t`` together.

    ``found`` says where each begins, with results to start from where there are any, and is what is returned. A search
    that has been told of its ``t`` is over where it has come to ``tol``. Every label gets weights, however short the
    time; after an interrupt those of labels that had none are the first that training can offer.
    """
    if checkpoint is not None and (saved := checkpoint.load()) is not None:
        found.restore(saved)
    clock = _Clock(max_time, found.seconds)
    for group, labels in enumerate(groups):
        search = found.searches[group]
        gaps = [found.trained[label].dual_gap for label in labels if search.fits]
        if gaps and search.settled(tol) and max(gaps) <= tol:
            continue
        while not (search.fits and clock.over):
            before = replace(search)
            if search.fits:
                search.advance()
            try:
                _take(games, group, labels, found, clock, verbose, checkpoint)
            except KeyboardInterrupt:  # between two fits: each minds its own
                found.interrupted, found.searches[group] = True, before
                search = before
                warnings.warn("Training was interrupted; the best weights so far are kept.", UserWarning, stacklevel=3)
                clock.max_time = 0.0
            if search.settled(tol):
                break
    return found


class _Clock:
    """How long a run has taken, and how much of its time is left."""

    def __init__(self, max_time: float | None, before: float):
        self.max_time, self._before, self._began = max_time, before, time.perf_counter()

    @property
    def seconds(self) -> float:
        return self._before + time.perf_counter() - self._began

    @property
    def left(self) -> float | None:
        """Positive, since training wants a positive time and always finds some weights."""
        return None if self.max_time is None else max(self.max_time - (time.perf_counter() - self._began), 1e-9)

    @property
    def over(self) -> bool:
        return self.left is not None and self.left <= 1e-9


def _take(
    games: Played,
    group: int,
    labels: Sequence[int],
    found: FixedPoints,
    clock: _Clock,
    verbose: int,
    checkpoint: Checkpoint | None,
) -> None:
    """Train the labels of a group for its ``t``, and tell the search what that gave."""
    search, results, files = found.searches[group], dict[int, Trained](), []
    for place, label in enumerate(labels):
        if verbose:
            of = f", label {label} ({place + 1} of {len(labels)})" if len(found.searches) > 1 or len(labels) > 1 else ""
            print(
                f"[nashlearn] {clock.seconds:8.2f} s  fit {search.fits + 1}{of} for the score {search.t:.6g}, "
                f"which lies between {search.lower:.6g} and {search.upper:.6g}",
                flush=True,
            )
        file = checkpoint and checkpoint.part(f".{label}", f"{label} {search.t!r}")
        files += [file] if file else []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the last fits alone count, and whoever asked warns
            results[label] = games.fit(label, search.t, found.trained.get(label), clock.left, file)
        found.interrupted |= results[label].interrupted
        if found.interrupted:
            clock.max_time = 0.0
    search.tell(games.ratio(search.t, results))
    found.trained |= results
    n_iter, gap = sum(one.n_iter for one in results.values()), max(one.dual_gap for one in results.values())
    found.steps.append(Step(group, search.fits, search.t, search.t + search.residual, n_iter, clock.seconds, gap))
    if checkpoint is not None and not clock.over:  # else the files of these fits are what to go on from
        for file in files:
            file.path.unlink(missing_ok=True)
        checkpoint.save(found.state)

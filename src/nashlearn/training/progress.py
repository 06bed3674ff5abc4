"""What training knows so far: the best weights, the best bound, and the gap between them; and when it must end."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from nashlearn.training.checkpoint import Saved
from nashlearn.training.heartbeat import PATIENCE, beating
from nashlearn.training.outlook import Seen, in_words, outlook, roughly

__all__ = ["Progress", "Round", "Watch", "relative_gap", "scaling_advice"]

_TINY = float(np.finfo(np.float64).tiny)  # Python's: an objective of 0 has an infinite gap, not an overflow
_CONTRADICTION = 1e-6  # part of the objective by which a bound above it is no rounding
_BLOCK = 4096  # rows whose features are squared at once
_UNEVEN = 1e4  # ratio of the sizes of two features from which their scale is likely to be what is wrong


class Round(NamedTuple):
    """The certificate after a round of training, in the units of the loss that the user named.

    Attributes
    ----------
    n_iter : int
        Iterations so far.
    seconds : float
        Time so far, that of interrupted runs before it included.
    objective : float
        The best objective so far; with smoothed stages on the way, an upper bound of it; inf before there is one.
    bound : float
        The best lower bound of the optimum so far; -inf before there is one.
    gap : float
        Their relative distance, with what rounding may hide of it.
    """

    n_iter: int
    seconds: float
    objective: float
    bound: float
    gap: float


# Sees the weights after each round, and returns what to print of them.
Watch = Callable[[Round, np.ndarray], str]


def relative_gap(primal: float, dual: float) -> float:
    """``(P - D) / |P|``, never negative; corrected losses of missing labels may make ``P`` itself negative."""
    if not np.isfinite(primal):
        return np.inf
    return max(primal - dual, 0.0) / max(abs(primal), _TINY)


def scaling_advice(matrices: Iterable[Any] = ()) -> str:
    """What to say of the scale of the features, given arrays (..., d) or sparse matrices (n, d) of them."""
    squares: Any = 0.0
    for rows in _blocks(matrices):
        if sparse.issparse(rows):
            squares = squares + np.asarray(rows.multiply(rows).sum(axis=0), dtype=np.float64).ravel()
        else:
            squares = squares + np.einsum("ij,ij->j", rows, rows, dtype=np.float64)
    sizes = np.sqrt(np.atleast_1d(squares))
    sizes = sizes[sizes > 0.0]
    ratio = sizes.max() / sizes.min() if sizes.size else 1.0
    if not ratio > _UNEVEN:
        return "scale the features"
    return (
        f"scale the features, say by sklearn.preprocessing.StandardScaler: they differ in size by a factor of "
        f"{ratio:.0e}, which slows training and regularises the small ones away"
    )


def _blocks(matrices: Iterable[Any]) -> Iterator[Any]:
    """Rows of matrices, many at a time: of large ones in parts, as a copy would double the memory of training."""
    small: list[np.ndarray] = []
    waiting = 0
    for X in matrices:
        if sparse.issparse(X):
            rows = X.tocsr()
        else:
            rows = np.asarray(X).reshape(-1, np.shape(X)[-1])
            if len(rows) < _BLOCK:
                small.append(rows)
                waiting += len(rows)
                if waiting < _BLOCK:
                    continue
                rows, small, waiting = np.concatenate(small), [], 0
        for start in range(0, rows.shape[0], _BLOCK):
            yield rows[start : start + _BLOCK]
    if small:
        yield np.concatenate(small)


class Progress:
    """Best iterates of a run. ``w`` attains ``primal``; some dual point attained ``dual``.

    Parameters
    ----------
    tol : float
        Relative gap at which training may stop.
    max_iter : int
        Iterations allowed.
    verbose : int
        Print a line for each certificate where positive, and where there was none for a while.
    max_time : float, optional
        Seconds after which training stops, once there are weights.
    callback : callable, optional
        Called with each :class:`Round`.
    bound : float, optional
        A lower bound of the objective that is known beforehand, without error.
    unit : float, optional
        What training counts in: rounds tell objectives divided by it. Gaps are relative and have no unit.
    remark : callable, optional
        Returns what to print of weights besides.
    watch : callable, optional
        Called with each round and the best weights so far, in the user's units; returns what to print of them.
    """

    def __init__(
        self,
        tol: float,
        max_iter: int,
        verbose: int = 0,
        *,
        max_time: float | None = None,
        callback: Callable[[Round], object] | None = None,
        bound: float = -np.inf,
        unit: float = 1.0,
        remark: Callable[[np.ndarray], str] = lambda w: "",
        watch: Watch | None = None,
    ):
        self.tol, self.max_iter, self.verbose, self.unit = tol, max_iter, verbose, unit
        self.max_time, self.callback, self.remark, self.watch = max_time, callback, remark, watch
        self.primal, self.dual, self._bound = np.inf, bound, bound
        self.primal_error = self.dual_error = 0.0  # how wrong rounding may have made them
        self.w = np.zeros(0)
        self.n_iter = 0
        self.rounds: list[Round] = []
        self._expected: list[Seen] = []
        self._began, self._before = time.perf_counter(), 0.0
        self._spoke = self._began

    @property
    def gap(self) -> float:
        """The relative gap between the best objective and the best bound, rounding allowed for.

        A bound that lies above the objective proves nothing but that one of them is false.
        """
        if self.contradicted:
            return np.inf
        sure = relative_gap(self.primal, self.dual - (self.primal_error + self.dual_error))
        return min(sure, relative_gap(self.primal, self._bound))

    @property
    def contradicted(self) -> bool:
        """Whether the bound lies above the objective by more than rounding."""
        excess = self.dual - self.primal - (self.primal_error + self.dual_error)
        return bool(excess > _CONTRADICTION * abs(self.primal))

    @property
    def apparent_gap(self) -> float:
        """The relative gap as computed, by which training steers; it may be 0 where rounding has the last word."""
        return relative_gap(self.primal, self.dual)

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return self.max_time is not None and time.perf_counter() - self._began >= self.max_time

    @property
    def out_of_time(self) -> bool:
        """Whether there are weights and no time for better ones."""
        return bool(self.w.size) and self.late

    @property
    def exhausted(self) -> bool:
        """Whether iterations or time are."""
        return self.n_iter >= self.max_iter or self.out_of_time

    @property
    def done(self) -> bool:
        """Whether the certificate is as good as wanted or as rounding allows, or iterations or time are exhausted."""
        rounded = self.primal - self.dual <= self.primal_error + self.dual_error
        return self.gap <= self.tol or (rounded and self.apparent_gap <= self.tol) or self.exhausted

    def keep(
        self, w: np.ndarray, primal: float, dual: float, primal_error: float = 0.0, dual_error: float = 0.0
    ) -> Round:
        """Keep weights that lower the primal, and a dual bound that is higher than the last.

        Errors are how wrong rounding may have made either: it is what is sure of them that counts.
        """
        if primal + primal_error < self.primal + self.primal_error:
            self.primal, self.primal_error, self.w = float(primal), primal_error, w.copy()
        if dual - dual_error > self.dual - self.dual_error:
            self.dual, self.dual_error = float(dual), dual_error
        seconds = self._before + time.perf_counter() - self._began
        self.rounds.append(Round(self.n_iter, seconds, self.primal / self.unit, self.dual / self.unit, self.gap))
        return self.rounds[-1]

    def expect(self, gap: float) -> None:
        """Take note of a gap that is likely now, from a method whose certificates are dear: for :meth:`longer` only."""
        self._expected.append(Seen(self.n_iter, self._before + time.perf_counter() - self._began, gap))

    def longer(self, tol: float, unit: str = "iterations") -> str:
        """The limits that ended the run, and to what about they should be raised; empty where no limit did."""
        if not self.exhausted:
            return ""
        certified = [Seen(one.n_iter, one.seconds, one.gap) for one in self.rounds]
        ahead = outlook(sorted([*certified, *self._expected], key=lambda one: one.n_iter), tol)
        names = ["max_iter"] * (self.n_iter >= self.max_iter) + ["max_time"] * self.out_of_time
        if ahead is None:
            return " and ".join(names)
        seconds = self.rounds[-1].seconds if self.rounds else 0.0
        more = math.ceil(ahead.n_iter)
        wanted = {"max_iter": self.n_iter + more, "max_time": seconds + ahead.seconds}
        if "max_iter" not in names and wanted["max_iter"] > self.max_iter:
            names.append("max_iter")
        raised = " and ".join(f"{name} to about {roughly(wanted[name]):g}" for name in names)
        return f"{raised} (an estimate: {roughly(more):g} {unit} more, {in_words(ahead.seconds)})"

    def settle(self, primal: float) -> None:
        """Replace the objective of the best weights by what a closer look has shown: no more than it was."""
        if primal < self.primal and self.rounds:
            self.exchange(self.w, primal, self.primal_error)

    def exchange(self, w: np.ndarray, primal: float, error: float) -> None:
        """Exchange the best weights for others that are no worse but for rounding."""
        self.primal, self.primal_error, self.w = float(primal), error, w
        if self.rounds:
            self.rounds[-1] = self.rounds[-1]._replace(objective=self.primal / self.unit, gap=self.gap)

    def offer(self, w: np.ndarray, primal: float, dual: float, *errors: float) -> None:
        """As :meth:`keep`, and tell whoever watches."""
        now = self.keep(w, primal, dual, *errors)
        self._spoke = time.perf_counter()
        seen = "" if self.watch is None else self.watch(now, self.w / self.unit)
        if self.verbose:
            line = (
                f"[nashlearn] {now.seconds:8.2f} s  iteration {now.n_iter:5d}  "
                f"objective {now.objective:.8g}  dual {now.bound:.8g}  gap {now.gap:.2e}  {seen}{self.remark(self.w)}"
            )
            print(line.rstrip(), flush=True)
        if self.callback is not None:
            self.callback(now)

    def watched(self) -> AbstractContextManager[None]:
        """In which to train: where ``verbose``, silence is broken."""
        return beating(self.pulse) if self.verbose else nullcontext()

    def pulse(self) -> None:
        """Say that training goes on after a second without a word, or after a tenth of a longer run."""
        now = time.perf_counter()
        seconds = self._before + now - self._began
        if now - self._spoke < max(PATIENCE, 0.1 * seconds):
            return
        self._spoke = now
        known = f"gap {self.rounds[-1].gap:.2e} so far" if self.rounds else "no certificate yet"
        print(f"[nashlearn] {seconds:8.2f} s  iteration {self.n_iter:5d}  working, {known}", flush=True)

    @property
    def state(self) -> dict[str, Any]:
        """All that is known, for :meth:`restore`."""
        rounds = np.array(self.rounds, dtype=np.float64).reshape(-1, len(Round._fields))
        own = {"primal": self.primal, "dual": self.dual, "w": self.w, "n_iter": self.n_iter, "rounds": rounds}
        return {**own, "primal_error": self.primal_error, "dual_error": self.dual_error}

    def restore(self, saved: Saved) -> None:
        """Know what :attr:`state` said, and go on from there."""
        self.primal, self.dual, self.n_iter = float(saved["primal"]), float(saved["dual"]), int(saved["n_iter"])
        self.primal_error, self.dual_error = float(saved["primal_error"]), float(saved["dual_error"])
        self.w = saved["w"]
        self.rounds = [Round(int(row[0]), *row[1:].tolist()) for row in saved["rounds"]]
        self._before = self.rounds[-1].seconds if self.rounds else 0.0

    def interrupted(self) -> None:
        """Say that a key was pressed and what became of the work."""
        warnings.warn("Training was interrupted; the best weights so far are kept.", UserWarning, stacklevel=4)

    def warn_unless(self, tol: float, advice: Callable[[], str], unit: str = "iterations") -> None:
        """Warn where the certificate is worse than ``tol``, with what could be done."""
        if self.gap <= tol:
            return
        if self.contradicted:
            warnings.warn(
                f"Training certifies nothing: its lower bound, {self.dual / self.unit:.6g}, lies above the objective, "
                f"{self.primal / self.unit:.6g}. As a rule the kernel is not positive semidefinite on these data.",
                ConvergenceWarning,
                stacklevel=4,
            )
            return
        limit = f" and max_time={self.max_time!r} seconds" if self.out_of_time else ""
        warnings.warn(
            f"Training stopped after {self.n_iter} {unit}{limit} at a relative duality gap of {self.gap:.2e}, "
            f"above tol={tol:.2e}. {advice()}",
            ConvergenceWarning,
            stacklevel=4,
        )

"""Games of rows of numbers, solved exactly, row by row, in compiled code."""

from __future__ import annotations

import warnings
from typing import Any

import joblib
import numpy as np

import nashlearn.kernels.loss as kernels
from nashlearn.game import Equilibrium, Game
from nashlearn.games._check import not_negative
from nashlearn.kernels.tempered import temper_rows
from nashlearn.solvers.threads import threads

__all__ = ["RowGame"]

_COMPILED = (np.dtype(np.float64), np.dtype(np.float32))
_PIECE = 1 << 12  # rows that one thread solves at a time


class RowGame(Game):
    """A game whose loss compiled code knows.

    Attributes
    ----------
    params : NamedTuple
        The parameters of the loss. Its method ``compiled`` makes the loss as compiled code wants it, a
        ``nashlearn.kernels.loss.Loss``, of them; that takes microseconds, and so models hold the parameters alone.
    n_labels, n_options : int
        Entries of a row of scores, and of the predictor's strategy.
    largest : float
        The largest cost, 1 where nothing costs.
    """

    smooths = True
    params: Any
    n_labels: int
    n_options: int
    largest: Any

    def solve(
        self,
        scores: np.ndarray,
        *,
        smoothing: float = 0.0,
        tol: float = 1e-9,
        n_jobs: int | None = None,
        start: Equilibrium | None = None,
    ) -> Equilibrium:
        """Equilibrium of every row of ``scores`` (n, labels), in their precision; cost as its loss says.

        A score of ``-inf`` rules its label out. A row with NaN gives NaN. ``smoothing`` is entropic: it
        adds ``smoothing H(q)`` to the adversary's reward, so that ``q`` is unique and no label has probability 0.
        Either game is solved exactly, up to rounding; ``tol`` matters only where rounding is worse than that, ``start``
        only with smoothing.
        """
        # Asking joblib takes as long as a row, and where there is one piece nothing hangs on its answer.
        jobs = 1 if n_jobs is None and np.shape(scores)[:1] <= (_PIECE,) else joblib.effective_n_jobs(n_jobs)
        scores, smoothing = self._checked(scores, jobs), not_negative("smoothing", smoothing)
        found = self.equilibria(scores, smoothing, jobs, start)
        self._warn(found.gap, tol)
        return found

    def part(self, rows: Any) -> RowGame:
        """The game of some rows, a slice or their indices: this one itself, unless costs depend on the row."""
        return self

    def equilibria(
        self, scores: np.ndarray, smoothing: float = 0.0, n_jobs: int = 1, start: Equilibrium | None = None
    ) -> Equilibrium:
        """What :meth:`solve` returns, for scores that need no check: rows (n, labels) of a float type."""
        scores = np.ascontiguousarray(scores)
        n, dtype = scores.shape[0], scores.dtype
        value, gap, entropy = np.empty((3, n), dtype)
        q, p = np.empty((n, self.n_labels), dtype), np.empty((n, self.n_options), dtype)
        arrays: tuple[np.ndarray, ...] = scores, value, q, p, gap, entropy
        risk = entropy
        if smoothing:
            risk = np.empty(n, dtype)
            p[:] = np.nan if start is None else start.p
            arrays = (*arrays, risk)

        def play(loss: Any, scores: np.ndarray, *found: np.ndarray) -> None:
            if smoothing:
                temper_rows(loss, scores, smoothing, *found)
            else:
                kernels.solve_rows(loss, scores, *found)

        if n <= _PIECE:
            play(self.params.compiled(), *arrays)
        else:  # by one thread too: a row may begin with the answer to the one before it
            pieces = [(self.part(cut).params.compiled(), *(array[cut] for array in arrays)) for cut in _cuts(n)]
            threads(min(n_jobs, len(pieces)))(play, pieces)
        return Equilibrium(value, q, p, gap, entropy, risk)

    def risk(self, q: np.ndarray, scores: np.ndarray | None = None) -> np.ndarray:
        """``min_p <p, L q>`` of each row; O(labels), or O(labels options) for a matrix."""
        found = np.empty(len(q))
        kernels.risk_rows(self.params.compiled(), np.require(q, np.float64, ("C", "A")), found)
        return found

    def _warn(self, gap: np.ndarray, tol: float) -> None:
        """Warn of gaps that are more than ``tol`` and than rounding."""
        if not (gap > tol).any():
            return
        missed = gap > max(tol, 100.0 * np.sqrt(np.finfo(gap.dtype).eps) * self.largest)
        if missed.any():
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(
                f"the solver left a gap of {gap[missed].max():.1e}: the loss may mix costs too far apart in size",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _checked(self, scores: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """Scores of the right shape and of a type that is compiled."""
        scores = np.asarray(scores)
        if scores.dtype not in _COMPILED:
            if scores.dtype.kind not in "biuf":
                raise ValueError(f"scores must be real numbers; got dtype {scores.dtype}")
            scores = scores.astype(np.float64)
        if scores.ndim != 2 or scores.shape[1] != self.n_labels:
            hint = "; use scores[None, :] for a single row" if scores.ndim == 1 else ""
            raise ValueError(f"scores must have shape (n, {self.n_labels}); got {scores.shape}{hint}")
        scores = np.require(scores, requirements=("C", "A"))
        top = np.empty(len(scores), scores.dtype)
        if n_jobs == 1 or len(scores) <= _PIECE:
            kernels.top_rows(scores, top)
        else:
            threads(n_jobs)(kernels.top_rows, [(scores[cut], top[cut]) for cut in _cuts(len(scores))])
        if not np.isfinite(top).all():
            if np.isposinf(top).any():
                raise ValueError(f"scores must be finite or -inf; row {np.isposinf(top).argmax()} holds +inf")
            self._possible(top)
        return scores

    def _possible(self, top: np.ndarray) -> None:
        """Refuse rows whose largest score leaves no label."""


def _cuts(n: int) -> list[slice]:
    """Pieces of ``n`` rows for threads."""
    return [slice(i, i + _PIECE) for i in range(0, n, _PIECE)]

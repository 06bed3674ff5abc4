"""What NashFScore trains: for every label a game between two players of two answers, whose costs depend on a score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nashlearn.games.rows.fscore import fscore_game
from nashlearn.training import Problem, Trained
from nashlearn.training.checkpoint import Checkpoint
from nashlearn.training.designs.gram import Gram
from nashlearn.training.designs.rows import PerClass
from nashlearn.training.designs.span import KernelProblem, SpanPerClass
from nashlearn.training.driver import Method, train
from nashlearn.training.methods.climb import Climb
from nashlearn.training.methods.linear import Linear
from nashlearn.training.methods.tempered import Tempered
from nashlearn.training.methods.tempered_span import TemperedSpan
from nashlearn.training.score_bound import Rows, ScoreBound, score_bound

__all__ = ["LabelGames"]


@dataclass
class LabelGames:
    """The games of all labels on the same rows, each with weights of its own.

    Attributes
    ----------
    X
        Rows, as training reads them.
    gram : Gram or None
        That of the kernel; None for linear models.
    codes : ndarray (labels, rows)
        0 or 1.
    omega : ndarray (rows,)
        Shares of the means.
    beta : float
    positive : int
        Which code is the positive one.
    bias : float
        The constant feature.
    alpha, mu, unit : float
        See :mod:`nashlearn.estimators._tempering`; ``alpha`` is that of the estimator.
    options : dict
        Further arguments of :func:`nashlearn.training.driver.train`.
    """

    X: Any
    gram: Gram | None
    codes: np.ndarray
    omega: np.ndarray
    beta: float
    positive: int
    bias: float
    alpha: float
    mu: float
    unit: float
    options: dict[str, Any]

    def share(self, label: int) -> float:
        """The share of rows whose label is positive."""
        return float(self.omega[self.codes[label] == self.positive].sum())

    def shift(self, label: int, t: float) -> float:
        """What makes the mean loss of the label, at any scores, no less than 0: what perfect answers gain."""
        return 2.0 * (1.0 - t) * self.share(label)

    def problem(self, label: int, t: float) -> Any:
        """The training problem."""
        game, alpha = fscore_game(t, self.beta, self.positive, self.shift(label, t)), self.alpha / self.unit
        if self.gram is not None:
            return KernelProblem(self.gram, self.codes[label], self.omega, alpha, game, SpanPerClass(2))
        return Problem(self.X, self.codes[label], self.omega, alpha, game, PerClass(2, self.X.shape[1], self.bias))

    def method(self) -> Method:
        """How all of them are trained."""
        if self.gram is None:
            return Tempered(self.mu) if self.mu else Linear()
        return TemperedSpan(self.mu) if self.mu else Climb()

    def fit(
        self, label: int, t: float, start: Trained | None, max_time: float | None, checkpoint: Checkpoint | None
    ) -> Trained:
        """Train the game of a label for ``t``."""
        return train(
            self.problem(label, t),
            self.method(),
            alpha=self.alpha / self.unit,
            unit=self.unit,
            start=start,
            max_time=max_time,
            checkpoint=checkpoint,
            **self.options,
        )

    def ratio(self, t: float, trained: dict[int, Trained]) -> float:
        """The largest F-score of any answers against the labels ``q`` of training, all labels together.

        It is ``t`` where training for ``t`` has the value 0, and near the fixed point for every ``t``, since ``q``
        estimates the probabilities of the labels whatever the costs are.
        """
        if not self.mu:
            return self._exact_ratio(t, trained)
        q = np.empty((len(trained), len(self.omega)))
        for own, (label, one) in zip(q, trained.items(), strict=True):
            for part, found, _ in self._equilibria(self.problem(label, t), one.w):
                own[part] = found.q[:, self.positive]
        omega = np.broadcast_to(self.omega, q.shape).ravel()
        order = np.argsort(-q.ravel(), kind="stable")
        hits, answers = np.cumsum(omega[order] * q.ravel()[order]), np.cumsum(omega[order])
        return min(float(((1.0 + self.beta**2) * hits / (answers + self.beta**2 * hits[-1])).max()), 1.0)

    def _exact_ratio(self, t: float, trained: dict[int, Trained]) -> float:
        """The F-score of the strategies ``p`` and ``q`` of these labels together, without smoothing.

        With ``h`` the expected cost of ``p`` against ``q`` it is ``t - h (1 + beta^2) / (2 (mean p + beta^2 mean q))``.
        Many rows lie where their scores alone do not say what ``q`` is, but at the optimum
        ``h = mean loss + alpha |w|^2``.
        """
        cost = mass = 0.0
        for label, one in trained.items():
            cost += self.unit * (one.loss + one.alpha * one.norm**2) - self.shift(label, t)
            for part, found, _ in self._equilibria(self.problem(label, t), one.w):
                both = found.p[:, self.positive] + self.beta**2 * found.q[:, self.positive]
                mass += float(self.omega[part] @ both)
        return min(max(t - 0.5 * (1.0 + self.beta**2) * cost / mass, 0.0), 1.0) if mass else 0.0

    def bounds(self, t: float, trained: dict[int, Trained]) -> list[ScoreBound]:
        """What bounds the score of these labels together: by their weights, and with another intercept."""
        parts = [self._rows(label, t, one.w) for label, one in trained.items()]
        rows, error = Rows(*map(np.concatenate, zip(*(own for own, _ in parts), strict=True))), sum(e for _, e in parts)
        square = self.unit**2 * sum(one.norm**2 for one in trained.values())
        radius = self.alpha / self.unit * float(np.sqrt(square))  # that of training
        bounds = [score_bound(rows, self.beta, float(np.sqrt(square)), radius, error)]
        tau = t / (1.0 + self.beta**2)
        if self.mu and self.bias and tau > 0.0:
            away = self.mu * float(np.log(tau / (1.0 - tau)))
            # In units of the constant feature, of which the weights of both classes have one half each.
            own = sum(self._intercept(one.w) for one in trained.values())
            square += (len(trained) * 0.5 * away**2 - own * away) / self.bias**2
            moved = rows._replace(lead=rows.lead - away)
            bounds.append(score_bound(moved, self.beta, float(np.sqrt(max(square, 0.0))), radius, error))
        return bounds

    def _intercept(self, w: np.ndarray) -> float:
        """What the constant feature adds to the lead of the positive class."""
        sides = self.bias**2 * w.sum(axis=0) if self.gram is not None else self.bias * w[:, -1]
        return self.unit * float(sides[self.positive] - sides[1 - self.positive])

    def _rows(self, label: int, t: float, w: np.ndarray) -> tuple[Rows, float]:
        """Strategies, leads, labels and shares, and how wrong rounding may make means of these."""
        problem, n = self.problem(label, t), len(self.omega)
        p, lead = np.empty((2, n))
        for part, found, scores in self._equilibria(problem, w):
            p[part] = found.p[:, self.positive]
            lead[part] = scores[:, self.positive] - scores[:, 1 - self.positive]
        y = (self.codes[label] == self.positive).astype(np.float64)
        return Rows(p, lead, y, self.omega), problem.error(self.unit * w)

    def _equilibria(self, problem: Any, w: np.ndarray) -> Any:
        """Slices of the rows, with what is played there and the scores."""
        w = self.unit * w
        if self.gram is not None:
            scores = problem.scores(w)
            yield slice(None), problem.game.equilibria(scores, self.mu), scores
            return
        for part, block in problem.blocks():
            scores = problem.design.scores(block, w)
            yield part, problem.game.equilibria(scores, self.mu), scores

    def spread(self) -> float:
        """What the moments of one label may differ by, see ``moment_radius``."""
        return float(np.sqrt(0.5 * (self.omega**2 @ self.problem(0, 0.0).squared_diameters())))

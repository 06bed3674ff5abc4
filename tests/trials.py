"""What an independent judge of a model's certificates needs to know, and the worst case that a risk bound speaks of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import clarabel
import numpy as np
import scipy.sparse as sp
from saddle_reference import Part, objective, optimum

__all__ = ["Input", "Trial", "draw_training", "draw_weights", "shares"]


class Input(NamedTuple):
    """A training input: its share of the mean, the moments (count, d) of its outputs, and what ``p`` loses on each.

    ``part`` is its game at a smoothing, for :func:`saddle_reference.optimum`.
    """

    share: float
    moments: np.ndarray
    losses: Callable[[np.ndarray], np.ndarray]
    part: Callable[[float], Part]


class Trial(NamedTuple):
    """A model to fit and what is to be known of its data.

    ``moments`` are those of training, ``largest`` is the largest cost, which smoothing is relative to; None where a
    model has no unit but that of its game.
    """

    name: str
    model: Any
    X: Any
    y: Any
    fit: dict[str, Any]
    inputs: list[Input]
    moments: np.ndarray
    largest: float | None = 1.0

    @property
    def smoothing(self) -> float:
        """Of the game, in costs."""
        return float(self.model.smoothing) * (1.0 if self.largest is None else self.largest)

    @property
    def unit(self) -> float:
        """What losses, scores and weights of the game are divided by to be those of the model."""
        return 1.0 if self.largest is None else self.largest * (1.0 + float(self.model.smoothing))

    def parts(self) -> list[Part]:
        """The games of all inputs."""
        return [one.part(self.smoothing) for one in self.inputs]

    def distance(self, Q: list[np.ndarray]) -> float:
        """From the moments of these distributions over outputs to those of training."""
        of_outputs = sum(one.share * own @ one.moments for one, own in zip(self.inputs, Q, strict=True))
        return float(np.linalg.norm(of_outputs - self.moments))

    def expected_loss(self, p: Any, Q: list[np.ndarray]) -> float:
        return sum(one.share * own @ one.losses(p[i]) for i, (one, own) in enumerate(zip(self.inputs, Q, strict=True)))

    def strategy(self) -> Any:
        """What the fitted model plays at its training inputs, for the loss that it was trained on."""
        loss = {name: self.fit[name] for name in ("node_weight",) if name in self.fit}
        return self.model.strategy(self.X, **loss)

    def optimum(self) -> float:
        """The least objective, by a conic programme."""
        return optimum(self.parts(), self.moments, self.model.alpha / self.unit) / self.unit

    def objective(self, w: np.ndarray) -> float:
        """The objective at weights of the model, by another one."""
        return objective(self.parts(), self.moments, self.model.alpha / self.unit, self.unit * w) / self.unit

    def worst(self, p: Any, radius: float) -> list[np.ndarray]:
        """Distributions over outputs on which ``p`` loses most, among those with moments within ``radius``.

        Where there are none, because missing labels left moments that no labels have, about the nearest.
        """
        loss = np.concatenate([one.share * one.losses(p[i]) for i, one in enumerate(self.inputs)])
        B = np.concatenate([one.share * one.moments for one in self.inputs]).T
        # Rotated to the few directions in which the moments can differ.
        U, s, Vt = np.linalg.svd(B, full_matrices=False)
        kept = s > 1e-12 * s.max(initial=1e-300)
        rotated, target = s[kept, None] * Vt[kept], U[:, kept].T @ self.moments
        beyond = float(np.linalg.norm(self.moments - U[:, kept] @ target))
        sizes = [len(one.moments) for one in self.inputs]
        simplices = sp.block_diag([np.ones((1, size)) for size in sizes])
        x = _maximum(loss, simplices, rotated, target, np.sqrt(max(radius**2 - beyond**2, 0.0)))
        Q = np.split(np.maximum(x, 0.0), np.cumsum(sizes)[:-1])
        return [own / own.sum() for own in Q]


def _maximum(loss, simplices, B, target, radius) -> np.ndarray:
    """``argmax <loss, x>`` over products of simplices with ``|B x - target| <= radius``; some ``x`` in any case."""
    count, d = loss.size, target.size
    slack = float(np.abs(target).max(initial=1.0))  # a penalty that is exact or nearly so: always feasible
    c = np.r_[-loss, 1e3 * (1.0 + np.abs(loss).sum()) / slack]
    zero = np.zeros((d, 1))
    A = sp.vstack(
        [
            sp.hstack([simplices, sp.csr_matrix((simplices.shape[0], 1))]),
            sp.hstack([-sp.eye(count + 1)]),
            sp.csr_matrix(np.r_[np.zeros(count), -1.0][None]),
            sp.hstack([sp.csr_matrix(-B), sp.csr_matrix(zero)]),
        ]
    ).tocsc()
    b = np.r_[np.ones(simplices.shape[0]), np.zeros(count + 1), radius, -target]
    cones = [
        clarabel.ZeroConeT(simplices.shape[0]),
        clarabel.NonnegativeConeT(count + 1),
        clarabel.SecondOrderConeT(d + 1),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    P = sp.csc_matrix((count + 1, count + 1))
    return np.asarray(clarabel.DefaultSolver(P, c, A, b, cones, settings).solve().x)[:count]


def draw_weights(rng, n: int) -> np.ndarray | None:
    """None, or weights of which one may be 0."""
    kind = rng.integers(3)
    weight = rng.exponential(size=n) + 0.05
    if kind == 2 and n > 2:
        weight[rng.integers(n)] = 0.0
    return None if kind == 0 else weight


def draw_training(rng, smoothed: bool) -> dict[str, Any]:
    """Regularisation, and how early to stop."""
    options = {
        "alpha": float(10.0 ** rng.uniform(-3, 0)),
        "tol": float(rng.choice([1e-1, 1e-2, 1e-3, 1e-6])),
        "max_iter": int(rng.choice([1, 2, 5, 30, 300])),
    }
    return options | ({"smoothing": float(rng.choice([0.0, 0.0, 0.02, 0.1, 0.5, 1.0]))} if smoothed else {})


def shares(weight, n: int) -> np.ndarray:
    weight = np.ones(n) if weight is None else weight
    return weight / weight.sum()

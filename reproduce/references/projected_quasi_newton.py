"""Minimisation over a convex set that can be projected onto: limited-memory projected quasi-Newton [schmidt2009]_.

Each iteration minimises a quadratic model, whose Hessian is that of L-BFGS, over the set by a few steps of the spectral
projected gradient method, and searches along the way there. The parameters are those of the authors' program.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["projected_quasi_newton"]

_MEMORY = 10
_INNER = 10  # iterations of the spectral projected gradient method on each model
_SUFFICIENT = 1e-4
_OPTIMAL = 1e-5  # largest entry of the projected gradient step at which it ends
_PROGRESS = 1e-9

Array = np.ndarray


class _Model:
    """The Hessian of L-BFGS in compact form: ``sigma I - N M^-1 N'``."""

    def __init__(self, steps: list[Array], changes: list[Array]):
        S, Y = np.array(steps), np.array(changes)
        self.sigma = float(Y[-1] @ Y[-1]) / float(Y[-1] @ S[-1])
        products = S @ Y.T
        lower = np.tril(products, -1)
        self.N = np.vstack([self.sigma * S, Y])
        self.M = np.block([[self.sigma * (S @ S.T), lower], [lower.T, -np.diag(np.diag(products))]])

    def times(self, d: Array) -> Array:
        return self.sigma * d - np.linalg.solve(self.M, self.N @ d) @ self.N


def _on_the_model(model: _Model, x: Array, g: Array, project: Callable[[Array], Array]) -> Array:
    """The direction from ``x`` to where the model is smallest, nearly, by the spectral projected gradient method."""
    at, slope = x, g
    value, values = 0.0, [0.0]
    length = min(1.0, 1.0 / float(np.abs(g).sum()))
    for _ in range(_INNER):
        d = project(at - length * slope) - at
        descent = float(slope @ d)
        if descent > -_PROGRESS:
            break
        moved = model.times(d)
        curve, t = float(d @ moved), 1.0
        while value + t * descent + 0.5 * t * t * curve > max(values[-10:]) + _SUFFICIENT * t * descent and t > 1e-10:
            t *= 0.5
        value += t * descent + 0.5 * t * t * curve
        values.append(value)
        at, slope = at + t * d, slope + t * moved
        length = min(max(float(d @ d) / curve, 1e-10), 1e10) if curve > 0 else 1.0
    return at - x


def projected_quasi_newton(
    objective: Callable[[Array], tuple[float, Array]],
    project: Callable[[Array], Array],
    x: Array,
    *,
    max_iter: int = 500,
    watch: Callable[[Array], bool] = lambda x: False,
) -> Array:
    """Minimise ``objective``, which answers a value and a gradient, over the set of ``project``.

    ``watch`` sees every iterate and ends the run by answering True.
    """
    x = project(x)
    value, g = objective(x)
    steps: list[Array] = []
    changes: list[Array] = []
    for _ in range(max_iter):
        if watch(x):
            break
        d = _on_the_model(_Model(steps, changes), x, g, project) if steps else project(x - g) - x
        slope = float(g @ d)
        if slope > -_PROGRESS:
            break
        t = 1.0 if steps else min(1.0, 1.0 / float(np.abs(g).sum()))
        new, new_g = objective(x + t * d)
        while new > value + _SUFFICIENT * t * slope and t > 1e-12:
            t *= 0.5
            new, new_g = objective(x + t * d)
        if float((t * d) @ (new_g - g)) > 1e-10:
            steps, changes = [*steps[1 - _MEMORY :], t * d], [*changes[1 - _MEMORY :], new_g - g]
        stalled = np.abs(t * d).max() < _PROGRESS or abs(new - value) < _PROGRESS
        x, value, g = x + t * d, new, new_g
        if stalled or np.abs(project(x - g) - x).max() <= _OPTIMAL:
            watch(x)
            break
    return x

"""What a loss over the simplex must offer to compiled code, one row at a time.

Each loss is a NamedTuple of arrays. Numba dispatches on its class when it compiles, so one batch solver
and one trainer serve every loss: a new one registers its own versions of the functions below with
:func:`implements`.
Rows may be float32 or float64; sums are taken in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.extending import overload

from nashlearn.solvers.matrix_game import largest
from nashlearn.solvers.quadratic import cost_prox, cost_tangent

__all__ = [
    "common",
    "contenders",
    "equilibria",
    "equilibrium",
    "gain",
    "implements",
    "prox",
    "reply",
    "risk",
    "risk_rows",
    "solve_rows",
    "tangent",
    "where",
]


def where(function: Callable[..., Any], applies: Callable[[Any], bool]) -> Callable[..., Any]:
    """A decorator: what follows is ``function`` for the losses whose class ``applies`` is true of."""

    def register(version: Callable[..., Any]) -> Callable[..., Any]:
        overload(function, strict=False)(lambda loss, *_: version if applies(loss.instance_class) else None)
        return version

    return register


def implements(function: Callable[..., Any], kind: type) -> Callable[..., Any]:
    """A decorator: what follows is ``function`` for losses of the class ``kind``."""
    return where(function, lambda other: other is kind)


def equilibrium(loss, scores, q, p):  # pragma: no cover - compiled
    """Write the equilibrium of one row into ``q`` and ``p`` and return its value."""
    raise NotImplementedError


def equilibria(loss, scores, value, q, p):  # pragma: no cover - compiled
    """Write the equilibria of all rows. A loss whose rows help each other registers its own version."""
    raise NotImplementedError


def gain(loss, p, reward):  # pragma: no cover - compiled
    """Add ``L' p``, what ``p`` loses to each label, to ``reward``; return what it loses whatever the label."""
    raise NotImplementedError


def reply(loss, reward, a):  # pragma: no cover - compiled
    """Return ``max_q <reward, q> - a/2 |q|^2``: what the best adversary gets; ``a`` may be 0."""
    raise NotImplementedError


def risk(loss, q):  # pragma: no cover - compiled
    """Return ``min_i (L q)_i``: the Bayes risk of the label distribution ``q``."""
    raise NotImplementedError


def common(loss, scores):  # pragma: no cover - compiled
    """Return what may be taken off all scores of a row without changing the game but for its value.

    The largest score, unless a loss whose labels do not sum to 1 registers its own version.
    """
    raise NotImplementedError


def prox(loss, m, g, a, q, p):  # pragma: no cover - compiled
    """Write ``argmax_q <g, q> - a/2 |q|^2 + min_p <p, L q>`` into ``q``, and its ``p``.

    ``m`` is the number of labels; the arrays may be longer. A loss that registers ``contenders`` takes any subset.

    On entry ``q`` is any point of the simplex: a good one saves work, none changes the answer.
    """
    raise NotImplementedError


def contenders(loss, g, a, q, near):  # pragma: no cover - compiled
    """Mark in ``near`` the labels that may soon enter the proximal step ``q`` of ``g``, its support included.

    All labels, unless a loss can take its steps on a subset of them and registers its own version.
    """
    raise NotImplementedError


def tangent(loss, a, q, p, jacobian):  # pragma: no cover - compiled
    """Write an element of the generalised Jacobian of ``prox`` in ``g`` into ``jacobian`` (k, k).

    Return the number of nonzero rows, 0 where the strategy is locally constant.
    """
    raise NotImplementedError


@where(equilibria, lambda kind: not hasattr(kind, "warm_rows"))
def _row_by_row(loss, scores, value, q, p):
    for i in range(scores.shape[0]):
        value[i] = equilibrium(loss, scores[i], q[i], p[i])


@where(common, lambda kind: not hasattr(kind, "separate"))
def _largest(loss, scores):
    return largest(scores)


@where(contenders, lambda kind: not hasattr(kind, "own_contenders"))
def _everyone(loss, g, a, q, near):
    near[:] = True


@where(prox, lambda kind: "L" in kind._fields)
def _matrix_prox(loss, m, g, a, q, p):
    cost_prox(loss.L, g, a, q, p)


@where(tangent, lambda kind: "L" in kind._fields)
def _matrix_tangent(loss, a, q, p, jacobian):
    return cost_tangent(loss.L, a, q, p, jacobian)


@njit(cache=True, nogil=True)
def risk_rows(loss, q, found):
    """Bayes risks of all rows of ``q``, written into ``found``."""
    for i in range(q.shape[0]):
        found[i] = risk(loss, q[i])


@njit(cache=True, nogil=True)
def solve_rows(loss, scores, value, q, p, gap, entropy):
    """Equilibria of all rows of ``scores``, written into the last five arguments.

    The gap is taken relative to what scores have in common: it keeps its precision for scores of any size.
    """
    equilibria(loss, scores, value, q, p)
    k = scores.shape[1]
    relative = np.empty(k)
    for i in range(scores.shape[0]):
        top = common(loss, scores[i])
        for j in range(k):
            relative[j] = np.float64(scores[i, j]) - top
        lower = risk(loss, q[i])
        entropy[i] = lower
        for j in range(k):
            if q[i, j] > 0.0:  # 0 * -inf must count as 0
                lower += relative[j] * q[i, j]
        upper = gain(loss, p[i], relative) + reply(loss, relative, 0.0)
        gap[i] = max(upper - lower, 0.0)
        if np.isnan(value[i]):
            gap[i] = entropy[i] = np.nan

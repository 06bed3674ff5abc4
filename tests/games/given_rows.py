"""The compiled batch solver of simplex games with strategies from elsewhere: its certificate without its solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from nashlearn.games.rows import kernels

__all__ = ["rows_gap"]


class Given(NamedTuple):
    """A loss whose equilibria are whatever is given."""

    loss: Any
    p: np.ndarray
    q: np.ndarray

    @property
    def warm_rows(self) -> bool:
        return True

    @property
    def own_common(self) -> bool:
        return True


@overload(kernels.equilibria)
def _equilibria(loss, scores, value, q, p):
    if loss.instance_class is not Given:
        return None

    def write(loss, scores, value, q, p):
        q[:] = loss.q
        p[:] = loss.p
        value[:] = 0.0

    return write


@overload(kernels.best_reply)
def _best_reply(loss, scores, p):
    if loss.instance_class is not Given:
        return None
    return lambda loss, scores, p: kernels.best_reply(loss.loss, scores, p)


@overload(kernels.risk)
def _risk(loss, q):
    if loss.instance_class is not Given:
        return None
    return lambda loss, q: kernels.risk(loss.loss, q)


@overload(kernels.common)
def _common(loss, scores):
    if loss.instance_class is not Given:
        return None
    return lambda loss, scores: kernels.common(loss.loss, scores)


# The batch solver itself, compiled anew: what it keeps on disk must not know the class above.
_solve_rows = njit(kernels.solve_rows.py_func)


def rows_gap(params: Any) -> Callable[[np.ndarray, np.ndarray, np.ndarray], float]:
    """The gap that the batch solver reports of given strategies, for the loss ``params``."""

    def gap(theta, p, q):
        value, found = np.empty(1), np.empty(1)
        given = Given(params, p[None].copy(), q[None].copy())
        _solve_rows(given, theta[None].copy(), value, np.empty((1, q.size)), np.empty((1, p.size)), found, value.copy())
        return float(found[0])

    return gap

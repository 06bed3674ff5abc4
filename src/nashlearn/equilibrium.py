"""What a game is solved to, and products of rows. This module imports nothing of the library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Equilibrium", "best_vertices", "flat", "inner", "lifted"]


@dataclass(frozen=True)
class Equilibrium:
    """Both players' strategies for a batch of games, with their certificate.

    Attributes
    ----------
    value : ndarray (n,)
        What ``q`` secures: ``F(scores)`` up to ``gap``.
    q : ndarray (n, \\*shape of labels)
        The adversary's strategy: a subgradient of ``F``.
    p : ndarray (n, \\*shape of options)
        The predictor's strategy: the probabilistic prediction.
    gap : ndarray (n,)
        What the predictor may lose at ``p`` minus what the adversary can secure with ``q``; never
        negative, and zero exactly at an equilibrium.
    entropy : ndarray (n,)
        ``value - <scores, q>``, computed without that difference: ``min_p <p, L q>`` and what smoothing adds.
    risk : ndarray (n,)
        ``min_p <p, L q>`` alone; the same as ``entropy`` without smoothing, and where it is not given.
    reply : ndarray, optional
        The adversary's best reply to ``p``, where a relaxed game attains ``value + gap`` at another point than ``q``.
    state : optional
        What the same solver can begin with at scores nearby, where the equilibrium is given to it as ``start``.
    """

    value: np.ndarray
    q: np.ndarray
    p: np.ndarray
    gap: np.ndarray
    entropy: np.ndarray
    risk: np.ndarray = None  # type: ignore[assignment]  # set below
    reply: Any = None
    state: Any = None

    def __post_init__(self) -> None:
        if vars(self)["risk"] is None:
            object.__setattr__(self, "risk", self.entropy)


def flat(x: np.ndarray) -> np.ndarray:
    """Points (n, \\*shape) as rows (n, dim)."""
    return x.reshape(len(x), -1) if x.size else x.reshape(len(x), int(np.prod(x.shape[1:])))


def lifted(x: np.ndarray, dim: int) -> np.ndarray:
    """Points (n, \\*shape) as rows (n, dim), with a last entry 1 where the loss has one coordinate more than they."""
    rows = flat(x)
    return rows if rows.shape[1] == dim else np.hstack([rows, np.ones((len(rows), 1))])


def best_vertices(polytope: Any, scores: np.ndarray) -> np.ndarray:
    """The vertices (n, \\*shape) that a polytope's ``argmax`` finds for copies of ``scores`` (n, \\*shape)."""
    found = np.asarray(polytope.vertex(polytope.argmax(scores.copy())))
    if found.ndim == 0 or len(found) != len(scores) or found.size != scores.size:
        raise ValueError(
            f"argmax and vertex of {type(polytope).__name__} must return a vertex of shape {scores.shape[1:]} for each "
            f"of {len(scores)} rows of scores; together they returned an array of shape {found.shape}"
        )
    return found


def inner(scores: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Inner products of rows; a score of ``-inf``, which rules a part out, counts 0 where ``x`` is 0."""
    return np.einsum("nd,nd->n", np.where(x == 0, 0, scores), x)

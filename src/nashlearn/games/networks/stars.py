"""Dual block ascent on any graph: the local polytope's game, one node with all its edges at a time.

Node and edge marginals that agree only locally bound the game from above; the multipliers ``alpha`` of their
agreement and the replies ``p`` are found together. With temperature ``e_v`` on nodes and ``e_e`` on edges,

    sum_v e_v log sum_a exp((f_v + L' p_v + sum_e alpha_ev)(a) / e_v)
    + sum_e e_e log sum_ab exp((T_e(a, b) - alpha_eu(a) - alpha_ev(b)) / e_e),

and for one node ``v`` of degree ``d`` the exact minimiser over its ``alpha`` and its reply is, with
``mu_e(a) = e_e log sum_b exp((T_e(a, b) - alpha_e,other(b)) / e_e)`` and ``F = f_v + sum_e mu_e``: the best reply to
``F`` at temperature ``e_v + d e_e``, then ``alpha_ev = mu_e - e_e (F + L' p_v) / (e_v + d e_e)``.
A sweep over all nodes costs two passes over the edges' tables, whose exponentials are taken once for many sweeps
(:func:`heated`); sums that leave the range of numbers are taken again in the log domain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nashlearn.kernels import stars as kernels
from nashlearn.kernels.stars import agree, beliefs

__all__ = [
    "Heated",
    "Incidence",
    "agree",
    "beliefs",
    "bound",
    "expected",
    "heated",
    "incidence",
    "own",
    "risk",
    "sweep",
]


class Incidence(NamedTuple):
    """A graph as compiled code reads it: ends of the edges, their tables, and the edges at each node."""

    ends: np.ndarray  # (m, 2)
    table: np.ndarray  # (m,)
    start: np.ndarray  # (n + 1,)
    member: np.ndarray  # edges, 2 m of them
    side: np.ndarray  # which end of each the node is


def incidence(n: int, edges: np.ndarray, table: np.ndarray) -> Incidence:
    """The edges at each node of a graph of ``n`` nodes."""
    node = edges.ravel()
    order = np.argsort(node, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=n))]).astype(np.int64)
    return Incidence(np.ascontiguousarray(edges), table, start, order // 2, order % 2)


class Heated(NamedTuple):
    """Edge scores, and ``exp((scores - top) / eps)`` for one temperature with the tables' ``top``.

    There is one table for each edge, or a single one that all of them share.
    """

    T: np.ndarray
    W: np.ndarray
    top: np.ndarray
    eps: float


def own(T: np.ndarray) -> np.ndarray:
    """Tables (m, k, k) as compiled code reads them: of one that is repeated by broadcasting, only itself (1, k, k)."""
    return np.ascontiguousarray(T[:1] if len(T) and T.strides[0] == 0 else T)


def heated(T: np.ndarray, eps: float) -> Heated:
    """Tables (m, k, k) at a temperature; one that is repeated by broadcasting is worked out once."""
    tables = own(T)
    top = tables.max(axis=(1, 2)) if len(tables) else np.zeros(0)
    top[np.isneginf(top)] = 0.0
    return Heated(tables, np.exp((tables - top[:, None, None]) / eps) if eps else tables, top, eps)


def sweep(
    loss: Any, g: Incidence, f: np.ndarray, h: Heated, e_v: float, p: np.ndarray, alpha: np.ndarray, q: np.ndarray
) -> None:
    """Renew every node's reply and multipliers once, first to last, then back; ``q`` gets the nodes' beliefs."""
    kernels.sweep(loss.compiled(), g, f, h, e_v, p, alpha, q)


def bound(loss: Any, g: Incidence, f: np.ndarray, h: Heated, e_v: float, p: np.ndarray, alpha: np.ndarray) -> float:
    """The objective at ``p`` and ``alpha``: an upper bound on the game's value at these temperatures."""
    return float(kernels.bound(loss.compiled(), g, f, h, e_v, p, alpha))


def expected(loss: Any, p: np.ndarray, q: np.ndarray) -> float:
    """``<p, L q>``, summed over nodes."""
    return float(kernels.expected(loss.compiled(), p, q))


def risk(loss: Any, q: np.ndarray) -> float:
    """``min_p <p, L q>``, summed over nodes."""
    return float(kernels.risk(loss.compiled(), q))

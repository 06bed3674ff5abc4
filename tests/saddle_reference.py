"""The optimum of training, smoothed or not, as one conic programme over the adversary's strategies.

    max_x  sum_i omega_i (min_p <p, L_i x_i> + h_i(x_i)) - |sum_i omega_i M_i' x_i - m|^2 / (2 alpha),

``x_i`` a distribution over the listed outputs of example ``i``, or marginals of its local polytope, ``M_i`` their
moments and ``m`` those of the labels, whatever these are: the dual of training, equal to its optimum. Nothing of the
library is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import clarabel
import numpy as np
import scipy.sparse as sp
from enumeration import Outputs

EDGE_HEAT = 0.1  # of relaxed networks: the temperature of edges over that of nodes


@dataclass
class Part:
    """An example: a polytope ``A x = b, x >= 0``, and what the adversary earns on it.

    ``costs`` are matrices (options, dim), one for each independent choice of the predictor. ``entropy`` (dim,) weighs
    ``-x log x``; ``curve`` is a pair ``mu, V`` that stands for ``- mu/2 (|V' x|^2 - <1, V' x>)``.
    """

    omega: float
    moments: np.ndarray
    costs: list[np.ndarray]
    A: np.ndarray
    b: np.ndarray
    entropy: np.ndarray
    curve: tuple[float, np.ndarray] = field(default_factory=lambda: (0.0, np.zeros((0, 0))))


def mixture(omega: float, outputs: Outputs, entropy: float = 0.0, curve=None) -> Part:
    """Distributions over all outputs; ``entropy`` weighs theirs, ``curve`` is ``mu`` and the outputs' vertices."""
    count = len(outputs.labels)
    part = Part(
        omega, outputs.moments, [outputs.costs], np.ones((1, count)), np.ones(1), np.full(count, float(entropy))
    )
    if curve is not None:
        part.curve = curve[0], curve[1].reshape(count, -1)
    return part


def local(omega: float, nodes, edges, k: int, L, edge_features, counts, entropy: float = 0.0) -> Part:
    """Node and edge marginals that agree locally, with their entropies, those of edges at a tenth of the weight."""
    n, m = len(nodes), len(edges)
    size = n * k + m * k * k
    rows, rhs = [], []
    for v in range(n):
        row = np.zeros(size)
        row[v * k : (v + 1) * k] = 1.0
        rows.append(row)
        rhs.append(1.0)
    for e, ends in enumerate(edges):
        for side, a in product((0, 1), range(k)):
            table = np.zeros((k, k))
            table[(slice(None), a) if side else (a, slice(None))] = 1.0
            row = np.zeros(size)
            row[n * k + e * k * k : n * k + (e + 1) * k * k] = table.ravel()
            row[ends[side] * k + a] = -1.0
            rows.append(row)
            rhs.append(0.0)
    d, f = nodes.shape[1], edge_features.shape[1]
    moments = np.zeros((size, d * k + f * k * k))
    for v, a in product(range(n), range(k)):
        moments[v * k + a, np.arange(d) * k + a] = nodes[v]
    for e, ab in product(range(m), range(k * k)):
        moments[n * k + e * k * k + ab, d * k + np.arange(f) * k * k + ab] = edge_features[e]
    costs = []
    for v in range(n):
        matrix = np.zeros((k, size))
        matrix[:, v * k : (v + 1) * k] = counts[v] * np.asarray(L)
        costs.append(matrix)
    heat = entropy * np.r_[np.ones(n * k), np.full(m * k * k, EDGE_HEAT)]
    return Part(omega, moments, costs, np.array(rows), np.array(rhs), heat)


def optimum(parts: list[Part], m: np.ndarray, alpha: float) -> float:
    """The value of the programme in the heading."""
    # Rotated to the few directions in which moments can differ; what the labels say beyond is a constant.
    B = np.concatenate([part.omega * part.moments for part in parts]).T
    U, s, Vt = np.linalg.svd(B, full_matrices=False)
    kept = s > 1e-13 * s.max(initial=1e-300)
    target = U[:, kept].T @ m
    beyond = m - U[:, kept] @ target
    value = _value(parts, np.zeros(B.shape[1]), s[kept, None] * Vt[kept], target, alpha)
    return value - float(beyond @ beyond) / (2.0 * alpha)


def objective(parts: list[Part], m: np.ndarray, alpha: float, w: np.ndarray) -> float:
    """The objective of training at ``w``: the games of all examples at their scores, and the regulariser."""
    scores = np.concatenate([part.moments @ w for part in parts])
    worth = _value(parts, scores, np.zeros((0, scores.size)), m[:0], 1.0)
    return worth - float(w @ m) + 0.5 * alpha * float(w @ w)


def _value(parts, scores, B, target, alpha) -> float:
    """``max sum omega (<scores, x> + min_p <p, L x> + h(x)) - |B x - target|^2 / (2 alpha)``."""
    blocks = [_block(part) for part in parts]
    d, sizes = target.size, [len(part.moments) for part in parts]
    earned = np.split(scores, np.cumsum(sizes)[:-1])
    # Variables: each example's, then g = B x - target.
    quadratic = [block.P * part.omega for block, part in zip(blocks, parts, strict=True)]
    P = sp.block_diag([*quadratic, sp.eye(d) / alpha]).tocsc()
    for block, own in zip(blocks, earned, strict=True):
        block.c[: own.size] -= own
    c = np.concatenate([*(block.c * part.omega for block, part in zip(blocks, parts, strict=True)), np.zeros(d)])
    columns = np.split(B, np.cumsum(sizes)[:-1], axis=1)
    link = [
        np.hstack([own, np.zeros((d, block.c.size - size))])
        for own, block, size in zip(columns, blocks, sizes, strict=True)
    ]
    rows = {kind: sp.block_diag([block.rows[kind] for block in blocks]) for kind in ("zero", "positive", "exponential")}
    heights = {kind: matrix.shape[0] for kind, matrix in rows.items()}
    A = sp.vstack(
        [sp.hstack([np.hstack(link), -sp.eye(d)])]
        + [sp.hstack([matrix, sp.csr_matrix((heights[kind], d))]) for kind, matrix in rows.items()]
    ).tocsc()
    b = np.concatenate([target, *(block.b[kind] for kind in rows for block in blocks)])
    cones = [clarabel.ZeroConeT(d + heights["zero"]), clarabel.NonnegativeConeT(heights["positive"])]
    cones += [clarabel.ExponentialConeT()] * (heights["exponential"] // 3)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    found = clarabel.DefaultSolver(P, c, A, b, cones, settings).solve()
    assert str(found.status) in ("Solved", "AlmostSolved"), found.status
    return -found.obj_val


@dataclass
class _Block:
    """One example's rows ``A z + s = b`` by cone, its costs ``c``, and its quadratic form."""

    P: sp.spmatrix
    c: np.ndarray
    rows: dict[str, sp.spmatrix]
    b: dict[str, np.ndarray]


def _block(part: Part) -> _Block:
    """Variables: x, an epigraph for each of the predictor's choices, an entropy for each entry that has weight."""
    dim, choices = len(part.moments), len(part.costs)
    warm = np.flatnonzero(part.entropy)
    size = dim + choices + warm.size
    P, c = np.zeros((size, size)), np.zeros(size)
    c[dim : dim + choices] = -1.0
    c[dim + choices :] = -part.entropy[warm]
    mu, V = part.curve
    if mu:
        P[:dim, :dim] = mu * V @ V.T
        c[:dim] -= 0.5 * mu * V.sum(axis=1)
    zero = np.hstack([part.A, np.zeros((len(part.A), choices + warm.size))])
    positive = [np.hstack([-np.eye(dim), np.zeros((dim, choices + warm.size))])]
    for i, matrix in enumerate(part.costs):  # epigraph_i <= (L x)_a
        above = np.zeros((len(matrix), size))
        above[:, :dim], above[:, dim + i] = -matrix, 1.0
        positive.append(above)
    # (t, x, 1) in the exponential cone: t <= -x log x.
    exponential, ones = np.zeros((3 * warm.size, size)), np.tile([0.0, 0.0, 1.0], warm.size)
    for i, j in enumerate(warm):
        exponential[3 * i, dim + choices + i] = -1.0
        exponential[3 * i + 1, j] = -1.0
    positive_rows = np.vstack(positive)
    return _Block(
        sp.csc_matrix(P),
        c,
        {
            "zero": sp.csr_matrix(zero),
            "positive": sp.csr_matrix(positive_rows),
            "exponential": sp.csr_matrix(exponential),
        },
        {"zero": part.b, "positive": np.zeros(len(positive_rows)), "exponential": ones},
    )

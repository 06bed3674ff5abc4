"""The last layer of a parser on frozen features, trained in the published ways ([li2022]_, sec. 3 and 6).

Scores are bilinear, ``theta_dh = a_d' W b_h``, and losses sums over the tokens of a sentence, means over sentences.
*BiAF* is cross-entropy over the heads of each token; *Marginal* Frank-Wolfe on the dual of all sentences (equation 3);
*Stochastic* Adam on ``W`` with ten Frank-Wolfe steps for the adversary of each sentence; *Game* Adam with the double
oracle. Each yields the weights of its iterates, for the caller to choose from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn import games
from nashlearn.games.trees.best import best_tree, workspace
from nashlearn.games.trees.cuts import flow_scratch
from nashlearn.games.trees.projection import cut_scratch, project_tree
from nashlearn.solvers import double_oracle

__all__ = ["GAME_REPLIES", "LAYERS", "ArcViews", "best_trees_of"]

_EVERY = 20  # steps between two weights that are yielded
_INNER = 10  # Frank-Wolfe steps for one adversary
_RATE, _FIRST, _SECOND, _TINY = 1e-2, 0.9, 0.999, 1e-8  # of Adam, as published
_GAME_TOL, _GAME_BATCH, _BATCH = 1e-2, 10, 200
GAME_REPLIES = 40  # of the double oracle for one sentence: long ones would take minutes


class ArcViews:
    """Frozen features: of each sentence, tokens as dependents (n, k), root and tokens as heads (n + 1, k).

    The arcs of all sentences lie one after another, as :class:`nashlearn.games.batch.Batch` has them.
    """

    def __init__(self, dependents: Sequence[np.ndarray], heads: Sequence[np.ndarray]):
        self.sizes = np.array([len(one) for one in dependents], dtype=np.int64)
        self.shape = (dependents[0].shape[1], heads[0].shape[1])
        self.n_weights = self.shape[0] * self.shape[1]
        self.offset = np.concatenate([[0], np.cumsum(self.sizes * (self.sizes + 1))])
        self._dependents, self._heads = np.concatenate(dependents), np.concatenate(heads)
        self._first = np.concatenate([[0], np.cumsum(self.sizes)])

    def part(self, rows: np.ndarray) -> ArcViews:
        """Some of the sentences."""
        first = self._first
        tokens = [self._dependents[first[i] : first[i + 1]] for i in rows]
        return ArcViews(tokens, [self._heads[first[i] + i : first[i + 1] + i + 1] for i in rows])

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Scores of all arcs."""
        left, theta, first = self._dependents @ w.reshape(self.shape), np.empty(self.offset[-1]), self._first
        for i, n in enumerate(self.sizes):
            heads = self._heads[first[i] + i : first[i + 1] + i + 1]
            np.matmul(
                left[first[i] : first[i + 1]],
                heads.T,
                out=theta[self.offset[i] : self.offset[i + 1]].reshape(n, n + 1),
            )
        return theta

    def moments(self, x: np.ndarray, omega: np.ndarray | float = 1.0) -> np.ndarray:
        """``sum_i omega_i Phi_i' x_i``, ``omega`` being a number for each sentence or one for all."""
        x = x * np.repeat(np.broadcast_to(omega, self.sizes.shape), np.diff(self.offset))
        right, first = np.empty((len(self._dependents), self.shape[1])), self._first
        for i, n in enumerate(self.sizes):
            own = x[self.offset[i] : self.offset[i + 1]].reshape(n, n + 1)
            np.matmul(own, self._heads[first[i] + i : first[i + 1] + i + 1], out=right[first[i] : first[i + 1]])
        return (self._dependents.T @ right).ravel()

    def vertices(self, heads: Sequence[np.ndarray]) -> np.ndarray:
        """Trees as 0/1 entries of all arcs."""
        return np.concatenate([np.eye(len(y) + 1)[y].ravel() for y in heads])


@njit(cache=True, nogil=True)
def _best(theta, sizes, offset, heads, work):
    first = 0
    for i in range(sizes.size):
        n = sizes[i]
        best_tree(theta[offset[i] : offset[i + 1]].reshape(n, n + 1), n, True, heads[first : first + n], work)
        first += n


def best_trees_of(theta: np.ndarray, design: ArcViews) -> list[np.ndarray]:
    """Heads of the best tree with one root of each sentence."""
    heads = np.empty(design.sizes.sum(), np.int64)
    _best(theta, design.sizes, design.offset, heads, workspace(int(design.sizes.max())))
    return np.split(heads, np.cumsum(design.sizes)[:-1])


@njit(cache=True, nogil=True)
def _reply(q, n, mu, p, heads, work, cuts, flow):
    """The predictor's reply: the nearest tree mixture to ``q / mu``, a best tree of ``q`` without smoothing."""
    if mu > 0.0:
        for d in range(n):
            for h in range(n + 1):
                cuts.slope[d, h] = q[d, h] / mu
        wanted = cuts.slope[:n, : n + 1].copy()
        project_tree(wanted, n, True, p, heads, work, cuts, flow)
        return
    best_tree(q, n, True, heads, work)
    for d in range(n):
        for h in range(n + 1):
            p[d, h] = 1.0 if h == heads[d] else 0.0


@njit(cache=True, nogil=True)
def _ascend(theta, q, sizes, offset, mu, start, steps, work, cuts, flow):
    """Frank-Wolfe steps ``2 / (t + 2)``, ``t = start, ..``, for the adversaries ``q`` of all sentences at ``theta``."""
    most = sizes.max()
    heads, p, slope = np.empty(most, np.int64), np.empty((most, most + 1)), np.empty((most, most + 1))
    for i in range(sizes.size):
        n = sizes[i]
        own = q[offset[i] : offset[i + 1]].reshape(n, n + 1)
        scores = theta[offset[i] : offset[i + 1]].reshape(n, n + 1)
        for t in range(start, start + steps):
            _reply(own, n, mu, p, heads, work, cuts, flow)
            for d in range(n):
                for h in range(n + 1):
                    slope[d, h] = scores[d, h] - p[d, h] - mu * own[d, h]
            best_tree(slope, n, True, heads, work)
            gamma = 2.0 / (t + 2.0)
            for d in range(n):
                for h in range(n + 1):
                    own[d, h] += gamma * ((1.0 if h == heads[d] else 0.0) - own[d, h])


class _Scratch(NamedTuple):
    work: tuple
    cuts: tuple
    flow: tuple


def _scratch(n: int) -> _Scratch:
    return _Scratch(workspace(n), cut_scratch(n), flow_scratch(n))


class _Adam:
    def __init__(self, size: int):
        self.w, self.mean, self.square, self.t = np.zeros(size), np.zeros(size), np.zeros(size), 0

    def step(self, gradient: np.ndarray) -> None:
        self.t += 1
        self.mean += (1.0 - _FIRST) * (gradient - self.mean)
        self.square += (1.0 - _SECOND) * (gradient**2 - self.square)
        mean, square = self.mean / (1.0 - _FIRST**self.t), self.square / (1.0 - _SECOND**self.t)
        self.w -= _RATE * mean / (np.sqrt(square) + _TINY)


def _batches(n: int, size: int, steps: int) -> Iterator[np.ndarray]:
    """Batches of a permutation after another; all at once where there are few."""
    rng, left = np.random.default_rng(0), np.empty(0, np.int64)
    for _ in range(steps):
        if left.size < min(size, n):
            left = rng.permutation(n)
        yield left[:size]
        left = left[size:]


def marginal(design: ArcViews, heads: Sequence[np.ndarray], lam: float, mu: float, steps: int) -> Iterator[np.ndarray]:
    """Frank-Wolfe on the dual of all sentences."""
    truth, m = design.vertices(heads), design.sizes.size
    q, scratch = truth.copy(), _scratch(int(design.sizes.max()))
    for t in range(steps):
        w = -design.moments(q - truth) / (m * lam)
        if t and t % _EVERY == 0:
            yield w
        _ascend(design.scores(w), q, design.sizes, design.offset, mu, t, 1, *scratch)
    yield -design.moments(q - truth) / (m * lam)


def stochastic(
    design: ArcViews, heads: Sequence[np.ndarray], lam: float, mu: float, steps: int
) -> Iterator[np.ndarray]:
    """Adam on the weights, a few Frank-Wolfe steps for each adversary."""
    adam, scratch = _Adam(design.n_weights), _scratch(int(design.sizes.max()))
    for t, rows in enumerate(_batches(design.sizes.size, _BATCH, steps), 1):
        part = design.part(rows)
        truth = part.vertices([heads[i] for i in rows])
        q = truth.copy()
        _ascend(part.scores(adam.w), q, part.sizes, part.offset, mu, 0, _INNER, *scratch)
        adam.step(part.moments(q - truth) / rows.size + lam * adam.w)
        if t % _EVERY == 0:
            yield adam.w.copy()


def game(design: ArcViews, heads: Sequence[np.ndarray], lam: float, mu: float, steps: int) -> Iterator[np.ndarray]:
    """Adam on the weights, the double oracle for each game; without smoothing."""
    adam = _Adam(design.n_weights)
    for t, rows in enumerate(_batches(design.sizes.size, _GAME_BATCH, steps), 1):
        part = design.part(rows)
        theta, truth = part.scores(adam.w), part.vertices([heads[i] for i in rows])
        q = np.empty_like(theta)
        for i, n in enumerate(part.sizes):
            own, one = slice(part.offset[i], part.offset[i + 1]), games.arborescence(int(n), single_root=True)
            scores = theta[own].reshape(1, *one.shape)
            q[own] = double_oracle.solve(one, scores, tol=_GAME_TOL, max_iter=GAME_REPLIES).q.ravel()
        adam.step(part.moments(q - truth) / rows.size + lam * adam.w)
        if t % _EVERY == 0:
            yield adam.w.copy()


@njit(cache=True, nogil=True)
def _softmax(theta, sizes, offset):
    """Each row's scores become its probabilities; a token is never its own head."""
    for i in range(sizes.size):
        n = sizes[i]
        own = theta[offset[i] : offset[i + 1]].reshape(n, n + 1)
        for d in range(n):
            own[d, d + 1] = -np.inf
            own[d] = np.exp(own[d] - own[d].max())
            own[d] /= own[d].sum()


def cross_entropy(
    design: ArcViews, heads: Sequence[np.ndarray], lam: float, mu: float, steps: int
) -> Iterator[np.ndarray]:
    """Adam on the mean over tokens of the cross-entropy over heads; ``lam`` is 0 as published."""
    adam = _Adam(design.n_weights)
    for t, rows in enumerate(_batches(design.sizes.size, _BATCH, steps), 1):
        part = design.part(rows)
        share = part.scores(adam.w)
        _softmax(share, part.sizes, part.offset)
        truth = part.vertices([heads[i] for i in rows])
        adam.step(part.moments(share - truth) / part.sizes.sum() + lam / part.sizes.mean() * adam.w)
        if t % _EVERY == 0:
            yield adam.w.copy()


LAYERS = {"biaf": cross_entropy, "marginal": marginal, "stochastic": stochastic, "game": game}

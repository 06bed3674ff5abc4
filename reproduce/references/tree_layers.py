"""The last layer of a parser on frozen features, trained in the published ways ([li2022]_, sec. 3 and 6).

Scores are bilinear, ``theta_dh = a_d' W b_h``, and losses sums over the tokens of a sentence, means over sentences.
*BiAF* is cross-entropy over the heads of each token; *Marginal* Frank-Wolfe on the dual of all sentences (equation 3);
*Stochastic* Adam on ``W`` with ten Frank-Wolfe steps for the adversary of each sentence; *Game* Adam with the double
oracle. Each yields the weights of its iterates, for the caller to choose from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nashlearn import games
from nashlearn.kernels.tree_map import best_trees
from nashlearn.kernels.tree_projection import project_trees
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


def _by_length(design: ArcViews) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Lengths, which sentences have them, and the indices (sentences, n, n + 1) of their arcs."""
    for n in np.unique(design.sizes).tolist():
        rows = np.flatnonzero(design.sizes == n)
        yield n, rows, design.offset[rows][:, None, None] + np.arange(n * (n + 1)).reshape(n, n + 1)


def _best(scores: np.ndarray) -> np.ndarray:
    """Heads of the best tree with one root for each of ``scores`` (b, n, n + 1)."""
    heads = np.empty(scores.shape[:2], np.intp)
    best_trees(scores, True, heads, np.empty(len(scores), np.bool_))
    return heads


def best_trees_of(theta: np.ndarray, design: ArcViews) -> list[np.ndarray]:
    """Heads of the best tree with one root of each sentence."""
    found: dict[int, np.ndarray] = {}
    for _, rows, arcs in _by_length(design):
        found.update(zip(rows.tolist(), _best(theta[arcs]), strict=True))
    return [found[i] for i in range(design.sizes.size)]


def _reply(q: np.ndarray, mu: float) -> np.ndarray:
    """The predictor's replies: the nearest tree mixtures to ``q / mu``, best trees of ``q`` without smoothing."""
    if mu > 0.0:
        p = np.empty_like(q)
        project_trees(q / mu, True, p, np.empty(len(q)))
        return p
    return np.eye(q.shape[2])[_best(q)]


def _ascend(theta: np.ndarray, q: np.ndarray, design: ArcViews, mu: float, start: int, steps: int) -> None:
    """Frank-Wolfe steps ``2 / (t + 2)``, ``t = start, ..``, for the adversaries ``q`` of all sentences at ``theta``."""
    for n, _, arcs in _by_length(design):
        own, scores = q[arcs], theta[arcs]
        for t in range(start, start + steps):
            vertices = np.eye(n + 1)[_best(scores - _reply(own, mu) - mu * own)]
            own += 2.0 / (t + 2.0) * (vertices - own)
        q[arcs] = own


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
    q = truth.copy()
    for t in range(steps):
        w = -design.moments(q - truth) / (m * lam)
        if t and t % _EVERY == 0:
            yield w
        _ascend(design.scores(w), q, design, mu, t, 1)
    yield -design.moments(q - truth) / (m * lam)


def stochastic(
    design: ArcViews, heads: Sequence[np.ndarray], lam: float, mu: float, steps: int
) -> Iterator[np.ndarray]:
    """Adam on the weights, a few Frank-Wolfe steps for each adversary."""
    adam = _Adam(design.n_weights)
    for t, rows in enumerate(_batches(design.sizes.size, _BATCH, steps), 1):
        part = design.part(rows)
        truth = part.vertices([heads[i] for i in rows])
        q = truth.copy()
        _ascend(part.scores(adam.w), q, part, mu, 0, _INNER)
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


def _softmax(theta: np.ndarray, design: ArcViews) -> None:
    """Each row's scores become its probabilities; a token is never its own head."""
    for n, _, arcs in _by_length(design):
        own = theta[arcs]
        own[:, np.arange(n), np.arange(n) + 1] = -np.inf
        own = np.exp(own - own.max(axis=2, keepdims=True))
        theta[arcs] = own / own.sum(axis=2, keepdims=True)


def cross_entropy(
    design: ArcViews, heads: Sequence[np.ndarray], lam: float, mu: float, steps: int
) -> Iterator[np.ndarray]:
    """Adam on the mean over tokens of the cross-entropy over heads; ``lam`` is 0 as published."""
    adam = _Adam(design.n_weights)
    for t, rows in enumerate(_batches(design.sizes.size, _BATCH, steps), 1):
        part = design.part(rows)
        share = part.scores(adam.w)
        _softmax(share, part)
        truth = part.vertices([heads[i] for i in rows])
        adam.step(part.moments(share - truth) / part.sizes.sum() + lam / part.sizes.mean() * adam.w)
        if t % _EVERY == 0:
            yield adam.w.copy()


LAYERS = {"biaf": cross_entropy, "marginal": marginal, "stochastic": stochastic, "game": game}

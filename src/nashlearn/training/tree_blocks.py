"""Training on trees with many sparse features: block-coordinate Frank-Wolfe on the dual, one sentence a block::

    D(q) = sum_i omega_i H(q_i) - alpha/2 |w(q)|^2,    w(q) = -1/alpha sum_i omega_i Phi_i'(q_i - y_i),

with ``H(q) = min_p <p, L q>``. A step solves the game of a sentence at the current scores, moves ``q_i`` towards the
adversary's strategy by exact line search (``H`` is concave, so interpolating it bounds it from below), and keeps
``w = w(q)``: it never lowers the dual, needs no step size and touches only the weights of the arcs that moved
[lacostejulien2013]_. The weights returned are the last, or their average that weighs later ones more, whichever is
better. The games of a batch are solved in threads at the same weights, then the steps are taken one after another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.games.threads import in_threads
from nashlearn.games.tree_entries import tree_scratch
from nashlearn.games.tree_game import solve_tree, tree_entropy
from nashlearn.training.checkpoint import Checkpoint, pack_generator, unpack_generator
from nashlearn.training.hashed_arcs import WIDTH, Attributes, arc_indices, scale_of, score_sentence
from nashlearn.training.missing_heads import completed, known_share, known_weights
from nashlearn.training.progress import Progress, Round

__all__ = ["BlockResult", "play_games", "train_blocks"]

_BATCH = 64
_INNER = 1e-5  # accuracy of the games: steps need no better reply,
_FINAL = 1e-8  # certificates do


class BlockResult(NamedTuple):
    """Weights, their mean loss, objective and relative duality gap, the passes taken, and what each has shown."""

    w: np.ndarray
    loss: float
    objective: float
    dual_gap: float
    n_iter: int
    rounds: list[Round]


@njit(cache=True, nogil=True)
def _reply_entropy(q, n, single_root, s):
    """Round small entries of ``q`` (n, n + 1) away; ``min_p <p, L q>``, which is ``n`` less the best tree's hits."""
    for d in range(n):
        total = 0.0
        for h in range(n + 1):
            if q[d, h] < 1e-6:
                q[d, h] = 0.0
            total += q[d, h]
        for h in range(n + 1):
            q[d, h] /= total
    return tree_entropy(q, n, single_root, s)


@njit(cache=True, nogil=True)
def play_games(w, data, part, offset, single_root, tol, truth, theta, reply, entropy, upper, s):
    """Games of the sentences ``part`` at ``w``: scores, adversary's replies, their entropies, and upper values.

    Any convex loss ``max_q <theta, q> + H(q) - <theta, y>`` with concave ``H`` can take its place; ``truth`` is ``y``.
    """
    index = np.empty(WIDTH, np.uint32)
    for i in part:
        n = data.size[i]
        scores = theta[offset[i] : offset[i + 1]].reshape(n, n + 1, 1)
        score_sentence(w, data.code, data.tag, data.first[i], n, data.bits, scores[:, :, 0], index)
        p, q = np.empty((n, n + 1, 1)), reply[offset[i] : offset[i + 1]].reshape(n, n + 1, 1)
        value, gap = solve_tree(scores, np.ones(n), 0.0, n, single_root, tol, p, q, s)
        upper[i] = value + gap
        entropy[i] = _reply_entropy(q[:, :, 0], n, single_root, s)


@njit(cache=True, nogil=True)
def _step(w, data, part, offset, omega, alpha, reply, reply_entropy, q, entropy, change, mark, touched):
    """Line search and step of each sentence of ``part`` in turn; the gaps seen, summed."""
    index = np.empty(WIDTH, np.uint32)
    gaps = 0.0
    for i in part:
        n = data.size[i]
        new = reply[offset[i] : offset[i + 1]].reshape(n, n + 1)
        old = q[offset[i] : offset[i + 1]].reshape(n, n + 1)
        count = 0
        for d in range(n):
            for h in range(n + 1):
                move = (new[d, h] - old[d, h]) * scale_of() * omega[i] / alpha
                if move != 0.0:
                    m = arc_indices(data.code, data.tag, data.first[i], d + 1, h, data.bits, index)
                    for j in range(m):
                        if mark[index[j]] != i + 1:
                            mark[index[j]] = i + 1
                            change[index[j]] = 0.0
                            touched[count] = index[j]
                            count += 1
                        change[index[j]] -= move
        norm, slope = 0.0, omega[i] * (reply_entropy[i] - entropy[i])
        for t in range(count):
            c = change[touched[t]]
            norm += c * c
            slope -= alpha * w[touched[t]] * c
            mark[touched[t]] = 0
        if slope <= 0.0:
            continue
        gaps += slope
        gamma = 1.0 if norm == 0.0 else min(1.0, slope / (alpha * norm))
        for t in range(count):
            w[touched[t]] += gamma * change[touched[t]]
        for d in range(n):
            for h in range(n + 1):
                old[d, h] += gamma * (new[d, h] - old[d, h])
        entropy[i] += gamma * (reply_entropy[i] - entropy[i])
    return gaps


@njit(cache=True, nogil=True)
def _add_arcs(w, data, offset, scale, x):
    """``w += sum_i scale_i Phi_i' x_i``."""
    index = np.empty(WIDTH, np.uint32)
    for i in range(data.size.size):
        n = data.size[i]
        own = x[offset[i] : offset[i + 1]].reshape(n, n + 1)
        for d in range(n):
            for h in range(n + 1):
                if own[d, h] != 0.0:
                    m = arc_indices(data.code, data.tag, data.first[i], d + 1, h, data.bits, index)
                    for j in range(m):
                        w[index[j]] += scale[i] * own[d, h] * scale_of()


class _Games:
    """The games of a labelled treebank at given weights."""

    def __init__(
        self,
        data: Attributes,
        heads: list[np.ndarray],
        omega: np.ndarray,
        single_root: bool,
        n_jobs: int,
        play: Callable[..., None],
    ):
        self.data, self.omega, self.single_root, self.n_jobs, self._play = data, omega, single_root, n_jobs, play
        self.offset = np.concatenate([[0], np.cumsum(data.size * (data.size + 1))])
        self.true_arcs, rate = self._arcs(heads), known_share(known_weights(heads, omega))
        self.truth = np.zeros(self.offset[-1])
        self.truth[self.true_arcs] = 1.0 / rate
        self.share = np.repeat(omega, [np.count_nonzero(y >= 0) for y in heads]) / rate
        self.theta, self.reply = np.empty(self.offset[-1]), np.empty(self.offset[-1])
        self.entropy, self.upper = np.zeros(data.size.size), np.zeros(data.size.size)
        self._scratch = [tree_scratch(int(data.size.max())) for _ in range(n_jobs)]

    def _arcs(self, heads: list[np.ndarray]) -> np.ndarray:
        """Where the known arcs of all sentences lie."""
        known = [
            start + (np.arange(len(y)) * (len(y) + 1) + y)[y >= 0] for start, y in zip(self.offset, heads, strict=False)
        ]
        return np.concatenate(known)

    def first_reply(self, heads: list[np.ndarray]) -> np.ndarray:
        """A tree for each sentence with the heads that are known."""
        trees = [y if (y >= 0).all() else completed(y, self.single_root) for y in heads]
        q = np.zeros(self.offset[-1])
        q[self._arcs([tree for tree in trees if tree is not None])] = 1.0
        return q

    def play(self, w: np.ndarray, part: np.ndarray, tol: float) -> None:
        """Solve the games of the sentences ``part``, longest first so that threads end together."""
        part = part[np.argsort(-self.data.size[part], kind="stable")]
        pools = [part[j :: self.n_jobs] for j in range(self.n_jobs)]

        def work(start: int, stop: int) -> None:
            for j in range(start, stop):
                arrays = self.truth, self.theta, self.reply, self.entropy, self.upper, self._scratch[j]
                self._play(w, self.data, pools[j], self.offset, self.single_root, tol, *arrays)

        in_threads(work, self.n_jobs, self.n_jobs)

    def loss(self, w: np.ndarray) -> float:
        """Mean loss at ``w``, from above."""
        self.play(w, np.arange(self.data.size.size), _FINAL)
        return float(self.omega @ self.upper - self.share @ self.theta[self.true_arcs])


def train_blocks(
    data: Attributes,
    heads: list[np.ndarray],
    omega: np.ndarray,
    alpha: float,
    *,
    single_root: bool,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    n_jobs: int = 1,
    verbose: int = 0,
    play: Callable[..., None] = play_games,
    max_time: float | None = None,
    callback: Callable[[Round], object] | None = None,
    checkpoint: Checkpoint | None = None,
) -> BlockResult:
    """Train on sentences with true ``heads``; ``omega`` is the weight of a token of each sentence in the mean loss.

    Ends after ``max_iter`` passes or ``max_time`` seconds, or at a relative duality gap of ``tol``, or warns. ``play``
    answers the loss of sentences, that of the game unless told otherwise.
    """
    games = _Games(data, heads, omega, single_root, n_jobs, play)
    progress = Progress(tol, max_iter, verbose, max_time=max_time, callback=callback, checkpoint=checkpoint)
    n_weights = 1 << data.bits
    w, average, change = np.zeros(n_weights), np.zeros(n_weights), np.zeros(n_weights)
    mark = np.zeros(n_weights, np.int64)
    touched = np.empty(min(n_weights, WIDTH * int(data.size.max() * (data.size.max() + 1))), np.int64)
    q, entropy = games.first_reply(heads), np.zeros(data.size.size)
    _add_arcs(w, data, games.offset, omega / alpha, games.truth - q)
    average[:] = w
    taken, goal = 0, tol
    if (saved := progress.resume("blocks")) is not None:
        w[:], average[:], q[:], entropy[:] = saved["w"], saved["average"], saved["q"], saved["entropy"]
        taken, goal = int(saved["taken"]), min(float(saved["goal"]), tol)
        unpack_generator(rng, saved["rng"])
    dual = _dual(w, entropy, omega, alpha)
    try:
        while not progress.done:
            seen = 0.0
            order = rng.permutation(data.size.size)
            for start in range(0, order.size, _BATCH):
                part = order[start : start + _BATCH]
                games.play(w, part, _INNER)
                arrays = games.reply, games.entropy, q, entropy, change, mark, touched
                seen += _step(w, data, part, games.offset, omega, alpha, *arrays)
                taken += 1
                average += (2.0 / (taken + 1.0)) * (w - average)
                if progress.late:
                    break
            progress.n_iter += 1
            dual = _dual(w, entropy, omega, alpha)
            if progress.n_iter == max_iter or progress.late or seen <= goal * abs(dual + seen):
                # Gaps met on the way are an estimate; a certificate costs two passes, so the next waits for half.
                progress.offer(*_certified(games, (average, w), alpha), dual)
                goal *= 0.5
            else:
                progress.offer(w, np.inf, dual)
            if progress.saves():
                progress.save(
                    "blocks", w=w, average=average, q=q, entropy=entropy, taken=taken, goal=goal,
                    rng=pack_generator(rng),
                )  # fmt: skip
    except KeyboardInterrupt:
        progress.keep(*_certified(games, (average, w), alpha), dual)
        progress.interrupted()
    progress.warn_unless(tol, lambda: "Raise max_iter, alpha or tol.", unit="passes")
    loss = progress.primal - 0.5 * alpha * float(progress.w @ progress.w)
    return BlockResult(progress.w, loss, progress.primal, progress.gap, progress.n_iter, progress.rounds)


def _dual(w: np.ndarray, entropy: np.ndarray, omega: np.ndarray, alpha: float) -> float:
    """The dual objective, where ``w`` is ``w(q)`` and ``entropy`` bounds that of ``q`` from below."""
    return float(omega @ entropy) - 0.5 * alpha * float(w @ w)


def _certified(games: _Games, candidates: tuple[np.ndarray, ...], alpha: float) -> tuple[np.ndarray, float]:
    """The weights of the lowest objective, and that."""
    values = [games.loss(w) + 0.5 * alpha * float(w @ w) for w in candidates]
    best = int(np.argmin(values))
    return candidates[best], values[best]

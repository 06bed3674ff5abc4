"""Training on trees with many sparse features: ascent on the dual, one sentence a block::

    D(q) = sum_i omega_i H(q_i) - alpha/2 |w(q)|^2,    w(q) = -1/alpha sum_i omega_i Phi_i'(q_i - y_i),

with ``H(q) = min_p <p, L q>``. A step solves the game of a sentence at the current scores, moves ``q_i`` to the best
mixture of the adversary's strategy and of earlier ones (:mod:`nashlearn.training.methods.block_replies`;
block-coordinate Frank-Wolfe [lacostejulien2013]_ where memory allows for one only), and keeps ``w = w(q)``: it never
lowers the dual,
needs no step size and touches only the weights of the arcs in use. The weights returned are the last, or their average
that weighs later ones more, whichever is better. The games of a batch are solved in threads at the same weights, then
the steps are taken one after another.

Strategies found by an interior point method lie in the polytope up to its accuracy. So the dual that is reported is not
that of the steps: it is evaluated anew at the mixtures, moved into the polytope (:mod:`nashlearn.games.trees.inside`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from nashlearn.games.trees.entries import TreeScratch, tree_scratch
from nashlearn.games.trees.equilibrium import solve_tree, tree_entropy
from nashlearn.games.trees.inside import into_polytope
from nashlearn.solvers.threads import in_threads
from nashlearn.training.checkpoint import Checkpoint, pack_generator, unpack_generator
from nashlearn.training.designs.hashed_arcs import WIDTH, Attributes, arc_indices, scale_of, score_sentence
from nashlearn.training.methods.block_replies import Replies, no_replies, visit
from nashlearn.training.missing_heads import completed, known_share, known_weights
from nashlearn.training.progress import Progress, Round

__all__ = ["BlockResult", "play_games", "train_blocks"]

_BATCH = 64
_INNER = 1e-6  # accuracy of the games: steps need no better reply at first,
_FINAL = 1e-10  # certificates do
_SHARPER = 1e-3  # than the objective times ``tol`` by this factor, on the way
_FAINT = 1e-9  # entries of replies that are left out


class BlockResult(NamedTuple):
    """Weights, their mean loss, objective and relative duality gap, the passes taken, and what each has shown."""

    w: np.ndarray
    loss: float
    objective: float
    dual_gap: float
    n_iter: int
    rounds: list[Round]


@njit(cache=True, nogil=True)
def _without_faint(q, n):
    """Leave the smallest entries of ``q`` (n, n + 1) out, whose features would cost as much as those of others."""
    for d in range(n):
        total = 0.0
        for h in range(n + 1):
            if q[d, h] < _FAINT:
                q[d, h] = 0.0
            total += q[d, h]
        for h in range(n + 1):
            q[d, h] /= total


@njit(cache=True, nogil=True)
def _inside(q, size, offset, single_root, part, share, s):
    """Move the dual points of the sentences ``part`` into the polytope; the share of each that was replaced."""
    for i in part:
        own = q[offset[i] : offset[i + 1]].reshape(size[i], size[i] + 1)
        share[i] = into_polytope(own, size[i], single_root, s.cuts.members, s.flow)


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
        _without_faint(q[:, :, 0], n)
        entropy[i] = tree_entropy(q[:, :, 0], n, single_root, s)


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
        self.every = np.arange(data.size.size)
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
        """Solve the games of the sentences ``part``."""

        def work(part: np.ndarray, scratch: TreeScratch) -> None:
            arrays = self.truth, self.theta, self.reply, self.entropy, self.upper, scratch
            self._play(w, self.data, part, self.offset, self.single_root, tol, *arrays)

        self._in_threads(work, part)

    def _in_threads(self, work: Callable[[np.ndarray, TreeScratch], None], part: np.ndarray) -> None:
        """Call ``work`` with parts of the sentences ``part``, longest first so that threads end together."""
        part = part[np.argsort(-self.data.size[part], kind="stable")]
        pools = [part[j :: self.n_jobs] for j in range(self.n_jobs)]

        def some(start: int, stop: int) -> None:
            for j in range(start, stop):
                work(pools[j], self._scratch[j])

        in_threads(some, self.n_jobs, self.n_jobs)

    def loss(self, w: np.ndarray) -> float:
        """Mean loss at ``w``, from above."""
        self.play(w, self.every, _FINAL)
        return float(self.omega @ self.upper - self.share @ self.theta[self.true_arcs])

    def certified(self, candidates: tuple[np.ndarray, ...], alpha: float) -> tuple[np.ndarray, float]:
        """The weights of the lowest objective, and that."""
        values = [self.loss(w) + 0.5 * alpha * float(w @ w) for w in candidates]
        best = int(np.argmin(values))
        return candidates[best], values[best]

    def dual(self, kept: Replies, alpha: float) -> float:
        """The dual objective at the mixtures, moved into the polytope: a bound of every objective.

        Entropies are concave and not negative, so those of the mixtures lose at most the share that was replaced.
        """
        q, share = kept.mixture(self.offset), np.empty(self.data.size.size)

        def work(part: np.ndarray, scratch: TreeScratch) -> None:
            _inside(q, self.data.size, self.offset, self.single_root, part, share, scratch)

        self._in_threads(work, self.every)
        w = np.zeros(1 << self.data.bits)
        _add_arcs(w, self.data, self.offset, self.omega / alpha, self.truth - q)
        return float(self.omega @ ((1.0 - share) * kept.secured())) - 0.5 * alpha * float(w @ w)


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
    progress = Progress(
        tol,
        max_iter,
        verbose,
        max_time=max_time,
        callback=callback,
        checkpoint=checkpoint,
        bound=0.0 if all((y >= 0).all() for y in heads) else -np.inf,
    )
    n_weights = 1 << data.bits
    w, average, change = np.zeros(n_weights), np.zeros(n_weights), np.zeros(n_weights)
    kept, first = no_replies(games.offset), games.first_reply(heads)
    _add_arcs(w, data, games.offset, omega / alpha, games.truth - first)
    visit(w, data, games.every, games.offset, omega, alpha, first, np.zeros(games.every.size), kept, change)
    average[:] = w
    taken, goal = 0, tol
    if (saved := progress.resume("blocks")) is not None:
        w[:], average[:] = saved["w"], saved["average"]
        for mine, theirs in zip(kept, (saved[name] for name in kept._fields), strict=True):
            mine[:] = theirs
        taken, goal = int(saved["taken"]), min(float(saved["goal"]), tol)
        unpack_generator(rng, saved["rng"])
    try:
        while not progress.done:
            seen, reached = 0.0, _reached(w, kept, omega, alpha)
            inner = np.clip(_SHARPER * tol * abs(reached), _FINAL, _INNER) if reached else _INNER
            order = rng.permutation(games.every)
            for start in range(0, order.size, _BATCH):
                part = order[start : start + _BATCH]
                games.play(w, part, inner)
                seen += visit(w, data, part, games.offset, omega, alpha, games.reply, games.entropy, kept, change)
                taken += 1
                average += (2.0 / (taken + 1.0)) * (w - average)
                if progress.late:
                    break
            progress.n_iter += 1
            reached = _reached(w, kept, omega, alpha)
            if progress.n_iter == max_iter or progress.late or seen <= goal * abs(reached + seen):
                # Gaps met on the way are an estimate; a certificate costs two passes, so the next waits for half.
                progress.offer(*games.certified((average, w), alpha), games.dual(kept, alpha))
                goal *= 0.5
            else:
                progress.offer(w, np.inf, -np.inf)
            if progress.saves():
                progress.save(
                    "blocks", w=w, average=average, taken=taken, goal=goal, rng=pack_generator(rng), **kept._asdict()
                )
    except KeyboardInterrupt:
        progress.keep(*games.certified((average, w), alpha), games.dual(kept, alpha))
        progress.interrupted()
    progress.warn_unless(tol, lambda: "Raise max_iter, alpha or tol.", unit="passes")
    loss = progress.primal - 0.5 * alpha * float(progress.w @ progress.w)
    return BlockResult(progress.w, loss, progress.primal, progress.gap, progress.n_iter, progress.rounds)


def _reached(w: np.ndarray, kept: Replies, omega: np.ndarray, alpha: float) -> float:
    """The dual objective of the steps, where ``w`` is that of the mixtures: an estimate, up to the games' accuracy."""
    return float(omega @ kept.secured()) - 0.5 * alpha * float(w @ w)

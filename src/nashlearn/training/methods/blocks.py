"""Training on trees with many sparse features: ascent on the dual, one sentence a block::

    D(q) = sum_i omega_i H(q_i) - alpha/2 |w(q)|^2,    w(q) = -1/alpha sum_i omega_i Phi_i'(q_i - y_i),

with ``H(q) = min_p <p, L q>``. A step solves the game of a sentence at the current scores, moves ``q_i`` to the best
mixture of the adversary's strategy and of earlier ones (:mod:`nashlearn.training.methods.block_replies`;
block-coordinate Frank-Wolfe [lacostejulien2013]_ where memory allows for one only), and keeps ``w = w(q)``: it never
lowers the dual, needs no step size and touches only the weights of the arcs in use. The weights returned are the last,
or their average that weighs later ones more, whichever is better. The games of a batch are solved in threads at the
same weights, then the steps are taken one after another.

The dual that is reported is not that of the steps: it is evaluated anew at the mixtures, moved into the polytope, which
rounding may have made them leave (``nashlearn.kernels.tree_inside``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nashlearn.game import Game
from nashlearn.games.batch import Batch
from nashlearn.kernels.block_replies import without_faint
from nashlearn.kernels.tree_inside import move_inside
from nashlearn.solvers.threads import in_threads
from nashlearn.training.designs.arcs import tree_games
from nashlearn.training.designs.hashed_arcs import HashedArcs
from nashlearn.training.driver import Method, Offer, Run
from nashlearn.training.methods.block_replies import Replies, Visits, no_replies
from nashlearn.training.missing_heads import completed, known_arcs
from nashlearn.training.objective import GameProblem

__all__ = ["BlockProblem", "Blocks"]

_BATCH = 64
_AVERAGED = 1 << 20  # weights that are averaged after every batch; of twice as many after every second
_PIECE = 1 << 18  # weights that a thread works on at a time, where all are
_INNER = 1e-6  # accuracy of the games: steps need no better reply at first,
_FINAL = 1e-10  # certificates do
_SHARPER = 1e-3  # than the objective times ``tol`` by this factor, on the way


class BlockProblem(GameProblem):
    """The training problem of hashed sentences with true heads.

    Parameters
    ----------
    design : HashedArcs
    heads : sequence of int arrays
        -1 where missing, see :mod:`nashlearn.training.missing_heads`.
    omega : ndarray (n_sentences,)
        Weight of a token of each sentence in the mean loss.
    single_root : bool
    known : float
        Share of heads that are known.
    tol, n_jobs
        See ``nashlearn.training.objective.GameProblem``.
    games : sequence of Game, optional
        One for each sentence, where its loss is another than that of the game over trees: any convex
        ``max_q <theta, q> + H(q) - <theta, y>`` with concave, non-negative ``H``.
    """

    games: Batch
    design: HashedArcs

    def __init__(
        self,
        design: HashedArcs,
        heads: Sequence[np.ndarray],
        omega: np.ndarray,
        single_root: bool,
        *,
        known: float = 1.0,
        tol: float = _FINAL,
        n_jobs: int | None = None,
        games: Sequence[Game] | None = None,
    ):
        batch = tree_games([len(y) for y in heads], single_root) if games is None else Batch(games)
        whole = np.minimum.reduceat(np.concatenate(heads), np.cumsum([0, *map(len, heads[:-1])])) >= 0
        complete, moments = bool(whole.all()), design.moments(known_arcs(heads) / known, omega, n_jobs)
        super().__init__(design, batch, moments, omega, tol=tol, n_jobs=n_jobs, complete=complete)
        trees = [
            y if all_known else completed(y, single_root) for y, all_known in zip(heads, whole.tolist(), strict=True)
        ]
        self.first = known_arcs([tree for tree in trees if tree is not None])  # a tree of each, with its known heads
        self.visits = Visits(design.sentences, n_jobs)
        self.single_root, self._known = single_root, complete and known == 1.0

    def opening(self, alpha: float) -> np.ndarray:
        """The weights ``w(q)`` of the first trees: 0 where these are all that labels say."""
        return np.zeros(self.n_weights) if self._known else self._weights(self.first, alpha)

    def _weights(self, q: np.ndarray, alpha: float) -> np.ndarray:
        """``w(q)``, in the memory of the moments: they may be many megabytes."""
        w = self.design.moments(q, self.omega, self.n_jobs)

        def finish(cut: slice) -> None:
            np.subtract(self.moments[cut], w[cut], out=w[cut])
            w[cut] /= alpha

        self._by_pieces(finish)
        return w

    def _by_pieces(self, work: Callable[[slice], object]) -> None:
        """Work on all weights, in pieces that stay in the cache."""

        def pieces(first: int, last: int) -> None:
            for at in range(first, last):
                work(slice(at * _PIECE, (at + 1) * _PIECE))

        in_threads(pieces, -(-self.n_weights // _PIECE), self.n_jobs)

    def dot(self, v: np.ndarray, w: np.ndarray) -> float:
        """``<v, w>`` of two vectors of weights, the same for any number of threads."""
        found = np.empty(-(-self.n_weights // _PIECE))

        def product(cut: slice) -> None:
            found[cut.start // _PIECE] = v[cut] @ w[cut]

        self._by_pieces(product)
        return float(found.sum())

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Those of all arcs at ``w``, one sentence after another."""
        return self.design.scores(w, n_jobs=self.n_jobs)

    def replies(self, w: np.ndarray, part: np.ndarray, tol: float, reply: np.ndarray, entropy: np.ndarray) -> None:
        """Write the adversary's replies to the sentences ``part`` at ``w``, and what they secure."""
        scores = self.design.scores(w, part, self.n_jobs)
        found = self.games.part(part).solve(scores, tol=tol, n_jobs=self.n_jobs)
        entropy[part] = found.entropy
        without_faint(self.design.sentences, found.q, part, self.games.offset, reply, entropy)

    def towards(self, average: np.ndarray, w: np.ndarray, share: float) -> None:
        """Move ``average`` that share of the way to ``w``."""

        def move(cut: slice) -> None:
            step = w[cut] - average[cut]
            step *= share
            average[cut] += step

        self._by_pieces(move)

    def objective(self, w: np.ndarray, alpha: float) -> float:
        """The objective at ``w``, from above."""
        found = self.play(w, 0.0)
        loss = float(self.omega @ (found.value + found.gap)) - self.dot(w, self.moments)
        return loss + 0.5 * alpha * self.dot(w, w)

    def dual(self, kept: Replies, alpha: float) -> float:
        """The dual objective at the mixtures, moved into the polytope: a bound of every objective.

        Entropies are concave and not negative, so those of the mixtures lose at most the share that was replaced.
        """
        size, offset = self.design.attributes.size, self.games.offset
        q, share = kept.mixture(offset, self.n_jobs), np.empty(size.size)

        def inside(first: int, last: int) -> None:
            own, bounds = slice(first, last), offset[first : last + 1]
            move_inside(q[bounds[0] : bounds[-1]], size[own], bounds - bounds[0], self.single_root, share[own])

        in_threads(inside, size.size, self.n_jobs)
        w = self._weights(q, alpha)
        return float(self.omega @ ((1.0 - share) * kept.secured())) - 0.5 * alpha * self.dot(w, w)


@dataclass
class BlockState:
    """The weights of the mixtures, their average, the mixtures, and when to certify next.

    Attributes
    ----------
    w, average : ndarray (n_weights,)
    kept : Replies
    taken : int
        Weights that the average is of: those after a batch, where these are few, else after some of them.
    goal : float
        Estimated gap at which the next certificate is taken: one costs two passes.
    """

    phase: ClassVar[str] = "blocks"
    w: np.ndarray
    average: np.ndarray
    kept: Replies
    goal: float
    taken: int = 0
    over: bool = False


class Blocks(Method):
    """Block-coordinate ascent on the dual, sentence by sentence."""

    needs = (
        "design",
        "games",
        "moments",
        "omega",
        "first",
        "opening",
        "replies",
        "objective",
        "dual",
        "dot",
        "complete",
    )
    states = (BlockState,)
    unit = "passes"

    def init(self, run: Run) -> tuple[BlockState, Offer | None]:
        """The dual point of true trees."""
        problem, alpha = run.problem, run.alpha
        w = problem.opening(alpha)
        kept, every = no_replies(problem.games.offset), np.arange(len(problem.games))
        no_entropy, offset = np.zeros(every.size), problem.games.offset
        problem.visits.take(w, every, offset, problem.omega, alpha, problem.first, no_entropy, kept)
        return BlockState(w, np.zeros(w.size), kept, run.tol), None  # the first weights that count are all its average

    def update(self, run: Run, state: BlockState) -> tuple[BlockState, Offer | None]:
        """A pass over all sentences, and a certificate where the gaps met on the way promise one."""
        problem, progress = run.problem, run.progress
        w, kept = state.w, state.kept
        visits, offset = problem.visits, problem.games.offset
        reply, entropy = np.empty(offset[-1]), np.zeros(len(problem.games))
        seen, reached = 0.0, _reached(run, state)
        inner = float(np.clip(_SHARPER * run.tol * abs(reached), _FINAL, _INNER)) if reached else _INNER
        order, every = run.rng.permutation(len(problem.games)), max(1, w.size // _AVERAGED)
        for start in range(0, order.size, _BATCH):
            part = order[start : start + _BATCH]
            problem.replies(w, part, inner, reply, entropy)
            seen += visits.take(w, part, offset, problem.omega, run.alpha, reply, entropy, kept)
            over = progress.late or start + _BATCH >= order.size
            if over or (start // _BATCH + 1) % every == 0:
                state.taken += 1
                problem.towards(state.average, w, 2.0 / (state.taken + 1.0))
            if over:
                break
        progress.n_iter += 1
        likely = abs(_reached(run, state) + seen)
        progress.expect(seen / likely if likely else np.inf)
        near = seen <= state.goal * likely
        if near or progress.n_iter == progress.max_iter or progress.late:
            state.goal *= 0.5
            return state, self._certified(run, state)
        return state, Offer(w, np.inf, -np.inf)

    def _certified(self, run: Run, state: BlockState) -> Offer:
        """The better of the last weights and their average."""
        found = [(run.problem.objective(w, run.alpha), w) for w in (state.average, state.w)]
        value, w = min(found, key=lambda one: one[0])
        return Offer(w, value, run.problem.dual(state.kept, run.alpha))

    def resumed(self, run: Run, state: BlockState) -> None:
        """A smaller tolerance is a smaller goal."""
        state.goal = min(state.goal, run.tol)

    def rescue(self, run: Run, state: BlockState | None) -> Offer | None:
        """The weights so far, evaluated."""
        return self._certified(run, self.init(run)[0] if state is None else state)

    def norm(self, problem: Any, w: np.ndarray) -> float:
        """``|w|``."""
        return float(np.sqrt(problem.dot(w, w)))

    def advice(self, run: Run, scaling: Callable[[], str]) -> str:
        """What could be done about a gap above ``tol``."""
        limits = run.progress.longer(run.tol, self.unit)
        return f"Raise {limits}, or alpha or tol." if limits else "Raise alpha or tol."


def _reached(run: Run, state: BlockState) -> float:
    """The dual objective of the steps, where ``w`` is that of the mixtures: an estimate, up to the games' accuracy."""
    secured = float(run.problem.omega @ state.kept.secured())
    return secured - 0.5 * run.alpha * run.problem.dot(state.w, state.w)

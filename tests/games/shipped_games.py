"""Every game that the library ships, with the vertices of both polytopes listed and its certificates within reach.

A further game is one more entry of :func:`shipped`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest
from enumeration import chain, matching_vertices, matchings, one_hot, pair_table, tree_heads
from given_rows import rows_gap
from scipy.optimize import linprog

from nashlearn import games
from nashlearn.games.matchings.kernels import _certificate
from nashlearn.games.networks import exact, local
from nashlearn.games.rows.thresholds import ThresholdGame
from nashlearn.games.trees.entries import tree_scratch
from nashlearn.games.trees.equilibrium import certify, tree_entropy
from nashlearn.games.trees.parts import all_grandparents, all_siblings
from nashlearn.solvers import double_oracle

Certificate = Callable[[np.ndarray, np.ndarray, np.ndarray], float]
Report = Callable[[np.ndarray, float, np.random.Generator], tuple[float, np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Shipped:
    """A game on vectors: ``<theta, q> + <p, L q>`` with ``q`` in the hull of ``labels``, ``p`` in that of ``options``.

    Attributes
    ----------
    certificates : dict of (theta, p, q) -> gap
        What the library says of strategies that it is given.
    reports : dict of (theta, size, rng) -> gap, p, q
        What it says of its own, where its solver was disturbed by about ``size``.
    solve : theta -> gap, p, q
        The game as it is played.
    exact : bool
        Whether gaps are those over the listed vertices; else they may be larger.
    fixed : int
        How many last coordinates are constants, whose scores must be 0.
    """

    id: str
    labels: np.ndarray
    options: np.ndarray
    L: np.ndarray
    solve: Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]]
    certificates: dict[str, Certificate] = field(default_factory=dict)
    reports: dict[str, Report] = field(default_factory=dict)
    exact: bool = True
    fixed: int = 0

    def scores(self, rng: np.random.Generator) -> np.ndarray:
        theta = rng.normal(size=self.labels.shape[1]) * 10.0 ** rng.uniform(-1, 0.7)
        theta[theta.size - self.fixed :] = 0.0
        return theta

    def gap(self, theta: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
        """The true one, by enumeration."""
        upper = (self.labels @ (theta + p @ self.L)).max()
        return float(upper - theta @ q - (self.options @ (self.L @ q)).min())


# ------------------------------------------------------------------------------------------------------------- simplex


def _sides(game: Any, shape: tuple[int, ...] = ()) -> Certificate:
    """``upper - lower`` of a game whose scores are arrays of this shape."""

    def gap(theta, p, q):
        scores, p, q = (x.reshape(1, *(shape or (-1,))) for x in (theta, p, q))
        return float(game.upper(scores, p)[0] - game.lower(scores, q)[0])

    return gap


def _solved(game: Any, shape: tuple[int, ...] = ()) -> Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]]:
    def solve(theta):
        found = game.solve(theta.reshape(1, *(shape or (-1,))))
        return float(found.gap[0]), found.p[0].ravel(), found.q[0].ravel()

    return solve


def simplex(id: str, game: Any, L: Any) -> Shipped:
    L = np.asarray(L, dtype=float)
    certificates = {"sides": _sides(game), "rows": rows_gap(game.params)}
    return Shipped(id, np.eye(L.shape[1]), np.eye(L.shape[0]), L, _solved(game), certificates)


def thresholds(m: int) -> Shipped:
    """Vertices of the cube with a last coordinate 1, since ``p + q - 2 p q`` is not bilinear without."""
    corners = np.array([[*corner, 1.0] for corner in product((0.0, 1.0), repeat=m)])
    L = np.diag(np.r_[np.full(m, -2.0), 0.0])
    L[:-1, -1] = L[-1, :-1] = 1.0
    game = ThresholdGame(m)
    rows, plain = rows_gap(game.params), _solved(game)

    def solve(theta):
        gap, p, q = plain(theta[:-1])
        return gap, np.append(p, 1.0), np.append(q, 1.0)

    certificates = {"rows": lambda theta, p, q: rows(theta[:-1], p[:-1], q[:-1])}
    return Shipped(f"thresholds-{m}", corners, corners, L, solve, certificates, fixed=1)


# -------------------------------------------------------------------------------------------------------- double oracle


@contextmanager
def _disturbed_oracle(size: float, rng: np.random.Generator) -> Iterator[None]:
    """The double oracle with restricted games whose solutions are mixed with others."""
    solved = double_oracle._matrix_game

    def mixed(A, scores):
        value, mu, nu = solved(A, scores)
        return value, *((1 - size) * x + size * rng.dirichlet(np.ones(x.size)) for x in (mu, nu))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(double_oracle, "_matrix_game", mixed)
        yield


def _oracle_report(game: Any) -> Report:
    def report(theta, size, rng):
        with _disturbed_oracle(size, rng):
            found = double_oracle.solve(game, theta[None], max_iter=60)
        return float(found.gap[0]), found.p[0], found.q[0]

    return report


def spanning_tree(edges) -> Shipped:
    game = games.spanning_tree(edges)
    m = len(edges)
    vertices = np.array([v for v in product((0.0, 1.0), repeat=m) if _spans(np.array(v, dtype=bool), edges, game)])
    # Losses count the edges of the true tree that the other lacks.
    L = np.full((m, m), 1.0 / (game.labels.n - 1)) - np.eye(m)
    certificates, reports = {"sides": _sides(game)}, {"double oracle": _oracle_report(game)}
    return Shipped("spanning_tree", vertices, vertices, L, _solved(game), certificates, reports)


def _spans(chosen, edges, game) -> bool:
    if chosen.sum() != game.labels.n - 1:
        return False
    part = np.arange(game.labels.n)
    for (u, v), used in zip(edges, chosen, strict=True):
        if used:
            part[part == part[u]] = part[v]
    return bool((part == part[0]).all())


# -------------------------------------------------------------------------------------------------- matchings and trees


def _hamming(weights: np.ndarray, rows: int) -> np.ndarray:
    """``<w, q> - <p, w q>`` on flat entries: every option has ``rows`` entries 1 where the left elements are."""
    inside = np.zeros(weights.shape)
    inside[:rows] = 1.0
    return np.outer(inside.ravel() / rows, weights.ravel()) - np.diag(weights.ravel())


def matching(id: str, game: Any, n1: int, n2: int, partial: bool) -> Shipped:
    vertices = matching_vertices(matchings(n1, n2, partial), n2, partial)
    shape, flat = vertices.shape[1:], vertices.reshape(len(vertices), -1)

    def compiled(theta, p, q):
        scores, p, q = (x.reshape(shape).copy() for x in (theta, p, q))
        work, column = np.empty(shape), np.empty(n1, np.int64)
        found = _certificate(scores, game.weights, n1, 0.0, p, q, work, column, np.empty(n1), np.empty(n2))
        return float(found[2])

    certificates = {"sides": _sides(game, shape), "compiled": compiled}
    # In a partial matching the corner is void: 0 in every vertex, and no score counts there.
    return Shipped(id, flat, flat, _hamming(game.weights, n1), _solved(game, shape), certificates, fixed=int(partial))


def arborescence(id: str, game: Any, weights: np.ndarray | None = None) -> Shipped:
    n, single_root, n_labels = game.labels.n, game.labels.single_root, game.labels.n_labels or 1
    heads = tree_heads(n, single_root)
    arcs = one_hot(heads, n + 1)
    if n_labels > 1:
        names = one_hot(np.array(list(product(range(n_labels), repeat=n))), n_labels)
        arcs = np.einsum("tdh,ldj->tldhj", arcs, names)
    flat = arcs.reshape(-1, n * (n + 1) * n_labels)
    price = np.ones(n) if weights is None else np.asarray(weights)
    width = (n + 1) * n_labels
    L = np.kron(np.diag(price), 1.0 - np.eye(width))
    shape = game.labels.shape
    own = np.zeros(shape, dtype=bool)
    own[np.arange(n), np.arange(1, n + 1)] = True

    def compiled(theta, p, q):
        scores = np.where(own, -np.inf, theta.reshape(shape)).reshape(n, n + 1, n_labels)
        p, q = (x.reshape(n, n + 1, n_labels).copy() for x in (p, q))
        upper, lower = certify(scores, price, 0.0, n, single_root, p, q, tree_scratch(n))
        return float(upper - lower)

    certificates = {"sides": _sides(game, shape), "compiled": compiled}
    if n_labels == 1 and weights is None:

        def entropy(theta, p, q):
            """The gap with the training problem's ``min_p <p, L q>``."""
            upper = float(game.upper(theta.reshape(1, *shape), p.reshape(1, *shape))[0])
            return upper - theta @ q - tree_entropy(q.reshape(n, n + 1).copy(), n, single_root, tree_scratch(n))

        certificates["entropy"] = entropy
    return Shipped(id, flat, flat, L, _solved(game, shape), certificates)


def tree_parts(id: str, parts, single_root: bool) -> Shipped:
    """Coordinates: arcs, then parts; scores of arcs from tokens to themselves are ignored."""
    n = 3
    game = games.tree_parts(n, parts, single_root)
    arcs = one_hot(tree_heads(n, single_root), n + 1)
    both = np.array([[min(x[d, h] for d, h in part) for part in parts] for x in arcs]).reshape(len(arcs), -1)
    flat = arcs.reshape(len(arcs), -1)
    labels, split = np.hstack([flat, both]), flat.shape[1]
    L = np.hstack([np.kron(np.eye(n), 1.0 - np.eye(n + 1)), np.zeros((split, both.shape[1]))])

    def cut(x):
        return x[None, :split].reshape(1, n, n + 1), x[None, split:]

    def sides(theta, p, q):
        return float(game.upper(*cut(theta), cut(p)[0])[0] - game.lower(*cut(theta), cut(q))[0])

    def solve(theta):
        found = game.solve(*cut(theta))
        return float(found.gap[0]), found.p[0].ravel(), np.r_[found.q[0][0].ravel(), found.q[1][0]]

    allowed = (~np.eye(n, n + 1, 1, dtype=bool)).ravel()

    def report(theta, size, rng):
        """Both strategies of the programme's solution, mixed with others."""
        solved, (p, q) = linprog, (rng.dirichlet(np.ones(len(x))) @ x for x in (flat, labels))
        p, q = p[allowed], np.r_[q[:split][allowed], q[split:]]

        def mixed(*arguments, **options):
            found = solved(*arguments, **options)
            if "bounds" in options:  # the game's programme, not that of a best reply
                found.x[: q.size] = (1 - size) * found.x[: q.size] + size * q
                found.ineqlin.marginals[: p.size] = (1 - size) * found.ineqlin.marginals[: p.size] - size * p
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(import_module("nashlearn.games.trees.parts"), "linprog", mixed)
            return solve(theta)

    return Shipped(id, labels, flat, L, solve, {"sides": sides}, {"programme": report}, exact=not parts)


# ------------------------------------------------------------------------------------------------------------ networks


@contextmanager
def _disturbed_programme(size: float, rng: np.random.Generator) -> Iterator[None]:
    """Interior points that end between their solution and their start, with some noise."""
    solved = exact.interior_point

    def mixed(G, h, objective, y, z, tol, *more):
        found = solved(G, h, objective, y, z, tol, *more)
        own = (1 - size) * found.y + size * y + 0.1 * size * rng.normal(size=y.size)
        return found._replace(y=own, z=(1 - size) * found.z + size * z * rng.exponential(size=z.size))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "interior_point", mixed)
        patch.setattr(local, "interior_point", mixed)
        yield


def network(id: str, edges, states, L, relaxed: bool = False, loss: Any = None, weights=None) -> Shipped:
    """``L`` (options, states) is the loss of one node, ``loss`` the name that the game is given instead."""
    edges, states, L = np.asarray(edges), np.asarray(states), np.asarray(L, dtype=float)
    n, k, options = states.size, int(states.max()), L.shape[0]
    counts = np.ones(n) if weights is None else np.asarray(weights)
    game = games.markov(edges, states, L if loss is None else loss, weights, exact=not relaxed)
    assert game.is_exact != relaxed
    labelings = np.array(list(product(*map(range, states))))
    nodes, pairs = one_hot(labelings, k), pair_table(labelings, edges, k)
    flat = np.hstack([nodes.reshape(len(labelings), -1), pairs.reshape(len(labelings), -1)])
    own = [range(options if loss is None else count) for count in states]
    choices = one_hot(np.array(list(product(*own))), options)
    dense = np.zeros((n * options, flat.shape[1]))
    dense[:, : n * k] = np.kron(np.diag(counts), L)

    def cut(theta):
        return theta[: n * k].reshape(n, k), theta[n * k :].reshape(len(edges), k, k)

    def reported(theta):
        found = game.solve(cut(theta))
        return float(found.gap), found.p.ravel(), np.r_[found.q[0].ravel(), found.q[1].ravel()]

    def report(theta, size, rng):
        with _disturbed_programme(size, rng):
            return reported(theta)

    def sides(theta, p, q):
        """Multipliers of 0, where the local polytope has some: any others bound what ``p`` may lose, too."""
        state = [p.reshape(n, options).copy(), np.zeros((len(edges), 2, k))][: 1 + relaxed]
        return float(game.solver.ceiling(*cut(theta), tuple(state)) - game.solver.secured(*cut(theta), *cut(q)))

    flat_choices, certificates, reports = choices.reshape(len(choices), -1), {"sides": sides}, {"programme": report}
    return Shipped(id, flat, flat_choices, dense, reported, certificates, reports, exact=not relaxed)


def shipped() -> list[Shipped]:
    """One of each kind at least."""
    rng = np.random.default_rng(5)
    wrong = 1.0 - np.eye(5)
    w, c = np.array([0.3, 1.0, 2.5, 1.0]), np.array([0.1, 0.6, 0.4, 0.0])
    t = np.array([-2.0, -1.7, 0.4, 0.5, 3.0])
    far = np.abs(t[:, None] - t)
    steps = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    square, tall, wide = rng.random((4, 4)), rng.random((6, 3)), rng.random((2, 5))
    uneven = np.array([2.0, 0.5, 1.0])
    entries = rng.random((3, 3)) + 0.2
    cycle, binary = np.array([(0, 1), (1, 2), (2, 0)]), np.full(3, 2)
    return [
        simplex("zero_one", games.zero_one(5), wrong),
        simplex("zero_one-weighted", games.zero_one(4, weights=w), wrong[:4, :4] * w),
        simplex("absolute", games.absolute(5, values=t), far),
        simplex("absolute-weighted", games.absolute(3, weights=uneven), steps * uneven),
        simplex("squared", games.squared(5, values=t), far**2),
        *(simplex(f"abstain-{a}", games.abstain(4, a), np.vstack([wrong[:4, :4], [a] * 4])) for a in (0.0, 0.2, 0.7)),
        simplex("abstain-1.2", games.abstain(4, 1.2), np.vstack([wrong[:4, :4], [1.2] * 4])),
        simplex("abstain-per-label", games.abstain(4, c), np.vstack([wrong[:4, :4], c])),
        simplex("cost-square", games.cost(square), square),
        simplex("cost-tall", games.cost(tall), tall),
        simplex("cost-wide", games.cost(wide), wide),
        thresholds(1),
        thresholds(3),
        matching("matching", games.matching(4), 4, 4, False),
        matching("matching-weighted", games.matching(3, weights=uneven), 3, 3, False),
        matching("matching-weighted-pairs", games.matching(3, weights=entries), 3, 3, False),
        matching("partial_matching", games.partial_matching(3, 2), 3, 2, True),
        matching("partial_matching-weighted", games.partial_matching(2, 3, weights=uneven[:2]), 2, 3, True),
        arborescence("arborescence", games.arborescence(3)),
        arborescence("arborescence-single", games.arborescence(4, single_root=True)),
        arborescence("arborescence-weighted", games.arborescence(3, weights=uneven), uneven),
        arborescence("arborescence-labelled", games.arborescence(2, single_root=True, n_labels=2)),
        spanning_tree([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]),
        tree_parts("tree_parts-none", [], True),
        tree_parts("tree_parts", [*all_siblings(3), *all_grandparents(3)], False),
        network("markov-chain", chain(3), np.full(3, 3), wrong[:3, :3], loss="zero_one"),
        network("markov-chain-states", chain(3), np.array([2, 3, 2]), wrong[:3, :3], loss="zero_one"),
        network("markov-tree", [(1, 0), (1, 2), (3, 1)], np.full(4, 2), square[:3, :2], weights=[1.0, 2.0, 0.5, 0.0]),
        network("markov-cycle", cycle, np.full(3, 3), steps**2, loss="squared", weights=uneven),
        network("markov-relaxed", cycle, np.full(3, 3), steps, True, "absolute", weights=uneven),
        network("markov-relaxed-costs", cycle, binary, tall[:4, :2], True, weights=uneven),
    ]


SHIPPED = shipped()

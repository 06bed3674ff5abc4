"""Every game that the library ships, and one of a user's own polytopes, with their vertices listed.

A further game is one more entry of :func:`shipped`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from cases import Case, Report
from enumeration import chain, matching_vertices, matchings, one_hot, pair_table, tree_heads
from row_certificates import binary_gap, rows_gap, tempered_gap
from scipy.optimize import linprog

from nashlearn import games
from nashlearn.game import Equilibrium, Game
from nashlearn.games.networks import exact
from nashlearn.games.rows.cost import CostGame, cost_params
from nashlearn.games.rows.thresholds import ThresholdGame
from nashlearn.games.trees.parts import all_grandparents, all_siblings
from nashlearn.kernels.matchings import certify_matchings
from nashlearn.kernels.tree_game import certify
from nashlearn.solvers import double_oracle, matrix_game

# ---------------------------------------------------------------------------------------------------------------- rows


def simplex(id: str, game: Any, L: Any, symmetry: np.ndarray | None = None) -> Case:
    L = np.asarray(L, dtype=float)
    options, k = L.shape
    return Case(
        id, game, np.arange(k), np.eye(k), np.eye(options), L, level=np.ones(k), symmetry=symmetry,
        scaled=lambda c: games.cost(c * L), omega="tempered",
        certificates={"rows": rows_gap(game.params)}, smoothed={"rows": tempered_gap(game.params)},
    )  # fmt: skip


def thresholds(m: int) -> Case:
    """``p + q - 2 p q``, summed over thresholds; labels are named by booleans."""
    corners = np.array(list(product((False, True), repeat=m)))
    L = np.diag(np.r_[np.full(m, -2.0), 0.0])
    L[:-1, -1] = L[-1, :-1] = 1.0
    game, vertices = ThresholdGame(m), corners.astype(float)
    certificates = {"rows": rows_gap(game.params)}
    return Case(
        f"thresholds-{m}", game, corners, vertices, vertices, L, symmetry=np.arange(m)[::-1], omega="binary",
        certificates=certificates, smoothed={"rows": binary_gap(game.params)},
    )  # fmt: skip


class AmongOthers(CostGame):
    """The game of one matrix, played by ``games.row_costs`` in every second of its rows; the others have others."""

    def __init__(self, L: np.ndarray):
        super().__init__(cost_params(L), L.shape[1], L.shape[0])

    def all_rows(self, n: int) -> Any:
        rng = np.random.default_rng(n)
        costs = rng.random((2 * n, *self.costs.shape)) * 10.0 ** rng.uniform(-3, 3, (2 * n, 1, 1))
        costs[1::2] = self.costs
        return games.row_costs(costs)

    def equilibria(self, scores, smoothing=0.0, n_jobs=1, start=None):
        n = len(scores)
        spread = np.random.default_rng(n).normal(size=(2 * n, self.n_labels)).astype(scores.dtype)
        spread[1::2] = scores
        before = None if start is None else replace(start, p=np.repeat(start.p, 2, axis=0))
        found = self.all_rows(n).equilibria(spread, smoothing, n_jobs, before)
        return Equilibrium(*(getattr(found, name)[1::2] for name in ("value", "q", "p", "gap", "entropy", "risk")))

    def risk(self, q, scores=None):
        return self.all_rows(len(q)).risk(np.repeat(q, 2, axis=0))[1::2]


def rows() -> list[Case]:
    rng = np.random.default_rng(5)
    w, c = np.array([0.3, 1.0, 2.5, 1.0]), np.array([0.1, 0.6, 0.4, 0.0])
    t, tw = np.array([-2.0, -1.7, 0.4, 0.5, 3.0]), np.array([1.0, 0.5, 2.0, 1.0, 0.1])
    far, steps = np.abs(t[:, None] - t), np.abs(np.arange(4.0)[:, None] - np.arange(4.0))
    back, turn, wrong = np.arange(4)[::-1], np.roll(np.arange(4), 1), 1.0 - np.eye(4)
    found = [simplex(f"zero_one-{k}", games.zero_one(k), 1.0 - np.eye(k), np.roll(np.arange(k), 1)) for k in (1, 2, 5)]
    for k in (1, 2):
        found.append(simplex(f"absolute-{k}", games.absolute(k), steps[:k, :k]))
        found.append(simplex(f"squared-{k}", games.squared(k), steps[:k, :k] ** 2))
    found += [
        simplex("zero_one-weighted", games.zero_one(4, weights=w), wrong * w),
        simplex("absolute", games.absolute(4), steps, back),
        simplex("absolute-uneven", games.absolute(5, values=t), far),
        simplex("absolute-weighted", games.absolute(5, values=t, weights=tw), far * tw),
        simplex("squared", games.squared(4), steps**2, back),
        simplex("squared-uneven", games.squared(5, values=t), far**2),
        simplex("squared-weighted", games.squared(5, values=t, weights=tw), far**2 * tw),
        simplex("abstain-1", games.abstain(1, 0.3), [[0.0], [0.3]]),
        simplex("abstain-per-label", games.abstain(4, c), np.vstack([wrong, c])),
    ]
    for a in (0.0, 0.2, 0.5, 0.7, 1.0, 1.5):
        found.append(simplex(f"abstain-{a}", games.abstain(4, a), np.vstack([wrong, np.full(4, a)]), turn))
    for id, L in {
        "cost-square": rng.random((6, 6)),
        "cost-tall": rng.random((7, 3)),
        "cost-wide": rng.random((3, 6)),
        "cost-ties": rng.integers(0, 3, (5, 5)),
        "cost-twins": np.repeat(rng.integers(0, 2, (4, 4)), 2, axis=0),
        "cost-zero": np.zeros((2, 3)),
        "cost-one-option": rng.random((1, 4)),
        "cost-one-label": rng.random((4, 1)),
    }.items():
        found.append(simplex(id, games.cost(L), L))
        if id in ("cost-square", "cost-tall", "cost-wide", "cost-ties", "cost-zero"):
            found.append(simplex(id.replace("cost", "row_costs"), AmongOthers(np.asarray(L, dtype=float)), L))
    return [*found, thresholds(1), thresholds(3)]


# ------------------------------------------------------------------------------------------------------- double oracle


@contextmanager
def _disturbed_oracle(size: float, rng: np.random.Generator) -> Iterator[None]:
    """The double oracle with restricted games whose solutions are mixed with others."""
    solved = matrix_game.solve

    def mixed(A, scores):
        value, mu, nu = solved(A, scores)
        return value, *((1 - size) * x + size * rng.dirichlet(np.ones(x.size)) for x in (mu, nu))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix_game, "solve", mixed)
        yield


def _oracle_report(game: Any) -> Report:
    def report(theta, size, rng):
        with _disturbed_oracle(size, rng):
            found = double_oracle.solve(game, theta[None], max_iter=60)
        return float(found.gap[0]), found.p[0], found.q[0]

    return report


def spanning_tree(edges) -> Case:
    """Losses count the edges of the true tree that the other lacks."""
    game, m = games.spanning_tree(edges), len(edges)
    n = 1 + max(map(max, edges))
    trees = np.array([v for v in product((False, True), repeat=m) if _spans(v, edges, n)])
    flat, level = trees.astype(float), np.full(m, 1.0 / (n - 1))
    L = np.tile(level[:, None], m) - np.eye(m)
    return Case(
        "spanning_tree", game, trees, flat, flat, L, level=level, reports={"double oracle": _oracle_report(game)}
    )


def _spans(chosen, edges, n: int) -> bool:
    part = np.arange(n)
    for (u, v), used in zip(edges, chosen, strict=True):
        if used:
            part[part == part[u]] = part[v]
    return sum(chosen) == n - 1 and bool((part == part[0]).all())


class Subsets:
    """A user's own polytope: ``k`` of ``n`` items, named by their numbers."""

    def __init__(self, n: int, k: int):
        self.n, self.k = n, k

    def argmax(self, scores):
        return np.argsort(-scores, axis=1, kind="stable")[:, : self.k]

    def vertex(self, labels):
        vertices = np.zeros((len(labels), self.n))
        np.put_along_axis(vertices, np.asarray(labels), 1.0, axis=1)
        return vertices


def subsets(n: int, k: int) -> Case:
    game = Game(Subsets(n, k), Subsets(n, k), games.Hamming(np.ones(n), 1 / k))
    names = np.array(list(combinations(range(n), k)))
    flat = one_hot(names, n).sum(axis=1)
    L = np.full((n, n), 1.0 / k) - np.eye(n)
    reports = {"double oracle": _oracle_report(game)}
    return Case("own-subsets", game, names, flat, flat, L, level=np.full(n, 1.0 / k), reports=reports)


# -------------------------------------------------------------------------------------------------- matchings and trees


def matching(id: str, n1: int, n2: int, partial: bool, weights: Any = None, symmetry=None) -> Case:
    def made(c: float) -> Any:
        price = c * (np.ones(n1) if weights is None else np.asarray(weights))
        return games.partial_matching(n1, n2, weights=price) if partial else games.matching(n1, weights=price)

    game, names = made(1.0), matchings(n1, n2, partial)
    vertices = matching_vertices(names, n2, partial)
    shape, flat = vertices.shape[1:], vertices.reshape(len(vertices), -1)
    price, inside = np.zeros(shape), np.zeros(shape)
    given = np.ones(n1) if weights is None else np.asarray(weights)
    price[:n1] = given[:, None] if given.ndim == 1 else given
    inside[:n1] = 1.0 / n1
    L = np.outer(inside.ravel(), price.ravel()) - np.diag(price.ravel())

    def smoothed(theta, smoothing, p, q):
        scores, p, q = (np.array(x, dtype=float).reshape(1, *shape) for x in (theta, p, q))
        scores += 0.5 * smoothing  # the kernel takes off the quadratic part alone
        if partial:
            scores[0, -1, -1] = 0.0
        gap = np.empty(1)
        certify_matchings(scores, price, partial, smoothing, p, q, gap)
        return float(gap[0])

    return Case(
        id, game, names, flat, flat, L, binding=True, level=inside.ravel(), scaled=made, tol=1e-7, symmetry=symmetry,
        certificates={"compiled": lambda theta, p, q: smoothed(theta, 0.0, p, q)}, smoothed={"compiled": smoothed},
    )  # fmt: skip


def arborescence(id: str, n: int, single_root=False, n_labels: int | None = None, weights=None, symmetry=None) -> Case:
    def made(c: float) -> Any:
        return games.arborescence(n, single_root, n_labels=n_labels, weights=c * price)

    price, width = np.ones(n) if weights is None else np.asarray(weights), n_labels or 1
    game, names = made(1.0), tree_heads(n, single_root)
    arcs = one_hot(names, n + 1)[..., None]
    if n_labels:
        kinds = np.array(list(product(range(n_labels), repeat=n)))
        arcs = np.einsum("tdhx,ldj->tldhj", arcs, one_hot(kinds, n_labels)).reshape(-1, n, n + 1, n_labels)
        names = np.array([np.column_stack([heads, own]) for heads in names for own in kinds])
    flat = arcs.reshape(len(arcs), -1)
    L = np.kron(np.diag(price), 1.0 - np.eye((n + 1) * width))
    own = np.eye(n, n + 1, 1, dtype=bool)[:, :, None]

    def smoothed(theta, smoothing, p, q):
        theta, p, q = (x.reshape(n, n + 1, width).copy() for x in (theta, p, q))
        scores = np.where(own, -np.inf, theta)
        upper, lower, *_ = certify(scores, price, smoothing, single_root, p, q)
        return float(upper - lower)

    level = np.zeros((n, n + 1, width))
    level[0] = 1.0
    return Case(
        id, game, names, flat, flat, L, binding=True, level=level.ravel(), scaled=made, tol=1e-7, symmetry=symmetry,
        certificates={"compiled": lambda theta, p, q: smoothed(theta, 0.0, p, q)}, smoothed={"compiled": smoothed},
    )  # fmt: skip


def tree_parts(id: str, parts, single_root: bool) -> Case:
    """Coordinates: arcs, then parts."""
    n = 3
    game, names = games.tree_parts(n, parts, single_root), tree_heads(n, single_root)
    arcs = one_hot(names, n + 1)
    both = np.array([[min(x[d, h] for d, h in part) for part in parts] for x in arcs]).reshape(len(arcs), -1)
    flat = arcs.reshape(len(arcs), -1)
    labels, split = np.hstack([flat, both]), flat.shape[1]
    L = np.hstack([np.kron(np.eye(n), 1.0 - np.eye(n + 1)), np.zeros((split, both.shape[1]))])
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
            found = game.solve(theta[None])
        return float(found.gap[0]), found.p[0].ravel(), found.q[0].ravel()

    level = np.zeros(labels.shape[1])
    level[: n + 1] = 1.0
    return Case(
        id, game, names, labels, flat, L, exact=not parts, binding=True, level=level, tol=1e-7,
        reports={"programme": report},
    )  # fmt: skip


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
        yield


def network(id: str, edges, states, L, relaxed: bool = False, loss: Any = None, weights=None, symmetry=None) -> Case:
    """``L`` (options, states) is the loss of one node, ``loss`` the name that the game is given instead."""
    edges, states, L = np.asarray(edges), np.asarray(states), np.asarray(L, dtype=float)
    n, k, options = states.size, int(states.max()), L.shape[0]
    counts = np.ones(n) if weights is None else np.asarray(weights)

    def made(c: float) -> Any:
        return games.markov(edges, states, L if loss is None else loss, c * counts, exact=not relaxed)

    game, names = made(1.0), np.array(list(product(*map(range, states))))
    nodes, pairs = one_hot(names, k), pair_table(names, edges, k)
    flat = np.hstack([nodes.reshape(len(names), -1), pairs.reshape(len(names), -1)])
    own = [range(options if loss is None else count) for count in states]
    choices = one_hot(np.array(list(product(*own))), options)
    dense = np.zeros((n * options, flat.shape[1]))
    dense[:, : n * k] = np.kron(np.diag(counts), L)

    def report(theta, size, rng):
        with _disturbed_programme(size, rng):
            found = game.solve(theta[None])
        return float(found.gap[0]), found.p[0].ravel(), found.q[0].ravel()

    level = np.zeros(flat.shape[1])
    level[: states[0]] = 1.0
    return Case(
        id, game, names, flat, choices.reshape(len(choices), -1), dense, exact=not relaxed, level=level, scaled=made,
        tol=1e-6, omega="entropy", symmetry=symmetry, reports={"programme": report},
    )  # fmt: skip


def structures() -> list[Case]:
    rng = np.random.default_rng(5)
    wrong, uneven, entries = 1.0 - np.eye(3), np.array([2.0, 0.5, 1.0]), rng.random((3, 3)) + 0.2
    steps = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    square, tall = rng.random((4, 4)), rng.random((6, 3))
    cycle, binary, turn = np.array([(0, 1), (1, 2), (2, 0)]), np.full(3, 2), np.array([1, 2, 0])
    pairs = (3 * turn[:, None] + turn).ravel()
    states = np.r_[turn, 3 + turn, 6 + turn, 9 + pairs, 18 + pairs]  # of a chain of three nodes with three states
    left = np.roll(np.arange(16).reshape(4, 4), 1, axis=0).ravel()
    tokens = np.concatenate([4 * d + np.array([0, 2, 3, 1]) for d in (1, 2, 0)])  # tokens 1 -> 2 -> 3 -> 1
    return [
        subsets(5, 2),
        spanning_tree([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]),
        matching("matching", 4, 4, False, symmetry=left),
        matching("matching-weighted", 3, 3, False, uneven),
        matching("matching-weighted-pairs", 3, 3, False, entries),
        matching("partial_matching", 3, 2, True),
        matching("partial_matching-weighted", 2, 3, True, uneven[:2]),
        arborescence("arborescence", 3, symmetry=tokens),
        arborescence("arborescence-single", 3, True, symmetry=tokens),
        arborescence("arborescence-weighted", 3, weights=uneven),
        arborescence("arborescence-labelled", 2, True, 2),
        tree_parts("tree_parts-none", [], True),
        tree_parts("tree_parts", [*all_siblings(3), *all_grandparents(3)], False),
        network("markov-chain", chain(3), np.full(3, 3), wrong, loss="zero_one", symmetry=states),
        network("markov-chain-states", chain(3), np.array([2, 3, 2]), wrong, loss="zero_one"),
        network("markov-tree", [(1, 0), (1, 2), (3, 1)], np.full(4, 2), square[:3, :2], weights=[1.0, 2.0, 0.5, 0.0]),
        network("markov-cycle", cycle, np.full(3, 3), steps**2, loss="squared", weights=uneven),
        network("markov-relaxed", cycle, np.full(3, 3), steps, True, "absolute", weights=uneven),
        network("markov-relaxed-costs", cycle, binary, tall[:4, :2], True, weights=uneven),
    ]


def shipped() -> list[Case]:
    """One of each kind at least."""
    return [*rows(), *structures()]


SHIPPED = shipped()
ROWS = [case for case in SHIPPED if "rows" in case.certificates]
SIMPLEX = [case for case in ROWS if case.level is not None]

"""Certificates of matchings, trees and networks at strategies that are no equilibrium, against enumeration."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from enumeration import tree_heads
from hypothesis import given, settings
from hypothesis import strategies as st

from nashlearn import games

PRICE = np.array([0.5, 2.0, 1.5])


def partial_labels(n1, n2):
    every = product(range(-1, n2), repeat=n1)
    return np.array([y for y in every if len({j for j in y if j >= 0}) == sum(j >= 0 for j in y)])


PAIRS = np.random.default_rng(0).uniform(0.2, 2.0, (4, 4))
# Each game with all its labels and, shaped as its scores, what missing a part of the truth costs.
CASES = {
    "matching": (games.matching(4, PAIRS), np.array(list(permutations(range(4)))), PAIRS),
    "matching, plain": (games.matching(4), np.array(list(permutations(range(4)))), np.ones((4, 4))),
    "partial": (
        games.partial_matching(2, 3, [0.5, 2.0]),
        partial_labels(2, 3),
        np.array([[0.5] * 4, [2.0] * 4, [0.0] * 4]),
    ),
    "trees": (games.arborescence(3, weights=PRICE), tree_heads(3, False), np.tile(PRICE[:, None], (1, 4))),
    "trees, single root": (
        games.arborescence(3, True, weights=PRICE),
        tree_heads(3, True),
        np.tile(PRICE[:, None], (1, 4)),
    ),
}
every = pytest.mark.parametrize("name", CASES)
seeds = st.integers(0, 2**32 - 1)


def sides(name, theta, p, q):
    """``max_q <theta, q> + <p, L q>`` and ``<theta, q> + min_p <p, L q>`` over all vertices."""
    game, labels, cost = CASES[name]
    V = game.vertex(labels).reshape(len(labels), -1)
    theta, p, q = (x.reshape(len(x), -1) for x in (theta, p, q))
    used = V.any(axis=0)
    theta, c = np.where(used, theta, 0.0), cost.ravel()
    upper = ((theta + c * (1.0 - p)) @ V.T).max(axis=1)
    return upper, (theta * q).sum(axis=1) + ((q * c) @ (1.0 - V.T)).min(axis=1)


def outside(name, x):
    """How far matrices (b, rows, columns) are from the sums that all vertices have."""
    game, labels, _ = CASES[name]
    V = game.vertex(labels)
    sums = [x.sum(axis=2), x.sum(axis=1)], [V.sum(axis=2), V.sum(axis=1)]
    far = [np.abs(a - b[:1])[:, (b == b[:1]).all(axis=0)].max(axis=1, initial=0.0) for a, b in zip(*sums, strict=True)]
    return np.maximum(*far)


@every
@given(seed=seeds)
@settings(max_examples=15)
def test_both_sides_are_those_of_enumeration(name, seed):
    game, labels, cost = CASES[name]
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(3, *cost.shape))
    p, q = (np.tensordot(rng.dirichlet(np.full(len(labels), 0.1), 3), game.vertex(labels), 1) for _ in range(2))
    upper, lower = sides(name, theta, p, q)
    assert game.upper(theta, p) == pytest.approx(upper, abs=1e-10)
    assert game.lower(theta, q) == pytest.approx(lower, abs=1e-10)


@every
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_loose_solutions_know_their_gap(name):
    """What is reported is what enumeration finds between the strategies returned, neither less nor more."""
    game, _, cost = CASES[name]
    theta = np.random.default_rng(1).normal(size=(40, *cost.shape)) * np.logspace(-1, 0.7, 40)[:, None, None]
    widest = 0.0
    for tol in (0.3, 1e-2, 1e-4):
        found = game.solve(theta, tol=tol)
        upper, lower = sides(name, theta, found.p, found.q)
        # Loose strategies miss the polytope by a little: their scores are known to no more than that.
        slack = 1e-9 + np.maximum(outside(name, found.p), outside(name, found.q)) * (
            cost.sum() + np.abs(theta).sum(axis=(1, 2))
        )
        assert (np.abs(found.gap - (upper - lower)) <= slack).all()
        assert (np.abs(found.value - lower) <= slack).all()
        if name != "partial":
            assert (slack <= 0.3 * found.gap + 1e-6).mean() > 0.7  # else this would say nothing
        widest = max(widest, found.gap.max())
    assert widest > 1e-3


CHAIN, CYCLE = [(0, 1), (1, 2), (2, 3)], [(0, 1), (1, 2), (2, 3), (3, 0)]
WEIGHTS = np.array([1.0, 0.3, 2.0, 1.5])


LOSSES = {"absolute": np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0))), "zero_one": 1.0 - np.eye(3)}


def played(loss, edges, exact, seed, **options):
    rng = np.random.default_rng(seed)
    scores = 2.0 * rng.normal(size=(4, 3)), 2.0 * rng.normal(size=(len(edges), 3, 3))
    game = games.markov(edges, 3, loss=loss, weights=WEIGHTS, exact=exact)
    return game, scores, game.solver.solve(*scores, **options)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("edges", [CHAIN, CYCLE], ids=["chain", "cycle"])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_sweeps_that_end_early_know_their_gap(loss, edges, exact):
    """``value`` is secured by ``q``, and ``value + gap`` attained against ``p``: the smoothed one lies between them."""
    L = WEIGHTS[:, None, None] * LOSSES[loss]
    widest = 0.0
    for seed in range(5):
        for rounds in (1, 2):
            game, scores, found = played(loss, edges, exact, seed, smoothing=0.3, tol=0.0, max_iter=rounds)
            cost = np.einsum("vij,vj->vi", L, found.q[0])
            left = (found.p * cost).sum() - cost.min(axis=1).sum()
            if exact:
                assert found.gap == pytest.approx(left, abs=1e-9)
            else:  # and what the relaxed bound has not closed yet
                assert found.gap >= left - 1e-9
            limit = game.solve(scores, smoothing=0.3, tol=1e-9)
            assert found.value - 1e-6 <= limit.value <= found.value + found.gap + 1e-6
            widest = max(widest, found.gap)
    assert widest > 0.05


@pytest.mark.parametrize("edges", [CHAIN, CYCLE], ids=["chain", "cycle"])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_smoothed_value_is_that_of_its_marginals(loss, edges, exact):
    """``<f, q> + <T, q_E> + min_p <p, L q> + entropy``: on trees the entropy is that of nodes and edges."""
    L = WEIGHTS[:, None, None] * LOSSES[loss]
    for seed in range(3):
        game, (f, T), found = played(loss, edges, exact, seed, smoothing=0.3, tol=1e-4)
        nodes, pairs = found.q
        secured = (f * nodes).sum() + (T * pairs).sum() + np.einsum("vij,vj->vi", L, nodes).min(axis=1).sum()
        if not game.is_exact:
            entropy = _entropy(nodes) + 0.1 * _entropy(pairs)
        elif edges is CHAIN:
            entropy = _entropy(pairs) - _entropy(nodes[1:3])
        else:
            entropy = _gibbs_entropy(f, T, found.p, L, nodes)
        assert found.value == pytest.approx(secured + 0.3 * entropy, abs=1e-9)
        assert found.entropy == pytest.approx(found.risk + 0.3 * entropy, abs=1e-9)


def _entropy(x):
    x = x[x > 0]
    return -(x * np.log(x)).sum()


def _gibbs_entropy(f, T, p, L, nodes):
    """The entropy of labelings of the cycle whose marginals ``nodes`` answer ``p``, by enumeration."""
    gain = f + np.einsum("vi,vij->vj", p, L)
    every = np.array(list(product(range(3), repeat=4)))
    total = gain[np.arange(4), every].sum(axis=1)
    total += sum(T[e, every[:, u], every[:, v]] for e, (u, v) in enumerate(CYCLE))
    P = np.exp((total - total.max()) / 0.3)
    P /= P.sum()
    assert np.array([[P[every[:, v] == a].sum() for a in range(3)] for v in range(4)]) == pytest.approx(nodes, abs=1e-6)
    return _entropy(P)

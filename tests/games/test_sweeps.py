"""Sweeps of smoothed networks that are stopped: their certificates against conic programmes over all vertices."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from enumeration import chain, graph_outputs
from hypothesis import given, settings
from hypothesis import strategies as st
from saddle_reference import Part, local, mixture, objective

from nashlearn import games
from nashlearn.games.networks import stars

seeds = st.integers(0, 2**32 - 1)


def against(part: Part, p_costs: np.ndarray) -> Part:
    """The same polytope where the predictor's strategy is fixed: one option, with these costs."""
    part.costs = [p_costs[None]]
    return part


CYCLE = np.array([(0, 1), (1, 2), (2, 0)])
COSTS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.0]])
COUNTS = np.array([2.0, 0.5, 1.0])
NETWORKS = {
    "chain": (chain(3), "zero_one", None, True),
    "chain, costs and weights": (chain(3), COSTS, COUNTS, True),
    "cycle": (CYCLE, "zero_one", COUNTS, True),
    "cycle, costs": (CYCLE, COSTS, None, True),
    "relaxed": (CYCLE, "zero_one", None, False),
    "relaxed, costs and weights": (CYCLE, COSTS, COUNTS, False),
}


def entropy(x: np.ndarray) -> float:
    return -float((x[x > 0] * np.log(x[x > 0])).sum())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", NETWORKS)
@given(seed=seeds, eps=st.sampled_from([0.1, 0.5, 2.0]), sweeps=st.sampled_from([1, 2, 5]))
@settings(max_examples=8)
def test_entropic_smoothing(name, seed, eps, sweeps):
    """Sweeps that start at random replies and stop at once: value, marginals and gap are those of enumeration."""
    edges, loss, counts, exact = NETWORKS[name]
    n = k = 3
    game = games.markov(edges, np.full(n, k), loss, counts, exact)
    rng = np.random.default_rng(seed)
    f, T = rng.normal(size=(n, k)), rng.normal(size=(len(edges), k, k))
    theta, weights = np.r_[f.ravel(), T.ravel()], np.ones(n) if counts is None else counts
    L = 1.0 - np.eye(k) if isinstance(loss, str) else loss
    state = [rng.dirichlet(np.ones(k), size=n)] + ([] if exact else [rng.normal(size=(len(edges), 2, k))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(game.solver, "start", lambda: tuple(x.copy() for x in state))
        found = game.solver.solve(f, T, eps, 0.0, max_iter=sweeps)
    gains = (found.p @ L) * weights[:, None]
    nodes, pairs = found.q
    labels = np.array(list(product(range(k), repeat=n)))
    earned = gains[np.arange(n), labels].sum(axis=1)
    least = float(((nodes @ L.T) * weights[:, None]).min(axis=1).sum())
    secured = float((f * nodes).sum() + (T * pairs).sum()) + least
    # Features that make scores of all nodes' labels and edges' pairs weights of their own.
    own, tables = np.eye(n), np.eye(len(edges))
    if exact:
        outputs = graph_outputs(own, edges, k, L, tables, weights)
        logits = (outputs.moments @ theta + earned) / eps
        top = logits.max()
        law = np.exp(logits - top)
        value, law = eps * (top + np.log(law.sum())), law / law.sum()
        assert float(found.value + found.gap) == pytest.approx(value, abs=1e-9)
        marginals = law @ outputs.moments
        assert np.r_[nodes.ravel(), pairs.ravel()] == pytest.approx(marginals, abs=1e-9)
        assert float(found.gap) == pytest.approx(value - secured - eps * entropy(law), abs=1e-8)
        part = against(mixture(1.0, outputs, eps), earned)
        assert value == pytest.approx(objective([part], np.zeros(theta.size), 0.0, theta), abs=1e-6)
    else:
        part = local(1.0, own, edges, k, L, tables, weights, eps)
        upper = objective([against(part, np.r_[gains.ravel(), np.zeros(T.size)])], np.zeros(theta.size), 0.0, theta)
        assert float(found.value + found.gap) >= upper - 1e-6
        lower = secured + eps * (entropy(nodes) + 0.1 * entropy(pairs))
        assert float(found.value) == pytest.approx(lower, abs=1e-9)
        for e, (u, v) in enumerate(edges):  # else what they secure would be nobody's
            assert pairs[e].sum(axis=1) == pytest.approx(nodes[u], abs=1e-9)
            assert pairs[e].sum(axis=0) == pytest.approx(nodes[v], abs=1e-9)


@pytest.mark.parametrize("name", NETWORKS)
def test_sweeps_end_with_a_small_gap(name):
    edges, loss, counts, exact = NETWORKS[name]
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, 3)), rng.normal(size=(len(edges), 3, 3))
    assert games.markov(edges, np.full(3, 3), loss, counts, exact).solve(scores, smoothing=0.5, tol=1e-6).gap <= 1e-6


def test_beliefs_that_all_but_vanish_still_become_marginals():
    graph = stars.incidence(2, np.array([(0, 1)]), np.zeros(1, dtype=np.int64))
    q, pairs = np.full((2, 2), 0.5), np.array([[[0.0, 1e-320], [0.5, 0.5]]])
    stars.agree(graph, q, pairs)
    assert pairs.sum(axis=2) == pytest.approx(q[:1]) and pairs.sum(axis=1) == pytest.approx(q[1:])


def test_sweeps_of_nodes_that_depend_on_each_other_strongly_end_too():
    """Each sweep goes a few thousandths of the way here: ten thousand of them were too few."""
    f, T = np.zeros((3, 3)), np.zeros((3, 3, 3))
    f[0, 0], f[2, 2] = 1.0, -2.483815
    T[0, 0, 2], T[1, 0, 2], T[1, 2, 0], T[2, 0, 0], T[2, 2, 0], T[2, 2, 2] = 1.0, 3.045778, 2.0, 3.451938, -3.0, 3.0
    game = games.markov(CYCLE, np.full(3, 3), "squared", COUNTS, True)
    assert game.solve((f, T), smoothing=0.5, tol=1e-6).gap <= 1e-6

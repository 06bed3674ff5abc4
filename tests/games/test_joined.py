"""Networks with cycles that are swept together: against enumeration of all labellings, and each by itself."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from enumeration import chain
from hypothesis import given, settings
from hypothesis import strategies as st

from nashlearn.games.networks import sweeps
from nashlearn.games.networks.batch import Networks
from nashlearn.games.networks.cliques import clique_tree
from nashlearn.games.networks.joined import merged
from nashlearn.solvers.threads import threads

COSTS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [3.0, 1.0, 0.0]])
COMPLETE = np.array(list(combinations(range(5), 2)))
SQUARE = np.array([(0, 1), (2, 1), (2, 3), (3, 0)])
TAILED = np.array([(0, 1), (1, 2), (2, 0), (3, 2), (3, 4)])  # a triangle with a tail
APART = np.array([(1, 0), (2, 1), (0, 2), (3, 4), (4, 5), (5, 3)])  # two triangles and a node by itself
LADDER = np.array([(0, 1), (2, 3), (4, 5), (0, 2), (1, 3), (2, 4), (5, 3)])
GRAPHS = {"complete": (5, COMPLETE), "square": (4, SQUARE), "tailed": (5, TAILED), "apart": (7, APART)}
GRAPHS |= {"ladder": (6, LADDER), "chain": (3, chain(3))}
seeds = st.integers(0, 2**32 - 1)


def batch(names: list[str], k: int, loss, rng) -> tuple[Networks, np.ndarray, np.ndarray]:
    sizes, edges = zip(*(GRAPHS[name] for name in names), strict=True)
    counts = rng.uniform(0.5, 2.0, sum(sizes))
    networks = Networks(sizes, edges, k, loss, True, counts, rng.uniform(0.5, 2.0, len(names)))
    return networks, rng.normal(size=(networks.n, k)), rng.normal(size=(int(networks.edge_counts.sum()), k, k))


def enumerated(edges: np.ndarray, f: np.ndarray, T: np.ndarray, eps: float) -> tuple[float, np.ndarray, np.ndarray]:
    """The smoothed maximum over labellings, and the marginals of nodes and edges."""
    n, k = f.shape
    labellings = np.array(list(product(range(k), repeat=n)))
    total = f[np.arange(n), labellings].sum(axis=1)
    for e, (u, v) in enumerate(edges):
        total = total + T[e, labellings[:, u], labellings[:, v]]
    top = total.max()
    if not eps:
        return top, labellings[total.argmax()], total
    weight = np.exp((total - top) / eps)
    value, weight = top + eps * np.log(weight.sum()), weight / weight.sum()
    nodes, pairs = np.zeros((n, k)), np.zeros((len(edges), k, k))
    for v in range(n):
        nodes[v] = np.bincount(labellings[:, v], weight, k)
    for e, (u, v) in enumerate(edges):
        np.add.at(pairs[e], (labellings[:, u], labellings[:, v]), weight)
    return value, nodes, pairs


@pytest.mark.parametrize("loss", ["zero_one", "costs"])
@given(seed=seeds, eps=st.sampled_from([0.003, 0.3, 2.0]), rounds=st.integers(0, 3), shared=st.booleans())
@settings(max_examples=6)
def test_values_and_marginals_are_those_of_all_labellings(loss, seed, eps, rounds, shared):
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.choice(list(GRAPHS), size=4)]
    networks, S, T = batch(names, 3, COSTS if loss == "costs" else loss, rng)
    T = T[:1] if shared else T
    state = networks.start()._replace(smoothing=eps)
    state.p[:] = rng.dirichlet(np.ones(3), size=len(state.p))
    found = sweeps.sweep(networks, S, T, state, rounds, threads(2))
    upper, every = sweeps.ceilings(networks, S, T, state, threads(2)), np.zeros((1, 3, 3))
    best = networks.argmax(S, T, threads(2))
    for i, name in enumerate(names):
        rows, edges = networks.rows_of(i), GRAPHS[name][1]
        own = networks.edge_tables(T, i)
        lifted = S[rows] + networks.counts[rows, None] * (found.p[rows] @ networks.costs)
        value, nodes, pairs = enumerated(edges, lifted, own, eps)
        assert found.value[i] + found.gap[i] == pytest.approx(value, rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(found.q[0][rows], nodes, atol=1e-9)
        every += networks.weight[i] * pairs.sum(axis=0)
        if not shared:
            np.testing.assert_allclose(found.q[1][networks.between(i)], pairs, atol=1e-9)
        cost = nodes @ networks.costs.T * networks.counts[rows, None]
        assert found.risk[i] == pytest.approx(cost.min(axis=1).sum(), abs=1e-9)
        assert found.gap[i] == pytest.approx((cost * found.p[rows]).sum() - cost.min(axis=1).sum(), abs=1e-8)
        assert upper[i] == pytest.approx(enumerated(edges, lifted, own, 0.0)[0])
        assert best[rows].tolist() == enumerated(edges, S[rows], own, 0.0)[1].tolist()
    if shared:
        np.testing.assert_allclose(found.q[1], every, atol=1e-9)


@given(seed=seeds)
@settings(max_examples=5)
def test_rounds_end_at_the_equilibrium(seed):
    """Where each network's own solver ends, whatever is played beside it, on any number of threads."""
    rng = np.random.default_rng(seed)
    names = list(GRAPHS)
    networks, S, T = batch(names, 2, "zero_one", rng)
    found = networks.solve((S, T), smoothing=0.5, tol=1e-6, n_jobs=1)
    again = networks.solve((S, T), smoothing=0.5, tol=1e-6, n_jobs=2)
    assert np.array_equal(found.value, again.value) and np.array_equal(found.q[1], again.q[1])
    for i in range(len(names)):
        rows = networks.rows_of(i)
        alone = networks.solver_of(i).solve(S[rows], networks.edge_tables(T, i), 0.5, 1e-6)
        assert found.gap[i] <= 1e-6 * rows.size
        assert abs(found.value[i] - alone.value) <= found.gap[i] + alone.gap + 1e-12


@pytest.mark.parametrize("name", GRAPHS)
def test_cliques_are_the_largest(name):
    """None lies within another, each node is owned once, and a clique knows its parent's part of it."""
    n, edges = GRAPHS[name]
    cliques = merged(clique_tree(n, edges, np.full(n, 2), np.inf).order)
    assert sorted(v for clique in cliques for v in clique.scope[: clique.own]) == list(range(n))
    for one, other in combinations(cliques, 2):
        assert not set(one.scope) <= set(other.scope) and not set(other.scope) <= set(one.scope)
    for scope, own, parent in cliques:
        assert set(scope[own:]) <= set(cliques[parent].scope) if parent >= 0 else own == len(scope)
    assert len(cliques) == {"complete": 1, "apart": 3}.get(name, len(cliques))


def test_cliques_out_of_place_are_refused():
    from nashlearn.kernels.junctions import Junctions

    good = {"graphs": [0, 1], "starts": [0, 2], "scope": [0, 1], "own": [2], "parent": [-1], "child": [-1]}
    good |= {"sibling": [-1], "pair_starts": [0, 1], "pairs": [[0, 1, 0, 0]], "places": [0]}

    def made(**changes):
        arrays = {name: np.array(value, dtype=np.intp) for name, value in {**good, **changes}.items()}
        return Junctions(2, *arrays.values(), np.zeros(0, dtype=np.int32))

    assert made().size == 1
    for changes, words in (
        ({"own": [3]}, "must own some"),
        ({"own": [1]}, "a root, must own all"),
        ({"scope": [0, -1]}, "nodes from 0 on"),
        ({"parent": [0]}, "must come before it"),
        ({"child": [0]}, "listed in order"),
        ({"pairs": [[1, 1, 0, 0]]}, "two positions"),
    ):
        with pytest.raises(ValueError, match=words):
            made(**changes)

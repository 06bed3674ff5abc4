"""Trees of any size, both root rules, labels, weights, forbidden arcs, against all arborescences; projections."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from enumeration import tree_heads
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog
from scipy.special import logsumexp

from nashlearn import games
from nashlearn.kernels.tree_inside import move_inside
from nashlearn.kernels.tree_nearest import project_labelled
from nashlearn.solvers import double_oracle

TOL = 1e-8
number = st.one_of(
    st.sampled_from([0.0, 0.0, 0.5, -0.5, 1.0, -1.0, 2.0]),
    st.floats(-4, 4, allow_subnormal=False).map(lambda x: round(x, 6)),
)
few = settings(max_examples=40, deadline=None)
rules = pytest.mark.parametrize("single_root", [False, True], ids=["many roots", "single root"])


@cache
def all_vertices(n: int, single_root: bool, n_labels: int | None) -> np.ndarray:
    """Vertices, one in each row, flattened."""
    heads = tree_heads(n, single_root)
    plain = np.eye(n + 1)[heads]
    if n_labels is None:
        return plain.reshape(len(heads), -1)
    labels = np.eye(n_labels)[np.array(list(product(range(n_labels), repeat=n)))]
    return np.einsum("tdh,sdl->tsdhl", plain, labels).reshape(len(heads) * len(labels), -1)


@st.composite
def sentences(draw, most: int = 4, labelled: bool = True, forbid: bool = True):
    """A game, its scores (one sentence) and the vertices that the scores allow."""
    n, single_root = draw(st.integers(1, most)), draw(st.booleans())
    n_labels = draw(st.sampled_from([None, 1, 2])) if labelled and n <= 3 else None
    weights = draw(st.sampled_from([None, [0.3, 2.0, 1.0, 0.0, 1.5][:n]]))
    game = games.arborescence(n, single_root, n_labels=n_labels, weights=weights)
    scores = draw(hnp.arrays(np.float64, game.labels.shape, elements=number)) * draw(st.sampled_from([0.3, 1.0, 5.0]))
    vertices = all_vertices(n, single_root, n_labels)
    if forbid:
        kept = vertices[draw(st.integers(0, len(vertices) - 1))].reshape(scores.shape)
        hidden = draw(hnp.arrays(np.bool_, scores.shape)) & draw(hnp.arrays(np.bool_, scores.shape))
        scores[hidden & (kept == 0)] = -np.inf
    allowed = ~((vertices != 0) & np.isneginf(scores.ravel())).any(axis=1)
    return game, scores, vertices[allowed]


def totals(scores: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    return vertices @ np.where(np.isneginf(scores), 0.0, scores).ravel()


def costs_of(game, shape) -> np.ndarray:
    return np.broadcast_to(game.weights.reshape(-1, *(1,) * (len(shape) - 1)), shape).ravel()


def linear_programme(game, scores: np.ndarray, V: np.ndarray) -> float:
    """``max <theta, q> + v`` with ``v`` below the loss of every tree, over mixtures of trees."""
    A = game.weights.sum() - (V * costs_of(game, scores.shape)) @ V.T
    m = len(V)
    best = linprog(
        -np.r_[totals(scores, V), 1.0],
        A_ub=np.hstack([-A, np.ones((m, 1))]),
        b_ub=np.zeros(m),
        A_eq=np.r_[np.ones(m), 0.0][None],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)],
        method="highs",
    )
    return -best.fun


def in_hull(x: np.ndarray, V: np.ndarray, rng) -> bool:
    """Whether no direction of many tells ``x`` apart from the vertices."""
    D = np.vstack([np.eye(V.shape[1]), -np.eye(V.shape[1]), rng.normal(size=(50, V.shape[1]))])
    return bool((D @ x <= (V @ D.T).max(axis=0) + 1e-7).all())


@few
@given(sentences())
def test_value_and_certificate(case):
    game, scores, V = case
    eq = game.solve(scores[None])
    scale = 1.0 + np.abs(totals(scores, V)).max()
    assert abs(eq.value[0] - linear_programme(game, scores, V)) <= TOL * scale
    assert 0 <= eq.gap[0] <= 10 * TOL * scale
    certificate = game.upper(scores[None], eq.p) - game.lower(scores[None], eq.q)
    assert abs(certificate[0]) <= 10 * TOL * scale
    rng = np.random.default_rng(0)
    for x in (eq.q[0], eq.p[0]):
        assert in_hull(x.ravel(), V, rng)
        assert (x[np.isneginf(scores)] == 0).all()


@few
@given(sentences(), st.integers(0, 10**6), st.sampled_from([0.0, 0.3]))
def test_offsets_that_all_trees_share_cost_no_digits(case, seed, mu):
    """Scores and offsets are multiples of 2^-20, so sums are exact: all that may differ is the value's rounding."""
    game, scores, _ = case
    n, rng = len(scores), np.random.default_rng(seed)
    scores = np.round(scores * 2**20) / 2**20
    if np.isneginf(scores).sum() > n:  # without an interior smoothed games may end at larger gaps, with a warning
        mu = 0.0
    offset = rng.integers(-(2**22), 2**22, size=n).astype(float)
    moved, total = scores + offset.reshape(-1, *(1,) * (scores.ndim - 1)), offset.sum()
    if game.labels.single_root:
        moved[:, 0] += 2.0**21
        total += 2.0**21
    near, far = game.solve(scores[None], smoothing=mu), game.solve(moved[None], smoothing=mu)
    assert abs(far.value[0] - total - near.value[0]) <= near.gap[0] + far.gap[0] + n * 2e-9
    assert 0 <= far.gap[0] <= 1e-8
    y = game.argmax(scores[None])
    assert game.loss_value(moved[None], y)[0] == pytest.approx(game.loss_value(scores[None], y)[0], abs=1e-7)


@few
@given(sentences())
def test_the_double_oracle_keeps_the_predictor_from_forbidden_arcs(case):
    """It takes over where the interior point method has no interior to follow."""
    game, scores, V = case
    found = double_oracle.solve(game, game.labels.checked(scores[None]))
    assert found.value[0] == pytest.approx(linear_programme(game, scores, V), abs=1e-7)
    assert not found.p[0][np.isneginf(scores)].any() and found.gap[0] <= 1e-7
    kept = [np.full(1, x) for x in (-1e9, 1e9, 1e9, 1e9)]
    replayed = kept[0], np.empty((1, *scores.shape)), np.empty((1, *scores.shape)), *kept[1:]
    game._replay(0, game.labels.checked(scores[None]), replayed)
    assert [x[0] for x in replayed[3:]] == [found.gap[0], found.entropy[0], found.risk[0]]
    assert replayed[0][0] == found.value[0] and (replayed[1][0] == found.q[0]).all()


@few
@given(sentences(), st.sampled_from([0.01, 0.3, 2.0]))
def test_smoothing(case, mu):
    """The smoothed value lies within ``mu n / 2`` above the exact one, is certified, and q is its gradient."""
    game, scores, V = case
    exact, smooth = game.solve(scores[None]), game.solve(scores[None], smoothing=mu)
    scale = 1.0 + np.abs(totals(scores, V)).max()
    slack = 10 * TOL * scale
    assert 0 <= smooth.gap[0] <= slack
    assert exact.value[0] - slack <= smooth.value[0] <= exact.value[0] + mu * len(scores) / 2 + slack
    reply = (V * costs_of(game, scores.shape)) @ smooth.q.ravel()
    own = np.sum(np.where(smooth.q[0] == 0, 0.0, scores) * smooth.q[0])
    secured = own + game.weights.sum() - reply.max() - mu / 2 * np.sum(smooth.q**2 - smooth.q)
    assert abs(smooth.value[0] - secured) <= slack


@few
@given(sentences(most=5))
def test_argmax_is_the_best_of_all(case):
    game, scores, V = case
    chosen = game.vertex(game.argmax(scores[None]))[0].ravel()
    assert (chosen == V).all(axis=1).any()
    assert totals(scores, chosen[None])[0] >= totals(scores, V).max() - 1e-12 * (1 + np.abs(totals(scores, V)).max())


@rules
def test_argmax_against_networkx(single_root):
    networkx = pytest.importorskip("networkx")
    rng = np.random.default_rng(3)
    for n in (2, 7, 12):
        scores = rng.normal(size=(3, n, n + 1))
        heads = games.arborescence(n, single_root).argmax(scores)
        for one, found in zip(scores, heads, strict=True):
            graph = networkx.DiGraph()
            penalty = 1000.0 if single_root else 0.0
            for d, h in product(range(n), range(n + 1)):
                if h != d + 1:
                    graph.add_edge(h, d + 1, weight=one[d, h] - penalty * (h == 0))
            best = networkx.maximum_spanning_arborescence(graph)
            expected = sum(one[d - 1, h] for h, d in best.edges)
            assert abs(one[np.arange(n), found].sum() - expected) <= 1e-9


def test_huge_and_tiny_scores_keep_the_single_root_exact():
    """No constant is added: differences far below the largest score still decide."""
    scores = np.zeros((1, 3, 4))
    scores[0, :, 0] = [1e-9, 2e-9, 0.0]
    scores[0, 0, 3] = -1e12
    heads = games.arborescence(3, single_root=True).argmax(scores)[0]
    assert heads[1] == 0 and np.count_nonzero(heads == 0) == 1


@rules
def test_infeasible_graphs(single_root):
    game = games.arborescence(3, single_root)
    scores = np.zeros((2, 3, 4))
    scores[1, 2, :] = -np.inf  # nothing may govern the last token
    for call in (game.argmax, game.solve, game.project, game.marginals):
        with pytest.raises(ValueError, match=r"scores\[1\] forbids every one"):
            call(scores)
    assert np.isneginf(game.log_partition(scores)[1])


def test_two_components_need_two_roots():
    scores = np.full((1, 3, 4), -np.inf)
    scores[0, [0, 1, 2], [0, 0, 1]] = 1.0
    assert games.arborescence(3).solve(scores).value[0] == pytest.approx(3.0)
    with pytest.raises(ValueError, match="with a single root possible"):
        games.arborescence(3, single_root=True).solve(scores)


def nearest_by_programme(scores: np.ndarray, single_root: bool) -> np.ndarray:
    """The projection by a quadratic programme over all cuts."""
    clarabel = pytest.importorskip("clarabel")
    from scipy import sparse

    n = len(scores)
    arcs = [(d, h) for d, h in product(range(n), range(n + 1)) if h != d + 1]
    token, head = np.array(arcs).T
    cuts = []
    for size in range(1, 2**n):
        inside = np.array([size >> d & 1 for d in range(n)], dtype=bool)
        if inside.sum() > 1:
            cuts.append(inside[token] & ~np.r_[False, inside][head])
    equal = [token == d for d in range(n)]
    if single_root:
        equal.append(head == 0)
    m = len(arcs)
    A = np.vstack([np.array(equal, float), -np.array(cuts, float).reshape(len(cuts), m), -np.eye(m)])
    b = np.r_[np.ones(len(equal)), -np.ones(len(cuts)), np.zeros(m)]
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-12
    cones = [clarabel.ZeroConeT(len(equal)), clarabel.NonnegativeConeT(len(cuts) + m)]
    w = scores[token, head]
    solver = clarabel.DefaultSolver(sparse.eye(m, format="csc"), -w, sparse.csc_matrix(A), b, cones, options)
    x = np.zeros(scores.shape)
    x[token, head] = solver.solve().x
    return x


@rules
@pytest.mark.parametrize("n", [1, 3, 5, 8])
def test_projection_against_a_quadratic_programme(n, single_root):
    rng = np.random.default_rng(n)
    for scale in (0.3, 1.0, 5.0):
        scores = scale * rng.normal(size=(n, n + 1))
        point, gap = games.arborescence(n, single_root).project(scores[None])
        expected = nearest_by_programme(scores, single_root)
        own = np.where(np.eye(n, n + 1, 1) > 0, 0.0, scores)
        # The programme's own accuracy limits the comparison of points; its objective is known better.
        assert np.abs(point[0] - expected).max() <= 2e-7
        assert np.sum((point[0] - own) ** 2) <= np.sum((expected - own) ** 2) + TOL
        assert 0 <= gap[0] <= 1e-10


@rules
@pytest.mark.parametrize("n", [4, 10, 30, 60])
def test_projection_is_certified_and_agrees_with_wolfes_method(n, single_root):
    rng = np.random.default_rng(n)
    game = games.arborescence(n, single_root)
    for scale in (0.3, 3.0, 30.0):
        scores = scale * rng.normal(size=(3, n, n + 1))
        scores[:, np.arange(n), np.arange(1, n + 1)] = -np.inf
        gold = game.argmax(rng.normal(size=scores.shape))
        scores[2] += 4 * game.vertex(gold)[2]
        point, gap = game.project(scores)
        assert (gap >= 0).all() and (gap <= 1e-12 * n * (1 + 10 * scale)).all()
        slope = np.where(np.isneginf(scores), scores, scores - point)
        best = game.vertex(game.argmax(slope))
        certificate = np.sum(np.where(np.isneginf(slope), 0, slope) * (best - point), axis=(1, 2))
        assert (certificate <= 1e-11 * n * (1 + 10 * scale)).all()
        if n <= 10:
            by_wolfe = np.empty((3, n * (n + 1), 1))
            project_labelled(scores.reshape(by_wolfe.shape).copy(), n, single_root, by_wolfe, np.empty(3))
            assert np.abs(by_wolfe.reshape(point.shape) - point).max() <= TOL


@few
@given(sentences())
def test_projection_onto_what_forbidden_arcs_leave(case):
    game, scores, V = case
    point, gap = game.project(scores[None])
    slope = np.where(np.isneginf(scores), 0.0, scores - point[0])
    assert (V @ slope.ravel()).max() - np.sum(slope * point[0]) <= TOL
    assert gap[0] >= 0 and in_hull(point[0].ravel(), V, np.random.default_rng(0))
    assert (point[0][np.isneginf(scores)] == 0).all()


@few
@given(sentences(), st.sampled_from([1.0, 30.0, 1000.0]))
def test_gibbs_marginals_against_enumeration(case, scale):
    """Even where scores saturate, and cycles outweigh every tree by more than floats can hold."""
    game, scores, V = case
    total = totals(scale * scores, V)
    expected = np.exp(total - logsumexp(total)) @ V
    with np.errstate(invalid="ignore"):
        scaled = np.where(np.isneginf(scores), -np.inf, scale * scores)
    assert np.abs(game.marginals(scaled[None])[0].ravel() - expected).max() <= 1e-10
    assert abs(game.log_partition(scaled[None])[0] - logsumexp(total)) <= 1e-12 * (1 + np.abs(total).max())


@rules
@pytest.mark.parametrize("n", [10, 25])
def test_larger_games_are_certified(n, single_root):
    rng = np.random.default_rng(n)
    game = games.arborescence(n, single_root)
    for scale in (0.3, 3.0):
        scores = scale * rng.normal(size=(4, n, n + 1))
        eq = game.solve(scores)
        assert (eq.gap <= 1e-6).all()
        certificate = game.upper(scores, eq.p) - game.lower(scores, eq.q)
        assert (np.abs(certificate) <= 1e-6).all()
        parallel = game.solve(scores, n_jobs=2)
        assert (parallel.value == eq.value).all()


@rules
@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_the_adversary_stays_in_the_polytope(single_root, mu):
    """Up to rounding, and the certificate is that of what is returned."""
    for n in (2, 7, 20):
        game, scores = games.arborescence(n, single_root), 2.0 * np.random.default_rng(n).normal(size=(5, n, n + 1))
        eq = game.solve(scores, smoothing=mu, tol=1e-6)
        sizes, moved = np.full(len(eq.q), n), np.empty(len(eq.q))
        move_inside(eq.q.flatten(), sizes, np.arange(len(eq.q) + 1) * n * (n + 1), single_root, moved)
        assert (moved == 0.0).all()
        assert eq.risk == pytest.approx(game.risk(eq.q), abs=1e-12)
        assert eq.entropy == pytest.approx(eq.risk + mu / 2 * np.sum(eq.q * (1 - eq.q), axis=(1, 2)), abs=1e-12)
        assert eq.value == pytest.approx(np.sum(scores * eq.q, axis=(1, 2)) + eq.entropy, abs=1e-12)


def test_golden_one_and_two_tokens():
    assert games.arborescence(1).solve(np.full((1, 1, 2), 3.0)).value[0] == 3.0
    # Two tokens without scores: an adversary that mixes both chains makes one head of two wrong, whatever is predicted.
    for single_root in (False, True):
        value = games.arborescence(2, single_root).solve(np.zeros((1, 2, 3))).value[0]
        assert value == pytest.approx(1.0, abs=1e-8)
    # Zero-one loss on the labels of one arc.
    game = games.arborescence(1, n_labels=3)
    assert game.solve(np.zeros((1, 1, 2, 3))).value[0] == pytest.approx(2 / 3, abs=1e-8)


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([2, 1, 0], "cycle"),
        ([0, 0, 1], "2 tokens at the root"),
        ([0, 2, 1], "token 2 its own head"),
        ([0, 1, 4], "heads 0 .the root. to 3; got 4"),
    ],
)
def test_labels_that_are_no_trees(heads, message):
    with pytest.raises(ValueError, match=message):
        games.arborescence(3, single_root=True).loss_value(np.zeros((1, 3, 4)), np.array([heads]))


def test_bad_arguments():
    for arguments, message in [
        ((0,), "n must be an integer, at least 1"),
        ((2.5,), "n must be an integer"),
    ]:
        with pytest.raises(ValueError, match=message):
            games.arborescence(*arguments)
    with pytest.raises(ValueError, match="weights"):
        games.arborescence(2, weights=[-1, 1])
    game = games.arborescence(2)
    with pytest.raises(ValueError, match=r"use scores\[None\]"):
        game.solve(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"scores\[0\] holds \+inf"):
        game.solve(np.full((1, 2, 3), np.inf))
    with pytest.raises(ValueError, match="smoothing must be"):
        game.solve(np.zeros((1, 2, 3)), smoothing=-1)
    with pytest.raises(ValueError, match="NaN"):
        game.argmax(np.full((1, 2, 3), np.nan))
    mixed = np.zeros((2, 2, 3))
    mixed[1, 0, 0] = np.nan
    eq = game.solve(mixed)
    assert np.isfinite(eq.value[0]) and np.isnan(eq.value[1]) and np.isnan(eq.q[1]).all()


@pytest.mark.parametrize("smoothing", ["a", -1.0, np.inf, np.nan, None])
def test_smoothing_that_is_none_is_refused(smoothing):
    with pytest.raises(ValueError, match="smoothing must be a finite number"):
        games.arborescence(2).solve(np.zeros((1, 2, 3)), smoothing=smoothing)

"""Matchings of any size, with forbidden pairs, against programmes over all of them; projections; bad input."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linear_sum_assignment, linprog
from sklearn.exceptions import ConvergenceWarning

from nashlearn import games

TOL = 1e-8
number = st.one_of(
    st.sampled_from([0.0, 0.0, 0.5, -0.5, 1.0, -1.0, 2.0]),
    st.floats(-4, 4, allow_subnormal=False).map(lambda x: round(x, 6)),
)


class Case:
    """A game with the list of its matchings."""

    def __init__(self, game, matchings):
        self.game = game
        self.shape = game.labels.shape
        self.y = np.array(matchings, dtype=np.int64).reshape(len(matchings), game.labels.n1)
        self.vertices = game.vertex(self.y).reshape(len(matchings), -1)

    @property
    def losses(self):
        """What each matching costs as an answer (rows) for each as the truth (columns)."""
        weighted = self.vertices * self.game.weights.ravel()
        return weighted.sum(axis=1) - weighted @ self.vertices.T

    def admits(self, theta):
        """The matchings that avoid forbidden pairs."""
        return ~((self.vertices > 0) & np.isneginf(theta.ravel())).any(axis=1)

    def worth(self, theta):
        return self.vertices @ np.where(np.isneginf(theta), 0.0, theta).ravel()

    def value(self, theta):
        """``max <theta, q> + v`` with ``v <= <u, L q>`` for each allowed matching ``u``, over mixtures ``q``."""
        ok = self.admits(theta)
        A, m = self.losses[np.ix_(ok, ok)], ok.sum()
        best = linprog(
            -np.r_[self.worth(theta)[ok], 1.0],
            A_ub=np.hstack([-A, np.ones((m, 1))]),
            b_ub=np.zeros(m),
            A_eq=np.r_[np.ones(m), 0.0][None],
            b_eq=[1.0],
            bounds=[(0, None)] * m + [(None, None)],
            method="highs",
        )
        return -best.fun


def complete(n, weights=None):
    return Case(games.matching(n, weights), list(permutations(range(n))))


def partial(n1, n2, weights=None):
    found = [y for y in product(range(-1, n2), repeat=n1) if len({*y} - {-1}) == sum(j >= 0 for j in y)]
    return Case(games.partial_matching(n1, n2, weights), found)


_rng = np.random.default_rng(3)
CASES = {
    "one": complete(1),
    "two": complete(2),
    "four": complete(4),
    "five": complete(5),
    "weighted-rows": complete(4, [0.5, 1.0, 3.0, 0.0]),
    "weighted-pairs": complete(4, _rng.random((4, 4))),
    "partial-1-1": partial(1, 1),
    "partial-3-3": partial(3, 3),
    "partial-2-4": partial(2, 4),
    "partial-4-1": partial(4, 1),
    "partial-none-left": partial(0, 2),
    "partial-none-right": partial(3, 0),
    "partial-nothing": partial(0, 0),
    "partial-weighted": partial(3, 2, [1.0, 0.2, 2.0]),
    "partial-weighted-entries": partial(2, 3, _rng.random((3, 4))),
}
every = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def matrices(case, n=1):
    return hnp.arrays(np.float64, (n, *case.shape), elements=number)


def scale(case, scores):
    return 1.0 + np.abs(scores[np.isfinite(scores)]).max(initial=0.0) + case.losses.max()


def assert_feasible(case, x):
    polytope = case.game.labels
    assert (x >= 0).all()
    assert np.abs(x[:, : polytope.n1].sum(axis=2) - 1).max(initial=0.0) <= 1e-9
    assert np.abs(x[:, :, : polytope.n2].sum(axis=1) - 1).max(initial=0.0) <= 1e-9
    if polytope.partial:
        assert (x[:, -1, -1] == 0).all()


@every
@settings(max_examples=12)
@given(data=st.data())
def test_value_and_strategies(case, data):
    """The value is the linear programme's, and both players keep to the polytope of the pairs that are allowed."""
    scores = data.draw(matrices(case))
    kept = data.draw(st.integers(0, len(case.y) - 1))
    forbids = data.draw(st.booleans())
    hidden = data.draw(hnp.arrays(np.bool_, case.shape)) & (case.vertices[kept].reshape(case.shape) == 0) & forbids
    scores[0, hidden] = -np.inf
    eq = case.game.solve(scores)
    tol = TOL * scale(case, scores)
    assert abs(eq.value[0] - case.value(scores[0])) <= tol and 0 <= eq.gap[0] <= tol
    assert abs(case.game.upper(scores, eq.p)[0] - eq.value[0]) <= tol
    assert abs(case.game.lower(scores, eq.q)[0] - eq.value[0]) <= tol
    assert (eq.q[0, hidden] == 0).all() and (eq.p[0, hidden] == 0).all()
    assert_feasible(case, eq.q)
    assert_feasible(case, eq.p)


@pytest.mark.parametrize("seed", range(3))
def test_six_elements(seed):
    case = complete(6)
    scores = np.random.default_rng(seed).standard_normal((1, 6, 6))
    assert abs(case.game.solve(scores).value[0] - case.value(scores[0])) <= TOL


def quadratic_programme(case, theta, mu):
    """The smoothed value: ``q`` with potentials of the inner best reply, by Clarabel."""
    import clarabel
    from scipy import sparse

    (N1, N2), polytope = case.shape, case.game.labels
    row = np.repeat(np.arange(N1), N2)
    column = np.tile(np.arange(N2), N1)
    used = ~((row >= polytope.n1) & (column >= polytope.n2)) & ~np.isneginf(theta.ravel())
    row, column, w = row[used], column[used], case.game.weights.ravel()[used]
    m, R, C = used.sum(), polytope.n1, polytope.n2
    E = np.vstack([row == i for i in range(R)] + [column == j for j in range(C)]).astype(float).reshape(R + C, m)
    # Variables q, potentials t: maximise <theta + w, q> - mu/2 (|q|^2 - <1, q>) - sum t with E't >= w q.
    P = sparse.diags(np.r_[np.full(m, mu), np.zeros(R + C)]).tocsc()
    cost = np.r_[-(theta.ravel()[used] + w + 0.5 * mu), np.ones(R + C)]
    A = np.vstack(
        [
            np.hstack([E, np.zeros((R + C, R + C))]),
            np.hstack([-np.eye(m), np.zeros((m, R + C))]),
            np.hstack([np.diag(w), -E.T]),
        ]
    )
    b = np.r_[np.ones(R + C), np.zeros(2 * m)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(R + C), clarabel.NonnegativeConeT(2 * m)]
    return -clarabel.DefaultSolver(P, cost, sparse.csc_matrix(A), b, cones, settings).solve().obj_val


@pytest.mark.parametrize("name", ["five", "weighted-pairs", "partial-3-3", "partial-weighted", "partial-none-left"])
@pytest.mark.parametrize("mu", [0.05, 1.0])
def test_smoothed_value_and_gradient(name, mu):
    case = CASES[name]
    rng = np.random.default_rng(4)
    scores = rng.standard_normal((6, *case.shape))
    eq = case.game.solve(scores, smoothing=mu)
    exact = case.game.solve(scores)
    expected = [quadratic_programme(case, theta, mu) for theta in scores]
    assert np.abs(eq.value - expected).max() <= 1e-7 and eq.gap.max() <= TOL
    most = mu * (case.game.labels.n1 + case.game.labels.n2) / 2
    assert (exact.value <= eq.value + TOL).all() and (eq.value <= exact.value + most + TOL).all()
    d, h = rng.standard_normal(case.shape), 1e-5
    ahead, back = (case.game.solve(scores + side * h * d, smoothing=mu).value for side in (1, -1))
    slope = (ahead - back) / (2 * h)
    assert np.abs(slope - (eq.q * d).sum(axis=(1, 2))).max() <= 1e-3


@pytest.mark.parametrize("mu", [0.1, 0.100001])
def test_steps_that_run_in_circles_are_left(mu):
    """Mehrotra's corrector comes back every fourth step here, at a gap of 2e-3."""
    theta = np.array(
        [
            [0.6520563703843782, 0.0883271795362417, -0.04759367583746446],
            [0.9000178627708386, -np.inf, 0.21678463284068022],
            [-0.4039658148628026, -0.6917822565186947, 0.4122484610691851],
            [0.4338908928468369, -0.10735318489208934, 0.0],
        ]
    )
    case = partial(3, 2)
    eq = case.game.solve(theta[None], smoothing=mu)
    assert eq.gap[0] <= TOL and eq.value[0] == pytest.approx(quadratic_programme(case, theta, mu), abs=1e-7)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e100])
def test_huge_scores(size):
    """The loss is a rounding error beside them, and the certificate still holds."""
    for game in (games.matching(6), games.partial_matching(5, 4)):
        scores = size * np.random.default_rng(6).standard_normal((5, *game.labels.shape))
        eq = game.solve(scores)
        best = (game.vertex(game.argmax(scores)) * scores).sum(axis=(1, 2))
        assert eq.gap.max() <= 1e-7 and (np.abs(eq.value - best) <= 6 + 1e-14 * size * 6).all()


def test_shift_and_symmetry():
    rng = np.random.default_rng(8)
    scores, game = rng.standard_normal((3, 7, 7)), games.matching(7)
    value = game.solve(scores).value
    u, v = 100 * rng.standard_normal(7), 100 * rng.standard_normal(7)
    shifted = game.solve(scores + u[:, None] + v).value - u.sum() - v.sum()
    assert np.abs(shifted - value).max() <= TOL
    assert np.abs(game.solve(scores.swapaxes(1, 2)).value - value).max() <= TOL
    order = rng.permutation(7)
    assert np.abs(game.solve(scores[:, order]).value - value).max() <= TOL


@settings(max_examples=30)
@given(data=st.data(), case=st.sampled_from([CASES[name] for name in ("four", "five", "partial-3-3", "partial-2-4")]))
def test_offsets_that_all_matchings_share_cost_no_digits(case, data):
    """One for each left and each right element, which has one partner or stays alone once; sums are exact."""
    scores = np.round(data.draw(matrices(case)) * 2**20) / 2**20
    polytope, rng = case.game.labels, np.random.default_rng(data.draw(st.integers(0, 10**6)))
    left, right = rng.integers(-(2**22), 2**22, size=polytope.n1), rng.integers(-(2**22), 2**22, size=polytope.n2)
    moved = scores.copy()
    moved[:, : polytope.n1] += left[:, None]
    moved[:, :, : polytope.n2] += right
    near, far = case.game.solve(scores), case.game.solve(moved)
    assert far.value[0] - left.sum() - right.sum() == pytest.approx(near.value[0], abs=1e-7)
    assert 0 <= far.gap[0] <= 1e-7


def test_goldens():
    """No scores: ``n - 1`` mistakes ([fathony2019]_, Table IX has n = 3); and the example of sec. 4.2.4."""
    for n in (1, 2, 3, 10):
        assert abs(games.matching(n).solve(np.zeros((1, n, n))).value[0] - (n - 1)) <= 1e-9
    case, share = complete(3), {(0, 1, 2): 0.4, (1, 2, 0): 0.3, (2, 0, 1): 0.3}
    weights = np.array([share.get(tuple(y), 0.0) for y in case.y])
    expected = case.game.solve(np.eye(3)[None]).value[0] - weights @ case.worth(np.eye(3))
    assert abs(expected - 1.8) <= 1e-9  # 3 (1 - 0.4), the Bayes risk: potentials of the Bayes answer are optimal


def test_partial_matching_is_the_complete_one_where_nobody_stays_alone():
    rng = np.random.default_rng(9)
    scores = np.full((4, 6, 6), -np.inf)
    scores[:, :5, :5] = rng.standard_normal((4, 5, 5))
    complete_value = games.matching(5).solve(scores[:, :5, :5]).value
    assert np.abs(games.partial_matching(5, 5).solve(scores).value - complete_value).max() <= TOL


def assert_projection(game, scores, x):
    """In the polytope, and no matching lies further in the direction of ``scores - x``."""
    polytope = game.labels
    assert (x >= 0).all()
    assert np.abs(x[:, : polytope.n1].sum(axis=2) - 1).max() <= 1e-10
    assert np.abs(x[:, :, : polytope.n2].sum(axis=1) - 1).max() <= 1e-10
    ahead = np.where(np.isneginf(scores), -np.inf, scores - x)
    best = np.where(game.vertex(game.argmax(ahead)) > 0, ahead, 0.0).sum(axis=(1, 2))
    here = (np.where(x > 0, ahead, 0.0) * x).sum(axis=(1, 2))
    finite = np.where(np.isfinite(scores), np.abs(scores), 0.0).max()
    assert np.abs(best - here).max() <= 1e-10 * max(1.0, finite) * scores.shape[1]


@pytest.mark.parametrize("n", [1, 2, 7, 30, 100, 150])
@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
def test_projection(n, size):
    game = games.matching(n)
    scores = size * np.random.default_rng(n).standard_normal((2, n, n))
    assert_projection(game, scores, game.project(scores))


@settings(max_examples=30)
@given(data=st.data(), case=st.sampled_from([CASES[name] for name in ("four", "five", "partial-3-3", "partial-2-4")]))
def test_projection_with_ties_and_forbidden_pairs(case, data):
    scores = data.draw(matrices(case))
    kept = data.draw(st.integers(0, len(case.y) - 1))
    hidden = data.draw(hnp.arrays(np.bool_, case.shape)) & (case.vertices[kept].reshape(case.shape) == 0)
    scores[0, hidden] = -np.inf
    if case.game.labels.partial:
        scores[0, -1, -1] = -np.inf
    x = case.game.project(scores)
    assert (x[0, hidden] == 0).all()
    assert_projection(case.game, scores, x)


def test_projection_against_a_quadratic_programme():
    import clarabel
    from scipy import sparse

    n = 6
    E = np.vstack([np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))[:-1]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    for size in (0.3, 1.0, 5.0):
        scores = size * np.random.default_rng(11).standard_normal((1, n, n))
        A = sparse.csc_matrix(np.vstack([E, -np.eye(n * n)]))
        cones = [clarabel.ZeroConeT(2 * n - 1), clarabel.NonnegativeConeT(n * n)]
        b = np.r_[np.ones(2 * n - 1), np.zeros(n * n)]
        P = sparse.eye(n * n, format="csc")
        expected = clarabel.DefaultSolver(P, -scores.ravel(), A, b, cones, settings).solve().x
        assert np.abs(games.matching(n).project(scores).ravel() - expected).max() <= 1e-6


def test_large_assignments():
    rng = np.random.default_rng(12)
    for scores in (rng.standard_normal((90, 90)), np.round(rng.standard_normal((90, 90)))):
        rows, columns = linear_sum_assignment(scores, maximize=True)
        best = games.matching(90).argmax(scores[None])[0]
        assert sorted(best) == list(range(90))
        assert abs(scores[np.arange(90), best].sum() - scores[rows, columns].sum()) <= 1e-10


def test_an_answer_out_of_reach_warns():
    scores = np.random.default_rng(0).standard_normal((9, 20, 20))
    with pytest.warns(ConvergenceWarning, match="of 9 games stopped at .* above tol=1e-30"):
        games.matching(20).solve(scores, tol=1e-30)


def test_infeasible():
    game = games.matching(3)
    row, hall = np.zeros((2, 3, 3)), np.zeros((2, 3, 3))
    row[1, 0] = -np.inf
    hall[1, :2, :2] = -np.inf  # two rows left with one column
    for scores in (row, hall):
        for ask in (game.solve, game.argmax, game.project):
            with pytest.raises(ValueError, match=r"scores\[1\] forbids every one"):
                ask(scores)
    lonely = np.full((1, 3, 3), -np.inf)
    with pytest.raises(ValueError, match="leave a matching possible"):
        games.partial_matching(2, 2).solve(lonely)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: games.matching(0), "n must be an integer, at least 1"),
        (lambda: games.matching(2.0), "n must be an integer"),
        (lambda: games.partial_matching(-1, 2), "n1 must be an integer, at least 0"),
        (lambda: games.partial_matching(1, True), "n2 must be an integer"),
        (lambda: games.matching(2, [1.0, -1.0]), "weights must be finite and not negative"),
        (lambda: games.matching(2, [1.0, 1.0, 1.0]), "weights must have shape"),
        (lambda: games.matching(2).solve(np.zeros((2, 2))), "use scores\\[None\\] for a single matrix"),
        (lambda: games.matching(2).solve(np.zeros((1, 3, 3))), "shape \\(b, 2, 2\\)"),
        (lambda: games.matching(2).solve(np.zeros((1, 2, 2), complex)), "real numbers"),
        (lambda: games.matching(2).solve(np.full((1, 2, 2), np.inf)), r"scores\[0\] holds \+inf"),
        (lambda: games.matching(2).solve(np.zeros((1, 2, 2)), smoothing=-1.0), "smoothing must be"),
        (lambda: games.matching(2).solve(np.zeros((1, 2, 2)), tol=np.nan), "tol must be"),
        (lambda: games.matching(2).solve(np.zeros((1, 2, 2)), tol="1e-9"), "tol must be"),
        (lambda: games.matching(2).loss_value(np.zeros((1, 2, 2)), [[0, 0]]), "0 twice"),
        (lambda: games.matching(2).loss_value(np.zeros((1, 2, 2)), [[0, -1]]), "partners 0..1; got -1"),
        (lambda: games.matching(2).loss_value(np.zeros((1, 2, 2)), [[0, 2]]), "got 2"),
        (lambda: games.matching(2).loss_value(np.zeros((1, 2, 2)), [[0.0, 1.0]]), "must hold integers"),
        (lambda: games.matching(2).loss_value(np.zeros((1, 2, 2)), [[0, 1, 1]]), "y must have shape"),
        (lambda: games.matching(2).loss_value(np.zeros((2, 2, 2)), [[0, 1]]), "one label for each"),
        (lambda: games.partial_matching(2, 2).vertex([[0, -2]]), "or -1 for none; got -2"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("case", ["five", "partial-2-4"])
def test_answers_depend_on_neither_threads_nor_batches(case):
    game, shape = CASES[case].game, CASES[case].shape
    scores = np.random.default_rng(4).standard_normal((11, *shape))
    scores[3, 0, 0], scores[5, 0, 1] = np.nan, -np.inf
    threaded = game.solve(scores, smoothing=0.1, n_jobs=3)
    single = [game.solve(scores[i : i + 1], smoothing=0.1) for i in range(11)]
    for name in ("value", "q", "p", "gap", "entropy"):
        whole = getattr(game.solve(scores, smoothing=0.1), name)
        np.testing.assert_array_equal(getattr(threaded, name), whole)
        np.testing.assert_array_equal(np.concatenate([getattr(one, name) for one in single]), whole)

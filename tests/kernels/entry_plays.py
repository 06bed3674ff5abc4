"""What the library does while :mod:`entry_calls` listens: small fits, every door of every game, entries by hand.

Nothing of the library is imported before a function is called: the listener must come first.
"""

from __future__ import annotations

import contextlib

import numpy as np

__all__ = ["play"]


def play() -> None:
    _play_estimators()
    _play_games()
    _by_hand()


def _play_estimators() -> None:
    """Small fits of every estimator, and rows and nodes of all types."""
    import scipy.sparse as sp
    from small_models import KINDS

    from nashlearn import NashClassifier, NashTagger, games

    rng = np.random.default_rng(0)
    for kind, make in KINDS.items():
        for _ in range(12 if kind == "classifier" else 6):
            trial = make(rng)
            trial.model.fit(trial.X, trial.y, **trial.fit)
            trial.model.predict(trial.X)
    X, y = rng.normal(size=(20, 3)), np.arange(20) % 3
    for data in (X, X.astype(np.float32), sp.csr_matrix(X), sp.csr_matrix(X.astype(np.float32))):
        for loss in ("zero_one", "absolute", rng.random((4, 3))):
            for alpha in (1e-1, 1e-5):
                NashClassifier(loss, alpha=alpha).fit(data, y)
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    NashClassifier().fit(wide, y)
    for scores in (rng.normal(size=(4, 3)), rng.normal(size=(4, 3)).astype(np.float32), np.empty((0, 3))):
        for game in (games.zero_one(3), games.absolute(3), games.cost(rng.random((4, 3)))):
            game.solve(scores)
        games.row_costs(rng.random((len(scores), 2, 3))).solve(scores)
    NashClassifier().fit(X, y, costs=np.arange(1.0, len(y) + 1.0))
    _play_kernels(X, y)
    _play_sparse_weights(X, y)
    nodes = [sp.csr_matrix(rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.5)) for n in (3, 4, 2)]
    NashTagger(tol=0.1).fit(nodes, [np.arange(one.shape[0]) % 2 for one in nodes]).predict(nodes)
    pixels = [np.eye(12)[:n] for n in (3, 4, 2)]  # dense, most of them 0
    NashTagger(tol=0.1).fit(pixels, [np.arange(len(one)) % 2 for one in pixels])
    _play_text()


def _play_kernels(X: np.ndarray, y: np.ndarray) -> None:
    """Ascent, where sweeps do and where they crawl, with a cache for all rows and for some."""
    from nashlearn import NashClassifier, NashOrdinalClassifier

    for loss in ("zero_one", "absolute", np.arange(9.0).reshape(3, 3)):
        for alpha in (1e-1, 1e-6):
            NashClassifier(loss, kernel="rbf", smoothing=0, alpha=alpha, tol=1e-6, cache_size=1e-3).fit(X, y)
    NashOrdinalClassifier(kernel="rbf", smoothing=0, alpha=1e-6, tol=1e-6).fit(X, y)


def _play_sparse_weights(X: np.ndarray, y: np.ndarray) -> None:
    from nashlearn import NashClassifier, NashTagger

    for smoothing in (0, 0.5):
        NashClassifier(penalty="l1", smoothing=smoothing, alpha=0.01).fit(X, y)
    NashTagger(penalty="l1", smoothing=0.5, alpha=0.01, tol=0.1).fit([X[:3], X[3:7]], [y[:3], y[3:7]])


def _play_text() -> None:
    """Features that have weights for some labels only, and arcs of given heads."""
    from nashlearn import NashTagger
    from nashlearn.datasets.conllu import Sentence
    from nashlearn.parsing import HashedSentences

    words = [[["a", "b"], ["b"], ["c", "a"]], [["c"], ["d", "a"]]]
    NashTagger(tol=0.1).fit(words, [["x", "y", "z"], ["z", "x"]]).predict(words)
    sentences = [
        [[str(i + 1), word, word, tag, *"______"] for i, (word, tag) in enumerate(zip(*one, strict=True))]
        for one in (("abc", "NVN"), ("a", "N"))
    ]
    HashedSentences([Sentence(rows) for rows in sentences], bits=10).arc_features([[2, 0, 2], [0]], bits=10)
    _drafts_by_hand()


def _drafts_by_hand() -> None:
    """Visits to two sentences of random words; those that training drafts belong to objects that cannot be repeated."""
    from nashlearn.kernels.reply_drafts import Drafts
    from nashlearn.training.designs.hashed_arcs import Attributes, HashedArcs
    from nashlearn.training.methods.block_replies import no_replies

    rng, size = np.random.default_rng(3), np.array([1, 3])
    code = rng.integers(0, 2**64, size=(10, 5), dtype=np.uint64)
    own = HashedArcs(Attributes(code, rng.integers(0, 60, size=10), np.array([0, 4]), size, 6))
    offset = np.concatenate([[0], np.cumsum(size * (size + 1))])
    reply = rng.random(offset[-1])
    Drafts(own.sentences).prepare(np.arange(2), offset, reply, *no_replies(offset))


def _play_games() -> None:
    """All doors of every game."""
    from shipped_games import SHIPPED

    from nashlearn.game import flat

    rng = np.random.default_rng(2)
    for case in SHIPPED:
        theta = rng.normal(size=(2, case.dim))
        scores = case.shaped(theta)
        case.game.argmax(scores)
        eq = case.game.solve(scores)
        for certificate in case.certificates.values():
            certificate(theta[0], flat(eq.p)[0], flat(eq.q)[0])
        with contextlib.suppress(NotImplementedError, TypeError, ValueError):  # what a game does not offer
            case.game.solve(scores, smoothing=0.5)
        for certificate in case.smoothed.values():
            certificate(theta[0], 0.5, flat(eq.p)[0], flat(eq.q)[0])
        for polytope in (case.game, getattr(case.game, "predictor", None), getattr(case.game, "adversary", None)):
            if hasattr(polytope, "project"):
                polytope.project(scores)
            if hasattr(polytope, "log_partition"):
                polytope.log_partition(scores)


def _by_hand() -> None:
    """Entries that the library's own code has no need of from Python."""
    from nashlearn.kernels import dense, gram, loss, newton, tempered, tree_game, zero_one

    rng = np.random.default_rng(1)
    A = rng.normal(size=(4, 4)) + 4.0 * np.eye(4)
    pivot, factor, b = np.empty(4, np.intp), np.zeros((4, 4)), np.ones(4)
    dense.factor_cholesky(A @ A.T, factor, 0, 4, 1e-12)
    dense.solve_cholesky(factor, 4, b)
    dense.factor_lu(A, pivot)
    dense.solve_lu(A, pivot, b)
    own = zero_one.ZeroOne(3)
    q, p, scores = np.full(3, 1 / 3), np.full(3, 1 / 3), rng.normal(size=3)
    own.earned(scores, p)
    own.step(scores, 0.5, q, p)
    newton.Steps(own, 0.5).step(scores, q, p)
    own.jacobian(0.5, q, p > 0, np.zeros((3, 3)))
    loss.certify_rows(own, scores[None], q[None], p[None], np.empty(1), np.empty(1))
    own.earned(scores, p, 0.5)
    tempered.turn_rows(own, 0.5, q[None], p[None], scores[None].copy())
    own.certificate(scores, p, 0.5, q)
    gram.push_exactly(np.eye(3), np.arange(2), rng.normal(size=(2, 2)), np.zeros((2, 3)), np.zeros((2, 3)))
    newton.apply_packed(rng.normal(size=(6, 2)), rng.normal(size=(2, 3)))
    tree_game.TreeSolver(3, 2, True)
    _saddle_by_hand(rng)
    _chains_by_hand(rng)
    _cliques_by_hand(rng)
    _search_by_hand(rng)


def _saddle_by_hand(rng: np.random.Generator) -> None:
    """Two rows of two entries, and an inequality over one entry of each; first from nothing, then from there."""
    from nashlearn.kernels.interior import solve_saddle

    row, first, member = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2, 2]), np.array([0, 0])
    reward, cost, weight = rng.normal(size=4), rng.random(4), rng.random(4)
    x, y, lam = np.empty((2, 4)), np.empty((2, 2)), np.empty((2, 1))
    for mu, warm in ((0.0, False), (0.1, True)):
        solve_saddle(
            reward, cost, weight, mu, mu, row, 2, first, member, np.array([False]), 1e-8, 50, warm, x, y, lam
        )  # fmt: skip


def _chains_by_hand(rng: np.random.Generator) -> None:
    """As PyTorch's losses call it: two chains of three nodes, with one table of transitions or one for each edge."""
    from nashlearn.games.networks.replies import Hamming
    from nashlearn.kernels.chains import subtract, sweeps

    loss, lengths, target = Hamming(np.ones(3)).compiled(), np.array([3, 2]), np.array([[0, 1, 1], [1, 0, 0]])
    for kind in (np.float64, np.float32):
        for shared, m in ((True, 1), (False, 4)):
            node, edge = rng.normal(size=(2, 3, 2)).astype(kind), rng.normal(size=(m, 2, 2)).astype(kind)
            tops = edge.max(axis=(1, 2)).astype(float)
            p, q, E = np.full((2, 3, 2), 0.5), np.zeros((2, 3, 2), kind), np.zeros((max(m, 2), 2, 2))
            value, gap, lost = np.zeros(2), np.zeros(2), np.zeros(2, bool)
            W = np.exp((edge - tops[:, None, None]) / 0.5)
            sweeps(loss, node, tops, W, shared, 0.5, 1e-3, 50, 1.0, lengths, p, q, E, value, gap, lost, 0, 2)
            subtract(node, edge, shared, target, lengths, value, q, E.astype(kind))


def _cliques_by_hand(rng: np.random.Generator) -> None:
    """Triangles and a pair of them that share an edge, with one table for all edges and with tables of their own."""
    from nashlearn.games.networks.batch import Networks

    triangle, both = [(0, 1), (1, 2), (2, 0)], [(0, 1), (1, 2), (2, 0), (3, 1), (2, 3)]
    networks = Networks([3, 4, 3], [np.array(edges) for edges in (triangle, both, triangle)], 2, "zero_one", True)
    for m in (1, 11):
        scores, found = (rng.normal(size=(10, 2)), rng.normal(size=(m, 2, 2))), None
        for smoothing in (0.5, 0.0):
            found = networks.solve(scores, smoothing=smoothing, start=found)


def _search_by_hand(rng: np.random.Generator) -> None:
    """The best labelling of a triangle, in short walks."""
    from nashlearn.games.networks import stars
    from nashlearn.games.networks.search import Search

    g = stars.incidence(3, np.array([(0, 1), (1, 2), (2, 0)]), np.arange(3))
    Search(g, rng.random((3, 2)), rng.random((3, 2, 2)), 1.0, 1e-9).run(10.0, 200)

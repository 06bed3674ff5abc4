"""Learning to parse: trees over tokens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nashlearn.dask.answers import lazily
from nashlearn.estimators._base import number, opened_checkpoint
from nashlearn.estimators._structured import StructuredNash, example_weights
from nashlearn.games.trees.arborescence import check_heads
from nashlearn.training.designs.arcs import (
    ArcFeatures,
    TokenVectors,
    TreeProblem,
    best_heads,
    full_matrix,
    split,
    strategies,
    token_basis,
)
from nashlearn.training.methods.blocks import train_blocks
from nashlearn.training.missing_heads import completed, known_share, known_weights

__all__ = ["NashParser"]

_SCHEDULE = (0.1, 0.02, 0.004, 0.0)


def _hashed(X: Any) -> bool:
    """Whether the features of arcs are computed when needed, as :class:`nashlearn.parsing.HashedSentences` does."""
    return hasattr(X, "attributes")


def _arc_rows(rows: int) -> int:
    """The ``n`` with ``n (n + 1) = rows``, or -1."""
    n = int(np.sqrt(rows))
    return n if n * (n + 1) == rows else -1


def _sentences(X: Any) -> tuple[list[Any], np.ndarray]:
    """Examples as float64 arrays or CSR matrices, checked, and their numbers of tokens."""
    given: list[Any] = []
    sizes: list[int] = []
    if len(X) == 0:
        raise ValueError("X holds no sentence.")
    for i, x in enumerate(X):
        if sparse.issparse(x):
            x = sparse.csr_array(x, dtype=np.float64)
            n, values = _arc_rows(x.shape[0]), x.data
            if n < 0:
                raise ValueError(
                    f"X[{i}] is sparse and must have n (n + 1) rows, one for each arc; it has {x.shape[0]}."
                )
        else:
            try:
                x = values = np.asarray(x, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(f"X[{i}] must be an array of numbers: {error}.") from None
            if x.ndim not in (2, 3) or (x.ndim == 3 and x.shape[1] != x.shape[0] + 1):
                raise ValueError(
                    f"X[{i}] must be arc features (n, n + 1, d), token vectors (n, d) or a sparse matrix of n (n + 1) "
                    f"rows; got shape {x.shape}."
                )
            n = x.shape[0]
        if n == 0:
            raise ValueError(f"X[{i}] is an empty sentence.")
        if not np.isfinite(values).all():
            raise ValueError(f"X[{i}] holds NaN or infinite features.")
        if given and (x.ndim, x.shape[-1], sparse.issparse(x)) != _kind(given[0]):
            raise ValueError(f"X[{i}] has shape {x.shape}, which differs in kind or width from X[0]: {given[0].shape}.")
        given.append(x)
        sizes.append(n)
    return given, np.array(sizes, dtype=np.int64)


def _kind(x: Any) -> tuple[int, int, bool]:
    return x.ndim, x.shape[-1], sparse.issparse(x)


class NashParser(StructuredNash):
    """Dependency trees trained for the number of tokens that get the wrong head [li2022]_.

    The score of a tree is the sum of linear scores of its arcs; the loss is the value of the game over trees
    (:func:`nashlearn.games.arborescence`), a Fisher-consistent surrogate of the unlabelled attachment loss.

    Parameters
    ----------
    alpha : float, default=1e-3
        Multiplies half the squared norm of the weights, against the mean loss of a token. Hashed sentences want far
        less, and a larger ``tol``: see :func:`nashlearn.parsing.text_parser`.
    single_root : bool, default=True
        Whether exactly one token hangs from the root.
    smoothing : float, default=0.0
        Quadratic smoothing of the game, part of the model. 0 is the published game; training then passes through
        smoother ones, and ``dual_gap_`` is that of the game itself. Hashed sentences are trained without.
    decision : {"scores", "equilibrium"}, default="scores"
        Whether to predict the tree of the largest score, or that which hits most of the equilibrium strategy ``p`` in
        expectation (least Bayes risk).
    tol : float, default=1e-3
        Relative duality gap to train to.
    max_iter : int, default=1000
        Iterations of L-BFGS; for hashed sentences, passes over them.
    warm_start : bool, default=False
        Start from the weights of the last fit; not for hashed sentences.
    n_jobs : int, optional
        Threads. The result does not depend on their number.
    random_state : int, RandomState or None
        Order in which hashed sentences are visited.
    verbose : int, default=0
        Print a line for each iteration where positive.
    max_time : float, optional
        Seconds of training after which it ends at the best weights so far.
    checkpoint : path-like, optional
        File in which training keeps its state, every few seconds and at its end. A fit that finds the file of its own
        data and parameters goes on from there; one of others is refused. See :mod:`nashlearn.training.checkpoint`.
    callback : callable, optional
        Called after each round with a :class:`nashlearn.training.progress.Round`. A KeyboardInterrupt, also one that
        it raises, ends training at the best weights so far.

    Attributes
    ----------
    coef_ : ndarray
        Weights of arc features (d,); or the matrix (d + 1, d + 2) between dependents ``[t, 1]`` and heads
        ``[t, 1, 0]``, the root being ``[0, 0, 1]``.
    objective_, dual_gap_, n_iter_ : float, float, int
        The objective, its proven relative distance from the optimum, and the iterations taken.
    history_ : list of Round
        The certificate over time: (n_iter, seconds, objective, bound, gap) after each round.

    Notes
    -----
    ``X`` is a list with, for each sentence of ``n`` tokens, arc features (n, n + 1, d), entry ``[d, h]`` being that of
    token ``d`` with head ``h`` (0 the root, ``h`` token ``h - 1``); or the same as a sparse matrix (n (n + 1), d); or
    token vectors (n, d), scored bilinearly. Or it is a :class:`nashlearn.parsing.HashedSentences`, whose features are
    sparse and computed when needed: then training visits sentence by sentence
    (:mod:`nashlearn.training.methods.blocks`); else it is L-BFGS.

    ``y`` is a list of heads (n,), -1 where one is missing. Missing heads are corrected for by the share of heads that
    are known (:mod:`nashlearn.training.missing_heads`), which assumes that they are missing at random; the objective
    may then be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from nashlearn import NashParser
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(n, n + 1, 3)) for n in (3, 4, 5, 6)]
    >>> from nashlearn import games
    >>> y = [games.arborescence(len(x), single_root=True).argmax(x[None, :, :, 0])[0] for x in X]
    >>> parser = NashParser(alpha=1e-2).fit(X, y)
    >>> parser.score(X, y), parser.dual_gap_ < 1e-3
    (1.0, True)
    """

    _basis: np.ndarray | None
    _kind: tuple[int, int, bool]
    _known: float  # share of heads that are known in all partitions

    def __init__(
        self,
        *,
        alpha: float = 1e-3,
        single_root: bool = True,
        smoothing: float = 0.0,
        decision: str = "scores",
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        max_time: float | None = None,
        checkpoint: Any = None,
        callback: Any = None,
    ):
        self.alpha = alpha
        self.single_root = single_root
        self.smoothing = smoothing
        self.decision = decision
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.max_time = max_time
        self.checkpoint = checkpoint
        self.callback = callback

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not 0 <= number(self.smoothing, "smoothing") < np.inf:
            raise ValueError(f"smoothing must be a finite number, not negative; got {self.smoothing!r}.")

    def _smoothing(self) -> tuple[float, Iterable[float]]:
        target = float(self.smoothing)
        return target, [mu for mu in _SCHEDULE if mu > target] + [target]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NashParser:
        """Train to a relative duality gap of ``tol``.

        Parameters
        ----------
        X : list of sentences, or HashedSentences
        y : list of heads (n,), -1 where missing
        sample_weight : array-like of shape (n_sentences,), optional
            Not negative. The loss is the weighted mean: a weight counts as repetitions.

        Returns
        -------
        self

        Warns
        -----
        ConvergenceWarning
            Where ``dual_gap_`` exceeds ``tol``.
        """
        if not _hashed(X):
            return super().fit(X, y, sample_weight)
        self._check_parameters()
        if self.smoothing:
            raise ValueError(f"smoothing must be 0 for hashed sentences; got {self.smoothing!r}.")
        omega, heads = self._targets(y, X.sizes, sample_weight)
        trained = train_blocks(
            X.attributes,
            heads,
            omega,
            float(self.alpha),
            single_root=bool(self.single_root),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            rng=np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            n_jobs=joblib.effective_n_jobs(self.n_jobs),
            verbose=self.verbose,
            max_time=self.max_time,
            callback=self.callback,
            checkpoint=opened_checkpoint(self, X, y, sample_weight),
        )
        self._basis, self._kind = None, (0, 1 << X.attributes.bits, True)
        self._weights, self._loss_of_training = trained.w, trained.loss
        self.coef_ = trained.w
        self.objective_, self.dual_gap_, self.n_iter_ = trained.objective, trained.dual_gap, trained.n_iter
        self.history_ = trained.rounds
        return self

    def _targets(self, y: Any, sizes: np.ndarray, sample_weight: Any) -> tuple[np.ndarray, list[np.ndarray]]:
        """Weights of a token of each sentence in the mean, and the true heads, checked."""
        if len(y) != sizes.size:
            raise ValueError(f"y must hold the heads of each of the {sizes.size} sentences; got {len(y)}.")
        heads = []
        for i, (one, n) in enumerate(zip(y, sizes, strict=True)):
            tree = np.asarray(one)
            if tree.shape != (n,) or tree.dtype.kind not in "iu":
                raise ValueError(f"y[{i}] must hold {n} integers, a head for each token; got {one!r}.")
            heads.append(tree.astype(np.int64))
            _check_known(heads[-1], bool(self.single_root), f"y[{i}]")
        weight = example_weights(sample_weight, sizes.size)
        return weight / (weight @ sizes), heads

    def _problem(self, X: Any, y: Any, sample_weight: Any) -> TreeProblem:
        given, sizes = _sentences(X)
        omega, heads = self._targets(y, sizes, sample_weight)
        known = known_share(known_weights(heads, omega))
        self._kind = _kind(given[0])
        bilinear = self._kind[0] == 2 and not self._kind[2]
        self._basis = token_basis(given) if bilinear else None
        return self._trees(given, sizes, heads, omega, known)

    def _trees(
        self, given: list[Any], sizes: np.ndarray, heads: list[np.ndarray], omega: np.ndarray, known: float
    ) -> TreeProblem:
        design, n_jobs = self._design(given, sizes), joblib.effective_n_jobs(self.n_jobs)
        return TreeProblem(design, heads, omega, bool(self.single_root), n_jobs, known)

    def _survey(self, X: Any, y: Any, sample_weight: np.ndarray) -> tuple[np.ndarray, Any]:
        given, sizes = _sentences(X)
        _, heads = self._targets(y, sizes, None)
        return sizes, (_kind(given[0]), known_weights(heads, sample_weight))

    def _merged(self, one: Any, other: Any) -> Any:
        if one[0] != other[0]:
            raise ValueError(
                f"Partitions of X differ in kind or width: (dimensions, width, sparse) {one[0]} and {other[0]}."
            )
        return one[0], one[1] + other[1]

    def _adopt(self, facts: Any) -> None:
        self._kind, self._basis, self._known = facts[0], None, known_share(facts[1])

    def _part(self, X: Any, y: Any, sample_weight: np.ndarray) -> TreeProblem:
        given, sizes = _sentences(X)
        omega, heads = self._targets(y, sizes, sample_weight)
        return self._trees(given, sizes, heads, omega, self._known)

    def _design(self, given: list[Any], sizes: np.ndarray) -> Any:
        ndim, _, is_sparse = _kind(given[0])
        if ndim == 2 and not is_sparse:
            return TokenVectors(given, sizes, self._basis)
        return ArcFeatures(given, sizes)

    def _store(self, w: np.ndarray) -> None:
        self.__dict__.pop("_known", None)
        bilinear = self._kind[0] == 2 and not self._kind[2]
        self.coef_ = full_matrix(w, self._kind[1], self._basis) if bilinear else w

    @lazily
    def decision_function(self, X: Any) -> list[np.ndarray]:
        """Arc scores (n, n + 1) of each sentence; entry ``[d, d + 1]`` means nothing."""
        check_is_fitted(self)
        if _hashed(X):
            if self._kind != (0, 1 << X.attributes.bits, True):
                raise ValueError("X must be sentences of the kind that the parser was trained on, with as many bits.")
            return X.scores(self._weights)
        given, sizes = _sentences(X)
        if _kind(given[0]) != self._kind:
            raise ValueError(
                f"X must be of the kind and width that the parser was trained on, {self._kind[1]} features; "
                f"X[0] has shape {given[0].shape}."
            )
        return split(self._design(given, sizes).scores(self._weights), sizes)

    @lazily
    def predict(self, X: Any) -> list[np.ndarray]:
        """Heads (n,) of each sentence: the tree that ``decision`` asks for."""
        scores = self.decision_function(X)
        if self.decision == "equilibrium":
            # Ties among the trees that hit most of p are many: the scores decide them.
            hits = self._strategies(scores)
            scores = [p + 1e-9 * (theta - _finite_min(theta)) for p, theta in zip(hits, scores, strict=True)]
        return best_heads(scores, bool(self.single_root))

    @lazily
    def strategy(self, X: Any) -> list[np.ndarray]:
        """The predictor's equilibrium strategy ``p`` of each sentence, whose loss :meth:`worst_case_risk` bounds.

        ``p[d, h]`` (n, n + 1) is the probability that token ``d`` gets head ``h``: a token with head ``h`` is expected
        to lose ``1 - p[d, h]``. Rows sum to 1.

        Warns
        -----
        ConvergenceWarning
            Where a game is not settled to 1e-8 of the loss of a token.
        """
        return self._strategies(self.decision_function(X))

    @lazily
    def predict_proba(self, X: Any) -> list[np.ndarray]:
        """How probable each head is in the strategy ``p``, (n, n + 1) for each sentence; see :meth:`strategy`.

        Rows sum to 1. Sparse, and not calibrated.
        """
        return self.strategy(X)

    def _strategies(self, scores: list[np.ndarray]) -> list[np.ndarray]:
        jobs = joblib.effective_n_jobs(self.n_jobs)
        return strategies(scores, float(self.smoothing), bool(self.single_root), jobs)

    def _mistakes(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        predicted = self.predict(X)
        _, answers = self._targets(y, np.array([len(heads) for heads in predicted]), None)
        wrong = [np.count_nonzero((a != b) & (b >= 0)) for a, b in zip(predicted, answers, strict=True)]
        known = [np.count_nonzero(b >= 0) for b in answers]
        return np.array(wrong, dtype=np.float64), np.array(known, dtype=np.float64)


def _check_known(heads: np.ndarray, single_root: bool, name: str) -> None:
    """Refuse heads that no tree has; -1 is missing."""
    n, known = heads.size, heads[heads >= 0]
    if known.size == n:
        check_heads(heads, single_root, name)
    if (heads < -1).any() or (known > n).any():
        wrong = heads[(heads < -1) | (heads > n)][0]
        raise ValueError(f"{name} must hold heads 0 (the root) to {n}, or -1 where missing; got {wrong}")
    if completed(heads, single_root) is None:
        rule = ", more than one token at the root" if single_root else ""
        raise ValueError(f"{name} holds heads that no tree has: a cycle, a token that is its own head{rule}")


def _finite_min(theta: np.ndarray) -> float:
    return float(theta[np.isfinite(theta)].min(initial=0.0))

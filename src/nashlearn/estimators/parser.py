"""Learning to parse: trees over tokens."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nashlearn.dask.answers import lazily
from nashlearn.estimators._arc_input import sentences, true_heads
from nashlearn.estimators._entries import EntryNash
from nashlearn.estimators._parameters import parameters
from nashlearn.estimators._structured import Facts, example_weights
from nashlearn.games.batch import Batch
from nashlearn.training.designs.arcs import full_matrix, token_basis, tree_games, tree_problem
from nashlearn.training.driver import Method
from nashlearn.training.methods.blocks import BlockProblem, Blocks
from nashlearn.training.missing_heads import known_share, known_weights
from nashlearn.training.objective import GameProblem

__all__ = ["NashParser"]


class _Treebank(NamedTuple):
    """Sentences, their heads, -1 where missing, and their weights."""

    sentences: Any
    heads: list[np.ndarray]
    weight: np.ndarray


@dataclass(frozen=True)
class TreeFacts(Facts):
    """The kind of features, the weight of tokens whose head is known and of all, and a basis of few token vectors.

    ``total`` counts tokens.
    """

    kind: tuple[int, int, bool]
    known: np.ndarray
    basis: np.ndarray | None

    def __add__(self, other: TreeFacts) -> TreeFacts:
        if self.kind != other.kind:
            raise ValueError(
                f"Partitions of X differ in kind or width: (dimensions, width, sparse) {self.kind} and {other.kind}."
            )
        bases = [basis for basis in (self.basis, other.basis) if basis is not None]
        basis = token_basis(bases) if len(bases) == 2 else None
        return TreeFacts(self.total + other.total, self.kind, self.known + other.known, basis)

    @property
    def complete(self) -> bool:
        """Whether no head that counts is missing."""
        return self.known[0] == self.known[1]


@parameters
class NashParser(EntryNash):
    """Dependency trees trained for the number of tokens that get the wrong head [li2022]_.

    The score of a tree is the sum of linear scores of its arcs; the loss is the value of the game over trees
    (:func:`nashlearn.games.arborescence`), a Fisher-consistent surrogate of the unlabelled attachment loss.

    Parameters
    ----------
    alpha : float, default=1e-3
        Multiplies half the squared norm of the weights, against the mean loss of a token divided by ``1 + smoothing``,
        so that it means the same for every smoothing. Hashed sentences want far less, about 0.5 divided by the number
        of tokens, and a larger ``tol``: see :func:`nashlearn.parsing.text_parser`.
    single_root : bool, default=True
        Whether exactly one token hangs from the root.
    smoothing : float, default=0.0
        Quadratic smoothing of the game, part of the model, relative to the loss of a token, 1. 0 is the published
        game; training then passes through smoother ones, and ``dual_gap_`` is that of the game itself. Hashed sentences
        are trained without.
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
        The objective, its proven relative distance from the optimum, and the iterations taken. As the weights, the
        objective is of the loss divided by ``1 + smoothing``.
    smoothing_ : float
        The smoothing that the model was trained with.
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

    _schedule = (0.1, 0.02, 0.004, 0.0)
    _accurate = 1e-10

    _: KW_ONLY
    single_root: bool = True
    decision: str = "scores"
    random_state: Any = None

    def _read(self, X: Any, y: Any, sample_weight: Any) -> _Treebank:
        given = sentences(X)
        heads = true_heads(y, given.sizes, bool(self.single_root))
        return _Treebank(given, heads, example_weights(sample_weight, given.sizes.size))

    def _facts(self, data: _Treebank) -> TreeFacts:
        known = known_weights(data.heads, data.weight)
        return TreeFacts(known[1], data.sentences.kind, known, data.sentences.basis())

    def _problem(self, data: _Treebank, facts: TreeFacts, sums: Any) -> GameProblem:
        design = data.sentences.design(facts.basis)
        if design.by_blocks and self.smoothing:
            raise ValueError(f"smoothing must be 0 for hashed sentences; got {self.smoothing!r}.")
        make = BlockProblem if design.by_blocks else tree_problem
        return make(
            design,
            data.heads,
            data.weight / facts.total,
            bool(self.single_root),
            known=known_share(facts.known),
            tol=self._accurate,
            n_jobs=self.n_jobs,
        )

    def _method(self, problem: Any, facts: TreeFacts) -> Method:
        fits = all(hasattr(problem, name) for name in Blocks.needs)
        return Blocks() if fits else super()._method(problem, facts)

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _store(self, w: np.ndarray, facts: TreeFacts, problem: Any) -> None:
        self._kind, self._basis = facts.kind, facts.basis
        bilinear = self._kind[0] == 2 and not self._kind[2]
        self.coef_ = full_matrix(w, self._kind[1], self._basis) if bilinear else w

    def _variables(self, game: Any) -> float:
        return game.shape[0]

    def _scored(self, X: Any) -> tuple[Batch, np.ndarray]:
        check_is_fitted(self)
        given = sentences(X)
        if given.kind != self._kind:
            raise ValueError(
                f"X must be of the kind and width that the parser was trained on, {self._kind[1]} features; hashed "
                f"sentences with as many bits; "
                f"it is (dimensions, width, sparse) {given.kind}, not {self._kind}."
            )
        return tree_games(given.sizes, bool(self.single_root)), given.design(self._basis).scores(self._weights)

    @lazily
    def decision_function(self, X: Any) -> list[np.ndarray]:
        """Arc scores (n, n + 1) of each sentence; entry ``[d, d + 1]`` means nothing."""
        games, scores = self._scored(X)
        return games.split(scores)

    @lazily
    def predict(self, X: Any) -> list[np.ndarray]:
        """Heads (n,) of each sentence: the tree that ``decision`` asks for."""
        games, scores = self._scored(X)
        if self.decision == "equilibrium":
            # Ties among the trees that hit most of p are many: the scores decide them.
            hits = zip(self._strategies(games, scores), games.split(scores), strict=True)
            scores = np.concatenate([(p + 1e-9 * (theta - theta.min())).ravel() for p, theta in hits])
        return games.argmax(scores)

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
        return self._strategies(*self._scored(X))

    @lazily
    def predict_proba(self, X: Any) -> list[np.ndarray]:
        """How probable each head is in the strategy ``p``, (n, n + 1) for each sentence; see :meth:`strategy`.

        Rows sum to 1. Sparse, and not calibrated: smoothing is quadratic here, with which no distribution over trees
        comes.
        """
        return self.strategy(X)

    def _mistakes(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        predicted = self.predict(X)
        answers = true_heads(y, np.array([len(heads) for heads in predicted]), bool(self.single_root))
        wrong = [np.count_nonzero((a != b) & (b >= 0)) for a, b in zip(predicted, answers, strict=True)]
        known = [np.count_nonzero(b >= 0) for b in answers]
        return np.array(wrong, dtype=np.float64), np.array(known, dtype=np.float64)

    def _expected_mistakes(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        p = self.strategy(X)
        answers = true_heads(y, np.array([len(one) for one in p]), bool(self.single_root))
        hits = [float(one[np.flatnonzero(own >= 0), own[own >= 0]].sum()) for one, own in zip(p, answers, strict=True)]
        known = np.array([np.count_nonzero(own >= 0) for own in answers], dtype=np.float64)
        return known - hits, known

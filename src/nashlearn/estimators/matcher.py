"""Learning to assign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nashlearn.dask.answers import lazily
from nashlearn.estimators._entries import EntryNash
from nashlearn.estimators._matching_input import (
    PARTS,
    assignments,
    common_widths,
    completed,
    examples,
    refuse_impossible,
)
from nashlearn.estimators._structured import Facts, example_weights
from nashlearn.games.batch import Batch
from nashlearn.training.designs.pairs import Example, PairFeatures, matching_games, matching_problem
from nashlearn.training.objective import GameProblem

__all__ = ["NashMatcher"]


class _Matchings(NamedTuple):
    """Examples, the partners of their left elements, and their weights."""

    examples: list[Example]
    partners: list[np.ndarray]
    weight: np.ndarray


@dataclass(frozen=True)
class MatchingFacts(Facts):
    """Whether elements may stay alone, and the numbers of pair, leave and enter features.

    ``total`` counts left elements.
    """

    partial: bool
    widths: tuple[int, ...]

    def __add__(self, other: MatchingFacts) -> MatchingFacts:
        partial = self.partial or other.partial
        widths = self._widths(partial)
        for name, first, here in zip(PARTS, widths, other._widths(partial), strict=False):
            if here != first:
                raise ValueError(
                    f"Partitions of X differ: {first} {name} features in one, {here} in another; all examples need the "
                    "same."
                )
        return MatchingFacts(self.total + other.total, partial, widths)

    def _widths(self, partial: bool) -> tuple[int, ...]:
        """Those of the constants for staying alone included, where elements of other partitions may."""
        return self.widths if self.partial or not partial else (*self.widths, 1, 1)


class NashMatcher(EntryNash):
    """Matchings of two sets, trained for the number of elements that get the wrong partner [fathony2019]_.

    The score of a matching is the sum of linear scores of its pairs. In a partial matching, elements may also stay
    alone: those of the left set leave, those of the right set enter, with linear scores of their own. The loss is the
    value of the game over matchings (:func:`nashlearn.games.matching`, :func:`nashlearn.games.partial_matching`), a
    Fisher-consistent surrogate of the Hamming loss.

    Parameters
    ----------
    alpha : float
        Multiplies half the squared norm of the weights, against the mean loss of a left element divided by
        ``1 + smoothing``, so that it means the same for every smoothing.
    smoothing : float
        Quadratic smoothing of the game, part of the model, relative to the loss of an element, 1. 0 is the published
        game; training then passes through smoother ones, and ``dual_gap_`` is that of the game itself.
    tol : float
        Relative duality gap to train to.
    max_iter : int
        Iterations of L-BFGS, in all.
    warm_start : bool
        Start from the weights of the last fit.
    n_jobs : int, optional
        Threads. The result does not depend on their number.
    verbose : int
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
    coef_ : ndarray (d,)
        Weights of the pair features.
    leave_coef_, enter_coef_ : ndarray (d_leave,), (d_enter,)
        Weights of the features of elements that stay alone; absent where all elements are matched.
    partial_ : bool
        Whether elements may stay alone.
    objective_, dual_gap_, n_iter_ : float, float, int
        The objective, its proven relative distance from the optimum, and the iterations taken. As the weights, the
        objective is of the loss divided by ``1 + smoothing``.
    smoothing_ : float
        The smoothing that the model was trained with.
    history_ : list of Round
        The certificate over time: (n_iter, seconds, objective, bound, gap) after each round.

    Notes
    -----
    An example is one of

    - an array (n1, n2, d) of pair features;
    - a tuple (pairs, leave, enter) with features (n1, d_leave) and (n2, d_enter) for staying alone;
    - a tuple (pairs, leave, enter, allowed) with a mask (n1, n2) of the pairs that may be matched; ``leave`` and
      ``enter`` may be None.

    Matchings are complete where no example has ``leave`` and ``enter``, all are square and no label is -1. Else they
    are partial, and examples without features for staying alone get a constant. Sizes may differ.

    Examples
    --------
    >>> import numpy as np
    >>> from nashlearn import NashMatcher
    >>> rng = np.random.default_rng(0)
    >>> left, right = rng.normal(size=(20, 4, 2)), rng.normal(size=(20, 4, 2))
    >>> X = list(-np.abs(left[:, :, None] - right[:, None]))
    >>> y = [np.argmin(np.abs(a[:, None, 0] - b[None, :, 0]), axis=1) for a, b in zip(left, right)]
    >>> kept = [i for i in range(20) if len(set(y[i])) == 4]
    >>> matcher = NashMatcher(alpha=1e-2).fit([X[i] for i in kept], [y[i] for i in kept])
    >>> bool(matcher.coef_[0] > matcher.coef_[1])
    True
    >>> matcher.predict([np.eye(3)[:, :, None] * [1.0, 0.0]])
    [array([0, 1, 2])]
    """

    _schedule = (0.1, 0.02, 0.004, 8e-4, 1.6e-4, 3.2e-5)
    _accurate = 1e-9

    def _read(self, X: Any, y: Any, sample_weight: Any) -> _Matchings:
        given = examples(X)
        return _Matchings(given, assignments(y, given), example_weights(sample_weight, len(given)))

    def _facts(self, data: _Matchings) -> MatchingFacts:
        partial = _some_alone(data.examples, data.partners)
        widths = common_widths([completed(example, partial) for example in data.examples])
        return MatchingFacts(float(data.weight @ [len(own) for own in data.partners]), partial, tuple(widths))

    def _problem(self, data: _Matchings, facts: MatchingFacts, sums: Any) -> GameProblem:
        given = [completed(example, facts.partial) for example in data.examples]
        refuse_impossible(given, data.partners)
        omega = data.weight / facts.total
        return matching_problem(given, data.partners, omega, tol=self._accurate, n_jobs=self.n_jobs)

    def _store(self, w: np.ndarray, facts: MatchingFacts, problem: Any) -> None:
        self.partial_, self._widths = facts.partial, list(facts.widths)
        for name in ("leave_coef_", "enter_coef_"):
            self.__dict__.pop(name, None)  # of an earlier fit to partial matchings
        parts = np.split(w, np.cumsum(self._widths)[:-1])
        for name, part in zip(("coef_", "leave_coef_", "enter_coef_"), parts, strict=False):
            setattr(self, name, part)

    def _variables(self, game: Any) -> float:
        return game.labels.n1

    def _scored(self, X: Any) -> tuple[Batch, np.ndarray]:
        check_is_fitted(self)
        given = examples(X)
        for i, example in enumerate(given):
            if not self.partial_ and (example.partial or example.pairs.shape[0] != example.pairs.shape[1]):
                raise ValueError(
                    f"X[{i}] may leave elements alone, but {type(self).__name__} was trained on complete matchings: "
                    "(n, n, d) arrays without -1 in y."
                )
        given = [completed(example, self.partial_) for example in given]
        for name, width, here in zip(PARTS, self._widths, common_widths(given), strict=False):
            if width != here:
                raise ValueError(f"X has {here} {name} features, but {type(self).__name__} was trained on {width}.")
        refuse_impossible(given)
        games = matching_games(given)
        return games, PairFeatures(given, games).scores(self._weights)

    @lazily
    def decision_function(self, X: Any) -> list[np.ndarray]:
        """Scores of each example, (n1, n2); or (n1 + 1, n2 + 1) where elements may stay alone.

        Then the last column holds the scores of leaving and the last row those of entering. Forbidden pairs have -inf.
        """
        games, scores = self._scored(X)
        return games.split(scores)

    @lazily
    def predict(self, X: Any) -> list[np.ndarray]:
        """Partners (n1,) of the left elements of each example in the best matching, -1 for none."""
        games, scores = self._scored(X)
        return games.argmax(scores)

    @lazily
    def strategy(self, X: Any) -> list[np.ndarray]:
        """The predictor's equilibrium strategy ``p`` of each example, whose loss :meth:`worst_case_risk` bounds.

        A matrix as :meth:`decision_function` returns it: ``p[i, j]`` is the probability of pairing ``i`` with ``j``.
        Where elements may stay alone, the last column holds the probabilities of leaving and the last row those of
        entering. A left element with partner ``j`` is expected to lose ``1 - p[i, j]``, and one without
        ``1 - p[i, -1]``. Forbidden pairs have 0.

        Warns
        -----
        ConvergenceWarning
            Where a game is not settled to 1e-8 of the loss of an element.
        """
        return self._strategies(*self._scored(X))

    @lazily
    def predict_proba(self, X: Any) -> list[np.ndarray]:
        """How probable each pair is in the strategy ``p``, (n1, n2) for each example; see :meth:`strategy`.

        Rows and columns sum to 1, or to at most 1 in partial matchings; the rest is the probability of no partner.
        Sparse, and not calibrated: smoothing is quadratic here, with which no distribution over matchings comes.
        """
        return [p[:-1, :-1] if self.partial_ else p for p in self.strategy(X)]

    def _mistakes(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        predicted = self.predict(X)
        answers = assignments(y, examples(X))
        wrong = [np.count_nonzero(a != b) for a, b in zip(predicted, answers, strict=True)]
        return np.array(wrong, dtype=np.float64), np.array([len(a) for a in answers], dtype=np.float64)

    def _expected_mistakes(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        p, answers = self.strategy(X), assignments(y, examples(X))
        alone = self.partial_  # else nobody stays so, and the last column is a partner's
        hits = [
            float((one[np.arange(own.size), own] * (alone | (own >= 0))).sum())
            for one, own in zip(p, answers, strict=True)
        ]
        sizes = np.array([own.size for own in answers], dtype=np.float64)
        return sizes - hits, sizes


def _some_alone(given: list[Example], answers: list[np.ndarray]) -> bool:
    """Whether some element may or must stay alone."""
    return any(
        example.partial or example.pairs.shape[0] != example.pairs.shape[1] or bool((partners < 0).any())
        for example, partners in zip(given, answers, strict=True)
    )

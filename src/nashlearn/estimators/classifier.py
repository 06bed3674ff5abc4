"""Classification for any loss between options and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from nashlearn import games
from nashlearn.dask.answers import averaged
from nashlearn.estimators._costs import named_costs
from nashlearn.estimators._deciding import DecidingNash
from nashlearn.estimators._labels import known_positions, warn_of_words
from nashlearn.estimators._parameters import parameters
from nashlearn.estimators._per_class import PerClassNash
from nashlearn.estimators._row_costs import matrices_for
from nashlearn.games._check import cost_matrix
from nashlearn.games.catalogue import LOSSES, NAMED, suggested_name

__all__ = ["NashClassifier"]


@parameters
class NashClassifier(DecidingNash, PerClassNash):
    """Linear or kernel classifier trained on the loss that it is judged by, with probabilities of the labels.

    Minimises ``alpha/2 |W|^2 + mean loss``. The loss of scores ``f = W x`` is the value, less the score of the true
    label, of the game between a predictor, who answers with the strategy ``p`` over the options, and an adversary, who
    chooses the distribution ``q`` of the labels and is paid for its entropy [fathony2016]_, [fathony2019]_. With the
    largest cost ``s`` and the smoothing ``m`` it is

        ``loss = (cost of p / s + m log loss of q) / (1 + m)``,

    convex and, for ``m > 0``, strictly proper: where scores are free, ``q`` are the probabilities of the labels and
    ``p`` takes options of least expected cost. ``m = 0`` is the exact game of the references, Fisher consistent for the
    loss but without probabilities; for ``m`` to infinity it becomes logistic regression. As costs are divided by
    ``s``, ``alpha`` means the same whatever they are counted in, and for every smoothing. The intercept is the weight
    of one more, constant feature, and regularised.

    Parameters
    ----------
    loss : {"zero_one", "absolute", "squared"}, cost matrix, DataFrame, dict of dicts or callable, default="zero_one"
        A cost matrix has a row per option and a column per class, in the order of ``classes_``: entry (i, j) is
        what answering ``i`` costs when the label is ``j``; finite and not negative. The rows and columns of a pandas
        DataFrame, and of a dict ``{option: {label: cost}}``, have names and are aligned to the classes by these; a
        label of ``y`` without a column is an error, a column whose label ``y`` lacks, say in a fold of
        cross-validation, is left out of training. ``"absolute"`` and ``"squared"`` measure the distance between the
        ranks of classes. A callable maps the number of classes to a game of :mod:`nashlearn.games`, say
        ``lambda k: games.absolute(k, values=[0, 1, 5])``.
    alpha : "auto" or float, default="auto"
        Regularisation against the mean loss, positive: ``C = 1 / (n alpha)`` of LogisticRegression, and
        ``2 / (n alpha)`` for two classes, of which it keeps one vector. ``"auto"`` is its ``C = 1``: one over the
        number of rows, or over the sum of ``sample_weight``, and twice that for two classes; in ``partial_fit`` 1e-3.
        ``alpha_`` says which.
    penalty : {"l2", "l1"}, default="l2"
        ``"l1"`` minimises ``alpha |W|_1 + mean loss``: many weights are exactly 0, ``n_nonzero_`` of ``coef_`` are not,
        and ``alpha`` is ``1 / (n C)`` of LogisticRegression with ``l1_ratio=1``, for two classes too. The intercept is
        penalised as every weight, times ``1 / intercept_scaling``: as in liblinear, and unlike in saga, which leaves it
        free. For linear models, in memory.
    smoothing : "auto" or float, default="auto"
        What the adversary is paid for entropy, ``m`` above: relative to the largest cost, 0 or between 1e-9 and 1e9.
        ``"auto"`` is 1 for linear models and 0, the exact game, with a kernel: smoothing makes a support vector of
        every row. ``smoothing_`` says which.
    intercept_scaling : "auto" or float, default="auto"
        The constant feature: the larger, the less the intercept is regularised. ``"auto"`` is 10 for linear models,
        and 1 with a kernel or at smoothing 0.
    kernel : {"linear", "rbf", "poly", "laplacian", "precomputed"}, callable or None, default=None
        None and "linear" are linear training. A callable maps two matrices of rows to their kernel values; with
        "precomputed" ``X`` is the square Gram matrix in ``fit``, and (rows, training rows) later. It must be positive
        semidefinite: an indefinite one is refused.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the named kernels, as scikit-learn's SVC reads it.
    degree, coef0 : int and float, default=3 and 0.0
        Degree and constant, not negative, of the polynomial kernel.
    decision : {"auto", "scores", "equilibrium"}, default="auto"
        Answer with the largest score, or with the largest entry of the equilibrium strategy ``p``. The latter is
        consistent for every loss: with enough data it is an option of least expected cost. The largest score need not
        be, for instance where being right costs something. ``"auto"`` takes the largest score where it always has the
        largest ``p``, where all mistakes cost the same, and the largest ``p`` otherwise; ``decision_`` says which.
        Where options are not labels the answer is always by ``p``: the name of an option, or its index where a cost
        matrix that is not square has no names.
    fit_intercept : bool, default=True
        Whether to add the constant feature.
    class_weight : dict or "balanced", optional
        Weights of the examples of each class.
    tol : float, default=1e-3
        Relative duality gap at which training ends. Small problems are solved far beyond it.
    cache_size : float, default=800
        Megabytes for rows of the Gram matrix; fewer make training slower, never wrong.
    max_iter : int, default=1000
        Sweeps and Newton steps allowed, together.
    warm_start : bool, default=False
        Start from the last solution where classes and number of rows are the same. Keeps the dual, (n, k).
    random_state : int, RandomState or None
        Seed of the order in which examples are visited.
    verbose : int, default=0
        Print each certificate where positive.
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
    classes_ : ndarray (k,)
        Labels, sorted.
    options_ : ndarray
        What ``predict`` may answer: ``classes_``, or the names or indices of the rows of a cost matrix.
    smoothing_, alpha_ : float
        The smoothing and the regularisation that was trained with.
    coef_, intercept_ : ndarray (k, d) and (k,), or (1, d) and (1,) for two classes
        Weights, shaped as those of LogisticRegression.
        A kernel model has ``dual_coef_`` (k or 1, support vectors) in place of ``coef_``, with ``support_`` and
        ``support_vectors_``.
    decision_ : {"scores", "equilibrium"}
        The rule by which ``predict`` answers.
    objective_ : float
        Value of the objective at these weights, of the normalised loss. Costs themselves are what :meth:`task_loss`
        and :meth:`worst_case_risk` are in.
    dual_gap_ : float
        Its certificate: the relative distance to the optimum is at most this, rounding included.
    n_iter_ : int
        Sweeps and Newton steps taken.
    history_ : list of Round
        The certificate over time: (n_iter, seconds, objective, bound, gap) after each round.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nashlearn import NashClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NashClassifier().fit(X, y)
    >>> model.dual_gap_ <= model.tol
    True
    >>> model.predict_proba(X[[0, 83]]).round(2)
    array([[0.99, 0.01, 0.  ],
           [0.  , 0.44, 0.56]])
    >>> costs = {"keep": {0: 0, 1: 0, 2: 9}, "throw away": {0: 1, 1: 1, 2: 0}}
    >>> NashClassifier(costs).fit(X, y).predict(X[[0, 149]])
    array(['keep', 'throw away'], dtype='<U10')
    """

    loss: Any = "zero_one"

    def _make_game(self, classes: np.ndarray) -> Any:
        """The game of the loss; keeps the names of its options, and the costs of all labels that it names."""
        named = None if callable(self.loss) else named_costs(self.loss)
        if named is not None:
            self.options_, self._priced_labels, costs = named.arranged(classes)
            self._priced: np.ndarray | None = costs
            return games.cost(costs[:, : classes.size])
        game = self._unnamed_game(classes)
        if not hasattr(game, "n_labels"):
            raise TypeError(f"loss must map the number of classes to a game of nashlearn.games; it returned {game!r}.")
        if game.n_labels != classes.size:
            raise ValueError(
                f"loss has {game.n_labels} columns, but y has {classes.size} classes, {classes.tolist()!r:.100}; it "
                "needs one for each, in this order. Where a part of the data, say a fold, may lack a class, name rows "
                "and columns: pandas.DataFrame(costs, index=labels, columns=labels) may have more than y holds."
            )
        self.options_ = classes if game.n_options == classes.size else np.arange(game.n_options)
        self._priced_labels, self._priced = classes, None  # those of the game
        return game

    def _unnamed_game(self, classes: np.ndarray) -> Any:
        if isinstance(self.loss, str):
            if self.loss not in LOSSES:
                hint = " For abstention use NashAbstainer." if self.loss == "abstain" else suggested_name(self.loss)
                raise ValueError(f"loss must be one of {LOSSES}, a cost matrix or a callable; got {self.loss!r}.{hint}")
            if self.loss != "zero_one":
                warn_of_words(
                    classes, "use NashOrdinalClassifier(order=[...]), or numbers in the place of words", level=5
                )
            return NAMED[self.loss](classes.size)
        if callable(self.loss):
            try:
                return self.loss(classes.size)
            except (TypeError, ValueError, OverflowError) as error:
                raise ValueError(f"loss, called with the number of classes, failed: {error}") from error
        return games.cost(cost_matrix(self.loss, "loss"))

    def _before_tempering(self, state: dict[str, Any]) -> dict[str, Any]:
        then = super()._before_tempering(state)
        if "classes_" in state:
            classes, game = state["classes_"], state["_game"]
            options = classes if game.n_options == classes.size else np.arange(game.n_options)
            then |= {"options_": options, "_priced_labels": classes, "_priced": None}
        return then

    @property
    def _options(self) -> np.ndarray:
        return self.options_

    def _given_matrices(self, costs: Any, n: int) -> np.ndarray:
        classes = self._priced_labels[: self._game.n_labels]
        return matrices_for(costs, n, self.options_, classes)

    def _paid(self, options: np.ndarray, y: Any, costs: Any = None) -> np.ndarray:
        check_consistent_length(options, y)
        if np.ndim(costs) > 1:
            own = self._given_matrices(costs, options.size)
            return own[
                np.arange(options.size), options, known_positions(self.classes_, y, "was not seen in fit; known")
            ]
        known, unseen = self._priced_labels, self._priced_labels.size > self.classes_.size
        where = "the loss does not name; named" if unseen else "was not seen in fit; known"
        matrix = self._game.costs if self._priced is None else self._priced
        return self._charged(matrix[options, known_positions(known, y, where)], costs)

    def _all_costs(self) -> np.ndarray:
        return self._game.costs if self._priced is None else self._priced

    @averaged
    def score(self, X: Any, y: Any, sample_weight: Any = None, costs: Any = None) -> float:
        """The metric that ``loss`` names: accuracy for ``"zero_one"``, minus :meth:`task_loss` for all others.

        With ``costs`` it is minus :meth:`task_loss` for every loss.
        """
        check_is_fitted(self)
        if costs is None and isinstance(self.loss, str) and self.loss == "zero_one":
            return ClassifierMixin.score(self, X, y, sample_weight)
        return -self.task_loss(X, y, sample_weight, costs)

"""Classification for any loss between options and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nashlearn import games
from nashlearn.dask.answers import averaged
from nashlearn.estimators._base import PerClassNash
from nashlearn.estimators._deciding import DecidingNash
from nashlearn.estimators._parameters import parameters
from nashlearn.games.catalogue import LOSSES, NAMED

__all__ = ["NashClassifier"]


@parameters
class NashClassifier(DecidingNash, PerClassNash):
    """Linear or kernel classifier trained on the loss that it is judged by.

    Minimises ``alpha/2 |W|^2 + mean(F(W x) - (W x)_y)``, where ``F`` is the value of the game between a predictor
    and an adversary with payoff ``L`` [fathony2016]_, [fathony2019]_: a convex loss, Fisher consistent for ``L``.
    The intercept is one more, constant feature, and regularised.

    Parameters
    ----------
    loss : {"zero_one", "absolute", "squared"}, cost matrix, or callable, default="zero_one"
        A cost matrix has a row per option and a column per class, in the order of ``classes_``: entry (i, j) is
        what answering ``i`` costs when the label is ``j``; finite and not negative. ``"absolute"`` and ``"squared"``
        measure the distance between the ranks of classes. A callable maps the number of classes to a game of
        :mod:`nashlearn.games`, say ``lambda k: games.absolute(k, values=[0, 1, 5])``.
    alpha : float, default=1e-3
        Regularisation against the mean loss, positive: ``C = 1 / (n alpha)``.
    kernel : {"rbf", "poly", "laplacian", "precomputed"}, callable or None, default=None
        None is linear training. A callable maps two matrices of rows to their kernel values; with "precomputed"
        ``X`` is the square Gram matrix in ``fit``, and (rows, training rows) later. It must be positive semidefinite:
        an indefinite one is refused.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the named kernels, as scikit-learn's SVC reads it.
    degree, coef0 : int and float, default=3 and 0.0
        Degree and constant, not negative, of the polynomial kernel.
    decision : {"auto", "scores", "equilibrium"}, default="auto"
        Answer with the largest score, or with the largest entry of the equilibrium strategy ``p``. The latter is
        consistent for every loss: with enough data it is an option of least expected cost. The largest score need not
        be, for instance where being right costs something. ``"auto"`` takes the largest score where it always has the
        largest ``p``, where all mistakes cost the same, and the largest ``p`` otherwise; ``decision_`` says which.
        Where options are not labels (a cost matrix that is not square) the answer is always by ``p``, the index of an
        option.
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
    coef_, intercept_ : ndarray (k, d) and (k,), or (1, d) and (1,) for two classes
        Weights, shaped as those of LogisticRegression.
        A kernel model has ``dual_coef_`` (k or 1, support vectors) in place of ``coef_``, with ``support_`` and
        ``support_vectors_``.
    decision_ : {"scores", "equilibrium"}
        The rule by which ``predict`` answers.
    objective_ : float
        Value of the objective at these weights.
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
    >>> model = NashClassifier("zero_one", alpha=1e-3).fit(X, y)
    >>> model.dual_gap_ <= model.tol
    True
    """

    loss: Any = "zero_one"

    def _make_game(self, classes: np.ndarray) -> Any:
        k = classes.size
        if isinstance(self.loss, str):
            if self.loss not in LOSSES:
                raise ValueError(
                    f"loss must be one of {LOSSES}, a cost matrix or a callable; got {self.loss!r}."
                    + (" For abstention use NashAbstainer." if self.loss == "abstain" else "")
                )
            return NAMED[self.loss](k)
        try:
            game = self.loss(k) if callable(self.loss) else games.cost(self.loss)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"loss must be one of {LOSSES}, a cost matrix or a callable: {error}") from error
        if not hasattr(game, "n_labels"):
            raise TypeError(f"loss must map the number of classes to a game of nashlearn.games; it returned {game!r}.")
        if game.n_labels != k:
            raise ValueError(f"loss has {game.n_labels} columns, but y has {k} classes; it needs one for each.")
        return game

    @averaged
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy. Where options are not labels there is none: use :meth:`task_loss`."""
        check_is_fitted(self)
        if self._game.n_options != self._game.n_labels:
            raise ValueError("score needs answers that are labels; this cost matrix is not square: use task_loss.")
        return super().score(X, y, sample_weight)

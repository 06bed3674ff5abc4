"""F-scores and the Jaccard index of a whole sample, trained for and certified."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from scipy.special import log_softmax, logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import fbeta_score, jaccard_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nashlearn.dask.answers import lazily
from nashlearn.estimators._fscore_data import FScoreData, check_metric
from nashlearn.estimators._fscore_fit import LabelGames
from nashlearn.estimators._parameters import number, parameters
from nashlearn.estimators._risk import MomentRadius
from nashlearn.estimators._row_functions import FLOATS, RowFunctions
from nashlearn.games.rows.fscore import fscore_game
from nashlearn.solvers.threads import threads
from nashlearn.training.blas import allowed_threads
from nashlearn.training.designs.gram import Gram, Kernel
from nashlearn.training.fixed_point import FixedPoints, Search, fixed_points
from nashlearn.training.opening import asked_checkpoint
from nashlearn.training.progress import scaling_advice
from nashlearn.training.risk import gains

__all__ = ["NashFScore"]

_CLOSER = 0.1  # gap of a fit, relative to tol: an error of the weights is one of the score that they give


@parameters
class NashFScore(RowFunctions, MomentRadius, ClassifierMixin, BaseEstimator):
    """Linear or kernel classifier trained for the F-score or the Jaccard index of a sample, with no threshold to tune.

    Let ``p`` and ``q`` be the probabilities with which a predictor and an adversary call the rows positive; the
    adversary keeps near the moments of the data. The F-score of the expected counts,

        ``F_beta(p, q) = (1 + beta^2) <p, q> / (sum p + beta^2 sum q)``,

    is at least ``t`` where a sum over rows is at most 0, so that ``max_p min_q F_beta`` is the ``t`` at which a game of
    two options and two labels has the value 0. Training looks for it: it fits the game of some ``t``, takes the F-score
    of its strategies for the next (Dinkelbach's method [dinkelbach1967]_), and ends where both agree, after three to
    eight fits that start from each other. The game pays the adversary for the entropy of its labels, as those of
    :class:`NashClassifier` do, and the two mistakes cost 2 together for all ``t`` and ``beta``, as they do there: so
    ``alpha`` and ``smoothing`` mean the same in both. The Jaccard index of counts is ``F_1 / (2 - F_1)``, so it is
    trained by the same games, and only scores and bounds differ.

    Parameters
    ----------
    beta : float, default=1.0
        Positive. Recall counts ``beta`` times as much as precision.
    metric : {"f", "jaccard"}, default="f"
        What ``score`` and the bounds are of; for ``"jaccard"`` ``beta`` must be 1.
    average : {"macro", "micro"} or None, default=None
        None for two classes, of which one is positive. For an indicator matrix ``Y`` (n, labels), dense or sparse,
        ``"macro"`` trains each label for its own score, whose mean counts, and ``"micro"`` all labels for one score of
        their counts together. ``"samples"`` is refused: a mean of one ratio for each row is no ratio of sums.
    pos_label : label, optional
        The positive class; by default ``classes_[1]``, as in scikit-learn.
    zero_division : {0.0, 1.0, nan}, default=0.0
        What ``score`` takes for a label that neither is there nor is predicted.
    alpha : "auto" or float, default="auto"
        Regularisation against the mean loss of a label: ``C = 2 / (n alpha)`` of LogisticRegression. ``"auto"`` is its
        ``C = 1``.
    smoothing, intercept_scaling, kernel, gamma, degree, coef0, cache_size, fit_intercept
        See :class:`NashClassifier`. ``smoothing`` is relative to half of what a false alarm and a miss cost together.
    tol : float, default=1e-3
        The difference between the score that was trained for and the one that was found at which the search ends. Fits
        end at a relative duality gap of a tenth of it.
    max_iter : int, default=1000
        Iterations allowed for each fit.
    max_time : float, optional
        Seconds for all fits together, after which training ends at the weights so far.
    warm_start : bool, default=False
        Start from the last solution, where labels and features are the same.
    checkpoint : path-like, optional
        File in which training keeps its state after every fit; that of the fit under way lies beside it, under the
        name with the number of its label. A killed training goes on from there.
    verbose, callback, random_state
        See :class:`NashClassifier`.

    Attributes
    ----------
    classes_ : ndarray
        The two classes, or the indices of the labels.
    fixed_point_ : float, or ndarray (labels,) for ``average="macro"``
        The score that was trained for: where training for it yields it, in rare cases one of several such scores (heavy
        regularisation and a large ``beta`` without smoothing). At smoothing 0 it is a guarantee, that of
        :meth:`worst_case_score` for the radius ``radius_``. NaN for a label without a positive example.
    radius_ : float or ndarray
        How far the adversary of training went from the moments of the data, ``alpha_ |w|``.
    threshold_ : ndarray (labels,)
        Scores above which a row is called positive.
    coef_, intercept_ : ndarray (labels, d) and (labels,)
        Weights of ``classes_[1]`` over ``classes_[0]``, or of each label. A kernel model has ``dual_coef_``,
        ``support_`` and ``support_vectors_``.
    smoothing_, alpha_ : float
        Those that were used in training.
    dual_gap_ : float
        The relative duality gap of the last fits, the largest of all labels.
    residual_ : float
        The largest difference between a score that was trained for and the one that was found.
    n_iter_ : int
        Iterations of all fits.
    history_ : list of Step
        What each fit found: (group, fit, t, ratio, n_iter, seconds, dual_gap).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from nashlearn import NashFScore
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = NashFScore(pos_label=0).fit(X / X.std(axis=0), y)
    >>> bool(model.score(X / X.std(axis=0), y) > 0.97)
    True
    """

    beta: float = 1.0
    _: KW_ONLY
    metric: str = "f"
    average: str | None = None
    pos_label: Any = None
    zero_division: float = 0.0
    fit_intercept: bool = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = self.average is not None
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NashFScore:
        """Train to the fixed point.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
        y : array-like of shape (n,), or indicator matrix (n, labels)
            Two classes; for indicators see ``average``.
        sample_weight : array-like of shape (n,), optional
            Not negative: a weight counts as repetitions.

        Returns
        -------
        self

        Warns
        -----
        ConvergenceWarning
            Where ``dual_gap_`` or ``residual_`` exceed ``tol``.
        """
        self._check_training()
        check_metric(self)
        data = FScoreData.read(self, X, y, sample_weight)
        self._temper(1.0)
        self.alpha_ = self._regularisation(2, data.total)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        games = self._games(data, rng)
        if not np.isfinite(games.spread()):
            raise ValueError("X has values so large that the squares of its rows overflow; scale the features.")
        groups = [[label] for label in range(len(data.codes))] if self.average == "macro" else [range(len(data.codes))]
        found = fixed_points(
            games,
            groups,
            self._begun(games, groups, data.classes),
            tol=self.tol,
            max_time=self.max_time,
            verbose=self.verbose,
            checkpoint=asked_checkpoint(self, data.X, data.codes, data.omega, data.classes, self.smoothing_),
        )
        return self._conclude(data, games, groups, found)

    def _auto_alpha(self, k: int) -> float:
        return 2.0  # LogisticRegression keeps the difference of two classes' weights

    @property
    def _bias(self) -> float:
        return self._constant if self.fit_intercept else 0.0

    def _games(self, data: FScoreData, rng: np.random.Generator) -> LabelGames:
        gram = None
        if not self._is_linear:
            kernel = Kernel(self.kernel, self.gamma, self.degree, self.coef0, data.X)
            gram = Gram(kernel, data.X, self._bias**2, self.cache_size, threads(allowed_threads()))
            gram.refuse_indefinite(rng)
        options = {
            "tol": _CLOSER * self.tol, "max_iter": self.max_iter, "verbose": self.verbose, "callback": self.callback,
            "random_state": rng,
        }  # fmt: skip
        return LabelGames(
            data.X, gram, data.codes, data.omega, float(self.beta), data.positive, self._bias, self.alpha_, self._mu,
            self._unit, options,
        )  # fmt: skip

    def _begun(self, games: LabelGames, groups: list[Any], classes: np.ndarray) -> FixedPoints:
        """Where to begin: at the last solution, or between what answering "positive" always would score and 1."""
        searches = []
        for labels in groups:
            share = float(np.mean([games.share(label) for label in labels]))
            trivial = (1.0 + self.beta**2) * share / (1.0 + self.beta**2 * share)
            # No score is that of a label without positives: it is trained for the largest, and never predicted.
            searches.append(Search(0.5 * (1.0 + trivial)) if share else Search(1.0, lower=1.0))
        if self.warm_start and hasattr(self, "_found") and np.array_equal(classes, self.classes_):
            for search, last in zip(searches, self._found.searches, strict=True):
                search.t = last.t if search.lower < 1.0 else 1.0
            return FixedPoints(searches, dict(self._found.trained))
        return FixedPoints(searches)

    def _conclude(self, data: FScoreData, games: LabelGames, groups: list[Any], found: FixedPoints) -> NashFScore:
        """Keep what training found, and what bounds its score."""
        self.classes_, self._positive = data.classes, data.positive
        trained = [found.trained[label] for label in range(len(data.codes))]
        self._t = np.array([found.searches[g].t for g, labels in enumerate(groups) for _ in labels])
        self._store(data, games, [one.w for one in trained])
        own = [{label: found.trained[label] for label in labels} for labels in groups]
        self._bounds = [games.bounds(search.t, one) for search, one in zip(found.searches, own, strict=True)]
        radii = [self.alpha_ * float(np.linalg.norm([each.norm for each in one.values()])) for one in own]
        macro = self.average == "macro"
        known = np.array([any(games.share(label) for label in labels) for labels in groups])
        scores = np.where(known, self._scored(np.array([search.t for search in found.searches])), np.nan)
        self.fixed_point_ = scores if macro else float(scores[0])
        self.radius_ = np.array(radii) if macro else radii[0]
        self.dual_gap_ = max(one.dual_gap for one in trained)
        self.objective_ = float(np.mean([one.objective for one in trained]))
        told = [abs(search.residual) for search, one in zip(found.searches, known, strict=True) if one]
        self.residual_ = max(told, default=0.0)
        self.history_, self.n_iter_ = found.steps, sum(step.n_iter for step in found.steps)
        self._moment_spread = games.spread() * (1.0 if macro else np.sqrt(len(trained)))
        self._warn(found, data, known)
        if self.warm_start:
            self._found = found
        return self

    def _warn(self, found: FixedPoints, data: FScoreData, known: np.ndarray) -> None:
        settled = all(one.settled(self.tol) for one, counts in zip(found.searches, known, strict=True) if counts)
        if self.dual_gap_ > self.tol or not settled:
            advice = scaling_advice() if self._pairwise() else scaling_advice([data.X])
            warnings.warn(
                f"Training stopped after {len(found.steps)} fits and {self.n_iter_} iterations, at a relative duality "
                f"gap of {self.dual_gap_:.2e} and {self.residual_:.2e} from the fixed point; tol={self.tol:.2e}. Raise "
                f"max_iter, max_time or alpha, or {advice}.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if not known.all():
            which = f"of the labels {np.flatnonzero(~known).tolist()}" if self.average == "macro" else "of any label"
            warnings.warn(
                f"y has no positive example {which}: they are never predicted.",
                UserWarning,
                stacklevel=4,
            )

    def _store(self, data: FScoreData, games: LabelGames, weights: list[np.ndarray]) -> None:
        self._kernel = None if games.gram is None else games.gram.kernel
        for name in ("support_", "support_vectors_", "dual_coef_", "coef_"):  # of an earlier fit with another kernel
            self.__dict__.pop(name, None)
        tau = self._t / (1.0 + self.beta**2)
        with np.errstate(divide="ignore"):
            odds = self._mu * logit(tau) if self._mu else 0.0
        # p = 1/2 where the lead is this: q, if it moved, would be tau.
        level = 1.0 - 2.0 * self.beta**2 * tau + odds
        self.threshold_ = (level if self._positive else -level) / self._unit
        if self._kernel is None:
            lead = np.array([w[1] - w[0] for w in weights])
            self.coef_, self.intercept_ = np.ascontiguousarray(lead[:, :-1]), self._bias * lead[:, -1]
            return
        lead = np.array([C[:, 1] - C[:, 0] for C in weights])
        own = np.flatnonzero(lead.any(axis=0))
        self.support_ = data.kept[own]
        self.support_vectors_ = data.X[own][:, :0] if self._pairwise() else data.X[own]
        self.dual_coef_, self.intercept_ = np.ascontiguousarray(lead[:, own]), self._bias**2 * lead.sum(axis=1)

    def _scored(self, f: Any) -> Any:
        """The metric at this F-score."""
        return f / (2.0 - f) if self.metric == "jaccard" else f

    def worst_case_score(self, radius: float = 0.0) -> float:
        """What the metric of the randomised prediction :meth:`strategy` is at least, whatever the labels near the data.

        For every distribution of labels, given the training inputs, whose moments ``E[Phi(x)' y]`` lie within
        ``radius`` (Euclidean) of those of the training data, the metric of the expected counts is at least this: the
        largest ``t`` for which the bound of :meth:`NashClassifier.worst_case_risk` on the costs of ``t`` is at most 0,
        see :mod:`nashlearn.training.score_bound`. For ``average="macro"`` each label has its moments and its bound, and
        the mean of the bounds is returned; for ``"micro"`` moments are those of all labels, one below the other.

        It says nothing of other inputs, of the expectation of the ratio, or of :meth:`predict`, which takes the
        likelier answer in place of a drawn one. Rows are weighted as in training. Cost: none that depends on the rows.

        Parameters
        ----------
        radius : float, default=0.0
            Not negative, in the units of the features and the constant feature. 0 is for distributions with exactly the
            moments of the training data, ``radius_`` for those that training guarded against, ``moment_radius()`` for
            the one that the data were drawn from, with 95 % confidence.

        Returns
        -------
        float
            Between 0, where nothing is certain, and 1.
        """
        check_is_fitted(self)
        if not 0 <= number(radius, "radius") < np.inf:
            raise ValueError(f"radius must be a finite number, not negative; got {radius!r}.")
        return float(np.mean([self._scored(max(one.at(float(radius)) for one in own)) for own in self._bounds]))

    def moment_radius(self, confidence: float = 0.95) -> float:
        """As :meth:`NashClassifier.moment_radius`; for ``average="macro"`` it holds for all labels at once."""
        check_is_fitted(self)
        if self.average == "macro" and 0 < number(confidence, "confidence") < 1:
            confidence = 1.0 - (1.0 - confidence) / len(self._bounds)
        return super().moment_radius(confidence)

    def _leads(self, X: Any, dtype: Any = FLOATS) -> np.ndarray:
        """Scores (n, labels) of the second class over the first, or of each label."""
        functions = self._functions(X, dtype)
        return functions + self.intercept_.astype(functions.dtype, copy=False)

    def _equilibria(self, X: Any) -> Iterator[tuple[Any, np.ndarray, Any]]:
        """Of each label the game, scores (n, 2) in its units, and what is played there."""
        leads = self._leads(X, dtype=np.float64)
        for t, lead in zip(self._t, leads.T, strict=True):
            game, scores = fscore_game(t, self.beta, self._positive), 0.5 * self._unit * np.column_stack([-lead, lead])
            yield game, scores, game.solve(scores, smoothing=self._mu)

    def _shaped(self, found: list[np.ndarray]) -> np.ndarray:
        """What each label has for its two values, as both classes (n, 2), or as the labels (n, labels)."""
        return found[0] if self.average is None else np.column_stack([one[:, 1] for one in found])

    @lazily
    def strategy(self, X: Any) -> np.ndarray:
        """The predictor's strategy ``p``: probabilities (n, 2) with which to answer each class, or (n, labels)."""
        return self._shaped([found.p for _, _, found in self._equilibria(X)])

    @lazily
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities ``q`` (n, 2) of the classes, or (n, labels), where ``smoothing_`` is positive; at 0 ``p``.

        A positive answer pays from ``fixed_point_ / (1 + beta^2)`` on, not from 1/2: where labels are that probable
        ``p`` is mixed, and many rows have exactly that ``q``.
        """
        check_is_fitted(self)
        return self._shaped([found.q if self.smoothing_ else found.p for _, _, found in self._equilibria(X)])

    @lazily
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`, finite where ``smoothing_`` is positive; at 0 those of ``p``."""
        check_is_fitted(self)
        if not self.smoothing_:
            p = self.predict_proba(X)
            return np.log(p, out=np.full(p.shape, -np.inf), where=p > 0)
        return self._shaped(
            [
                log_softmax((scores + gains(game, found.p)) / self._mu, axis=1)
                for game, scores, found in self._equilibria(X)
            ]
        )

    @lazily
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores less ``threshold_``, (n,) or (n, labels): positive where ``classes_[1]`` or the label is predicted."""
        leads = self._leads(X)
        leads = leads - self.threshold_.astype(leads.dtype, copy=False)
        return leads.ravel() if self.average is None else leads

    @lazily
    def predict(self, X: Any) -> np.ndarray:
        """The classes (n,) of the largest ``p``, or an indicator matrix (n, labels)."""
        chosen = (self.decision_function(X) > 0.0).astype(np.intp)
        return self.classes_[chosen] if self.average is None else chosen

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The metric of :meth:`predict`, as scikit-learn's ``fbeta_score`` and ``jaccard_score`` compute it."""
        predicted = self.predict(X)
        options: dict[str, Any] = {"average": self.average or "binary", "zero_division": self.zero_division}
        if self.average is None:
            options["pos_label"] = self.classes_[self._positive]
        if self.metric == "jaccard":
            return float(jaccard_score(y, predicted, sample_weight=sample_weight, **options))
        return float(fbeta_score(y, predicted, beta=self.beta, sample_weight=sample_weight, **options))

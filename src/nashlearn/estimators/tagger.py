"""Labelling sequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from nashlearn.dask.collections import is_collection
from nashlearn.estimators._crfsuite import CrfsuiteNames
from nashlearn.estimators._network import NetworkFacts, NetworkNash, falling
from nashlearn.estimators._network_answers import Scored
from nashlearn.estimators._network_input import read_sequences
from nashlearn.estimators._parameters import number, parameters
from nashlearn.estimators._streaming import refuse_box
from nashlearn.training.driver import Method
from nashlearn.training.graphs import Graphs
from nashlearn.training.methods.sparse import SparseDescent

__all__ = ["NashTagger"]


@parameters
class NashTagger(CrfsuiteNames, NetworkNash):
    """Sequence labelling trained on the loss that it is judged by [fathony2018]_, [franc2022]_.

    The score of a labelling is the sum of linear scores of its positions, of its transitions and of its first and last
    label. Training minimises ``alpha/2 |w|^2`` plus the mean, over positions, of the game's value less the true
    labelling's score; the game is that of :func:`nashlearn.games.markov` on a chain.

    Parameters
    ----------
    loss : {"zero_one", "absolute", "squared"} or cost matrix, default="zero_one"
        What a wrong label costs. "absolute" and "squared" measure the distance between the ranks of classes; a matrix
        has a row for each answer and a column for each true label, in the order of ``classes_``.
    alpha : float, default=1e-4
        Regularisation against the mean loss of a position, positive. The loss is divided by ``s (1 + smoothing)``,
        where ``s`` is the largest cost between two labels, so that ``alpha`` means the same for every loss and
        smoothing.
    smoothing : float, default=0.5
        Weight ``m`` of the entropy of labellings, relative to the largest cost ``s``: a property of the model, to be
        chosen by validation. The loss is ``(cost / s + m log loss) / (1 + m)``: the expected cost of the strategy ``p``
        and the log loss of the labelling under ``q``. 0 is the published game, with its ``alpha`` times ``s``, which
        may ignore transitions where features are few; large values approach a conditional random field.
    decision : {"auto", "scores", "equilibrium"}, default="auto"
        Predict the labelling of the largest score, or at each node the label with the largest entry of the strategy
        ``p``. "auto" takes the former where all mistakes cost the same, and else the latter: the labelling of the
        largest score is not consistent for every cost matrix. ``decision_`` says which rule was taken.
    penalty : {"l2", "l1"}, default="l2"
        ``"l1"`` minimises ``alpha |w|_1`` plus the mean loss: many weights are exactly 0. All labels must be known, and
        data in memory. At smoothing 0 training takes hundreds of steps: raise ``max_iter``.
        :meth:`worst_case_risk` then measures the distance of moments by their largest difference.
    offsets : dict, optional
        Numbers that ``predict`` adds to the scores of labels, ``{"O": -0.5}`` say; training, strategies and
        probabilities are not moved. F1 asks for a phrase where its probability exceeds half the F1 that can be reached,
        not only where nothing else is as probable [lipton2014]_: holding ``O`` back finds more phrases. To be chosen
        by validation, as ``nashlearn tag`` does.
    fit_intercept : bool, default=True
        Whether to add a constant feature.
    unseen_pairs : bool, default=False
        Whether sparse and named features get weights for labels that they never occur with in training. Dense
        features always do.
    propensity : {"homogeneous", "node"}, default="homogeneous"
        How the probability that a label is present is estimated where some are missing and ``fit`` is not given any:
        one for all positions, or one for each position of sequences of equal length.
    tol : float, default=1e-2
        Relative duality gap at which training ends.
    max_iter : int, default=100
        Iterations of L-BFGS, in all.
    warm_start : bool, default=False
        Start from the weights of the last fit.
    n_jobs : int, optional
        Threads. The result does not depend on their number.
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
    decision_ : {"scores", "equilibrium"}
        The rule that ``predict`` follows.
    coef_ : ndarray or CSR matrix (k, d)
        Weights of features.
    intercept_, start_, end_ : ndarray (k,)
        Scores of a label anywhere, at the start and at the end.
    transitions_ : ndarray (k, k), or edge_coef_ : ndarray (features, k, k)
        Scores of a label and the next, or their weights where ``X`` has edge features.
    feature_names_ : list of str
        Names of the columns of ``coef_`` where features are named.
    state_features_, transition_features_ : dict
        The weights that are not 0 as sklearn-crfsuite has them, ``{(feature, label): weight}`` and ``{(label, next
        label): weight}``.
    objective_, dual_gap_, n_iter_
        Objective at the weights, its relative distance to the optimum at most, iterations. With smoothing they are
        those of the smoothed objective. As the weights, ``objective_`` is of the loss divided by ``s (1 + smoothing)``.
    smoothing_ : float
        The smoothing that the model was trained with.
    history_ : list of Round
        The certificate over time: (n_iter, seconds, objective, bound, gap) after each round.
    dev_history_ : list of DevRound
        After each round the iterations so far and the ``score`` on ``X_dev``, where ``fit`` was given some.

    Examples
    --------
    >>> from nashlearn import NashTagger
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "cats"}, {"word": "sleep"}]]
    >>> y = [["DET", "NOUN"], ["NOUN", "VERB"]]
    >>> NashTagger(alpha=0.01).fit(X, y).predict(X)
    [['DET', 'NOUN'], ['NOUN', 'VERB']]
    """

    _: KW_ONLY
    penalty: str = "l2"
    offsets: Mapping[Any, float] | None = None
    _reads = staticmethod(read_sequences)

    def _fit(self, X: Any, y: Any, sample_weight: Any, **more: Any) -> Any:
        if is_collection(X):
            refuse_box(self, "for Dask collections")
        return super()._fit(X, y, sample_weight, **more)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for label, value in _offsets(self.offsets).items():
            if not np.isfinite(number(value, f"offsets[{label!r}]")):
                raise ValueError(f"offsets[{label!r}] must be finite; got {value!r}.")

    def _labels(self, scored: Scored, **options: Any) -> np.ndarray:
        moved = np.zeros(self.classes_.size)
        for label, value in _offsets(self.offsets).items():
            if label not in self.classes_.tolist():
                raise ValueError(f"offsets names the label {label!r}, which was not seen in fit.")
            moved[self.classes_.tolist().index(label)] = value
        return super()._labels(scored._replace(S=scored.S + moved) if moved.any() else scored, **options)

    def _method(self, problem: Any, facts: NetworkFacts) -> Method:
        if self.penalty == "l2":
            return super()._method(problem, facts)
        if target := self._units(facts).smoothing:
            return SparseDescent((target,), target)
        return SparseDescent(falling(self._loss_scale(facts.words.classes.size, facts.largest)))

    def _extra_columns(self, graphs: Graphs) -> np.ndarray:
        ends = np.zeros((int(graphs.sizes.sum()), 2))
        ends[graphs.offsets[:-1], 0] = 1.0
        ends[graphs.offsets[1:] - 1, 1] = 1.0
        return np.hstack([super()._extra_columns(graphs), ends])

    def _store_edges(self, rest: np.ndarray, edges: np.ndarray) -> None:
        self.start_, self.end_ = rest[:, 0].copy(), rest[:, 1].copy()
        if self._edge_width is None:
            self.transitions_ = edges[0]
        else:
            self.edge_coef_ = edges


def _offsets(given: Any) -> Mapping[Any, float]:
    """Numbers by label."""
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"offsets must be a dict of labels and numbers; got {given!r:.60}.")
    return given or {}

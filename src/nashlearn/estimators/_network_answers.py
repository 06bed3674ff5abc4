"""What trained networks return: scores, labels by one rule or the other, and both players' strategies."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import KW_ONLY
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from nashlearn.dask.answers import lazily
from nashlearn.equilibrium import Equilibrium
from nashlearn.estimators._foreign import CHAINS
from nashlearn.estimators._network_input import labels_of
from nashlearn.estimators._parameters import parameters
from nashlearn.estimators._structured import StructuredNash, StructuredTraining
from nashlearn.games.networks.batch import Networks
from nashlearn.games.networks.game import loss_of
from nashlearn.games.networks.labellings import check_options
from nashlearn.solvers.threads import threads
from nashlearn.training.graphs import Graphs

__all__ = ["PlayingNetworks", "Scored"]

_SETTLED = 1e-2  # accuracy of strategies, relative to tol and the largest loss


class Scored(NamedTuple):
    """Graphs, their networks, and the scores of rows (n, k) and of edges (m, k, k), or (1, k, k) for all alike."""

    graphs: Graphs
    networks: Networks
    S: np.ndarray
    T: np.ndarray

    def split(self, rows: np.ndarray) -> list[np.ndarray]:
        """What the networks' rows have as one array for each example."""
        found = np.empty_like(rows) if self.networks.moved else rows
        if self.networks.moved:
            found[self.networks.order] = rows
        return [found[a:b] for a, b in itertools.pairwise(self.graphs.offsets.tolist())]


@parameters
class NetworkTraining(StructuredTraining):
    """What the estimators of networks are told besides."""

    loss: Any = "zero_one"
    _: KW_ONLY
    alpha: float = 1e-4
    smoothing: float = 0.5
    decision: str = "auto"
    fit_intercept: bool = True
    unseen_pairs: bool = False
    propensity: str = "homogeneous"
    tol: float = 1e-2
    max_iter: int = 100
    _others_say = CHAINS


class PlayingNetworks(NetworkTraining, StructuredNash):
    """Predictions of a model whose ``_scored`` makes networks and their scores of ``X``."""

    classes_: np.ndarray
    # Models that were saved before there was a choice have none of these, and decide by scores.
    _answers_by_scores: bool = True
    _scale: float | None = None

    @property
    def decision_(self) -> str:
        """The rule that ``predict`` follows: ``"scores"`` or ``"equilibrium"``."""
        check_is_fitted(self)
        if self.decision == "auto":
            return "scores" if self._answers_by_scores else "equilibrium"
        return self.decision

    def _costs(self, k: int) -> np.ndarray:
        """The loss of a node with ``k`` labels."""
        return loss_of(self.loss, np.array([k]), np.ones(1))[1][0]

    def _loss_scale(self, k: int, largest: float) -> float:
        """The largest loss of a node where none counts for more than ``largest``; 1 where no option costs anything."""
        return float(self._costs(k).max()) * largest or 1.0

    def _accuracy(self) -> float:
        return _SETTLED * float(self.tol) * float(self._scale or self._costs(self.classes_.size).max())

    def _scored(self, X: Any, node_weight: Any = None) -> Scored:
        """The networks of ``X`` with their scores."""
        raise NotImplementedError

    @lazily
    def decision_function(self, X: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Scores of each example, of nodes (n, k) and of edges (m, k, k), for the loss divided by ``s (1 + m)``."""
        scored = self._scored(X)
        counts = scored.graphs.edge_counts
        tables = np.broadcast_to(scored.T, (int(counts.sum()), *scored.T.shape[1:]))
        return list(zip(scored.split(scored.S), np.split(tables, np.cumsum(counts)[:-1]), strict=True))

    @lazily
    def predict(self, X: Any, **options: Any) -> list[Any]:
        """The labels of each example, by the rule that ``decision_`` names: lists where labels are words, else arrays.

        ``"scores"``: the labelling with the largest score. ``options`` are for graphs that are not played exactly,
        those of ``maximise`` of :func:`nashlearn.games.markov`: ``method="ascent"`` for a fast search, ``time_limit``
        seconds for each. Warns where the time was up before a labelling was proved best.
        ``"equilibrium"``: at each node the label with the largest entry of :meth:`strategy`; options play no part.
        """
        scored = self._scored(X)
        found = scored.split(self.classes_[self._labels(scored, **options)])
        return [labels.tolist() for labels in found] if self.classes_.dtype.kind == "U" else found

    def _labels(self, scored: Scored, **options: Any) -> np.ndarray:
        """The predicted labels (n,), in the order of rows."""
        if self.decision_ == "scores":
            run = threads(joblib.effective_n_jobs(self.n_jobs))
            return scored.networks.argmax(scored.S, scored.T, run, **options)
        check_options(**options)
        return self._settle(scored).p.argmax(axis=1)

    @lazily
    def strategy(self, X: Any, node_weight: Any = None) -> list[np.ndarray]:
        """The predictor's strategy ``p`` (n, k) at each node of each example: minimax optimal and sparse.

        It says with which probability to predict each label, not how probable the labels are: that is
        :meth:`predict_proba`. Predictions drawn from it are what :meth:`worst_case_risk` bounds the cost of.
        ``node_weight`` is as that of :meth:`fit`: a model that was trained with it plays the same loss only where it is
        given here too.
        """
        scored = self._scored(X, node_weight)
        return scored.split(self._settle(scored, accurate=True).p)

    @lazily
    def predict_proba(self, X: Any) -> list[np.ndarray]:
        """Probabilities (n, k) of the labels at each node of each example.

        With smoothing they are the marginals of ``q``, the adversary's distribution over labellings, as
        :meth:`marginals` returns them: none of them is 0, and the loss that training minimises is the expected cost of
        ``p`` plus ``smoothing`` times the log loss of ``q`` (up to a factor, where no graph is relaxed). With
        ``smoothing=0`` the adversary has no such distribution, and the predictor's ``strategy`` is returned: sparse,
        and no estimate of probabilities. So it is for models that were saved by version 0.1.
        """
        scored = self._scored(X)
        found = self._settle(scored)
        return scored.split(found.q[0] if self._mu else found.p)

    @lazily
    def marginals(self, X: Any) -> list[np.ndarray]:
        """The marginals (n, k) of the adversary's distribution ``q`` over labellings at each node, at any smoothing.

        Without smoothing they need not be unique.
        """
        scored = self._scored(X)
        return scored.split(self._settle(scored).q[0])

    def _settle(self, scored: Scored, *, accurate: bool = False) -> Equilibrium:
        """Both players' strategies; warn where their gap exceeds ``tol``, or, for guarantees, the accuracy aimed at."""
        networks, aim = scored.networks, self._accuracy()
        scores = self._unit * scored.S, self._unit * scored.T
        found = networks.solve(scores, smoothing=self._smoothing_in_costs, tol=aim, n_jobs=self.n_jobs)
        limit = aim if accurate else max(aim, self.tol * networks.scale)
        gap = float((found.gap / np.maximum(networks.sizes, 1)).max(initial=0.0))
        if gap > limit:
            warnings.warn(
                f"strategies were left at a gap of {gap:.1e} a node, above {limit:.1e}; "
                + ("worst_case_risk allows for no more than that; " if accurate else "")
                + "a larger smoothing is settled sooner",
                ConvergenceWarning,
                stacklevel=4,
            )
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of nodes that are right for ``loss="zero_one"``; minus :meth:`task_loss` for any other loss.

        It is the larger the better either way, so that scikit-learn's searches tune the loss that was named.
        """
        return self._as_score(self.task_loss(X, y, sample_weight))

    def _as_score(self, loss: float) -> float:
        """The score of predictions whose mean loss is ``loss``."""
        counts_mistakes = isinstance(self.loss, str) and self.loss == "zero_one"
        return float(counts_mistakes) - loss

    def _cost_range(self) -> tuple[float, float]:
        costs = self._costs(self.classes_.size)
        return float(costs.min()), float(costs.max())

    def _mistakes(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        scored = self._scored(X)
        return self._lost(scored, y, scored.networks.costs[self._labels(scored)])

    def _expected_mistakes(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        scored = self._scored(X)
        return self._lost(scored, y, self._settle(scored).p @ scored.networks.costs)

    def _lost(self, scored: Scored, y: Any, costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses and numbers of known labels of examples, where each row would lose ``costs`` (n, k) for each label."""
        graphs, networks = scored.graphs, scored.networks
        labels, missing = labels_of(y, graphs.sizes)
        position = {label: i for i, label in enumerate(self.classes_.tolist())}
        unknown = [label for label in labels[~missing] if label not in position]
        if unknown:
            raise ValueError(f"y holds the label {unknown[0]!r}, which was not seen in fit; known: {self.classes_}.")
        codes = np.array([position.get(label, 0) for label in labels])
        losses = np.empty(networks.n)
        losses[networks.order] = costs[np.arange(networks.n), codes[networks.order]]
        losses[missing] = 0.0
        starts = graphs.offsets[:-1]
        return np.add.reduceat(losses, starts), np.add.reduceat((~missing).astype(float), starts)

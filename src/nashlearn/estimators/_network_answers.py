"""What trained networks return: scores, labels by one rule or the other, and both players' strategies."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from nashlearn.dask.answers import lazily
from nashlearn.estimators._network_input import Graphs, labels_of
from nashlearn.estimators._structured import StructuredNash
from nashlearn.games.networks.batch import Networks
from nashlearn.games.networks.game import loss_of
from nashlearn.games.networks.labelings import check_options
from nashlearn.games.networks.settled import Settled, settle

__all__ = ["PlayingNetworks"]

_SETTLED = 1e-2  # accuracy of strategies, relative to tol and the largest loss


class PlayingNetworks(StructuredNash):
    """Predictions of a model whose ``_scored`` makes networks and their scores of ``X``."""

    loss: Any
    smoothing: float
    classes_: np.ndarray
    # Models that were saved before there was a choice have none of these, and decide by scores.
    decision: str = "auto"
    _answers_by_scores: bool = True
    _scale: float | None = None

    @property
    def decision_(self) -> str:
        """The rule that ``predict`` follows: ``"scores"`` or ``"equilibrium"``."""
        check_is_fitted(self)
        if self.decision == "auto":
            return "scores" if self._answers_by_scores else "equilibrium"
        return self.decision

    def _accuracy(self) -> float:
        largest = loss_of(self.loss, np.array([self.classes_.size]), np.ones(1))[1][0].max()
        return _SETTLED * float(self.tol) * float(self._scale or largest)

    def _scored(self, X: Any, node_weight: Any = None) -> tuple[Graphs, Networks, np.ndarray, np.ndarray, Any]:
        """Graphs, networks, scores of their rows and edges, and how to call in threads."""
        raise NotImplementedError

    def _split(self, rows: np.ndarray, graphs: Graphs, networks: Networks) -> list[np.ndarray]:
        """Answers for the networks' rows as one array for each example."""
        answers = np.empty_like(rows)
        answers[networks.order] = rows
        return np.split(answers, graphs.offsets[1:-1])

    @lazily
    def decision_function(self, X: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Scores of each example: of nodes (n, k) and of edges (m, k, k)."""
        graphs, networks, S, T, _ = self._scored(X)
        counts = graphs.edge_counts
        tables = np.broadcast_to(T, (int(counts.sum()), *T.shape[1:]))
        return list(zip(self._split(S, graphs, networks), np.split(tables, np.cumsum(counts)[:-1]), strict=True))

    @lazily
    def predict(self, X: Any, **options: Any) -> list[np.ndarray]:
        """The labels of each example, by the rule that ``decision_`` names.

        ``"scores"``: the labeling with the largest score. ``options`` are for graphs that are not played exactly, those
        of ``maximise`` of :func:`nashlearn.games.markov`: ``method="ascent"`` for a fast search, ``time_limit`` seconds
        for each. Warns where the time was up before a labeling was proved best.
        ``"equilibrium"``: at each node the label with the largest entry of :meth:`strategy`; options play no part.
        """
        graphs, networks, S, T, run = self._scored(X)
        return self._split(self.classes_[self._labels(networks, S, T, run, **options)], graphs, networks)

    def _labels(self, networks: Networks, S: np.ndarray, T: np.ndarray, run: Any, **options: Any) -> np.ndarray:
        """The predicted labels (n,), in the order of rows."""
        if self.decision_ == "scores":
            return networks.argmax(S, T, run, **options)
        check_options(**options)
        return self._settle(networks, S, T, run).p.argmax(axis=1)

    @lazily
    def strategy(self, X: Any, node_weight: Any = None) -> list[np.ndarray]:
        """The predictor's strategy ``p`` (n, k) at each node of each example: minimax optimal and sparse.

        Answers drawn from it are what :meth:`worst_case_risk` bounds the loss of. ``node_weight`` is as that of
        :meth:`fit`: a model that was trained with it plays the same loss only where it is given here too.
        """
        graphs, networks, S, T, run = self._scored(X, node_weight)
        found = self._settle(networks, S, T, run, accurate=True)
        return self._split(found.p, graphs, networks)

    @lazily
    def predict_proba(self, X: Any) -> list[np.ndarray]:
        """The predictor's strategy (n, k) at each node, as :meth:`strategy` returns it; not calibrated."""
        graphs, networks, S, T, run = self._scored(X)
        return self._split(self._settle(networks, S, T, run).p, graphs, networks)

    @lazily
    def marginals(self, X: Any) -> list[np.ndarray]:
        """The adversary's label distribution (n, k) at each node, softened by ``smoothing``; not calibrated."""
        graphs, networks, S, T, run = self._scored(X)
        return self._split(self._settle(networks, S, T, run).q, graphs, networks)

    def _settle(self, networks: Networks, S: np.ndarray, T: np.ndarray, run: Any, *, accurate: bool = False) -> Settled:
        """Both players' strategies; warn where their gap exceeds ``tol``, or, for guarantees, the accuracy aimed at."""
        aim = self._accuracy()
        found = settle(networks, S, T, float(self.smoothing), aim, run)
        limit = aim if accurate else max(aim, self.tol * networks.scale)
        if found.gap > limit:
            warnings.warn(
                f"strategies were left at a gap of {found.gap:.1e} a node, above {limit:.1e}; "
                + ("worst_case_risk allows for no more than that; " if accurate else "")
                + "a larger smoothing is settled sooner",
                ConvergenceWarning,
                stacklevel=4,
            )
        return found

    def _mistakes(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        graphs, networks, S, T, run = self._scored(X)
        labels, missing = labels_of(y, graphs.sizes)
        position = {label: i for i, label in enumerate(self.classes_.tolist())}
        unknown = [label for label in labels[~missing] if label not in position]
        if unknown:
            raise ValueError(f"y holds the label {unknown[0]!r}, which was not seen in fit; known: {self.classes_}.")
        codes = np.array([position.get(label, 0) for label in labels])
        answers = np.empty(networks.n, dtype=np.int64)
        answers[networks.order] = self._labels(networks, S, T, run)
        losses = np.where(missing, 0.0, networks.costs[answers, codes])
        starts = graphs.offsets[:-1]
        return np.add.reduceat(losses, starts), np.add.reduceat((~missing).astype(float), starts)

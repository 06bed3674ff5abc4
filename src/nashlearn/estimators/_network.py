"""What the estimators of networks share: features, labels with gaps, training, and both players' answers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from nashlearn.dask.collections import is_collection
from nashlearn.estimators._deciding import DECISIONS
from nashlearn.estimators._development import Development, DevRound
from nashlearn.estimators._network_answers import PlayingNetworks, Scored
from nashlearn.estimators._network_input import (
    NamedFeatures,
    given_propensities,
    guessed_codes,
    labels_of,
    node_counts,
)
from nashlearn.estimators._parameters import check_parameters, number
from nashlearn.estimators._structured import Facts, example_weights
from nashlearn.estimators._vocabulary import Vocabulary, placed, united, vocabulary
from nashlearn.games.networks.batch import Networks
from nashlearn.games.networks.game import decided_by_scores
from nashlearn.training.designs.networks import NetworkDesign
from nashlearn.training.designs.nodes import DenseFeatures, SparseFeatures
from nashlearn.training.driver import Method
from nashlearn.training.graphs import Graphs
from nashlearn.training.methods.descent import Descent
from nashlearn.training.methods.programme import NetworkProgramme, is_small
from nashlearn.training.missing import (
    LabelRate,
    LabelSums,
    augmented_moments,
    estimated_propensities,
    label_rate,
    label_sums,
    labelled_moments,
    propensities,
)
from nashlearn.training.objective import GameProblem

__all__ = ["NetworkFacts", "NetworkNash", "falling"]

_SCHEDULE = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


def falling(scale: float) -> list[float]:
    """Smoothings on the way to the exact game, whose largest loss is ``scale``."""
    return [scale * part for part in _SCHEDULE]


class _Labelled(NamedTuple):
    """Graphs as they were read, with names of their columns, labels, and what may be given besides."""

    graphs: Graphs
    columns: list[str] | None
    labels: np.ndarray
    missing: np.ndarray
    weight: np.ndarray
    propensities: tuple[np.ndarray, np.ndarray] | None
    counts: np.ndarray | None
    guesses: Any


@dataclass(frozen=True)
class NetworkFacts(Facts):
    """What the weights stand for, how often labels are known, and the largest weight of a node in the loss."""

    words: Vocabulary
    rate: LabelRate
    largest: float
    guessed: bool

    def __add__(self, other: NetworkFacts) -> NetworkFacts:
        total, words, rate = self.total + other.total, united(self.words, other.words), self.rate + other.rate
        return NetworkFacts(total, words, rate, max(self.largest, other.largest), self.guessed or other.guessed)

    def check(self) -> None:
        """Refuse labels that are of one class, or all missing."""
        super().check()
        classes = self.words.classes
        if classes.size == 0:
            raise ValueError("y holds no labels: all are missing.")
        if not self.rate.known.any():
            raise ValueError("y holds no labels that count: sample_weight is 0 in all examples that have some.")
        if classes.size < 2:
            raise ValueError(f"y holds one class only, {classes.tolist()[0]!r}; at least two are needed.")

    @property
    def needs_sums(self) -> bool:
        """Where labels are missing, and no guesses stand for them."""
        return not (self.rate.complete or self.guessed)


class NetworkNash(PlayingNetworks):
    """A game over labellings. Subclasses say how ``X`` is read and which columns it is given besides."""

    _reads: ClassVar[Callable[..., tuple[Graphs, NamedFeatures | None]]]

    _pattern: Any
    _named: NamedFeatures | None
    _edge_width: int | None
    n_features_in_: int
    dev_history_: list[DevRound]

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        propensities: Any = None,
        node_weight: Any = None,
        guesses: Any = None,
        *,
        X_dev: Any = None,
        y_dev: Any = None,
    ) -> Any:
        """Train to a relative duality gap of ``tol``.

        Parameters
        ----------
        X : list of examples
        y : list of sequences of labels
            A label is anything that sorts; None and -1 stand for labels that are missing.
        sample_weight : array-like of shape (n_examples,), optional
            Not negative. The loss is the weighted mean over nodes.
        propensities : list, optional
            For each example the probabilities (n,) with which its nodes are labelled, or a pair of those and of the
            probabilities (m,) that both ends of its edges are. Estimated where not given, see ``propensity``.
        node_weight : list of arrays (n,), optional
            For each example what a mistake at its nodes counts, times the loss; not negative. Unlike
            ``sample_weight`` it is part of the loss, not a number of repetitions. All 0 trains a random field.
        guesses : list of sequences of labels, optional
            Where labels are missing: labels of all nodes from another source, as the predictions of an earlier fit.
            They stand for all labels, and their mistakes are corrected for at the nodes whose labels are known.
        X_dev, y_dev : list of examples and list of sequences of labels, optional
            Data to watch training by: after each round ``dev_history_`` is told the ``score`` of the best weights so
            far on them, which ``verbose`` prints. They change neither the weights nor when training ends.

        Returns
        -------
        self
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("X_dev and y_dev must be given together, or neither.")
        more = {"propensities": propensities, "node_weight": node_weight, "guesses": guesses}
        if is_collection(X) and any(given is not None for given in more.values()):
            raise ValueError("propensities, node_weight and guesses must be None for Dask bags.")
        watching: list[Development] = []

        def watch(problem: Any, facts: NetworkFacts) -> Development:
            model = copy.copy(self)
            model._weights, (model._unit, model._mu) = np.zeros(problem.n_weights), self._units(facts)
            model._store(model._weights, facts, problem)
            watching.append(Development(model, X_dev, y_dev))
            return watching[0]

        self._fit(X, y, sample_weight, watch=None if X_dev is None else watch, **more)
        self.__dict__.pop("dev_history_", None)  # of an earlier fit
        if watching:
            self.dev_history_ = watching[0].rounds
        return self

    @property
    def feature_names_(self) -> list[str]:
        """Names of the columns of ``coef_``, where features are named."""
        if getattr(self, "_named", None) is None:
            raise AttributeError(f"{type(self).__name__} has no feature_names_: it was not trained on named features.")
        return list(self._named.columns)  # type: ignore[union-attr]

    def _check_parameters(self) -> None:
        check_parameters(self, decision=DECISIONS)
        if not 0 <= number(self.smoothing, "smoothing") < np.inf:
            raise ValueError(f"smoothing must be finite and not negative; got {self.smoothing!r}.")

    def _read(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        propensities: Any = None,
        node_weight: Any = None,
        guesses: Any = None,
    ) -> _Labelled:
        graphs, named = self._reads(X, None, None, None, True, self._extras, self.n_jobs)
        labels, missing = labels_of(y, graphs.sizes)
        return _Labelled(
            graphs,
            None if named is None else list(named.columns),
            labels,
            missing,
            example_weights(sample_weight, graphs.sizes.size),
            given_propensities(propensities, graphs, missing),
            node_counts(node_weight, graphs.sizes),
            guesses,
        )

    def _facts(self, data: _Labelled) -> NetworkFacts:
        graphs, counts = data.graphs, data.counts
        edge_width = None if graphs.edge_features is None else graphs.edge_features.shape[1]
        words = vocabulary(graphs.nodes, data.labels, data.missing, data.columns, edge_width)
        rate = label_rate(self.propensity, graphs.sizes, data.missing, data.weight)
        largest = 1.0 if counts is None else float(counts.max())
        return NetworkFacts(float(data.weight @ graphs.sizes), words, rate, largest, data.guesses is not None)

    def _sums(self, data: _Labelled, facts: NetworkFacts) -> LabelSums:
        design, codes, graphs = self._designed(data, facts)
        return label_sums(design, graphs, codes, self._weights_of_labels(data, facts))

    def _problem(self, data: _Labelled, facts: NetworkFacts, sums: LabelSums | None) -> GameProblem:
        design, codes, graphs = self._designed(data, facts)
        omega, sizes, networks = data.weight / facts.total, data.graphs.sizes, design.networks
        if data.guesses is not None:
            guess = guessed_codes(data.guesses, sizes, facts.words.classes)
            moments = augmented_moments(design, graphs, codes, guess, self._weights_of_labels(data, facts))
        elif sums is None:
            moments = labelled_moments(design, graphs, codes, self._weights_of_labels(data, facts))
        else:  # each partition's share of what all say is as large as its share of the mean
            moments = float(data.weight @ sizes) / facts.total * sums.moments(self._pattern_of(facts))
        return GameProblem(
            design,
            networks,
            moments,
            omega,
            tol=np.inf,
            n_jobs=self.n_jobs,
            complete=not data.missing.any(),
            curvature=design.curvature(omega),
            exact=networks.is_exact,
        )

    def _designed(self, data: _Labelled, facts: NetworkFacts) -> tuple[NetworkDesign, np.ndarray, Graphs]:
        """The design of what was read, labels as numbers of classes, -1 where missing, and graphs with all columns."""
        graphs, k = placed(data.graphs, data.columns, facts.words), facts.words.classes.size
        self._check_loss(k)
        codes = np.full(data.labels.size, -1)
        if not data.missing.all():
            known = np.array(data.labels[~data.missing].tolist())
            codes[~data.missing] = np.searchsorted(facts.words.classes, known)
        networks = self._make_networks(graphs, k, data.counts, data.weight / facts.total)
        return self._design(graphs, networks, self._pattern_of(facts)), codes, graphs

    def _weights_of_labels(self, data: _Labelled, facts: NetworkFacts) -> tuple[np.ndarray, ...]:
        """What labels of nodes and edges weigh: over their propensities, and by themselves."""
        share = data.weight / facts.total
        per_node, per_edge = np.repeat(share, data.graphs.sizes), np.repeat(share, data.graphs.edge_counts)
        of_all = data.propensities or estimated_propensities(facts.rate, data.graphs)
        of_node, of_edge = propensities(*of_all, data.graphs, data.missing)
        return per_node / of_node, per_edge / of_edge, per_node, per_edge

    def _pattern_of(self, facts: NetworkFacts) -> tuple[np.ndarray, np.ndarray] | None:
        """Which labels each feature has weights for, None where features are dense: for all."""
        return facts.words.pattern(self._extras, bool(self.unseen_pairs))

    @property
    def _extras(self) -> int:
        """How many columns every example is given besides its features."""
        single = Graphs(np.zeros((1, 1)), np.ones(1, np.int64), [np.zeros((0, 2), np.int64)], None)
        return self._extra_columns(single).shape[1]

    def _method(self, problem: Any, facts: NetworkFacts) -> Method:
        if target := self._units(facts).smoothing:
            return Descent((target,), target)
        scale = self._loss_scale(facts.words.classes.size, facts.largest)
        return NetworkProgramme() if is_small(problem) else Descent(falling(scale))

    def _largest_cost(self, facts: NetworkFacts) -> float:
        return self._loss_scale(facts.words.classes.size, 1.0)

    def _extra_columns(self, graphs: Graphs) -> np.ndarray:
        """Columns that every example is given besides its features."""
        return np.ones((int(graphs.sizes.sum()), int(bool(self.fit_intercept))))

    def _make_networks(
        self, graphs: Graphs, k: int, counts: np.ndarray | None = None, weight: np.ndarray | None = None
    ) -> Networks:
        exact = getattr(self, "exact", "auto")  # a parameter only where graphs may have cycles
        return Networks(graphs.sizes, graphs.edges, k, self.loss, exact, counts, weight)

    def _check_loss(self, k: int) -> None:
        if not isinstance(self.loss, str):
            L = np.asarray(self.loss)
            if L.shape != (k, k):
                raise ValueError(f"loss must be a name or a cost matrix for the {k} classes of y; got shape {L.shape}.")

    def _design(
        self, graphs: Graphs, networks: Networks, pattern: tuple[np.ndarray, np.ndarray] | None
    ) -> NetworkDesign:
        """Features in the order of the networks' rows, with the weights of the pattern."""
        X, extra, order, k = graphs.nodes, self._extra_columns(graphs), networks.order, networks.k
        nodes: Any
        if pattern is None:
            stacked = np.hstack([X.toarray(), extra]) if sparse.issparse(X) else graphs.beside(extra)
            nodes = DenseFeatures(stacked[order] if networks.moved else stacked, k)
        else:
            stacked = sparse.csr_matrix(sparse.hstack([sparse.csr_matrix(X), sparse.csr_matrix(extra)], format="csr"))
            nodes = SparseFeatures(stacked[order] if networks.moved else stacked, k, *pattern)
        return NetworkDesign(nodes, graphs.edge_features, networks, self.n_jobs)

    def _store(self, w: np.ndarray, facts: NetworkFacts, problem: Any) -> None:
        words, k = facts.words, facts.words.classes.size
        self.classes_, self.n_features_in_, self._edge_width = words.classes, words.width, words.edge_width
        self._named = None if words.columns is None else NamedFeatures(words.columns)
        self._pattern, self.is_exact_ = self._pattern_of(facts), problem.exact
        self._scale, costs = self._loss_scale(k, facts.largest), self._costs(k)
        self._answers_by_scores = decided_by_scores(costs)
        split = w.size - k * k * (1 if words.edge_width is None else words.edge_width)
        if self._pattern is None:
            table = w[:split].reshape(-1, k).T
            self.coef_ = np.ascontiguousarray(table[:, : self.n_features_in_])
            rest = table[:, self.n_features_in_ :]
        else:
            start, label = self._pattern
            whole = sparse.csr_matrix((w[:split], label, start), shape=(start.size - 1, k)).T.tocsr()
            self.coef_ = whole[:, : self.n_features_in_]
            rest = whole[:, self.n_features_in_ :].toarray()
        self.intercept_ = rest[:, 0].copy() if self.fit_intercept else np.zeros(k)
        self._store_edges(rest[:, int(bool(self.fit_intercept)) :], w[split:].reshape(-1, k, k))

    def _store_edges(self, rest: np.ndarray, edges: np.ndarray) -> None:
        """Keep the weights of the other columns and of edges."""
        raise NotImplementedError

    def _scored(self, X: Any, node_weight: Any = None) -> Scored:
        check_is_fitted(self)
        graphs, networks, design = self._designed_for(X, node_weight)
        return Scored(graphs, networks, *design.scores(self._weights))

    def _designed_for(self, X: Any, node_weight: Any = None) -> tuple[Graphs, Networks, NetworkDesign]:
        """What is read of ``X`` to predict it: its graphs, their networks, and how weights become their scores."""
        graphs, _ = self._reads(X, self._named, self.n_features_in_, self._edge_width, False, self._extras, self.n_jobs)
        if (graphs.edge_features is None) != (self._edge_width is None):
            raise ValueError(
                f"X must come {'with' if self._edge_width is not None else 'without'} edge features, as in fit."
            )
        networks = self._make_networks(graphs, self.classes_.size, node_counts(node_weight, graphs.sizes))
        return graphs, networks, self._design(graphs, networks, self._pattern)

    def _score_of(self, graphs: Graphs, networks: Networks, design: NetworkDesign, y: Any) -> float:
        """:meth:`score` of what :meth:`_designed_for` has read."""
        scored = Scored(graphs, networks, *design.scores(self._weights))
        lost, known = self._lost(scored, y, networks.costs[self._labels(scored)])
        return self._as_score(float(lost.sum() / known.sum()))

"""What the estimators of networks share: features, labels with gaps, training, and both players' answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import joblib
import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from nashlearn.estimators._base import number
from nashlearn.estimators._deciding import DECISIONS
from nashlearn.estimators._missing import (
    LabelRate,
    LabelSums,
    augmented_moments,
    estimated_propensities,
    given_propensities,
    guessed_codes,
    label_rate,
    label_sums,
    labelled_moments,
    propensities,
)
from nashlearn.estimators._network_answers import PlayingNetworks
from nashlearn.estimators._network_input import Graphs, NamedFeatures, labels_of, node_counts
from nashlearn.estimators._parameters import check_parameters
from nashlearn.estimators._structured import example_weights
from nashlearn.estimators._vocabulary import united, vocabulary
from nashlearn.games.networks.batch import Networks
from nashlearn.solvers.threads import threads
from nashlearn.training.designs.networks import NetworkProblem, edge_scores
from nashlearn.training.designs.nodes import DenseFeatures, SparseFeatures
from nashlearn.training.methods.programme import NetworkProgramme, is_small

__all__ = ["NetworkNash"]

_SCHEDULE = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


class NetworkNash(PlayingNetworks):
    """A game over labelings. Subclasses say how ``X`` is read and which columns it is given besides."""

    loss: Any
    fit_intercept: bool
    unseen_pairs: bool
    propensity: str
    n_jobs: int | None
    _pattern: Any
    _given: Any = None  # propensities of the fit under way
    _counts: Any = None  # its weights of nodes
    _guesses: Any = None  # and its guesses of labels
    _rate: LabelRate | None = None  # how often labels are known in all partitions
    _moments: np.ndarray | None = None  # what they say together, where some are missing
    _named: NamedFeatures | None
    _edge_width: int | None
    n_features_in_: int

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        propensities: Any = None,
        node_weight: Any = None,
        guesses: Any = None,
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

        Returns
        -------
        self
        """
        self._given, self._counts, self._guesses = propensities, node_weight, guesses
        try:
            return super().fit(X, y, sample_weight)
        finally:
            for name in ("_given", "_counts", "_guesses", "_rate", "_moments"):
                self.__dict__.pop(name, None)

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

    def _also(self) -> Any:
        return self._given, self._counts, self._guesses

    def _smoothing(self) -> tuple[float, Iterable[float]]:
        if self.smoothing > 0:
            return float(self.smoothing), (float(self.smoothing),)
        return 0.0, tuple(self._networks.scale * s for s in _SCHEDULE)

    def _programme(self, problem: Any) -> NetworkProgramme | None:
        return None if self.smoothing > 0 or not is_small(problem) else NetworkProgramme(problem, float(self.alpha))

    def _read(self, X: Any, grow: bool) -> Graphs:
        """``X`` as graphs; ``grow`` in training, where features get their columns."""
        raise NotImplementedError

    def _extra_columns(self, graphs: Graphs) -> np.ndarray:
        """Columns that every example is given besides its features."""
        return np.ones((int(graphs.sizes.sum()), int(bool(self.fit_intercept))))

    def _make_networks(self, graphs: Graphs, k: int, counts: np.ndarray | None = None) -> Networks:
        raise NotImplementedError

    def _problem(self, X: Any, y: Any, sample_weight: Any) -> NetworkProblem:
        graphs = self._read(X, grow=True)
        labels, missing = labels_of(y, graphs.sizes)
        weight = example_weights(sample_weight, graphs.sizes.size)
        if missing.all():
            raise ValueError("y holds no labels: all are missing.")
        if not np.repeat(weight, graphs.sizes)[~missing].any():
            raise ValueError("y holds no labels that count: sample_weight is 0 in all examples that have some.")
        try:
            self.classes_, codes = np.unique(np.array(labels[~missing].tolist()), return_inverse=True)
        except TypeError:
            raise ValueError("y must hold labels of one kind, which can be sorted.") from None
        if self.classes_.size < 2:
            raise ValueError(f"y holds one class only, {self.classes_.tolist()[0]!r}; at least two are needed.")
        k = self.classes_.size
        y_code = np.full(labels.size, -1)
        y_code[~missing] = codes
        given = given_propensities(self._given, graphs, missing)
        if given is None:
            given = estimated_propensities(label_rate(self.propensity, graphs.sizes, missing, weight), graphs)
        self._check_loss(k)
        networks = self._make_networks(graphs, k, node_counts(self._counts, graphs.sizes))
        self.is_exact_ = networks.is_exact
        self._play_on(networks)
        total = float(weight @ graphs.sizes)
        per_node = np.repeat(weight / total, graphs.sizes)
        per_edge = np.repeat(weight / total, graphs.edge_counts)
        of_node, of_edge = propensities(*given, graphs, missing)
        extra = self._extra_columns(graphs)
        nodes, pattern = self._features(graphs.nodes, extra, y_code, k, networks.order)
        weights = per_node / of_node, per_edge / of_edge, per_node, per_edge
        if self._guesses is not None:
            guess = guessed_codes(self._guesses, graphs.sizes, self.classes_)
            moments = augmented_moments(nodes, networks, graphs, y_code, guess, *weights)
        elif missing.any():
            moments = label_sums(nodes, networks, graphs, y_code, *weights).moments(pattern)
        else:
            moments = labelled_moments(nodes, networks, graphs, y_code, *weights[:2])
        self._pattern, self._n_extra = pattern, extra.shape[1]
        self.n_features_in_ = graphs.nodes.shape[1]
        self._edge_width = None if graphs.edge_features is None else graphs.edge_features.shape[1]
        self._node_weights = nodes.n_weights
        run = threads(joblib.effective_n_jobs(self.n_jobs))
        return NetworkProblem(
            networks, nodes, graphs.edge_features, moments, per_node[networks.order], run, not missing.any()
        )

    def _survey(self, X: Any, y: Any, sample_weight: np.ndarray) -> tuple[np.ndarray, Any]:
        if any(given is not None for given in self._also()):
            raise ValueError("propensities, node_weight and guesses must be None for Dask bags.")
        graphs = self._read(X, grow=True)
        labels, missing = labels_of(y, graphs.sizes)
        columns = None if self._named is None else list(self._named.columns)
        edge_width = None if graphs.edge_features is None else graphs.edge_features.shape[1]
        words = vocabulary(graphs.nodes, labels, missing, columns, edge_width)
        return graphs.sizes, (words, label_rate(self.propensity, graphs.sizes, missing, sample_weight))

    def _merged(self, one: Any, other: Any) -> Any:
        return united(one[0], other[0]), one[1].merged(other[1])

    def _adopt(self, facts: Any) -> None:
        words, self._rate = facts
        k = words.classes.size
        if k == 0:
            raise ValueError("y holds no labels: all are missing.")
        if k < 2:
            raise ValueError(f"y holds one class only, {words.classes.tolist()[0]!r}; at least two are needed.")
        self._check_loss(k)
        single = Graphs(np.zeros((1, words.width)), np.ones(1, np.int64), [np.zeros((0, 2), np.int64)], None)
        self._n_extra = self._extra_columns(single).shape[1]
        self.classes_, self.n_features_in_, self._edge_width = words.classes, words.width, words.edge_width
        self._named = None
        if words.columns is not None:
            self._named = NamedFeatures()
            self._named.columns.update((name, i) for i, name in enumerate(words.columns))
        self._pattern = words.pattern(self._n_extra, bool(self.unseen_pairs))
        whole = (words.width + self._n_extra) * k
        self._node_weights = whole if self._pattern is None else self._pattern[1].size
        self._play_on(self._make_networks(single, k))
        self.is_exact_ = self._networks.is_exact  # so far

    def _play_on(self, networks: Networks) -> None:
        """Keep the networks of training, and what predictions need to know of their loss."""
        self._networks = networks
        self._scale, self._answers_by_scores = networks.scale, networks.answers_by_scores

    @property
    def _incomplete(self) -> bool:
        return self._rate is not None and not self._rate.complete

    def _sums(self, X: Any, y: Any, sample_weight: np.ndarray, total: float) -> LabelSums:
        graphs, networks, nodes, codes = self._read_part(X, y)
        share = sample_weight / total
        per_node, per_edge = np.repeat(share, graphs.sizes), np.repeat(share, graphs.edge_counts)
        of_all = estimated_propensities(self._rate, graphs)  # type: ignore[arg-type]
        of_node, of_edge = propensities(*of_all, graphs, codes < 0)
        weights = per_node / of_node, per_edge / of_edge, per_node, per_edge
        return label_sums(nodes, networks, graphs, codes, *weights)

    def _adopt_sums(self, sums: LabelSums) -> None:
        if not sums.labels.any():
            raise ValueError("y holds no labels that count: sample_weight is 0 in all examples that have some.")
        self._moments = sums.moments(self._pattern)

    def _part(self, X: Any, y: Any, sample_weight: np.ndarray) -> NetworkProblem:
        graphs, networks, nodes, codes = self._read_part(X, y)
        share = sample_weight / float(sample_weight @ graphs.sizes)
        per_node, per_edge = np.repeat(share, graphs.sizes), np.repeat(share, graphs.edge_counts)
        moments = self._moments  # each partition's share of what all say is as large as its share of the mean
        if moments is None:
            moments = labelled_moments(nodes, networks, graphs, codes, per_node, per_edge)
        run = threads(joblib.effective_n_jobs(self.n_jobs))
        complete = bool((codes >= 0).all())
        return NetworkProblem(networks, nodes, graphs.edge_features, moments, per_node[networks.order], run, complete)

    def _read_part(self, X: Any, y: Any) -> tuple[Graphs, Networks, Any, np.ndarray]:
        """Graphs of a partition, their networks, features and labels as numbers of classes, -1 where missing."""
        graphs = self._read(X, grow=False)
        labels, missing = labels_of(y, graphs.sizes)
        codes = np.full(labels.size, -1)
        if not missing.all():
            codes[~missing] = np.searchsorted(self.classes_, np.array(labels[~missing].tolist()))
        k = self.classes_.size
        networks = self._make_networks(graphs, k)
        nodes, _ = self._features(graphs.nodes, self._extra_columns(graphs), None, k, networks.order)
        return graphs, networks, nodes, codes

    def _check_loss(self, k: int) -> None:
        if not isinstance(self.loss, str):
            L = np.asarray(self.loss)
            if L.shape != (k, k):
                raise ValueError(f"loss must be a name or a cost matrix for the {k} classes of y; got shape {L.shape}.")

    def _features(
        self, X: Any, extra: np.ndarray, y: np.ndarray | None, k: int, order: np.ndarray
    ) -> tuple[Any, tuple[np.ndarray, np.ndarray] | None]:
        """Features in the order of the networks' rows; with labels ``y`` the pattern of weights is made anew."""
        moved = not np.array_equal(order, np.arange(order.size))
        if not sparse.issparse(X):
            stacked = np.hstack([X, extra]) if extra.shape[1] else np.ascontiguousarray(X)
            return DenseFeatures(stacked[order] if moved else stacked, k), None
        stacked = sparse.csr_matrix(sparse.hstack([X, sparse.csr_matrix(extra)], format="csr"))
        d = stacked.shape[1]
        pattern: tuple[np.ndarray, np.ndarray]
        if y is None:
            pattern = self._pattern
        elif self.unseen_pairs:
            pattern = SparseFeatures.all_pairs(d, k)
        else:
            start, label = SparseFeatures.seen_pairs(X, y, k)
            more = np.tile(np.arange(k, dtype=np.int32), extra.shape[1])
            ends = start[-1] + k * np.arange(1, extra.shape[1] + 1)
            pattern = np.concatenate([start, ends]).astype(np.int64), np.concatenate([label, more])
        return SparseFeatures(stacked[order] if moved else stacked, k, *pattern), pattern

    def _store(self, w: np.ndarray) -> None:
        k, split = self.classes_.size, self._node_weights
        del self._networks
        nodes = w[:split]
        if self._pattern is None:
            table = nodes.reshape(-1, k).T
            self.coef_ = np.ascontiguousarray(table[:, : self.n_features_in_])
            rest = table[:, self.n_features_in_ :]
        else:
            start, label = self._pattern
            whole = sparse.csr_matrix((nodes, label, start), shape=(start.size - 1, k)).T.tocsr()
            self.coef_ = whole[:, : self.n_features_in_]
            rest = whole[:, self.n_features_in_ :].toarray()
        self.intercept_ = rest[:, 0].copy() if self.fit_intercept else np.zeros(k)
        edges = w[split:].reshape(-1, k, k)
        self._store_edges(rest[:, int(bool(self.fit_intercept)) :], edges)

    def _store_edges(self, rest: np.ndarray, edges: np.ndarray) -> None:
        """Keep the weights of the other columns and of edges."""
        raise NotImplementedError

    def _scored(self, X: Any, node_weight: Any = None) -> tuple[Graphs, Networks, np.ndarray, np.ndarray, Any]:
        """Graphs, networks, scores of their rows and edges, and how to call in threads."""
        check_is_fitted(self)
        graphs = self._read(X, grow=False)
        if (graphs.edge_features is None) != (self._edge_width is None):
            raise ValueError(
                f"X must come {'with' if self._edge_width is not None else 'without'} edge features, as in fit."
            )
        k = self.classes_.size
        networks = self._make_networks(graphs, k, node_counts(node_weight, graphs.sizes))
        given = graphs.nodes
        if sparse.issparse(given) != (self._pattern is not None):  # the weights are laid out as features were in fit
            given = given.toarray() if sparse.issparse(given) else sparse.csr_matrix(given)
        nodes, _ = self._features(given, self._extra_columns(graphs), None, k, networks.order)
        run = threads(joblib.effective_n_jobs(self.n_jobs))
        S = np.empty((networks.n, k))
        nodes.scores(self._weights[: self._node_weights], S, run)
        T = edge_scores(self._weights[self._node_weights :], graphs.edge_features, k)
        return graphs, networks, S, T, run

"""Missing labels: what the labelled ones say of all, by inverse propensities.

Node ``v`` is labelled with probability ``pi_v``, independently of its label given the input, both ends of an edge with
``pi_uv``. Dividing what labelled nodes and edges contribute by these gives moments with the right expectation
[franc2022]_. They are rescaled to what is known without labels: each feature's total over nodes, and the number of
edges (the estimator of Hájek). Of a feature that no labelled node or edge has, its total alone is known: it is shared
out by the frequencies of labels, as if the feature said nothing of them. The corrected loss may be unbounded below
without regularisation: ``alpha > 0``.

Where guesses of all labels are at hand, from a model trained before, their moments are known, and only their mistakes
have to be estimated from the labelled nodes: ``Phi' g + sum (Phi' y - Phi' g) / pi`` has the same expectation, and the
less variance the better the guesses are [robins1994]_.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nashlearn.estimators._network_input import Graphs, each_example, labels_of
from nashlearn.games.networks.batch import Networks
from nashlearn.solvers.threads import threads

__all__ = [
    "LabelRate",
    "LabelSums",
    "augmented_moments",
    "estimated_propensities",
    "given_propensities",
    "guessed_codes",
    "label_rate",
    "label_sums",
    "labelled_moments",
    "propensities",
]

_UNEQUAL = 'propensity="node" needs examples of equal size; use "homogeneous" or give propensities.'


def given_propensities(given: Any, graphs: Graphs, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The user's probabilities for all nodes and all edges, checked."""
    if given is None:
        return None
    entries = each_example(given, graphs.sizes.size, "propensities")
    nodes, pairs = [], []
    for i, (one, n, m) in enumerate(zip(entries, graphs.sizes.tolist(), graphs.edge_counts.tolist(), strict=True)):
        both = isinstance(one, tuple)
        own = np.asarray(one[0] if both else one, dtype=np.float64)
        if own.shape != (n,):
            raise ValueError(f"propensities[{i}] must hold a probability for each of the {n} nodes; got {own.shape}.")
        nodes.append(own)
        of_edges = np.asarray(one[1], dtype=np.float64) if both else np.full(m, np.nan)
        if of_edges.shape != (m,):
            raise ValueError(
                f"propensities[{i}] must hold a probability for each of the {m} edges; got {of_edges.shape}."
            )
        pairs.append(of_edges)
    node, pair = np.concatenate(nodes), np.concatenate(pairs)
    u, v = graphs.all_edges().T
    pair = np.where(np.isnan(pair), node[u] * node[v], pair)
    for name, pi, used in (("nodes", node, ~missing), ("edges", pair, ~missing[u] & ~missing[v])):
        wrong = used & ~((pi > 0) & (pi <= 1))
        if wrong.any():
            raise ValueError(
                f"propensities of labelled {name} must be above 0 and at most 1; got {pi[wrong][0]:g}: what is never "
                "labelled cannot be corrected for."
            )
    return node, pair


class LabelRate(NamedTuple):
    """How often nodes are labelled, all alike or each of ``m`` by itself.

    ``known`` (m,) of ``every``, in weights of examples; ``hidden`` labels are missing, whatever their weights.
    """

    known: np.ndarray
    every: float
    hidden: int

    @property
    def complete(self) -> bool:
        """Whether no label is missing."""
        return self.hidden == 0

    def merged(self, other: LabelRate) -> LabelRate:
        """That of both data sets together."""
        if self.known.size != other.known.size:
            raise ValueError(_UNEQUAL)
        return LabelRate(self.known + other.known, self.every + other.every, self.hidden + other.hidden)


def label_rate(kind: str, sizes: np.ndarray, missing: np.ndarray, weight: np.ndarray) -> LabelRate:
    """How often nodes are labelled, for ``propensity`` "homogeneous" or "node"; ``weight`` is that of examples."""
    hidden = int(np.count_nonzero(missing))
    if kind != "node":
        each = np.repeat(weight, sizes)
        return LabelRate(np.array([float(each[~missing].sum())]), float(each.sum()), hidden)
    if (sizes != sizes[0]).any():
        raise ValueError(_UNEQUAL)
    return LabelRate(weight @ ~missing.reshape(sizes.size, -1), float(weight.sum()), hidden)


def estimated_propensities(rate: LabelRate, graphs: Graphs) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of labels, for all nodes and edges."""
    # Where all that is labelled weighs nothing any propensity will do.
    each = np.where(rate.known > 0, rate.known / (rate.every or 1.0), 1.0)
    node = np.resize(each, int(graphs.sizes.sum()))  # again and again, example by example
    u, v = graphs.all_edges().T
    return node, node[u] * node[v]


def propensities(node: np.ndarray, pair: np.ndarray, graphs: Graphs, missing: np.ndarray) -> tuple[np.ndarray, ...]:
    """Those of nodes and edges, infinite for what is missing: it contributes nothing."""
    u, v = graphs.all_edges().T
    return np.where(missing, np.inf, node), np.where(missing[u] | missing[v], np.inf, pair)


class LabelSums(NamedTuple):
    """What moments are estimated from where labels are missing: sums over nodes and edges, which partitions add up.

    Attributes
    ----------
    of_nodes, of_edges : ndarray (n_weights,), (d, k * k)
        Moments of labelled nodes, and of edges labelled at both ends, over their propensities.
    labels : ndarray (k,)
        Weight of the nodes with each label, over their propensities.
    totals, seen : ndarray (d,)
        Sum of each feature over all nodes, whose weights sum to 1, and over labelled ones.
    signed, present : boolean ndarray (d,)
        Whether a feature is negative somewhere, and whether a labelled node has it.
    edges : ndarray (2,)
        Weight of all edges, and of labelled ones.
    edge_totals : ndarray (d,)
        Sum of each feature over all edges.
    edge_present : boolean ndarray (d,)
        Whether a labelled edge has it.
    """

    of_nodes: np.ndarray
    of_edges: np.ndarray
    labels: np.ndarray
    totals: np.ndarray
    seen: np.ndarray
    signed: np.ndarray
    present: np.ndarray
    edges: np.ndarray
    edge_totals: np.ndarray
    edge_present: np.ndarray

    def merged(self, other: LabelSums) -> LabelSums:
        """Those of both data sets together; the sum of booleans is true where one is."""
        return LabelSums(*(one + two for one, two in zip(self, other, strict=True)))

    def moments(self, pattern: tuple[np.ndarray, np.ndarray] | None) -> np.ndarray:
        """``mean Phi' y``: what labelled nodes and edges say, rescaled to what is known of all.

        The moments of a feature that is never negative add up to its known total. Those of a feature that nothing
        labelled has are shared out by the frequencies of labels. ``pattern`` is that of
        :class:`~nashlearn.training.designs.nodes.SparseFeatures`, None where features are dense.
        """
        k, d, labelled = self.labels.size, self.totals.size, self.labels.sum()
        feature, label = np.repeat(np.arange(d), k), np.tile(np.arange(k), d)
        if pattern is not None:
            feature, label = np.repeat(np.arange(d), np.diff(pattern[0])), pattern[1]
        frequency = self.labels / labelled
        known = ~self.signed & (self.seen > 0)
        factor = np.where(known, self.totals / np.where(known, self.seen, 1.0), 1.0 / labelled)
        of_nodes = np.where(
            self.present[feature], self.of_nodes * factor[feature], self.totals[feature] * frequency[label]
        )
        every, used = self.edges
        of_edges = self.of_edges * (every / used if used > 0 else 1.0)
        absent = ~self.edge_present
        of_edges[absent] = np.outer(self.edge_totals[absent], np.outer(frequency, frequency))
        return np.concatenate([of_nodes, of_edges.ravel()])


class _Labelled(NamedTuple):
    """Weights of labels (N, k) and of edges (m,), features of edges, and the moments of both."""

    one_hot: np.ndarray
    used: np.ndarray
    features: np.ndarray
    of_nodes: np.ndarray
    of_edges: np.ndarray


def _labelled(
    nodes: Any, networks: Networks, graphs: Graphs, y: np.ndarray, node_weight: np.ndarray, edge_weight: np.ndarray
) -> _Labelled:
    k = networks.k
    one_hot = np.zeros((networks.n, k))
    labelled = y >= 0
    one_hot[np.flatnonzero(labelled), y[labelled]] = node_weight[labelled]
    of_nodes = np.empty(nodes.n_weights)
    nodes.gradient(one_hot[networks.order], of_nodes, threads(1))
    u, v = graphs.all_edges().T
    both = labelled[u] & labelled[v]
    code = np.where(both, y[u] * k + y[v], 0)
    used = np.where(both, edge_weight, 0.0)
    features = np.ones((used.size, 1)) if graphs.edge_features is None else graphs.edge_features
    of_edges = np.zeros((features.shape[1], k * k))
    for own, feature in zip(of_edges, features.T, strict=True):
        own += np.bincount(code, weights=used * feature, minlength=k * k)
    return _Labelled(one_hot, used, features, of_nodes, of_edges)


def labelled_moments(
    nodes: Any, networks: Networks, graphs: Graphs, y: np.ndarray, node_weight: np.ndarray, edge_weight: np.ndarray
) -> np.ndarray:
    """``mean Phi' y`` of nodes and edges with these weights, where no label is missing."""
    found = _labelled(nodes, networks, graphs, y, node_weight, edge_weight)
    return np.concatenate([found.of_nodes, found.of_edges.ravel()])


def label_sums(
    nodes: Any,
    networks: Networks,
    graphs: Graphs,
    y: np.ndarray,
    node_weight: np.ndarray,
    edge_weight: np.ndarray,
    node_share: np.ndarray,
    edge_share: np.ndarray,
) -> LabelSums:
    """The sums of labelled nodes and edges with these weights; ``share`` is what each weighs when labelled."""
    found = _labelled(nodes, networks, graphs, y, node_weight, edge_weight)
    labelled = found.one_hot.sum(axis=1)[networks.order]
    return LabelSums(
        found.of_nodes,
        found.of_edges,
        found.one_hot.sum(axis=0),
        nodes.totals(node_share[networks.order]),
        nodes.totals(labelled),
        nodes.signed(),
        nodes.present(labelled > 0),
        np.array([edge_share.sum(), found.used.sum()]),
        edge_share @ found.features,
        np.asarray(found.features[found.used > 0].any(axis=0)),
    )


def guessed_codes(guesses: Any, sizes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The user's guesses of all labels as numbers of classes, checked."""
    labels, missing = labels_of(guesses, sizes, "guesses")
    position = {label: i for i, label in enumerate(classes.tolist())}
    codes = np.array([position.get(label, -1) for label in labels])
    if missing.any() or (codes < 0).any():
        bad = "a missing label" if missing.any() else f"the label {labels[codes < 0][0]!r}, which y does not"
        raise ValueError(f"guesses must hold a label of y for each node; got {bad}.")
    return codes


def augmented_moments(
    nodes: Any,
    networks: Networks,
    graphs: Graphs,
    y: np.ndarray,
    guess: np.ndarray,
    node_weight: np.ndarray,
    edge_weight: np.ndarray,
    node_share: np.ndarray,
    edge_share: np.ndarray,
) -> np.ndarray:
    """``mean Phi' y`` from guesses of all labels and their mistakes at labelled nodes and edges."""
    k = networks.k
    labelled = np.flatnonzero(y >= 0)
    belief = np.zeros((networks.n, k))
    belief[np.arange(networks.n), guess] = node_share
    np.add.at(belief, (labelled, y[labelled]), node_weight[labelled])
    np.add.at(belief, (labelled, guess[labelled]), -node_weight[labelled])
    of_nodes = np.empty(nodes.n_weights)
    nodes.gradient(belief[networks.order], of_nodes, threads(1))
    u, v = graphs.all_edges().T
    both = (y[u] >= 0) & (y[v] >= 0)
    used = np.where(both, edge_weight, 0.0)
    code = np.concatenate([guess[u] * k + guess[v], np.where(both, y[u] * k + y[v], 0)])
    counted = np.concatenate([edge_share - used, used])
    if graphs.edge_features is None:
        return np.concatenate([of_nodes, np.bincount(code, weights=counted, minlength=k * k)])
    of_edges = np.zeros((graphs.edge_features.shape[1], k * k))
    np.add.at(of_edges.T, code, counted[:, None] * np.tile(graphs.edge_features, (2, 1)))
    return np.concatenate([of_nodes, of_edges.ravel()])

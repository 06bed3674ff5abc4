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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nashlearn.solvers.threads import threads
from nashlearn.training.blas import one_thread
from nashlearn.training.graphs import Graphs

__all__ = [
    "LabelRate",
    "LabelSums",
    "augmented_moments",
    "estimated_propensities",
    "label_rate",
    "label_sums",
    "labelled_moments",
    "propensities",
]

_UNEQUAL = 'propensity="node" needs examples of equal size; use "homogeneous" or give propensities.'


@dataclass(frozen=True)
class LabelRate:
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

    def __add__(self, other: LabelRate) -> LabelRate:
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


@dataclass(frozen=True)
class LabelSums:
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

    def __add__(self, other: LabelSums) -> LabelSums:
        """Those of both data sets together; the sum of booleans is true where one is."""
        return LabelSums(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

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


def _of_nodes(design: Any, belief: np.ndarray) -> np.ndarray:
    """Moments of nodes whose labels weigh ``belief`` (N, k)."""
    moments = np.empty(design.nodes.n_weights)
    with one_thread():
        design.nodes.gradient(belief[design.networks.order], moments, threads(1))
    return moments


def _of_edges(graphs: Graphs, y: np.ndarray, weight: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Moments (d, k k) of the edges that labels ``y`` know at both ends, and what each of all edges then weighs."""
    u, v = graphs.all_edges().T
    both = (y[u] >= 0) & (y[v] >= 0)
    code, used = np.where(both, y[u] * k + y[v], 0), np.where(both, weight, 0.0)
    features = np.ones((used.size, 1)) if graphs.edge_features is None else graphs.edge_features
    moments = [np.bincount(code, weights=used * feature, minlength=k * k) for feature in features.T]
    return np.array(moments).reshape(-1, k * k), used


def _weighted_labels(y: np.ndarray, weight: np.ndarray, k: int) -> np.ndarray:
    """Weights (N, k) of the labels ``y``, of which those below 0 are missing."""
    belief = np.zeros((y.size, k))
    labelled = np.flatnonzero(y >= 0)
    belief[labelled, y[labelled]] = weight[labelled]
    return belief


def labelled_moments(design: Any, graphs: Graphs, y: np.ndarray, weights: Sequence[np.ndarray]) -> np.ndarray:
    """``mean Phi' y`` of nodes and edges with these weights, see :func:`label_sums`, where no label is missing."""
    k, (node_weight, edge_weight, _, _) = design.networks.k, weights
    of_nodes = _of_nodes(design, _weighted_labels(y, node_weight, k))
    return np.concatenate([of_nodes, _of_edges(graphs, y, edge_weight, k)[0].ravel()])


def label_sums(design: Any, graphs: Graphs, y: np.ndarray, weights: Sequence[np.ndarray]) -> LabelSums:
    """The sums of labelled nodes and edges.

    ``weights`` are those of labels of nodes and of edges over their propensities, then by themselves.
    """
    nodes, networks, (node_weight, edge_weight, node_share, edge_share) = design.nodes, design.networks, weights
    belief = _weighted_labels(y, node_weight, networks.k)
    of_edges, used = _of_edges(graphs, y, edge_weight, networks.k)
    features = np.ones((used.size, 1)) if graphs.edge_features is None else graphs.edge_features
    labelled = belief.sum(axis=1)[networks.order]
    return LabelSums(
        _of_nodes(design, belief),
        of_edges,
        belief.sum(axis=0),
        nodes.totals(node_share[networks.order]),
        nodes.totals(labelled),
        nodes.signed(),
        nodes.present(labelled > 0),
        np.array([edge_share.sum(), used.sum()]),
        edge_share @ features,
        np.asarray(features[used > 0].any(axis=0)),
    )


def augmented_moments(
    design: Any, graphs: Graphs, y: np.ndarray, guess: np.ndarray, weights: Sequence[np.ndarray]
) -> np.ndarray:
    """``mean Phi' y`` from guesses of all labels and their mistakes at labelled nodes and edges."""
    k, (node_weight, edge_weight, node_share, edge_share) = design.networks.k, weights
    known = np.where(y >= 0, node_weight, 0.0)
    belief = _weighted_labels(guess, node_share - known, k) + _weighted_labels(y, node_weight, k)
    of_edges, used = _of_edges(graphs, y, edge_weight, k)
    of_edges += _of_edges(graphs, guess, edge_share - used, k)[0]
    return np.concatenate([_of_nodes(design, belief), of_edges.ravel()])

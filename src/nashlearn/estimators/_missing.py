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

from typing import Any

import numpy as np

from nashlearn.estimators._network_input import Graphs, labels_of
from nashlearn.games.markov.batch import Networks
from nashlearn.games.threads import threads

__all__ = ["augmented_moments", "corrected_moments", "given_propensities", "guessed_codes", "propensities"]


def given_propensities(given: Any, graphs: Graphs, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The user's probabilities for all nodes and all edges, checked."""
    if given is None:
        return None
    if len(given) != graphs.sizes.size:
        raise ValueError(f"propensities must be given for each of the {graphs.sizes.size} examples; got {len(given)}.")
    nodes, pairs = [], []
    for i, (one, n, m) in enumerate(zip(given, graphs.sizes.tolist(), graphs.edge_counts.tolist(), strict=True)):
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


def propensities(
    given: tuple[np.ndarray, np.ndarray] | None, graphs: Graphs, missing: np.ndarray, kind: str
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of labels, for all nodes and edges; 1 where nothing is missing."""
    u, v = graphs.all_edges().T
    if given is not None:
        node, pair = given
    elif kind == "node":
        if (graphs.sizes != graphs.sizes[0]).any():
            raise ValueError('propensity="node" needs examples of equal size; use "homogeneous" or give propensities.')
        rate = (~missing).reshape(graphs.sizes.size, -1).mean(axis=0)
        node = np.tile(rate, graphs.sizes.size)
        pair = node[u] * node[v]
    else:
        node = np.full(missing.size, (~missing).mean())
        pair = node[u] * node[v]
    # What is missing contributes nothing: infinite propensity.
    return np.where(missing, np.inf, node), np.where(missing[u] | missing[v], np.inf, pair)


def corrected_moments(
    nodes: Any,
    networks: Networks,
    graphs: Graphs,
    y: np.ndarray,
    node_weight: np.ndarray,
    edge_weight: np.ndarray,
    node_share: np.ndarray,
    edge_share: np.ndarray,
    rescale: bool,
) -> np.ndarray:
    """``mean Phi' y`` from labelled nodes and edges with these weights; ``share`` is what each weighs when labelled."""
    k, run = networks.k, threads(1)
    one_hot = np.zeros((networks.n, k))
    labelled = y >= 0
    one_hot[np.flatnonzero(labelled), y[labelled]] = node_weight[labelled]
    of_nodes = np.empty(nodes.n_weights)
    nodes.gradient(one_hot[networks.order], of_nodes, run)
    u, v = graphs.all_edges().T
    both = labelled[u] & labelled[v]
    code = np.where(both, y[u] * k + y[v], 0)
    used = np.where(both, edge_weight, 0.0)
    if rescale:
        _rescale_nodes(nodes, one_hot, node_share, networks, of_nodes)
        if used.sum() > 0:
            used = used * (edge_share.sum() / used.sum())
    features = np.ones((used.size, 1)) if graphs.edge_features is None else graphs.edge_features
    of_edges = np.zeros((features.shape[1], k * k))
    for own, feature in zip(of_edges, features.T, strict=True):
        own += np.bincount(code, weights=used * feature, minlength=k * k)
    if rescale:
        unseen = ~features[used > 0].any(axis=0)
        labels = _frequencies(one_hot)
        of_edges[unseen] = np.outer(edge_share @ features[:, unseen], np.outer(labels, labels))
    return np.concatenate([of_nodes, of_edges.ravel()])


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


def _frequencies(one_hot: np.ndarray) -> np.ndarray:
    """Share of each label (k,), from weights (N, k) of labels."""
    counts = one_hot.sum(axis=0)
    return counts / counts.sum()


def _rescale_nodes(nodes: Any, one_hot: np.ndarray, share: np.ndarray, networks: Networks, moments: np.ndarray) -> None:
    """Scale the moments of each feature that is never negative so that they add up to the feature's known total.

    Those of a feature that labelled nodes do not have are shared out by the frequencies of labels.
    """
    labelled, everywhere = one_hot.sum(axis=1)[networks.order], share[networks.order]
    totals, seen, signed = nodes.totals(everywhere), nodes.totals(labelled), nodes.signed()
    overall = share.sum() / one_hot.sum()
    factor = np.where(signed | (seen <= 0), overall, totals / np.where(seen > 0, seen, 1.0))
    shared_out = np.empty_like(moments)
    nodes.gradient(np.outer(everywhere, _frequencies(one_hot)), shared_out, threads(1))
    counts = nodes.weights_of_features()
    moments *= np.repeat(factor, counts)
    np.copyto(moments, shared_out, where=np.repeat(~nodes.present(labelled > 0), counts))

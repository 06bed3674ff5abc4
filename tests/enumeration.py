"""All outputs of small examples, listed: the moments and the losses of each, from nothing but their definitions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import permutations, product

import numpy as np


@dataclass(frozen=True)
class Outputs:
    """The outputs of one example: ``labels`` (count, n), their moments ``Phi' y`` (count, d), and ``costs[a, b]``.

    ``costs`` (count, count) is what answering ``a`` costs where ``b`` is true; both players choose among the outputs.
    """

    labels: np.ndarray
    moments: np.ndarray
    costs: np.ndarray

    def position(self, y) -> int:
        """Where the output ``y`` is listed."""
        return int(np.flatnonzero((self.labels == np.asarray(y)).all(axis=1))[0])


def one_hot(labels: np.ndarray, k: int) -> np.ndarray:
    return np.eye(k)[labels]


def pair_table(labels: np.ndarray, edges: np.ndarray, k: int) -> np.ndarray:
    """Which pair of labels (count, m, k, k) each edge has."""
    return np.einsum("cea,ceb->ceab", one_hot(labels[:, edges[:, 0]], k), one_hot(labels[:, edges[:, 1]], k))


def graph_outputs(nodes, edges, k: int, L, edge_features=None, counts=None) -> Outputs:
    """Labelings of a graph with node features (n, d); ``counts`` (n,) multiply the loss ``L`` (k, k) of each node.

    Weights of nodes come first, feature by feature, then those of edges, likewise.
    """
    n = len(nodes)
    edges = np.asarray(edges, dtype=int).reshape(-1, 2)
    counts = np.ones(n) if counts is None else np.asarray(counts)
    labels = np.array(list(product(range(k), repeat=n)))
    own = np.ones((len(edges), 1)) if edge_features is None else np.asarray(edge_features)
    of_nodes = np.einsum("vf,cva->cfa", nodes, one_hot(labels, k))
    of_edges = np.einsum("ef,ceab->cfab", own, pair_table(labels, edges, k))
    moments = np.hstack([of_nodes.reshape(len(labels), -1), of_edges.reshape(len(labels), -1)])
    return Outputs(labels, moments, (np.asarray(L)[labels[:, None], labels[None]] * counts).sum(axis=2))


def chain_columns(X: np.ndarray, intercept: bool = True) -> np.ndarray:
    """The features of a sequence with the columns that a tagger adds: a constant, the start and the end."""
    ends = np.zeros((len(X), 2))
    ends[0, 0] = ends[-1, 1] = 1.0
    return np.hstack([X, np.ones((len(X), int(intercept))), ends])


def chain(n: int) -> np.ndarray:
    return np.column_stack([np.arange(n - 1), np.arange(1, n)])


def matchings(n1: int, n2: int, partial: bool, allowed: np.ndarray | None = None) -> np.ndarray:
    """Partners (count, n1) of the left elements in all matchings of allowed pairs, -1 for none."""
    if partial:
        every = (y for y in product(range(-1, n2), repeat=n1) if len({*y} - {-1}) == sum(j >= 0 for j in y))
    else:
        every = permutations(range(n1))
    kept = [y for y in every if allowed is None or all(j < 0 or allowed[i, j] for i, j in enumerate(y))]
    return np.array(kept, dtype=np.int64).reshape(len(kept), n1)


def matching_vertices(labels: np.ndarray, n2: int, partial: bool) -> np.ndarray:
    """Matrices of matchings; partial ones have leaving in a last column and entering in a last row."""
    vertices = np.zeros((len(labels), labels.shape[1] + partial, n2 + partial))
    for vertex, y in zip(vertices, labels, strict=True):
        for i, j in enumerate(y):
            vertex[i, j] = 1.0  # -1 is the last column
        if partial:
            vertex[-1, :-1] = 1.0 - vertex[:-1, :-1].sum(axis=0)
    return vertices


def hamming(labels: np.ndarray) -> np.ndarray:
    return (labels[:, None] != labels[None]).sum(axis=2).astype(float)


def matching_outputs(pairs, leave=None, enter=None, allowed=None) -> Outputs:
    """Matchings with pair features (n1, n2, d) and, where elements may stay alone, features (n1, .) and (n2, .)."""
    n1, n2, _ = pairs.shape
    partial = leave is not None
    labels = matchings(n1, n2, partial, allowed)
    vertices = matching_vertices(labels, n2, partial)
    moments = [np.einsum("cij,ijf->cf", vertices[:, :n1, :n2], pairs)]
    if partial:
        moments += [vertices[:, :n1, n2] @ leave, vertices[:, n1, :n2] @ enter]
    return Outputs(labels, np.hstack(moments), hamming(labels))


@cache
def tree_heads(n: int, single_root: bool) -> np.ndarray:
    """Heads (count, n) of all trees of ``n`` tokens; 0 is the root."""

    def reaches_root(heads, d):
        for _ in heads:
            d = heads[d - 1] if d else 0
        return d == 0

    found = [h for h in product(range(n + 1), repeat=n) if all(reaches_root(h, d) for d in range(1, n + 1))]
    return np.array([h for h in found if not single_root or h.count(0) == 1])


def tree_outputs(arcs, single_root: bool) -> Outputs:
    """Trees with arc features (n, n + 1, d)."""
    n = len(arcs)
    labels = tree_heads(n, single_root)
    return Outputs(labels, arcs[np.arange(n), labels].sum(axis=1), hamming(labels))


def bilinear_arcs(tokens: np.ndarray) -> np.ndarray:
    """Arc features (n, n + 1, (d + 1) (d + 2)) of tokens (n, d): ``[t, 1]`` by ``[t, 1, 0]``, or by ``[0, 0, 1]``."""
    n, d = tokens.shape
    dependents = np.hstack([tokens, np.ones((n, 1))])
    heads = np.vstack([np.eye(1, d + 2, d + 1), np.hstack([dependents, np.zeros((n, 1))])])
    return np.einsum("da,hb->dhab", dependents, heads).reshape(n, n + 1, -1)

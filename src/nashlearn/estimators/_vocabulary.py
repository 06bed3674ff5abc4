"""Labels and features that partitions of networks have together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from nashlearn.training.designs.nodes import SparseFeatures
from nashlearn.training.graphs import Graphs

__all__ = ["Vocabulary", "placed", "united", "vocabulary"]


class Vocabulary(NamedTuple):
    """What the weights of labelled networks stand for.

    Attributes
    ----------
    classes : ndarray (k,)
        Labels, sorted.
    width : int
        Features of a node.
    columns : list of str or None
        Their names, in the order in which they were met; None where they have none.
    edge_width : int or None
        Features of an edge; None where edges have none, 0 where there is no edge to tell.
    seen : csr_matrix (width, k) or None
        Which labels each feature occurs with; None where features are dense.
    """

    classes: np.ndarray
    width: int
    columns: list[str] | None
    edge_width: int | None
    seen: Any

    def pattern(self, extra: int, unseen_pairs: bool) -> tuple[np.ndarray, np.ndarray] | None:
        """Where weights are, see :class:`SparseFeatures`, with ``extra`` columns that have all labels."""
        k = self.classes.size
        if self.seen is None:
            return None
        if unseen_pairs:
            return SparseFeatures.all_pairs(self.width + extra, k)
        more = sparse.csr_matrix(np.ones((extra, k)))
        whole = sparse.csr_matrix(sparse.vstack([self.seen, more], format="csr")) if extra else self.seen
        whole.sort_indices()
        return whole.indptr.astype(np.int64), whole.indices.astype(np.int32)


def vocabulary(
    nodes: Any, labels: np.ndarray, missing: np.ndarray, columns: list[str] | None, edge_width: int | None
) -> Vocabulary:
    """The vocabulary of nodes with features (n, d) and labels (n,), some of them missing."""
    codes = np.full(labels.size, -1)
    try:
        classes, codes[~missing] = np.unique(np.array(labels[~missing].tolist()), return_inverse=True)
    except TypeError:
        raise ValueError("y must hold labels of one kind, which can be sorted.") from None
    seen = None
    if sparse.issparse(nodes):
        start, label = SparseFeatures.seen_pairs(nodes, codes, classes.size)
        seen = sparse.csr_matrix((np.ones(label.size), label, start), shape=(nodes.shape[1], classes.size))
    return Vocabulary(classes, nodes.shape[1], columns, edge_width, seen)


def placed(graphs: Graphs, columns: list[str] | None, words: Vocabulary) -> Graphs:
    """Graphs whose features have ``columns`` of their own, None where they have no names, with those of ``words``."""
    nodes, pairs = graphs.nodes, graphs.edge_features
    if columns is not None and columns != words.columns:
        position = {name: i for i, name in enumerate(words.columns or ())}
        place = np.array([position[name] for name in columns], dtype=np.int32)
        nodes = sparse.csr_matrix((nodes.data, place[nodes.indices], nodes.indptr), (nodes.shape[0], words.width))
        nodes.sort_indices()
    if pairs is not None and not pairs.size:  # without an edge to tell how many features it has
        pairs = np.zeros((0, words.edge_width or 0))
    return Graphs(nodes, graphs.sizes, graphs.edges, pairs, graphs.wider)


def united(one: Vocabulary, other: Vocabulary) -> Vocabulary:
    """The vocabulary of both, features in the order in which they are met."""
    kinds = [(part.columns is None, part.seen is None, part.edge_width is None) for part in (one, other)]
    edge_widths = {part.edge_width for part in (one, other) if part.edge_width}
    if kinds[0] != kinds[1] or (one.columns is None and one.width != other.width) or len(edge_widths) > 1:
        raise ValueError(
            f"Partitions of X differ in kind: {one.width} and {other.width} features of nodes, {one.edge_width} and "
            f"{other.edge_width} of edges, named, sparse or dense in all alike."
        )
    known = [part.classes for part in (one, other) if part.classes.size] or [one.classes]
    if len({labels.dtype.kind == "U" for labels in known}) > 1:
        raise ValueError("y must hold labels of one kind: it mixes strings with others.")
    classes = np.unique(np.concatenate(known))
    columns = None
    places = [np.arange(one.width), np.arange(other.width)]
    if one.columns is not None and other.columns is not None:
        columns = list(dict.fromkeys([*one.columns, *other.columns]))
        position = {name: i for i, name in enumerate(columns)}
        places = [np.array([position[name] for name in part.columns or ()], dtype=np.int64) for part in (one, other)]
    width = one.width if columns is None else len(columns)
    seen = None
    if one.seen is not None:
        pairs = [part.seen.tocoo() for part in (one, other)]
        rows = np.concatenate([place[pair.row] for place, pair in zip(places, pairs, strict=True)])
        labels = [
            np.searchsorted(classes, part.classes)[pair.col] for part, pair in zip((one, other), pairs, strict=True)
        ]
        seen = sparse.coo_matrix((np.ones(rows.size), (rows, np.concatenate(labels))), (width, classes.size)).tocsr()
    edge_width = None if one.edge_width is None else max(edge_widths, default=0)
    return Vocabulary(classes, width, columns, edge_width, seen)

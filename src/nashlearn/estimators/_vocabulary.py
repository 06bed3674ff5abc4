"""Labels and features that partitions of networks have together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from nashlearn.training.node_features import SparseFeatures

__all__ = ["Vocabulary", "united", "vocabulary"]


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
        Features of an edge; None where edges have none.
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


def vocabulary(nodes: Any, labels: np.ndarray, columns: list[str] | None, edge_width: int | None) -> Vocabulary:
    """The vocabulary of nodes with features (n, d) and labels (n,)."""
    classes, codes = np.unique(labels, return_inverse=True)
    seen = None
    if sparse.issparse(nodes):
        start, label = SparseFeatures.seen_pairs(nodes, codes, classes.size)
        seen = sparse.csr_matrix((np.ones(label.size), label, start), shape=(nodes.shape[1], classes.size))
    return Vocabulary(classes, nodes.shape[1], columns, edge_width, seen)


def united(one: Vocabulary, other: Vocabulary) -> Vocabulary:
    """The vocabulary of both, features in the order in which they are met."""
    kinds = [(part.columns is None, part.seen is None, part.edge_width) for part in (one, other)]
    if kinds[0] != kinds[1] or (one.columns is None and one.width != other.width):
        raise ValueError(
            f"Partitions of X differ in kind: {one.width} and {other.width} features of nodes, {one.edge_width} and "
            f"{other.edge_width} of edges, named, sparse or dense in all alike."
        )
    if one.classes.dtype.kind != other.classes.dtype.kind and "U" in (one.classes.dtype.kind, other.classes.dtype.kind):
        raise ValueError("y must hold labels of one kind: it mixes strings with others.")
    classes = np.unique(np.concatenate([one.classes, other.classes]))
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
    return Vocabulary(classes, width, columns, one.edge_width, seen)

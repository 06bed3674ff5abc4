"""Reading what users have: sequences and graphs with dense, sparse or named features, and labels with gaps."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import joblib
import numpy as np
from scipy import sparse

from nashlearn.games.networks.game import check_edges
from nashlearn.solvers.threads import threads
from nashlearn.training.graphs import Graphs

__all__ = [
    "NamedFeatures",
    "given_propensities",
    "guessed_codes",
    "labels_of",
    "node_counts",
    "read_graphs",
    "read_sequences",
]

_COPIED = 128  # examples that a thread copies at a time, and looks at while they are in its cache


class NamedFeatures:
    """Columns for named features, as dicts or lists of names give them.

    ``{"word": "is"}`` is the feature "word:is", ``{"length": 2.0}`` the feature "length" with that value,
    ``{"title": True}`` the feature "title" with value 1; a list of names gives each the value 1.
    """

    def __init__(self, columns: Iterable[str] = ()) -> None:
        self.columns: dict[str, int] = {name: i for i, name in enumerate(columns)}

    def __getstate__(self) -> dict[str, Any]:
        """Two arrays in place of as many names as there are features: what is saved stays small and quick to load."""
        if not all(isinstance(name, str) for name in self.columns):
            return {"columns": self.columns}
        names = [name.encode("utf-8", "surrogatepass") for name in self.columns]
        return {
            "text": np.frombuffer(b"".join(names), dtype=np.uint8),
            "sizes": np.array([len(name) for name in names], dtype=np.int64),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "columns" in state:
            self.columns = state["columns"]
            return
        text, ends = state["text"].tobytes(), np.cumsum(state["sizes"]).tolist()
        starts = [0, *ends][:-1]
        spans = enumerate(zip(starts, ends, strict=True))
        self.columns = {text[a:b].decode("utf-8", "surrogatepass"): i for i, (a, b) in spans}

    def matrix(self, items: Sequence[Any], grow: bool) -> sparse.csr_matrix:
        """A row for each item; unless ``grow``, unknown features are left out."""
        columns, values, ends = [], [], [0]
        known = self.columns
        for item in items:
            if isinstance(item, set):
                item = sorted(item)  # the order of sets changes from process to process, that of columns must not
            pairs = item.items() if isinstance(item, Mapping) else ((name, 1.0) for name in item)
            for name, value in pairs:
                if isinstance(value, str):
                    name, value = f"{name}:{value}", 1.0
                if grow:
                    column = known.setdefault(name, len(known))
                else:
                    column = known.get(name, -1)
                if column >= 0 and value:
                    columns.append(column)
                    values.append(value)
            ends.append(len(columns))
        try:
            data = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError("X: values of named features must be strings, numbers or booleans.") from None
        shape = (len(items), len(known))
        X = sparse.csr_matrix((data, np.array(columns, dtype=np.int32), np.array(ends)), shape=shape)
        X.sum_duplicates()
        return X


def _examples(X: Any) -> list[Any]:
    if isinstance(X, (str, bytes)) or not hasattr(X, "__len__"):
        raise ValueError(f"X must be a list of examples; got {type(X).__name__}.")
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype != object:
        raise ValueError(
            f"X must be a list of examples, each an array (nodes, features); got one array of shape {X.shape}. For a "
            "single example pass [X], and its labels as [y]."
        )
    examples = list(X)
    if not examples:
        raise ValueError("X holds no examples.")
    if isinstance(examples[0], (Mapping, str, bytes)):
        raise ValueError(
            f"X must be a list of examples, each a list of nodes; X[0] is a single {type(examples[0]).__name__}, "
            f"{examples[0]!r:.60}. For a single example pass [X], and its labels as [y]."
        )
    return examples


def _refuse_empty(parts: list[Any]) -> None:
    """Refuse examples without nodes, and words in the place of their features."""
    # Arrays are looked at later, and asking what each of many short ones is would take its time.
    for i in [i for i, part in enumerate(parts) if type(part) is not np.ndarray or not part.size]:
        part = parts[i]
        if hasattr(part, "__len__") and not sparse.issparse(part) and not len(part):
            raise ValueError(
                f"X[{i}] is empty: each sequence or graph needs at least one node. Leave it out, and its labels: "
                "keep = [len(x) > 0 for x in X]."
            )
        if isinstance(part, (list, tuple)) and isinstance(part[0], str):
            raise ValueError(
                f"X[{i}] holds the word {part[0]!r:.60} in the place of its features; give a dict, as "
                f"{{'word': {part[0]!r:.60}}}, a list of names, or numbers."
            )


def _is_named(nodes: Any) -> bool:
    """Whether an example's features are dicts or lists of names."""
    return (
        isinstance(nodes, (list, tuple))
        and len(nodes) > 0
        and (
            isinstance(nodes[0], Mapping)
            or (isinstance(nodes[0], (list, tuple, set)) and all(isinstance(x, str) for x in nodes[0]))
        )
    )


def _below(matrices: list[np.ndarray], sizes: np.ndarray, spare: int, n_jobs: int | None) -> tuple[np.ndarray, bool]:
    """One matrix below another, with ``spare`` columns of zeros at the end; whether all is finite.

    Copied in threads, as memory that is new takes its time.
    """
    offsets, width = np.concatenate([[0], np.cumsum(sizes)]), matrices[0].shape[1]
    found = np.empty((int(offsets[-1]), width + spare))

    def copy(first: int, last: int) -> bool:
        rows = found[offsets[first] : offsets[last]]
        rows[:, width:] = 0.0
        np.concatenate(matrices[first:last], out=rows[:, :width])
        return bool(np.isfinite(rows).all())

    cuts = [*range(0, len(matrices), _COPIED), len(matrices)]
    return found, all(threads(joblib.effective_n_jobs(n_jobs))(copy, itertools.pairwise(cuts)))


def _stack(
    parts: list[Any], named: NamedFeatures | None, grow: bool, width: int | None, spare: int, n_jobs: int | None
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """All examples' node features as one matrix, their numbers of nodes, and a dense one with ``spare`` columns."""
    _refuse_empty(parts)
    if named is not None:
        for i, part in enumerate(parts):
            if not _is_named(part):
                raise ValueError(f"X[{i}] must be a list of dicts or of lists of names, as the first example is.")
        sizes = np.array([len(part) for part in parts], dtype=np.int64)
        matrix = named.matrix([item for part in parts for item in part], grow)
        wrong = np.flatnonzero(~np.isfinite(matrix.data))
        if wrong.size:
            row = np.searchsorted(matrix.indptr, wrong[0], side="right") - 1
            i = int(np.searchsorted(np.cumsum(sizes), row, side="right"))
            raise ValueError(f"X[{i}] holds NaN or infinite values.")
        return matrix, sizes, None
    first, is_sparse = type(parts[0]), sparse.issparse(parts[0])
    matrices = []
    for i, part in enumerate(parts):
        if type(part) is not first and sparse.issparse(part) != is_sparse:
            raise ValueError(
                f"X[{i}] is {'not ' * is_sparse}sparse, unlike the first example; use one kind throughout."
            )
        if is_sparse:
            part = part.tocsr()
        else:
            try:
                part = np.asarray(part, dtype=np.float64)
            except (TypeError, ValueError):
                raise ValueError(f"X[{i}] must be an array of numbers (nodes, features), or a list of dicts.") from None
        if part.ndim != 2 or part.shape[0] == 0:
            raise ValueError(f"X[{i}] must have shape (nodes, features) with at least one node; got {part.shape}.")
        if width is None:
            width = part.shape[1]
        if part.shape[1] != width:
            raise ValueError(f"X[{i}] has {part.shape[1]} features; expected {width}.")
        matrices.append(part)
    sizes = np.array([part.shape[0] for part in matrices], dtype=np.int64)
    if is_sparse:
        stacked, wider = sparse.csr_matrix(sparse.vstack(matrices, format="csr"), dtype=np.float64), None
        finite = np.isfinite(stacked.data).all()
    else:
        wider, finite = _below(matrices, sizes, spare, n_jobs)
        stacked = wider[:, :width]
    if not finite:
        infinite = [not np.isfinite(part.data if is_sparse else part).all() for part in matrices]
        raise ValueError(f"X[{infinite.index(True)}] holds NaN or infinite values.")
    return stacked, sizes, wider


def _edge_matrix(parts: list[Any], counts: np.ndarray, width: int | None) -> np.ndarray:
    """All examples' edge features as one matrix; an example without edges may say how wide they are, or leave it."""
    matrices = []
    for i, (part, count) in enumerate(zip(parts, counts.tolist(), strict=True)):
        matrix = np.asarray(part, dtype=np.float64)
        if count == 0 and matrix.size == 0 and not (matrix.ndim == 2 and matrix.shape[1]):
            continue
        if matrix.ndim != 2 or matrix.shape[0] != count:
            raise ValueError(
                f"X[{i}]: edge features must have shape ({count}, features), a row for each edge; got {matrix.shape}."
            )
        if width is None:
            width = matrix.shape[1]
        if matrix.shape[1] != width:
            raise ValueError(f"X[{i}] has {matrix.shape[1]} edge features; expected {width}.")
        if not np.isfinite(matrix).all():
            raise ValueError(f"X[{i}]: edge features hold NaN or infinite values.")
        matrices.append(matrix)
    return np.concatenate(matrices or [np.zeros((0, width or 0))])


def read_sequences(
    X: Any,
    named: NamedFeatures | None,
    width: int | None,
    edge_width: int | None,
    grow: bool,
    spare: int,
    n_jobs: int | None,
) -> tuple[Graphs, NamedFeatures | None]:
    """Sequences: (T, d) arrays, CSR matrices, lists of dicts or of names; or pairs of one of them and edge features.

    Dense features get ``spare`` columns besides, for others to fill.
    """
    examples = _examples(X)
    with_edges = [isinstance(x, tuple) and len(x) == 2 and not isinstance(x[0], (Mapping, str)) for x in examples]
    if any(with_edges) and not all(with_edges):
        raise ValueError("X: either all sequences come with edge features, as (nodes, edges), or none.")
    nodes = [x[0] for x in examples] if with_edges[0] else examples
    named = NamedFeatures() if grow and _is_named(nodes[0]) else named
    matrix, sizes, wider = _stack(nodes, named, grow, width, spare, n_jobs)
    pairs = _edge_matrix([x[1] for x in examples], sizes - 1, edge_width) if with_edges[0] else None
    return Graphs(matrix, sizes, None, pairs, wider), named


def read_graphs(
    X: Any,
    named: NamedFeatures | None,
    width: int | None,
    edge_width: int | None,
    grow: bool,
    spare: int,
    n_jobs: int | None,
) -> tuple[Graphs, NamedFeatures | None]:
    """Graphs: (node_features, edges) or (node_features, edges, edge_features)."""
    examples = _examples(X)
    for i, x in enumerate(examples):
        if not isinstance(x, (tuple, list)) or len(x) != len(examples[0]) or len(x) not in (2, 3):
            raise ValueError(
                f"X[{i}] must be (node_features, edges) or (node_features, edges, edge_features), the same throughout."
            )
    nodes = [x[0] for x in examples]
    named = NamedFeatures() if grow and _is_named(nodes[0]) else named
    matrix, sizes, wider = _stack(nodes, named, grow, width, spare, n_jobs)
    edges = []
    for i, (x, n) in enumerate(zip(examples, sizes.tolist(), strict=True)):
        try:
            edges.append(check_edges(x[1], n))
        except ValueError as error:
            raise ValueError(f"X[{i}]: {error}.") from None
    counts = np.array([len(e) for e in edges], dtype=np.int64)
    pairs = _edge_matrix([x[2] for x in examples], counts, edge_width) if len(examples[0]) == 3 else None
    return Graphs(matrix, sizes, edges, pairs, wider), named


def labels_of(y: Any, sizes: np.ndarray, name: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """All labels one after another, as objects, and which of them are missing (None or -1)."""
    rows = list(y)
    if len(rows) != sizes.size:
        raise ValueError(f"{name} holds labels of {len(rows)} examples, X holds {sizes.size}.")
    flat: list[Any] = []
    for i, (row, n) in enumerate(zip(rows, sizes.tolist(), strict=True)):
        if isinstance(row, (str, bytes)) or not hasattr(row, "__len__") or len(row) != n:
            raise ValueError(f"{name}[{i}] must hold one label for each of the {n} nodes of X[{i}]; got {row!r:.60}.")
        flat.extend(row.tolist() if isinstance(row, np.ndarray) else row)
    labels = np.empty(len(flat), dtype=object)
    labels[:] = flat
    kinds = set(map(type, flat))
    if kinds <= {str}:
        return labels, np.zeros(len(flat), np.bool_)
    if kinds <= {int}:
        return labels, (labels == -1).astype(np.bool_)
    missing = np.array(
        [label is None or (not isinstance(label, str) and label == -1) for label in flat], dtype=np.bool_
    )
    if any(isinstance(label, float) and label != label for label in flat):
        raise ValueError(f"{name} holds NaN, which is no label; mark missing labels by None or -1.")
    if len({isinstance(label, str) for label, gone in zip(flat, missing, strict=True) if not gone}) > 1:
        raise ValueError(f"{name} must hold labels of one kind: it mixes strings with others.")
    return labels, missing


def _each_example(given: Any, n: int, name: str) -> list[Any]:
    """The entries of an argument that has one for each example."""
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise ValueError(f"{name} must be a list with an entry for each of the {n} examples; got {given!r:.60}.")
    entries = list(given)
    if len(entries) != n:
        raise ValueError(f"{name} must be given for each of the {n} examples; got {len(entries)}.")
    return entries


def node_counts(node_weight: Any, sizes: np.ndarray) -> np.ndarray | None:
    """What a mistake at each node of all examples counts, checked; None for 1 each."""
    if node_weight is None:
        return None
    parts = [np.asarray(part, dtype=np.float64) for part in _each_example(node_weight, sizes.size, "node_weight")]
    for i, (part, n) in enumerate(zip(parts, sizes.tolist(), strict=True)):
        if part.shape != (n,):
            raise ValueError(f"node_weight[{i}] must hold a number for each of the {n} nodes; got shape {part.shape}.")
        if not (np.isfinite(part).all() and (part >= 0).all()):
            raise ValueError(f"node_weight[{i}] must be finite and not negative.")
    return np.concatenate(parts)


def given_propensities(given: Any, graphs: Graphs, missing: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The user's probabilities for all nodes and all edges, checked."""
    if given is None:
        return None
    entries = _each_example(given, graphs.sizes.size, "propensities")
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


def guessed_codes(guesses: Any, sizes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The user's guesses of all labels as numbers of classes, checked."""
    labels, missing = labels_of(guesses, sizes, "guesses")
    position = {label: i for i, label in enumerate(classes.tolist())}
    codes = np.array([position.get(label, -1) for label in labels])
    if missing.any() or (codes < 0).any():
        bad = "a missing label" if missing.any() else f"the label {labels[codes < 0][0]!r}, which y does not"
        raise ValueError(f"guesses must hold a label of y for each node; got {bad}.")
    return codes

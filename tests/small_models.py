"""Random small models of every estimator, with all that an independent judge of their certificates needs.

A trial is a model with its data and, for each training input, all outputs that it may have: their moments, what a
strategy loses on each, and the game as :mod:`saddle_reference` reads it. Moments, also those of training, are computed
here from the features, not by the library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from enumeration import (
    Outputs,
    bilinear_arcs,
    chain,
    chain_columns,
    graph_outputs,
    matching_outputs,
    matching_vertices,
    one_hot,
    tree_outputs,
)
from saddle_reference import Part, local, mixture
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from trials import Input, Trial, draw_training, draw_weights, shares

from nashlearn import (
    Game,
    NashAbstainer,
    NashClassifier,
    NashMarkovNetwork,
    NashMatcher,
    NashOrdinalClassifier,
    NashParser,
    NashPredictor,
    NashTagger,
    games,
)
from nashlearn.datasets.conllu import Sentence
from nashlearn.parsing import HashedSentences

# ---------------------------------------------------------------------------------------------------------------- rows


def _kernel_features(kernel: str, gamma: float, X: np.ndarray) -> np.ndarray:
    """Rows whose inner products are the kernel's values."""
    pairs = {
        "rbf": lambda: rbf_kernel(X, gamma=gamma),
        "laplacian": lambda: laplacian_kernel(X, gamma=gamma),
        "poly": lambda: polynomial_kernel(X, degree=2, gamma=gamma, coef0=1.0),
    }
    values, vectors = np.linalg.eigh(pairs[kernel]())
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _rows(rng, name: str, model, k: int, L: np.ndarray, thresholds: bool = False) -> Trial:
    n = int(rng.integers(k + 1, 8))
    X = rng.normal(size=(n, int(rng.integers(1, 3)))) * rng.choice([0.3, 1.0, 3.0])
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    rng.shuffle(y)
    model.set_params(random_state=0, **draw_training(rng, True))
    features, constant = X, float(rng.choice([0.5, 1.0, 10.0]))
    model.set_params(intercept_scaling=constant)
    if rng.random() < 0.3:
        kernel, gamma = str(rng.choice(["rbf", "laplacian", "poly"])), float(rng.choice([0.2, 1.0]))
        model.set_params(kernel=kernel, gamma=gamma, degree=2, coef0=1.0)
        features, name = _kernel_features(kernel, gamma, X), f"{name}, {kernel}"
    weight = draw_weights(rng, n)
    if weight is not None and np.unique(y[weight > 0]).size < k:
        weight = None
    share = shares(weight, n)
    if rng.random() < 0.2:
        model.set_params(class_weight="balanced")
        share = share * (n / (k * np.bincount(y)))[y]
        share /= share.sum()
    if thresholds:
        steps = (np.arange(k)[:, None] > np.arange(k - 1)).astype(float)  # thresholds below each grade
        of_outputs = [np.hstack([steps.sum(axis=1)[:, None] * x, constant * steps]) for x in features]
    else:
        with_constant = np.column_stack([features, np.full(n, constant)]) if model.fit_intercept else features
        of_outputs = [np.kron(np.eye(k), x) for x in with_constant]
    inputs = [Input(s, own, lambda p: p @ L, _row_part(s, own, L)) for s, own in zip(share, of_outputs, strict=True)]
    moments = sum(s * own[label] for s, own, label in zip(share, of_outputs, y, strict=True))
    name, largest = f"{name}, smoothing {model.smoothing:g}", 1.0 if thresholds else float(L.max()) or 1.0
    return Trial(name, model, X, y, {"sample_weight": weight}, inputs, moments, largest)


def _row_part(share: float, moments: np.ndarray, L: np.ndarray) -> Callable[[float], Part]:
    k = len(moments)
    return lambda smoothing: Part(share, moments, [L], np.ones((1, k)), np.ones(1), np.full(k, smoothing))


def classifier(rng) -> Trial:
    k = int(rng.integers(2, 4))
    grades = np.arange(k, dtype=float)
    spread = np.cumsum(rng.exponential(size=k))
    square, tall, wide = rng.random((k, k)), rng.random((k + 2, k)), rng.random((2, k))
    weights = rng.choice([0.5, 1.0, 3.0], size=k)
    losses: dict[str, tuple[Any, np.ndarray]] = {
        "zero_one": ("zero_one", 1 - np.eye(k)),
        "absolute": ("absolute", np.abs(np.subtract.outer(grades, grades))),
        "squared": ("squared", np.subtract.outer(grades, grades) ** 2),
        "cost, square": (square, square),
        "cost, diagonal 0": (square * (1 - np.eye(k)), square * (1 - np.eye(k))),
        "cost, tall": (tall, tall),
        "cost, wide": (wide, wide),
        "callable": (lambda k: games.absolute(k, values=spread), np.abs(np.subtract.outer(spread, spread))),
        "weighted": (lambda k: games.zero_one(k, weights=weights), (1 - np.eye(k)) * weights),
    }
    name = str(rng.choice(list(losses)))
    loss, L = losses[name]
    return _rows(rng, f"classifier, {name}", NashClassifier(loss, fit_intercept=bool(rng.integers(2))), k, L)


def ordinal(rng) -> Trial:
    k = int(rng.integers(2, 5))
    L = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(float)
    return _rows(rng, "ordinal", NashOrdinalClassifier(), k, L, thresholds=True)


def abstainer(rng) -> Trial:
    k = int(rng.integers(2, 4))
    prices = rng.choice([0.0, 0.2, 0.5, 0.8, 1.2], size=k)
    price = prices if rng.random() < 0.3 else float(prices[0])
    L = np.vstack([1 - np.eye(k), np.broadcast_to(price, k)])
    return _rows(rng, "abstainer", NashAbstainer(price), k, L)


# ------------------------------------------------------------------------------------------------------------ networks


def _node_losses(labels: np.ndarray, L: np.ndarray, counts: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    def losses(p):
        return np.einsum("va,cva->c", (p @ L) * counts[:, None], one_hot(labels, L.shape[1]))

    return losses


def _hidden_moments(nodes, edges, edge_features, y, k: int, weight: np.ndarray) -> np.ndarray:
    """What labels with gaps (-1) say of all, by the share of nodes that are labelled (Hajek's estimator)."""
    total = sum(w * len(x) for w, x in zip(weight, nodes, strict=True))
    rate = sum(w * np.count_nonzero(own >= 0) for w, own in zip(weight, y, strict=True)) / total
    d, e = nodes[0].shape[1], edge_features[0].shape[1]
    of_nodes, of_edges, frequency = np.zeros((d, k)), np.zeros((e, k, k)), np.zeros(k)
    totals, edge_totals, every, used = np.zeros(d), np.zeros(e), 0.0, 0.0
    present, edge_present = np.zeros(d, bool), np.zeros(e, bool)
    for x, pairs, features, own, w in zip(nodes, edges, edge_features, y, weight, strict=True):
        totals += w / total * x.sum(axis=0)
        edge_totals += w / total * features.sum(axis=0)
        every += w / total * len(pairs)
        for row, label in zip(x, own, strict=True):
            if label >= 0 and w > 0:
                of_nodes[:, label] += w / total / rate * row
                frequency[label] += w / total / rate
                present |= row != 0
        for (u, v), row in zip(pairs, features, strict=True):
            if own[u] >= 0 and own[v] >= 0 and w > 0:
                of_edges[:, own[u], own[v]] += w / total / rate**2 * row
                used += w / total / rate**2
                edge_present |= row != 0
    frequency /= frequency.sum()
    signed = np.concatenate(nodes).min(axis=0) < 0
    for j in range(d):
        if not present[j]:
            of_nodes[j] = totals[j] * frequency
        elif not signed[j]:
            of_nodes[j] *= totals[j] / of_nodes[j].sum()
    of_edges *= every / used if used else 1.0
    for j in np.flatnonzero(~edge_present):
        of_edges[j] = edge_totals[j] * np.outer(frequency, frequency)
    return np.concatenate([of_nodes.ravel(), of_edges.ravel()])


def _networks(rng, name: str, model, shapes, X, nodes, edges, edge_features) -> Trial:
    """A trial of graphs: ``X`` as the model reads it, ``nodes`` with all columns that it adds."""
    k = int(rng.integers(2, 4)) if max(shapes) < 4 else 2
    grades = np.arange(k, dtype=float)
    cost = rng.random((k, k))
    loss, L = [
        ("zero_one", 1 - np.eye(k)),
        ("zero_one", 1 - np.eye(k)),
        ("absolute", np.abs(np.subtract.outer(grades, grades))),
        ("squared", np.subtract.outer(grades, grades) ** 2),
        (cost, cost),
    ][rng.integers(5)]
    options = draw_training(rng, True)
    model.set_params(loss=loss, **options)
    weight = draw_weights(rng, len(shapes))
    each = np.ones(len(shapes)) if weight is None else weight
    y = [rng.integers(0, k, n) for n in shapes]
    y[int(each.argmax())][:k] = np.arange(k)[: shapes[int(each.argmax())]]
    hidden = rng.random() < 0.3
    if hidden:
        y = [np.where(rng.random(n) < 0.4, -1, own) for n, own in zip(shapes, y, strict=True)]
        name += ", hidden"
    seen = np.unique(np.concatenate(y))
    counted = np.concatenate([own for own, w in zip(y, each, strict=True) if w > 0])
    if not np.array_equal(seen[seen >= 0], np.arange(k)) or (counted < 0).all():
        return _networks(rng, name.replace(", hidden", ""), model, shapes, X, nodes, edges, edge_features)
    counts = [np.ones(n) for n in shapes]
    fit: dict[str, Any] = {"sample_weight": weight}
    if rng.random() < 0.25:
        counts = [rng.choice([0.3, 1.0, 2.0], size=n) for n in shapes]
        fit["node_weight"] = counts
        name += ", node weights"
    outputs = [graph_outputs(x, e, k, L, f, c) for x, e, f, c in zip(nodes, edges, edge_features, counts, strict=True)]
    share = each / (each @ shapes)
    inputs = []
    for s, own, c, x, e, f in zip(share, outputs, counts, nodes, edges, edge_features, strict=True):
        relaxed = getattr(model, "exact", "auto") is False and len(e) >= len(x)
        local_part = partial(local, s, x, e, k, L, f, c)
        part = local_part if relaxed else partial(mixture, s, own)
        inputs.append(Input(s, own.moments, _node_losses(own.labels, L, c), part))
    if any((own < 0).any() for own in y):
        moments = _hidden_moments(nodes, edges, edge_features, y, k, each)
    else:
        moments = sum(s * own.moments[own.position(t)] for s, own, t in zip(share, outputs, y, strict=True))
    labels = [[None if label < 0 else int(label) for label in own] for own in y]
    name = f"{name}, smoothing {options['smoothing']:g}"
    return Trial(name, model, X, labels, fit, inputs, moments, float(L.max()))


def tagger(rng) -> Trial:
    shapes = [int(rng.integers(1, 4)) for _ in range(int(rng.integers(2, 4)))] + [3]
    X = [rng.normal(size=(n, 2)) for n in shapes]
    X = [np.abs(x) for x in X] if rng.random() < 0.3 else X
    intercept, with_edges = bool(rng.integers(2)), rng.random() < 0.3
    edge_features = [rng.normal(size=(n - 1, 2)) if with_edges else np.ones((n - 1, 1)) for n in shapes]
    given = list(zip(X, edge_features, strict=True)) if with_edges else X
    nodes = [chain_columns(x, intercept) for x in X]
    model = NashTagger(fit_intercept=intercept)
    return _networks(rng, "tagger", model, shapes, given, nodes, [chain(n) for n in shapes], edge_features)


def network(rng) -> Trial:
    """Triangles, squares and trees; a third of them relaxed to the local polytope."""
    square = np.array([(0, 1), (1, 2), (2, 3), (3, 0)])
    triangle, tree = np.array([(0, 1), (1, 2), (2, 0)]), np.array([(1, 0), (1, 2)])
    edges = [[square, triangle, tree][rng.integers(3)] for _ in range(2)] + [triangle]
    shapes = [int(e.max()) + 1 for e in edges]
    intercept, with_edges = bool(rng.integers(2)), rng.random() < 0.3
    X = [rng.normal(size=(n, 2)) for n in shapes]
    edge_features = [rng.normal(size=(len(e), 1)) if with_edges else np.ones((len(e), 1)) for e in edges]
    parts = (X, edges, edge_features) if with_edges else (X, edges)
    given = list(zip(*parts, strict=True))
    nodes = [np.hstack([x, np.ones((len(x), int(intercept)))]) for x in X]
    relaxed = rng.random() < 0.35
    model = NashMarkovNetwork(exact=False if relaxed else "auto", fit_intercept=intercept)
    name = "network, relaxed" if relaxed else "network"
    return _networks(rng, name, model, shapes, given, nodes, edges, edge_features)


# ------------------------------------------------------------------------------------------------- matchings and trees


def _curved(share: float, outputs: Outputs, vertices: np.ndarray) -> Callable[[float], Part]:
    return lambda smoothing: mixture(share, outputs, curve=(smoothing, vertices))


def _structured(name, model, X, y, outputs, vertices, losses, weight, moments=None) -> Trial:
    sizes = [own.labels.shape[1] for own in outputs]
    each = np.ones(len(y)) if weight is None else weight
    share = each / (each @ sizes)
    inputs = [
        Input(s, own.moments, loss, _curved(s, own, vertex))
        for s, own, vertex, loss in zip(share, outputs, vertices, losses, strict=True)
    ]
    if moments is None:
        moments = sum(s * own.moments[own.position(t)] for s, own, t in zip(share, outputs, y, strict=True))
    name = f"{name}, smoothing {model.smoothing:g}"
    return Trial(name, model, X, y, {"sample_weight": weight}, inputs, moments)


def _matching_losses(labels: np.ndarray, shape: tuple[int, int]) -> Callable[[np.ndarray], np.ndarray]:
    def losses(p):
        pairs = p[: shape[0], : shape[1]]
        hits = np.column_stack([pairs, 1.0 - pairs.sum(axis=1)])  # the last column, partner -1, is none
        return (1.0 - hits[np.arange(shape[0]), labels]).sum(axis=1)

    return losses


def matcher(rng) -> Trial:
    partial_ = bool(rng.integers(2))
    X, outputs, vertices, losses = [], [], [], []
    for _ in range(int(rng.integers(2, 4))):
        n1, n2 = rng.integers(1, 4, size=2) if partial_ else (int(rng.integers(2, 4)),) * 2
        pairs = rng.normal(size=(n1, n2, 2))
        allowed = rng.random((n1, n2)) < 0.7 if rng.random() < 0.3 else None
        alone = (rng.normal(size=(n1, 1)), rng.normal(size=(n2, 2))) if partial_ else (None, None)
        if not partial_ and allowed is not None:
            allowed |= np.eye(n1, dtype=bool)
        X.append((pairs, *alone, allowed))
        outputs.append(matching_outputs(pairs, *alone, allowed))
        vertices.append(matching_vertices(outputs[-1].labels, n2, partial_))
        losses.append(_matching_losses(outputs[-1].labels, (n1, n2)))
    y = [own.labels[rng.integers(len(own.labels))] for own in outputs]
    model = NashMatcher(**draw_training(rng, True))
    name = "matcher, partial" if partial_ else "matcher"
    return _structured(name, model, X, y, outputs, vertices, losses, draw_weights(rng, len(X)))


def _tree_losses(labels: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda p: (1.0 - p[np.arange(labels.shape[1]), labels]).sum(axis=1)


def _trees(rng, name, model, X, arcs, weight) -> Trial:
    """A trial of sentences with arc features (n, n + 1, d); heads may be hidden."""
    outputs = [tree_outputs(one, model.single_root) for one in arcs]
    y = [own.labels[rng.integers(len(own.labels))] for own in outputs]
    moments = None
    if rng.random() < 0.4:
        hidden = [np.where(rng.random(heads.size) < 0.4, -1, heads) for heads in y]
        each = np.ones(len(arcs)) if weight is None else weight
        known = sum(w * np.count_nonzero(heads >= 0) for w, heads in zip(each, hidden, strict=True))
        if known > 0:
            y, name = hidden, name + ", hidden"
            moments = sum(
                w / known * one[np.flatnonzero(heads >= 0), heads[heads >= 0]].sum(axis=0)
                for w, one, heads in zip(each, arcs, hidden, strict=True)
            )
    losses = [_tree_losses(own.labels) for own in outputs]
    vertices = [one_hot(own.labels, own.labels.shape[1] + 1) for own in outputs]
    return _structured(name, model, X, y, outputs, vertices, losses, weight, moments)


def parser(rng) -> Trial:
    single_root, bilinear = bool(rng.integers(2)), rng.random() < 0.3
    sizes = rng.integers(1, 4, size=int(rng.integers(2, 4)))
    sizes[0] = 3
    X = [rng.normal(size=(n, 2) if bilinear else (n, n + 1, 2)) for n in sizes]
    arcs = [bilinear_arcs(x) if bilinear else x for x in X]
    model = NashParser(single_root=single_root, **draw_training(rng, True))
    return _trees(rng, "parser, bilinear" if bilinear else "parser", model, X, arcs, draw_weights(rng, len(X)))


def hashed_parser(rng) -> Trial:
    """Words and tags hashed into 1024 weights; the features of each arc are what a unit weight scores."""
    sizes = [3, *rng.integers(1, 4, size=int(rng.integers(1, 3)))]
    sentences = [
        [[str(i + 1), word, word, tag, *"______"] for i, (word, tag) in enumerate(rng.choice(list("abcd"), (n, 2)))]
        for n in sizes
    ]
    X = HashedSentences([Sentence(rows) for rows in sentences], bits=10)
    columns = [X.scores(unit) for unit in np.eye(1 << 10)]
    arcs = [np.stack([scores[i] for scores in columns], axis=2) for i in range(len(sizes))]
    for one in arcs:  # an arc from a token to itself means nothing
        one[np.arange(len(one)), np.arange(1, len(one) + 1)] = 0.0
    model = NashParser(single_root=bool(rng.integers(2)), random_state=0, **draw_training(rng, False))
    return _trees(rng, "hashed parser", model, X, arcs, draw_weights(rng, len(sizes)))


# ------------------------------------------------------------------------------------------------------------ any game


def _mixed(share: float, moments: np.ndarray, labels: np.ndarray, losses: np.ndarray) -> Callable[[float], Part]:
    """The game of a predictor who mixes options that cost ``losses`` (options, labels)."""
    return lambda _: mixture(share, Outputs(labels, moments, losses))


def predictor(rng) -> Trial:
    """Labels are vertices of the unit cube, options a few of them, and costs are any."""
    n, count = int(rng.integers(3, 5)), int(rng.integers(2, 4))
    cube = np.array([v for v in np.ndindex(*[2] * n) if 0 < sum(v) < n], dtype=float)
    options = cube[rng.permutation(len(cube))[: int(rng.integers(2, 5))]]
    L = rng.uniform(0.0, 2.0, size=(n, n))
    model = NashPredictor(Game(games.Enumerated(cube), games.Enumerated(options), L), **draw_training(rng, False))
    X, weight = list(rng.normal(size=(count, n, 2))), draw_weights(rng, count)
    y, share = rng.integers(len(cube), size=count), shares(weight, count)
    of_labels = [cube @ x for x in X]
    inputs = [
        Input(s, own, lambda p: p @ L @ cube.T, _mixed(s, own, cube, options @ L @ cube.T))
        for s, own in zip(share, of_labels, strict=True)
    ]
    moments = sum(s * own[t] for s, own, t in zip(share, of_labels, y, strict=True))
    return Trial("predictor", model, X, list(y), {"sample_weight": weight}, inputs, moments, None)


_MAKERS = (classifier, ordinal, abstainer, tagger, network, matcher, parser, hashed_parser, predictor)
KINDS = {make.__name__: make for make in _MAKERS}

"""The games, one factory for each. Every game has ``solve(scores)`` and ``loss_value(scores, y)``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashlearn.game import Game
from nashlearn.games._check import cost_matrix, element_count, label_count, label_values, label_weights, pair_weights
from nashlearn.games.enumerated import Enumerated
from nashlearn.games.hamming import Hamming
from nashlearn.games.matchings.matching import MatchingGame, Matchings
from nashlearn.games.networks import Labeling, MarkovGame
from nashlearn.games.rows.abstain import abstain_params
from nashlearn.games.rows.cost import CostGame, cost_params
from nashlearn.games.rows.ordinal import Absolute, Squared
from nashlearn.games.rows.simplex import Simplex, SimplexGame
from nashlearn.games.rows.weighted import WeightedZeroOne
from nashlearn.games.rows.zero_one import ZeroOne
from nashlearn.games.trees.arborescence import ArborescenceGame, Arborescences
from nashlearn.games.trees.parts import TreePartsGame
from nashlearn.games.trees.spanning import SpanningTrees, spanning_tree_game

__all__ = [
    "ArborescenceGame",
    "Arborescences",
    "Enumerated",
    "Hamming",
    "Labeling",
    "MarkovGame",
    "MatchingGame",
    "Matchings",
    "Simplex",
    "SimplexGame",
    "SpanningTrees",
    "TreePartsGame",
    "absolute",
    "abstain",
    "arborescence",
    "cost",
    "markov",
    "matching",
    "partial_matching",
    "spanning_tree",
    "squared",
    "tree_parts",
    "zero_one",
]


def zero_one(k: int, weights: Sequence[float] | np.ndarray | None = None) -> SimplexGame:
    """The zero-one loss of ``k`` labels: 1 for a wrong one, or the weight of the true label. O(k) a row.

    Parameters
    ----------
    k : int
        Number of labels.
    weights : array-like of shape (k,), optional
        What a mistake costs for each true label; positive. 1 by default.
    """
    k = label_count(k)
    if weights is None:
        return SimplexGame(ZeroOne(k), k, k)
    weights = label_weights(weights, k)
    return SimplexGame(WeightedZeroOne(weights, 1.0 / weights, (1.0 - np.eye(k)) * weights), k, k)


def absolute(
    k: int,
    values: Sequence[float] | np.ndarray | None = None,
    weights: Sequence[float] | np.ndarray | None = None,
) -> SimplexGame:
    """The absolute loss ``|t_i - t_j|`` of ``k`` ordered labels. O(k) a row, without weights.

    Parameters
    ----------
    k : int
        Number of labels.
    values : array-like of shape (k,), optional
        Positions of the labels, strictly increasing; 0..k-1 by default.
    weights : array-like of shape (k,), optional
        What multiplies the loss for each true label; positive. 1 by default.
    """
    t = label_values(values, label_count(k))
    L = np.abs(t[:, None] - t)
    if weights is not None:
        return cost(L * label_weights(weights, t.size))
    return SimplexGame(Absolute(t, L), t.size, t.size)


def squared(
    k: int,
    values: Sequence[float] | np.ndarray | None = None,
    weights: Sequence[float] | np.ndarray | None = None,
) -> SimplexGame:
    """The squared loss ``(t_i - t_j)^2`` of ``k`` ordered labels.

    Arguments and cost are those of :func:`nashlearn.games.absolute`.
    """
    t = label_values(values, label_count(k))
    L = (t[:, None] - t) ** 2
    if weights is not None:
        return cost(L * label_weights(weights, t.size))
    return SimplexGame(Squared(t, L), t.size, t.size)


def abstain(k: int, cost: float | Sequence[float] | np.ndarray = 0.5) -> SimplexGame:
    """The zero-one loss of ``k`` labels with a last option, to abstain. O(k) a row for a single cost.

    Parameters
    ----------
    k : int
        Number of labels.
    cost : float or array-like of shape (k,)
        What abstaining costs, whatever the label or for each; not negative.
    """
    k = label_count(k)
    try:
        price = np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"cost must be a number or one number for each label; got {cost!r}") from None
    if price.ndim > 1 or (price.ndim == 1 and price.size != k):
        raise ValueError(f"cost must be a number or one for each of the {k} labels; got shape {price.shape}")
    if not (np.isfinite(price).all() and (price >= 0).all()):
        raise ValueError(f"cost must be finite and not negative; got {cost!r}")
    L = np.vstack([1.0 - np.eye(k), np.broadcast_to(price, (1, k))])
    if price.ndim == 0:
        return SimplexGame(abstain_params(L, float(price)), k, k + 1)
    return CostGame(cost_params(L), k, k + 1)


def cost(L: Sequence[Sequence[float]] | np.ndarray) -> SimplexGame:
    """Any loss: ``L[i, j]`` is what option ``i`` costs when the label is ``j``. About a microsecond a row.

    Parameters
    ----------
    L : array-like of shape (options, labels)
        Finite and not negative.
    """
    L = cost_matrix(L)
    return CostGame(cost_params(L), L.shape[1], L.shape[0])


def matching(n: int, weights: Sequence[float] | np.ndarray | None = None) -> MatchingGame:
    """The Hamming loss between complete matchings of ``n`` with ``n`` elements: how many partners are wrong. O(n³).

    Scores have the shape (b, n, n), labels (b, n). A score of ``-inf`` forbids its pair to both players: the predictor
    never plays it either, unlike in games of single labels, where ``-inf`` rules out a label but no option.

    Parameters
    ----------
    n : int
        Number of elements on either side.
    weights : array-like of shape (n,) or (n, n), optional
        What a wrong partner costs, for each left element or for each pair of the true matching; not negative.
    """
    n = element_count("n", n, least=1)
    return MatchingGame(Matchings(n, n, False), pair_weights(weights, n, (n, n)))


def partial_matching(n1: int, n2: int, weights: Sequence[float] | np.ndarray | None = None) -> MatchingGame:
    """The Hamming loss between matchings of ``n1`` with ``n2`` elements in which any element may stay alone.

    Scores have the shape (b, n1 + 1, n2 + 1): the last column holds the scores of left elements that get no partner
    (leave), the last row those of right elements that get none (enter), their corner is ignored. Labels are the left
    elements' partners (b, n1), -1 for none. The loss counts left elements whose partner, or lack of one, is wrong; a
    right element can only be wrong together with a left one, so that entering costs nothing of its own. A score of
    ``-inf`` forbids its pair, or staying alone, to both players.

    Parameters
    ----------
    n1, n2 : int
        Numbers of elements on the left and on the right; 0 is allowed.
    weights : array-like of shape (n1,) or (n1 + 1, n2 + 1), optional
        What a mistake costs, for each left element or for each entry of the true matching; not negative.
    """
    n1, n2 = element_count("n1", n1, least=0), element_count("n2", n2, least=0)
    costs = pair_weights(weights, n1, (n1 + 1, n2 + 1))
    return MatchingGame(Matchings(n1, n2, True), costs)


def arborescence(
    n: int,
    single_root: bool = False,
    *,
    n_labels: int | None = None,
    weights: Sequence[float] | np.ndarray | None = None,
) -> ArborescenceGame:
    """The Hamming loss between trees of ``n`` tokens under a root: how many heads are wrong. About 1 ms at n = 20.

    Scores have the shape (b, n, n + 1): ``scores[:, d, h]`` is for token ``d`` (0..n-1) with head ``h``, 0 for the root
    and ``h`` for token ``h - 1``; ``scores[:, d, d + 1]`` is ignored. Labels are heads (b, n). A score of ``-inf``
    forbids its arc to both players: the predictor never plays it either, unlike in games of single labels, where
    ``-inf`` rules out a label but no option.

    Parameters
    ----------
    n : int
        Number of tokens.
    single_root : bool
        Whether exactly one token hangs from the root.
    n_labels : int, optional
        Number of parallel arcs, one for each label: scores get a last axis (b, n, n + 1, n_labels), labels are heads
        and arc labels (b, n, 2), and an error is a wrong head or a wrong label.
    weights : array-like of shape (n,), optional
        What an error costs for each token; not negative. 1 by default.
    """
    n = element_count("n", n, least=1)
    if n_labels is not None:
        n_labels = element_count("n_labels", n_labels, least=1)
    costs = pair_weights(weights, n, (n, 1))[:, 0]
    return ArborescenceGame(Arborescences(n, bool(single_root), n_labels), costs)


def spanning_tree(edges: Sequence[Sequence[int]] | np.ndarray) -> Game:
    """Undirected spanning trees of a connected graph: how many edges of the true tree the predicted one lacks.

    Scores have the shape (b, m), one for each edge. Labels are boolean (b, m). A score of ``-inf`` forbids its edge to
    the true tree; the predicted one may be any tree of the graph. Solved by the double oracle, for graphs of some tens
    of edges.

    Parameters
    ----------
    edges : array-like of shape (m, 2)
        Pairs of distinct nodes 0..n-1; parallel edges are allowed.
    """
    return spanning_tree_game(edges)


def tree_parts(n: int, parts: Sequence[Sequence[Sequence[int]]], single_root: bool = False) -> TreePartsGame:
    """Trees that are scored by arcs and by parts, say siblings and grandparents; a bound through the local polytope.

    ``solve(scores (b, n, n + 1), part_scores (b, k))``. The value is an upper bound of that over trees, equal without
    parts (``is_exact``). A score of ``-inf`` forbids its arc to both players. For sentences of about twenty tokens.

    Parameters
    ----------
    n : int
        Number of tokens.
    parts : sequence of tuples of arcs ``(d, h)``
        Sets of arcs that earn a score together; :mod:`nashlearn.games.trees.parts` lists all siblings or grandparents.
    single_root : bool
        Whether exactly one token hangs from the root.
    """
    return TreePartsGame(Arborescences(element_count("n", n, least=1), bool(single_root)), parts)


def markov(
    edges: Sequence[Sequence[int]] | np.ndarray,
    n_states: int | Sequence[int] | np.ndarray,
    loss: str | Sequence[Sequence[float]] | np.ndarray = "zero_one",
    weights: Sequence[float] | np.ndarray | None = None,
    exact: bool | str = "auto",
) -> MarkovGame:
    """Labelings of a graph, scored by nodes and edges, with a loss that adds up over nodes.

    Parameters
    ----------
    edges : array-like of shape (m, 2)
        Pairs of nodes, distinct, without loops.
    n_states : int or array-like of shape (n,)
        Number of labels of every node, or of each.
    loss : {"zero_one", "absolute", "squared"} or cost matrix
        What a node's label costs; a matrix is options by labels and needs the same labels everywhere.
    weights : array-like of shape (n,), optional
        What multiplies each node's loss; not negative. 1 by default.
    exact : {"auto", True, False}
        Whether to use a tree of cliques, exact on any graph, whose tables grow exponentially with its width; chains,
        trees and forests have width 1. True refuses a graph that is too wide, "auto" takes the local polytope for it,
        False always does: then ``is_exact`` is false and values are upper bounds.
    """
    return MarkovGame(edges, n_states, loss, weights, exact)

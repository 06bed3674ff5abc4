"""The games of structures: matchings, trees and graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashlearn.game import Game
from nashlearn.games._check import element_count, pair_weights
from nashlearn.games.matchings.matching import MatchingGame, Matchings
from nashlearn.games.networks import MarkovGame
from nashlearn.games.trees.arborescence import ArborescenceGame, Arborescences
from nashlearn.games.trees.parts import TreePartsGame
from nashlearn.games.trees.spanning import SpanningTreeGame, SpanningTrees

__all__ = ["arborescence", "markov", "matching", "partial_matching", "spanning_tree", "tree_parts"]


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
    return SpanningTreeGame(SpanningTrees(edges))


def tree_parts(n: int, parts: Sequence[Sequence[Sequence[int]]], single_root: bool = False) -> TreePartsGame:
    """Trees that are scored by arcs and by parts, say siblings and grandparents; a bound through the local polytope.

    Scores are packed, (b, n (n + 1) + k): the arcs as in :func:`arborescence`, then the parts; ``solve`` also takes a
    pair of them, (b, n, n + 1) and (b, k). The value is an upper bound of that over trees, equal without parts
    (``is_exact``). A score of ``-inf`` forbids its arc to both players, its part to the adversary. For sentences of
    about twenty tokens.

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
    """Labellings of a graph, scored by nodes and edges, with a loss that adds up over nodes.

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

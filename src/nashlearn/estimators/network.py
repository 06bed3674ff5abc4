"""Labelling the nodes of graphs."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from nashlearn.estimators._network import NetworkNash
from nashlearn.estimators._network_input import read_graphs
from nashlearn.estimators._parameters import parameters

__all__ = ["NashMarkovNetwork"]


@parameters
class NashMarkovNetwork(NetworkNash):
    """Labelling of graphs trained on the loss that it is judged by [fathony2018]_, [franc2022]_.

    The score of a labelling is the sum of linear scores of its nodes and of its edges; the loss is the value of the
    game of :func:`nashlearn.games.markov` less the true labelling's score. ``X`` is a list of
    ``(node_features (n, d), edges (m, 2))`` or ``(node_features, edges, edge_features (m, e))``, of any sizes.

    Parameters
    ----------
    loss, alpha, smoothing, decision, fit_intercept, unseen_pairs, propensity, tol, max_iter, warm_start, n_jobs
        As those of :class:`NashTagger`.
    verbose, max_time, checkpoint, callback
        As those of :class:`NashTagger`.
    exact : {"auto", True, False}, default="auto"
        Whether graphs with cycles are played exactly, on a tree of cliques, or over the local polytope: an upper bound
        on the loss. "auto" is exact where the tables are small enough; True refuses other graphs.

    Attributes
    ----------
    classes_ : ndarray (k,)
        Labels, sorted.
    decision_ : {"scores", "equilibrium"}
        The rule that ``predict`` follows.
    coef_, intercept_ : ndarray (k, d), (k,)
        Weights of node features; ``coef_`` is a CSR matrix where they are sparse.
    edge_coef_ : ndarray (e, k, k)
        Weights of edge features; (1, k, k) where edges have none.
    is_exact_ : bool
        Whether all graphs of the training data were played exactly.
    objective_, dual_gap_, n_iter_, smoothing_
        As those of :class:`NashTagger`.
    history_ : list of Round
        The certificate over time: (n_iter, seconds, objective, bound, gap) after each round.

    Examples
    --------
    >>> import numpy as np
    >>> from nashlearn import NashMarkovNetwork
    >>> square = [(0, 1), (1, 2), (2, 3), (3, 0)]
    >>> X = [(np.eye(4), square), (np.eye(4)[::-1], square)]
    >>> NashMarkovNetwork(alpha=0.01).fit(X, [[0, 1, 0, 1], [1, 0, 1, 0]]).predict(X)[0]
    array([0, 1, 0, 1])
    """

    _reads = staticmethod(read_graphs)

    _: KW_ONLY
    exact: Any = "auto"

    def _store_edges(self, rest: np.ndarray, edges: np.ndarray) -> None:
        self.edge_coef_ = edges

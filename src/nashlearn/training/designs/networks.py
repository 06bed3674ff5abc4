"""Labelled networks as one training problem: linear scores of nodes and edges, one game for each example.

The replies ``p`` are kept between evaluations: the objective is convex in weights and replies together, so that one
round of the sweep from the last ones is enough, a few where there are cycles, and the loss is that at the replies
found, never below the true one.
"""

from __future__ import annotations

import numpy as np

from nashlearn.games.networks.batch import Networks, Played
from nashlearn.solvers.threads import Run
from nashlearn.training.designs.nodes import NodeFeatures
from nashlearn.training.objective import Evaluation

__all__ = ["NetworkProblem", "edge_scores"]

_COLD = 0.01  # smoothing, relative to the largest loss, at which replies are sought before any is asked for
_COLD_ROUNDS = 3
_CYCLE_ROUNDS = 5  # of the sweep for one evaluation where networks have cycles: replies run further behind there


def edge_scores(w: np.ndarray, edges: np.ndarray | None, k: int) -> np.ndarray:
    """Tables (m, k, k) of edges with features (m, d), or (1, k, k) without."""
    return w.reshape(1, k, k) if edges is None else (edges @ w.reshape(edges.shape[1], k * k)).reshape(-1, k, k)


class NetworkProblem:
    """The mean loss of labelled networks.

    Parameters
    ----------
    networks : Networks
        The graphs.
    nodes : NodeFeatures
        Features of their nodes, in the order of the networks' rows.
    edges : ndarray (m, d) or None
        Features of their edges; None for one table of weights for all.
    moments : ndarray (n_weights,)
        ``mean Phi' y``: what the labels say.
    weight : ndarray (n,)
        Each node's share of the mean: its network's weight over that of all nodes.
    run : callable
        How to call a function on blocks, see :func:`nashlearn.solvers.threads.threads`.
    complete : bool
        Whether no label is missing.
    """

    def __init__(
        self,
        networks: Networks,
        nodes: NodeFeatures,
        edges: np.ndarray | None,
        moments: np.ndarray,
        weight: np.ndarray,
        run: Run,
        complete: bool = False,
    ):
        self.networks, self.nodes, self.edges = networks, nodes, edges
        self.moments, self.weight, self.run, self.complete = moments, weight, run, complete
        self.n_weights = moments.size
        self._scores = np.empty((networks.n, networks.k))
        self._heat = _COLD * networks.scale  # of the last evaluation with smoothing

    def evaluate(self, w: np.ndarray, smoothing: float) -> Evaluation:
        """Loss, gradient and plane at ``w``. Without smoothing: what the best adversary gets against nearby replies.

        These are sought at the last smoothing that was asked for, so that they come nearer while it falls.
        """
        networks, k = self.networks, self.networks.k
        split = self.nodes.n_weights
        S = self._scores
        self.nodes.scores(w[:split], S, self.run)
        T = edge_scores(w[split:], self.edges, k)
        self._heat = smoothing or self._heat
        played = networks.play(S, T, self._heat, self.weight, self.run, self.rounds(smoothing))
        moments = self.moments_of(played)
        truth = float(w @ self.moments)
        gradient = moments - self.moments
        if smoothing:
            # What the marginals get is the value less the slack of a relaxed network, which is no smoothing.
            penalty = float(w @ moments) + played.expected - (played.value - played.slack)
            return Evaluation(played.value - truth, gradient, played.entropy, penalty, self.drift_of(played))
        return Evaluation(networks.ceiling(S, T, self.weight) - truth, gradient, played.entropy, 0.0)

    def exact_loss(self, w: np.ndarray) -> float:
        """The mean loss at ``w`` without smoothing, every game played to its end: for small problems."""
        networks, k = self.networks, self.networks.k
        split = self.nodes.n_weights
        self.nodes.scores(w[:split], self._scores, self.run)
        T = edge_scores(w[split:], self.edges, k)
        starts = np.concatenate([[0], np.cumsum(networks.edge_counts)])

        def value(i: int) -> float:
            rows, m = networks.rows_of(i), int(networks.edge_counts[i])
            tables = np.repeat(T, m, axis=0) if self.edges is None else T[starts[i] : starts[i + 1]]
            return float(self.weight[rows[0]] * networks.solver_of(i).solve(self._scores[rows], tables, 0.0, 1e-7).value)

        values = self.run(value, [(i,) for i in range(networks.sizes.size)])
        return float(np.sum(values)) - float(w @ self.moments)

    def rounds(self, smoothing: float) -> int:
        """Of the sweep, for one evaluation."""
        return _CYCLE_ROUNDS if self.networks.others else 1 if smoothing else _COLD_ROUNDS

    def curvature(self) -> np.ndarray:
        """A guess of the Hessian's diagonal: that of random fields at half of the largest loss, all labels alike."""
        k, heat = self.networks.k, 0.5 * self.networks.scale
        with np.errstate(over="ignore", invalid="ignore"):  # values beyond 1e154 leave no guess
            nodes = self.nodes.squares(self.weight) * (1.0 - 1.0 / k) / k
            share = self.networks.of_edges(self.weight)
            squares = share.sum(keepdims=True) if self.edges is None else share @ self.edges**2
            pairs = squares * (1.0 - 1.0 / k**2) / k**2
            return np.concatenate([nodes, np.repeat(pairs, k * k)]) / heat

    def moments_of(self, played: Played) -> np.ndarray:
        """``mean Phi' q`` for the adversary's marginals."""
        split = self.nodes.n_weights
        moments = np.empty(self.n_weights)
        self.nodes.gradient(played.nodes, moments[:split], self.run)
        moments[split:] = self._edge_moments(played.pairs)
        return moments

    def drift_of(self, played: Played) -> np.ndarray | float:
        """What the gradient of a bound has more than the marginals' moments; 0 where no network is relaxed."""
        if self.networks.is_exact:
            return 0.0
        drift = np.zeros(self.n_weights)
        drift[self.nodes.n_weights :] = self._edge_moments(played.drift)
        return drift

    def _edge_moments(self, pairs: np.ndarray) -> np.ndarray:
        k = self.networks.k
        return pairs.ravel() if self.edges is None else (self.edges.T @ pairs.reshape(-1, k * k)).ravel()

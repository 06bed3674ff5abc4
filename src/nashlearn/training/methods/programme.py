"""Small training problems of networks without smoothing: one convex quadratic programme, solved to the end.

The predictor's replies and messages cover the scores of every network (:mod:`nashlearn.games.networks.exact`), and the
scores are linear in the weights, so that training is

    min alpha/2 |w|^2 - <w, moments> + sum_i omega_i <c, y_i>    such that    G_i y_i - A_i Phi_i w >= h_i.

The interior point method takes some thirty iterations whatever ``alpha`` is, where descent on smoothed games needs
hundreds for a small gap. Every iterate is certified: its ``y`` is feasible, which bounds the objective from above, and
its multipliers are made into marginals of the adversary, whose dual objective bounds the optimum from below.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from nashlearn.games.networks.exact import Cover
from nashlearn.games.networks.programme import central_path
from nashlearn.training.designs.networks import NetworkProblem
from nashlearn.training.progress import Progress

__all__ = ["NetworkProgramme", "is_small"]

_LIMIT = 500_000  # entries of the tables times the features that score one
_WEIGHTS = 400  # with these every factorisation fills in
_END = 1e-10  # relative gap at which the path is left


def is_small(problem: NetworkProblem) -> bool:
    """Whether one programme for all networks is the better way: its matrix would have few entries."""
    networks, k = problem.networks, problem.networks.k
    entries = networks.n_forest * k * k + sum(other.solver.n_entries for other in networks.others)
    width = 1 if problem.edges is None else problem.edges.shape[1]
    return problem.n_weights <= _WEIGHTS and entries * (problem.n_weights / k + width) <= _LIMIT


class NetworkProgramme:
    """The programme of a small problem.

    Parameters
    ----------
    problem : NetworkProblem
    alpha : float
        Regularisation.
    """

    def __init__(self, problem: NetworkProblem, alpha: float):
        networks, k = problem.networks, problem.networks.k
        self.problem, self.alpha = problem, alpha
        self._unit = networks.scale
        edge_starts = np.concatenate([[0], np.cumsum(networks.edge_counts)])
        edges = self._edge_matrix(int(edge_starts[-1]))
        others = sparse.csr_matrix((networks.n * k, problem.n_weights - problem.nodes.n_weights))
        nodes = sparse.hstack([problem.nodes.matrix(), others], format="csr")
        self._covers: list[Cover] = []
        made: dict[int, Cover] = {}  # those of solvers that networks share
        self._features: list[sparse.csr_matrix] = []  # of each network's scores, those of nodes before those of edges
        share = np.array([problem.weight[networks.rows_of(i)[0]] for i in range(networks.sizes.size)])
        # A network that weighs nothing would leave its multipliers at 0.
        self._counted: list[int] = np.flatnonzero(share).tolist()
        self._omega = share[self._counted]
        for i in self._counted:
            rows = (networks.rows_of(i)[:, None] * k + np.arange(k)).ravel()
            between = slice(edge_starts[i] * k * k, edge_starts[i + 1] * k * k)
            solver = networks.solver_of(i)
            if id(solver) not in made:
                made[id(solver)] = solver.cover(self._unit)
            self._covers.append(made[id(solver)])
            self._features.append(sparse.vstack([nodes[rows], edges[between]], format="csr"))

    def _edge_matrix(self, m: int) -> sparse.csr_matrix:
        """``Phi`` of the edges' scores (m k k, n_weights)."""
        pairs, split = self.problem.networks.k**2, self.problem.nodes.n_weights
        given = self.problem.edges
        tables = sparse.kron(np.ones((m, 1)) if given is None else given, sparse.eye(pairs), format="csr")
        return sparse.hstack([sparse.csr_matrix((m * pairs, split)), tables], format="csr")

    def run(self, progress: Progress) -> None:
        """Follow the central path, and offer every point with its certificate."""
        networks = self.problem.networks
        if self.problem.complete and not (networks.costs.max(axis=1).all() and networks.counts.any()):
            progress.offer(np.zeros(self.problem.n_weights), 0.0, 0.0)  # some option never costs anything
            return
        saved = progress.resume("programme")
        n_weights, d = self.problem.n_weights, [cover.made.y.size for cover in self._covers]
        cover = sparse.block_diag([one.made.G for one in self._covers])
        features = sparse.vstack(
            [one.scores @ phi for one, phi in zip(self._covers, self._features, strict=True)], format="csr"
        )
        G = sparse.hstack([-features, cover], format="csr")
        h = np.concatenate([one.made.h for one in self._covers])
        of = [w * one.made.objective for w, one in zip(self._omega, self._covers, strict=True)]
        c = np.concatenate([-self.problem.moments, *of])
        b = np.concatenate([np.full(n_weights, self.alpha * self._unit), np.zeros(sum(d))])
        if saved is None:
            y = np.concatenate([np.zeros(n_weights), *(one.made.y for one in self._covers)])
            z = self._multipliers(G @ y - h)
        else:
            y, z = saved["y"], saved["z"]
        for point in central_path(G, h, c, b, y, z, n_weights):
            w = self._unit * point.y[:n_weights]
            value = self._unit * float(c @ point.y + 0.5 * (b * point.y) @ point.y)
            progress.offer(w, value, self._bound(point.z))
            if progress.saves():
                progress.save("programme", y=point.y, z=point.z)
            if progress.exhausted or progress.gap <= min(progress.tol, _END):
                break
            progress.n_iter += 1
        w = progress.w  # the objective at these weights may be less than that of the point on the path
        progress.settle(self.problem.exact_loss(w) + 0.5 * self.alpha * float(w @ w))

    def _multipliers(self, s: np.ndarray) -> np.ndarray:
        """A start for the multipliers: each network's tables have the weight of the network together."""
        parts, at = [], 0
        for w, one in zip(self._omega, self._covers, strict=True):
            own = s[at : at + one.made.h.size]
            parts.append(w * len(one.made.reply) / (1.0 / own[: one.made.n_tables]).sum() / own)
            at += own.size
        return np.concatenate(parts)

    def _bound(self, z: np.ndarray) -> float:
        """The dual objective at the marginals that multipliers stand for."""
        networks = self.problem.networks
        slope, entropy, at = -self.problem.moments, 0.0, 0
        examples = zip(self._counted, self._omega, self._covers, self._features, strict=True)
        for i, w, one, phi in examples:
            nodes, pairs = one.marginals(z[at : at + one.made.h.size])
            cost = nodes @ networks.costs.T * networks.counts[networks.rows_of(i), None]
            entropy += w * float(cost.min(axis=1).sum())
            slope = slope + w * (phi.T @ np.concatenate([nodes.ravel(), pairs.ravel()]))
            at += one.made.h.size
        return entropy - 0.5 * float(slope @ slope) / self.alpha

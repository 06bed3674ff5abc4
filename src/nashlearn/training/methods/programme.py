"""Small training problems of networks without smoothing: one convex quadratic programme, solved to the end.

The predictor's replies and messages cover the scores of every network (:mod:`nashlearn.games.networks.exact`), and the
scores are linear in the weights, so that training is

    min alpha/2 |w|^2 - <w, moments> + sum_i omega_i <c, y_i>    such that    G_i y_i - A_i Phi_i w >= h_i.

The interior point method takes some thirty iterations whatever ``alpha`` is, where descent on smoothed games needs
hundreds for a small gap. Every iterate is certified: its ``y`` is feasible, which bounds the objective from above, and
its multipliers are made into marginals of the adversary, whose dual objective bounds the optimum from below.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from nashlearn.games.networks.exact import Cover
from nashlearn.games.networks.programme import Solution, central_path
from nashlearn.training.driver import Method, Offer, Run

__all__ = ["NetworkProgramme", "is_small"]

_LIMIT = 500_000  # entries of the tables times the features that score one
_WEIGHTS = 400  # with these every factorisation fills in
_END = 1e-10  # relative gap at which the path is left


def is_small(problem: Any) -> bool:
    """Whether one programme for all networks is the better way: its matrix would have few entries.

    Problems in partitions have no design at hand, and are not small.
    """
    design = getattr(problem, "design", None)
    if design is None:
        return False
    networks, k = design.networks, design.networks.k
    return problem.n_weights <= _WEIGHTS and networks.n_entries * (problem.n_weights / k + design.width) <= _LIMIT


@dataclass
class ProgrammeState:
    """A point on the central path and its multipliers; empty where weights of 0 are the optimum."""

    phase: ClassVar[str] = "programme"
    y: np.ndarray
    z: np.ndarray
    over: bool = False


class NetworkProgramme(Method):
    """Training without smoothing of a small problem, by its one programme."""

    needs = ("design", "games", "moments", "omega", "complete", "n_weights")
    states = (ProgrammeState,)

    def goal(self, problem: Any, tol: float) -> float:
        """The path is followed to its end: its last steps cost little."""
        return min(tol, _END)

    def init(self, run: Run) -> tuple[ProgrammeState, Offer | None]:
        """A point strictly within."""
        networks, nothing = run.problem.games, np.empty(0)
        if run.problem.complete and not (networks.costs.max(axis=1).all() and networks.counts.any()):
            # Some option never costs anything.
            return ProgrammeState(nothing, nothing, over=True), Offer(np.zeros(run.problem.n_weights), 0.0, 0.0)
        self._assemble(run)
        y = np.concatenate([np.zeros(run.problem.n_weights), *(one.made.y for one in self._covers)])
        state = ProgrammeState(y, self._multipliers(self._G @ y - self._h))
        self._path = self._from(run, state)
        return self._next(run, state)

    def resumed(self, run: Run, state: ProgrammeState) -> None:
        """The path from this point on, which has been offered."""
        self._assemble(run)
        self._path = self._from(run, state)
        next(self._path, None)

    def update(self, run: Run, state: ProgrammeState) -> tuple[ProgrammeState, Offer | None]:
        """The next point."""
        run.progress.n_iter += 1
        return self._next(run, state)

    def finish(self, run: Run, state: ProgrammeState) -> None:
        """Play all games to their end: the objective at the weights may be less than that of the point on the path."""
        if not state.y.size:
            return
        problem, w = run.problem, run.progress.w
        found = problem.games.solve(problem.design.scores(w), tol=0.0, n_jobs=problem.n_jobs)
        loss = float(problem.omega @ (found.value + found.gap)) - float(w @ problem.moments)
        run.progress.settle(loss + 0.5 * run.alpha * float(w @ w))

    def _assemble(self, run: Run) -> None:
        """The programme ``min <c, y> + <b y, y> / 2``, ``G y >= h``, its first variables being the weights."""
        problem, networks, k = run.problem, run.problem.games, run.problem.games.k
        self._unit = networks.scale
        edge_starts = np.concatenate([[0], np.cumsum(networks.edge_counts)])
        nodes, edges = problem.design.matrices()
        self._covers: list[Cover] = []
        made: dict[int, Cover] = {}  # those of solvers that networks share
        self._features: list[sparse.csr_matrix] = []  # of each network's scores, those of nodes before those of edges
        # A network that weighs nothing would leave its multipliers at 0.
        self._counted: list[int] = np.flatnonzero(problem.omega).tolist()
        self._omega = problem.omega[self._counted]
        for i in self._counted:
            rows = (networks.rows_of(i)[:, None] * k + np.arange(k)).ravel()
            between = slice(edge_starts[i] * k * k, edge_starts[i + 1] * k * k)
            solver = networks.solver_of(i)
            if id(solver) not in made:
                made[id(solver)] = solver.cover(self._unit)
            self._covers.append(made[id(solver)])
            self._features.append(sparse.vstack([nodes[rows], edges[between]], format="csr"))
        cover = sparse.block_diag([one.made.G for one in self._covers])
        features = sparse.vstack(
            [one.scores @ phi for one, phi in zip(self._covers, self._features, strict=True)], format="csr"
        )
        self._G = sparse.hstack([-features, cover], format="csr")
        self._h = np.concatenate([one.made.h for one in self._covers])
        of = [w * one.made.objective for w, one in zip(self._omega, self._covers, strict=True)]
        self._c = np.concatenate([-problem.moments, *of])
        free = sum(one.made.y.size for one in self._covers)
        self._b = np.concatenate([np.full(problem.n_weights, run.alpha * self._unit), np.zeros(free)])

    def _from(self, run: Run, state: ProgrammeState) -> Iterator[Solution]:
        """The central path from a point within."""
        return central_path(self._G, self._h, self._c, self._b, state.y, state.z, run.problem.n_weights)

    def _next(self, run: Run, state: ProgrammeState) -> tuple[ProgrammeState, Offer | None]:
        """The next point with its certificate; the path is over where rounding allows no more."""
        point = next(self._path, None)
        if point is None:
            state.over = True
            return state, None
        w = self._unit * point.y[: run.problem.n_weights]
        value = self._unit * float(self._c @ point.y + 0.5 * (self._b * point.y) @ point.y)
        return ProgrammeState(point.y, point.z), Offer(w, value, self._bound(run, point.z))

    def _multipliers(self, s: np.ndarray) -> np.ndarray:
        """A start for the multipliers: each network's tables have the weight of the network together."""
        parts, at = [], 0
        for w, one in zip(self._omega, self._covers, strict=True):
            own = s[at : at + one.made.h.size]
            parts.append(one.made.multipliers(w * len(one.made.reply), own))
            at += own.size
        return np.concatenate(parts)

    def _bound(self, run: Run, z: np.ndarray) -> float:
        """The dual objective at the marginals that multipliers stand for."""
        networks = run.problem.games
        slope, entropy, at = -run.problem.moments, 0.0, 0
        examples = zip(self._counted, self._omega, self._covers, self._features, strict=True)
        for i, w, one, phi in examples:
            nodes, pairs = one.marginals(z[at : at + one.made.h.size])
            cost = nodes @ networks.costs.T * networks.counts[networks.rows_of(i), None]
            entropy += w * float(cost.min(axis=1).sum())
            slope = slope + w * (phi.T @ np.concatenate([nodes.ravel(), pairs.ravel()]))
            at += one.made.h.size
        return entropy - 0.5 * float(slope @ slope) / run.alpha

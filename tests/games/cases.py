"""A game with all vertices of both its polytopes listed: what every law is tested against.

Linear and conic programmes over the listed vertices are the references; nothing of the library is used for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from saddle_reference import Part, objective
from scipy.optimize import linprog
from scipy.special import xlogy

Certificate = Callable[[np.ndarray, np.ndarray, np.ndarray], float]
Smoothed = Callable[[np.ndarray, float, np.ndarray, np.ndarray], float]
Report = Callable[[np.ndarray, float, np.random.Generator], tuple[float, np.ndarray, np.ndarray]]

number = st.one_of(
    st.sampled_from([0.0, 0.0, 0.5, -0.5, 1.0, -1.0, 2.0]),
    st.floats(-4, 4, allow_subnormal=False).map(lambda x: round(x, 6)),
)


@dataclass(frozen=True)
class Case:
    """``<theta, q> + <p, L q>`` with ``q`` in the hull of ``labels`` and ``p`` in that of ``options``, all flat.

    Attributes
    ----------
    names : array (count, ...)
        The label of each vertex, as the game's users name it.
    labels, options : ndarray (count, dim)
        Vertices.
    L : ndarray
        The loss; one row and one column more than there are coordinates where it is affine.
    exact : bool
        Whether the adversary has no more than the listed vertices; else values and gaps may be larger.
    binding : bool
        Whether a score of ``-inf`` forbids its part to the predictor, too.
    level : ndarray, optional
        ``<level, v> = 1`` for every label's vertex ``v``.
    symmetry : ndarray, optional
        A permutation of coordinates that leaves the game unchanged.
    scaled : c -> game, optional
        The game of ``c L``; by the double oracle where none is given.
    tol : float
        What the game is solved to, relative to its numbers.
    omega : {"quadratic", "entropy", "tempered", "binary"}
        What the game is smoothed by: "tempered" is the entropy of one label, "binary" that of independent coordinates.
    certificates, smoothed : dict of (theta, [smoothing,] p, q) -> gap
        What compiled code says of strategies that it is given.
    reports : dict of (theta, size, rng) -> gap, p, q
        What solvers say of their own strategies where they were disturbed by about ``size``.
    """

    id: str
    game: Any
    names: Any
    labels: np.ndarray
    options: np.ndarray
    L: np.ndarray
    exact: bool = True
    binding: bool = False
    level: np.ndarray | None = None
    symmetry: np.ndarray | None = None
    scaled: Callable[[float], Any] | None = None
    tol: float = 1e-9
    omega: str = "quadratic"
    certificates: dict[str, Certificate] = field(default_factory=dict)
    smoothed: dict[str, Smoothed] = field(default_factory=dict)
    reports: dict[str, Report] = field(default_factory=dict)

    @property
    def dim(self) -> int:
        return self.labels.shape[1]

    def label(self, i: int) -> Any:
        """The name of vertex ``i``, as a batch of one."""
        return np.asarray(self.names)[i : i + 1]

    def shaped(self, x: np.ndarray) -> np.ndarray:
        """Rows as the game takes its scores."""
        return x.reshape(len(x), *self.game.shape)

    def size(self, scores: np.ndarray) -> float:
        """What errors are relative to."""
        return 1.0 + np.abs(scores[np.isfinite(scores)]).max(initial=0.0) + np.abs(self.L).max()

    def cost(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        """``<p_i, L q_j>`` for all rows."""
        return _lifted(p, self.L.shape[0]) @ self.L @ _lifted(q, self.L.shape[1]).T

    def upper(self, theta: np.ndarray, p: np.ndarray) -> float:
        """What the best of all labels gets against ``p``."""
        return float((self.labels @ theta + self.cost(p[None], self.labels)[0]).max())

    def risk(self, q: np.ndarray) -> float:
        """What the best of all options loses to ``q``."""
        return float(self.cost(self.options, q[None]).min())

    def gap(self, theta: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
        return self.upper(theta, p) - float(theta @ q) - self.risk(q)


def _lifted(x: np.ndarray, dim: int) -> np.ndarray:
    return x if x.shape[1] == dim else np.hstack([x, np.ones((len(x), 1))])


# ---------------------------------------------------------------------------------------------------------- references


def linear_programme(case: Case, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Value, ``p`` and ``q`` of the game of all vertices that the scores allow.

    ``min t`` with ``t >= <theta, v> + <p, L v>`` for each label's vertex; the multipliers are the adversary's mixture.
    """
    out = np.isneginf(theta)
    V = case.labels[~((case.labels != 0) & out).any(axis=1)]
    U = (
        case.options[~((case.options != 0) & out[: case.options.shape[1]]).any(axis=1)]
        if case.binding
        else case.options
    )
    C = case.cost(U, V)
    found = linprog(
        np.r_[np.zeros(len(U)), 1.0],
        np.hstack([C.T, -np.ones((len(V), 1))]),
        -(V @ np.where(out, 0.0, theta)),
        np.r_[np.ones(len(U)), 0.0][None],
        [1.0],
        bounds=[(0, None)] * len(U) + [(None, None)],
        method="highs",
    )
    mu = np.maximum(-found.ineqlin.marginals, 0.0)
    return found.fun, found.x[:-1] @ U, mu / mu.sum() @ V


def smoothed_value(case: Case, theta: np.ndarray, smoothing: float, costs: np.ndarray) -> float:
    """``max_q <theta, q> + min_i <costs_i, mu> - smoothing Omega(q)`` over mixtures ``mu`` of vertices, conic."""
    V, heat = case.labels, 0.0 if case.omega == "quadratic" else smoothing
    part = Part(1.0, V, [costs], np.ones((1, len(V))), np.ones(1), np.full(len(V), heat))
    if case.omega == "quadratic":
        part.curve = smoothing, V
    return objective([part], np.zeros(case.dim), 0.0, theta)


def omega(case: Case, q: np.ndarray) -> np.ndarray:
    """What is taken off the reward of rows of ``q``, 0 at vertices; no function of ``q`` alone for networks."""
    return {
        "quadratic": lambda: 0.5 * ((q - 1.0) * q).sum(axis=1),
        "tempered": lambda: xlogy(q, q).sum(axis=1),
        "binary": lambda: (xlogy(q, q) + xlogy(1.0 - q, 1.0 - q)).sum(axis=1),
    }[case.omega]()


# --------------------------------------------------------------------------------------------------------------- draws


def rows(case: Case, n: int = 2) -> st.SearchStrategy[np.ndarray]:
    """Scores, flat."""
    return hnp.arrays(np.float64, (n, case.dim), elements=number)


def mixtures(case: Case) -> st.SearchStrategy[np.ndarray]:
    """Points of the labels' polytope, often with ties and zeros."""
    counts = hnp.arrays(np.int64, len(case.labels), elements=st.integers(0, 3))
    return counts.map(lambda c: (c + (c.sum() == 0)) / (c + (c.sum() == 0)).sum() @ case.labels)


def strategies(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random ``p`` and ``q``, some of them vertices."""
    heat = float(rng.choice([0.02, 0.3, 3.0]))
    p, q = (rng.dirichlet(np.full(len(x), heat)) @ x for x in (case.options, case.labels))
    return p, q


def scores(case: Case, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=case.dim) * 10.0 ** rng.uniform(-1, 0.7)


def law_on(cases: list[Case]) -> Callable[..., Any]:
    """A decorator of laws ``(case, data)``: one test for each case, with fewer examples where a game takes longer."""

    def law(on: list[Case] = cases, examples: int = 25) -> Callable[..., Any]:
        def decorate(body: Callable[[Case, Any], None]) -> Callable[[Case], None]:
            def test(case: Case) -> None:
                def holds(data: Any) -> None:
                    body(case, data)

                count = examples if case.tol <= 1e-9 else max(examples // 4, 4)
                settings(max_examples=count)(given(data=st.data())(holds))()

            test.__name__, test.__doc__ = body.__name__, body.__doc__
            return pytest.mark.parametrize("case", on, ids=lambda case: case.id)(test)

        return decorate

    return law

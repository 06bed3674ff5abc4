"""What solvers of Markov networks return."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

__all__ = ["Labeling", "warn_of_gap", "warn_of_time"]


class Labeling(NamedTuple):
    """A labelling, its score, an upper bound on every labelling's score, and how the search ended.

    ``status`` is "optimal" where the bound proves it, "time limit" or "heuristic" where it does not, "infeasible"
    where no labelling is allowed.
    """

    labels: np.ndarray
    score: float
    bound: float
    status: str


def warn_of_time(unproved: int, stacklevel: int) -> None:
    """Say that labellings may not be the best, if any was not proved when its time was up."""
    if not unproved:
        return
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"{unproved} labelling(s) not proved best when time_limit was up; raise it, or take method='ascent' for a fast "
        "search without proof",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )


def warn_of_gap(gap: float, tol: float) -> None:
    """Say that an equilibrium is not as exact as asked."""
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(
        f"the game was left at a gap of {gap:.1e}, above tol={tol:g}; a larger tol or smoothing is reached sooner",
        ConvergenceWarning,
        stacklevel=5,
    )

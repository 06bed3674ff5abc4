"""How well the games behind a prediction must be solved for the bound on its risk.

``mean loss + radius |w|`` bounds what the strategies of training lose. A strategy that is asked for later, in another
batch or from scores that are rounded otherwise, loses at most its own gap more, so that gap has a limit.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

__all__ = ["SETTLED", "warn_unsettled"]

SETTLED = 1e-8  # gap of a strategy for each predicted variable


def warn_unsettled(gap: np.ndarray, variables: np.ndarray) -> None:
    """Warn where a game's ``gap`` exceeds :data:`SETTLED` for each of its predicted ``variables``."""
    each = gap / np.maximum(variables, 1)
    unsettled = ~(each <= SETTLED)
    if unsettled.any():
        warnings.warn(
            f"The strategies of {unsettled.sum()} of {unsettled.size} examples are settled to {each.max():.1e} of the "
            f"loss of a variable, not to {SETTLED:g}; they may lose that much more than worst_case_risk says.",
            ConvergenceWarning,
            stacklevel=4,
        )

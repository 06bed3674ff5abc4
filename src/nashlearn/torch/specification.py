"""What a user may call a loss, and what the operators are told of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from nashlearn.games._check import cost_matrix, label_values
from nashlearn.games.catalogue import NAMED, suggested_name
from nashlearn.games.rows.abstain import Abstain
from nashlearn.games.rows.ordinal import Absolute, Squared
from nashlearn.games.rows.simplex import SimplexGame
from nashlearn.games.rows.weighted import WeightedZeroOne
from nashlearn.games.rows.zero_one import ZeroOne
from nashlearn.torch.checks import as_array

__all__ = ["SMOOTHING", "Specification", "specify"]

SMOOTHING = 1.0  # the default of losses and heads, in units of the loss, chosen by benchmarks/deep.py


class Specification(NamedTuple):
    """Name, numbers and price of a loss; ``n_labels`` is None where any number of classes will do."""

    name: str
    params: torch.Tensor
    price: float = 0.0
    n_labels: int | None = None

    @property
    def plain(self) -> bool:
        """Whether name and price say all."""
        return self.n_labels is None and not self.params.numel()

    @property
    def answers_by_scores(self) -> bool:
        """Whether the largest score always has the largest ``p``: all mistakes cost the same."""
        return self.name == "zero_one" and bool((self.params == self.params[:1]).all())


def _numbers(values: Any) -> torch.Tensor:
    return torch.tensor(np.asarray(values, dtype=np.float64))


_NONE = ()
# Games with a closed form; any other game is its cost matrix.
_OF_GAME = {
    ZeroOne: lambda params: ("zero_one", _NONE, 0.0),
    WeightedZeroOne: lambda params: ("zero_one", params.weights, 0.0),
    Absolute: lambda params: ("absolute", params.t, 0.0),
    Squared: lambda params: ("squared", params.t, 0.0),
    Abstain: lambda params: ("abstain", _NONE, params.cost),
}


def specify(loss: Any, *, values: Any = None, abstain_cost: float = 0.5) -> Specification:
    """The specification of a name, a cost matrix (options, labels) or a game of :mod:`nashlearn.games`."""
    if isinstance(loss, Specification):
        return loss
    if values is not None and loss not in ("absolute", "squared"):
        raise ValueError(f"values are the positions of ordered labels, for 'absolute' and 'squared'; loss is {loss!r}")
    if isinstance(loss, str):
        if loss not in NAMED:
            known = f"{', '.join(NAMED)}, a cost matrix or a game"
            raise ValueError(f"loss must be one of {known}; got {loss!r}.{suggested_name(loss)}")
        if loss == "abstain":
            price = float(abstain_cost)
            if not (np.isfinite(price) and price >= 0):
                raise ValueError(f"abstain_cost must be finite and not negative; got {abstain_cost!r}")
            return Specification(loss, _numbers(_NONE), price)
        if values is None:
            return Specification(loss, _numbers(_NONE))
        t = label_values(values, len(values))
        return Specification(loss, _numbers(t), n_labels=t.size)
    if isinstance(loss, SimplexGame):
        describe = _OF_GAME.get(type(loss.params), lambda params: ("cost", loss.costs, 0.0))
        name, params, price = describe(loss.params)
        return Specification(name, _numbers(params), price, loss.n_labels)
    if hasattr(loss, "vertex"):
        raise ValueError(
            f"loss must be a game of single labels; {type(loss).__name__} is one for nashlearn.torch.GameLoss"
        )
    L = cost_matrix(as_array(loss), "loss")
    return Specification("cost", _numbers(L), n_labels=L.shape[1])

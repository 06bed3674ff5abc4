"""The learning curve: what more training data would bring."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nashlearn.report.baselines import split

__all__ = ["learning_curve"]

_SHARES = (0.1, 0.2, 0.4, 0.7)
_DRAWS = 3


def learning_curve(
    model: Any,
    X: Any,
    y: Any,
    X_new: Any,
    y_new: Any,
    *,
    shares: Sequence[float] = _SHARES,
    draws: int = _DRAWS,
    fit: Callable[[Any, Any, Any], Any] | None = None,
    loss: Callable[[Any, Any, Any], float] | None = None,
    unit: str = "rows",
    advance: Callable[[], None] = lambda: None,
    random_state: int = 0,
) -> dict[str, Any]:
    """A section for the argument ``learning`` of the reports: the loss on new data against the size of training data.

    The model is fitted again to random parts of its training data, ``draws`` times at each size; the last point is the
    model itself. With the defaults that takes about four times as long as training did: the shares add up to 1.4, three
    times each.

    Parameters
    ----------
    model : fitted estimator of this library, or a pipeline that ends in one
        Which is cloned, not changed.
    X, y : the training data, as given to the model
    X_new, y_new : data that it was not trained on
    shares : sequence of float
        Of the training data, between 0 and 1.
    draws : int, default=3
    fit, loss : callables, optional
        ``fit(model, X, y)`` and ``loss(model, X, y)``, where they are not those of the model.
    unit : str
        What examples are called.
    advance : callable
        Called after each fit.
    """
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    if not all(0 < share < 1 for share in shares):
        raise ValueError(f"shares must lie between 0 and 1, both excluded; got {tuple(shares)}.")
    if draws < 1:
        raise ValueError(f"draws must be 1 at least; got {draws}.")
    fit, loss = fit or (lambda one, X, y: one.fit(X, y)), loss or _task_loss
    n, rng = len(y), np.random.default_rng(random_state)
    points = []
    for size in np.unique([max(2, round(share * n)) for share in sorted(shares)]).tolist():
        found = []
        for _ in range(draws):
            rows = _drawn(y, size, rng)
            again = clone(model)
            split(again)[1].set_params(callback=None, checkpoint=None)
            part = [_safe_indexing(data, rows) for data in (X, y)]
            with warnings.catch_warnings():  # one of many fits may stop early
                warnings.simplefilter("ignore")
                fit(again, *part)
            found.append([loss(again, *part), loss(again, X_new, y_new)])
            advance()
        points.append([len(rows), *np.mean(found, axis=0), *np.min(found, axis=0), *np.max(found, axis=0)])
    whole = [loss(model, X, y), loss(model, X_new, y_new)]
    points.append([n, *whole, *whole, *whole])
    return {
        "type": "learning",
        "title": "With more data",
        "unit": unit,
        "n_new": len(y_new),
        "draws": draws,
        "points": points,  # size, means on training and on new data, the least of both, the largest of both
    }


def _task_loss(model: Any, X: Any, y: Any) -> float:
    before, last = split(model)
    return float(last.task_loss(X if before is None else before.transform(X), y))


def _drawn(y: Any, size: int, rng: np.random.Generator) -> np.ndarray:
    """Some examples at random, among them one with each class: of rows, or of sequences whose labels are words."""
    order = rng.permutation(len(y))
    sizes = [np.size(y[i]) for i in order]
    labels = np.concatenate([np.atleast_1d(y[i]) for i in order])
    if np.ndim(y[0]) == 0 or labels.dtype.kind in "OU":
        owners = np.repeat(np.arange(order.size), sizes)
        first = np.unique(owners[np.unique(labels, return_index=True)[1]])
        order = np.concatenate([order[first], np.delete(order, first)])
        size = max(size, first.size)
    return np.sort(order[:size])

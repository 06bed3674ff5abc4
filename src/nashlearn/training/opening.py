"""Training as an estimator's parameters ask for it, and which of them a checkpoint belongs to."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from nashlearn.training.checkpoint import Checkpoint
from nashlearn.training.driver import Method, Trained, train
from nashlearn.training.fingerprint import fingerprint

__all__ = ["asked_checkpoint", "train_as_asked"]

# These say how long and how loudly to train, or how to answer, not what to train: a checkpoint outlives a change.
_OF_THE_RUN = {
    "tol", "max_iter", "max_time", "checkpoint", "callback", "verbose", "n_jobs", "cache_size", "warm_start",
    "decision", "abstain_label", "zero_division",
}  # fmt: skip


def asked_checkpoint(estimator: Any, *data: Any) -> Checkpoint | None:
    """The checkpoint that the estimator asks for, of this estimator's training on these data."""
    if estimator.checkpoint is None:
        return None
    parameters = {k: v for k, v in estimator.get_params(deep=False).items() if k not in _OF_THE_RUN}
    if not isinstance(parameters.get("random_state"), numbers.Integral):
        parameters.pop("random_state", None)
    return Checkpoint(estimator.checkpoint, fingerprint(type(estimator).__qualname__, parameters, *data))


def train_as_asked(
    estimator: Any,
    problem: Any,
    method: Method,
    data: Sequence[Any],
    *,
    alpha: float | None = None,
    unit: float = 1.0,
    **more: Any,
) -> Trained:
    """:func:`train` with the parameters of the estimator; ``data`` are what its checkpoint belongs to.

    ``alpha``, that of the estimator where none is given, regularises the loss divided by ``unit``: the problem's own
    regularisation follows from it, see :mod:`nashlearn.training.penalties`.
    """
    return train(
        problem,
        method,
        alpha=method.penalty.inside(float(estimator.alpha if alpha is None else alpha), unit),
        unit=unit,
        tol=estimator.tol,
        max_iter=estimator.max_iter,
        verbose=estimator.verbose,
        max_time=estimator.max_time,
        callback=estimator.callback,
        checkpoint=asked_checkpoint(estimator, *data),
        **more,
    )

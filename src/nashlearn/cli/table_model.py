"""Classifiers of tables as the command line names them."""

from __future__ import annotations

from typing import Any

import nashlearn
from nashlearn.cli.costs import loss_or_costs

__all__ = ["chosen_loss", "estimator_for"]

_KERNELS = ("rbf", "poly", "laplacian")
_ABSTAIN = "abstain"
_GRADED = ("absolute", "squared")  # losses of ordered labels


def chosen_loss(loss: str | None, ordinal: bool) -> str:
    """The loss that is trained on: the given one, or the one that belongs to the estimator."""
    if ordinal and loss not in (None, "absolute"):
        raise ValueError(f"--ordinal is for the loss absolute; got {loss!r}.")
    return loss or ("absolute" if ordinal else "zero_one")


def _check_kernel(kernel: str, given: dict[str, Any]) -> None:
    """Refuse an unknown kernel, and options that it has no use for."""
    if kernel != "linear" and kernel not in _KERNELS:
        raise ValueError(f"--kernel must be linear, {', '.join(_KERNELS)}; got {kernel!r}.")
    if kernel == "linear" and "gamma" in given:
        raise ValueError(f"--gamma is for the kernels {', '.join(_KERNELS)}; name one with --kernel.")
    if kernel != "poly" and "degree" in given:
        raise ValueError(f"--degree is for --kernel poly; the kernel is {kernel}.")


def estimator_for(
    loss: str, classes: list[Any], ordinal: bool, decision: str, kernel: str, given: dict[str, Any]
) -> tuple[Any, str, list[str] | None]:
    """The estimator for a loss as the command line names it, the kind of its report, and answers that are no labels."""
    _check_kernel(kernel, given)
    if kernel != "linear":
        given = {**given, "kernel": kernel}
    name, _, price = loss.partition(":")
    if ordinal:
        return nashlearn.NashOrdinalClassifier(decision=decision, **given), "ordinal", None
    if name == _ABSTAIN:
        label = _ABSTAIN
        while label in map(str, classes):
            label = f"({label})"
        return nashlearn.NashAbstainer(_price(price), abstain_label=label, **given), "abstention", None
    costs, options = loss_or_costs(loss, classes, ", abstain:PRICE")
    kind = "ordinal" if loss in _GRADED else "classification"
    return nashlearn.NashClassifier(costs, decision=decision, **given), kind, options


def _price(text: str) -> float:
    try:
        return float(text or 0.5)
    except ValueError:
        raise ValueError(f"--loss abstain:PRICE needs a number, as in abstain:0.3; got {text!r}.") from None

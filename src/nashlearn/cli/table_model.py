"""Classifiers of tables as the command line names them, and what their answers stand for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nashlearn.cli.costs import loss_or_costs

__all__ = ["Answers", "chosen_loss", "estimator_for"]

_KERNELS = ("rbf", "poly", "laplacian")
_ABSTAIN = "abstain"
_GRADED = ("absolute", "squared")  # losses of ordered labels


class Answers(NamedTuple):
    """What a model's predictions stand for: the classes, whether it was trained on their ranks, and other options.

    ``kind`` is that of its report.
    """

    classes: list[Any]
    ranks: bool = False
    options: list[str] | None = None
    kind: str = "classification"

    def read(self, predictions: np.ndarray) -> list[Any]:
        """Predictions as labels, or as the names of options."""
        if self.options is not None:
            return [self.options[i] for i in predictions.tolist()]
        if self.ranks:
            return [self.classes[i] if isinstance(i, int) else i for i in predictions.tolist()]
        return list(predictions.tolist())

    def label_names(self) -> dict[Any, str] | None:
        """Names for the report where predictions are numbers of options or ranks."""
        if self.options is not None and isinstance(self.classes[0], str):
            return dict(enumerate(self.options))
        return dict(enumerate(map(str, self.classes))) if self.ranks else None


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
    loss: str, answers: Answers, *, ordinal: bool, decision: str, kernel: str, given: dict[str, Any]
) -> tuple[Any, Answers]:
    """The estimator for a loss as the command line names it, and what its answers stand for."""
    from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier

    _check_kernel(kernel, given)
    if kernel != "linear":
        given = {**given, "kernel": kernel}
    name, _, price = loss.partition(":")
    if ordinal:
        return NashOrdinalClassifier(decision=decision, **given), answers._replace(kind="ordinal")
    if name == _ABSTAIN:
        label = _ABSTAIN
        while label in map(str, answers.classes):
            label = f"({label})"
        return NashAbstainer(_price(price), abstain_label=label, **given), answers._replace(kind="abstention")
    costs, options = loss_or_costs(loss, answers.classes, ", abstain:PRICE")
    kind = "ordinal" if loss in _GRADED else "classification"
    return NashClassifier(costs, decision=decision, **given), answers._replace(options=options, kind=kind)


def _price(text: str) -> float:
    try:
        return float(text or 0.5)
    except ValueError:
        raise ValueError(f"--loss abstain:PRICE needs a number, as in abstain:0.3; got {text!r}.") from None

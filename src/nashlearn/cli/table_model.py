"""Classifiers of tables as the command line builds, tunes and judges them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nashlearn.cli.costs import read_costs
from nashlearn.cli.talk import Talk
from nashlearn.cli.tune import candidates, check_folds, tuned

__all__ = [
    "Answers",
    "chosen_loss",
    "estimator_for",
    "held_out_rows",
    "note_identifiers",
    "predicted",
    "report_data",
    "scores",
    "tune",
]

_ALPHAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
_WIDTHS = (0.25, 1.0, 4.0)  # times 1 / number of columns
_KERNELS = ("rbf", "poly", "laplacian")
_BLOCK = 1 << 16  # rows predicted together
_ABSTAIN = "abstain"
_REPORTS = {"zero_one": "classification", "absolute": "ordinal", "squared": "ordinal"}


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
    loss: str, classes: list[Any], *, ordinal: bool, ranks: bool, decision: str, kernel: str, given: dict[str, Any]
) -> tuple[Any, Answers]:
    """The estimator for a loss as the command line names it, and what its answers stand for."""
    from nashlearn import NashAbstainer, NashClassifier, NashOrdinalClassifier

    _check_kernel(kernel, given)
    if kernel != "linear":
        given = {**given, "kernel": kernel}
    answers = Answers(classes, ranks)
    name, _, price = loss.partition(":")
    if ordinal:
        return NashOrdinalClassifier(decision=decision, **given), answers._replace(kind="ordinal")
    if name == "abstain":
        label = _ABSTAIN
        while label in map(str, classes):
            label = f"({label})"
        return NashAbstainer(_price(price), abstain_label=label, **given), answers._replace(kind="abstention")
    if loss in _REPORTS:
        return NashClassifier(loss, decision=decision, **given), answers._replace(kind=_REPORTS[loss])
    path = Path(loss)
    if not path.is_file():
        raise ValueError(
            f"--loss must be zero_one, absolute, squared, abstain:PRICE or a file of costs; {loss!r} is none of these."
        )
    matrix, options = read_costs(path).aligned(classes, str(path))
    return NashClassifier(matrix, decision=decision, **given), answers._replace(options=options)


def _price(text: str) -> float:
    try:
        return float(text or 0.5)
    except ValueError:
        raise ValueError(f"--loss abstain:PRICE needs a number, as in abstain:0.3; got {text!r}.") from None


def note_identifiers(talk: Talk, X: Any, kinds: dict[str, str], categorical: Sequence[str]) -> None:
    """Point out columns of text that look like identifiers, and those not called categorical that look like numbers."""
    for name, kind in kinds.items():
        if kind == "category" and name not in categorical and _all_digits(X[name].dropna().unique().tolist()):
            talk.note(f"note: the column {name!r} holds numbers written as text, which are taken for categories.")
        if kind == "category" and (different := X[name].nunique()) > max(50, 0.5 * len(X)):
            talk.note(f"note: the column {name!r} has {different:,} different texts; --drop it if it is an identifier.")


def _all_digits(texts: list[Any]) -> bool:
    import pandas

    if not all(isinstance(text, str) for text in texts):
        return False
    return bool(pandas.to_numeric(pandas.Series(texts), errors="coerce").notna().all())


def held_out_rows(y: np.ndarray, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to train on and rows to hold out, with the same classes where there are enough of each."""
    from sklearn.model_selection import train_test_split

    counts = np.unique(y, return_counts=True)[1]
    even = y if counts.min() >= 2 and share * y.size >= counts.size else None
    kept, held = train_test_split(np.arange(y.size), test_size=share, random_state=seed, stratify=even)
    kept, held = _with_every_class(kept, held, y)
    if not held.size:
        raise ValueError(
            f"None of the {y.size:,} rows can be held out for --report: each is the only one of its class. Name data "
            "to test on with --test."
        )
    return kept, held


def _with_every_class(kept: np.ndarray, held: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same rows, where those of classes of which none is kept are kept: a model has to know every class."""
    known = np.isin(y[held], y[kept])
    return np.sort(np.concatenate([kept, held[~known]])), np.sort(held[known])


def tune(
    talk: Talk,
    model: Any,
    X: Any,
    y: np.ndarray,
    *,
    folds: int,
    seed: int,
    wide: bool,
    alpha: float | None,
    gamma: float | None,
) -> dict[str, Any]:
    """Set alpha, and the width of a kernel, to the best of a grid by the estimator's own loss; what was chosen.

    A value that is given is the whole grid.
    """
    from sklearn.base import clone
    from sklearn.model_selection import KFold, StratifiedKFold

    check_folds(y.size, folds, "rows")
    least = int(np.unique(y, return_counts=True)[1].min())
    kind = StratifiedKFold if least >= folds else KFold
    parts = list(kind(folds, shuffle=True, random_state=seed).split(np.zeros(y.size), y))
    parts = [(rows, held) for rows, held in (_with_every_class(a, b, y) for a, b in parts) if held.size]
    if not parts:
        raise ValueError(
            f"--tune with --folds {folds} finds no row to judge by: each of the {y.size:,} is alone in its class."
        )
    grid: dict[str, Sequence[Any]] = {"alpha": _ALPHAS if alpha is None else (alpha,)}
    if wide:
        grid["gamma"] = [width / X.shape[1] for width in _WIDTHS] if gamma is None else [gamma]

    def loss(choice: dict[str, Any], fold: tuple[np.ndarray, np.ndarray]) -> float:
        rows, held = fold
        one = clone(model).set_params(**{f"model__{name}": value for name, value in choice.items()})
        one.set_params(model__max_time=None, model__checkpoint=None)
        one.fit(X.iloc[rows], y[rows])
        return one[-1].task_loss(one[:-1].transform(X.iloc[held]), y[held])

    best = tuned(talk, candidates(grid), parts, loss)
    model.set_params(**{f"model__{name}": best[name] for name in grid})
    return best


def predicted(model: Any, X: Any, *, talk: Talk, proba: bool = False) -> tuple[np.ndarray, np.ndarray | None]:
    """Answers of a pipeline to a data frame, block by block, and the equilibrium strategy where asked for."""
    last = model[-1]
    answer: Callable[[Any], np.ndarray] = getattr(last, "predict_or_abstain", last.predict)
    found, strategies = [], []
    starts = range(0, len(X), _BLOCK)
    with talk.counting("predicting", len(starts)) as advance:
        for start in starts:
            Z = model[:-1].transform(X.iloc[start : start + _BLOCK])
            found.append(answer(Z))
            if proba:
                strategies.append(last.predict_proba(Z))
            advance()
    return np.concatenate(found), np.concatenate(strategies) if proba else None


def scores(model: Any, X: Any, y: np.ndarray, *, talk: Talk) -> dict[str, Any]:
    """The loss of a model's answers on labelled rows, their accuracy, and for abstention how many it gave."""
    last = model[-1]
    answers, _ = predicted(model, X, talk=talk)
    found: dict[str, Any] = {"rows": int(y.size), "task_loss": _task_loss(model, X, y)}
    given = np.ones(y.size, dtype=bool)
    if hasattr(last, "abstain_label"):
        given = np.array([answer != last.abstain_label for answer in answers.tolist()])
        found["coverage"] = float(given.mean())
    if getattr(last._game, "n_options", 0) == last.classes_.size or hasattr(last, "abstain_label"):
        right = np.array([a == b for a, b in zip(answers.tolist(), y.tolist(), strict=True)])
        found["accuracy"] = float(right[given].mean()) if given.any() else None
    return found


def _task_loss(model: Any, X: Any, y: np.ndarray) -> float:
    total = 0.0
    for start in range(0, len(X), _BLOCK):
        rows = slice(start, start + _BLOCK)
        Z = model[:-1].transform(X.iloc[rows])
        total += model[-1].task_loss(Z, y[rows]) * len(y[rows])
    return total / y.size


def report_data(model: Any, X: Any, y: np.ndarray, answers: Answers, *, baselines: Any, title: str, facts: Any) -> Any:
    """The report that fits the estimator."""
    from nashlearn import report

    names = None
    if answers.options is not None and isinstance(answers.classes[0], str):
        names = dict(enumerate(answers.options))
    elif answers.ranks:
        names = {i: str(label) for i, label in enumerate(answers.classes)}
    make = getattr(report, f"{answers.kind}_report_data")
    return make(model, X, y, baselines=baselines, label_names=names, title=title, facts=facts)

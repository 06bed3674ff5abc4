"""Parameters by cross-validation on the loss itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nashlearn.cli.talk import Talk, figure, silently_interrupted

__all__ = ["Fold", "cuts", "every_label", "held_out", "tuned"]

Fold = tuple[np.ndarray, np.ndarray]


def held_out(n: int, seed: int) -> Fold:
    """Which of ``n`` examples to train on, and which fifth to hold out."""
    order = np.random.default_rng(seed).permutation(n)
    cut = max(1, n // 5)
    if cut == n:
        raise ValueError("There is one example only: none can be held out. Name data to test on with --test.")
    return np.sort(order[cut:]), np.sort(order[:cut])


def every_label(folds: Iterable[Fold], labels: np.ndarray, owners: np.ndarray, refusal: str) -> list[Fold]:
    """The same folds, where examples with labels that no other has are trained on: a model has to know every label.

    ``owners`` says whose each label is. Folds that hold nothing out are left out, and refused where all are such.
    """
    found = []
    for kept, held in folds:
        known = np.isin(labels, labels[np.isin(owners, kept)])
        lone = np.isin(held, owners[~known])
        if not lone.all():
            found.append((np.sort(np.concatenate([kept, held[lone]])), np.sort(held[~lone])))
    if not found:
        raise ValueError(refusal)
    return found


def cuts(n: int, folds: int, seed: int | None, what: str, even: np.ndarray | None = None) -> list[Fold]:
    """Folds of ``n`` examples, ``what`` in words: shuffled by ``seed``, and with the labels ``even`` spread evenly."""
    from sklearn.model_selection import KFold, StratifiedKFold

    if n < folds:
        raise ValueError(f"--tune with --folds {folds} needs at least as many {what}; there are {n}.")
    rare = even is None or np.unique(even, return_counts=True)[1].min() < folds
    kind = KFold if rare else StratifiedKFold
    return list(kind(folds, shuffle=seed is not None, random_state=seed).split(np.zeros(n), even))


def tuned(
    talk: Talk, grid: Mapping[str, Sequence[Any]], folds: Sequence[Fold], loss: Callable[[dict[str, Any], Fold], float]
) -> dict[str, Any]:
    """The values of the grid of least mean loss over the folds. Interrupted, the best of those that were tried."""
    from sklearn.model_selection import ParameterGrid

    choices, found = list(ParameterGrid(grid)), []
    with talk.counting("choosing parameters", len(choices) * len(folds)) as advance:
        try:
            for choice in choices:
                losses = []
                for fold in folds:
                    losses.append(_quietly(loss, choice, fold))
                    advance()
                found.append(float(np.mean(losses)))
        except KeyboardInterrupt:
            if not found:
                raise
            talk.warn(f"choosing parameters was interrupted after {len(found)} of {len(choices)}.")
    best = int(np.argmin(found))
    for choice, value in zip(choices, found, strict=False):
        talk.note(f"  {figure(choice)}: loss {value:.4g}" + ("  (chosen)" if choice is choices[best] else ""))
    return {**choices[best], "cross_validated_loss": found[best]}


def _quietly(loss: Callable[[dict[str, Any], Fold], float], choice: dict[str, Any], fold: Fold) -> float:
    """The loss without warnings of single fits, which are many; an interruption that a fit kept to itself goes on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = loss(choice, fold)
    if silently_interrupted(caught):
        raise KeyboardInterrupt
    return value

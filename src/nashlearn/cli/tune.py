"""Parameters by validation: a grid by cross-validation, or one parameter after another on one held-out part."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nashlearn.cli.talk import Talk, figure, silently_interrupted

__all__ = ["Fold", "Trial", "cuts", "every_label", "held_out", "searched", "tuned"]

Fold = tuple[np.ndarray, np.ndarray]
T = TypeVar("T")


class Trial(NamedTuple):
    """Parameters that were tried, and the loss on what was held out."""

    choice: dict[str, Any]
    loss: float


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


def searched(
    talk: Talk,
    alternatives: Mapping[str, Sequence[Any]],
    attempt: Callable[[dict[str, Any]], Trial],
    seconds: float,
    shown: Callable[[float], str],
) -> tuple[Trial, list[Trial]]:
    """The best of the trials, and all of them: one parameter after another, the others at the best values so far.

    Deterministic, except for where it ends when the time is up or it is interrupted: at the best trial so far. Takes
    ``1 + sum (len(values) - 1)`` trials.

    Parameters
    ----------
    alternatives : mapping of names to values
        In the order in which they are chosen; the search begins at the first value of each. Of equals the first wins.
    attempt : callable
        The trial of a choice, a value for each name; it may add to the choice what it found out on the way.
    seconds : float
        CPU time after which no trial is begun, but for the first: what is chosen hangs on no other work of the machine.
    shown : callable
        The loss in words.
    """
    best, found = {name: values[0] for name, values in alternatives.items()}, list[Trial]()
    began, total = time.process_time(), 1 + sum(len(values) - 1 for values in alternatives.values())

    def late() -> bool:
        return bool(found) and time.process_time() - began > seconds

    def add(choice: dict[str, Any]) -> None:
        found.append(_quietly(attempt, choice))
        talk.note(f"  {figure(found[-1].choice)}: {shown(found[-1].loss)}")
        advance()

    with talk.counting("choosing parameters", total) as advance:
        try:
            add(best)
            for name, values in alternatives.items():
                for value in values[1:]:
                    if not late():
                        add({**best, name: value})
                best = min(found, key=lambda trial: trial.loss).choice
        except KeyboardInterrupt:
            if not found:
                raise
            talk.warn(f"choosing parameters was interrupted after {len(found)} of {total} trials.")
    if late() and len(found) < total:
        talk.warn(
            f"choosing parameters ended after {len(found)} of {total} trials, its time being up; --tune-time allows "
            f"more than {seconds:g} CPU seconds."
        )
    chosen = min(found, key=lambda trial: trial.loss)
    talk.note(f"chosen: {figure(chosen.choice)}: {shown(chosen.loss)}")
    return chosen, found


def _quietly(loss: Callable[..., T], *choice: Any) -> T:
    """A loss without warnings of single fits, which are many; an interruption that a fit kept to itself goes on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = loss(*choice)
    if silently_interrupted(caught):
        raise KeyboardInterrupt
    return value

"""The work of one cell: a path of tuning on one fold, or one split trained and judged."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from reproduce import protocol
from reproduce.methods import ABSTAIN, METHODS, Method
from reproduce.tables import TABLES, Table

__all__ = ["evaluate", "fold_losses", "tune"]

TUNING_TOL, FINAL_TOL = 1e-2, 1e-3
TUNING_ROUNDS = 8  # of our kernel fits: at a large C the loss is next to nothing, and a part of it hard to certify


def _path(
    method: Method, X: np.ndarray, y: np.ndarray, strengths: list[float], gamma: float
) -> Iterator[tuple[int, Any]]:
    """Models for all strengths, from the most regularised on; each starts from the last where the method can."""
    alphas = [method.alpha(strength, len(X), int(y.max()) + 1) for strength in strengths]
    model = None
    for position in np.argsort(alphas)[::-1]:
        fresh = method.build(alphas[position], gamma, len(X), TUNING_TOL)
        if method.kernel and method.warm:
            fresh.set_params(max_iter=TUNING_ROUNDS)
        model = model.set_params(**fresh.get_params()) if model is not None and method.warm else fresh
        yield int(position), model.fit(X, y)


def fold_losses(
    table: Table, method: Method, data: protocol.Data, held: np.ndarray, strengths: list[float], gamma: float
) -> list[float]:
    """Validation losses, summed over the rows ``held`` out, for every strength at one gamma."""
    kept = np.setdiff1d(np.arange(len(data.y)), held)
    classes, y = np.unique(data.y[kept], return_inverse=True)
    losses = [0.0] * len(strengths)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unconverged fits compete as they are
        for position, model in _path(method, data.X[kept], y, strengths, gamma):
            answers = method.answer(model, data.X[held])
            losses[position] = float(table.losses(answers, data.classes[classes], data.classes[data.y[held]]).sum())
    return losses


def tune(key: list[Any]) -> dict[str, Any]:
    """Validation losses of one fold of the first split."""
    table_name, name, method_name, step, fold, gamma, strengths = key
    table, method = TABLES[table_name], METHODS[method_name]
    data = protocol.data(table.room, name, 0)
    held = protocol.folds(len(data.y), name, step)[fold]
    begin = time.perf_counter()
    losses = fold_losses(table, method, data, held, strengths, gamma)
    return {"key": key, "losses": losses, "rows": len(held), "seconds": time.perf_counter() - begin}


def evaluate(key: list[Any]) -> dict[str, Any]:
    """Train on one split with the chosen parameters and judge on its test part."""
    table_name, name, method_name, _, split, gamma, strength = key
    table, method = TABLES[table_name], METHODS[method_name]
    data = protocol.data(table.room, name, split)
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        alpha = method.alpha(strength, len(data.y), data.classes.size)
        model = method.build(alpha, gamma, len(data.y), FINAL_TOL).fit(data.X, data.y)
    seconds = time.perf_counter() - begin
    answers = method.answer(model, data.X_test)
    return {
        "key": key,
        "loss": float(table.losses(answers, data.classes, data.y_test).mean()),
        "abstained": float((answers == ABSTAIN).mean()),
        "gap": getattr(model, "dual_gap_", None),
        "warned": sorted({type(warning.message).__name__ for warning in caught}),
        "seconds": seconds,
    }

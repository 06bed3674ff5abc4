"""What a model of a table looks at: what each column is worth to it, and its weights.

**Importances.** The entries of one column of the held-out rows are shuffled, and the importance of the column is by
how much the mean cost rises [breiman2001]_ (:func:`sklearn.inspection.permutation_importance`). The rows are cut at
random into blocks, the rise is taken in each, and the interval is Student's of the blocks' means: it allows for the
choice of rows and for the shuffles. Columns are those of the table, before anything is encoded.

**Weights.** Those of a linear model, for each encoded feature. Where the training data are given, the estimator is
fitted again without each tenth of the rows, and the interval is Student's around the weight with the jackknife's
variance

    ``(g - 1) / g  sum_i |w_i - mean w|^2``,    ``g = 10``,

which says how far weights would move with other training rows of the same kind and number [tukey1958]_. The encoding
stays as it is. On large data the ten fits see a sample of ``m`` of the ``n`` rows, and the variance is that of the
sample times ``m / n``.

**Time.** At most ``_WORK`` rows are predicted for importances, and at most ``_ENTRIES`` numbers are in each of the ten
fits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from nashlearn.report.baselines import split
from nashlearn.report.page import short

__all__ = ["Shuffles", "feature_names", "importances", "jackknife", "shuffles_for", "weights"]

_ROWS, _LEAST = 2000, 200  # rows that are shuffled
_REPEATS, _FEWEST = 10, 3  # shuffles of a column
_COLUMNS = 300  # that are shuffled at all
_WORK = 1_000_000  # rows predicted in all
_SUPPORT = 2000  # support vectors that a row is compared with in about the time that other models take
_BLOCKS = 20
_FITS = 10
_ENTRIES = 20_000_000  # numbers in the data of one of the fits
_SHOWN = 1000  # weights in the table, of all labels together


class Shuffles(NamedTuple):
    """How much is shuffled: columns, times each, rows, and the blocks that the rows are cut into."""

    columns: int
    repeats: int
    rows: int
    blocks: int


def shuffles_for(columns: int, rows: int, support: int = 0) -> Shuffles | None:
    """What the time allows, or None where there are too many columns or too few rows."""
    if not 0 < columns <= _COLUMNS or rows < 4:
        return None
    work = _WORK * min(1.0, _SUPPORT / max(support, 1))
    repeats = int(np.clip(work // (columns * _ROWS), _FEWEST, _REPEATS))
    rows = int(min(rows, _ROWS, max(_LEAST, work // (columns * repeats))))
    return Shuffles(columns, repeats, rows, min(_BLOCKS, rows // 2))


def importances(
    model: Any, X: Any, labels: np.ndarray, paid: Callable[[Any, np.ndarray], np.ndarray], page: Any
) -> dict[str, Any] | None:
    """By how much the mean cost rises where the entries of a column are shuffled; None for rows without such columns.

    Parameters
    ----------
    paid : callable
        The cost (n,) of the model's answers to rows with labels.
    page : Page
        Whose confidence and seed are used.
    """
    from scipy.sparse import issparse
    from sklearn.inspection import permutation_importance
    from sklearn.utils import _safe_indexing

    if issparse(X) or len(getattr(X, "shape", ())) != 2:
        return None
    columns, support = X.shape[1], len(getattr(split(model)[1], "support_", ()))
    plan = shuffles_for(columns, labels.size, support)
    found = {"type": "importances", "title": "What it looks at", "columns": columns, "confidence": page.confidence}
    if plan is None:
        return {**found, "rows": [], "plan": None}
    rng = np.random.default_rng(page.random_state)
    rows = rng.permutation(labels.size)[: plan.rows]
    cut = np.array_split(np.arange(plan.rows), plan.blocks)

    def rises(_: Any, drawn: Any, y: np.ndarray) -> dict[str, float]:
        costs = paid(drawn, y)
        return {str(b): -float(costs[block].mean()) for b, block in enumerate(cut)}

    result = permutation_importance(
        model,
        _safe_indexing(X, rows),
        labels[rows],
        scoring=rises,
        n_repeats=plan.repeats,
        random_state=page.random_state,
    )
    means = np.array([result[str(b)].importances_mean for b in range(plan.blocks)])  # (blocks, columns)
    share = np.array([block.size for block in cut]) / plan.rows
    value = share @ means
    half = _student(page.confidence, plan.blocks - 1) * means.std(axis=0, ddof=1) / np.sqrt(plan.blocks)
    names = [str(name) for name in getattr(X, "columns", [f"column {j + 1}" for j in range(columns)])]
    listed = [[names[j], value[j], value[j] - half[j], value[j] + half[j]] for j in np.argsort(-value, kind="stable")]
    return {**found, "rows": listed, "plan": {**plan._asdict(), "of": labels.size}}


def _student(confidence: float, freedom: int) -> float:
    return float(stdtrit(freedom, (1.0 + confidence) / 2.0))


def feature_names(before: Any, X: Any, n: int) -> list[str]:
    """Names of the features that the first steps of a model make of the columns; numbers where they have none."""
    made: Sequence[Any] = []
    try:
        made = before.get_feature_names_out() if before is not None else getattr(X, "columns", [])
    except (AttributeError, ValueError):  # a step that does not know the names of what it makes
        made = getattr(X, "columns", [])
    columns = tuple(map(str, getattr(X, "columns", [])))
    names = [_plainly(str(name), columns) for name in made]
    return names if len(names) == n else [f"feature {j + 1}" for j in range(n)]


def _plainly(name: str, columns: tuple[str, ...]) -> str:
    """The name of a feature without that of the step which made it, where what is left tells the column."""
    step, _, rest = name.partition("__")
    if not rest or name in columns:
        return name
    return rest if rest.startswith(columns) else f"{step}: {rest}"


def jackknife(estimator: Any, features: Any, y: Any, random_state: int = 0) -> tuple[np.ndarray, dict[str, int]]:
    """Standard errors of ``coef_``, and the rows that they come from: ten fits, each without a tenth of the rows.

    A row whose class has no other stays in every fit.
    """
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    y = np.asarray(y)
    n, rng = y.shape[0], np.random.default_rng(random_state)
    width = max(1.0, getattr(features, "nnz", features.shape[0] * features.shape[1]) / n)
    size = int(min(n, max(_LEAST, _ENTRIES // (width * len(estimator.coef_)))))
    rows, part = _sampled(y, size, rng)
    features, y = _safe_indexing(features, rows), y[rows]
    fits = []
    with warnings.catch_warnings():  # a fit that stops early is one of ten
        warnings.simplefilter("ignore")
        for left_out in range(_FITS):
            kept = np.flatnonzero(part != left_out)
            again = clone(estimator).set_params(callback=None, checkpoint=None)
            fits.append(again.fit(_safe_indexing(features, kept), y[kept]).coef_)
    apart = np.square(np.array(fits) - np.mean(fits, axis=0)).sum(axis=0)
    error = np.sqrt((_FITS - 1) / _FITS * apart * rows.size / n)
    return error, {"rows": rows.size, "of": n, "fits": _FITS}


def _sampled(y: np.ndarray, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows, at least two of each class that has two, and the tenth that each belongs to, spread over the classes."""
    order = rng.permutation(y.shape[0])
    codes = np.unique(y, return_inverse=True)[1][order]
    by_class = np.argsort(codes, kind="stable")
    place = np.empty(codes.size, dtype=np.int64)  # among the rows of the same class
    place[by_class] = np.arange(codes.size) - np.searchsorted(codes[by_class], codes[by_class])
    kept = np.union1d(np.flatnonzero(place < 2), np.arange(codes.size)[:size])
    rows, codes, place = order[kept], codes[kept], place[kept]
    alone = np.bincount(codes)[codes] == 1
    part = np.where(alone, -1, (place + codes) % _FITS)
    return rows, part


def weights(
    estimator: Any, names: Sequence[str], labels: Sequence[str], spread: Any, confidence: float
) -> dict[str, Any]:
    """The weights of a linear model, the largest first, with intervals where :func:`jackknife` has found ``spread``."""
    coef = np.asarray(estimator.coef_.toarray() if hasattr(estimator.coef_, "toarray") else estimator.coef_)
    shown = max(20, min(100, _SHOWN // len(coef)))
    order = np.argsort(-np.abs(coef).max(axis=0), kind="stable")[:shown]
    half = None if spread is None else _student(confidence, _FITS - 1) * spread[0]
    return {
        "type": "weights",
        "title": "Its weights",
        "confidence": confidence,
        "features": coef.shape[1],
        "names": [names[j] for j in order],
        # One direction for two labels, or for grades: it points to the last of them.
        "labels": list(labels) if len(coef) > 1 else [labels[-1]],
        "single": len(coef) == 1,
        "values": short(coef[:, order]),
        "halves": None if half is None else short(half[:, order]),
        "spread": None if spread is None else spread[1],
    }
